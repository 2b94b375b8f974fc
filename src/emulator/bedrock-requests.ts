/**
 * Decodes and validates requests to Bedrock: the path, the key, and the bodies of Converse with its rules and
 * error messages.
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
import { AWS_EVENT_STREAM, awsEvent, awsException } from './aws-event-stream.js'
import {
  errorReply,
  Refusal,
  type FrameWriter,
  type ModelInput,
  type ParsedRequest,
  type ToolResult,
} from './emulated-exchange.js'
import { verifyState } from './state-signatures.js'

/** What a path of the runtime does with a model. */
export type BedrockAction =
  'invoke' | 'invoke-with-response-stream' | 'converse' | 'converse-stream' | 'count-tokens'

const PATH = /^\/model\/([^/]+)\/(invoke|invoke-with-response-stream|converse|converse-stream|count-tokens)$/

/** The model and the action of a path; null for any other path. */
export function bedrockPath(path: string): { model: string; action: BedrockAction } | null {
  const [, model, action] = PATH.exec(path) ?? []
  if (model === undefined || action === undefined) return null
  return { model: decodeURIComponent(model), action: action as BedrockAction }
}

/** Headers of a whole reply. */
export const WHOLE = { 'content-type': 'application/json' }
/** Headers of a stream. */
export const STREAM = { 'content-type': AWS_EVENT_STREAM }

const NAMES: Readonly<Record<number, string>> = {
  400: 'ValidationException',
  403: 'AccessDeniedException',
  404: 'ResourceNotFoundException',
  408: 'ModelTimeoutException',
  424: 'ModelErrorException',
  429: 'ThrottlingException',
  503: 'ServiceUnavailableException',
}

/** Throws a refusal with an error of Bedrock. */
export function refuseBedrock(status: number, message: string, name?: string): never {
  const type = `${name ?? nameOf(status)}:http://internal.amazon.com/coral/com.amazon.bedrock/`
  const headers = { ...WHOLE, 'x-amzn-errortype': type }
  throw new Refusal(errorReply(status, headers, JSON.stringify({ message })))
}

function nameOf(status: number): string {
  return NAMES[status] ?? (status >= 500 ? 'InternalServerException' : 'ValidationException')
}

function refuse(message: string): never {
  refuseBedrock(400, message)
}

/** The frames of errors and unknown events; `isChunked`: those of InvokeModel. */
export function bedrockFrames(isChunked: boolean): FrameWriter {
  const delta = (payload: string): Buffer =>
    isChunked ? awsChunk(payload) : awsEvent('contentBlockDelta', payload)
  return {
    errorBody: (status, message, type) =>
      JSON.stringify({ message, __type: `com.amazon.coral.service#${type ?? nameOf(status)}` }),
    errorEvent: (type) => awsException(type ?? 'throttlingException', 'Too many requests.'),
    unknownEvent: () => awsEvent('futureEvent', { invented: { depth: 1 } }),
    frame: delta,
    textEvent: (text) => {
      const event = { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } }
      return delta(JSON.stringify(isChunked ? event : { contentBlockIndex: 0, delta: { text } }))
    },
    // There are no keep-alive events: clients skip events that they do not know.
    ping: () => awsEvent('futureEvent', {}),
    streamHeaders: STREAM,
    wholeHeaders: WHOLE,
  }
}

/** An event of a model's own format, as InvokeModel sends it. */
export function awsChunk(json: string): Buffer {
  return awsEvent('chunk', { bytes: Buffer.from(json).toString('base64'), p: 'abcdefghijk' })
}

/** Refuses requests without a key or signature, and keys with "invalid" in them. */
export function checkBedrockKey({ headers }: ParsedRequest): void {
  const { authorization } = headers
  if (authorization === undefined) {
    refuseBedrock(403, 'Missing Authentication Token', 'MissingAuthenticationTokenException')
  }
  if (authorization.includes('invalid')) {
    const message = 'The security token included in the request is invalid.'
    refuseBedrock(403, message, 'UnrecognizedClientException')
  }
}

