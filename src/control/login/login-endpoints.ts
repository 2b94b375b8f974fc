/**
 * What programs use to sign in: the device flow (RFC 8628) with its discovery (RFC 8414) and revocation
 * (RFC 7009), and the rest of Claude Code's gateway protocol. A person approves a program on a page of the
 * dashboard, which calls `api/device.ts`.
 */
import { createHash } from 'node:crypto'
import type { Identity } from '../../accounts/account.js'
import { addressName } from '../../accounts/authentication/wrong-key-throttle.js'
import {
  DEVICE_CODE_SECONDS,
  issueDeviceCodes,
  pollDevice,
  POLL_SECONDS,
  type DeviceAnswer,
} from '../../accounts/logins/device-codes.js'
import {
  endLogin,
  openLogin,
  renewLogin,
  type LoginTimes,
  type LoginTokens,
} from '../../accounts/logins/logins.js'
import { jsonText, type JsonObject } from '../../base/json.js'
import type { LoginConfig, Snapshot } from '../../config/config.js'
import { GatewayError, statusOf } from '../../errors.js'
import { programOf } from '../../http/client-program.js'
import { headerOf, type HttpRequest, type HttpResponse } from '../../http/message.js'
import { dropBody, readBody } from '../../http/read-body.js'
import { abortReply, isClosed, sendReply } from '../../http/respond.js'
import type { Logger } from '../../observe/log.js'
import type { Store } from '../../store/store.js'
import { claudeUsage, ownUsage, ownUsageJson, type OwnUsage } from '../dashboard/own-usage.js'
import { DEVICE_PAGE } from './login-paths.js'
import { PROTOCOL_TEXT } from './protocol-text.js'

/** What the endpoints depend on. */
export interface LoginEndpointsOptions {
  readonly store: Pick<
    Store,
    'signInTokens' | 'users' | 'accountById' | 'ancestorsOf' | 'throttle' | 'ledger'
  >
  readonly snapshot: () => Snapshot
  readonly log: Logger
  /** The client's address. */
  readonly addressOf: (req: HttpRequest) => string
  /** The identity of a request of the data plane. Rejects with `GatewayError`. */
  readonly identify: (req: HttpRequest) => Promise<Identity>
  /** Counts an export of telemetry: `metrics`, `logs` or `traces`. */
  readonly countTelemetry: (signal: string) => void
  readonly now: () => number
}

/** New codes of one address: 30 at once, and 30 a minute. */
const CODES = { burst: 30, everyMs: 2_000 } as const
const MAX_FORM_BYTES = 16_384
/** One export of Claude Code's telemetry. */
const MAX_TELEMETRY_BYTES = 16 * 1024 * 1024
const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code'
const SURFACE = /^[A-Za-z0-9_-]{1,32}$/

interface Answer {
  readonly status: number
  readonly type?: string
  readonly body: string
  /** Name, value, …. */
  readonly headers?: readonly string[]
}

/** A refusal in the form of OAuth. */
class OAuthError extends Error {
  readonly status: number
  readonly code: string
  readonly retryAfterSeconds: number | null

  constructor(status: number, code: string, description: string, retryAfterSeconds: number | null = null) {
    super(description)
    this.status = status
    this.code = code
    this.retryAfterSeconds = retryAfterSeconds
  }
}

/** Serves the paths of `login-paths.ts`, except the page. */
export class LoginEndpoints {
  private readonly options: LoginEndpointsOptions

  constructor(options: LoginEndpointsOptions) {
    this.options = options
  }

  /** Never rejects. */
  async answer(path: string, req: HttpRequest, res: HttpResponse): Promise<void> {
    try {
      const { config } = this.options.snapshot()
      const { login } = config
      const { publicUrl } = config.dashboard
      // Another generation may have come in between.
      if (login === null || publicUrl === null) throw new OAuthError(404, 'not_found', 'Sign-in is off.')
      const groupMs = config.dashboard.groupSessionHours * 3_600_000
      reply(res, await this.answerOf(path, { req, res, login: { ...login, groupMs }, publicUrl }))
    } catch (thrown) {
      if (isClosed(res) || res.headersSent) abortReply(res)
      else reply(res, this.refusalOf(thrown))
    }
  }

  private async answerOf(path: string, exchange: LoginExchange): Promise<Answer> {
    const { req, login, publicUrl } = exchange
    assertMethod(req, READS.has(path) ? 'GET' : 'POST')
    switch (path) {
      case '/.well-known/oauth-authorization-server':
        return json(discovery(publicUrl))
      case '/protocol':
        return { status: 200, type: 'text/markdown; charset=utf-8', body: PROTOCOL_TEXT }
      case '/auth/device/code':
      case '/oauth/device_authorization':
        return this.issueCodes(exchange)
      case '/auth/device/token':
      case '/oauth/token':
        return this.issueTokens(exchange)
      case '/auth/device/revoke': {
        const token = (await formOf(exchange)).get('token') ?? ''
        await endLogin(this.options.store, token, this.options.now())
        return json({})
      }
      case '/managed/settings':
        await this.person(req)
        return managedSettings(req, login)
      case '/auth/usage':
        return json(ownUsageJson(await this.usage(req)))
      case '/api/oauth/usage':
        return json(claudeUsage(await this.usage(req)))
      default:
        return this.dropTelemetry(path, exchange)
    }
  }

