/** OpenAI's rules for the settings of a chat completions request, with its error messages. */
import { arrayOf, numberOf, objectOf } from '../../chat/json.js'
import type { JsonObject } from '../../chat/json.js'
import { refuseOpenAi } from './errors.js'

/** Whether the model reasons; such models refuse sampling settings. */
export function reasons(model: string): boolean {
  return /^(o[1-9]|gpt-[5-9]|gpt-[1-9]\d)/.test(model) && !/-chat\b|^gpt-4|^gpt-3/.test(model)
}

/** Models that support the Responses endpoint only. */
const RESPONSES_ONLY = /^(?:gpt-5(?:\.5)?-pro|o[13]-pro|gpt-5[.\d]*-codex|codex-)/

/** Throws 404 if the model supports the Responses endpoint only. */
export function checkEndpoint(model: string): void {
  if (!RESPONSES_ONLY.test(model)) {
    return
  }
  const message = 'This model is only supported in v1/responses and not in v1/chat/completions.'
  refuseOpenAi(404, message, { param: 'model' })
}

/** Newer models support reasoning with tools only on the Responses endpoint. */
function checkTools(body: JsonObject, model: string): void {
  const functions = arrayOf(body.tools).some((tool) => objectOf(tool).type === 'function')
  if (functions && /^gpt-(5\.6|6)/.test(model) && body.reasoning_effort !== 'none') {
    refuse(
      'reasoning_effort',
      `Function tools with reasoning_effort are not supported for ${model} in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.`,
    )
  }
}

/** Throws 400 for settings that the model refuses. */
export function checkSettings(body: JsonObject, model: string): void {
  const temperature = numberOf(body.temperature)
  checkTools(body, model)
  if (reasons(model)) {
    if (numberOf(body.max_tokens) !== undefined) {
      refuse(
        'max_tokens',
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        'unsupported_parameter',
      )
    }
    if (temperature !== undefined && temperature !== 1 && body.reasoning_effort !== 'none') {
      refuse(
        'temperature',
        `Unsupported value: 'temperature' does not support ${temperature} with this model. Only the default (1) value is supported.`,
        'unsupported_value',
      )
    }
  }
  if (temperature !== undefined && (temperature < 0 || temperature > 2)) {
    const [side, code, bound] =
      temperature < 0
        ? ['minimum', 'decimal_below_min_value', '>= 0']
        : ['maximum', 'decimal_above_max_value', '<= 2']
    refuse(
      'temperature',
      `Invalid 'temperature': decimal ${side === 'minimum' ? 'below minimum' : 'above maximum'} value. Expected a value ${bound}, but got ${temperature} instead.`,
      code,
    )
  }
  const limit = numberOf(body.max_completion_tokens) ?? numberOf(body.max_tokens)
  if (limit !== undefined && limit < 1) {
    refuse(
      body.max_completion_tokens === undefined ? 'max_tokens' : 'max_completion_tokens',
      `Invalid 'max_tokens': integer below minimum value. Expected a value >= 1, but got ${limit} instead.`,
      'integer_below_min_value',
    )
  }
  if (arrayOf(body.stop).length > 4) {
    refuse(
      'stop',
      `Invalid 'stop': array too long. Expected an array with maximum length 4, but got an array with length ${arrayOf(body.stop).length} instead.`,
      'array_above_max_length',
    )
  }
}

function refuse(param: string, message: string, code: string | null = null): never {
  refuseOpenAi(400, message, { param, code })
}
