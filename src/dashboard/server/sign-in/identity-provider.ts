/**
 * Asks an OpenID Connect provider who somebody is: the authorization code flow with PKCE, state and nonce.
 * Knows no account and no cookie. All that a sign-in must remember is made from one secret, so that only the
 * secret is to be kept, and only by the browser. The library is loaded by the first sign-in.
 */
import { createHmac } from 'node:crypto'
import type * as openid from 'openid-client'
import type { OidcConfig } from '../../../config/config.js'

/** What is known of the provider is asked for again after so long. */
const FRESH_MS = 600_000
/** Each request to the provider takes so long at most. */
const TIMEOUT_S = 5

/** Why a sign-in came to nothing. */
export type IdentityFault = 'refused' | 'unavailable'

/** A sign-in that came to nothing. Holds no token, code or secret: it goes to the log. */
export class IdentityError extends Error {
  readonly fault: IdentityFault

  constructor(fault: IdentityFault, code: string) {
    super(code)
    this.fault = fault
  }
}

/** What the provider says of somebody. */
export interface Identity {
  /** Null where it names none, or has not verified it. */
  readonly verifiedEmail: string | null
}

interface CachedClient {
  readonly config: OidcConfig
  readonly untilMs: number
  readonly client: Promise<openid.Configuration>
}

/** What a sign-in needs to be told from others; one secret always gives the same. */
interface FlowSecrets {
  readonly state: string
  readonly nonce: string
  /** For PKCE. */
  readonly verifier: string
}

/** The provider of the configuration, as one process knows it. */
export class IdentityProvider {
  private readonly timeoutSeconds: number
  private readonly now: () => number
  private cached: CachedClient | null = null

  constructor(timeoutSeconds = TIMEOUT_S, now: () => number = () => performance.now()) {
    this.timeoutSeconds = timeoutSeconds
    this.now = now
  }

  /** Where to send the browser. Rejects with `IdentityError`. */
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

  /** Who came back with that query to the redirect address. Rejects with `IdentityError`. */
  async finish(
    config: OidcConfig,
    redirectUri: string,
    secret: string,
    query: string,
  ): Promise<Identity> {
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
      const hasEmail = 'email' in claims && 'email_verified' in claims
      if (hasEmail || client.serverMetadata().userinfo_endpoint === undefined) {
        return identityOf(claims)
      }
      // Many providers put the e-mail there and not into the token.
      return identityOf(await fetchUserInfo(client, tokens.access_token, claims.sub))
    })
  }

  /** The provider's own description of itself; kept for a while, unless it could not be had. */
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

/** What the library says, and OAuth's own word for it, where the fault is not with who signs in. */
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
        // The configuration allows plain http on this machine alone; deprecated only to stand out.
        // eslint-disable-next-line @typescript-eslint/no-deprecated
        ...(url.protocol === 'http:' ? [oidc.allowInsecureRequests] : []),
      ],
    },
  )
}

/** In the way that the provider takes, or would by default (OpenID Connect Discovery 1.0, section 3). */
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

function identityOf(claims: Readonly<Record<string, unknown>>): Identity {
  const { email, email_verified: isVerified } = claims
  return { verifiedEmail: typeof email === 'string' && isVerified === true ? email : null }
}

/** A word that names what went wrong and nothing of what was said. */
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
