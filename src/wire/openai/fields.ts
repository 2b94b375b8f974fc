/** Fields that chat completions and Responses have in common, and fields that both refuse. */
import type { JsonValue } from '../../chat/json.js'
import { object, refuse } from '../json/check-fields.js'
import { refuseForbidden as refuseForbiddenField } from '../request-fields.js'

/** Throws `malformed_request` for a field that would choose the upstream or the credential. */
export function refuseForbidden(key: string): void {
  if (key === 'organization') refuse(key, 'is not allowed: the gateway chooses the upstream')
  refuseForbiddenField(key)
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
