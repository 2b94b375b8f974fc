/**
 * Sign-in and sign-out. "Open" needs no session and no token.
 *
 * The address of a one-time link is `/dashboard/setup#TOKEN` or `/dashboard/reset#TOKEN`. Browsers do not
 * send the part after `#`. The page must remove it from the address bar after reading it.
 */
import * as z from 'zod'
import { account } from './accounts.js'
import { accountRole, gatewayRole } from './members.js'
import { id, timeMs } from './shared-types.js'

const email = z.string().max(254)
/** The server accepts 8 characters to 1,024 bytes and refuses common passwords. */
const password = z.string().max(100_000)
/** The token of a one-time link. */
const linkToken = z.string().regex(/^[A-Za-z0-9_-]{20,100}$/, { error: 'is not a one-time link' })

/** `GET /session`, open; also the reply of every request that signs in or changes a session. */
export const sessionReply = z.strictObject({
  /** Null: not signed in. */
  account: account.nullable(),
  /** Null: not signed in. `role`: in the whole gateway, or null. */
  user: z.strictObject({ email: z.string(), role: gatewayRole.nullable() }).nullable(),
  /**
   * The accounts that the user is a member of, by name; then those below the accounts that the user owns,
   * with the role `above`, at most 500.
   */
  accounts: z.array(
    z.strictObject({ id, name: z.string(), role: z.enum([...accountRole.options, 'above']) }),
  ),
  /** For the header `x-sluice-csrf`; null if not signed in. */
  csrf: z.string().nullable(),
  /** When the session ends at the latest; null if not signed in. */
  endsAtMs: timeMs.nullable(),
  /** No administrator exists yet; the gateway has printed a set-up link at its start. */
  needsSetUp: z.boolean(),
  /** Whether users may create accounts for themselves. */
  signUp: z.boolean(),
  /** The identity provider's name for the button; null without one. */
  oidc: z.string().nullable(),
  /** Whether a lost password is replaced by mail (`POST /lost-password`). */
  mails: z.boolean(),
  /** The gateway's address for clients, `https://llm.example.com`; null: the origin of the page. */
  publicUrl: z.string().nullable(),
  /** For administrators. */
  grafanaUrl: z.string().nullable(),
  version: z.string(),
  /** Accounts, keys and past requests are made up, as in `sluice demo`. */
  sampleData: z.boolean(),
})

/**
 * `POST /session`, open: signs in. 401 for wrong credentials, 429 after too many attempts. → `sessionReply`
 */
export const signInBody = z.strictObject({ email, password })

/** `DELETE /session`: signs out here. `DELETE /sessions`: everywhere. → `doneReply` */

/**
 * `PUT /password`: changes it and ends all other sessions. 403 with `param: current` if that is wrong. →
 * `sessionReply`
 */
export const passwordBody = z.strictObject({
  /** Omitted if the account has none yet. */
  current: password.optional(),
  next: password,
})

/**
 * `POST /setup`, open: creates the first administrator and signs in. 403 for an invalid link. →
 * `sessionReply`
 */
export const setUpBody = z.strictObject({ link: linkToken, email, password })

/**
 * `POST /reset`, open: sets the password of the link's user. 403 for an invalid link. → `resetReply`
 */
export const resetBody = z.strictObject({ link: linkToken, password })
/**
 * The session, if an administrator made the link or it was mailed. Otherwise the address of the user,
 * who then signs in with the password of the link, or with an own one: such a link does not replace the
 * password of a user whose address is proven, and the reply does not show whether there was one.
 */
export const resetReply = z.union([sessionReply, z.strictObject({ email: z.string() })])

/**
 * `POST /sign-up`, open; 403 unless it is configured. → `doneReply`, whether or not the e-mail address has an
 * account. Then sign in with the same credentials; if that fails, the address was in use.
 */
export const signUpBody = z.strictObject({ email, password })

/**
 * `POST /lost-password`, open; 403 without `smtp`. → `doneReply`, whether or not the address has a user, who
 * gets a mail with a link to `POST /reset`.
 */
export const lostPasswordBody = z.strictObject({ email })

/** `POST /oidc/start`, open, with `{}`: returns the address of the provider. */
export const oidcStartBody = z.strictObject({})
/** Navigate to `url`. The provider returns to `/dashboard/oidc?code=…&state=…`. */
export const oidcStartReply = z.strictObject({ url: z.string() })
/** `POST /oidc/finish`, open: the complete `location.search` of that page. Signs in. → `sessionReply` */
export const oidcFinishBody = z.strictObject({ query: z.string().max(8_192) })

export type SessionReply = z.output<typeof sessionReply>
/** The session, or the address to sign in with. */
export type ResetReply = z.output<typeof resetReply>
/** The body of a sign-in. */
export type SignInBody = z.input<typeof signInBody>
/** The body of a password change. */
export type PasswordBody = z.input<typeof passwordBody>
/** The body that creates the first administrator. */
export type SetUpBody = z.input<typeof setUpBody>
/** The body that sets a password by a link. */
export type ResetBody = z.input<typeof resetBody>
/** The body of a sign-up. */
export type SignUpBody = z.input<typeof signUpBody>
export type LostPasswordBody = z.input<typeof lostPasswordBody>
/** The address of the provider. */
export type OidcStartReply = z.output<typeof oidcStartReply>
/** The query with which the browser returned. */
export type OidcFinishBody = z.input<typeof oidcFinishBody>
