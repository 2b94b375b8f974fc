/**
 * The pages without a session: sign-in, sign-up, one-time links, and the return from an identity provider.
 */
import { useState, useEffect, useRef, type ReactNode } from 'react'
import { problemOf, type Problem } from '../api/client.js'
import { change } from '../api/endpoints.js'
import { Button } from '../components/button.js'
import { useSubmit, TextField } from '../components/form.js'
import { ProblemLine } from '../components/states.js'
import { Link, go, useLocation } from '../routing.js'
import { Mark } from '../shell/navigation-rail.js'
import { useSession } from '../shell/session.js'

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

/** Removes the token after `#` from the address bar and the history, and returns it. */
function takeToken(): string {
  const token = window.location.hash.slice(1)
  if (token !== '') window.history.replaceState(null, '', window.location.pathname)
  return token
}

/** Kept for a second mount of the page, which finds no token in the address. */
let taken = ''

/**
 * Sets a password by a link: of the first administrator, or of an account.
 *
 * Pages of one-time links and of the return from an identity provider. They clear the address bar
 * immediately.
 */
function LinkPage({ kind }: { readonly kind: 'setup' | 'reset' }) {
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
function OidcReturn() {
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

interface DoorProps {
  readonly title: string
  readonly text?: ReactNode
  readonly children: ReactNode
}

/** The frame of a sign-in page. */
function SignInFrame({ title, text, children }: DoorProps) {
  useEffect(() => {
    document.title = `${title} · Sluice`
  }, [title])
  return (
    <main className="door">
      <div className="door-panel">
        <Mark />
        <h1 className="page-title">{title}</h1>
        {text === undefined ? null : <p className="soft">{text}</p>}
        {children}
      </div>
    </main>
  )
}

interface InputProps {
  readonly value: string
  readonly onChange: (value: string) => void
}

/** An e-mail address. */
export function Email({ value, onChange }: InputProps) {
  return (
    <TextField
      label="E-mail"
      type="email"
      name="email"
      autoComplete="username"
      required
      value={value}
      onChange={(event) => onChange(event.target.value)}
    />
  )
}

interface PasswordProps extends InputProps {
  readonly label: string
  readonly isNew: boolean
  readonly error?: string | undefined
}

/** A password field with the attributes that password managers need. */
export function Password({ label, isNew, error, value, onChange }: PasswordProps) {
  return (
    <TextField
      label={label}
      error={error}
      type="password"
      name={isNew ? 'new-password' : 'password'}
      autoComplete={isNew ? 'new-password' : 'current-password'}
      required
      {...(isNew ? { hint: 'At least 8 characters. A sentence is stronger.', minLength: 8 } : {})}
      value={value}
      onChange={(event) => onChange(event.target.value)}
    />
  )
}
