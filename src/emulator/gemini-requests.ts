/**
 * Decodes and validates a generateContent request with Gemini's rules and error messages. Names may be
 * camelCase or snake_case, as in protobuf JSON.
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
  type Tool,
  type ToolResult,
  type FrameWriter,
} from './emulated-exchange.js'
import type { RandomSource } from './seeded-random.js'
import { signState, verifyState } from './state-signatures.js'

/** A valid generateContent request. */
interface GeminiRequest {
  readonly modelInput: ModelInput
  readonly stream: boolean
  readonly showThoughts: boolean
  /** Number of candidates. */
  readonly count: number
  /** Number of alternatives per token; undefined without log probabilities. */
  readonly topLogprobs: number | undefined
}

const FAMILIES = /^(gemini-([1-9]|flash|pro)|gemma-)/

/** `countTokens` may wrap the request and its model in another object. */
function counted(body: JsonObject | undefined): JsonObject | undefined {
  const inner = body?.generateContentRequest
  if (!isObject(inner)) return body
  return Object.fromEntries(Object.entries(inner).filter(([key]) => key !== 'model'))
}

/** Throws a `Refusal` with Gemini's error for an invalid request. */
export function readGemini(request: ParsedRequest): GeminiRequest {
  checkGeminiKey(request)
  const [, model = '', method = ''] = /^\/models\/([^:]+):(\w+)$/.exec(request.path) ?? []
  if (!request.anyModel && !FAMILIES.test(model)) {
    refuseGemini(
      404,
      `models/${model} is not found for API version v1beta, or is not supported for ${method}. Call ModelService.ListModels to see the list of available models and their supported methods.`,
    )
  }
  const body = counted(request.body)
  if (body === undefined) {
    refuse('Invalid JSON payload received. Unexpected end of string. Expected a value.')
  }
  const fields = camel(body)
  checkFields(body, fields)
  const contents = arrayOf(fields.contents).filter(isObject)
  if (contents.length === 0) {
    refuse('* GenerateContentRequest.contents: contents is not specified\n')
  }
  checkContents(contents)
  const turns = contents.map((content) => {
    return { role: stringOf(content.role) ?? 'user', parts: partsOf(content) }
  })
  checkSignatures(turns, model)
  const config = camel(objectOf(fields.generationConfig))
  const thinking = camel(objectOf(config.thinkingConfig))
  if (thinking.thinkingLevel !== undefined && thinking.thinkingBudget !== undefined) {
    refuse('You can only set only one of thinking budget and thinking level.')
  }
  const stream = method === 'streamGenerateContent'
  return {
    modelInput: modelInputOf(model, { fields, config, thinking, contents }),
    stream,
    count: countOf(config, model, stream),
    topLogprobs: topLogprobsOf(config, model, stream),
    showThoughts: thinking.includeThoughts === true,
  }
}

/** Throws 400 API_KEY_INVALID if the key is missing or contains "invalid". */
export function checkGeminiKey(request: ParsedRequest): void {
  const header = request.headers['x-goog-api-key']
  const key = typeof header === 'string' ? header : (request.query.get('key') ?? '')
  if (key === '' || key.includes('invalid')) {
    refuseGemini(400, 'API key not valid. Please pass a valid API key.', [
      {
        '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
        reason: 'API_KEY_INVALID',
        domain: 'googleapis.com',
        metadata: { service: 'generativelanguage.googleapis.com' },
      },
    ])
  }
}

function refuse(message: string): never {
  refuseGemini(400, message)
}

function checkContents(contents: readonly JsonObject[]): void {
  const turns: { role: string; parts: JsonObject[] }[] = []
  for (const [index, content] of contents.entries()) {
    const role = content.role ?? 'user'
    if (role !== 'user' && role !== 'model' && role !== 'function') {
      refuse('Please use a valid role: user, model.')
    }
    const parts = partsOf(content)
    if (parts.length === 0) {
      refuse(`* GenerateContentRequest.contents[${index}].parts: contents.parts must not be empty.\n`)
    }
    // Consecutive contents of one role are one turn: Google's SDK keeps one content per chunk of a stream.
    const speaker = role === 'model' ? 'model' : 'user'
    const last = turns.at(-1)
    if (last?.role === speaker) last.parts.push(...parts)
    else turns.push({ role: speaker, parts: [...parts] })
  }
  checkTurns(turns.map(({ parts }) => parts))
}

