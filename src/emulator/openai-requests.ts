/** Decodes and validates requests of OpenAI's chat completions with OpenAI's rules, and its errors. */
import {
  arrayOf,
  isObject,
  numberOf,
  objectOf,
  stringOf,
  type JsonObject,
  type JsonValue,
} from '../base/json.js'
import {
  errorReply,
  Refusal,
  type ModelInput,
  type ParsedRequest,
  type Tool,
  type ToolResult,
  type FrameWriter,
} from './emulated-exchange.js'

/** A valid chat completions request. */
interface OpenAiRequest {
  readonly modelInput: ModelInput
  readonly stream: boolean
  readonly includeUsage: boolean
  /** Number of choices. */
  readonly count: number
  readonly obfuscate: boolean
}

/** Throws a `Refusal` with OpenAI's error for an invalid request. */
export function readOpenAi(request: ParsedRequest): OpenAiRequest {
  checkOpenAiKey(request)
  const { body } = request
  if (body === undefined) {
    refuseOpenAi(
      400,
      'We could not parse the JSON body of your request. (HINT: This likely means you aren’t using your HTTP library correctly.)',
    )
  }
  const model = openAiModel(body, request.anyModel)
  checkEndpoint(model)
  const messages = messagesIn(body)
  checkMessages(messages)
  checkSettings(body, model)
  const options = objectOf(body.stream_options)
  if (body.stream_options !== undefined && body.stream_options !== null && body.stream !== true) {
    refuse('stream_options', "The 'stream_options' parameter is only allowed when 'stream' is enabled.")
  }
  return {
    modelInput: modelInputOf(body, model, messages),
    stream: body.stream === true,
    includeUsage: options.include_usage === true,
    count: Math.max(1, Math.min(8, numberOf(body.n) ?? 1)),
    obfuscate: options.include_obfuscation !== false,
  }
}

/**
 * Throws 401 if the key is missing or contains "invalid". Azure, whose addresses without a version are those
 * of the emulated OpenAI, takes it in `api-key` too.
 */
export function checkOpenAiKey({ headers }: ParsedRequest): void {
  const bearer = /^Bearer\s+(\S.*)$/i.exec(headers.authorization ?? '')?.[1]
  const key = bearer ?? stringOf(headers['api-key'])
  if (key === undefined) {
    refuseOpenAi(
      401,
      "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY).",
    )
  }
  if (key.includes('invalid')) {
    const shown = key.length > 12 ? `${key.slice(0, 8)}***${key.slice(-4)}` : 'sk-***'
    refuseOpenAi(
      401,
      `Incorrect API key provided: ${shown}. You can find your API key at https://platform.openai.com/account/api-keys.`,
      { code: 'invalid_api_key' },
    )
  }
}

const FAMILIES = /^(gpt-[3-9]|gpt-[1-9]\d|o[1-9]|chatgpt-|codex-|ft:gpt-|gpt-oss)/

/** Whether an id belongs to one of OpenAI's families. */
export function isOpenAiModel(model: string): boolean {
  return FAMILIES.test(model)
}

/** The model id. Throws 400 if it is missing and 404 if it is unknown. */
function openAiModel(body: JsonObject, anyModel: boolean): string {
  const model = stringOf(body.model)
  if (model === undefined || model === '') {
    refuseOpenAi(400, 'you must provide a model parameter')
  }
  if (!anyModel && !isOpenAiModel(model)) {
    refuseOpenAi(404, `The model \`${model}\` does not exist or you do not have access to it.`, {
      code: 'model_not_found',
    })
  }
  return model
}

/** Replies 400 with the parameter and the message of OpenAI. */
export function refuse(param: string, message: string, code: string | null = null): never {
  refuseOpenAi(400, message, { param, code })
}

function messagesIn(body: JsonObject): JsonObject[] {
  if (!Array.isArray(body.messages)) {
    refuse(
      'messages',
      "Missing required parameter: 'messages'.",
      body.messages === undefined ? 'missing_required_parameter' : 'invalid_type',
    )
  }
  const messages = body.messages.filter(isObject)
  if (messages.length === 0) {
    refuse(
      'messages',
      "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.",
      'empty_array',
    )
  }
  return messages
}

