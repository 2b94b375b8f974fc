/**
 * The admin API of one process. A request passes the checks of this file in order: path and method, token,
 * rate, scope, query, body; then its handler runs. It keeps no state that another process would need.
 */
import { faulty } from '../../accounts/changes/refusal.js'
import { jsonText, type JsonObject, type JsonValue } from '../../base/json.js'
import { parseSteps } from '../../formats/wire/json/parse-body.js'
import { atOnce, type Steps } from '../../base/steps.js'
import { headerOf, type HttpRequest, type HttpResponse } from '../../http/message.js'
import { readBody } from '../../http/read-body.js'
import { newRequestId } from '../../http/request-id.js'
import { abortReply, beginReply, isClosed, sendReply } from '../../http/respond.js'
import { adminTurns } from '../../base/turn-queue.js'
import { GatewayError } from '../../errors.js'
import { conditionsOf, isUnchanged } from './conditional-requests.js'
import { choiceType, Faults } from '../../accounts/changes/field-types.js'
import { openapiDocument } from './openapi.js'
import { Problem, problemOf } from './problem-details.js'
import type { AdminReply, AdminRequest, AdminRoute, CsvReply, Parameters } from './route.js'
import { adminRoutes } from './routes.js'
import type { AdminServices } from './services.js'
import { assertScope, authenticated, takeTurn } from './token-access.js'

/** The path prefix of the API. */
export const PREFIX = '/admin/v1'

const MAX_BYTES = 1_048_576
/** `malformed_request` for a body that is nested deeper. */
const MAX_DEPTH = 8
/** Braces, brackets, colons and commas of a body. */
const MAX_TOKENS = 1_000_000
/** A smaller body is read at once. */
const SMALL_BYTES = 65_536
interface Found {
  readonly route: AdminRoute
  readonly path: Readonly<Record<string, string>>
}

interface Exchange {
  readonly requestId: string
  readonly req: HttpRequest
  readonly res: HttpResponse
}

/** Serves `/admin/v1`. */
export class AdminApi {
  private readonly services: AdminServices
  private readonly routes: readonly AdminRoute[]
  private document: string | null = null

  constructor(services: AdminServices) {
    this.services = services
    this.routes = adminRoutes(services)
  }

  /** Serves one request whose path, without the query, is or begins with `PREFIX`. Never rejects. */
  async handle(path: string, req: HttpRequest, res: HttpResponse): Promise<void> {
    const exchange = { requestId: newRequestId(this.services.now()), req, res }
    try {
      if (path === `${PREFIX}/openapi.json` && isRead(req)) {
        this.document ??= JSON.stringify(openapiDocument(this.routes, this.services.version))
        return send(exchange, { status: 200, text: this.document, headers: [] })
      }
      await this.serve(path.slice(PREFIX.length), exchange)
    } catch (error) {
      this.refuse(exchange, error)
    }
  }

  private async serve(path: string, exchange: Exchange): Promise<void> {
    const { requestId, req, res } = exchange
    const found = this.find(path, req.method ?? '')
    const { route } = found
    const token = await authenticated(this.services, req)
    await takeTurn(this.services, token)
    assertScope(route, token)
    const query = readQuery(req.url ?? '', route)
    const { format, ...others } = query
    const body = route.body === undefined ? {} : await readJson(route, exchange)
    const conditions = conditionsOf(req)
    const accept = headerOf(req, 'accept') ?? ''
    const request: AdminRequest = {
      ...{ requestId, req, res, token, conditions, body, path: found.path, query: others },
      address: this.services.addressOf(req),
      isCsv: format === undefined ? /\btext\/csv\b/i.test(accept) : format === 'csv',
    }
    await adminTurns.next()
    const reply = await route.handle(request)
    // The text of a large page takes some ms.
    await adminTurns.next()
    if (isClosed(res)) return
    await answer(exchange, reply, request)
  }

