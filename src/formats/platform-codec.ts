/**
 * What a cloud changes in a dialect for upstreams: path, credential, framing, and the members of the body
 * that replace headers. Everything else is the dialect's own codec.
 *
 * Sources: Anthropic's Bedrock and Vertex SDKs 1.1.3, openai 6.49 (its Azure client), the documentation of
 * Bedrock Runtime, Vertex AI and Azure OpenAI, read 2026-11-23.
 */
import { GatewayError } from '../errors.js'
import { arrayOf, isObject, objectOf, type JsonObject, type JsonValue } from '../base/json.js'
import { cloudModelOf } from './chat/cloud-model-id.js'
import type { ChatRequest } from './chat/request.js'
import { tokenCount } from './chat/usage.js'
import { withoutBetaFields } from './anthropic/beta-fields.js'
import type { SentBetas, UpstreamCodec, TokenCounter, WireFormat } from './dialect.js'
import { vertexEmbeddings } from './gemini/vertex-embeddings.js'
import { withToolNames } from './named-tools.js'
import { encodeRequest as encodeChat } from './openai-chat/upstream/encode-request.js'
import { callIdEdit } from './openai-chat/passthrough.js'
import { CHAT_VENDORS, CLAUDE_BETAS, TOOL_NAMES, type ChatVendor, type ClaudePlatform } from './vendors.js'
import { awsErrorIn, decodeAwsError } from './wire/aws/decode-error.js'
import { refused } from './wire/json/check-fields.js'
import { stringifyExact } from './wire/json/exact-numbers.js'
import type { Edit } from './wire/json/splice.js'
import { largeEdit } from './wire/json/write-json.js'

/** The settings of an upstream that change its codec. */
export interface PlatformTraits {
  readonly platform: {
    readonly name: 'bedrock' | 'vertex' | 'azure'
    /** Azure's dated addresses; null for `/openai/v1`. */
    readonly apiVersion: string | null
    /** Azure: the deployment of a model, if its name differs. */
    readonly deployments: Readonly<Record<string, string>>
  } | null
  /** Replaces the version of Anthropic's API that a request was written for; null: it stays. */
  readonly anthropicVersion: string | null
  /** The name of the vendor's preset. */
  readonly preset: string | null
}

const known = new WeakMap<PlatformTraits, Map<WireFormat, UpstreamCodec>>()

/** The codec of an upstream with these traits, made from that of its format. The same for the same traits. */
export function platformCodec(base: UpstreamCodec, wire: WireFormat, traits: PlatformTraits): UpstreamCodec {
  if (traits.platform === null && traits.anthropicVersion === null && traits.preset === null) return base
  let byWire = known.get(traits)
  if (byWire === undefined) {
    byWire = new Map()
    known.set(traits, byWire)
  }
  let upstreamCodec = byWire.get(wire)
  if (upstreamCodec === undefined) {
    upstreamCodec = codecOnPlatform(withVersion(base, traits.anthropicVersion), wire, traits)
    byWire.set(wire, upstreamCodec)
  }
  return upstreamCodec
}

function codecOnPlatform(base: UpstreamCodec, wire: WireFormat, traits: PlatformTraits): UpstreamCodec {
  const { platform, preset } = traits
  switch (platform?.name) {
    case undefined:
      return wire === 'openai-chat' ? ofVendor(preset, base) : base
    case 'bedrock':
      if (wire === 'anthropic') return bedrockClaude(claudeOn('bedrock', base))
      return { ...base, credential: bearer }
    case 'vertex':
      if (wire === 'anthropic') return vertexClaude(claudeOn('vertex', base))
      if (wire === 'gemini') return vertexGemini(base)
      return vertexEmbeddings(base, wire === 'gemini-embedding')
    case 'azure':
      return azure(wire === 'anthropic' ? claudeOn('azure', base) : base, wire, platform)
    default:
      return base
  }
}

/** The codec with the beta features and the fields that the cloud takes. */
function claudeOn(platform: ClaudePlatform, base: UpstreamCodec): UpstreamCodec {
  return {
    ...base,
    acceptedBetas: CLAUDE_BETAS[platform],
    edits: (body, modelName, { betas = NO_BETAS, ...context }) => {
      const { losses } = context
      return withoutBetaFields(body, base.edits(body, modelName, context), { platform, betas, losses })
    },
  }
}

const NO_BETAS: SentBetas = { requested: new Set(), sent: new Set() }

