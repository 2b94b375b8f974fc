/**
 * Decodes and validates a messages request with Anthropic's rules and error messages.
 */
import { checkThinking } from './check-thinking.js'
import { refuseAnthropic } from './errors.js'
import { textOf } from '../openai/decode-chat-request.js'
import { arrayOf, isObject, numberOf, objectOf, stringOf } from '../../chat/json.js'
import type { JsonObject, JsonValue } from '../../chat/json.js'
import type { ModelInput, ParsedRequest, ToolResult } from '../emulated-exchange.js'

/** A valid messages request. */
export interface AnthropicRequest {
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
      body.messages === undefined
        ? 'messages: Field required'
        : 'messages: at least one message is required',
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
      refuse(
        `messages: Unexpected role "${stringOf(role) ?? ''}". Allowed roles are "user" or "assistant"`,
      )
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

function modelInputOf(
  body: JsonObject,
  model: string,
  messages: readonly JsonObject[],
): ModelInput {
  const last = messages.findLast(
    ({ role, content }) =>
      role === 'user' && (textOf(content) !== '' || imagesIn(content).length > 0),
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
