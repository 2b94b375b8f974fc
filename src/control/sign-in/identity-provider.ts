/**
 * Signs users in with an OpenID Connect provider: the authorization code flow with PKCE, state and nonce.
 * State, nonce and verifier are derived from one secret in the browser's cookie. The first sign-in loads the
 * library.
 */
import { createHmac } from 'node:crypto'
import type * as openid from 'openid-client'
import type { OidcConfig } from '../../config/config.js'

/** How long the provider's metadata is cached. */
const FRESH_MS = 600_000
/** Timeout of each request to the provider. */
const TIMEOUT_S = 5

/** Why a sign-in failed; `userinfo`: that endpoint has replied with an error, which the message names. */
type IdentityFault = 'refused' | 'unavailable' | 'userinfo'

/** A failed sign-in. It contains no token, code or secret, since it is logged. */
export class IdentityError extends Error {
  readonly fault: IdentityFault

  constructor(fault: IdentityFault, code: string) {
    super(code)
    this.fault = fault
  }
}

/** The identity that the provider returns. */
export interface Identity {
  /** The user at the provider; no other user ever has the same subject. */
  readonly issuer: string
  readonly subject: string
  /** The groups of the configured claim. */
  readonly groups: readonly string[]
  /** Null if the provider names none, or has not verified it. */
  readonly verifiedEmail: string | null
}

interface CachedClient {
  readonly config: OidcConfig
  readonly untilMs: number
  readonly client: Promise<openid.Configuration>
}

/** Values of one sign-in, derived from its secret. */
interface FlowSecrets {
  readonly state: string
  readonly nonce: string
  /** For PKCE. */
  readonly verifier: string
}

/** The user's return from the provider to the redirect address. */
interface SignInReturn {
  readonly redirectUri: string
  /** The secret that `begin` took. */
  readonly secret: string
  /** The query of the redirect address, as the provider set it. */
  readonly query: string
}

/** The configured provider, with its cached metadata. */
export class IdentityProvider {
  private readonly timeoutSeconds: number
  private readonly now: () => number
  private cached: CachedClient | null = null

  constructor(timeoutSeconds = TIMEOUT_S, now: () => number = () => performance.now()) {
    this.timeoutSeconds = timeoutSeconds
    this.now = now
  }

  /** The address to send the browser to. Rejects with `IdentityError`. */
  async start(config: OidcConfig, redirectUri: string, secret: string): Promise<string> {
    return this.guarded(async () => {
      const client = await this.client(config)
      const { buildAuthorizationUrl, calculatePKCECodeChallenge } = await library()
      const { state, nonce, verifier } = flowSecretsOf(secret)
      const url = buildAuthorizationUrl(client, {
        redirect_uri: redirectUri,
        scope: 'openid email',
        state,
        nonce,
        code_challenge: await calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
      })
      return url.href
    })
  }

  /** The user who returned to the redirect address with this query. Rejects with `IdentityError`. */
  async finish(config: OidcConfig, { redirectUri, secret, query }: SignInReturn): Promise<Identity> {
    return this.guarded(async () => {
      const client = await this.client(config)
      const { authorizationCodeGrant, fetchUserInfo } = await library()
      const { state, nonce, verifier } = flowSecretsOf(secret)
      const current = new URL(redirectUri)
      current.search = query
      const tokens = await authorizationCodeGrant(client, current, {
        expectedState: state,
        expectedNonce: nonce,
        pkceCodeVerifier: verifier,
        idTokenExpected: true,
      })
      const claims = tokens.claims()
      if (claims === undefined) throw new IdentityError('refused', 'no ID token')
      const { issuer, userinfo_endpoint: endpoint } = client.serverMetadata()
      const claim = config.roles?.claim ?? null
      const wanted = ['email', 'email_verified', ...(claim === null ? [] : [claim])]
      const isWhole = wanted.every((name) => name in claims)
      // Many providers return the e-mail address and the groups there and not in the token.
      const more =
        isWhole || endpoint === undefined
          ? {}
          : await fetchUserInfo(client, tokens.access_token, claims.sub).catch(userInfoFailed)
      return { ...identityOf({ ...more, ...claims }, claim), issuer, subject: claims.sub }
    })
  }