/** The codec of chat completions with what the vendor of the preset has of its own. */
function ofVendor(preset: string | null, base: UpstreamCodec): UpstreamCodec {
  if (preset === null || !Object.hasOwn(CHAT_VENDORS, preset)) return base
  const vendor: ChatVendor = CHAT_VENDORS[preset] ?? {}
  const { documents, names = TOOL_NAMES.openai, callIds } = vendor
  const codec: UpstreamCodec = {
    ...base,
    ...(documents !== undefined && { readsUrl: (_url, type) => type !== 'audio' }),
    encodeRequest: (request, facts, losses) => encodeChat(request, facts, losses, vendor),
    edits: (body, modelName, context) => {
      const edits = base.edits(body, modelName, context)
      return callIds === undefined ? edits : [...edits, ...callIdEdit(body, edits, callIds)]
    },
  }
  return withToolNames(codec, names)
}

function bearer(apiKey: string): Record<string, string> {
  return { authorization: `Bearer ${apiKey}` }
}

/** The codec with another version of Anthropic's API in its header. */
function withVersion(base: UpstreamCodec, version: string | null): UpstreamCodec {
  if (version === null) return base
  const own = { 'anthropic-version': version }
  return {
    ...base,
    headers: (body) => ({ ...base.headers(body), ...own }),
    ...(base.forwardedHeaders !== undefined && {
      forwardedHeaders: (headers, client, options) => ({
        ...base.forwardedHeaders?.(headers, client, options),
        ...own,
      }),
    }),
  }
}

/** The versions of the clouds that mean Anthropic's version `2023-06-01`; newer versions have one name. */
const DATED = { bedrock: 'bedrock-2023-05-31', vertex: 'vertex-2023-10-16' } as const
const OLD_VERSION = '2023-06-01'

function versionOn(cloud: keyof typeof DATED, version: string | undefined): string {
  return version === undefined || version === OLD_VERSION ? DATED[cloud] : version
}

/** A model id as one segment of a path: `/` becomes `%2F`, and `:` becomes `%3A` as in AWS's SDKs. */
function bedrockModelPath(model: string, action: string): string {
  return `/model/${segmentOf(model)}/${action}`
}

function segmentOf(model: string): string {
  if (/^\.{0,2}$/.test(model)) {
    throw new GatewayError('unknown_model', 'Unknown model: the id is not the name of a model.', {
      param: 'model',
    })
  }
  return encodeURIComponent(model)
}

/** The edits without the model, and with others. */
function editsWithout(edits: Edit[], keys: readonly string[]): Edit[] {
  const kept = edits.filter(({ key }) => !keys.includes(key))
  return [...kept, ...keys.map((key) => ({ key, json: null }))]
}

/** InvokeModel with Claude: version and betas in the body, the model and the stream in the path. */
function bedrockClaude(base: UpstreamCodec): UpstreamCodec {
  return {
    ...base,
    framing: 'aws-chunks',
    credential: bearer,
    target: (model, stream) => ({
      path: bedrockModelPath(model, stream ? 'invoke-with-response-stream' : 'invoke'),
      accept: stream ? 'application/vnd.amazon.eventstream' : 'application/json',
    }),
    readsUrl: () => false,
    // As Anthropic's SDK, which leaves the header of the betas too.
    inBody: ({ 'anthropic-version': version, ...headers }) => {
      const betas = headers['anthropic-beta']?.split(',')
      return {
        headers,
        members: {
          anthropic_version: versionOn('bedrock', version),
          ...(betas !== undefined && { anthropic_beta: betas }),
        },
      }
    },
    encodeRequest: (request, facts, losses) => {
      refuseUrls(request, BEDROCK)
      return without(base.encodeRequest(request, facts, losses), ['model', 'stream'])
    },
    edits: (body, modelName, context) => {
      refuseSourcesOf(body, BEDROCK, ['url', 'file'])
      return editsWithout(base.edits(body, modelName, context), ['model', 'stream'])
    },
    tokenCounter: bedrockCounter,
    // A 200 can be an error: an unknown operation.
    decodeReply: (body, request, sink) => {
      const error = awsErrorIn(body)
      if (error === null) base.decodeReply(body, request, sink)
      else sink.event({ type: 'error', error })
    },
    replyFacts: (body) => {
      const watcher = base.replyFacts?.(body) ?? null
      const error = awsErrorIn(body)
      if (watcher === null) throw new Error('the dialect has no watcher')
      return error === null ? watcher : { ...watcher, error }
    },
    decodeError: decodeAwsError,
  }
}

const BEDROCK = 'Claude on Bedrock'
const VERTEX = 'Claude on Vertex AI'

