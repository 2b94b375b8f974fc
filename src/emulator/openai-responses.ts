/**
 * OpenAI's Responses: decodes and validates requests, and replies whole and streamed. Replies follow
 * recorded traffic of 2025–2026.
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
  replyInForm,
  wholeReply,
  type ModelOutput,
  type ParsedRequest,
  type Reply,
  type FrameWriter,
  type ModelInput,
  type ToolResult,
} from './emulated-exchange.js'
import { generateOutput, splitText, tokenProbabilities, type TokenProbability } from './model-output.js'
import { datedModel } from './openai-chat-replies.js'
import {
  STREAM,
  WHOLE,
  openAiFrames,
  refuseOpenAi,
  reasons,
  checkOpenAiKey,
  isOpenAiModel,
  mediaTypeOf,
  textOf,
  refuse,
} from './openai-requests.js'
import { seededRandom, lettersOf, type RandomSource } from './seeded-random.js'
import { signState, verifyState } from './state-signatures.js'

function framed(event: JsonObject): string {
  const { type } = event
  return `event: ${typeof type === 'string' ? type : 'message'}\ndata: ${JSON.stringify(event)}\n\n`
}

/** The frames of errors, unknown events and keep-alives of the Responses endpoint. */
export const responsesFrames: FrameWriter = {
  ...openAiFrames,
  errorEvent: (type) => {
    const error = {
      code: type ?? 'server_error',
      message: 'An error occurred while processing your request.',
    }
    const created = framed({
      type: 'error',
      error: { type: type ?? 'server_error', ...error, param: null },
      sequence_number: 2,
    })
    const response = { id: 'resp_failed', object: 'response', status: 'failed', error, output: [] }
    return `${created}${framed({ type: 'response.failed', response, sequence_number: 3 })}`
  },
  unknownEvent: () => framed({ type: 'response.future', invented: { depth: 1 }, sequence_number: 0 }),
  frame: (data) => `event: response.output_text.delta\ndata: ${data}\n\n`,
  textEvent: (text) =>
    framed({
      type: 'response.output_text.delta',
      content_index: 0,
      delta: text,
      item_id: 'msg_giant',
      logprobs: [],
      output_index: 0,
      sequence_number: 0,
    }),
}

/** The body of `POST /responses/input_tokens`. */
export function responsesCount(request: ParsedRequest): Reply {
  const { modelInput } = readResponses(request)
  const body = {
    object: 'response.input_tokens',
    input_tokens: generateOutput(modelInput, request.seed).usage.input,
  }
  return wholeReply(WHOLE, JSON.stringify(body))
}

/** The reply to `POST /responses/compact`: one item that only this endpoint's vendor can read. */
export function responsesCompaction(request: ParsedRequest): Reply {
  const { modelInput } = readResponses(request)
  const random = seededRandom(request.seed)
  const { usage } = generateOutput(modelInput, request.seed)
  const item = {
    id: idOf('cmp', random),
    type: 'compaction',
    encrypted_content: signState([''], random, 64),
  }
  const body = {
    id: idOf('resp', random),
    object: 'response.compaction',
    created_at: request.now,
    output: [item],
    usage: {
      input_tokens: usage.input,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: usage.output,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: usage.input + usage.output,
    },
  }
  return { ...wholeReply(WHOLE, JSON.stringify(body)), counted: usage }
}

