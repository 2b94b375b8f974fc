/**
 * The codecs as a library, `sluice/dialects`: requests, whole replies and streams between the wire formats of
 * OpenAI, Anthropic and Google, without the gateway. Pure and synchronous: no socket, clock, log or random
 * number.
 */
import { isContent, type ChatEvent, type EventSink } from './chat/event.js'
import { Fold, type Reply } from './chat/fold.js'
import { Grammar } from './chat/grammar.js'
import type { JsonObject } from './chat/json.js'
import type { ModelFacts } from './chat/model.js'
import type { ChatRequest } from './chat/request.js'
import { mergeUsage, type Usage } from './chat/usage.js'
import { GatewayError, type WireError } from '../errors.js'
import { newFramer } from './wire/aws/event-stream.js'
import type { SseFramer } from './wire/frames/sse-framer.js'
import { stringifyExact } from './wire/json/exact-numbers.js'
import {
  ordinaryModel,
  reportNative,
  type DialectName,
  type UpstreamCodec,
  type Seed,
  type StreamDecoder,
  type StreamEncoder,
} from './dialect.js'
import { upstreamCodecOf, clientCodecOf } from './index.js'

export type { ChatEvent, ChatRequest, DialectName, JsonObject, ModelFacts, Reply, Usage, WireError }
export { GatewayError }

/** A request as a client sent it. */
export interface ClientRequest {
  readonly dialect: DialectName
  /** The parsed JSON body. */
  readonly body: JsonObject
  /** Gemini has the model in the path; other formats have it in the body. */
  readonly model?: string
  /** Gemini's path decides whether the reply is a stream; other formats have a field. Default false. */
  readonly stream?: boolean
}

/**
 * Decodes a client's request. Throws `GatewayError` of kind `malformed_request` that names the field if the
 * body breaks a rule of its format.
 */
export function decodeRequest({
  dialect,
  body,
  model,
  stream = false,
}: ClientRequest): ChatRequest {
  const endpoint = { operation: 'chat' as const, ...(model === undefined ? {} : { model, stream }) }
  return clientCodecOf(dialect).decodeRequest(body, endpoint)
}

/** An encoded request. */
export interface UpstreamRequest {
  /** Path below the provider's base URL. */
  readonly path: string
  /** Headers without the credential. */
  readonly headers: Readonly<Record<string, string>>
  /** JSON text. */
  readonly body: string
  /** Paths of the fields that the upstream's format cannot express. */
  readonly losses: readonly string[]
}

/** A request to encode. */
export interface RequestEncoding {
  /** The client's format. Fields that only this format has are kept if `to` is the same. */
  readonly from: DialectName
  /** The upstream's format. */
  readonly to: DialectName
  readonly request: ChatRequest
  /** Facts about the model; absent: an ordinary model of the format's own vendor. */
  readonly model?: ModelFacts
}

/**
 * Encodes a request for an upstream. Throws `GatewayError` of kind `untranslatable` if a field cannot be
 * expressed and the reply would be wrong without it; other fields are left out and named in `losses`.
 */
export function encodeRequest({ from, to, request, model }: RequestEncoding): UpstreamRequest {
  const upstreamCodec = upstreamCodecFor(to)
  const losses = new Set<string>()
  const report = { drop: (path: string): unknown => losses.add(path) }
  if (from !== to) reportNative(request, report)
  const facts = model ?? ordinaryModel(request.model, to)
  const body = upstreamCodec.encodeRequest(request, facts, report)
  const { path, accept } = upstreamCodec.target(facts.id, request.stream)
  const headers = { 'content-type': 'application/json', accept, ...upstreamCodec.headers(body) }
  return { path, headers, body: stringifyExact(body), losses: [...losses] }
}

/**
 * Decodes a whole reply of an upstream. Throws `GatewayError` if the body has an error or is not of the
 * format.
 */
