/**
 * The identities of the clouds: STS, the metadata services and the token endpoints that issue
 * credentials, and the check of the credentials in requests. AWS signatures are computed here independently
 * of the gateway.
 */
import { createHash, createHmac } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'

/** How the token endpoints answer. `lie`: credentials that have expired already; `empty`: none. */
type TokenMode = 'ok' | 'fail' | 'hang' | 'lie' | 'empty'

/** The state of the token endpoints, which tests change. */
export interface TokenState {
  mode: TokenMode
  /** Lifetime of what is issued. */
  lifeSeconds: number
  /** Added to the time of the emulated cloud, which checks signatures and sends it as `date`. */
  skewMs: number
  /** Added to the age of everything that was issued before the check. */
  agedMs: number
  /** The requests for credentials so far, by kind: `sts`, `container`, `imds`, `gce`, `google`, `entra`, … */
  readonly issued: Record<string, number>
}

/** Keys of a user of the emulated AWS. */
export const EMULATED_KEYS = { keyId: 'AKIDEXAMPLE', secret: 'example' }

interface TokenRequest {
  readonly method: string
  /** Path and query, unchanged. */
  readonly target: string
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

/** A reply of a token endpoint. */
interface TokenReply {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** A signed or authorized request of a platform. */
export interface AuthorizedRequest {
  readonly method: string
  /** Path and query, unchanged. */
  readonly target: string
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

/** Why a platform refuses a request: AWS's name and message. */
interface Denial {
  readonly name: string
  readonly message: string
}

interface Keys {
  readonly secret: string
  readonly sessionToken: string | null
  readonly expiresAtMs: number
}

const METADATA = { 'metadata-flavor': 'Google', 'content-type': 'application/json' }
const JSON_TYPE = { 'content-type': 'application/json' }
const SKEW_MS = 300_000
const ROLE = 'emulated-role'

/** Issues and checks credentials. */
export class CloudTokens {
  readonly state: TokenState = { mode: 'ok', lifeSeconds: 3_600, skewMs: 0, agedMs: 0, issued: {} }
  private readonly clock: () => number
  private readonly keys = new Map<string, Keys>()
  private readonly tokens = new Map<string, number>()
  private next = 1

  constructor(clock: () => number) {
    this.clock = clock
    const { keyId, secret } = EMULATED_KEYS
    this.keys.set(keyId, { secret, sessionToken: null, expiresAtMs: Infinity })
  }

  /** The time of the emulated clouds. */
  get nowMs(): number {
    return this.clock() + this.state.skewMs
  }

  /** The reply of a token endpoint; null for any other path, `hang` for none at all. */
  answer(request: TokenRequest): TokenReply | 'hang' | null {
    const { method, path, headers } = request
    if (path === '/latest/api/token' && method === 'PUT') return text('emulated-metadata-token')
    const role = /^\/latest\/meta-data\/iam\/security-credentials\/?(.*)$/.exec(path)?.[1]
    if (role === '') return text(ROLE)
    if (role === ROLE) {
      if (headers['x-aws-ec2-metadata-token'] === undefined) return refused(401, 'Unauthorized')
      return this.issue('imds', () => this.metadataKeys())
    }
    if (path === '/aws/container') return this.issue('container', () => this.metadataKeys())
    if (/^\/sts\/?$/.test(path) && method === 'POST') {
      return this.issue('sts', () => this.assumedRole(request))
    }
    if (path.startsWith('/computeMetadata/')) return this.gce(request)
    if (path === '/google/token' && method === 'POST') {
      return this.issue('google', () => this.oauth())
    }
    if (path === '/google/sts' && method === 'POST') {
      return this.issue('google-sts', () => this.exchanged(request))
    }
    if (/^\/google\/[^/]+:generateAccessToken$/.test(path) && method === 'POST') {
      return this.issue('google-impersonation', () => this.impersonated(request))
    }
    if (path === '/ibm/identity/token' && method === 'POST') {
      return this.issue('ibm', () => this.iam(request))
    }
    if (path === '/azure/identity') {
      if (headers['x-identity-header'] === undefined) return refused(401, 'No X-IDENTITY-HEADER')
      return this.issue('app-service', () => this.managed('2019-08-01'))
    }
    // Microsoft's library adds a slash.
    if (/^\/metadata\/identity\/oauth2\/token\/?$/.test(path)) {
      if (headers.metadata !== 'true') return refused(400, 'Required metadata header not specified')
      return this.issue('vm', () => this.managed('2018-02-01'))
    }
    return this.entra(request)
  }

