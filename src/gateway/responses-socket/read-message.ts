/**
 * Reads the messages of a client: `response.create` starts a turn, `response.append` of older clients
 * continues the last one, and `response.processed` needs no answer.
 *
 * Sources: OpenAI API guide, "WebSocket mode", and codex-rs/codex-api of openai/codex, read 2026-11-29.
 */
import { objectOf, stringOf, type JsonObject, type JsonValue } from '../../base/json.js'
import { bodyTurns } from '../../base/turn-queue.js'
import { GatewayError } from '../../errors.js'
import { parseObject, parseSteps, type ParsedObject } from '../../formats/wire/json/parse-body.js'
import { splice, type Edit } from '../../formats/wire/json/splice.js'
import { LARGE_BYTES } from '../streams/join-chunks.js'
import type { TurnBody } from './turn-messages.js'

/** A turn as its client requests it. */
export interface RequestedTurn extends TurnBody {
  readonly generates: boolean
  /** The members of the request besides its input, for a turn that continues it. */
  readonly settings: JsonObject
}

/** The last turn of the connection. */
export interface LastTurn {
  readonly settings: JsonObject
  /** The id of its response; null if it failed. */
  readonly responseId: string | null
}

/** The object of a message. Throws, or rejects with, `malformed_request`. */
export function parseMessage(bytes: Buffer): ParsedObject | Promise<ParsedObject> {
  return bytes.length > LARGE_BYTES ? bodyTurns.run(parseSteps(bytes)) : parseObject(bytes)
}

/**
 * The turn that a message requests; null if it requests none. Throws `malformed_request` for a message of
 * another type.
 */
export function turnIn(bytes: Buffer, parsed: ParsedObject, last: LastTurn | null): RequestedTurn | null {
  const { type } = parsed.value
  switch (type) {
    case 'response.create':
      return created(bytes, parsed)
    case 'response.append':
      return appended(parsed.value, last)
    case 'response.processed':
      return null
    default: {
      const message =
        '`type` must be "response.create", or "response.append" to continue the last response of the connection.'
      throw new GatewayError('malformed_request', message, { param: 'type' })
    }
  }
}

/** Whether the bytes begin a JSON object. */
export function isObjectText(bytes: Buffer): boolean {
  return /^[ \t\r\n]*\{/.test(bytes.toString('latin1', 0, 64))
}

function created(bytes: Buffer, { value, members }: ParsedObject): RequestedTurn {
  const { generate, client_metadata: metadata } = value
  if (generate !== undefined && generate !== null && typeof generate !== 'boolean') {
    const message = '`generate` must be a boolean: false checks and keeps the input.'
    throw new GatewayError('malformed_request', message, { param: 'generate' })
  }
  const edits: Edit[] = [
    { key: 'type', json: null },
    { key: 'generate', json: null },
    { key: 'stream', json: 'true' },
  ]
  const settings = { ...value, stream: true }
  for (const name of ['type', 'generate', 'input', 'previous_response_id', 'client_metadata']) {
    Reflect.deleteProperty(settings, name)
  }
  const body = splice(bytes, members, edits)
  return { body, headers: traceOf(metadata), generates: generate !== false, settings }
}

function appended(value: JsonObject, last: LastTurn | null): RequestedTurn {
  const { settings = {}, responseId = null } = last ?? {}
  if (responseId === null) {
    const message =
      '`response.append` continues the last response of the connection, which has none. Send the whole conversation as `response.create`'
    throw new GatewayError('malformed_request', message, {
      param: 'type',
      code: 'previous_response_not_found',
    })
  }
  const { input = [], client_metadata: metadata } = value
  const request: JsonObject = { ...settings, input, previous_response_id: responseId }
  if (metadata !== undefined) request['client_metadata'] = metadata
  const body = Buffer.from(JSON.stringify(request))
  return { body, headers: traceOf(metadata), generates: true, settings }
}

/** Codex sends the trace of a turn as metadata, because a WebSocket has one set of headers for all turns. */
function traceOf(metadata: JsonValue | undefined): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const name of ['traceparent', 'tracestate']) {
    const value = stringOf(objectOf(metadata ?? null)[`ws_request_header_${name}`])
    if (value !== undefined && /^[\x20-\x7e]{1,512}$/.test(value)) headers[name] = value
  }
  return headers
}
