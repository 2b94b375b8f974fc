/**
 * The codecs as a library, `sluice/dialects`: requests, whole replies and streams between the wire formats of
 * OpenAI, Anthropic and Google, without the gateway. Pure and synchronous: no socket, clock, log or random
 * number.
 */
import type { ChatEvent } from './chat/event.js'
import { Fold, type Reply } from './chat/fold.js'
import { Grammar } from './chat/grammar.js'
import type { JsonObject } from '../base/json.js'
import type { ModelFacts } from './chat/model-facts.js'
import type { ChatRequest } from './chat/request.js'
import type { Usage } from './chat/usage.js'
import { GatewayError, type WireError } from '../errors.js'
import { TranslatedStream } from './translated-stream.js'
import { stringifyExact } from './wire/json/exact-numbers.js'
import {
  ordinaryModel,
  reportNative,
  type DialectName,
  type ClientCodec,
  type UpstreamCodec,
  type Seed,
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
export function decodeRequest({ dialect, body, model, stream = false }: ClientRequest): ChatRequest {
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
export function encodeReply(dialect: DialectName, reply: Reply, { request, seed }: ReplyEncoding): string {
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
 * Translates the server-sent events of one reply, within the limits of the gateway. `write` and `end` return
 * the frames for the client, which may be empty. After `end`, `outcome` is `complete` only if the format's
 * own terminator arrived.
 */
export class StreamTranslator {
  private readonly clientCodec: ClientCodec
  private readonly stream: TranslatedStream

  constructor({ from, to, request, seed }: StreamTranslation) {
    this.clientCodec = clientCodecOf(to)
    const formats = { upstreamCodec: upstreamCodecFor(from), clientCodec: this.clientCodec }
    this.stream = new TranslatedStream({ ...formats, request, seed })
  }

  get outcome(): 'open' | 'complete' | 'failed' {
    return this.stream.outcome
  }

  /** Why the stream failed. */
  get error(): WireError | null {
    return this.stream.error
  }

  get usage(): Usage {
    return this.stream.usage
  }

  /** True after the first text, tool call or reasoning. */
  get hasContent(): boolean {
    return this.stream.content
  }

  write(chunk: Uint8Array): string {
    if (this.outcome !== 'open') return ''
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    return this.completed(this.stream.write(bytes))
  }

  /**
   * The upstream's connection ended. A stream without its terminator ends in an error event of the client's
   * format.
   */
  end(): string {
    return this.outcome === 'open' ? this.completed(this.stream.end()) : ''
  }

  /** The output with that of large events, and with the error event of a stream that failed. */
  private completed(output: string): string {
    const { stream } = this
    let text = output
    while (stream.isPending) text += stream.more()
    const { error } = stream
    if (error === null) return text
    return text + (stream.errorFrame(error) ?? this.clientCodec.encodeStreamError(error))
  }
}

function upstreamCodecFor(dialect: DialectName): UpstreamCodec {
  const upstreamCodec = upstreamCodecOf(dialect)
  if (upstreamCodec === null) throw new Error(`Upstreams cannot use the dialect ${dialect}`)
  return upstreamCodec
}
