/**
 * Decodes and validates a messages request with Anthropic's rules and error messages.
 */
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
  type ToolResult,
  type FrameWriter,
} from './emulated-exchange.js'
import { textOf } from './openai-requests.js'
import type { RandomSource } from './seeded-random.js'
import { signState, verifyState } from './state-signatures.js'

/** A valid messages request. */
interface AnthropicRequest {
  readonly modelInput: ModelInput
  readonly stream: boolean
  /** False if only the signature of the thinking is sent, not its text. */
  readonly showThinking: boolean
}

const VERSIONS = ['2023-06-01', '2023-01-01', '2026-10-21']
const FAMILIES = /^claude-([1-9]|opus|sonnet|haiku|fable|instant|mythos)/

/** Throws a `Refusal` with Anthropic's error for an invalid request. */
export function readAnthropic(request: ParsedRequest): AnthropicRequest {
  checkAnthropicKey(request)
  const version = request.headers['anthropic-version']
  if (typeof version !== 'string') {
    refuse('anthropic-version: header is required')
  }
  if (!VERSIONS.includes(version)) {
    refuse(`anthropic-version: "${version}" is not a valid version`)
  }
  const { body } = request
  if (body === undefined) {
    refuse('The request body is not valid JSON: expected value at line 1 column 1')
  }
  const model = stringOf(body.model) ?? refuse('model: Field required')
  const counting = request.path.endsWith('/count_tokens')
  if (numberOf(body.max_tokens) === undefined && !counting) {
    refuse('max_tokens: Field required')
  }
  const messages = arrayOf(body.messages).filter(isObject)
  if (messages.length === 0) {
    refuse(
      body.messages === undefined ? 'messages: Field required' : 'messages: at least one message is required',
    )
  }
  checkFields(body, version)
  if (!request.anyModel && !FAMILIES.test(model)) {
    refuseAnthropic(404, `model: ${model}`)
  }
  checkChoice(body, model)
  checkFormat(body)
  checkMessages(messages)
  checkThinking(body, request.headers['anthropic-beta'], model)
  const thinking = objectOf(body.thinking)
  return {
    modelInput: modelInputOf(body, model, messages),
    stream: body.stream === true,
    showThinking: thinking.display !== 'omitted',
  }
}

/** Throws 401 if neither header has a key, or the key contains "invalid". */
export function checkAnthropicKey(request: ParsedRequest): void {
  const header = request.headers['x-api-key']
  const bearer = /^Bearer\s+(\S.*)$/i.exec(request.headers.authorization ?? '')?.[1]
  const key = typeof header === 'string' && header !== '' ? header : bearer
  if (key === undefined) {
    refuseAnthropic(401, 'x-api-key header is required')
  }
  if (key.includes('invalid')) {
    refuseAnthropic(401, 'invalid x-api-key')
  }
}

function refuse(message: string): never {
  refuseAnthropic(400, message)
}

const FIELDS = new Set(
  (
    'max_tokens messages model cache_control container diagnostics inference_geo metadata ' +
    'output_config service_tier speed stop_sequences stream system thinking tool_choice tools ' +
    'context_management mcp_servers betas'
  ).split(' '),
)
const SAMPLING = ['temperature', 'top_p', 'top_k']

function checkFields(body: JsonObject, version: string): void {
  for (const field of Object.keys(body)) {
    const sampling = SAMPLING.includes(field) && version !== '2026-10-21'
    if (!FIELDS.has(field) && !sampling) {
      refuse(`${field}: Extra inputs are not permitted`)
    }
  }
  const temperature = numberOf(body.temperature)
  if (temperature !== undefined && (temperature < 0 || temperature > 1)) {
    refuse('temperature: range: 0..1')
  }
  const limit = numberOf(body.max_tokens)
  if (limit !== undefined && limit < 0) {
    refuse('max_tokens: Input should be greater than or equal to 0')
  }
  const thinking = objectOf(body.thinking)
  if (thinking.type === 'enabled') {
    const budget = numberOf(thinking.budget_tokens)
    if (budget === undefined || budget < 1024) {
      refuse('thinking.enabled.budget_tokens: Input should be greater than or equal to 1024')
    }
    if (limit !== undefined && limit <= budget) {
      refuse('`max_tokens` must be greater than `thinking.budget_tokens`.')
    }
  }
  for (const [index, tool] of arrayOf(body.tools).map(objectOf).entries()) {
    if (stringOf(tool.name) === undefined) {
      refuse(`tools.${index}.custom.name: Field required`)
    }
    if (isCustom(tool) && !isObject(tool.input_schema)) {
      refuse(`tools.${index}.custom.input_schema: Field required`)
    }
  }
}

