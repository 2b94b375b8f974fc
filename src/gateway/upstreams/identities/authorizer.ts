/**
 * Authorizes the requests of an upstream with the gateway's identity: signs them for AWS, or adds a token. A
 * request that the platform refuses for its credential or its time is authorized anew once.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { UpstreamConfig } from '../../../config/config.js'
import type { UpstreamRequest } from '../upstream-call.js'
import type { AwsKeys, BearerToken, Credentials } from './credential-sources.js'
import type { CloudIdentity } from './cloud-identity.js'
import { awsClock, bodyHashOf, correctClock, signatureHeaders, type SigningScope } from './sign-aws.js'

/** The part of a request that is authorized. */
interface Authorizable extends Pick<UpstreamRequest, 'path' | 'headers' | 'body'> {
  /** Default: `POST`. */
  readonly method?: string
}

/** A reply that refuses a request. */
export interface Refusal {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** Requests wait for credentials for this share of `connect_ms`, so that their failure is not a timeout. */
const WAIT_SHARE = 0.8
const WRONG_KEYS = /ExpiredToken|UnrecognizedClient|InvalidClientTokenId|security token/i

const NO_SCOPE: SigningScope = { region: '', service: '' }

/** Authorizes the requests of one upstream. */
export class Authorizer {
  private readonly identity: CloudIdentity
  private readonly waitMs: number
  private readonly host: string
  /** Null for tokens. */
  private readonly scope: SigningScope | null
  /** The latest token, and its header. */
  private bearer: BearerToken | null = null
  private authorization = ''

  constructor(config: UpstreamConfig, identity: CloudIdentity) {
    this.identity = identity
    this.waitMs = config.timeouts.connectMs * WAIT_SHARE
    const { host, hostname } = new URL(config.baseUrl)
    this.host = host
    const service = hostname.startsWith('bedrock-mantle.') ? 'bedrock-mantle' : 'bedrock'
    const region = config.platform?.region ?? ''
    this.scope = config.auth?.cloud === 'aws' ? { region, service } : null
  }

  /**
   * The headers of the request, authorized: a promise while there are no credentials, and for a large body.
   * Rejects with `CredentialError`.
   */
  headers(request: Authorizable): readonly string[] | Promise<readonly string[]> {
    const credentials = this.identity.get(this.waitMs)
    if (!(credentials instanceof Promise)) return this.authorized(request, credentials)
    return credentials.then((received) => this.authorized(request, received))
  }

  private authorized(
    request: Authorizable,
    credentials: Credentials,
  ): readonly string[] | Promise<readonly string[]> {
    if ('token' in credentials) {
      const { quotaProject } = credentials
      const headers = [...request.headers, 'authorization', this.authorizationOf(credentials)]
      if (quotaProject !== null) headers.push('x-goog-user-project', quotaProject)
      return headers
    }
    const bodyHash = bodyHashOf(request.body)
    if (typeof bodyHash === 'string') return this.signed(request, credentials, bodyHash)
    return bodyHash.then((value) => this.signed(request, credentials, value))
  }

  /** The header of a token, made once for each: tokens have up to 2,000 characters. */
  private authorizationOf(token: BearerToken): string {
    if (this.bearer !== token) {
      this.bearer = token
      // Through a buffer, because V8 would join the parts of the text in each request.
      this.authorization = Buffer.from(`Bearer ${token.token}`).toString('latin1')
    }
    return this.authorization
  }

  private signed(request: Authorizable, keys: AwsKeys, bodyHash: string): readonly string[] {
    const { method = 'POST', path, headers } = request
    const { host, scope } = this
    const unsigned = { method, path, host, headers, bodyHash }
    const nowMs = Date.now() + awsClock.offsetMs
    return [...headers, ...signatureHeaders(unsigned, keys, scope ?? NO_SCOPE, nowMs)]
  }

  /** Whether a reply with this status may refuse the credential, so that its body must be read. */
  mayRefuse(status: number): boolean {
    return status === 401 || (status === 403 && this.scope !== null)
  }

  /** Replaces credentials that were refused at `sinceMs`; false if there are no others. */
  renewed(sinceMs: number): Promise<boolean> {
    return this.identity.renew(sinceMs, this.waitMs)
  }

  /** Whether signing needs the whole body. */
  get readsBody(): boolean {
    return this.scope !== null
  }

  /** Whether to send the request, which was authorized at `sinceMs`, a second time with new headers. */
  async renew(refusal: Refusal, sinceMs: number): Promise<boolean> {
    if (this.scope === null) return this.renewed(sinceMs)
    const name = refusal.headers['x-amzn-errortype']
    const text = `${typeof name === 'string' ? name : ''} ${refusal.body}`
    if (WRONG_KEYS.test(text)) return this.renewed(sinceMs)
    return correctClock(refusal.headers, text, sinceMs)
  }
}