const ROLES = ['system', 'developer', 'user', 'assistant', 'tool', 'function']

function checkMessages(messages: readonly JsonObject[]): void {
  let open = new Set<string>()
  for (const [index, message] of messages.entries()) {
    const role = stringOf(message.role) ?? ''
    if (!ROLES.includes(role)) {
      refuse(
        `messages[${index}].role`,
        `Invalid value: '${role}'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.`,
        'invalid_value',
      )
    }
    if (role === 'tool') {
      const id = stringOf(message.tool_call_id) ?? ''
      if (!open.delete(id)) {
        refuse(
          `messages.[${index}].role`,
          "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
        )
      }
      continue
    }
    checkAnswered(open, index)
    const calls = arrayOf(message.tool_calls).map(objectOf)
    const long = calls.findIndex(({ id }) => (stringOf(id) ?? '').length > 40)
    if (long >= 0) {
      refuse(
        `messages[${index}].tool_calls[${long}].id`,
        `Invalid 'messages[${index}].tool_calls[${long}].id': string too long. Expected a string with maximum length 40.`,
        'string_above_max_length',
      )
    }
    open = new Set(calls.map(({ id }) => stringOf(id) ?? ''))
  }
  checkAnswered(open, messages.length)
}

function checkAnswered(open: ReadonlySet<string>, index: number): void {
  if (open.size > 0) {
    refuse(
      `messages.[${index - 1}].role`,
      `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${[...open].join(', ')}`,
    )
  }
}

function modelInputOf(body: JsonObject, model: string, messages: readonly JsonObject[]): ModelInput {
  const last = messages.findLast(({ role }) => role === 'user')
  const format = objectOf(body.response_format)
  const stops = typeof body.stop === 'string' ? [body.stop] : arrayOf(body.stop)
  return {
    model,
    prompt: textOf(last?.content),
    results: resultsIn(messages),
    tools: arrayOf(body.tools)
      .map(objectOf)
      .filter((tool) => tool.type === 'function')
      .map(toolOf),
    choice: choiceOf(body.tool_choice),
    parallel: body.parallel_tool_calls !== false,
    images: imagesIn(last?.content),
    json:
      format.type === 'json_schema'
        ? (objectOf(format.json_schema).schema ?? true)
        : format.type === 'json_object'
          ? true
          : undefined,
    stop: stops.filter((stop) => typeof stop === 'string'),
    limit: numberOf(body.max_completion_tokens) ?? numberOf(body.max_tokens),
    thinking: reasons(model) && body.reasoning_effort !== 'none',
    inputChars:
      messages.reduce((sum, { content }) => sum + textOf(content).length + 12, 0) +
      (body.tools === undefined ? 0 : JSON.stringify(body.tools).length),
  }
}

function toolOf(tool: JsonObject): Tool {
  const definition = objectOf(tool.function)
  return { name: stringOf(definition.name) ?? '', schema: definition.parameters }
}

function choiceOf(choice: JsonValue | undefined): ModelInput['choice'] {
  if (choice === 'none' || choice === 'required') {
    return choice
  }
  const name = stringOf(objectOf(objectOf(choice).function).name)
  return name === undefined ? 'auto' : { name }
}

/** The text of a content field: a string, or its text parts joined. */
export function textOf(content: JsonValue | undefined): string {
  if (typeof content === 'string') {
    return content
  }
  return arrayOf(content)
    .map((part) => stringOf(objectOf(part).text) ?? '')
    .join('')
}

function imagesIn(content: JsonValue | undefined): string[] {
  return arrayOf(content)
    .map(objectOf)
    .filter(({ type }) => type === 'image_url')
    .map((part) => mediaTypeOf(stringOf(objectOf(part.image_url).url) ?? ''))
}

