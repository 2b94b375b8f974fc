/**
 * Routes requests under `/dashboard/api` and checks origin, session, role, token, query and body, in this
 * order.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import * as z from 'zod'
import { ControlRouter, type ControlExchange, type FoundRoute } from '../../control-router.js'
import { Faults, faultOf, isRule } from '../../../accounts/changes/field-types.js'
import { faulty } from '../../../accounts/changes/refusal.js'
import { jsonText } from '../../../base/json.js'
import { GatewayError, malformed } from '../../../errors.js'
import { parseObject } from '../../../formats/wire/json/parse-body.js'
import { headerOf, hostOf, type HttpRequest } from '../../../http/message.js'
import { readBody } from '../../../http/read-body.js'
import { isClosed, sendReply, setHeaders } from '../../../http/respond.js'
import type { Logger } from '../../../observe/log.js'
import { compressed } from '../../compress.js'
import { OTHER_VALUE, problemOf } from '../../problem-details.js'
import {
  cookieOf,
  SESSION_COOKIE,
  type AccountSession,
  type Session,
  type Sessions,
} from '../../sign-in/sessions.js'
import { takesSeveral } from '../schema/shared-types.js'
import { DASHBOARD_WORDS } from '../problem-words.js'
import { hasCredential } from '../secret-text.js'
import { ACCESS, authorize, notFound, type AccessStore } from './access.js'
import { assertRoutes, SELF_REPLIED, type HandlerResult, type Reply, type Route } from './route.js'

/** What the router depends on. */
interface RouterOptions {
  readonly routes: readonly Route[]
  readonly sessions: Sessions
  readonly store: AccessStore
  readonly log: Logger
  /** The configured origin; null: any origin that the request was sent to. */
  readonly publicUrl: () => string | null
  /** The client's address. */
  readonly addressOf: (req: HttpRequest) => string
}

/** The path prefix of the API. */
const PREFIX = '/dashboard/api'
/** An opaque id; other texts are treated like an unknown id. */
const ID = /^[A-Za-z0-9_-]{1,100}$/
/** A text that may be an e-mail address. */
const EMAIL = /^[^/]{1,1000}$/

/** Serves requests of the API. Throws if a route has no policy. */
export function apiRouter(options: RouterOptions): ControlRouter<Route> {
  assertRoutes(options.routes)
  const door = new SessionDoor(options)
  return new ControlRouter({
    ...{ prefix: PREFIX, routes: options.routes, log: options.log, name: 'The dashboard' },
    words: DASHBOARD_WORDS,
    valueOf: (part) => part,
    serve: (found, exchange) => door.serve(found, exchange),
  })
}

/** Who may use a route of the dashboard, and with what. */
class SessionDoor {
  private readonly options: RouterOptions

  constructor(options: RouterOptions) {
    this.options = options
  }

  async serve({ route, values }: FoundRoute<Route>, exchange: ControlExchange): Promise<void> {
    const handled = await this.handle(route, idOf(values), exchange)
    if (handled !== SELF_REPLIED) await send(exchange, handled)
  }

  private async handle(route: Route, id: string, exchange: ControlExchange): Promise<HandlerResult> {
    const { requestId, req, res } = exchange
    const origin = assertSameOrigin(route, req, this.options.publicUrl())
    const found = await this.sessionOf(route, req)
    if (found === null && route.credential !== 'open') throw signedOut()
    const { query: values, account } = queryOf(req.url ?? '', route)
    const session = await this.authorized(route, found, isOfAccountPath(route) ? id : account)
    if (route.method !== 'GET' && route.credential !== 'open') assertToken(req, session)
    const query = parseQuery(values, route.query)
    const body =
      route.body === null || route.body === 'raw'
        ? undefined
        : parseBody(await readBody(req, res, MAX_BYTES), route.body)
    const address = this.options.addressOf(req)
    // The reply of a raw handler must not be cached, either.
    if (route.body === 'raw') setHeaders(res, ['cache-control', 'no-store'])
    return route.handle({ requestId, req, res, id, query, body, address, origin, session })
  }

  private async authorized(
    route: Route,
    session: Session | null,
    account: string | undefined,
  ): Promise<AccountSession | null> {
    const { credential: name, method } = route
    if (name === 'open') return session === null ? null : { ...session, ...OPEN }
    if (session === null) throw signedOut()
    const wanted = { session, name, isRead: method === 'GET', account }
    return authorize(this.options.store, wanted)
  }