/**
 * Refuses images and files by URL. Sources: "Not supported: … URL sources" (Bedrock user guide, "Anthropic
 * Claude Messages API"); anthropics/anthropic-sdk-typescript issue 1038 for Vertex AI, read 2026-11-29.
 */
function refuseUrls({ messages }: ChatRequest, cloud: string): void {
  for (const message of messages) {
    if (message.role !== 'user' && message.role !== 'tool') continue
    for (const [index, part] of message.parts.entries()) {
      const isMedia = part.type === 'image' || part.type === 'file'
      if (isMedia && part.source.kind === 'url') {
        throw refusedUrl(`messages[${message.index}].content[${index}]`, cloud)
      }
    }
  }
}

/**
 * The same for a body of the Messages API, with the types of sources that the cloud lacks. Neither cloud has
 * the Files API (`CLAUDE_BETAS`).
 */
function refuseSourcesOf({ messages }: JsonObject, cloud: string, types: readonly ('url' | 'file')[]): void {
  const refuseIn = (content: JsonValue | undefined, path: string): void => {
    for (const [index, each] of arrayOf(content).entries()) {
      const block = objectOf(each)
      const at = `${path}[${index}]`
      const type = types.find((lacked) => lacked === objectOf(block.source).type)
      if (type === 'url') throw refusedUrl(at, cloud)
      if (type === 'file') throw refused(at, `${cloud} has no files. Send the bytes as base64.`)
      if (block.type === 'tool_result') refuseIn(block.content, `${at}.content`)
    }
  }
  for (const [index, message] of arrayOf(messages).entries()) {
    refuseIn(objectOf(message).content, `messages[${index}].content`)
  }
}

function refusedUrl(path: string, cloud: string): GatewayError {
  return refused(path, `${cloud} does not accept a URL. Send the bytes as base64.`)
}

function without(body: JsonObject, keys: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(body).filter(([key]) => !keys.includes(key)))
}

/** The request of InvokeModel as base64. Only foundation models are counted, not inference profiles. */
const bedrockCounter: TokenCounter = {
  path: (model) => bedrockModelPath(cloudModelOf(model)?.foundation ?? model, 'count-tokens'),
  body: (chat) => chat,
  wrap: (chat) => {
    const body = withMaximum(chat).toString('base64')
    return `{"input":{"invokeModel":{"body":"${body}"}}}`
  },
  read: (reply) => tokenCount(reply.inputTokens) ?? null,
}