/** The media type of a data URL, or `image by URL`. */
export function mediaTypeOf(url: string): string {
  return /^data:([^;,]+)/.exec(url)?.[1] ?? 'image by URL'
}

function resultsIn(messages: readonly JsonObject[]): ToolResult[] {
  const results: ToolResult[] = []
  const names = new Map<string, string>()
  for (const message of messages) {
    if (message.role === 'tool') {
      const name = names.get(stringOf(message.tool_call_id) ?? '')
      results.push({ name, text: textOf(message.content) })
      continue
    }
    results.length = 0
    for (const call of arrayOf(message.tool_calls).map(objectOf)) {
      names.set(stringOf(call.id) ?? '', stringOf(objectOf(call.function).name) ?? '')
    }
  }
  return results
}

/** Whether the model reasons; such models refuse sampling settings. */
export function reasons(model: string): boolean {
  return /^(o[1-9]|gpt-[5-9]|gpt-[1-9]\d)/.test(model) && !/-chat\b|^gpt-4|^gpt-3/.test(model)
}

/** Models that support the Responses endpoint only. */
const RESPONSES_ONLY = /^(?:gpt-5(?:\.5)?-pro|o[13]-pro|gpt-5[.\d]*-codex|codex-)/

/** Throws 404 if the model supports the Responses endpoint only. */
function checkEndpoint(model: string): void {
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
function checkSettings(body: JsonObject, model: string): void {
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

const COMMON = {
  'openai-version': '2020-10-01',
  'openai-organization': 'emulated',
  'openai-processing-ms': '1',
  'x-ratelimit-limit-requests': '10000',
  'x-ratelimit-limit-tokens': '1000000',
  'x-ratelimit-remaining-requests': '9999',
  'x-ratelimit-remaining-tokens': '999989',
  'x-ratelimit-reset-requests': '6ms',
  'x-ratelimit-reset-tokens': '0s',
}
/** Headers of a whole reply. */
export const WHOLE = { 'content-type': 'application/json', ...COMMON }
/** Headers of a stream. */
export const STREAM = { 'content-type': 'text/event-stream; charset=utf-8', ...COMMON }

const TYPES: Record<number, string> = { 429: 'requests' }
const CODES: Record<number, string> = { 401: 'invalid_api_key', 429: 'rate_limit_exceeded' }

/** The frames of errors, unknown events and keep-alives. */
export const openAiFrames: FrameWriter = {
  errorBody: (status, message, type) =>
    openAiError(message, {
      type: type ?? TYPES[status] ?? (status >= 500 ? 'server_error' : 'invalid_request_error'),
      code: CODES[status] ?? null,
    }),
  errorEvent: (type) =>
    frame(
      JSON.stringify({
        error: {
          message: 'The server had an error while processing your request. Sorry about that!',
          type: type ?? 'server_error',
          param: null,
          code: null,
        },
      }),
    ),
  unknownEvent: () =>
    'event: chat.future\ndata: {"object":"chat.future","choices":[],"invented":{"depth":1}}\n\n',
  frame,
  textEvent: (text) =>
    frame(
      `{"id":"chatcmpl-giant","object":"chat.completion.chunk","created":0,"model":"emulated","choices":[{"index":0,"delta":{"content":${JSON.stringify(text)}},"logprobs":null,"finish_reason":null}]}`,
    ),
  ping: () => ': ping\n\n',
  streamHeaders: STREAM,
  wholeHeaders: WHOLE,
}

/** The body of an OpenAI error. */
function openAiError(
  message: string,
  rest: { type?: string; param?: string | null; code?: string | null } = {},
): string {
  const { type = 'invalid_request_error', param = null, code = null } = rest
  return JSON.stringify({ error: { message, type, param, code } }, undefined, 2)
}

function frame(data: string): string {
  return `data: ${data}\n\n`
}

/** Throws a refusal with OpenAI's error body. */
export function refuseOpenAi(
  status: number,
  message: string,
  rest: { type?: string; param?: string | null; code?: string | null } = {},
): never {
  throw new Refusal(errorReply(status, WHOLE, openAiError(message, rest)))
}