  private gce({ path, headers }: TokenRequest): TokenReply | 'hang' {
    if (headers['metadata-flavor'] !== 'Google') return refused(403, 'Missing Metadata-Flavor')
    if (path.endsWith('/token')) {
      return this.issue('gce', () => ({ ...this.oauth(), headers: METADATA }))
    }
    return { status: 200, headers: METADATA, body: path.endsWith('project-id') ? 'emulated' : '{}' }
  }

  private entra({ method, path, headers }: TokenRequest): TokenReply | 'hang' | null {
    const tenant = /^\/([^/]+)\/v2\.0\/\.well-known\/openid-configuration$/.exec(path)?.[1]
    if (tenant !== undefined) {
      const base = `https://${headers.host ?? ''}/${tenant}`
      return json({
        token_endpoint: `${base}/oauth2/v2.0/token`,
        authorization_endpoint: `${base}/oauth2/v2.0/authorize`,
        issuer: `${base}/v2.0`,
        jwks_uri: `${base}/discovery/v2.0/keys`,
        tenant_region_scope: null,
      })
    }
    if (method !== 'POST' || !/^\/[^/]+\/oauth2\/v2\.0\/token$/.test(path)) return null
    return this.issue('entra', () => {
      const { lifeSeconds } = this.state
      const token = this.token()
      return json({ token_type: 'Bearer', expires_in: lifeSeconds, access_token: token })
    })
  }

  /** Counts the request and answers it in the current mode. */
  private issue(kind: string, make: () => TokenReply): TokenReply | 'hang' {
    const { state } = this
    state.issued[kind] = (state.issued[kind] ?? 0) + 1
    if (state.mode === 'hang') return 'hang'
    if (state.mode === 'fail') return refused(500, 'InternalFailure')
    if (state.mode === 'empty') return json({})
    return make()
  }

  private get expiresAtMs(): number {
    const { mode, lifeSeconds } = this.state
    return this.clock() + (mode === 'lie' ? -60_000 : lifeSeconds * 1_000)
  }

  private token(): string {
    const token = `emulated-token-${this.next}`
    this.next += 1
    this.tokens.set(token, this.expiresAtMs)
    return token
  }

  private oauth(): TokenReply {
    const seconds = Math.round((this.expiresAtMs - this.clock()) / 1_000)
    return json({ access_token: this.token(), expires_in: seconds, token_type: 'Bearer' })
  }

  /** IBM's IAM: a token for an API key. */
  private iam({ text: form, headers }: TokenRequest): TokenReply {
    const fields = new URLSearchParams(form)
    const isForm = headers['content-type']?.startsWith('application/x-www-form-urlencoded') === true
    const key = fields.get('apikey') ?? ''
    const isKnown = isForm && fields.get('grant_type') === 'urn:ibm:params:oauth:grant-type:apikey'
    if (!isKnown) return refused(400, 'BXNIM0109E')
    if (key === '' || key.includes('invalid')) return refused(400, 'BXNIM0415E')
    const seconds = Math.round((this.expiresAtMs - this.clock()) / 1_000)
    const expiration = Math.round(this.expiresAtMs / 1_000)
    return json({ access_token: this.token(), token_type: 'Bearer', expires_in: seconds, expiration })
  }

  /** Google's STS: a token for one of another identity provider. */
  private exchanged({ text: form }: TokenRequest): TokenReply {
    const fields = new URLSearchParams(form)
    const grant = 'urn:ietf:params:oauth:grant-type:token-exchange'
    if (fields.get('grant_type') !== grant || !fields.get('subject_token')) {
      return refused(400, 'invalid_request')
    }
    const issued_token_type = 'urn:ietf:params:oauth:token-type:access_token'
    const { lifeSeconds: expires_in } = this.state
    return json({ access_token: this.token(), issued_token_type, expires_in, token_type: 'Bearer' })
  }

