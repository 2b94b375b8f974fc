/** The endpoints of the ops port below `/generations`: the list, one generation, and the rollback to one. */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { checkedReason } from '../../accounts/changes/fields.js'
import { WrongKeyCounts } from '../../accounts/authentication/wrong-key-throttle.js'
import { generationFields } from '../../config/config.js'
import type { ConfigSource } from '../../config/generations/config-source.js'
import type { GenerationRecord } from '../../config/generations/history.js'
import type { ConfigControl, RollbackRequest } from '../../control/config-control.js'
import { GatewayError, malformed } from '../../errors.js'
import { isObject, type JsonObject } from '../../base/json.js'
import type { Logger } from '../../observe/log.js'
import { localConfigControl, ROLLBACK_FAILED, generationList } from './answer-control-requests.js'

const MAX_BODY_BYTES = 16_384
const MAX_AUTHOR_CHARS = 200
const PATH = /^\/generations\/(\d{1,15})(\/rollback)?$/

/** The parts that the endpoints need. */
interface GenerationsParts {
  readonly source: ConfigSource
  readonly log: Logger
  readonly tokens: AdminTokens
}

/**
 * The reply to a request at `/generations` or below, as JSON. Rejects with `GatewayError` for unknown paths,
 * methods and generations, a missing or wrong token, and a body that is not `{ "reason", "author" }`.
 * Rollbacks that fail are logged.
 */
export async function answerGenerations(
  { source, log, tokens }: GenerationsParts,
  req: IncomingMessage,
): Promise<JsonObject> {
  const control = localConfigControl(source, log)
  const [path = '', query] = (req.url ?? '').split('?', 2)
  const isRead = req.method === 'GET' || req.method === 'HEAD'
  const [, digits, rollback] = PATH.exec(path) ?? []
  if (path !== '/generations' && digits === undefined) {
    const message = 'Paths: /generations, /generations/NUMBER, /generations/NUMBER/rollback.'
    throw new GatewayError('unknown_endpoint', message)
  }
  if (rollback === undefined) {
    if (!isRead) throw new GatewayError('method_not_allowed', 'This path accepts GET and HEAD.')
    if (digits === undefined) return generationsPage(source)
    const from = /(?:^|&)from=(\d{1,15})(?:&|$)/.exec(query ?? '')?.[1]
    const generation = Number(digits)
    return generationPage(control, generation, from === undefined ? null : Number(from))
  }
  if (req.method !== 'POST') throw new GatewayError('method_not_allowed', 'This path accepts POST.')
  const generation = Number(digits)
  // A body that is refused ends the socket.
  const client_address = req.socket.remoteAddress
  let by: { author: string; reason: string }
  try {
    assertAdmin(source, tokens.accepts(req))
    by = authorOf(await bodyOf(req))
  } catch (error) {
    const reason = error instanceof GatewayError ? error.message : undefined
    const { gateway, generation_hash } = generationFields(source.current())
    log.warn(ROLLBACK_FAILED, { generation, gateway, generation_hash, client_address, reason })
    throw error
  }
  return rollBack(control, { generation, ...by, isRecorded: false })
}

async function bodyOf(req: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let total = 0
  for await (const chunk of req as AsyncIterable<Buffer>) {
    total += chunk.length
    if (total > MAX_BODY_BYTES) {
      throw new GatewayError('body_too_large', `The body is larger than ${MAX_BODY_BYTES} bytes.`)
    }
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function authorOf(body: string): { author: string; reason: string } {
  const value = body.trim() === '' ? {} : parsed(body)
  if (!isObject(value)) {
    throw malformed('The body must be a JSON object: {"reason": "…", "author": "…"}.')
  }
  const unknown = Object.keys(value).find((key) => key !== 'reason' && key !== 'author')
  if (unknown !== undefined) throw malformed('The body may have only the keys "reason" and "author".')
  return {
    author: textOf(value, 'author', MAX_AUTHOR_CHARS) || 'admin token',
    reason: checkedReason(value['reason'] ?? ''),
  }
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body)
  } catch {
    return null
  }
}

function textOf(value: JsonObject, key: string, maxChars: number): string {
  const text = value[key] ?? ''
  if (typeof text !== 'string' || text.length > maxChars || /\p{Cc}/u.test(text)) {
    throw malformed(`"${key}" must be one line of at most ${maxChars} characters.`)
  }
  return text.trim()
}

