/**
 * The pages without a session: sign-in, sign-up, one-time links, and the return from an identity provider.
 */
import { useState } from 'react'
import { change } from '../../api/endpoints.js'
import { Button } from '../../components/actions/button.js'
import { ProblemLine } from '../../components/states/states.js'
import { Link } from '../../routing/link.js'
import { go, useLocation } from '../../routing/location.js'
import { useSession } from '../../shell/session.js'
import { useSubmit } from '../../components/forms/submit-form.js'
import { SignInFrame, Email, Password } from './sign-in-form.js'
import { OidcReturn, LinkPage } from './link-pages.js'

/** Selects the page by its path. All other paths show the sign-in and are opened afterwards. */
export function SignInPages() {
  const { path } = useLocation()
  if (path === '/setup') return <LinkPage kind="setup" />
  if (path === '/reset') return <LinkPage kind="reset" />
  if (path === '/oidc') return <OidcReturn />
  if (path === '/sign-up') return <SignUp />
  return <SignIn />
}

function SignIn() {
  const { session, adopt } = useSession()
  const [email, setEmail] = useState('')
  const [password, setPassword] = useState('')
  const { busy, problem, submit } = useSubmit(async () => {
    adopt(await change('POST /session', { email, password }))
  })
  return (
    <SignInFrame title="Sign in">
      {session.needsSetUp ? (
        <p className="hint-box">
          There is no administrator yet. Open the set-up link that the gateway printed when it
          started.
        </p>
      ) : null}
      <form className="form" onSubmit={submit}>
        <Email value={email} onChange={setEmail} />
        <Password label="Password" value={password} onChange={setPassword} isNew={false} />
        <ProblemLine problem={problem} />
        <Button type="submit" tone="primary" busy={busy}>
          Sign in
        </Button>
      </form>
      {session.oidc === null ? null : <OidcButton provider={session.oidc} />}
      {session.signUp ? (
        <p className="soft">
          No account yet? <Link to="/sign-up">Sign up</Link>
        </p>
      ) : null}
    </SignInFrame>
  )
}

function OidcButton({ provider }: { readonly provider: string }) {
  const { busy, problem, submit } = useSubmit(async () => {
    const { url } = await change('POST /oidc/start', {})
    window.location.assign(url)
  })
  return (
    <form className="form" onSubmit={submit}>
      <p className="or">or</p>
      <Button type="submit" busy={busy}>
        Sign in with {provider}
      </Button>
      <ProblemLine problem={problem} />
    </form>
  )
}

function SignUp() {
  const { adopt } = useSession()
  const [email, setEmail] = useState('')
  const [password, setPassword] = useState('')
  const { busy, problem, submit } = useSubmit(async () => {
    await change('POST /sign-up', { email, password })
    adopt(await change('POST /session', { email, password }))
    go('/', { replace: true })
  })
  const shown =
    problem?.kind === 'unauthenticated'
      ? { ...problem, message: 'An account with this e-mail exists already. Sign in instead.' }
      : problem
  return (
    <SignInFrame title="Sign up" text="An account has keys, a plan and usage of its own.">
      <form className="form" onSubmit={submit}>
        <Email value={email} onChange={setEmail} />
        <Password label="Password" value={password} onChange={setPassword} isNew />
        <ProblemLine problem={shown} />
        <Button type="submit" tone="primary" busy={busy}>
          Sign up
        </Button>
      </form>
      <p className="soft">
        Have an account? <Link to="/">Sign in</Link>
      </p>
    </SignInFrame>
  )
}