/** The newest models do not support a forced tool. */
function checkChoice(body: JsonObject, model: string): void {
  const { type } = objectOf(body.tool_choice)
  const forced = type === 'tool' || type === 'any'
  if (forced && /^claude-(opus-5-5|sonnet-5-5|fable-5-[12])/.test(model)) {
    refuse('tool_choice: type "tool" and "any" are not supported for this model.')
  }
}

/** Every object of an output schema must have `additionalProperties: false`. */
function checkFormat(body: JsonObject): void {
  const format = objectOf(objectOf(body.output_config).format)
  if (format.type !== 'json_schema') return
  const at = 'output_config.format.schema'
  if (objectOf(format.schema).type !== 'object') refuse(`${at}: the root must be of type 'object'`)
  if (!isClosed(format.schema)) {
    refuse(`${at}: For 'object' type, 'additionalProperties' must be explicitly set to false`)
  }
}

function isClosed(schema: JsonValue | undefined): boolean {
  if (Array.isArray(schema)) return schema.every(isClosed)
  if (!isObject(schema)) return true
  if (schema.type === 'object' && schema.additionalProperties !== false) return false
  return Object.values(schema).every(isClosed)
}

function isCustom(tool: JsonObject): boolean {
  return tool.type === undefined || tool.type === 'custom'
}

function checkMessages(messages: readonly JsonObject[]): void {
  let open: string[] = []
  for (const [index, message] of messages.entries()) {
    const { role } = message
    if (role !== 'user' && role !== 'assistant' && role !== 'system') {
      refuse(`messages: Unexpected role "${stringOf(role) ?? ''}". Allowed roles are "user" or "assistant"`)
    }
    const blocks = arrayOf(message.content).map(objectOf)
    if (message.content === '' || (Array.isArray(message.content) && blocks.length === 0)) {
      if (index < messages.length - 1 || role === 'user') {
        refuse(
          `messages.${index}: all messages must have non-empty content except for the optional final assistant message`,
        )
      }
    }
    checkBlocks(blocks, index)
    const answered = blocks
      .filter(({ type }) => type === 'tool_result')
      .map(({ tool_use_id }) => stringOf(tool_use_id) ?? '')
    for (const [at, id] of answered.entries()) {
      if (!open.includes(id)) {
        refuse(
          `messages.${index}.content.${at}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`,
        )
      }
    }
    checkAnswered(
      open.filter((id) => !answered.includes(id)),
      index,
    )
    open = blocks.filter(({ type }) => type === 'tool_use').map(({ id }) => stringOf(id) ?? '')
  }
  checkAnswered(open, messages.length)
}

function checkBlocks(blocks: readonly JsonObject[], index: number): void {
  for (const [at, block] of blocks.entries()) {
    if (block.type === 'text' && block.text === '') {
      refuse(`messages.${index}.content.${at}.text: text content blocks must be non-empty`)
    }
    if (block.type === 'text' && stringOf(block.text)?.trim() === '') {
      refuse('messages: text content blocks must contain non-whitespace text')
    }
    if (block.type === 'tool_use' && !isObject(block.input)) {
      refuse(`messages.${index}.content.${at}.tool_use.input: Input should be an object`)
    }
  }
}

function checkAnswered(open: readonly string[], index: number): void {
  if (open.length > 0) {
    refuse(
      `messages.${index - 1}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${open.join(', ')}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`,
    )
  }
}

