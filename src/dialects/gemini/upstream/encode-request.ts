/**
 * Encodes a canonical request as a generateContent body. Fields that Gemini does not support are refused or
 * reported.
 */
import { arrayOf, objectOf, stringOf, type JsonObject } from '../../../chat/json.js'
import type { ModelFacts } from '../../../chat/model.js'
import type { ChatRequest } from '../../../chat/request.js'
import { SchemaBudget } from '../../../chat/json-schema/schema-budget.js'
import { GatewayError } from '../../../errors.js'
import type { EncodeContext, Losses } from '../../dialect.js'
import { encodeConfig } from './request/encode-generation-config.js'
import { encodeContents } from './request/encode-messages.js'
import { reportUnsupportedFields } from './request/report-unsupported-fields.js'
import { relaxSchema } from './request/encode-schema.js'
import { jsonToolName, toolNames } from './request/tool-names.js'
import { encodeToolChoice, encodeTools, type JsonTool } from './request/encode-tools.js'
import { type Content, isThirdGeneration, MAX_INLINE_BYTES } from '../shared/constants.js'

const SERVICE_TIERS: Readonly<Record<string, string | null>> = {
  auto: null,
  default: 'standard',
  standard: 'standard',
  flex: 'flex',
  priority: 'priority',
  fast: 'priority',
}

const JSON_ONLY = 'Respond with one JSON object only.'

/**
 * The body of the request. Deterministic: equal requests give equal bytes.
 * Throws `GatewayError(untranslatable)` naming the field and an alternative.
 */
export function encodeRequest(request: ChatRequest, model: ModelFacts, losses: Losses): JsonObject {
  const context = { model, losses }
  reportUnsupportedFields(request, losses)
  const candidates = candidateCount(request, model)
  const names = toolNames(request.tools)
  const format = chooseFormat(request, context)
  const { system, contents } = encodeContents(request.messages, {
    names,
    thirdGeneration: isThirdGeneration(model),
    systemInstruction: model.systemInstruction !== false,
    losses,
  })
  checkInlineSize(contents)
  if (format.instruction !== null) system.push({ text: format.instruction })
  const body: JsonObject = { contents }
  if (system.length > 0) body.systemInstruction = { parts: system }
  const tools = encodeTools(request.tools, names, format.tool)
  if (tools.length > 0) body.tools = tools
  const toolConfig = encodeToolChoice(request, names, format.tool)
  if (toolConfig !== undefined) body.toolConfig = toolConfig
  const mayCall = request.tools.length > 0 && request.toolChoice?.mode !== 'none'
  if (request.parallelToolCalls === false && mayCall) {
    losses.drop('parallel_tool_calls', 'no-equivalent')
  }
  const config = { ...encodeConfig(request, context), ...format.config }
  if (candidates > 1) config.candidateCount = candidates
  if (Object.keys(config).length > 0) body.generationConfig = config
  const tier = encodeServiceTier(request.serviceTier, losses)
  if (tier !== null) body.serviceTier = tier
  return body
}

/** Throws `body_too_large` for media above the API's limit, because the API's own error names no field. */
function checkInlineSize(contents: readonly Content[]): void {
  let size = 0
  for (const { parts } of contents) for (const part of parts) size += inlineSize(part)
  if (size <= MAX_INLINE_BYTES) return
  throw new GatewayError(
    'body_too_large',
    `messages: this upstream accepts at most ${MAX_INLINE_BYTES} bytes of images and files, as base64. ` +
      'Send smaller ones, or fewer.',
    { param: 'messages' },
  )
}

/** The base64 characters of a part, including the parts of a function response. */
function inlineSize(part: JsonObject): number {
  const own = stringOf(objectOf(part.inlineData).data)?.length ?? 0
  const nested = arrayOf(objectOf(part.functionResponse).parts)
  return nested.reduce((sum: number, one) => sum + inlineSize(objectOf(one)), own)
}

interface Format {
  config: JsonObject
  tool: JsonTool | null
  instruction: string | null
}

/**
 * Chooses how to request JSON: natively if the model supports it with these tools, else by a tool or an
 * instruction.
 */
function chooseFormat(request: ChatRequest, { model, losses }: EncodeContext): Format {
  const none: Format = { config: {}, tool: null, instruction: null }
  const format = request.responseFormat
  if (format === undefined || format.type === 'text') return none
  if (format.type === 'json-schema' && model.structuredOutput === false) {
    throw refused(
      'response_format',
      'response_format: this model does not support JSON schemas. Use a model that does.',
    )
  }
  const choice = request.toolChoice
  const mustCall =
    choice?.mode === 'required' ||
    choice?.mode === 'named' ||
    (choice?.mode === 'allowed' && choice.required)
  if (request.tools.length > 0 && mustCall) {
    // The reply is a call, so the format does not apply; the API rejects both together.
    losses.drop('response_format', 'approximated')
    return none
  }
  const together = model.structuredOutputWithTools ?? isThirdGeneration(model)
  const native = request.tools.length === 0 || together
  if (format.type === 'json-object') {
    if (native) return { ...none, config: { responseMimeType: 'application/json' } }
    losses.drop('response_format', 'approximated')
    return { ...none, instruction: JSON_ONLY }
  }
  if (native) {
    const budget = new SchemaBudget('response_format.json_schema.schema')
    const responseJsonSchema = relaxSchema(format.schema, budget)
    return { ...none, config: { responseMimeType: 'application/json', responseJsonSchema } }
  }
  const name = jsonToolName(request)
  return name === null ? none : { ...none, tool: { name, schema: format.schema } }
}

function encodeServiceTier(tier: string | undefined, losses: Losses): string | null {
  if (tier === undefined) return null
  const known = Object.hasOwn(SERVICE_TIERS, tier) ? SERVICE_TIERS[tier] : undefined
  if (known === undefined) losses.drop('service_tier', 'no-equivalent')
  return known ?? null
}

/** The number of requested replies. A model without facts gives one, as the newest models do. */
function candidateCount(
  { candidates = 1 }: ChatRequest,
  { maxCandidates = 1 }: ModelFacts,
): number {
  if (candidates <= maxCandidates) return candidates
  const limit = maxCandidates === 1 ? 'one reply' : `at most ${maxCandidates} replies`
  throw refused('n', `n: this model gives ${limit} per request. Send several requests instead.`)
}

function refused(param: string, message: string): GatewayError {
  return new GatewayError('untranslatable', message, { param })
}
