/**
 * Refuses or reports the fields that a Gemini request cannot carry, and ignores those that do not affect the reply.
 */
import { isObject, type JsonValue } from '../../../../chat/json.js'
import type { ChatRequest } from '../../../../chat/request.js'
import { GatewayError } from '../../../../errors.js'
import type { Losses } from '../../../dialect.js'

/** What has no equivalent but cannot change the answer. */
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

/** What must not be lost, and what would take it. */
const REFUSED: Readonly<Record<string, string>> = {
  audio: 'Audio output needs an OpenAI audio model.',
  moderation: 'Only OpenAI applies it; leave it out to go without.',
  web_search_options: 'Web search through this field needs an OpenAI search model.',
}

/** Fields outside the canon, and those of the canon that no Gemini request can carry. */
export function reportUnsupportedFields(request: ChatRequest, losses: Losses): void {
  if ((request.topLogprobs ?? 0) > 0 && request.logprobs !== true) {
    losses.drop('top_logprobs', 'no-equivalent')
  }
  if (request.verbosity !== undefined) losses.drop('verbosity', 'no-equivalent')
  for (const [field, value] of Object.entries(request.rest)) {
    if (value === null || SILENT.has(field)) continue
    if (Object.hasOwn(REFUSED, field)) {
      const who = REFUSED[field] ?? ''
      throw refused(field, `${field}: this upstream cannot do that. ${who}`)
    }
    if (field === 'modalities') checkModalities(value)
    else if (isLoss(field, value)) losses.drop(field, 'no-equivalent')
  }
}

function isLoss(field: string, value: JsonValue): boolean {
  if (field === 'logit_bias') return !isObject(value) || Object.keys(value).length > 0
  // Read by `encodeThinking`, which reports what it does not take.
  return field !== 'extra_content'
}

function checkModalities(value: JsonValue): void {
  if (Array.isArray(value) && value.every((item) => item === 'text')) return
  throw refused('modalities', 'modalities: this upstream answers in text only. Send ["text"].')
}

function refused(param: string, message: string): GatewayError {
  return new GatewayError('untranslatable', message, { param })
}
