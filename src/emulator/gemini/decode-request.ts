/**
 * Decodes and validates a generateContent request with Gemini's rules and error messages. Names may be
 * camelCase or snake_case, as in protobuf JSON.
 */
import { camel, checkFields, countOf, topLogprobsOf } from './check-fields.js'
import { checkSignatures } from './check-thinking.js'
import { refuseGemini } from './errors.js'
import { arrayOf, isObject, numberOf, objectOf, stringOf } from '../../chat/json.js'
import type { JsonObject, JsonValue } from '../../chat/json.js'
import type { ModelInput, ParsedRequest, Tool, ToolResult } from '../emulated-exchange.js'

/** A valid generateContent request. */
export interface GeminiRequest {
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
      refuse(
        `* GenerateContentRequest.contents[${index}].parts: contents.parts must not be empty.\n`,
      )
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

function modelInputOf(
  model: string,
  { fields, contents, config, thinking }: DecodedBody,
): ModelInput {
  const last = contents.findLast(
    (content) =>
      content.role !== 'model' &&
      partsOf(content).every((part) => part.functionResponse === undefined),
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