/** The page `/generations` of the ops port. */
function generationsPage(source: ConfigSource): JsonObject {
  const list = generationList(source)
  const { inForce, held, problems, waitingForRestart, generations } = list
  return {
    file: list.file,
    generation: inForce,
    started_generation: list.startedGeneration,
    held,
    last_error: problems === null ? null : [...problems],
    waiting_for_restart: [...waitingForRestart],
    generations: generations.map((record) => ({
      ...shownRecord(record),
      in_force: record.generation === inForce,
    })),
  }
}

/** The page of one generation, with all its values, secrets masked. Rejects with `not_found`. */
async function generationPage(
  control: ConfigControl,
  generation: number,
  from: number | null,
): Promise<JsonObject> {
  const detail = await control.show(generation, from)
  if (detail === null) {
    throw new GatewayError(
      'not_found',
      `There is no generation ${generation}: GET /generations lists the stored ones.`,
    )
  }
  return {
    ...shownRecord(detail.record),
    in_force: detail.isInForce,
    compared_with: detail.comparedWith,
    changes: detail.changes.map(({ path, before, after }) => ({ path, before, after })),
    config: detail.values,
  }
}

function shownRecord(record: GenerationRecord): JsonObject {
  const { generation, hash, atMs, author, reason, origin, contentOf } = record
  const at = new Date(atMs).toISOString()
  return { generation, hash, at, author, reason, origin, content_of: contentOf }
}

/**
 * Throws `forbidden` if `server.admin_token` is not set, and `unauthenticated` if the request does not have
 * it.
 */
function assertAdmin(source: ConfigSource, hasToken: boolean): void {
  const { adminToken } = source.current().config.server
  if (adminToken === null) {
    throw new GatewayError(
      'forbidden',
      'Rollbacks on this port need server.admin_token in the configuration; administrators can use the dashboard.',
    )
  }
  if (!hasToken) {
    throw new GatewayError(
      'unauthenticated',
      'Send the value of server.admin_token as "Authorization: Bearer TOKEN".',
    )
  }
}

/** Rolls back. Rejects with `not_found` and `malformed_request` as in `RollbackResult`. */
async function rollBack(control: ConfigControl, request: RollbackRequest): Promise<JsonObject> {
  const answer = await control.rollBack(request)
  if (answer?.result === 'applied') {
    const { generation, gateway, message } = answer
    return { generation, content_of: request.generation, scope: 'gateway', gateway, message }
  }
  const kind = answer?.result === 'unknown' ? 'not_found' : 'malformed_request'
  throw new GatewayError(kind, answer?.message ?? 'The rollback got no reply.')
}

/** Wrong tokens of one address: 10 at once, then one a second. */
const RATE = { burst: 10, perSecond: 1 }
const MAX_ADDRESSES = 1_000

/**
 * Compares tokens with `server.admin_token` in force.
 *
 * Checks the token of administrators of the ops port. Wrong tokens are logged, and an address that sends many
 * of them is throttled.
 */
export class AdminTokens {
  private readonly failures = new WrongKeyCounts(MAX_ADDRESSES, RATE)
  private readonly source: ConfigSource
  private readonly log: Logger

  constructor(source: ConfigSource, log: Logger) {
    this.source = source
    this.log = log
  }

  /**
   * Whether the request has the token; false if it has none or `server.admin_token` is not set. Compares in
   * constant time. Throws `auth_throttled`, also for the right token, while its address sends too many wrong
   * ones: otherwise the throttle would not slow guesses.
   */
  accepts(req: Pick<IncomingMessage, 'headers' | 'socket'>): boolean {
    const { authorization } = req.headers
    const { adminToken } = this.source.current().config.server
    if (adminToken === null || authorization === undefined) return false
    const address = req.socket.remoteAddress ?? ''
    if (this.failures.isThrottled(address, performance.now())) {
      throw new GatewayError(
        'auth_throttled',
        'Too many wrong tokens came from this address: try again later.',
        { retryAfterSeconds: 1 },
      )
    }
    const given = /^bearer (\S+)$/i.exec(authorization)?.[1] ?? ''
    if (timingSafeEqual(digest(given), digest(adminToken))) return true
    this.failures.note(address, performance.now())
    this.log.warn('wrong admin token on the ops port', { client_address: address })
    return false
  }
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