  /** IAM credentials: the token of a service account for one of Google's STS. */
  private impersonated({ headers }: TokenRequest): TokenReply {
    if (headers.authorization === undefined || this.tokenDenial(headers) !== null) {
      return refused(401, 'UNAUTHENTICATED')
    }
    const expireTime = new Date(this.expiresAtMs).toISOString()
    return json({ accessToken: this.token(), expireTime })
  }

  /** The reply of a managed identity; App Service gives the expiry as text. */
  private managed(version: string): TokenReply {
    const seconds = Math.round(this.expiresAtMs / 1_000)
    const expires_on = version === '2019-08-01' ? String(seconds) : seconds
    const expires_in = Math.round(seconds - this.clock() / 1_000)
    return json({ access_token: this.token(), expires_on, expires_in, token_type: 'Bearer' })
  }

  private newKeys(): { keyId: string; secret: string; sessionToken: string; expires: string } {
    const keyId = `ASIAEMULATED${this.next}`
    const secret = `emulated-secret-${this.next}`
    const sessionToken = `emulated/session+${this.next}==`
    this.next += 1
    const { expiresAtMs } = this
    this.keys.set(keyId, { secret, sessionToken, expiresAtMs })
    return { keyId, secret, sessionToken, expires: new Date(expiresAtMs).toISOString() }
  }

  private metadataKeys(): TokenReply {
    const { keyId, secret, sessionToken, expires } = this.newKeys()
    return json({
      Code: 'Success',
      Type: 'AWS-HMAC',
      AccessKeyId: keyId,
      SecretAccessKey: secret,
      Token: sessionToken,
      Expiration: expires,
    })
  }

  private assumedRole(request: TokenRequest): TokenReply {
    const fields = new URLSearchParams(request.text)
    const action = fields.get('Action') ?? ''
    const denial = this.roleDenial(action, fields, request)
    if (denial !== null) {
      const { name, message } = denial
      return {
        status: 403,
        headers: { 'content-type': 'text/xml' },
        body: `<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type><Code>${name}</Code><Message>${message}</Message></Error><RequestId>emulated</RequestId></ErrorResponse>`,
      }
    }
    const { keyId, secret, sessionToken, expires } = this.newKeys()
    const arn = fields.get('RoleArn') ?? ''
    return {
      status: 200,
      headers: { 'content-type': 'text/xml' },
      body: `<${action}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><${action}Result><AssumedRoleUser><Arn>${arn}</Arn><AssumedRoleId>AROA:${fields.get('RoleSessionName') ?? ''}</AssumedRoleId></AssumedRoleUser><Credentials><AccessKeyId>${keyId}</AccessKeyId><SecretAccessKey>${secret}</SecretAccessKey><SessionToken>${sessionToken}</SessionToken><Expiration>${expires}</Expiration></Credentials></${action}Result><ResponseMetadata><RequestId>emulated</RequestId></ResponseMetadata></${action}Response>`,
    }
  }

  /** AssumeRole is signed for the service `sts`; a web identity is not signed, but has a token. */
  private roleDenial(
    action: string,
    fields: URLSearchParams,
    { method, target, headers, text: form }: TokenRequest,
  ): Denial | null {
    if (action === 'AssumeRoleWithWebIdentity') {
      const token = fields.get('WebIdentityToken') ?? ''
      if (token !== '') return null
      return denied('InvalidIdentityToken', 'No OpenIDConnect provider found')
    }
    const { authorization = '' } = headers
    if (!/^AWS4-HMAC-SHA256 Credential=[^/]+\/\d{8}\/[^/]+\/sts\//.test(authorization)) {
      return denied('MissingAuthenticationToken', 'Request is missing Authentication Token')
    }
    return this.signatureDenial({ method, target, headers, body: Buffer.from(form) })
  }

  /** Null if the token was issued here and is valid, or is no token of the emulator. */
  tokenDenial(headers: IncomingHttpHeaders): string | null {
    const token = /^Bearer (emulated-token-\d+)$/.exec(headers.authorization ?? '')?.[1]
    if (token === undefined) return null
    const expiresAtMs = this.tokens.get(token)
    if (expiresAtMs === undefined) return 'unknown token'
    return expiresAtMs > this.nowMs + this.state.agedMs ? null : 'expired token'
  }

