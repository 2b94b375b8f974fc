/**
 * Encodes errors in the Messages format.
 *
 * Source: Claude API reference, "Errors", read 2026-11-22.
 */
import { statusOf, type WireError } from '../../../errors.js'
import { renameErrorField } from '../../wire/request-fields.js'
import { fieldNames } from '../../wire/scalar-fields.js'
import { PROVIDER } from '../constants.js'
import { FIELDS } from '../fields.js'

const TYPES: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  503: 'overloaded_error',
  529: 'overloaded_error',
}

/** HTTP status and JSON body. `requestId` equals the header `x-request-id`. */
export function encodeError(error: WireError, requestId?: string): { status: number; body: string } {
  return { status: statusOf(error), body: bodyOf(error, requestId) }
}

/** The event that ends a stream after its first event; no `message_stop` follows it. */
export function encodeStreamError(error: WireError, requestId?: string): string {
  return `event: error\ndata: ${bodyOf(error, requestId)}\n\n`
}

function bodyOf(error: WireError, requestId = ''): string {
  const { kind, message, param, native } = renameErrorField(error, fieldName)
  const own = native?.dialect === PROVIDER ? native : undefined
  const type = own?.type ?? (kind === 'budget_exceeded' ? 'billing_error' : typeOf(statusOf(error)))
  return JSON.stringify({
    type: 'error',
    error: { type, message, kind, param, details: own?.details },
    request_id: requestId,
  })
}

function typeOf(status: number): string {
  return TYPES[status] ?? (status >= 500 ? 'api_error' : 'invalid_request_error')
}

/** Names of fields. The rest of a path after the name is dropped. */
const NAMES: ReadonlyMap<string, string> = new Map([
  ...fieldNames(FIELDS),
  ['response_format', 'output_config.format'],
  ['safety_identifier', 'metadata.user_id'],
])

/** Paths of losses in messages that encoders report without an index. */
const PARTS: ReadonlyMap<string, string> = new Map([
  ['messages.file', 'messages.document'],
  ['messages.opaque', 'messages.server_tool_use'],
  ['messages.reasoning', 'messages.thinking'],
  ['messages.tool_content', 'messages.tool_result'],
])

/** A canonical request has only the client's own tools, so their indices differ. */
const TOOL = /^tools\[\d+\]\.(?:function|custom)(\.parameters)?/

/** The path of a field in this format. A path that is already in this format is returned unchanged. */
export function fieldName(path: string): string {
  const part = PARTS.get(path)
  if (part !== undefined) return part
  const tool = TOOL.exec(path)
  if (tool !== null) return tool[1] === undefined ? 'tools' : 'tools.input_schema'
  const [name = ''] = path.split(/[.[]/, 1)
  return NAMES.get(name) ?? path
}
