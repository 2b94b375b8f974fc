/**
 * Pages of one-time links and of the return from an identity provider. They clear the address bar
 * immediately.
 */
import { useEffect, useRef, useState } from 'react'
import { change } from '../../api/endpoints.js'
import { problemOf, type Problem } from '../../api/client.js'
import { Button } from '../../components/actions/button.js'
import { ProblemLine } from '../../components/states/states.js'
import { go } from '../../routing/location.js'
import { useSession } from '../../shell/session.js'
import { useSubmit } from '../../components/forms/submit-form.js'
import { SignInFrame, Email, Password } from './sign-in-form.js'

/** Removes the token after `#` from the address bar and the history, and returns it. */
function takeToken(): string {
  const token = window.location.hash.slice(1)
  if (token !== '') window.history.replaceState(null, '', window.location.pathname)
  return token
}

/** Kept for a second mount of the page, which finds no token in the address. */
let taken = ''

/** Sets a password by a link: of the first administrator, or of an account. */
export function LinkPage({ kind }: { readonly kind: 'setup' | 'reset' }) {
  const { adopt } = useSession()
  const [link] = useState(() => (taken = takeToken() || taken))
  const [email, setEmail] = useState('')
  const [password, setPassword] = useState('')
  const { busy, problem, submit } = useSubmit(async () => {
    const reply =
      kind === 'setup'
        ? await change('POST /setup', { link, email, password })
        : await change('POST /reset', { link, password })
    taken = ''
    adopt(reply)
    go('/', { replace: true })
  })
  const isSetUp = kind === 'setup'
  return (
    <SignInFrame
      title={isSetUp ? 'Set up Sluice' : 'Choose a password'}
      text={
        isSetUp
          ? 'You become the first administrator. This link works once.'
          : 'The new password replaces the current one and ends all other sessions. This link works once.'
      }
    >
      {link === '' ? (
        <p className="hint-box">
          The link is incomplete: the part after # is missing. Copy the whole link, or ask for a new
          one.
        </p>
      ) : (
        <form className="form" onSubmit={submit}>
          {isSetUp ? <Email value={email} onChange={setEmail} /> : null}
          <Password label="New password" value={password} onChange={setPassword} isNew />
          <ProblemLine problem={problem} />
          <Button type="submit" tone="primary" busy={busy}>
            {isSetUp ? 'Create administrator' : 'Set password'}
          </Button>
        </form>
      )}
    </SignInFrame>
  )
}

/** Sends the identity provider's query to the server. */
export function OidcReturn() {
  const { adopt } = useSession()
  const [problem, setProblem] = useState<Problem | null>(null)
  const asked = useRef(false)
  useEffect(() => {
    // Once, even if effects run twice: the provider's code is valid for one use.
    if (asked.current) return
    asked.current = true
    const query = window.location.search
    window.history.replaceState(null, '', window.location.pathname)
    change('POST /oidc/finish', { query }).then(
      (reply) => {
        adopt(reply)
        go('/', { replace: true })
      },
      (error: unknown) => setProblem(problemOf(error)),
    )
  }, [adopt])
  return (
    <SignInFrame title="Signing in">
      {problem === null ? (
        <p className="soft">One moment.</p>
      ) : (
        <>
          <ProblemLine problem={problem} />
          <Button onClick={() => go('/', { replace: true })}>Back to sign in</Button>
        </>
      )}
    </SignInFrame>
  )
}