  private async sessionOf(route: Route, req: HttpRequest): Promise<Session | null> {
    const secret = cookieOf(headerOf(req, 'cookie'), SESSION_COOKIE)
    if (secret === null) return null
    const isPassive = route.method === 'GET' && (route.passive || headerOf(req, 'x-sluice-passive') === '1')
    return this.options.sessions.find(secret, isPassive)
  }
}

/** The id or e-mail address in the path. Throws `not_found` for a text that cannot be one. */
function idOf({ id, email }: FoundRoute<Route>['values']): string {
  if (email !== undefined) {
    const text = decoded(email)
    if (!(text === email ? ID : EMAIL).test(text)) throw notFound()
    return text
  }
  if (id !== undefined && !ID.test(id)) throw notFound()
  return id ?? ''
}

/** Whether the path of the route names the account, by its name or id. */
function isOfAccountPath({ path, credential }: Pick<Route, 'path' | 'credential'>): boolean {
  if (credential === 'open' || ACCESS[credential].of !== 'account') return false
  return path === '/accounts/{id}' || path.startsWith('/accounts/{id}/')
}

function signedOut(): GatewayError {
  return new GatewayError('unauthenticated', 'You are not signed in, or the session has ended. Sign in.')
}

/** A route without a policy decides about nothing. */
const OPEN = { isAll: false, permission: 'no' } as const

/** The text of a part of a path; the part itself if it is not well encoded. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

/**
 * Requests that change state must come from a page of the dashboard. Browsers send `sec-fetch-site` only over
 * https and on the same machine, so `origin` is checked, too. Returns the origin. Throws `forbidden`.
 */
function assertSameOrigin(route: Route, req: HttpRequest, publicUrl: string | null): string | null {
  const origin = headerOf(req, 'origin') ?? null
  const site = headerOf(req, 'sec-fetch-site')
  if (site === 'cross-site') throw elsewhere()
  if (route.method === 'GET') return origin
  if (site !== undefined && site !== 'same-origin') throw elsewhere()
  const own = hostOf(req)?.toLowerCase()
  const isOwn = origin !== null && (origin === publicUrl || hostIn(origin) === own)
  if (!isOwn) throw elsewhere()
  if (route.method !== 'DELETE' && !isJson(headerOf(req, 'content-type'))) {
    throw new GatewayError('forbidden', 'The content-type header must be application/json.')
  }
  return origin
}