  private async issueCodes(exchange: LoginExchange): Promise<Answer> {
    const { store, addressOf, now } = this.options
    const { req, publicUrl } = exchange
    const form = await formOf(exchange)
    const address = addressOf(req)
    const subject = createHash('sha256')
      .update(`device codes ${addressName(address)}`)
      .digest('hex')
    const [waitMs = 0] = await store.throttle.take([{ name: subject, ...CODES }], now())
    if (waitMs > 0) {
      throw new OAuthError(429, 'slow_down', 'too many sign-ins began here', Math.ceil(waitMs / 1_000))
    }
    const program = askerOf(headerOf(req, 'user-agent'), form.get('surface'))
    const { deviceCode, userCode } = await issueDeviceCodes(store.signInTokens, { program, address }, now())
    const page = publicUrl + DEVICE_PAGE
    return json({
      device_code: deviceCode,
      user_code: userCode,
      verification_uri: page,
      verification_uri_complete: `${page}?user_code=${userCode}`,
      expires_in: DEVICE_CODE_SECONDS,
      interval: POLL_SECONDS,
    })
  }

  private async issueTokens(exchange: LoginExchange): Promise<Answer> {
    const { store, now } = this.options
    const { login } = exchange
    const form = await formOf(exchange)
    const grant = form.get('grant_type')
    if (grant === DEVICE_GRANT) {
      const code = required(form, 'device_code')
      const answer = await pollDevice(store.signInTokens, code, now())
      if (answer.is !== 'approved') throw notYet(answer.is)
      const opened = await openLogin(store, answer, login, now())
      if (opened === null) throw notYet('access_denied')
      return json(tokenReply(opened))
    }
    if (grant === 'refresh_token') {
      const renewed = await renewLogin(store, required(form, 'refresh_token'), login, now())
      if (renewed === null) {
        throw new OAuthError(401, 'invalid_grant', 'the refresh token is not valid any more: sign in again')
      }
      return json(tokenReply(renewed))
    }
    if (grant === null) throw new OAuthError(400, 'invalid_request', 'grant_type is missing')
    throw new OAuthError(400, 'unsupported_grant_type', `use ${DEVICE_GRANT} or refresh_token`)
  }

  private async usage(req: HttpRequest): Promise<OwnUsage> {
    return ownUsage(this.options, await this.person(req))
  }

  /** Claude Code logs an error each time if its telemetry is refused. */
  private async dropTelemetry(path: string, { req, res }: LoginExchange): Promise<Answer> {
    await this.person(req)
    await dropBody(req, res, MAX_TELEMETRY_BYTES)
    this.options.countTelemetry(path.slice('/v1/'.length))
    const isJson = (headerOf(req, 'content-type') ?? '').startsWith('application/json')
    // The empty message of protobuf has no bytes.
    return isJson ? json({}) : { status: 200, type: 'application/x-protobuf', body: '' }
  }

  /** Throws `unauthenticated` for a request without an access token. */
  private async person(req: HttpRequest): Promise<Identity> {
    const identity = await this.options.identify(req)
    if (identity.user !== undefined) return identity
    throw new GatewayError(
      'forbidden',
      'This is for people who signed in with `sluice login` or Claude Code.',
    )
  }

  private refusalOf(thrown: unknown): Answer {
    if (thrown instanceof OAuthError) return oauthAnswer(thrown)
    if (thrown instanceof MethodError) {
      const { method, message } = thrown
      return { ...oauthAnswer(new OAuthError(405, 'invalid_request', message)), headers: ['allow', method] }
    }
    if (!(thrown instanceof GatewayError)) {
      this.options.log.error('a sign-in of a program failed', thrown)
      return oauthAnswer(new OAuthError(500, 'server_error', 'internal error'))
    }
    const { kind } = thrown
    if (kind === 'store_unavailable' || kind === 'store_unconfirmed') {
      return oauthAnswer(new OAuthError(503, 'temporarily_unavailable', 'try again in a moment', 1))
    }
    if (kind === 'body_too_large') return oauthAnswer(new OAuthError(413, 'invalid_request', thrown.message))
    // What needs a token has errors in the form of the Messages API, whose message Claude Code shows.
    const status = statusOf(thrown.wire)
    const error = { type: ERROR_TYPES[status] ?? 'api_error', message: thrown.message, kind }
    return { status, body: jsonText({ type: 'error', error }), headers: ['x-should-retry', 'false'] }
  }
}

/** The types of the Messages API. */
const ERROR_TYPES: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  403: 'permission_error',
  429: 'rate_limit_error',
}