function checkTurns(turns: readonly JsonObject[][]): void {
  let open: number | undefined
  for (const parts of turns) {
    const results = parts.filter((part) => part.functionResponse !== undefined).length
    if (results > 0 && results !== open) {
      refuse(
        open === undefined
          ? 'Please ensure that function response turn comes immediately after a function call turn.'
          : 'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.',
      )
    }
    if (results === 0 && open !== undefined) {
      refuse(
        'Please ensure that function call turn comes immediately after a user turn or after a function response turn.',
      )
    }
    const calls = parts.filter((part) => part.functionCall !== undefined).length
    open = calls > 0 ? calls : undefined
  }
}

function partsOf(content: JsonObject | undefined): JsonObject[] {
  return arrayOf(content?.parts).filter(isObject).map(camel)
}

function textOf(content: JsonObject | undefined): string {
  return partsOf(content)
    .filter(({ thought }) => thought !== true)
    .map(({ text }) => stringOf(text) ?? '')
    .join('')
}

/** A body and its inner objects, with camelCase names. */
interface DecodedBody {
  readonly fields: JsonObject
  readonly contents: readonly JsonObject[]
  readonly config: JsonObject
  readonly thinking: JsonObject
}

function modelInputOf(model: string, { fields, contents, config, thinking }: DecodedBody): ModelInput {
  const last = contents.findLast(
    (content) =>
      content.role !== 'model' && partsOf(content).every((part) => part.functionResponse === undefined),
  )
  const calling = camel(objectOf(camel(objectOf(fields.toolConfig)).functionCallingConfig))
  const allowed = arrayOf(calling.allowedFunctionNames)
  const tools = toolsIn(fields).filter(({ name }) => allowed.length === 0 || allowed.includes(name))
  return {
    model,
    prompt: textOf(last),
    results: resultsIn(contents.at(-1)),
    tools,
    choice: calling.mode === 'ANY' ? 'required' : calling.mode === 'NONE' ? 'none' : 'auto',
    parallel: true,
    images: imagesIn(last),
    json:
      config.responseMimeType === 'application/json'
        ? (config.responseJsonSchema ?? config.responseSchema ?? true)
        : undefined,
    stop: arrayOf(config.stopSequences).filter((stop) => typeof stop === 'string'),
    limit: numberOf(config.maxOutputTokens),
    thinking: thinksOn(model, thinking),
    inputChars:
      contents.reduce((sum, content) => sum + textOf(content).length + 12, 0) +
      textOf(objectOf(fields.systemInstruction)).length +
      (fields.tools === undefined ? 0 : JSON.stringify(fields.tools).length),
  }
}

function thinksOn(model: string, thinking: JsonObject): boolean {
  if (thinking.thinkingBudget === 0) {
    return false
  }
  return /^gemini-([3-9]|\d\d)/.test(model) || Object.keys(thinking).length > 0
}

function toolsIn(fields: JsonObject): Tool[] {
  return arrayOf(fields.tools)
    .filter(isObject)
    .flatMap((tool) => arrayOf(camel(tool).functionDeclarations))
    .filter(isObject)
    .map(camel)
    .map((tool) => ({
      name: stringOf(tool.name) ?? '',
      schema: tool.parametersJsonSchema ?? tool.parameters,
    }))
}

function imagesIn(content: JsonObject | undefined): string[] {
  return partsOf(content)
    .map((part) => camel(objectOf(part.inlineData ?? part.fileData)))
    .map(({ mimeType }) => stringOf(mimeType) ?? '')
    .filter((type) => type.startsWith('image/'))
}

function resultsIn(content: JsonObject | undefined): ToolResult[] {
  return partsOf(content)
    .map((part) => part.functionResponse)
    .filter(isObject)
    .map((result) => ({ name: stringOf(result.name), text: resultText(result.response) }))
}

function resultText(response: JsonValue | undefined): string {
  const values = Object.values(objectOf(response))
  const [only] = values
  return values.length === 1 && typeof only === 'string' ? only : JSON.stringify(response ?? null)
}

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
    'audioTranscriptionConfig responseFormat enableEnhancedCivicAnswers'
  ).split(' '),
)

