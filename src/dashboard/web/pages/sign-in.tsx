/**
 * The pages without a session: sign-in, sign-up, one-time links, and the return from an identity provider.
 */
import { useState, useEffect, useRef, type ReactNode } from 'react'
import type { SessionReply, SignInBody } from '../../../control/dashboard/schema/schema.js'
import { CallFailed, problemOf, type Problem } from '../api/client.js'
import { change } from '../api/endpoints.js'
import { Button } from '../components/button.js'
import { Form, TextField, useForm, type Bound } from '../components/form.js'
import { ProblemLine } from '../components/loading-states.js'
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
  if (path === '/lost-password') return <LostPassword />
  return <SignIn />
}

/** The sign-in; the page of the address is shown afterwards. */
export function SignIn() {
  const { session, adopt } = useSession()
  const form = useForm({ email: '', password: '' }, async (login) => {
    adopt(await change('POST /session', login))
  })
  return (
    <SignInFrame title="Sign in">
      {session.needsSetUp ? (
        <p className="problem warn">
          There is no administrator yet. Open the set-up link that the gateway printed when it started.
        </p>
      ) : null}
      <Form form={form} verb="Sign in">
        <Email {...form.field('email')} />
        <Password label="Password" {...form.field('password')} />
      </Form>
      {session.mails ? (
        <p className="soft">
          <Link to="/lost-password">Lost your password?</Link>
        </p>
      ) : null}
      {session.oidc === null ? null : <OidcButton provider={session.oidc} />}
      {session.signUp ? (
        <p className="soft">
          No account yet? <Link to="/sign-up">Sign up</Link>
        </p>
      ) : null}
    </SignInFrame>
  )
}

const RETURN = 'sluice.return'
/** The identity provider's page is open for this time at most. */
const RETURN_MS = 600_000

/**
 * The identity provider returns to one address: a page beside the dashboard is kept until then. A
 * page without a session clears what the tab alone keeps.
 */
function keepReturn(): void {
  const { pathname, search } = window.location
  if (!pathname.startsWith('/auth/')) window.localStorage.removeItem(RETURN)
  else window.localStorage.setItem(RETURN, `${Date.now()} ${pathname}${search}`)
}

/** Opens the page from which the sign-in began. */
function goBack(): void {
  const [atMs = '', page = ''] = (window.localStorage.getItem(RETURN) ?? '').split(' ')
  window.localStorage.removeItem(RETURN)
  const isRecent = Date.now() - Number(atMs) < RETURN_MS
  if (isRecent && page.startsWith('/auth/')) window.location.replace(page)
  else go('/', { replace: true })
}

function OidcButton({ provider }: { readonly provider: string }) {
  const form = useForm({}, async () => {
    const { url } = await change('POST /oidc/start', {})
    keepReturn()
    window.location.assign(url)
  })
  return (
    <Form form={form} verb={`Sign in with ${provider}`} tone="plain">
      <p className="or">or</p>
    </Form>
  )
}

/** Requests a link by mail. The answer is the same for every address. */
function LostPassword() {
  const [sentTo, setSentTo] = useState<string | null>(null)
  const form = useForm({ email: '' }, async (body) => {
    await change('POST /lost-password', body)
    setSentTo(body.email)
  })
  return (
    <SignInFrame
      title="Lost your password"
      text={
        sentTo === null
          ? 'A mail with a link to choose a new one goes to your address.'
          : `If ${sentTo} has a user here, a mail with a link is on its way. The link works once, for a day.`
      }
    >
      {sentTo === null ? (
        <Form form={form} verb="Send the link">
          <Email {...form.field('email')} />
        </Form>
      ) : null}
      <p className="soft">
        <Link to="/">Sign in</Link>
      </p>
    </SignInFrame>
  )
}

function SignUp() {
  const { adopt } = useSession()
  const form = useForm({ email: '', password: '' }, async (login) => {
    await change('POST /sign-up', login)
    try {
      adopt(await change('POST /session', login))
    } catch (error) {
      const problem = problemOf(error)
      const message = 'An account with this e-mail exists already. Sign in instead.'
      throw new CallFailed(problem.kind === 'unauthenticated' ? { ...problem, message } : problem)
    }
    go('/', { replace: true })
  })
  return (
    <SignInFrame title="Sign up" text="An account has keys, a plan and usage of its own.">
      <Form form={form} verb="Sign up">
        <Email {...form.field('email')} />
        <Password label="Password" isNew {...form.field('password')} />
      </Form>
      <p className="soft">
        Have an account? <Link to="/">Sign in</Link>
      </p>
    </SignInFrame>
  )
}

/** Signs in after a link that does not replace the password of a user who was there before. */
async function signInWith(login: SignInBody): Promise<SessionReply> {
  try {
    return await change('POST /session', login)
  } catch (error) {
    const problem = problemOf(error)
    const message = `The link is used. Sign in as ${login.email} with the password that you had here before.`
    throw new CallFailed(problem.kind === 'unauthenticated' ? { ...problem, message } : problem)
  }
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
 * Sets a password by a one-time link: of the first administrator, or of an account. Clears the address bar
 * immediately.
 */
function LinkPage({ kind }: { readonly kind: 'setup' | 'reset' }) {
  const { adopt } = useSession()
  const [link] = useState(() => (taken = takeToken() || taken))
  const form = useForm({ email: '', password: '' }, async ({ email, password }) => {
    const reply =
      kind === 'setup'
        ? await change('POST /setup', { link, email, password })
        : await change('POST /reset', { link, password })
    taken = ''
    adopt('email' in reply ? await signInWith({ email: reply.email, password }) : reply)
    go('/', { replace: true })
  })
  const isSetUp = kind === 'setup'
  return (
    <SignInFrame
      title={isSetUp ? 'Set up Sluice' : 'Choose a password'}
      text={
        isSetUp
          ? 'You become the first administrator. This link works once.'
          : 'The new password replaces the current one and ends all other sessions. If you have a password here, enter that one to keep all your accounts. This link works once.'
      }
    >
      {link === '' ? (
        <p className="problem warn">
          The link is incomplete: the part after # is missing. Copy the whole link, or ask for a new one.
        </p>
      ) : (
        <Form form={form} verb={isSetUp ? 'Create administrator' : 'Set password'}>
          {isSetUp ? <Email {...form.field('email')} /> : null}
          <Password label="New password" isNew {...form.field('password')} />
        </Form>
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
        goBack()
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
export function SignInFrame({ title, text, children }: DoorProps) {
  useEffect(() => {
    document.title = `${title} · Sluice`
  }, [title])
  return (
    <main className="door" id="content">
      <div className="stack gap-20">
        <Mark />
        <h1>{title}</h1>
        {text === undefined ? null : <p className="soft">{text}</p>}
        {children}
      </div>
    </main>
  )
}

/** An e-mail address. */
export function Email(field: Bound) {
  return <TextField label="E-mail" type="email" name="email" autoComplete="username" required {...field} />
}

interface PasswordProps extends Bound {
  readonly label: string
  readonly isNew?: boolean
}

/** A password field with the attributes that password managers need. */
export function Password({ isNew = false, ...field }: PasswordProps) {
  return (
    <TextField
      type="password"
      name={isNew ? 'new-password' : 'password'}
      autoComplete={isNew ? 'new-password' : 'current-password'}
      required
      {...(isNew ? { hint: 'At least 8 characters. A sentence is stronger.', minLength: 8 } : {})}
      {...field}
    />
  )
}