  /** Null if the request is signed with valid keys, or has an API key. */
  signatureDenial(request: AuthorizedRequest): Denial | null {
    const header = request.headers.authorization ?? ''
    if (header.startsWith('Bearer ')) {
      const why = this.tokenDenial(request.headers)
      return why === null ? null : { name: 'AccessDeniedException', message: why }
    }
    const [, keyId = '', scope = '', names = '', signature = ''] =
      /^AWS4-HMAC-SHA256 Credential=([^/]+)\/([^,]+), ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/.exec(
        header,
      ) ?? []
    // Requests without a signature are refused by the platform itself.
    if (signature === '') return null
    const keys = this.keys.get(keyId)
    const wrongToken = keys?.sessionToken !== (request.headers['x-amz-security-token'] ?? null)
    if (keys === undefined || wrongToken) {
      return denied('UnrecognizedClientException', 'The security token included in the request is invalid.')
    }
    if (keys.expiresAtMs <= this.nowMs + this.state.agedMs) {
      return denied('ExpiredTokenException', 'The security token included in the request is expired')
    }
    return this.timeDenial(request) ?? wrongSignature(request, keys, { scope, names, signature })
  }

  private timeDenial({ headers }: AuthorizedRequest): Denial | null {
    const time = String(headers['x-amz-date'] ?? '')
    const sentMs = Date.parse(time.replace(/^(....)(..)(..T..)(..)(..)Z$/, '$1-$2-$3:$4:$5Z'))
    const now = amzTime(this.nowMs)
    if (sentMs < this.nowMs - SKEW_MS) {
      return denied('InvalidSignatureException', `Signature expired: ${time} is now earlier than ${now}`)
    }
    return sentMs > this.nowMs + SKEW_MS
      ? denied('InvalidSignatureException', `Signature not yet current: ${time} is still later than ${now}`)
      : null
  }
}

function denied(name: string, message: string): Denial {
  return { name, message }
}

function amzTime(ms: number): string {
  return new Date(ms).toISOString().replace(/[:-]|\.\d{3}/g, '')
}

/** The signature is computed from the request line and headers as they arrived. */
function wrongSignature(
  { method, target, headers, body }: AuthorizedRequest,
  { secret }: Keys,
  { scope, names, signature }: { scope: string; names: string; signature: string },
): Denial | null {
  const [path = '', query = ''] = target.split('?')
  const escape = (value: string): string =>
    encodeURIComponent(value).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16)}`)
  const pairs = [...new URLSearchParams(query)].map(([name, value]) => `${escape(name)}=${escape(value)}`)
  const signed = names.split(';')
  const lines = signed.map((name) => `${name}:${String(headers[name] ?? '').trim()}\n`)
  const sha = (value: string | Buffer): string => createHash('sha256').update(value).digest('hex')
  const canonical = [
    method,
    path.split('/').map(escape).join('/'),
    pairs.sort().join('&'),
    lines.join(''),
    names,
    sha(body),
  ].join('\n')
  const time = String(headers['x-amz-date'] ?? '')
  let key: string | Buffer = `AWS4${secret}`
  for (const part of scope.split('/')) key = createHmac('sha256', key).update(part).digest()
  const text = `AWS4-HMAC-SHA256\n${time}\n${scope}\n${sha(canonical)}`
  const expected = createHmac('sha256', key).update(text).digest('hex')
  if (expected === signature && signed.includes('host') && signed.includes('x-amz-date')) return null
  return denied(
    'InvalidSignatureException',
    'The request signature we calculated does not match the signature you provided.',
  )
}

function text(body: string): TokenReply {
  return { status: 200, headers: { 'content-type': 'text/plain' }, body }
}

function json(value: object): TokenReply {
  return { status: 200, headers: JSON_TYPE, body: JSON.stringify(value) }
}

function refused(status: number, message: string): TokenReply {
  return { status, headers: JSON_TYPE, body: JSON.stringify({ error: message, message }) }
}