/** The reply to `POST /responses`. */
export function responsesReply(request: ParsedRequest): Reply {
  const decoded = readResponses(request)
  const modelOutput = generateOutput(decoded.modelInput, request.seed)
  const random = seededRandom(request.seed)
  const head = headOf(request, decoded, random)
  const items = itemsOf(modelOutput, decoded, random)
  const final: JsonObject = {
    ...head,
    status: modelOutput.end === 'length' ? 'incomplete' : 'completed',
    incomplete_details: modelOutput.end === 'length' ? { reason: 'max_output_tokens' } : null,
    output: items.map(({ whole }) => whole),
    usage: {
      input_tokens: modelOutput.usage.input,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: modelOutput.usage.output,
      output_tokens_details: { reasoning_tokens: modelOutput.usage.thinking },
      total_tokens: modelOutput.usage.input + modelOutput.usage.output,
    },
  }
  return replyInForm(decoded.stream, {
    wholeHeaders: WHOLE,
    body: () => `${JSON.stringify(final, undefined, 2)}\n`,
    streamHeaders: STREAM,
    units: () => streamOf(head, final, items),
    counted: modelOutput.usage,
  })
}

/** An output item: whole, at its start in a stream, and the events in between. */
interface Item {
  readonly whole: JsonObject
  readonly start: JsonObject
  readonly events: readonly JsonObject[]
}

function itemsOf(modelOutput: ModelOutput, request: ResponsesRequest, random: RandomSource): Item[] {
  const items: Item[] = []
  if (modelOutput.thinking !== '') {
    items.push(reasoningItem(modelOutput, request, random))
  }
  if (modelOutput.calls.length === 0) {
    items.push(messageItem(modelOutput, request, random))
  }
  for (const { name, args } of modelOutput.calls) {
    const id = idOf('fc', random)
    const head = { id, type: 'function_call', call_id: `call_${lettersOf(random, 24)}`, name }
    const text = JSON.stringify(args)
    const position = { item_id: id }
    items.push({
      whole: { ...head, status: 'completed', arguments: text },
      start: { ...head, status: 'in_progress', arguments: '' },
      events: [
        ...(text.match(/[\s\S]{1,6}/gu) ?? []).map((delta) => ({
          type: 'response.function_call_arguments.delta',
          delta,
          ...position,
          obfuscation: lettersOf(random, 1 + (random() % 12)),
        })),
        { type: 'response.function_call_arguments.done', arguments: text, ...position },
      ],
    })
  }
  return items
}

function reasoningItem(modelOutput: ModelOutput, request: ResponsesRequest, random: RandomSource): Item {
  const id = idOf('rs', random)
  const sealed = request.sealed ? { encrypted_content: signState([''], random, 196) } : {}
  const part = { type: 'summary_text', text: modelOutput.thinking }
  const summary = request.summarised ? [part] : []
  const head = { id, type: 'reasoning', ...sealed }
  const position = { item_id: id, summary_index: 0 }
  const chunks = splitText(modelOutput.thinking)
  const summaryEvents: JsonObject[] = [
    {
      type: 'response.reasoning_summary_part.added',
      part: { type: 'summary_text', text: '' },
      ...position,
    },
    ...chunks.map((delta) => ({
      type: 'response.reasoning_summary_text.delta',
      delta,
      ...position,
      obfuscation: lettersOf(random, 1 + (random() % 12)),
    })),
    { type: 'response.reasoning_summary_text.done', text: modelOutput.thinking, ...position },
    { type: 'response.reasoning_summary_part.done', part, ...position },
  ]
  return {
    whole: { ...head, summary },
    start: { ...head, summary: [] },
    events: request.summarised ? summaryEvents : [],
  }
}

function messageItem(
  modelOutput: ModelOutput,
  { topLogprobs }: ResponsesRequest,
  random: RandomSource,
): Item {
  const id = idOf('msg', random)
  const tokens = topLogprobs === undefined ? [] : tokenProbabilities(modelOutput, topLogprobs)
  const whole = tokens.map((token) => logprobsOf(token, bytesOf))
  const bare = tokens.map((token) => logprobsOf(token, () => ({})))
  const part = { type: 'output_text', annotations: [], logprobs: whole, text: modelOutput.text }
  const head = { id, type: 'message' }
  const position = { content_index: 0, item_id: id }
  return {
    whole: {
      ...head,
      status: modelOutput.end === 'length' ? 'incomplete' : 'completed',
      content: [part],
      role: 'assistant',
    },
    start: { ...head, status: 'in_progress', content: [], role: 'assistant' },
    events: [
      {
        type: 'response.content_part.added',
        ...position,
        part: { ...part, logprobs: [], text: '' },
      },
      ...modelOutput.chunks.map((delta, at) => ({
        type: 'response.output_text.delta',
        ...position,
        delta,
        logprobs: bare.slice(at, at + 1),
        obfuscation: lettersOf(random, 1 + (random() % 12)),
      })),
      { type: 'response.output_text.done', ...position, logprobs: bare, text: modelOutput.text },
      { type: 'response.content_part.done', ...position, part },
    ],
  }
}

