/**
 * Decodes and validates a Responses request with OpenAI's rules and error messages.
 */
import { refuseOpenAi } from './errors.js'
import { reasons } from './check-settings.js'
import { checkOpenAiKey, isOpenAiModel, mediaTypeOf, textOf } from './decode-chat-request.js'
import { arrayOf, isObject, numberOf, objectOf, stringOf } from '../../chat/json.js'
import type { JsonObject, JsonValue } from '../../chat/json.js'
import { verifyState } from '../signature.js'
import type { ModelInput, ParsedRequest, ToolResult } from '../emulated-exchange.js'

/** A valid Responses request. */
export interface ResponsesRequest {
  readonly modelInput: ModelInput
  readonly stream: boolean
  readonly body: JsonObject
  /** Whether reasoning items contain encrypted content. */
  readonly sealed: boolean
  /** Whether reasoning items contain a summary. */
  readonly summarised: boolean
  /** Number of alternatives per token; undefined without log probabilities. */
  readonly topLogprobs: number | undefined
}

const FIELDS = new Set(
  (
    'access_programs background client_metadata context_management conversation include input instructions ' +
    'max_output_tokens max_tool_calls metadata model moderation parallel_tool_calls ' +
    'previous_response_id prompt prompt_cache_key prompt_cache_options prompt_cache_retention ' +
    'reasoning safety_identifier service_tier store stream stream_options temperature text ' +
    'tool_choice tools top_logprobs top_p truncation user'
  ).split(' '),
)

/** Throws a `Refusal` with OpenAI's error for an invalid request. */
export function readResponses(request: ParsedRequest): ResponsesRequest {
  checkOpenAiKey(request)
  const { body } = request
  if (body === undefined) {
    refuseOpenAi(400, 'We could not parse the JSON body of your request.')
  }
  const unknown = Object.keys(body).find((field) => !FIELDS.has(field))
  if (unknown !== undefined) {
    refuse(unknown, `Unknown parameter: '${unknown}'.`, 'unknown_parameter')
  }
  const model = stringOf(body.model) ?? ''
  if (model === '') {
    refuse('model', "Missing required parameter: 'model'.", 'missing_required_parameter')
  }
  if (!request.anyModel && !isOpenAiModel(model)) {
    // Unlike chat completions, which returns 404.
    refuse('model', `The requested model '${model}' does not exist.`, 'model_not_found')
  }
  const items = itemsIn(body)
  checkItems(items)
  checkSealed(items)
  checkSettings(body, model)
  const reasoning = objectOf(body.reasoning)
  return {
    modelInput: modelInputOf(body, model, items),
    stream: body.stream === true,
    body,
    sealed: arrayOf(body.include).includes('reasoning.encrypted_content'),
    summarised: stringOf(reasoning.summary) !== undefined,
    topLogprobs: arrayOf(body.include).includes('message.output_text.logprobs')
      ? (numberOf(body.top_logprobs) ?? 0)
      : undefined,
  }
}

function refuse(param: string, message: string, code: string | null = null): never {
  refuseOpenAi(400, message, { param, code })
}

function itemsIn(body: JsonObject): JsonObject[] {
  if (typeof body.input === 'string') {
    return [{ role: 'user', content: body.input }]
  }
  const items = arrayOf(body.input).filter(isObject)
  if (items.length === 0 && body.prompt === undefined) {
    refuse('input', "Missing required parameter: 'input'.", 'missing_required_parameter')
  }
  return items
}

function checkItems(items: readonly JsonObject[]): void {
  const open = new Set<string>()
  for (const [index, item] of items.entries()) {
    const id = stringOf(item.call_id) ?? ''
    checkReasoning(item, items[index + 1])
    if (item.type === 'function_call' || item.type === 'custom_tool_call') {
      if (id.length > 64) {
        refuse(
          `input[${index}].call_id`,
          `Invalid 'input[${index}].call_id': string too long. Expected a string with maximum length 64, but got a string with length ${id.length} instead.`,
          'string_above_max_length',
        )
      }
      open.add(id)
    } else if (isOutput(item) && !open.delete(id)) {
      refuse('input', `No tool call found for function call output with call_id ${id}.`)
    }
  }
  const [missing] = open
  if (missing !== undefined) {
    refuse('input', `No tool output found for function call ${missing}.`)
  }
}

function isOutput({ type }: JsonObject): boolean {
  return type === 'function_call_output' || type === 'custom_tool_call_output'
}

