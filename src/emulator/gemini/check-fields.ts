/** Gemini's rules for the fields and settings of a generateContent request, with its error messages. */
import { arrayOf, numberOf, objectOf } from '../../chat/json.js'
import type { JsonObject } from '../../chat/json.js'
import { refuseGemini } from './errors.js'

const FIELDS = new Set(
  (
    'contents systemInstruction generationConfig safetySettings tools toolConfig cachedContent ' +
    'serviceTier labels store continuationToken model'
  ).split(' '),
)
const CONFIG_FIELDS = new Set(
  (
    'temperature topP topK candidateCount maxOutputTokens stopSequences responseMimeType ' +
    'responseSchema responseJsonSchema seed presencePenalty frequencyPenalty responseLogprobs ' +
    'logprobs responseModalities thinkingConfig mediaResolution speechConfig imageConfig ' +
    'enableEnhancedCivicAnswers'
  ).split(' '),
)

/** Only models before the third generation return several candidates, and never as a stream. */
export function countOf(config: JsonObject, model: string, stream: boolean): number {
  const count = numberOf(config.candidateCount) ?? 1
  if (count < 1 || count > 8) {
    refuse(
      `Unable to submit request because it has a candidateCount value of ${count} but the supported range is from 1 (inclusive) to 9 (exclusive). Update the value and try again.`,
    )
  }
  if (count > 1 && !/^gemini-2\./.test(model)) {
    refuse('Multiple candidates is not enabled for this model')
  }
  if (count > 1 && stream) {
    refuse('Multiple candidates is not supported for streaming')
  }
  return count
}

/** The number of alternatives per token; undefined without log probabilities. */
export function topLogprobsOf(
  config: JsonObject,
  model: string,
  stream: boolean,
): number | undefined {
  const top = numberOf(config.logprobs)
  if (config.responseLogprobs !== true) {
    return top === undefined ? undefined : refuse('Logprobs needs response_logprobs to be true')
  }
  if (!/^gemini-2\.5-/.test(model) || stream) {
    refuse(`Logprobs is not enabled for models/${model}`)
  }
  if (top !== undefined && (top < 1 || top > 20)) {
    refuse(
      `Unable to submit request because it has a logprobs value of ${top} but the supported range is from 1 (inclusive) to 21 (exclusive). Update the value and try again.`,
    )
  }
  return top ?? 0
}

function unknownName(name: string, where: string): never {
  refuse(`Invalid JSON payload received. Unknown name "${name}"${where}: Cannot find field.`)
}

/** Throws 400 for unknown fields and for settings out of range. `fields` is the body with camelCase names. */
export function checkFields(body: JsonObject, fields: JsonObject): void {
  for (const field of Object.keys(body)) {
    if (!FIELDS.has(camelName(field))) {
      unknownName(field, '')
    }
  }
  const config = camel(objectOf(fields.generationConfig))
  for (const field of Object.keys(objectOf(fields.generationConfig))) {
    if (!CONFIG_FIELDS.has(camelName(field))) {
      unknownName(field, " at 'generation_config'")
    }
  }
  const temperature = numberOf(config.temperature)
  if (temperature !== undefined && (temperature < 0 || temperature > 2)) {
    refuse(
      `Unable to submit request because it has a temperature value of ${temperature} but the supported range is from 0.0 (inclusive) to 2.0 (inclusive). Update the value and try again.`,
    )
  }
  if (arrayOf(config.stopSequences).length > 5) {
    refuse(
      '* GenerateContentRequest.generation_config.stop_sequences: the number of stop sequences must not exceed 5\n',
    )
  }
  const limit = numberOf(config.maxOutputTokens)
  if (limit !== undefined && limit < 1) {
    refuse('* GenerateContentRequest.generation_config.max_output_tokens: must be positive\n')
  }
}

function camelName(name: string): string {
  return name.replace(/_([a-z])/g, (_all, letter: string) => letter.toUpperCase())
}

/** Converts the object's own keys to camelCase; values are unchanged. */
export function camel(object: JsonObject): JsonObject {
  const result: JsonObject = {}
  for (const [key, value] of Object.entries(object)) {
    result[camelName(key)] = value
  }
  return result
}

function refuse(message: string): never {
  refuseGemini(400, message)
}
