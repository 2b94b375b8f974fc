/**
 * The contract between the gateway and a wire format.
 * A dialect is pure: no socket, clock, random number, log or metric; what it needs is handed in.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { ChatEvent, EventSink, FinishReason } from '../chat/event.js'
import type { Vectors } from '../chat/embedding.js'
import type { Reply } from '../chat/reply/fold.js'
import type { JsonObject, JsonValue } from '../chat/json.js'
import type { ModelFacts } from '../chat/model.js'
import type { ChatRequest } from '../chat/request.js'
import type { ReplyStorage } from '../chat/reply/stored-reply.js'
import type { OutputSize } from '../chat/reply/output-size.js'
import type { Usage } from '../chat/usage.js'
import type { WireError } from '../errors.js'
import type { Framing, FrameSink } from '../wire/frames/framer.js'
import type { SizedText } from '../wire/frames/sized-text.js'
import type { Outline } from '../wire/vectors.js'
import type { Edit } from '../wire/json/splice.js'

/** The wire formats, by the names that the configuration and the metrics use. */
export type DialectName = 'openai-chat' | 'openai-responses' | 'anthropic' | 'gemini'

/** Formats of what a provider has besides chats. */
export type OtherFormat =
  | 'openai-completions'
  | 'openai-embeddings'
  /** `batchEmbedContents`. */
  | 'gemini-embeddings'
  /** `embedContent`: one text. */
  | 'gemini-embedding'

/** Requests and replies of one format pass between client and upstream as bytes. */
export type WireFormat = DialectName | OtherFormat

/** How clients speak a format to us, and how we speak it to an upstream. */
export interface FormatCodecs {
  readonly ingress: Ingress
  readonly egress: Egress
}

/** A wire format: how clients speak it to us, and how we speak it to an upstream. */
export interface Dialect {
  readonly name: DialectName
  readonly ingress: Ingress | null
  readonly egress: Egress | null
}

/** What a path and method ask for. The rows are in `endpoints.ts`. */
export interface Endpoint {
  /** `stored`: an answer that is kept, to read or to remove; `stored-input`: what it was an answer to. */
  readonly operation:
    'chat' | 'count' | 'models' | 'embeddings' | 'completions' | 'stored' | 'stored-input'
  /** Set if the path names the model (Gemini; `GET /v1/models/{id}`), or the id of a stored answer. */
  readonly model?: string
  /** Set if the path decides whether the reply is a stream (Gemini). */
  readonly stream?: boolean
  /** The stream is to be one JSON array (Gemini without `alt=sse`). */
  readonly array?: true
}

/** How a format lists models. Pure; throws `GatewayError(malformed_request)` for a page that cannot be given. */
export interface ModelPages {
  /** A page of the models, as JSON text; `query` is what follows the question mark. */
  list(models: readonly ModelFacts[], query: string): string
  /** One model, as JSON text. */
  one(model: ModelFacts): string
}

/** What could not be carried from one dialect to the other. Reported, never silent. */
export interface Losses {
  drop(path: string, why: 'no-equivalent' | 'bad-value' | 'approximated'): void
}

/** Facts a pure codec may not invent for itself. */
export interface Seed {
  /** The reply's id, the same on every chunk; the gateway's own, so that JSON needs no escape in it. */
  id: string
  createdAtSeconds: number
  /** The model name the client asked for; it is the name that the reply carries. */
  model: string
  /** The dialect of the upstream: whose reasoning state the reply carries. Absent where nobody asks. */
  origin?: DialectName
}

/** One of several answers to a request. */
export interface Choice {
  /** Its number, from 0, as the upstream counts. */
  readonly index: number
  readonly reply: Reply
}

/** Where an answer stands in a stream of several. */
export interface ChoicePosition {
  readonly index: number
  /** After it comes what ends the stream. */
  readonly isLast: boolean
}

/** What surrounds the replies to clients of a format. */
export interface Envelope {
  /** How the ids of replies begin; the rest is the request id. */
  readonly idPrefix: string
  /** Written to a client while its stream is silent; every client of the format ignores it. */
  readonly heartbeat: string
  /** The format's own header for the request id, sent beside `x-request-id`; null if it has none. */
  readonly idHeader: string | null
}

