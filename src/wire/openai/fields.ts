/** Fields that chat completions and Responses have in common, and fields that both refuse. */
import type { JsonObject, JsonValue } from '../../chat/json.js'
import { boolean, given, object, refuse } from '../json/check-fields.js'

/** Limit for a model id, which becomes part of paths, labels and logs. The longest real id has 60 characters. */
const MAX_MODEL_BYTES = 256

/** Fields by which other gateways let a body choose the destination or the credential. */
const FORBIDDEN = new Set([
  'api_base',
  'api_key',
  'base_url',
  'custom_host',
  'extra_headers',
  'fallbacks',
  'organization',
])

/** The `model` field. */
export function modelOf(body: JsonObject): string {
  const model = body['model']
  if (typeof model !== 'string' || model === '') refuse('model', 'must be a non-empty string')
  if (model.length > MAX_MODEL_BYTES || Buffer.byteLength(model) > MAX_MODEL_BYTES) {
    refuse('model', `must be at most ${MAX_MODEL_BYTES} bytes`)
  }
  return model
}

/** The `stream` field. */
export function streamOf(body: JsonObject): boolean {
  return given(body['stream']) ? boolean(body['stream'], 'stream') : false
}

/** Throws for a field that would choose the upstream, and for `__proto__`, which cannot be stored in an object. */
export function refuseForbidden(key: string): void {
  if (FORBIDDEN.has(key)) refuse(key, 'is not allowed: the gateway chooses the upstream')
  if (key === '__proto__') refuse(key, 'is not the name of a field')
}

/** Checks `metadata` against OpenAI's limits: 16 pairs, keys of 64 and values of 512 characters. */
export function metadataPairs(value: JsonValue): void {
  const entries = Object.entries(object(value, 'metadata'))
  if (entries.length > 16) refuse('metadata', 'must have at most 16 keys')
  for (const [key, item] of entries) {
    if (key.length > 64) refuse('metadata', 'must have keys of at most 64 characters')
    if (typeof item !== 'string' || item.length > 512) {
      refuse(`metadata.${key}`, 'must be a string of at most 512 characters')
    }
  }
}