/** InvokeModel requires `max_tokens`, which requests that count do not have. */
function withMaximum(chat: Buffer | string): Buffer {
  const text = chat.toString()
  if (/"max_tokens"\s*:/.test(text)) return Buffer.from(text)
  return Buffer.from(text.replace(/^\s*\{/, '{"max_tokens":1,'))
}

/** Claude on Vertex: the version in the body, the model in the path; betas stay a header. */
function vertexClaude(base: UpstreamCodec): UpstreamCodec {
  const inBody: UpstreamCodec['inBody'] = ({ 'anthropic-version': version, ...headers }) => ({
    headers,
    members: { anthropic_version: versionOn('vertex', version) },
  })
  const { tokenCounter } = base
  return {
    ...base,
    credential: (apiKey) => ({ 'x-goog-api-key': apiKey }),
    target: (model, stream) => ({
      path: `/models/${publishedSegment(model)}:${stream ? 'streamRawPredict' : 'rawPredict'}`,
      accept: stream ? 'text/event-stream' : 'application/json',
    }),
    inBody,
    readsUrl: () => false,
    encodeRequest: (request, facts, losses) => {
      refuseUrls(request, VERTEX)
      return without(base.encodeRequest(request, facts, losses), ['model'])
    },
    edits: (body, modelName, context) => {
      refuseSourcesOf(body, VERTEX, ['file'])
      return editsWithout(base.edits(body, modelName, context), ['model'])
    },
    ...(tokenCounter !== undefined && {
      tokenCounter: {
        ...tokenCounter,
        path: () => '/models/count-tokens:rawPredict',
        body: (chat, model) => ({
          ...tokenCounter.body(chat, model),
          anthropic_version: chat.anthropic_version ?? DATED.vertex,
        }),
        // With the model in the body.
        upstreamCodec: { ...base, inBody },
      },
    }),
    decodeError: (status, headers, body) => base.decodeError(status, headers, anthropicErrorOf(body)),
  }
}

/** `claude-sonnet-4-5@20250929` keeps its `@`. */
function publishedSegment(model: string): string {
  return segmentOf(model).replaceAll('%40', '@')
}

/** Anthropic's types of Google's statuses. */
const ANTHROPIC_TYPES: Readonly<Record<string, string>> = {
  INVALID_ARGUMENT: 'invalid_request_error',
  FAILED_PRECONDITION: 'invalid_request_error',
  UNAUTHENTICATED: 'authentication_error',
  PERMISSION_DENIED: 'permission_error',
  NOT_FOUND: 'not_found_error',
  RESOURCE_EXHAUSTED: 'rate_limit_error',
  UNAVAILABLE: 'overloaded_error',
}

/** An error of Google as Anthropic's; errors of Claude itself stay. */
function anthropicErrorOf(body: string): string {
  const parsed = parsedOr(body)
  const error = objectOf((Array.isArray(parsed) ? parsed[0] : objectOf(parsed))?.error)
  if (typeof error.status !== 'string') return body
  const type = ANTHROPIC_TYPES[error.status] ?? 'api_error'
  return JSON.stringify({ type: 'error', error: { type, message: error.message ?? '' } })
}

function parsedOr(text: string): JsonObject | JsonObject[] | null {
  try {
    return JSON.parse(text) as JsonObject | JsonObject[] | null
  } catch {
    return null
  }
}

/** The members of a Gemini request that Vertex counts. */
const COUNTED = ['contents', 'systemInstruction', 'tools', 'generationConfig']

function vertexGemini(base: UpstreamCodec): UpstreamCodec {
  const { tokenCounter } = base
  const withRoles: UpstreamCodec['edits'] = (body, modelName, context) => {
    const edits = base.edits(body, modelName, context)
    const edited = edits.find(({ key }) => key === 'contents')?.value ?? body.contents
    const contents = arrayOf(edited)
    const isMissing = contents.some((each) => isObject(each) && each.role === undefined)
    if (!isMissing) return edits
    // Vertex requires the role that the Gemini API assumes.
    const named = contents.map((each) =>
      isObject(each) && each.role === undefined ? { role: 'user', ...each } : each,
    )
    return [...edits.filter(({ key }) => key !== 'contents'), largeEdit('contents', named)]
  }
  return {
    ...base,
    edits: withRoles,
    ...(tokenCounter !== undefined && {
      tokenCounter: {
        ...tokenCounter,
        body: (chat) => pick(chat, COUNTED),
        upstreamCodec: {
          ...base,
          // Vertex has no `generateContentRequest`: its members stand at the top.
          edits: (body, modelName, context) => {
            const inner = body.generateContentRequest
            if (!isObject(inner)) return withRoles(body, modelName, context)
            return [
              { key: 'generateContentRequest', json: null },
              ...COUNTED.filter((key) => inner[key] !== undefined).map((key) => ({
                key,
                json: stringifyExact(inner[key] ?? null),
              })),
            ]
          },
        },
      },
    }),
  }
}

function pick(body: JsonObject, keys: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(body).filter(([key]) => keys.includes(key)))
}

function azure(
  base: UpstreamCodec,
  wire: WireFormat,
  { apiVersion, deployments }: NonNullable<PlatformTraits['platform']>,
): UpstreamCodec {
  // Claude on Foundry takes both; Anthropic's SDK sends its own.
  const credential =
    wire === 'anthropic'
      ? (apiKey: string): Record<string, string> => base.credential(apiKey)
      : (apiKey: string): Record<string, string> => ({ 'api-key': apiKey })
  const deploymentOf = (model: string): string =>
    (Object.hasOwn(deployments, model) ? deployments[model] : undefined) ?? model
  const renamed: UpstreamCodec = {
    ...base,
    credential,
    encodeRequest: (request, facts, losses) => {
      const body = base.encodeRequest(request, facts, losses)
      return typeof body.model === 'string' ? { ...body, model: deploymentOf(body.model) } : body
    },
    edits: (body, modelName, context) => base.edits(body, deploymentOf(modelName), context),
    ...(base.encodeForm !== undefined && {
      encodeForm: (request, losses) =>
        base.encodeForm?.({ ...request, model: deploymentOf(request.model) }, losses) ?? null,
    }),
  }
  // Claude and Cohere on Foundry have one address; Responses has no deployment in the path.
  const isResponses = wire === 'openai-responses' || wire === 'responses-compact'
  const isOfFoundry = wire === 'anthropic' || wire === 'cohere-rerank'
  if (apiVersion === null || isOfFoundry || isResponses) return renamed
  return {
    ...renamed,
    target: (model, stream) => {
      const { path, accept } = base.target(model, stream)
      return { path: `/deployments/${segmentOf(deploymentOf(model))}${path}`, accept }
    },
  }
}
