/**
 * Encodes errors in Google's format for clients.
 *
 * Source: google.aip.dev/193 and google/rpc/error_details.proto, read 2026-11-20.
 */
import { statusOf, waitSecondsOf, type WireError } from '../../../errors.js'
import type { JsonObject } from '../../../base/json.js'
import { withoutSecrets } from '../../wire/openai/error-body.js'
import { renameErrorField } from '../../wire/request-fields.js'
import { fieldNames } from '../../wire/scalar-fields.js'
import { PROVIDER } from '../constants.js'
import { CONFIG, FIELDS } from '../fields.js'
import { STATUS_CODES } from '../upstream/decode-error.js'

const TYPE = 'type.googleapis.com/google.rpc.'

/** The name of google.rpc.Code by HTTP status. */
const STATUSES: Readonly<Record<number, string>> = {
  401: 'UNAUTHENTICATED',
  402: 'RESOURCE_EXHAUSTED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  429: 'RESOURCE_EXHAUSTED',
  499: 'CANCELLED',
  500: 'INTERNAL',
  501: 'UNIMPLEMENTED',
  502: 'UNAVAILABLE',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
}

/** HTTP status and JSON body. */
export function encodeError(error: WireError): { status: number; body: string } {
  const status = statusOf(error)
  const { kind, message, param, native, guardrail } = renameErrorField(withoutSecrets(error), fieldName)
  const metadata = guardrail === undefined ? {} : { metadata: { guardrail } }
  const details: JsonObject[] = [{ '@type': `${TYPE}ErrorInfo`, reason: kind, domain: 'sluice', ...metadata }]
  if (param !== undefined) {
    const fieldViolations = [{ field: param, description: message }]
    details.push({ '@type': `${TYPE}BadRequest`, fieldViolations })
  }
  const waitSeconds = waitSecondsOf(error)
  if (waitSeconds !== undefined) {
    details.push({ '@type': `${TYPE}RetryInfo`, retryDelay: `${waitSeconds}s` })
  }
  // An error of Google keeps its own status name.
  const name = native?.dialect === PROVIDER ? native.type : nameOf(status)
  const code = native?.dialect === PROVIDER ? (STATUS_CODES[name] ?? status) : status
  const body = JSON.stringify({ error: { code, message, status: name, details } })
  return { status, body }
}

function nameOf(status: number): string {
  return STATUSES[status] ?? (status >= 500 ? 'INTERNAL' : 'INVALID_ARGUMENT')
}

/** The event that ends a stream after its first event. */
export function encodeStreamError(error: WireError): string {
  return `data: ${encodeError(error).body}\n\n`
}

/** Names of fields. */
const NAMES: ReadonlyMap<string, string> = new Map([
  ...fieldNames(FIELDS),
  ['max_tokens', `${CONFIG}.maxOutputTokens`],
  ['response_format', `${CONFIG}.responseSchema`],
  ['tool_choice', 'toolConfig.functionCallingConfig'],
])

/** Canonical messages have the index of their content; parts and calls have no index of their own. */
const MESSAGE = /^messages(\[\d+\])?(?:\..*)?$/
/** Canonical requests number functions; this format numbers the tools that declare them. */
const FUNCTION = /^tools\[\d+\](?:\.(?:function|custom)\b.*)?$/
/** Paths of losses in messages that encoders report without an index. */
const PARTS: ReadonlyMap<string, string> = new Map([
  ['messages.reasoning', 'contents.thoughtSignature'],
  ['messages.thinking', 'contents.thoughtSignature'],
  ['messages.is_error', 'contents.functionResponse.response.error'],
  ['messages.tool_content', 'contents.functionResponse.parts'],
  ['messages.file', 'contents.inlineData'],
  ['messages.opaque', 'contents.parts'],
])

/** The path of a field in this format. A path that is already in this format is returned unchanged. */
export function fieldName(path: string): string {
  const part = PARTS.get(path)
  if (part !== undefined) return part
  const message = MESSAGE.exec(path)
  if (message !== null) return `contents${message[1] ?? ''}`
  if (FUNCTION.test(path)) return 'tools'
  const [name = ''] = path.split(/[.[]/, 1)
  return NAMES.get(name) ?? path
}