  private find(path: string, method: string): Found {
    const parts = path.split('/').slice(1)
    const matching = this.routes.flatMap((route): Found[] => {
      const values = matched(route.path.split('/').slice(1), parts)
      return values === null ? [] : [{ route, path: values }]
    })
    if (matching.length === 0) {
      throw new Problem('unknown_endpoint', 'The admin API has no endpoint at this path.', {
        fix: `Read ${PREFIX}/openapi.json, which lists them.`,
      })
    }
    // HEAD gets the reply of GET without the body.
    const wanted = method === 'HEAD' ? 'GET' : method
    const found = matching.find(({ route }) => route.method === wanted)
    if (found !== undefined) return found
    const allowed = matching.flatMap(({ route }) => {
      return route.method === 'GET' ? ['GET', 'HEAD'] : [route.method]
    })
    const detail = `This path takes ${allowed.join(', ')}, not ${method}.`
    throw new Problem('method_not_allowed', detail, {}, ['allow', allowed.join(', ')])
  }

  private refuse(exchange: Exchange, error: unknown): void {
    const { requestId, res } = exchange
    const isGone = error instanceof GatewayError && error.kind === 'client_gone'
    const problem = problemOf(error)
    if (problem.kind === 'bug') {
      const cause = error instanceof Error ? (error.cause ?? error) : error
      this.services.log.error('the admin API failed', cause, { request_id: requestId })
    }
    if (isGone || isClosed(res) || res.headersSent) {
      abortReply(res)
      return
    }
    const { status, headers } = problem
    const text = JSON.stringify(problem.body(requestId))
    send(exchange, { status, text, headers, type: 'application/problem+json' })
  }
}

function isRead({ method }: HttpRequest): boolean {
  return method === 'GET' || method === 'HEAD'
}

/** The values of the pattern's variable parts; null if the path has another form. */
function matched(pattern: readonly string[], parts: readonly string[]): Record<string, string> | null {
  if (pattern.length !== parts.length) return null
  const values: Record<string, string> = {}
  for (const [at, expected] of pattern.entries()) {
    const part = parts[at] ?? ''
    if (!expected.startsWith('{')) {
      if (part !== expected) return null
      continue
    }
    const value = decoded(part)
    if (value === null || value === '') return null
    values[expected.slice(1, -1)] = value
  }
  return values
}

function decoded(part: string): string | null {
  try {
    return decodeURIComponent(part)
  } catch {
    return null
  }
}

const FORMAT = choiceType(['json', 'csv'])

/** The values of the query. Throws a `Problem` that names every wrong parameter. */
function readQuery(url: string, { query = {}, hasCsv }: AdminRoute): JsonObject {
  const at = url.indexOf('?')
  const given = new URLSearchParams(at === -1 ? '' : url.slice(at + 1))
  const known: Parameters = hasCsv === true ? { ...query, format: { type: FORMAT, means: '' } } : query
  const faults = new Faults()
  const read: Record<string, JsonValue> = {}
  for (const name of new Set(given.keys())) {
    const shown = name.slice(0, 64)
    const parameter = Object.hasOwn(known, name) ? known[name] : undefined
    if (parameter === undefined) {
      faults.unknown(shown, name, Object.keys(known), 'query parameter')
      continue
    }
    const values = given.getAll(name)
    if (values.length > 1 && parameter.isRepeatable !== true) {
      faults.report(shown, `The query has "${shown}" more than once.`, 'Send it once.')
      continue
    }
    const items = values.map((text) => {
      const value = parameter.isNumber === true && /^-?\d+$/.test(text) ? Number(text) : text
      return parameter.type.read(value, name, faults)
    })
    const [first] = items
    if (parameter.isRepeatable === true) read[name] = items.filter((item) => item !== undefined)
    else if (first !== undefined) read[name] = first
  }
  if (faults.all.length > 0) throw faulty(faults.all)
  return read
}