/** A request, and the settings in force. */
interface LoginExchange {
  readonly req: HttpRequest
  readonly res: HttpResponse
  readonly login: LoginConfig & LoginTimes
  readonly publicUrl: string
}

const READS: ReadonlySet<string> = new Set([
  '/.well-known/oauth-authorization-server',
  '/protocol',
  '/managed/settings',
  '/auth/usage',
  '/api/oauth/usage',
])

class MethodError extends Error {
  readonly method: string

  constructor(method: string) {
    super(`use ${method}`)
    this.method = method
  }
}

function assertMethod({ method = '' }: HttpRequest, wanted: 'GET' | 'POST'): void {
  if (method !== wanted && !(wanted === 'GET' && method === 'HEAD')) throw new MethodError(wanted)
}

function discovery(publicUrl: string): JsonObject {
  return {
    issuer: publicUrl,
    device_authorization_endpoint: `${publicUrl}/auth/device/code`,
    token_endpoint: `${publicUrl}/auth/device/token`,
    revocation_endpoint: `${publicUrl}/auth/device/revoke`,
    grant_types_supported: [DEVICE_GRANT, 'refresh_token'],
    token_endpoint_auth_methods_supported: ['none'],
    response_types_supported: [],
  }
}

/** The fields of a form (RFC 6749, appendix B). Throws for one that is given twice. */
async function formOf({ req, res }: LoginExchange): Promise<URLSearchParams> {
  const type = headerOf(req, 'content-type') ?? ''
  const text = (await readBody(req, res, MAX_FORM_BYTES)).toString('utf8')
  if (type !== '' && !/^application\/x-www-form-urlencoded(?:;|$)/i.test(type) && text !== '') {
    throw new OAuthError(400, 'invalid_request', 'send a form: application/x-www-form-urlencoded')
  }
  const form = new URLSearchParams(text)
  for (const name of new Set(form.keys())) {
    if (form.getAll(name).length > 1) throw new OAuthError(400, 'invalid_request', 'a field occurs twice')
  }
  return form
}

function required(form: URLSearchParams, name: string): string {
  const value = form.get(name) ?? ''
  if (value === '') throw new OAuthError(400, 'invalid_request', `${name} is missing`)
  return value
}

/** The program that requests a sign-in, as its user recognises it. */
function askerOf(userAgent: string | undefined, surface: string | null): string {
  const program = programOf(userAgent)
  const isKnown = program !== 'other' && program !== 'none'
  return isKnown || surface === null || !SURFACE.test(surface) ? program : surface
}

function notYet(is: Exclude<DeviceAnswer['is'], 'approved'>): OAuthError {
  const code = is === 'unknown' ? 'invalid_grant' : is
  return new OAuthError(400, code, DESCRIPTIONS[is])
}

const DESCRIPTIONS: Readonly<Record<Exclude<DeviceAnswer['is'], 'approved'>, string>> = {
  authorization_pending: 'the code is not approved yet',
  slow_down: 'wait five seconds longer between two requests',
  access_denied: 'the sign-in was denied',
  expired_token: 'the code has expired: begin again',
  unknown: 'the device code is unknown, or was used before',
}

function tokenReply({ accessToken, expiresInSeconds, refreshToken, email }: LoginTokens): JsonObject {
  return {
    access_token: accessToken,
    token_type: 'Bearer',
    expires_in: expiresInSeconds,
    refresh_token: refreshToken,
    email,
  }
}

/** The settings of Claude Code, with a checksum by which it sees changes. */
function managedSettings(req: HttpRequest, { claudeCodeSettings: settings }: LoginConfig): Answer {
  if (settings === null) throw new OAuthError(404, 'not_found', 'there are no managed settings')
  const checksum = createHash('sha256').update(jsonText(settings)).digest('hex')
  const etag = `"${checksum}"`
  const headers = ['etag', etag]
  const known = (headerOf(req, 'if-none-match') ?? '').split(',').map((tag) => tag.trim().replace(/^W\//, ''))
  if (known.includes(etag)) return { status: 304, headers, body: '' }
  const hex = checksum.slice(0, 32)
  const uuid = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)]
  return { ...json({ uuid: uuid.join('-'), checksum: `sha256:${checksum}`, settings }), headers }
}

function json(value: JsonObject): Answer {
  return { status: 200, body: jsonText(value) }
}

function oauthAnswer({ status, code, message, retryAfterSeconds }: OAuthError): Answer {
  const body = jsonText({ error: code, error_description: message })
  return retryAfterSeconds === null
    ? { status, body }
    : { status, body, headers: ['retry-after', String(retryAfterSeconds)] }
}

function reply(res: HttpResponse, { status, type = 'application/json', body, headers = [] }: Answer): void {
  const fixed = ['content-type', type, 'cache-control', 'no-store']
  sendReply(res, { status, headers: [...fixed, ...headers], body })
}
