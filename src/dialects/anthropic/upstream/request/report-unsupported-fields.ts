/**
 * Refuses or reports the fields that a Messages request cannot carry, and ignores those that do not affect
 * the reply.
 */
import { isObject, type JsonValue } from '../../../../chat/json.js'
import type { ChatRequest } from '../../../../chat/request.js'
import { GatewayError } from '../../../../errors.js'
import type { Losses } from '../../../dialect.js'

/** Fields that do not affect the reply. */
const SILENT: ReadonlySet<string> = new Set([
  'metadata',
  'prediction',
  'prompt_cache_key',
  'prompt_cache_options',
  'prompt_cache_retention',
  'stream_options',
])

/**
 * Throws `GatewayError(untranslatable)` for fields that must not be dropped; reports the others to `losses`.
 */
export function reportUnsupportedFields(request: ChatRequest, losses: Losses): void {
  refuseShapes(request)
  if ((request.frequencyPenalty ?? 0) !== 0) losses.drop('frequency_penalty', 'no-equivalent')
  if ((request.presencePenalty ?? 0) !== 0) losses.drop('presence_penalty', 'no-equivalent')
  if (request.seed !== undefined) losses.drop('seed', 'no-equivalent')
  if ((request.verbosity ?? 'medium') !== 'medium') losses.drop('verbosity', 'no-equivalent')
  const { rest } = request
  for (const field in rest) {
    const value = rest[field] ?? null
    if (value === null || SILENT.has(field)) continue
    refuseField(field, value)
    if (!isHarmless(field, value, request)) losses.drop(field, 'no-equivalent')
  }
}

function refuseShapes(request: ChatRequest): void {
  if ((request.candidates ?? 1) > 1) {
    throw refused('n', 'Anthropic models give one reply per request', 'Send n requests')
  }
  if (request.logprobs === true || (request.topLogprobs ?? 0) > 0) {
    const field = request.logprobs === true ? 'logprobs' : 'top_logprobs'
    throw refused(field, 'Anthropic models report no log probabilities', 'Leave it out')
  }
}

function refuseField(field: string, value: JsonValue): void {
  const audio = field === 'modalities' && Array.isArray(value) && value.includes('audio')
  if (field === 'audio' || audio) {
    throw refused(field, 'Anthropic models do not generate audio', 'Request text')
  }
  if (field === 'moderation') {
    throw refused(
      field,
      'Anthropic models do not support moderation, and dropping it would be unsafe',
      'Leave it out',
    )
  }
  if (field === 'web_search_options') {
    throw refused(field, 'this route does not search the web', 'Leave it out')
  }
}

function isHarmless(field: string, value: JsonValue, request: ChatRequest): boolean {
  switch (field) {
    case 'store':
      return value === false
    case 'logit_bias':
      return isObject(value) && Object.keys(value).length === 0
    case 'modalities':
      return Array.isArray(value) && value.every((one) => one === 'text')
    case 'thinking':
      return isObject(value) && request.reasoningEffort === undefined
    default:
      return false
  }
}

function refused(field: string, why: string, advice: string): GatewayError {
  const message = `${field}: ${why}. ${advice}, or use a route to an OpenAI upstream.`
  return new GatewayError('untranslatable', message, { param: field })
}