const VENDORS =
  /^(?:(?:us|eu|apac|jp|au|ca|sa|us-gov|global)\.)?(?:ai21|amazon|anthropic|cohere|deepseek|google|meta|minimax|mistral|moonshot|moonshotai|nvidia|openai|qwen|stability|twelvelabs|writer|zai)\.[\w.:-]+$/
const ARN = /^arn:aws[\w-]*:bedrock:[\w-]*:\d*:[\w-]+\/[\w.:/-]+$/

/** Refuses ids that are no model; tokens are counted for foundation models alone. */
export function checkModel({ anyModel }: ParsedRequest, model: string, isCount: boolean): void {
  const isProfile = /^(?:us|eu|apac|jp|au|ca|sa|us-gov|global)\./.test(model)
  const isKnown = anyModel || VENDORS.test(model) || ARN.test(model)
  if (!isKnown || (isCount && isProfile)) refuse('The provided model identifier is invalid.')
}

/** The input of the model. Throws a `Refusal` with Bedrock's error for an invalid body. */
export function readConverse(body: JsonObject, model: string): ModelInput {
  const messages = arrayOf(body.messages).map(objectOf)
  checkMembers(body)
  checkTurns(messages)
  checkTools(objectOf(body.toolConfig), messages, body.toolConfig === undefined)
  checkCachePoints(body)
  const names = new Set<string>()
  for (const [index, { content }] of messages.entries()) {
    for (const [at, block] of arrayOf(content).map(objectOf).entries()) {
      checkBlock(block, { path: `messages.${index}.content.${at}`, names, model })
    }
  }
  return modelInputOf(body, model, messages)
}

const MEMBERS = new Set(
  (
    'messages system inferenceConfig toolConfig guardrailConfig additionalModelRequestFields ' +
    'additionalModelResponseFieldPaths promptVariables requestMetadata performanceConfig ' +
    'serviceTier outputConfig'
  ).split(' '),
)

/** Bedrock ignores members that it does not have; here they are mistakes of the client. */
function checkMembers(body: JsonObject): void {
  for (const name of Object.keys(body)) {
    if (!MEMBERS.has(name)) refuse(`emulator: Converse has no member '${name}'`)
  }
  const { temperature, topP, maxTokens } = objectOf(body.inferenceConfig)
  for (const [name, value] of Object.entries({ temperature, topP })) {
    const number = numberOf(value)
    if (number !== undefined && (number < 0 || number > 1)) {
      const rule = 'Member must have value less than or equal to 1'
      refuse(
        `1 validation error detected: Value at 'inferenceConfig.${name}' failed to satisfy constraint: ${rule}`,
      )
    }
  }
  if (maxTokens !== undefined && (numberOf(maxTokens) ?? 0) < 1) {
    refuse("Value at 'inferenceConfig.maxTokens' failed to satisfy constraint: at least 1")
  }
  for (const block of arrayOf(body.system).map(objectOf)) {
    if (block.text !== undefined) checkText(block.text, 'system')
  }
}

function checkTurns(messages: readonly JsonObject[]): void {
  if (messages.length === 0) refuse('The messages field is required.')
  const [first] = messages
  if (first?.role !== 'user') refuse('A conversation must start with a user message. Try again.')
  let previous: JsonValue | undefined
  let open: string[] = []
  for (const [index, { role, content }] of messages.entries()) {
    if (role !== 'user' && role !== 'assistant' && role !== 'system') refuse('Unknown role.')
    if (role === previous) {
      refuse('A conversation must alternate between user and assistant roles. Try again.')
    }
    previous = role
    const blocks = arrayOf(content).map(objectOf)
    if (blocks.length === 0) {
      refuse(`The content field in the Message object at messages.${index} is empty.`)
    }
    const answered = idsOf(blocks, 'toolResult')
    const isSame = answered.length === open.length && open.every((id) => answered.includes(id))
    if (!isSame && role !== 'assistant') {
      refuse(
        `Expected toolResult blocks at messages.${index}.content for the following Ids: ${open.join(', ')}`,
      )
    }
    if (role === 'assistant' || answered.length > 0) open = idsOf(blocks, 'toolUse')
  }
}