/** Only models before the third generation return several candidates, and never as a stream. */
function countOf(config: JsonObject, model: string, stream: boolean): number {
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
function topLogprobsOf(config: JsonObject, model: string, stream: boolean): number | undefined {
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
function checkFields(body: JsonObject, fields: JsonObject): void {
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

/** Documented placeholders for a lost signature. */
const STAND_INS = ['skip_thought_signature_validator', 'context_engineering_is_the_way_to_go']

/** The signature of a function call, bound to its name, or of a text part. */
export function thoughtSignature(callName: string | undefined, random: RandomSource): string {
  return signState([callName ?? ''], random, 116)
}

/** One turn with its role. */
interface Turn {
  readonly role: string
  readonly parts: readonly JsonObject[]
}

/** Refuses unknown signatures and, from generation 3 on, function calls of the current turn without one. */
function checkSignatures(turns: readonly Turn[], model: string): void {
  for (const { parts } of turns) {
    for (const part of parts) {
      checkPart(part)
    }
  }
  if (!/^gemini-([3-9]|\d\d)/.test(model)) {
    return
  }
  const lastUserTurn = turns.findLastIndex(
    ({ role, parts }) => role === 'user' && parts.every((part) => part.functionResponse === undefined),
  )
  for (const [index, { role, parts }] of turns.entries()) {
    const call = parts.find((part) => part.functionCall !== undefined)
    if (
      index > lastUserTurn &&
      role === 'model' &&
      call !== undefined &&
      call.thoughtSignature === undefined
    ) {
      const name = stringOf(objectOf(call.functionCall).name) ?? ''
      refuseGemini(
        400,
        `Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call \`default_api:${name}\` , position ${index + 1}. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details.`,
      )
    }
  }
}

function checkPart(part: JsonObject): void {
  const signature = stringOf(part.thoughtSignature)
  if (signature === undefined || STAND_INS.includes(signature)) {
    return
  }
  const name = stringOf(objectOf(part.functionCall).name) ?? ''
  const [own] = verifyState([name], signature)
  if (own !== true) {
    refuseGemini(400, 'Corrupted thought signature.')
  }
}

const COMMON = { 'server-timing': 'gfet4t7; dur=1', vary: 'Origin' }
/** Headers of a whole reply and of the array form of a stream. */
export const WHOLE = { 'content-type': 'application/json; charset=UTF-8', ...COMMON }
/** Headers of a stream of events. */
export const STREAM = {
  'content-type': 'text/event-stream',
  'content-disposition': 'attachment',
  ...COMMON,
}

const STATES: Record<number, string> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  409: 'ABORTED',
  429: 'RESOURCE_EXHAUSTED',
  499: 'CANCELLED',
  500: 'INTERNAL',
  501: 'UNIMPLEMENTED',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
}

/** The frames of errors, unknown events and keep-alives. */
export const geminiFrames: FrameWriter = {
  errorBody: (status, message, type) => geminiError(status, message, { state: type }),
  errorEvent: (type) =>
    frame(
      JSON.stringify({
        error: {
          code: 503,
          message: 'The model is overloaded. Please try again later.',
          status: type ?? 'UNAVAILABLE',
        },
      }),
    ),
  unknownEvent: () => 'event: future\r\ndata: {"invented": {"depth": 1},"responseId": "future"}\r\n\r\n',
  frame,
  textEvent: (text) =>
    frame(
      `{"candidates": [{"content": {"parts": [{"text": ${JSON.stringify(text)}}],"role": "model"},"index": 0}],"modelVersion": "emulated","responseId": "giant"}`,
    ),
  ping: () => ': ping\r\n\r\n',
  streamHeaders: STREAM,
  wholeHeaders: WHOLE,
}

/** An event with this data. Gemini ends lines with CRLF. */
export function frame(data: string): string {
  return `data: ${data}\r\n\r\n`
}

/** The body of a Google error. Without a `state`, the status decides. */
function geminiError(
  status: number,
  message: string,
  { details = [], state }: { details?: readonly JsonObject[]; state?: string | undefined },
): string {
  const error = {
    code: status,
    message,
    status: state ?? STATES[status] ?? (status >= 500 ? 'INTERNAL' : 'INVALID_ARGUMENT'),
    ...(details.length > 0 && { details }),
  }
  return `${JSON.stringify({ error }, undefined, 2)}\n`
}

/** Throws a refusal with Google's error body. */
export function refuseGemini(status: number, message: string, details: readonly JsonObject[] = []): never {
  throw new Refusal(errorReply(status, WHOLE, geminiError(status, message, { details })))
}
