/**
 * The admin API of one process. A request passes the checks of this file in order: path and method, token,
 * rate, scope, query, body; then its handler runs. It keeps no state that another process would need.
 */
import { jsonText, type JsonObject, type JsonValue } from '../../base/json.js'
import { parseSteps } from '../../formats/wire/json/parse-body.js'
import { atOnce, type Steps } from '../../base/steps.js'
import { headerOf, type HttpRequest, type HttpResponse } from '../../http/message.js'
import { readBody } from '../../http/read-body.js'
import { newRequestId } from '../../http/request-id.js'
import { isClosed, sendReply } from '../../http/respond.js'
import { ControlRouter, type ControlExchange, type FoundRoute } from '../control-router.js'
import { sendCsv } from '../send-csv.js'
import { adminTurns } from '../../base/turn-queue.js'
import { GatewayError } from '../../errors.js'
import { conditionsOf, isUnchanged } from './conditional-requests.js'
import { choiceType, Faults, readValue } from '../../accounts/changes/field-types.js'
import { COMMON, Problem, type ProblemWords } from '../problem-details.js'
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
/** Serves `/admin/v1`. */
export class AdminApi {
  private readonly services: AdminServices
  private readonly routes: readonly AdminRoute[]
  private readonly router: ControlRouter<AdminRoute>
  private document: string | null = null

  constructor(services: AdminServices) {
    this.services = services
    this.routes = adminRoutes(services)
    this.router = new ControlRouter({
      ...{ prefix: PREFIX, routes: this.routes, log: services.log, name: 'The admin API' },
      whereTo: `Read ${PREFIX}/openapi.json, which lists them.`,
      ...{ words: WORDS, valueOf },
      serve: (found, exchange) => this.serve(found, exchange),
    })
  }

  /** Serves one request whose path, without the query, is or begins with `PREFIX`. Never rejects. */
  async handle(path: string, req: HttpRequest, res: HttpResponse): Promise<void> {
    if (path !== `${PREFIX}/openapi.json` || !isRead(req)) return this.router.answer(path, req, res)
    if (this.document === null) {
      const { openapiDocument } = await import('./openapi.js')
      this.document = JSON.stringify(openapiDocument(this.routes, this.services.version))
    }
    if (isClosed(res)) return
    const exchange = { requestId: newRequestId(this.services.now()), req, res }
    send(exchange, { status: 200, text: this.document, headers: [] })
  }

  private async serve({ route, values }: FoundRoute<AdminRoute>, exchange: ControlExchange): Promise<void> {
    const { requestId, req, res } = exchange
    const token = await authenticated(this.services, req)
    await takeTurn(this.services, token)
    assertScope(route, token)
    const query = readQuery(req.url ?? '', route)
    const { format, ...others } = query
    const body = route.body === undefined ? {} : await readJson(route, exchange)
    const conditions = conditionsOf(req)
    const accept = headerOf(req, 'accept') ?? ''
    const request: AdminRequest = {
      ...{ requestId, req, res, token, conditions, body, path: values, query: others },
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
}

/** Advice of which this API has a form of its own. */
const WORDS: ProblemWords = {
  fixes: {
    'Create a new one.': 'Create a new one with PUT.',
    'Use one such as team@example.com.': 'Use one in the path.',
  },
}

/** The decoded value of a part of the path; null if it is not well encoded, or empty. */
function valueOf(part: string): string | null {
  try {
    return part === '' ? null : decodeURIComponent(part)
  } catch {
    return null
  }
}

function isRead({ method }: HttpRequest): boolean {
  return method === 'GET' || method === 'HEAD'
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
      return readValue(parameter.type, value, { path: name, faults })
    })
    const [first] = items
    if (parameter.isRepeatable === true) read[name] = items.filter((item) => item !== undefined)
    else if (first !== undefined) read[name] = first
  }
  faults.refuse()
  return read
}

const JSON_TYPE = /^application\/json(?:\s*;\s*charset="?utf-8"?)?$/i
const PATCH_TYPE = /^application\/(?:merge-patch\+)?json(?:\s*;\s*charset="?utf-8"?)?$/i

/** The body as a JSON object, read strictly. */
async function readJson({ body }: AdminRoute, { req, res }: ControlExchange): Promise<JsonObject> {
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

async function answer(
  exchange: ControlExchange,
  reply: AdminReply,
  { conditions }: AdminRequest,
): Promise<void> {
  if (reply === 'none') return send(exchange, { status: 204, text: '', headers: [] })
  if ('csv' in reply) return answerCsv(exchange, reply)
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

interface Text {
  readonly status: number
  readonly text: string
  readonly headers: readonly string[]
}

function send({ requestId, res }: ControlExchange, { status, text, headers }: Text): void {
  const content = text === '' ? [] : ['content-type', 'application/json']
  const all = [...content, 'x-request-id', requestId, ...COMMON, ...headers]
  sendReply(res, { status, headers: all, body: text })
}

function answerCsv(exchange: ControlExchange, { csv, fileName, next = null }: CsvReply): Promise<void> {
  const path = (exchange.req.url ?? '').split('?', 1)[0] ?? ''
  const link = next === null ? [] : ['link', `<${path}?${next}>; rel="next"`]
  const headers = ['x-content-type-options', 'nosniff', ...link]
  return sendCsv(exchange, { name: fileName, parts: csv, headers, mayZip: false })
}