const JSON_TYPE = /^application\/json(?:\s*;\s*charset="?utf-8"?)?$/i
const PATCH_TYPE = /^application\/(?:merge-patch\+)?json(?:\s*;\s*charset="?utf-8"?)?$/i

/** The body as a JSON object, read strictly. */
async function readJson({ body }: AdminRoute, { req, res }: Exchange): Promise<JsonObject> {
  const type = headerOf(req, 'content-type')
  const isEmpty =
    headerOf(req, 'transfer-encoding') === undefined &&
    Number(headerOf(req, 'content-length') ?? 0) === 0 &&
    (req.httpVersion !== '2.0' || req.complete)
  if (body?.isOptional === true && isEmpty) return {}
  const isPatch = body?.isPatch === true
  const isJson = isPatch ? PATCH_TYPE : JSON_TYPE
  const encoding = headerOf(req, 'content-encoding') ?? 'identity'
  if (type === undefined || !isJson.test(type.trim()) || encoding !== 'identity') {
    const types = isPatch ? 'application/merge-patch+json or application/json' : 'application/json'
    const detail = `The body must be ${types}, without a content-encoding.`
    throw new Problem('unsupported_media_type', detail, { fix: 'Set the header Content-Type.' })
  }
  const bytes = await readBody(req, res, body?.maxBytes ?? MAX_BYTES)
  try {
    const steps = objectSteps(bytes)
    return bytes.length > SMALL_BYTES ? await adminTurns.start(steps) : atOnce(steps)
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    throw new Problem('malformed_request', `${error.message}.`, { fix: 'Send one JSON object.' })
  }
}

/** The object in the bytes. */
function* objectSteps(bytes: Buffer): Steps<JsonObject> {
  return (yield* parseSteps(bytes, { maxDepth: MAX_DEPTH, maxTokens: MAX_TOKENS })).value
}

async function answer(exchange: Exchange, reply: AdminReply, { conditions }: AdminRequest): Promise<void> {
  if (reply === 'none') return send(exchange, { status: 204, text: '', headers: [] })
  if ('csv' in reply) return sendCsv(exchange, reply)
  const { status, json, etag, location } = reply
  const headers = [
    ...(etag === undefined ? [] : ['etag', etag]),
    ...(location === undefined ? [] : ['location', PREFIX + location]),
  ]
  if (etag !== undefined && isRead(exchange.req) && isUnchanged(conditions, etag)) {
    return send(exchange, { status: 304, text: '', headers })
  }
  send(exchange, { status, text: jsonText(json), headers })
}

const COMMON = ['cache-control', 'no-store', 'x-content-type-options', 'nosniff'] as const

interface Text {
  readonly status: number
  readonly text: string
  readonly headers: readonly string[]
  readonly type?: string
}

function send({ requestId, res }: Exchange, { status, text, headers, type }: Text): void {
  const content = text === '' ? [] : ['content-type', type ?? 'application/json']
  const all = [...content, 'x-request-id', requestId, ...COMMON, ...headers]
  sendReply(res, { status, headers: all, body: text })
}

/** Sends the batches as they arrive, so that memory use is constant. */
async function sendCsv(
  { requestId, req, res }: Exchange,
  { csv, fileName, next = null }: CsvReply,
): Promise<void> {
  const path = (req.url ?? '').split('?', 1)[0] ?? ''
  beginReply(res, 200, [
    ...['content-type', 'text/csv; charset=utf-8', 'x-request-id', requestId, ...COMMON],
    ...['content-disposition', `attachment; filename="${fileName}"`],
    ...(next === null ? [] : ['link', `<${path}?${next}>; rel="next"`]),
  ])
  if (req.method !== 'HEAD') {
    for await (const text of csv) {
      if (isClosed(res)) return
      if (!res.write(text)) await drained(res)
    }
  }
  res.end()
}

function drained(res: HttpResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      res.off('drain', done).off('close', done)
      resolve()
    }
    res.once('drain', done).once('close', done)
  })
}