/** How clients speak this dialect to us. */
export interface Ingress {
  readonly envelope: Envelope
  /** Model and stream flag only. Throws `GatewayError(malformed_request)` naming the field. */
  peek(body: JsonObject, endpoint: Endpoint): { model: string; stream: boolean }
  /**
   * The whole rule book of the format: every known field checked, normalised and mapped.
   * Throws `GatewayError(malformed_request)` whose message and `param` name the path. `headers` are the client's, for
   * formats that have headers of their own.
   */
  decodeRequest(body: JsonObject, endpoint: Endpoint, headers?: IncomingHttpHeaders): ChatRequest
  encodeReply(reply: Reply, request: ChatRequest, seed: Seed): SizedText
  /** Several answers to one request (`n`); their counts are those of all together, in each. */
  encodeChoices(choices: readonly Choice[], request: ChatRequest, seed: Seed): SizedText
  /** `place`: where the answer stands among several; left out, it is the only one. */
  newEncoder(request: ChatRequest, seed: Seed, place?: ChoicePosition): StreamEncoder
  /**
   * The path, `reply.` and a field, of what this format has no words for in an event; null where it
   * says the event whole. Never asked about deltas.
   */
  lossOf(event: ChatEvent): string | null
  /** What the canon's path of a field is called in this format; absent: the same. */
  fieldName?(path: string): string
  /** Limits the length of an answer in a client's own body; absent: a member of the body itself does. */
  outputEdit?(body: JsonObject, maxOutputTokens: number): Edit
  /** `requestId`: for formats whose errors name it. */
  encodeError(error: WireError, requestId?: string): { status: number; body: string }
  /** One frame that ends a stream that has begun. */
  encodeStreamError(error: WireError, requestId?: string): string
  /** The reply to a request for embeddings; null if a vector of the upstream is damaged. */
  encodeVectors?(vectors: Vectors, request: ChatRequest, seed: Seed): string | null
  /** The reply to a request that counts the tokens of a prompt; absent if the format has no such endpoint. */
  encodeCount?(inputTokens: number): string
  /** How answers are kept for clients that go on from them by name; absent if the format has no such thing. */
  readonly storage?: ReplyStorage
}

/** Reads a reply that holds vectors: an error that the upstream put inside a 200, or null for another format. */
export type VectorReader = (reply: Outline) => Vectors | WireError | null

/** How an upstream counts the tokens of a prompt without answering it. */
export interface TokenCounter {
  /** Path below the upstream's base URL. `model` is percent-encoded by the dialect. */
  path(model: string): string
  /** The request's body, from that of a chat which `encodeRequest` has made. */
  body(chat: JsonObject, model: string): JsonObject
  /** The count in a reply; null if there is none. */
  read(reply: JsonObject): number | null
}

/** How we speak this dialect to an upstream. */
export interface Egress {
  readonly framing: Framing
  /** Path below the upstream's base URL, and what we accept. `model` is percent-encoded by the dialect. */
  target(model: string, stream: boolean): { path: string; accept: string }
  /** True where a conversation must begin with a user's message. */
  readonly userFirst?: true
  /** Whether the upstream itself reads what a picture's or file's URL leads to; left out: it always does. */
  readsUrl?(url: string): boolean
  /**
   * Whether to ask for a stream although the client wants the answer whole: a long answer that is
   * silent until its end is cut off on its way, or is shorter than a streamed one may be.
   */
  streamsWhole?(request: ChatRequest, model: ModelFacts): boolean
  /** Whether it must be asked for the answer whole although the client wants a stream. */
  wholeOnly?(request: ChatRequest): boolean
  /** The headers that carry the upstream's credential. */
  credential(apiKey: string): Record<string, string>
  /** Headers that depend on what is asked (API version, beta flags). Empty where there are none. */
  headers(body: JsonObject): Record<string, string>
  /**
   * `own`, which are those of `headers`, with those that a client of the same dialect sent. `betas` lists the beta
   * features that the upstream's configuration allows; null allows all. Absent if the dialect has no such headers.
   */
  forwardedHeaders?(
    own: Readonly<Record<string, string>>,
    client: Readonly<Record<string, string>>,
    betas: readonly string[] | null,
    losses: Losses,
  ): Record<string, string>
  /**
   * The body for this upstream. Throws `GatewayError(untranslatable)` for what must not be dropped,
   * reports to `losses` what may.
   */
  encodeRequest(request: ChatRequest, model: ModelFacts, losses: Losses): JsonObject
  /** Writes such a body, quirks and all, quicker than `stringifyExact`, which does it where this is left out. */
  readonly write?: (body: JsonObject) => SizedText
  /**
   * Top-level edits that make a client's own body fit this upstream; applied to bytes, not to a parsed
   * copy. Throws and reports as `encodeRequest` does.
   */
  edits(body: JsonObject, model: string, facts: ModelFacts, losses: Losses): Edit[]
  /**
   * The body to try once more with, where the upstream refused this one because reasoning of earlier turns
   * does not fit the conversation any more: it is told to leave such reasoning out. Null for any other
   * refusal, and where the body says so already. Absent where upstreams of the format never refuse so.
   */
  dropReasoning?(body: JsonObject, error: WireError): JsonObject | null
  /** Absent if upstreams of the format have no endpoint that counts tokens. */
  readonly tokenCounter?: TokenCounter
  /** Emits a grammatical stream whatever the body is; never throws. */
  decodeReply(body: JsonObject, request: ChatRequest, sink: EventSink): void
  /** `mayPause`: the decoder must keep what `continuation` needs. */
  newDecoder(request: ChatRequest, sink: EventSink, mayPause?: boolean): StreamDecoder
  /**
   * Several answers to one request at once, each into a sink of its own, in the order of their numbers.
   * Absent where the format has no such thing.
   */
  newChoices?(request: ChatRequest, sinks: readonly EventSink[]): ChoicesDecoder
  /** How a paused answer goes on; null where this format has no such thing. */
  readonly continuation: Continuation | null
  /** A watcher for the same dialect on both sides; null where no client can speak this dialect. */
  newTap: ((request: TapRequest) => StreamTap) | null
  /** Usage, finish reason or error of a whole reply that passes through. */
  tapReply: ((body: JsonObject) => TapResult) | null
  /** Of operations whose replies hold vectors. */
  readonly readVectors?: VectorReader
  /** `body` is at most 64 KiB of text. The message is scrubbed of keys and bounded to 2 KB. */
  decodeError(status: number, headers: IncomingHttpHeaders, body: string): WireError
}