/** Only whole replies contain `bytes`. */
function bytesOf(token: string): JsonObject {
  return { bytes: [...Buffer.from(token)] }
}

function logprobsOf(
  { token, logprob, alternatives }: TokenProbability,
  more: (token: string) => JsonObject,
): JsonObject {
  const top_logprobs = alternatives.map((rival) => ({ ...rival, ...more(rival.token) }))
  return { token, logprob, ...more(token), top_logprobs }
}

function streamOf(head: JsonObject, final: JsonObject, items: readonly Item[]): string[] {
  const units: string[] = []
  const add = (event: JsonObject): void => {
    units.push(framed({ ...event, sequence_number: units.length }))
  }
  add({ type: 'response.created', response: head })
  add({ type: 'response.in_progress', response: head })
  for (const [output_index, { whole, start, events }] of items.entries()) {
    add({ type: 'response.output_item.added', item: start, output_index })
    for (const event of events) {
      add({ ...event, output_index })
    }
    add({ type: 'response.output_item.done', item: whole, output_index })
  }
  add({
    type: final.status === 'incomplete' ? 'response.incomplete' : 'response.completed',
    response: final,
  })
  return units
}

/** An id in the form of the Responses endpoint. */
function idOf(prefix: string, random: RandomSource): string {
  let hex = ''
  while (hex.length < 50) {
    hex += random().toString(16).padStart(8, '0')
  }
  return `${prefix}_${hex.slice(0, 50)}`
}

/** The members of a response before its output. */
function headOf(
  request: ParsedRequest,
  { modelInput, body }: ResponsesRequest,
  random: RandomSource,
): JsonObject {
  return {
    id: idOf('resp', random),
    object: 'response',
    created_at: request.now,
    status: 'in_progress',
    background: false,
    error: null,
    incomplete_details: null,
    instructions: body.instructions ?? null,
    max_output_tokens: body.max_output_tokens ?? null,
    max_tool_calls: null,
    model: datedModel(modelInput.model),
    output: [],
    parallel_tool_calls: modelInput.parallel,
    previous_response_id: null,
    prompt_cache_key: null,
    reasoning: { effort: null, summary: null },
    safety_identifier: null,
    service_tier: 'default',
    store: body.store ?? true,
    temperature: body.temperature ?? 1,
    text: body.text ?? { format: { type: 'text' }, verbosity: 'medium' },
    tool_choice: body.tool_choice ?? 'auto',
    tools: body.tools ?? [],
    top_logprobs: body.top_logprobs ?? 0,
    top_p: body.top_p ?? 1,
    truncation: 'disabled',
    usage: null,
    user: null,
    metadata: body.metadata ?? {},
  }
}

/** A valid Responses request. */
interface ResponsesRequest {
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
    refuse('input', `Item '${id}' of type 'reasoning' was provided without its required following item.`)
  }
}

/** Verifies encrypted reasoning and compactions by their signature. */
function checkSealed(items: readonly JsonObject[]): void {
  for (const { type, encrypted_content } of items) {
    const isSealed = type === 'reasoning' || type === 'compaction'
    const sealed = isSealed ? stringOf(encrypted_content) : undefined
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
    refuse('temperature', "Unsupported parameter: 'temperature' is not supported with this model.", null)
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