function hostIn(origin: string): string | null {
  const match = /^https?:\/\/([^/?#@\s]+)$/i.exec(origin)
  return match?.[1]?.toLowerCase() ?? null
}

function isJson(type: string | undefined): boolean {
  return /^application\/json(?:\s*;\s*charset="?utf-8"?)?$/i.test(type ?? '')
}

function elsewhere(): GatewayError {
  return new GatewayError('forbidden', 'The request does not come from a page of this dashboard.')
}

function assertToken(req: HttpRequest, session: Session | null): void {
  const received = digest(headerOf(req, 'x-sluice-csrf') ?? '')
  if (session === null || !timingSafeEqual(received, digest(session.csrf))) {
    throw new GatewayError('forbidden', 'The page is out of date. Reload it.')
  }
}

/** Hashes to a fixed length, as `timingSafeEqual` requires. */
function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

function headersOf(requestId: string): string[] {
  return ['content-type', 'application/json', 'x-request-id', requestId, 'cache-control', 'no-store']
}

async function send({ req, res, requestId }: ControlExchange, reply: Reply): Promise<void> {
  const text = jsonText(reply.json)
  const headers = headersOf(requestId)
  for (const cookie of reply.cookies ?? []) headers.push('set-cookie', cookie)
  if (reply.etag === true) {
    // Weak, since all encodings share it.
    const etag = `W/"${createHash('sha256').update(text).digest('base64url').slice(0, 22)}"`
    // Only this browser caches it, and it revalidates each time.
    headers[headers.indexOf('no-store')] = 'private, no-cache'
    headers.push('etag', etag)
    if (headerOf(req, 'if-none-match') === etag) {
      sendReply(res, {
        status: 304,
        headers: [...headers, 'vary', 'cookie, accept-encoding'],
        body: '',
      })
      return
    }
  }
  // The compressed length of a secret beside text of an attacker reveals the secret. Replies with a secret
  // set a cookie, or are too short to be compressed (https://www.breachattack.com).
  const accepted = reply.cookies === undefined ? headerOf(req, 'accept-encoding') : undefined
  const { body, encoding } = await compressed(text, accepted)
  if (encoding !== null) headers.push('content-encoding', encoding)
  if (isClosed(res)) return
  const vary = reply.etag === true ? 'cookie, accept-encoding' : 'accept-encoding'
  sendReply(res, { status: reply.status, headers: [...headers, 'vary', vary], body })
}

/** Maximum body size. The largest valid body is a password of 1,024 bytes in JSON's longest spelling. */
const MAX_BYTES = 65_536

/** Parses and validates the body. */
function parseBody(bytes: Buffer, schema: z.ZodType): unknown {
  const { value } = parseObject(bytes, { maxDepth: 8, maxTokens: 5_000 })
  return parsed(schema, value, 'field')
}

/**
 * The values of the query, and the account that it names: every route of an account accepts it. Throws
 * `malformed_request` for a name that occurs twice, unless it is a filter that takes several values.
 */
function queryOf(
  url: string,
  { credential, path, query: schema }: Route,
): { readonly query: QueryValues; readonly account: string | undefined } {
  const at = url.indexOf('?')
  const query: Record<string, string | string[]> = {}
  for (const [name, value] of new URLSearchParams(at === -1 ? '' : url.slice(at + 1))) {
    if (hasCredential(value)) {
      const message = `${clippedName(name)} in the query looks like a key or a token: an address must not have one`
      throw malformed(message, clippedName(name))
    }
    const before = Object.hasOwn(query, name) ? query[name] : undefined
    if (before === undefined) query[name] = value
    else if (takesSeveral(schema, name)) query[name] = [before, value].flat()
    else throw malformed(`the query has ${clippedName(name)} more than once`, clippedName(name))
  }
  const isOfQuery = credential !== 'open' && ACCESS[credential].of === 'account'
  if (!isOfQuery || isOfAccountPath({ credential, path })) {
    return { query, account: undefined }
  }
  const { account, ...others } = query
  if (account !== undefined && (typeof account !== 'string' || !ID.test(account))) {
    throw malformed("account in the query must be an account's name or id", 'account')
  }
  const hasOwn = schema instanceof z.ZodObject && Object.hasOwn(schema.shape, 'account')
  return { query: hasOwn ? query : others, account }
}

/** Values by name; a list of those of a parameter that is given several times. */
type QueryValues = Readonly<Record<string, string | readonly string[]>>

/** Validates the query; with `null`, the route accepts no query. */
function parseQuery(values: QueryValues, schema: z.ZodType | null): unknown {
  const value = parsed(schema ?? NO_QUERY, values, 'query parameter')
  return schema === null ? undefined : value
}

const NO_QUERY = z.strictObject({})

/** Of more wrong fields the reply does not tell. */
const MAX_FAULTS = 20

/** The value that the schema makes of this one. Throws a `Problem` that names the wrong fields. */
function parsed(schema: z.ZodType, value: unknown, what: 'field' | 'query parameter'): unknown {
  const { data, error } = schema.safeParse(value)
  if (error === undefined) return data
  const faults = new Faults()
  for (const issue of error.issues.slice(0, MAX_FAULTS)) {
    const path = clippedName(issue.path.map(String).join('.'))
    if (issue.code !== 'unrecognized_keys') {
      const where = what === 'field' ? '' : ' in the query'
      if (isRule(issue)) {
        faults.report(path, ...faultOf(issue, path))
        continue
      }
      if (path === '') throw malformed(`the request${where}: ${issue.message}`)
      faults.report(path, `${path}${where}: ${issue.message}.`.replace(/\.\.$/, '.'), OTHER_VALUE)
      continue
    }
    const known = path === '' && schema instanceof z.ZodObject ? Object.keys(schema.shape) : []
    for (const name of issue.keys.slice(0, MAX_FAULTS)) {
      faults.unknown(clippedName(path === '' ? name : `${path}.${name}`), name, known, what)
    }
  }
  // The fields have the names of this API already.
  const { fixes } = DASHBOARD_WORDS
  throw problemOf(faulty(faults.all), fixes === undefined ? {} : { fixes })
}

/** A client's field name, shortened and escaped for an error message. */
function clippedName(name: string): string {
  return name.replaceAll(/[^\w.[\]-]/g, '?').slice(0, 64)
}