/**
 * How an answer that the upstream broke off on purpose goes on. Such a part ends in a `finish` with
 * `resume`; the gateway asks for the rest and joins the parts.
 */
export interface Continuation {
  /** Whether the answer to this body may pause at all. */
  mayPause(body: JsonObject): boolean
  /**
   * The body that asks for the rest, from the one before and the `resume` of its answer. Where answers
   * of the format may end in `again`, an empty `resume` asks for the same once more.
   */
  next(body: JsonObject, resume: JsonObject): JsonObject
}

/** frame() any number of times, then end() exactly once. Emits a grammatical stream whatever the frames were. */
export interface StreamDecoder extends FrameSink {
  end(): void
}

/** A decoder of streams that takes a whole body just as well. */
export interface ChoicesDecoder extends StreamDecoder {
  /** A body, or all the pieces of a stream in one array. */
  take(body: JsonValue): void
}

/** event() in grammar order; take() returns what is ready to send and forgets it. */
export interface StreamEncoder extends EventSink {
  take(): string
  /** The frame that ends the stream in an error; absent if `encodeStreamError` needs nothing of the stream. */
  failed?(error: WireError): string | null
  /** The whole reply as JSON text, once it has finished, if the format's last frame repeats it. */
  readonly response?: string | null
}

/** What a tap must know of the request. */
export interface TapRequest {
  /** Whether the client itself asked for the usage frame. */
  includeUsage: boolean
  /** Called with the whole reply if the format's last frame repeats it, before that frame goes on. */
  onWhole?: ((reply: JsonObject) => void) | undefined
}

/** What a tap learnt. */
export interface TapResult {
  readonly usage: Usage
  readonly reason: FinishReason | null
  /** The upstream reported a failure inside a 200. */
  readonly error: WireError | null
  /** The model that answered, as the upstream names it. */
  readonly model: string | null
  /** The vendor's tier that served it; null where it does not say. */
  readonly tier: string | null
  /** How much was said so far; of a whole reply only where `usage` does not tell. */
  readonly outputSize: OutputSize
}

/** Watches a stream that passes through untouched. */
export interface StreamTap extends TapResult {
  /** False for a frame that must not reach the client (one that only the gateway asked for, or an error). */
  frame(name: string, data: string): boolean
  /** What stands in the frame just watched that only the gateway asked for; empty where nothing does. */
  readonly excess: string
  /** A frame that the upstream left out, to be sent before the frame just watched; empty if there is none. */
  readonly missingFrame: string
  /** Content has been seen: from here on nothing may be retried. */
  readonly hasContent: boolean
  /** The format's own terminator has been seen, so an end of file is an end. */
  readonly isComplete: boolean
  /** Every answer that began has its reason, so an end of file cuts none of them. */
  readonly isFinished: boolean
  /** The terminator, for a stream that is finished and came without one. */
  readonly terminator: string
  /** The frame that ends the stream in an error; absent if `encodeStreamError` needs nothing of the stream. */
  failed?(error: WireError): string | null
}
