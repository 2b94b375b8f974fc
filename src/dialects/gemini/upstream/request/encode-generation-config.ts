/**
 * Encodes sampling, limits and thinking as `generationConfig`.
 *
 * Source: ai.google.dev/api/generate-content, "GenerationConfig", read 2026-11-20.
 */
import type { JsonObject } from '../../../../chat/json.js'
import type { ModelFacts } from '../../../../chat/model.js'
import type { ChatRequest } from '../../../../chat/request.js'
import { GatewayError } from '../../../../errors.js'
import type { EncodeContext } from '../../../dialect.js'
import { isThirdGeneration, MAX_STOP_SEQUENCES } from '../../shared/constants.js'
import { encodeThinking } from './encode-thinking.js'

/**
 * The members of `generationConfig` except those of the response format. Throws
 * `GatewayError(untranslatable)`.
 */
export function encodeConfig(request: ChatRequest, context: EncodeContext): JsonObject {
  const { model, losses } = context
  const config: JsonObject = {}
  if (request.temperature !== undefined) config.temperature = request.temperature
  if (request.topP !== undefined) config.topP = request.topP
  if (request.topK !== undefined) config.topK = request.topK
  if (request.maxOutputTokens !== undefined) {
    const limit = model.maxOutputTokens ?? Infinity
    config.maxOutputTokens = Math.min(request.maxOutputTokens, limit)
    if (request.maxOutputTokens > limit) losses.drop('max_completion_tokens', 'approximated')
  }
  encodeStop(request.stop, config)
  encodeSeed(request.seed, config)
  encodePenalties(request, config, context)
  const resolution = isThirdGeneration(model) ? mediaResolution(request) : null
  if (resolution !== null) config.mediaResolution = resolution
  const thinking = encodeThinking(request, context)
  if (thinking !== undefined) config.thinkingConfig = thinking
  encodeLogprobs(request, model, config)
  return config
}

function encodeStop(stop: string[] | undefined, config: JsonObject): void {
  const stops = (stop ?? []).filter((text) => text !== '')
  if (stops.length > MAX_STOP_SEQUENCES) {
    throw refused('stop', `stop: this upstream accepts at most ${MAX_STOP_SEQUENCES} stop strings.`)
  }
  if (stops.length > 0) config.stopSequences = stops
}

function encodeSeed(seed: number | undefined, config: JsonObject): void {
  if (seed === undefined) return
  if (!Number.isInteger(seed) || seed !== (seed | 0)) {
    throw refused('seed', 'seed: this upstream accepts whole numbers of 32 bits (±2147483647).')
  }
  config.seed = seed
}

function encodeLogprobs(request: ChatRequest, model: ModelFacts, config: JsonObject): void {
  if (request.logprobs !== true) return
  if (model.logprobs !== true) {
    throw refused(
      'logprobs',
      'logprobs: this model reports no log probabilities. Use an OpenAI chat model, or leave it out.',
    )
  }
  config.responseLogprobs = true
  const { topLogprobs = 0 } = request
  if (topLogprobs > 0) config.logprobs = topLogprobs
}

function encodePenalties(
  request: ChatRequest,
  config: JsonObject,
  { model, losses }: EncodeContext,
): void {
  const { frequencyPenalty, presencePenalty } = request
  if (model.penalties === false) {
    if ((frequencyPenalty ?? 0) !== 0) losses.drop('frequency_penalty', 'no-equivalent')
    if ((presencePenalty ?? 0) !== 0) losses.drop('presence_penalty', 'no-equivalent')
    return
  }
  if (frequencyPenalty !== undefined) config.frequencyPenalty = frequencyPenalty
  if (presencePenalty !== undefined) config.presencePenalty = presencePenalty
}

/** One setting applies to all images: high if any image requests it, low if all of them do. */
function mediaResolution(request: ChatRequest): string | null {
  let all = 0
  let low = 0
  for (const message of request.messages) {
    if (message.role !== 'user' && message.role !== 'tool') continue
    for (const part of message.parts) {
      if (part.type !== 'image') continue
      if (part.detail === 'high' || part.detail === 'original') return 'MEDIA_RESOLUTION_HIGH'
      all += 1
      if (part.detail === 'low') low += 1
    }
  }
  return all > 0 && low === all ? 'MEDIA_RESOLUTION_LOW' : null
}

function refused(param: string, message: string): GatewayError {
  return new GatewayError('untranslatable', message, { param })
}
