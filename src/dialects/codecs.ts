/**
 * The codecs as a library, `sluice/dialects`: requests, whole replies and streams between the wire formats of OpenAI,
 * Anthropic and Google, without the gateway. Pure and synchronous: no socket, clock, log or random number.
 */
import { isContent, type ChatEvent, type EventSink } from '../chat/event.js'
import { Fold, type Reply } from '../chat/reply/fold.js'
import { Grammar } from '../chat/grammar.js'
import type { JsonObject } from '../chat/json.js'
import type { ModelFacts } from '../chat/model.js'
import type { ChatRequest } from '../chat/request.js'
import { mergeUsage, type Usage } from '../chat/usage.js'
import { GatewayError, type WireError } from '../errors.js'
import { SseFramer } from '../wire/frames/sse.js'
import { stringifyExact } from '../wire/json/exact-numbers.js'
import type { DialectName, Egress, Seed, StreamDecoder, StreamEncoder } from './dialect.js'
import { egressOf, ingressOf } from './index.js'
import { ordinaryModel, reportNative } from './other-format.js'

export type { ChatEvent, ChatRequest, DialectName, JsonObject, ModelFacts, Reply, Usage, WireError }
export { GatewayError }

/** A request as a client sent it. */
export interface ClientRequest {
  readonly dialect: DialectName
  /** The parsed JSON body. */
  readonly body: JsonObject
  /** Gemini names the model in the path; other formats name it in the body. */
  readonly model?: string
  /** Gemini's path says whether the reply is a stream; other formats have a field. Default false. */
  readonly stream?: boolean
}

/**
 * Reads a client's request. Throws `GatewayError` of kind `malformed_request` that names the field if the body breaks
 * a rule of its format.
 */
export function decodeRequest({
  dialect,
  body,
  model,
  stream = false,
}: ClientRequest): ChatRequest {
  const endpoint = { operation: 'chat' as const, ...(model === undefined ? {} : { model, stream }) }
  return ingressOf(dialect).decodeRequest(body, endpoint)
}

/** Where and how a request goes to an upstream. */
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

/** What to write, and for whom. */
export interface RequestEncoding {
  /** The client's format: fields that only this format has are kept if both sides speak it. */
  readonly from: DialectName
  /** The upstream's format. */
  readonly to: DialectName
  readonly request: ChatRequest
  /** What is known of the model; left out, an ordinary model of the format's own vendor with the request's name. */
  readonly model?: ModelFacts
}

/**
 * Writes a request for an upstream. Throws `GatewayError` of kind `untranslatable` if a field cannot be expressed and
 * the reply would be wrong without it; other fields are left out and named in `losses`.
 */
export function encodeRequest({ from, to, request, model }: RequestEncoding): UpstreamRequest {
  const egress = upstreamCodec(to)
  const losses = new Set<string>()
  const report = { drop: (path: string): unknown => losses.add(path) }
  if (from !== to) reportNative(request, report)
  const facts = model ?? ordinaryModel(request.model, to)
  const body = egress.encodeRequest(request, facts, report)
  const { path, accept } = egress.target(facts.id, request.stream)
  const headers = { 'content-type': 'application/json', accept, ...egress.headers(body) }
  return { path, headers, body: stringifyExact(body), losses: [...losses] }
}

/**
 * Reads a whole reply of an upstream. Throws `GatewayError` if the body reports a failure or is not a reply of the
 * format.
 */
export function decodeReply(dialect: DialectName, body: JsonObject, request: ChatRequest): Reply {
  const fold = new Fold()
  upstreamCodec(dialect).decodeReply(body, request, new Grammar(fold))
  const reply = fold.reply()
  if (reply !== null) return reply
  throw new GatewayError(
    fold.error?.kind ?? 'upstream_malformed',
    fold.error?.message ?? 'The reply has no end.',
  )
}

/** Writes a whole reply for a client of the format, as JSON text. `seed.id` and the time are the caller's. */
export function encodeReply(
  dialect: DialectName,
  reply: Reply,
  request: ChatRequest,
  seed: Seed,
): string {
  return ingressOf(dialect).encodeReply(reply, request, seed).text
}

/** A stream of one format to a stream of another. */
export interface StreamTranslation {
  /** The upstream's format. */
  readonly from: DialectName
  /** The client's format. */
  readonly to: DialectName
  readonly request: ChatRequest
  readonly seed: Seed
}

/**
 * Translates the server-sent events of one reply. `write` and `end` return what the client gets, empty if nothing is
 * ready. After `end`, `outcome` is `complete` only if the format's own terminator arrived.
 */
export class StreamTranslator implements EventSink {
  outcome: 'open' | 'complete' | 'failed' = 'open'
  /** Why the stream failed. */
  error: WireError | null = null
  usage: Usage = {}
  /** True from the first text, tool call or reasoning on. */
  hasContent = false
  private readonly to: DialectName
  private readonly grammar: Grammar
  private readonly decoder: StreamDecoder
  private readonly encoder: StreamEncoder
  private readonly framer: SseFramer

  constructor({ from, to, request, seed }: StreamTranslation) {
    this.to = to
    this.encoder = ingressOf(to).newEncoder(request, seed)
    this.grammar = new Grammar(this)
    this.decoder = upstreamCodec(from).newDecoder(request, this.grammar)
    this.framer = new SseFramer(this.decoder)
  }

  write(chunk: Uint8Array): string {
    if (this.outcome !== 'open') return ''
    this.framer.write(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength))
    if (this.framer.overflow) this.grammar.event({ type: 'error', error: TOO_LARGE })
    return this.take()
  }

  /** The upstream's connection ended. A stream without its terminator ends in an error event of the client's format. */
  end(): string {
    if (this.outcome !== 'open') return ''
    this.framer.end()
    this.decoder.end()
    return this.take()
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
      text + (this.encoder.failed?.(this.error) ?? ingressOf(this.to).encodeStreamError(this.error))
    )
  }
}

const TOO_LARGE: WireError = {
  kind: 'upstream_malformed',
  message: 'The upstream sent a single event that is too large.',
}

function upstreamCodec(dialect: DialectName): Egress {
  const egress = egressOf(dialect)
  if (egress === null) throw new Error(`No upstream speaks ${dialect}.`)
  return egress
}
