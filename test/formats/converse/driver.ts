/** Requests, model facts, decoder runs and AWS's own SDK for the tests of the Converse codec. */
import { BedrockRuntimeClient, ConverseCommand } from '@aws-sdk/client-bedrock-runtime'
import { isObject, type JsonObject, type JsonValue } from '../../../src/base/json.js'
import type { ModelFacts } from '../../../src/formats/chat/model-facts.js'
import type { ChatRequest } from '../../../src/formats/chat/request.js'
import { upstreamCodecOf } from '../../../src/formats/index.js'
import type { UpstreamCodec } from '../../../src/formats/dialect.js'
import { newFramer } from '../../../src/formats/wire/aws/event-stream.js'
import { collectEvents, type Decoded } from '../collect-events.js'
import { encodeWith, sampleRequest } from '../sample-request.js'

const codec = upstreamCodecOf('converse')
if (codec === null) throw new Error('the dialect has no codec for upstreams')

export const upstreamCodec: UpstreamCodec = codec

export const NOVA: ModelFacts = {
  id: 'us.amazon.nova-lite-v1:0',
  family: 'amazon',
  createdAtSeconds: 0,
}
/** Facts of the 4.5 generation. */
export const CLAUDE: ModelFacts = {
  id: 'us.anthropic.claude-sonnet-4-5-20250929-v1:0',
  family: 'anthropic',
  createdAtSeconds: 0,
  maxOutputTokens: 64_000,
  thinkingTypes: ['enabled', 'disabled'],
  thinkingDefault: 'off',
  forcedToolChoice: true,
  samplingParams: 'when-thinking-off',
}
/** Facts of the newest generation. */
export const NEW_CLAUDE: ModelFacts = {
  ...CLAUDE,
  id: 'global.anthropic.claude-opus-5-5',
  thinkingTypes: ['adaptive'],
  thinkingDefault: 'adaptive',
  forcedToolChoice: false,
  samplingParams: 'never',
  midConversationSystem: true,
}
export const MISTRAL: ModelFacts = {
  id: 'mistral.mistral-large-2407-v1:0',
  family: 'mistral',
  createdAtSeconds: 0,
}

/** A request with one user message and the members of `over`. */
export function request(over: Partial<ChatRequest> = {}): ChatRequest {
  return sampleRequest({ model: NOVA.id, ...over })
}

/** The encoded body, and the losses as `path: why`. */
export function encode(over: Partial<ChatRequest>, model: ModelFacts = NOVA): ReturnType<typeof encodeWith> {
  return encodeWith(upstreamCodec, request(over), model)
}

/** Decodes the bytes of a whole stream. */
export function decodeStream(
  chunks: readonly Buffer[],
  over: Partial<ChatRequest> = {},
): Decoded & { readonly wasCut: boolean } {
  let wasCut = false
  const decoded = collectEvents((sink) => {
    const decoder = upstreamCodec.newDecoder(request(over), sink)
    const framer = newFramer(upstreamCodec.framing, decoder)
    for (const chunk of chunks) framer.write(chunk)
    framer.end()
    if (framer.fault !== null) sink.event({ type: 'error', error: framer.fault })
    decoder.end()
    wasCut = decoder.wasCut === true
  })
  return { ...decoded, wasCut }
}

/** Decodes a whole body. */
export function decodeReply(body: JsonObject, over: Partial<ChatRequest> = {}): Decoded {
  return collectEvents((sink) => upstreamCodec.decodeReply(body, request(over), sink))
}

/**
 * The body that AWS's SDK sends for this body as its input. The SDK drops members that the service does not
 * have, so an equal body has none.
 */
export async function bodyOfSdk(body: JsonObject): Promise<unknown> {
  let sent = ''
  const client = new BedrockRuntimeClient({
    region: 'us-east-1',
    credentials: { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'example' },
    requestHandler: {
      handle: (outgoing: { readonly body: string | Uint8Array }) => {
        sent = Buffer.from(outgoing.body).toString()
        return Promise.reject(new Error('sent'))
      },
    },
    maxAttempts: 1,
  })
  const input = withBytes(body) as Record<string, unknown>
  const command = new ConverseCommand({ ...input, modelId: 'm', messages: [], ...input })
  await client.send(command).catch(() => undefined)
  return JSON.parse(sent) as unknown
}

/** The SDK takes binary members as bytes. */
function withBytes(value: JsonValue | undefined): unknown {
  if (Array.isArray(value)) return value.map(withBytes)
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key,
      (key === 'bytes' || key === 'redactedContent') && typeof inner === 'string'
        ? Buffer.from(inner, 'base64')
        : withBytes(inner),
    ]),
  )
}
