/** The endpoints of the ops port below `/generations`: the list, one generation, and the rollback to one. */
import type { IncomingMessage } from 'node:http'
import { isObject, type JsonObject } from '../../chat/json.js'
import type { ConfigSource } from '../../config/generations/reload-and-roll-back.js'
import { GatewayError } from '../../errors.js'
import type { Logger } from '../../observe/log/log.js'
import type { AdminTokens } from './admin-token.js'
import { localConfigControl, ROLLBACK_FAILED } from './answer-control-requests.js'
import { assertAdmin, generationPage, generationsPage, rollBack } from './generations-page.js'

const MAX_BODY_BYTES = 16_384
const MAX_AUTHOR_CHARS = 200
const MAX_REASON_CHARS = 500
const PATH = /^\/generations\/(\d{1,15})(\/rollback)?$/

/** The parts that the endpoints need. */
export interface GenerationsParts {
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
    return generationPage(source, control, {
      generation,
      from: from === undefined ? null : Number(from),
    })
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
    log.warn(ROLLBACK_FAILED, { generation, client_address, reason })
    throw error
  }
  return rollBack(control, { generation, ...by })
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
  if (unknown !== undefined)
    throw malformed('The body may have only the keys "reason" and "author".')
  return {
    author: textOf(value, 'author', MAX_AUTHOR_CHARS) || 'admin token',
    reason: textOf(value, 'reason', MAX_REASON_CHARS),
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

function malformed(message: string): GatewayError {
  return new GatewayError('malformed_request', message)
}
