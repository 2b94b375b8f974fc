/**
 * Signing in and out. "Open" needs no session and no token.
 *
 * The address of a one-time link is `/dashboard/setup#TOKEN` or `/dashboard/reset#TOKEN`: what is behind
 * `#` never leaves the browser by itself. Take it out of the address bar as soon as it has been read.
 */
import { z } from 'zod'
import { account } from './account.js'
import { timeMs } from './basics.js'

const email = z.string().max(254)
/** Judged by the server: 8 characters to 1,024 bytes, and none of those that everybody tries. */
const password = z.string().max(100_000)
/** The token of a one-time link. */
const linkToken = z.string().regex(/^[A-Za-z0-9_-]{20,100}$/, { error: 'is not a one-time link' })

/** `GET /session`, open; also the answer to everything that signs in or changes a session. */
export const sessionReply = z.strictObject({
  /** Null: nobody is signed in. */
  account: account.nullable(),
  /** For the header `x-sluice-csrf`; null where nobody is signed in. */
  csrf: z.string().nullable(),
  /** When the session ends, whatever happens; null where nobody is signed in. */
  endsAtMs: timeMs.nullable(),
  /** No administrator exists yet: the program has printed a link when it started. */
  needsSetUp: z.boolean(),
  /** Whether people may make accounts for themselves. */
  signUp: z.boolean(),
  /** The identity provider's name for the button; null where there is none. */
  oidc: z.string().nullable(),
  /** Where clients reach the gateway, such as `https://llm.example.com`; null: where the page came from. */
  publicUrl: z.string().nullable(),
  /** For administrators. */
  grafanaUrl: z.string().nullable(),
  version: z.string(),
})

/** `POST /session`, open: signs in. 401 for a wrong pair, 429 after too many. → `sessionReply` */
export const signInBody = z.strictObject({ email, password })

/** `DELETE /session`: signs out here. `DELETE /sessions`: everywhere. → `doneReply` */

/** `PUT /password`: changes it and ends all other sessions. 403 with `param: current` where that is wrong. → `sessionReply` */
export const passwordBody = z.strictObject({
  /** Left out where the account has none yet. */
  current: password.optional(),
  next: password,
})

/** `POST /setup`, open: makes the first administrator and signs in. 403 for a link that is no good. → `sessionReply` */
export const setUpBody = z.strictObject({ link: linkToken, email, password })

/** `POST /reset`, open: sets the password of the link's account and signs in. 403 for a link that is no good. → `sessionReply` */
export const resetBody = z.strictObject({ link: linkToken, password })

/**
 * `POST /sign-up`, open; 403 where it is not configured. → `doneReply`, the same whether or not the e-mail
 * had an account: then sign in with the same pair; where that fails, the e-mail was taken.
 */
export const signUpBody = z.strictObject({ email, password })

/** `POST /oidc/start`, open, with `{}`: where to send the browser. */
export const oidcStartBody = z.strictObject({})
/** Go to `url` with the whole window. It comes back to `/dashboard/oidc?code=…&state=…`. */
export const oidcStartReply = z.strictObject({ url: z.string() })
/** `POST /oidc/finish`, open: `location.search` of that page, whole. Signs in. → `sessionReply` */
export const oidcFinishBody = z.strictObject({ query: z.string().max(8_192) })

/** Who is signed in. */
export type SessionReply = z.output<typeof sessionReply>
/** Signs in. */
export type SignInBody = z.input<typeof signInBody>
/** Changes a password. */
export type PasswordBody = z.input<typeof passwordBody>
/** Makes the first administrator. */
export type SetUpBody = z.input<typeof setUpBody>
/** Sets a password by a link. */
export type ResetBody = z.input<typeof resetBody>
/** Makes an account for oneself. */
export type SignUpBody = z.input<typeof signUpBody>
/** Where to send the browser. */
export type OidcStartReply = z.output<typeof oidcStartReply>
/** What the browser came back with. */
export type OidcFinishBody = z.input<typeof oidcFinishBody>