function modelInputOf(body: JsonObject, model: string, messages: readonly JsonObject[]): ModelInput {
  const last = messages.findLast(
    ({ role, content }) => role === 'user' && (textOf(content) !== '' || imagesIn(content).length > 0),
  )
  const format = objectOf(objectOf(body.output_config).format)
  const choice = objectOf(body.tool_choice)
  const thinking = objectOf(body.thinking).type
  return {
    model,
    prompt: textOf(last?.content),
    results: resultsIn(messages),
    tools: arrayOf(body.tools)
      .map(objectOf)
      .filter(isCustom)
      .map((tool) => ({ name: stringOf(tool.name) ?? '', schema: tool.input_schema })),
    choice: choiceOf(choice),
    parallel: choice.disable_parallel_tool_use !== true,
    images: imagesIn(last?.content),
    json: format.type === 'json_schema' ? (format.schema ?? true) : undefined,
    stop: arrayOf(body.stop_sequences).filter((stop) => typeof stop === 'string'),
    limit: numberOf(body.max_tokens),
    thinking: thinking === 'enabled' || thinking === 'adaptive',
    inputChars:
      messages.reduce((sum, { content }) => sum + textOf(content).length + 12, 0) +
      textOf(body.system).length +
      (body.tools === undefined ? 0 : JSON.stringify(body.tools).length),
  }
}

function choiceOf(choice: JsonObject): ModelInput['choice'] {
  const name = stringOf(choice.name)
  if (choice.type === 'tool' && name !== undefined) {
    return { name }
  }
  return choice.type === 'any' ? 'required' : choice.type === 'none' ? 'none' : 'auto'
}

function imagesIn(content: JsonValue | undefined): string[] {
  return arrayOf(content)
    .map(objectOf)
    .filter(({ type }) => type === 'image')
    .map((part) => stringOf(objectOf(part.source).media_type) ?? 'image by URL')
}

function resultsIn(messages: readonly JsonObject[]): ToolResult[] {
  const names = new Map<string, string>()
  for (const block of messages.flatMap(({ content }) => arrayOf(content).map(objectOf))) {
    if (block.type === 'tool_use') {
      names.set(stringOf(block.id) ?? '', stringOf(block.name) ?? '')
    }
  }
  return arrayOf(messages.at(-1)?.content)
    .map(objectOf)
    .filter(({ type }) => type === 'tool_result')
    .map((block) => ({
      name: names.get(stringOf(block.tool_use_id) ?? ''),
      text: textOf(block.content),
    }))
}

/** Models whose thinking is bound to the conversation before it. */
const BINDS = /^claude-\w+-5-[1-9](?!\d)/
const BETA = 'thinking-binding-controls-2026-08-01'

/** The signature of the thinking of a reply to `body`. */
export function thinkingSignature(body: JsonObject, thinking: string, random: RandomSource): string {
  const messages = arrayOf(body.messages).map(objectOf)
  return signState([thinking, prefixOf(body, messages, [])], random, 152)
}

/** Refuses altered thinking, and missing thinking if it is required. */
function checkThinking(body: JsonObject, beta: JsonValue | undefined, model: string): void {
  const messages = arrayOf(body.messages).map(objectOf)
  const thinking = objectOf(body.thinking)
  for (const [index, message] of messages.entries()) {
    const blocks = arrayOf(message.content).map(objectOf)
    for (const [at, block] of blocks.entries()) {
      if (block.type !== 'thinking') {
        continue
      }
      const prefix = prefixOf(body, messages.slice(0, index), blocks.slice(0, at))
      const fits = checkBlock(block, prefix, `messages.${index}.content.${at}`)
      if (!fits && BINDS.test(model) && !isDropping(thinking, beta)) {
        refuse(
          `messages.${index}.content.${at}: Invalid \`signature\` in \`thinking\` block. The block is bound to a different conversation. Remove the block, or set \`thinking.block_binding.prefix_mismatch_behavior\` to "drop_block".`,
        )
      }
    }
  }
  if (thinking.type === 'enabled') {
    checkLoop(messages)
  }
}

/** Whether the block follows the conversation that it was generated for. */
function checkBlock(block: JsonObject, prefix: string, path: string): boolean {
  const signature = stringOf(block.signature) ?? refuse(`${path}.signature: Field required`)
  const [own = false, before = false] = verifyState([stringOf(block.thinking) ?? '', prefix], signature)
  if (!own) {
    refuse(`${path}: Invalid \`signature\` in \`thinking\` block`)
  }
  return before
}