/** The ids of calls or results, without those of Bedrock's own tools. */
function idsOf(blocks: readonly JsonObject[], kind: 'toolUse' | 'toolResult'): string[] {
  return blocks.flatMap(({ [kind]: block }) => {
    const { toolUseId, type } = objectOf(block)
    const isOwn = type !== undefined && type !== 'tool_use'
    return isObject(block) && !isOwn ? [stringOf(toolUseId) ?? ''] : []
  })
}

const NAME = /^[a-zA-Z0-9_-]{1,64}$/

function checkTools(config: JsonObject, messages: readonly JsonObject[], isMissing: boolean): void {
  const blocks = messages.flatMap(({ content }) => arrayOf(content).map(objectOf))
  const hasCalls = blocks.some(({ toolUse, toolResult }) => (toolUse ?? toolResult) !== undefined)
  if (isMissing) {
    if (!hasCalls) return
    refuse('The toolConfig field must be defined when using toolUse and toolResult content blocks.')
  }
  const tools = arrayOf(config.tools).map(objectOf)
  if (tools.length === 0) refuse("Value at 'toolConfig.tools' failed to satisfy constraint")
  for (const [at, { toolSpec }] of tools.entries()) {
    if (toolSpec === undefined) continue
    const { name, description, inputSchema } = objectOf(toolSpec)
    if (!NAME.test(stringOf(name) ?? '')) {
      refuse(
        `Value '${stringOf(name) ?? ''}' at 'toolConfig.tools.${at + 1}.member.toolSpec.name' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_-]+`,
      )
    }
    if (description === '') refuse('The description field of a tool is empty.')
    if (objectOf(objectOf(inputSchema).json).type !== 'object') {
      refuse(
        `The value at toolConfig.tools.${at}.toolSpec.inputSchema.json.type must be one of the following: object.`,
      )
    }
  }
}

function checkCachePoints(body: JsonObject): void {
  const points = JSON.stringify(body).split('"cachePoint":').length - 1
  if (points > 4) refuse('A maximum of 4 blocks with cache_control may be provided.')
}

/** The place of a block. */
interface BlockContext {
  readonly path: string
  /** The names of documents so far. */
  readonly names: Set<string>
  readonly model: string
}

function checkBlock(block: JsonObject, context: BlockContext): void {
  const { path, names } = context
  const keys = Object.keys(block)
  if (keys.length !== 1) {
    refuse(`The format of the value at ${path} is invalid. Provide exactly one member.`)
  }
  const { text, toolUse, toolResult, document, image, reasoningContent } = block
  if (text !== undefined) checkText(text, path)
  if (toolUse !== undefined) checkCall(objectOf(toolUse), path)
  if (toolResult !== undefined) {
    for (const [at, part] of arrayOf(objectOf(toolResult).content).map(objectOf).entries()) {
      checkBlock(part, { ...context, path: `${path}.toolResult.content.${at}` })
    }
  }
  if (image !== undefined) checkSource(objectOf(image), path)
  if (document !== undefined) checkDocument(objectOf(document), path, names)
  if (reasoningContent !== undefined) checkReasoning(objectOf(reasoningContent), context)
}

function checkText(text: JsonValue, path: string): void {
  if (typeof text === 'string' && text.trim() !== '') return
  refuse(
    `The text field in the ContentBlock object at ${path} is blank. Add text to the text field, and try again.`,
  )
}

function checkCall({ toolUseId, name, input }: JsonObject, path: string): void {
  if (!NAME.test(stringOf(toolUseId) ?? '')) refuse(`The toolUseId at ${path} is invalid.`)
  if (!NAME.test(stringOf(name) ?? '')) refuse(`The name at ${path}.toolUse is invalid.`)
  if (!isObject(input)) {
    refuse(`The format of the value at ${path}.toolUse.input is invalid. Provide a json object.`)
  }
}

function checkSource({ format, source }: JsonObject, path: string): void {
  const { bytes, s3Location } = objectOf(source)
  if (typeof format === 'string' && ((bytes ?? '') !== '' || isObject(s3Location))) return
  refuse(`The format and source of the media at ${path} are required.`)
}

const DOCUMENT_NAME = /^(?!.* {2})[A-Za-z0-9 ()[\]-]{1,200}$/

