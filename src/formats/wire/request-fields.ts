/** Fields that the client formats have in common, and fields that all of them refuse. */
import type { WireError } from '../../errors.js'
import { isObject, type JsonObject, type JsonValue } from '../../base/json.js'
import type { ChatRequest } from '../chat/request.js'
import { boolean, given, refuse } from './json/check-fields.js'

/**
 * Limit for a model id, which becomes part of paths, labels and logs. The longest real id has 60 characters.
 */
const MAX_MODEL_BYTES = 256

/**
 * Characters that change how a terminal or a log viewer shows a text: C0, DEL, C1, those that reorder text,
 * and line separators.
 */
const CONTROL = /[\p{Cc}\p{Bidi_Control}\u2028\u2029]/u
const EVERY_CONTROL = /[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu

/** Fields by which other gateways let a body choose the destination or the credential. */
const FORBIDDEN: ReadonlySet<string> = new Set([
  'api_base',
  'api_key',
  'base_url',
  'custom_host',
  'extra_headers',
  'fallbacks',
])

/** Fields that do not change the reply of an upstream without them, in every format. */
export const WITHOUT_EFFECT: ReadonlySet<string> = new Set([
  'metadata',
  'prediction',
  'prompt_cache_key',
  'prompt_cache_options',
  'prompt_cache_retention',
  'stream_options',
])

/**
 * The `model` field. Throws `malformed_request` if it is not a non-empty string, and as `checkModelId` does.
 */
export function modelOf(body: JsonObject): string {
  const { model } = body
  if (typeof model !== 'string' || model === '') refuse('model', 'must be a non-empty string')
  return checkModelId(model)
}

/** The model id. Throws `malformed_request` if it has more than 256 bytes or a control character. */
export function checkModelId(model: string): string {
  if (model.length > MAX_MODEL_BYTES || Buffer.byteLength(model) > MAX_MODEL_BYTES) {
    refuse('model', `must be at most ${MAX_MODEL_BYTES} bytes`)
  }
  refuseControls(model)
  return model
}

/** Throws `malformed_request` if the model id has a control character. */
export function refuseControls(model: string): void {
  if (!CONTROL.test(model)) return
  refuse('model', 'must not contain control characters, bidirectional marks or line separators')
}

/** The text with each control character as a JSON escape, such as `\\u001b`; line feeds too. */
export function escapeControls(text: string): string {
  return text.replace(EVERY_CONTROL, (control) => `\\u${control.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** The `stream` field. Throws `malformed_request` if it is not a boolean. */
export function streamOf(body: JsonObject): boolean {
  return given(body.stream) ? boolean(body.stream, 'stream') : false
}

/**
 * Throws for a field that would choose the upstream, and for `__proto__`, which cannot be stored in an
 * object.
 */
export function refuseForbidden(key: string): void {
  if (FORBIDDEN.has(key)) refuse(key, 'is not allowed: the gateway chooses the upstream')
  if (key === '__proto__') refuse(key, 'is not the name of a field')
}

/**
 * The error with its `param`, and the path at the start of its message, renamed by `fieldName`. Messages
 * about a field start with its path.
 */
export function renameErrorField(error: WireError, fieldName: (path: string) => string): WireError {
  const { param, message } = error
  if (param === undefined) return error
  const name = fieldName(param)
  const renamedMessage = message.startsWith(param) ? name + message.slice(param.length) : message
  return { ...error, message: renamedMessage, param: name }
}

/**
 * Whether a field of OpenAI's formats has a value that changes nothing at an upstream of another format, so
 * that it is no loss to leave it out.
 */
export function hasNoEffect(field: string, value: JsonValue, request: ChatRequest): boolean {
  switch (field) {
    case 'store':
      return value === false
    case 'logit_bias':
      return isObject(value) && Object.keys(value).length === 0
    case 'modalities':
      return Array.isArray(value) && value.every((one) => one === 'text')
    case 'thinking':
      // The encoder reports it if the model does not take it.
      return isObject(value) && request.reasoningEffort === undefined
    default:
      return false
  }
}