function isDropping(thinking: JsonObject, beta: JsonValue | undefined): boolean {
  const { prefix_mismatch_behavior } = objectOf(thinking.block_binding)
  return prefix_mismatch_behavior === 'drop_block' && stringOf(beta)?.includes(BETA) === true
}

/** The conversation before a block, without cache control. */
function prefixOf(body: JsonObject, messages: readonly JsonObject[], blocks: readonly JsonObject[]): string {
  const { system, tools } = body
  return JSON.stringify([system ?? null, tools ?? null, messages, blocks], (key, value: unknown) =>
    key === 'cache_control' ? undefined : value,
  )
}

/** In a tool loop, the assistant message with the calls must start with thinking. */
function checkLoop(messages: readonly JsonObject[]): void {
  const last = arrayOf(messages.at(-1)?.content)
  const index = messages.findLastIndex(({ role }) => role === 'assistant')
  const [first] = arrayOf(messages[index]?.content).map(objectOf)
  if (!last.some((block) => isObject(block) && block.type === 'tool_result')) {
    return
  }
  if (first?.type !== 'thinking' && first?.type !== 'redacted_thinking') {
    const found = stringOf(first?.type) ?? ''
    refuse(
      `messages.${index}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${found}\`. When \`thinking\` is enabled, a final \`assistant\` message must start with a thinking block.`,
    )
  }
}

const COMMON = {
  'anthropic-organization-id': '00000000-0000-4000-8000-000000000000',
  'anthropic-ratelimit-input-tokens-limit': '4000000',
  'anthropic-ratelimit-input-tokens-remaining': '4000000',
  'anthropic-ratelimit-input-tokens-reset': '2026-01-01T00:00:00Z',
  'anthropic-ratelimit-output-tokens-limit': '800000',
  'anthropic-ratelimit-output-tokens-remaining': '800000',
  'anthropic-ratelimit-output-tokens-reset': '2026-01-01T00:00:00Z',
  'anthropic-ratelimit-requests-limit': '20000',
  'anthropic-ratelimit-requests-remaining': '19999',
  'anthropic-ratelimit-requests-reset': '2026-01-01T00:00:00Z',
  vary: 'Accept-Encoding',
}
/** Headers of a whole reply. */
export const WHOLE = { 'content-type': 'application/json', ...COMMON }
/** Headers of a stream. */
export const STREAM = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache',
  ...COMMON,
}

const TYPES: Record<number, string> = {
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  409: 'conflict_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  500: 'api_error',
  504: 'timeout_error',
  529: 'overloaded_error',
}
const REQUEST_ID = 'req_011EmulatedEmulatedEmulat'

/** The frames of errors, unknown events and keep-alives. */
export const anthropicFrames: FrameWriter = {
  errorBody: (status, message, type) =>
    anthropicError(type ?? TYPES[status] ?? (status >= 500 ? 'api_error' : 'invalid_request_error'), message),
  errorEvent: (type) =>
    named(
      'error',
      JSON.stringify({
        type: 'error',
        error: { details: null, type: type ?? 'overloaded_error', message: 'Overloaded' },
        request_id: REQUEST_ID,
      }),
    ),
  unknownEvent: () =>
    'event: future_event\ndata: {"type":"future_event","index":0,"invented":{"depth":1}}\n\n',
  frame: (data) => named('content_block_delta', data),
  textEvent: (text) =>
    named(
      'content_block_delta',
      `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":${JSON.stringify(text)}}}`,
    ),
  ping: () => PING,
  streamHeaders: STREAM,
  wholeHeaders: WHOLE,
}

/** The keep-alive event, byte for byte. */
export const PING = 'event: ping\ndata: {"type": "ping"}\n\n'

function named(name: string, data: string): string {
  return `event: ${name}\ndata: ${data}\n\n`
}

function anthropicError(type: string, message: string): string {
  return JSON.stringify({ type: 'error', error: { type, message }, request_id: REQUEST_ID })
}

/** Throws a refusal with Anthropic's error body. */
function refuseAnthropic(status: number, message: string, type?: string): never {
  const body = anthropicFrames.errorBody(status, message, type)
  throw new Refusal(errorReply(status, WHOLE, body))
}