function checkDocument(document: JsonObject, path: string, names: Set<string>): void {
  checkSource(document, path)
  const name = stringOf(document.name) ?? ''
  if (!DOCUMENT_NAME.test(name)) {
    refuse(
      'The document file name can only contain alphanumeric characters, whitespace characters, hyphens, parentheses, and square brackets. The name can’t contain more than one consecutive whitespace character.',
    )
  }
  if (names.has(name)) refuse(`The document names must be unique: ${name}.`)
  names.add(name)
}

/** Claude verifies its signatures; other models have none. */
function checkReasoning({ reasoningText, redactedContent }: JsonObject, context: BlockContext): void {
  if (redactedContent !== undefined || !isClaude(context.model)) return
  const { text, signature } = objectOf(reasoningText)
  const [isOwn = false] = verifyState([stringOf(text) ?? '', ''], stringOf(signature) ?? '')
  if (isOwn) return
  refuse(
    `The model returned the following errors: ${context.path}: Invalid \`signature\` in \`thinking\` block`,
  )
}

/** Whether the model is one of Anthropic's. */
export function isClaude(model: string): boolean {
  return model.includes('anthropic.')
}

function modelInputOf(body: JsonObject, model: string, messages: readonly JsonObject[]): ModelInput {
  const last = messages.findLast(
    ({ role, content }) => role === 'user' && (textIn(content) !== '' || imagesIn(content).length > 0),
  )
  const { tools, toolChoice } = objectOf(body.toolConfig)
  const { stopSequences, maxTokens } = objectOf(body.inferenceConfig)
  const { textFormat, effort } = objectOf(body.outputConfig)
  const { thinking } = objectOf(body.additionalModelRequestFields)
  const { type } = objectOf(thinking)
  const schema = stringOf(objectOf(objectOf(objectOf(textFormat).structure).jsonSchema).schema)
  return {
    model,
    prompt: textIn(last?.content),
    results: resultsIn(messages),
    tools: arrayOf(tools).flatMap((tool) => {
      const { toolSpec } = objectOf(tool)
      if (!isObject(toolSpec)) return []
      const { json } = objectOf(toolSpec.inputSchema)
      return [{ name: stringOf(toolSpec.name) ?? '', schema: json }]
    }),
    choice: choiceOf(objectOf(toolChoice)),
    parallel: true,
    images: imagesIn(last?.content),
    json: schema === undefined ? undefined : (JSON.parse(schema) as JsonValue),
    stop: arrayOf(stopSequences).filter((stop) => typeof stop === 'string'),
    limit: numberOf(maxTokens),
    thinking: isClaude(model) ? type === 'enabled' || type === 'adaptive' : effort !== undefined,
    inputChars:
      messages.reduce((sum, { content }) => sum + textIn(content).length + 12, 0) +
      textIn(body.system).length +
      (tools === undefined ? 0 : JSON.stringify(tools).length),
  }
}

function choiceOf({ any, tool }: JsonObject): ModelInput['choice'] {
  const name = stringOf(objectOf(tool).name)
  if (name !== undefined) return { name }
  return any === undefined ? 'auto' : 'required'
}

function textIn(content: JsonValue | undefined): string {
  return arrayOf(content)
    .map((block) => stringOf(objectOf(block).text) ?? '')
    .join('')
}

function imagesIn(content: JsonValue | undefined): string[] {
  return arrayOf(content).flatMap((block) => {
    const { image } = objectOf(block)
    return isObject(image) ? [`image/${stringOf(image.format) ?? ''}`] : []
  })
}

function resultsIn(messages: readonly JsonObject[]): ToolResult[] {
  const names = new Map<string, string>()
  for (const block of messages.flatMap(({ content }) => arrayOf(content).map(objectOf))) {
    const { toolUseId, name } = objectOf(block.toolUse)
    names.set(stringOf(toolUseId) ?? '', stringOf(name) ?? '')
  }
  return arrayOf(messages.at(-1)?.content).flatMap((block) => {
    const { toolResult } = objectOf(block)
    if (!isObject(toolResult)) return []
    const { toolUseId, content } = toolResult
    return [{ name: names.get(stringOf(toolUseId) ?? ''), text: textIn(content) }]
  })
}