  /** The provider's metadata, cached unless discovery failed. */
  private async client(config: OidcConfig): Promise<openid.Configuration> {
    const { cached } = this
    if (cached?.config === config && this.now() < cached.untilMs) return cached.client
    const client = discover(config, this.timeoutSeconds)
    const fresh = { config, untilMs: this.now() + FRESH_MS, client }
    this.cached = fresh
    try {
      return await client
    } catch (error) {
      if (this.cached === fresh) this.cached = null
      throw new IdentityError('unavailable', codeOf(error))
    }
  }

  private async guarded<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      if (error instanceof IdentityError) throw error
      const code = codeOf(error)
      throw new IdentityError(UNAVAILABLE.has(code) ? 'unavailable' : 'refused', code)
    }
  }
}

/** Throws an error with the status, if the userinfo endpoint has replied with another one than 200. */
function userInfoFailed(error: unknown): never {
  for (let each = error; each instanceof Error; each = each.cause) {
    const { cause } = each
    const status: unknown = cause instanceof Response ? cause.status : Reflect.get(each, 'status')
    if (typeof status !== 'number' || status === 200) continue
    throw new IdentityError(
      'userinfo',
      `The userinfo endpoint of the identity provider replied with ${status}`,
    )
  }
  throw error
}

/** Error codes of the library and of OAuth that mean that the provider is unavailable or misconfigured. */
const UNAVAILABLE: ReadonlySet<string> = new Set([
  'TypeError',
  'OAUTH_TIMEOUT',
  'OAUTH_ABORT',
  'OAUTH_RESPONSE_IS_NOT_CONFORM',
  'OAUTH_RESPONSE_IS_NOT_JSON',
  'OAUTH_PARSE_ERROR',
  'invalid_client',
  'unauthorized_client',
  'server_error',
  'temporarily_unavailable',
])

async function discover(config: OidcConfig, timeout: number): Promise<openid.Configuration> {
  const oidc = await library()
  const { issuer, clientId, clientSecret } = config
  const url = new URL(issuer)
  return oidc.discovery(
    url,
    clientId,
    undefined,
    clientSecret === null ? oidc.None() : withSecret(oidc, clientSecret),
    {
      timeout,
      execute: [
        oidc.enableNonRepudiationChecks,
        // Allowed by the configuration for loopback only. The library marks it as deprecated to draw
        // attention to it.
        // eslint-disable-next-line @typescript-eslint/no-deprecated
        ...(url.protocol === 'http:' ? [oidc.allowInsecureRequests] : []),
      ],
    },
  )
}

/** Uses a method that the provider supports, by default basic (OpenID Connect Discovery 1.0, section 3). */
function withSecret(oidc: Library, secret: string): openid.ClientAuth {
  const [basic, post] = [oidc.ClientSecretBasic(secret), oidc.ClientSecretPost(secret)]

  return (server, client, body, headers) => {
    const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic']
    const authenticateClient = methods.includes('client_secret_basic') ? basic : post
    authenticateClient(server, client, body, headers)
  }
}

type Library = typeof openid

function library(): Promise<Library> {
  return import('openid-client')
}

function flowSecretsOf(secret: string): FlowSecrets {
  const derive = (name: string): string =>
    createHmac('sha256', secret).update(`oidc ${name}`).digest('base64url')
  return { state: derive('state'), nonce: derive('nonce'), verifier: derive('verifier') }
}

function identityOf(
  claims: Readonly<Record<string, unknown>>,
  claim: string | null,
): Pick<Identity, 'verifiedEmail' | 'groups'> {
  const { email, email_verified: isVerified } = claims
  const value: unknown = claim === null ? [] : claims[claim]
  const list: readonly unknown[] = Array.isArray(value) ? value : [value]
  return {
    verifiedEmail: typeof email === 'string' && isVerified === true ? email : null,
    groups: list.filter((group) => typeof group === 'string'),
  }
}

/** An error code without text of the provider. */
function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown'
  for (const name of ['error', 'code'] as const) {
    const word: unknown = Object.getOwnPropertyDescriptor(error, name)?.value
    if (typeof word === 'string' && /^[A-Za-z_]{1,60}$/.test(word)) {
      if (name === 'error' || word !== 'OAUTH_RESPONSE_BODY_ERROR') return word
    }
  }
  return error.name
}
