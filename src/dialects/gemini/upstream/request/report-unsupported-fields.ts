/**
 * Refuses or reports the fields that a Gemini request cannot carry, and ignores those that do not affect the
 * reply.
 */
import { isObject, type JsonValue } from '../../../../chat/json.js'
import type { ChatRequest } from '../../../../chat/request.js'
import { GatewayError } from '../../../../errors.js'
import type { Losses } from '../../../dialect.js'

/** Fields that do not affect the reply. */
const SILENT = new Set([
  'metadata',
  'store',
  'prediction',
  'prompt_cache_key',
  'prompt_cache_retention',
  'prompt_cache_options',
  'cache_control',
  'stream_options',
  'user',
  'safety_identifier',
])

/** Fields that must not be dropped, and an alternative for each. */
const REFUSED: Readonly<Record<string, string>> = {
  audio: 'Audio output needs an OpenAI audio model.',
  moderation: 'Only OpenAI supports it. Leave it out, or use an OpenAI model.',
  web_search_options: 'Web search through this field needs an OpenAI search model.',
}

/**
 * Throws `GatewayError(untranslatable)` for fields that must not be dropped; reports the others to `losses`.
 */
export function reportUnsupportedFields(request: ChatRequest, losses: Losses): void {
  if ((request.topLogprobs ?? 0) > 0 && request.logprobs !== true) {
    losses.drop('top_logprobs', 'no-equivalent')
  }
  if (request.verbosity !== undefined) losses.drop('verbosity', 'no-equivalent')
  for (const [field, value] of Object.entries(request.rest)) {
    if (value === null || SILENT.has(field)) continue
    if (Object.hasOwn(REFUSED, field)) {
      const alternative = REFUSED[field] ?? ''
      throw refused(field, `${field}: this upstream does not support it. ${alternative}`)
    }
    if (field === 'modalities') checkModalities(value)
    else if (isLoss(field, value)) losses.drop(field, 'no-equivalent')
  }
}

function isLoss(field: string, value: JsonValue): boolean {
  if (field === 'logit_bias') return !isObject(value) || Object.keys(value).length > 0
  // `encodeThinking` reads `extra_content` and reports its losses.
  return field !== 'extra_content'
}

function checkModalities(value: JsonValue): void {
  if (Array.isArray(value) && value.every((item) => item === 'text')) return
  throw refused('modalities', 'modalities: this upstream replies in text only. Send ["text"].')
}

function refused(param: string, message: string): GatewayError {
  return new GatewayError('untranslatable', message, { param })
}