/** A reasoning item must be followed by the output that it belongs to. */
function checkReasoning(item: JsonObject, next: JsonObject | undefined): void {
  if (item.type !== 'reasoning') {
    return
  }
  const follows = ['reasoning', 'function_call', 'custom_tool_call', 'web_search_call']
  if (next?.role !== 'assistant' && !follows.includes(stringOf(next?.type) ?? '')) {
    const id = stringOf(item.id) ?? ''
    refuse(
      'input',
      `Item '${id}' of type 'reasoning' was provided without its required following item.`,
    )
  }
}

/** Verifies encrypted reasoning by its signature. */
function checkSealed(items: readonly JsonObject[]): void {
  for (const { type, encrypted_content } of items) {
    const sealed = type === 'reasoning' ? stringOf(encrypted_content) : undefined
    if (sealed !== undefined && verifyState([''], sealed)[0] !== true) {
      const shown = `${sealed.slice(0, 4)}...${sealed.slice(-4)}`
      const message = `The encrypted content ${shown} could not be verified.`
      refuseOpenAi(400, message, { param: null, code: 'invalid_encrypted_content' })
    }
  }
}

function checkSettings(body: JsonObject, model: string): void {
  const temperature = numberOf(body.temperature)
  const effort = objectOf(body.reasoning).effort
  if (temperature !== undefined && reasons(model) && effort !== 'none') {
    refuse(
      'temperature',
      "Unsupported parameter: 'temperature' is not supported with this model.",
      null,
    )
  }
  if (arrayOf(body.include).includes('reasoning.encrypted_content') && !reasons(model)) {
    refuse('include', 'Encrypted content is not supported with this model.')
  }
  const limit = numberOf(body.max_output_tokens)
  if (limit !== undefined && limit < 16) {
    refuse(
      'max_output_tokens',
      `Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got ${limit} instead.`,
      'integer_below_min_value',
    )
  }
  for (const [index, tool] of arrayOf(body.tools).map(objectOf).entries()) {
    if (tool.type === 'function' && stringOf(tool.name) === undefined) {
      refuse(
        `tools[${index}].name`,
        `Missing required parameter: 'tools[${index}].name'.`,
        'missing_required_parameter',
      )
    }
  }
}

function modelInputOf(body: JsonObject, model: string, items: readonly JsonObject[]): ModelInput {
  const last = items.findLast(({ role }) => role === 'user')
  const format = objectOf(objectOf(body.text).format)
  return {
    model,
    prompt: textOf(last?.content),
    results: resultsIn(items),
    tools: arrayOf(body.tools)
      .map(objectOf)
      .filter(({ type }) => type === 'function')
      .map((tool) => ({ name: stringOf(tool.name) ?? '', schema: tool.parameters })),
    choice: choiceOf(body.tool_choice),
    parallel: body.parallel_tool_calls !== false,
    images: arrayOf(last?.content)
      .map(objectOf)
      .filter(({ type }) => type === 'input_image')
      .map((part) => mediaTypeOf(stringOf(part.image_url) ?? '')),
    json:
      format.type === 'json_schema'
        ? (format.schema ?? true)
        : format.type === 'json_object'
          ? true
          : undefined,
    stop: [],
    limit: numberOf(body.max_output_tokens),
    thinking: reasons(model) && objectOf(body.reasoning).effort !== 'none',
    inputChars:
      items.reduce((sum, { content }) => sum + textOf(content).length + 12, 0) +
      (stringOf(body.instructions)?.length ?? 0) +
      (body.tools === undefined ? 0 : JSON.stringify(body.tools).length),
  }
}

function choiceOf(choice: JsonValue | undefined): ModelInput['choice'] {
  if (choice === 'none' || choice === 'required') {
    return choice
  }
  const { name } = objectOf(choice)
  return typeof name === 'string' ? { name } : 'auto'
}

function resultsIn(items: readonly JsonObject[]): ToolResult[] {
  const names = new Map<string, string>()
  const results: ToolResult[] = []
  for (const item of items) {
    const id = stringOf(item.call_id) ?? ''
    if (item.type === 'function_call' || item.type === 'custom_tool_call') {
      names.set(id, stringOf(item.name) ?? '')
    } else if (isOutput(item)) {
      results.push({ name: names.get(id), text: textOf(item.output) })
      continue
    }
    results.length = 0
  }
  return results
}