export function decodeReply(dialect: DialectName, body: JsonObject, request: ChatRequest): Reply {
  const fold = new Fold()
  upstreamCodecFor(dialect).decodeReply(body, request, new Grammar(fold))
  const reply = fold.reply()
  if (reply !== null) return reply
  throw new GatewayError(
    fold.error?.kind ?? 'upstream_malformed',
    fold.error?.message ?? "The upstream's reply ended before it was complete.",
  )
}

/** The exchange that a reply belongs to. */
export interface ReplyEncoding {
  readonly request: ChatRequest
  /** Id and time of the reply, which the caller chooses, and the model name that the client sees. */
  readonly seed: Seed
}

/** Encodes a whole reply for a client of the format as JSON text. */
export function encodeReply(
  dialect: DialectName,
  reply: Reply,
  { request, seed }: ReplyEncoding,
): string {
  return clientCodecOf(dialect).encodeReply(reply, request, seed).text
}

/** The formats and the request of a stream. */
export interface StreamTranslation {
  /** The upstream's format. */
  readonly from: DialectName
  /** The client's format. */
  readonly to: DialectName
  readonly request: ChatRequest
  readonly seed: Seed
}

/**
 * Translates the server-sent events of one reply. `write` and `end` return the frames for the client, which
 * may be empty. After `end`, `outcome` is `complete` only if the format's own terminator arrived.
 */
export class StreamTranslator implements EventSink {
  outcome: 'open' | 'complete' | 'failed' = 'open'
  /** Why the stream failed. */
  error: WireError | null = null
  usage: Usage = {}
  /** True after the first text, tool call or reasoning. */
  hasContent = false
  private readonly to: DialectName
  private readonly grammar: Grammar
  private readonly decoder: StreamDecoder
  private readonly encoder: StreamEncoder
  private readonly framer: SseFramer

  constructor({ from, to, request, seed }: StreamTranslation) {
    this.to = to
    this.encoder = clientCodecOf(to).newEncoder(request, seed)
    this.grammar = new Grammar(this)
    const upstreamCodec = upstreamCodecFor(from)
    this.decoder = upstreamCodec.newDecoder(request, this.grammar)
    this.framer = newFramer(upstreamCodec.framing, this.decoder)
  }

  write(chunk: Uint8Array): string {
    if (this.outcome !== 'open') return ''
    this.framer.write(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength))
    while (this.framer.isPending) this.framer.more()
    this.checkFraming()
    return this.take()
  }

  /**
   * The upstream's connection ended. A stream without its terminator ends in an error event of the client's
   * format.
   */
  end(): string {
    if (this.outcome !== 'open') return ''
    this.framer.end()
    this.checkFraming()
    this.decoder.end()
    return this.take()
  }

  private checkFraming(): void {
    if (!this.framer.overflow || this.outcome !== 'open') return
    this.grammar.event({ type: 'error', error: this.framer.fault ?? EVENT_TOO_LARGE })
  }

  event(event: ChatEvent): void {
    if (isContent(event)) this.hasContent = true
    if (event.type === 'usage') this.usage = mergeUsage(this.usage, event.usage)
    if (event.type === 'finish') this.outcome = 'complete'
    if (event.type === 'error') {
      this.outcome = 'failed'
      this.error = event.error
    } else this.encoder.event(event)
  }

  private take(): string {
    const text = this.encoder.take()
    if (this.error === null) return text
    return (
      text +
      (this.encoder.failed?.(this.error) ?? clientCodecOf(this.to).encodeStreamError(this.error))
    )
  }
}

const EVENT_TOO_LARGE: WireError = {
  kind: 'upstream_malformed',
  message: 'The upstream sent an event that is larger than 16 MiB.',
}

function upstreamCodecFor(dialect: DialectName): UpstreamCodec {
  const upstreamCodec = upstreamCodecOf(dialect)
  if (upstreamCodec === null) throw new Error(`Upstreams cannot use the dialect ${dialect}`)
  return upstreamCodec
}
