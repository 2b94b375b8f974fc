/**
 * The interface between the gateway and a wire format. Codecs are pure: they use no socket, clock, random
 * number, log or metric; ids and times are arguments.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { GatewayError, type WireError } from '../errors.js'
import type { ChatEvent, EventSink, FinishReason } from './chat/event.js'
import type { Reply } from './chat/fold.js'
import type { JsonObject, JsonValue } from '../base/json.js'
import type { MediaReader, MediaWriter } from './chat/media-event.js'
import type { ModelFacts } from './chat/model-facts.js'
import type { Operation } from './chat/operations.js'
import type { OutputSize } from './chat/output-size.js'
import type { Vectors, ChatRequest } from './chat/request.js'
import type { ReplyStorage } from './chat/stored-reply.js'
import type { TaskResult } from './chat/task.js'
import type { FormRewrite, UploadPart } from './chat/upload.js'
import type { Usage } from './chat/usage.js'
import type { Outline } from './wire/embedding-vectors.js'
import type { SizedText } from './wire/frames/sized-text.js'
import type { Framing, FrameSink } from './wire/frames/sse-framer.js'
import type { Edit } from './wire/json/splice.js'
import type { ScalarField } from './wire/scalar-fields.js'

export type { ChoicesDecoder, StreamDecoder, StreamEncoder, StreamWatcher, WatchedRequest, ReplyFacts }

/** The wire formats, by the names that the configuration and the metrics use. */
export type DialectName = 'openai-chat' | 'openai-responses' | 'anthropic' | 'gemini' | 'converse'

/** Formats of providers' endpoints other than chats. */
export type OtherFormat =
  | 'openai-completions'
  /** `/responses/compact`. */
  | 'responses-compact'
  | 'openai-embeddings'
  /** `batchEmbedContents`. */
  | 'gemini-embeddings'
  /** `embedContent`: one text. */
  | 'gemini-embedding'
  /** Bedrock's InvokeModel, for upstreams. */
  | 'bedrock-embeddings'
  | TaskFormat

/** Formats of tasks: `rerank` is `/v1/rerank` for clients, and `cohere-rerank` is `/v2/rerank` for both. */
export type TaskFormat =
  | 'rerank'
  | 'cohere-rerank'
  | 'cohere-v1-rerank'
  | 'jina-rerank'
  | 'voyage-rerank'
  | 'vllm-rerank'
  | 'tei-rerank'
  | 'sglang-rerank'
  | 'deepinfra-rerank'
  | 'bedrock-rerank'
  | 'openai-moderations'
  | 'mistral-moderations'
  /** A chat model that judges, in the format of its own chats. */
  | 'chat-moderations'
  /** OpenAI's endpoints for pictures, for chats of Google's clients: without and with pictures to change. */
  | 'chat-images'
  | 'chat-image-edits'
  /** Endpoints for speech and for transcriptions, for such chats. */
  | 'chat-speech'
  | 'chat-mistral-speech'
  | 'chat-transcriptions'
  | 'chat-mistral-transcriptions'
  | 'openai-images'
  | 'gemini-images'
  | 'openai-image-edits'
  | 'gemini-image-edits'
  | 'openai-transcriptions'
  | 'mistral-transcriptions'
  | 'gemini-transcriptions'
  | 'openai-translations'
  | 'openai-speech'
  | 'mistral-speech'
  | 'gemini-speech'

/** A format. If client and upstream use the same one, bodies are forwarded as bytes. */
export type WireFormat = DialectName | OtherFormat

/** The codecs of a format, for clients and for upstreams. */
export interface FormatCodecs {
  readonly clientCodec: ClientCodec
  readonly upstreamCodec: UpstreamCodec
}

/** A dialect; a codec is null if clients or upstreams cannot use it. */
export interface Dialect {
  readonly name: DialectName
  /** One row per scalar field of a request. */
  readonly fields: readonly ScalarField[]
  readonly clientCodec: ClientCodec | null
  readonly upstreamCodec: UpstreamCodec | null
}

/** The operation of a path and method. The table is in `match-endpoint.ts`. */
export interface Endpoint {
  /** `stored`: a stored reply, to read or to delete; `stored-input`: its conversation. */
  readonly operation: Operation
  /** Set if the path contains the model (Gemini; `GET /v1/models/{id}`) or the id of a stored reply. */
  readonly model?: string
  /** Set if the path determines whether the reply is a stream (Gemini). */
  readonly stream?: boolean
  /** The stream is one JSON array (Gemini without `alt=sse`). */
  readonly array?: true
}

/** A model of the list. */
export interface ListedModel {
  readonly id: string
  /** The facts of the model that serves it. */
  readonly facts: ModelFacts
  /** Whether an upstream for it is usable. */
  readonly isAvailable: boolean
  /** Members beside those of the format: sizes, modalities, abilities, prices. */
  readonly more: JsonObject
}

/** The model list of a format. Pure; throws `GatewayError(malformed_request)` for an invalid page. */
export interface ModelPages {
  /** A page of the models, as JSON text; `query` is the part of the URL after the question mark. */
  list(models: readonly ListedModel[], query: string): string
  /** One model, as JSON text. */
  one(model: ListedModel): string
}

/** Receives the paths of fields that the target format cannot express. Every loss is reported. */
export interface Losses {
  drop(path: string, why: 'no-equivalent' | 'bad-value' | 'approximated'): void
}

/** The model that a body is encoded for, and the receiver of what it cannot express. */
export interface EncodeContext {
  readonly model: ModelFacts
  readonly losses: Losses
}

/** The beta features that the client requests, and those that the upstream gets. */
export interface SentBetas {
  readonly requested: ReadonlySet<string>
  readonly sent: ReadonlySet<string>
}

/** The context of edits of a client's own body. */
interface EditContext extends EncodeContext {
  /** Set if the upstream does not get all beta features. */
  readonly betas?: SentBetas
}

/** Id, time and model of a reply, which pure codecs cannot create. */
export interface Seed {
  /** The id of the reply and of all its chunks. The gateway creates it, so JSON needs no escapes in it. */
  id: string
  createdAtSeconds: number
  /** The model name of the client's request, which the reply repeats. */
  model: string
  /**
   * The dialect of the upstream, and therefore of the reasoning state in the reply. Absent: the state is not
   * needed.
   */
  origin?: DialectName
}

/** One of several choices of a reply. */
export interface Choice {
  /** The upstream's index of the choice, from 0. */
  readonly index: number
  readonly reply: Reply
}

/** The position of a choice in a stream of several. */
export interface ChoicePosition {
  readonly index: number
  /** The end of the stream follows this choice. */
  readonly isLast: boolean
}

/** Properties of all replies to clients of a format. */
interface Envelope {
  /** The prefix of reply ids; the request id follows it. */
  readonly idPrefix: string
  /** Sent to the client while its stream is silent; clients of the format ignore it. */
  readonly heartbeat: string
  /** The format's own header for the request id, sent beside `x-request-id`; null if it has none. */
  readonly idHeader: string | null
}

export interface ClientCodec {
  readonly envelope: Envelope
  /** Model and stream flag only. Throws `GatewayError(malformed_request)` naming the field. */
  peek(body: JsonObject, endpoint: Endpoint): { model: string; stream: boolean }
  /**
   * Checks, normalises and maps every field. Throws `GatewayError(malformed_request)` whose message and
   * `param` name the path. `headers` are the client's, for formats with headers of their own, and `form` has
   * the parts of a multipart form, whose fields are `body`.
   */
  decodeRequest(
    body: JsonObject,
    endpoint: Endpoint,
    headers?: IncomingHttpHeaders,
    form?: readonly UploadPart[],
  ): ChatRequest
  encodeReply(reply: Reply, request: ChatRequest, seed: Seed): SizedText
  /** A reply with several choices (`n`). The usage in each choice counts all choices together. */
  encodeChoices(choices: readonly Choice[], request: ChatRequest, seed: Seed): SizedText
  /** `position`: the position among several choices; absent for an only choice. */
  newEncoder(request: ChatRequest, seed: Seed, position?: ChoicePosition): StreamEncoder
  /**
   * The path of the part of an event that the format cannot express, such as `reply.citations`; null if
   * nothing is lost. Not called for deltas.
   */
  lossOf(event: ChatEvent): string | null
  /** The path of a canonical field in this format; absent: the same path. */
  fieldName?(path: string): string
  /**
   * The edit that limits the output tokens in a client's own body; absent if a top-level member of chats
   * does.
   */
  outputEdit?(body: JsonObject, maxOutputTokens: number): Edit
  /** `requestId`: for formats whose errors contain it. */
  encodeError(error: WireError, requestId?: string): { status: number; body: string }
  /** The frame that ends a stream with an error. */
  encodeStreamError(error: WireError, requestId?: string): string
  /** The reply to an embeddings request; null if a vector of the upstream is malformed. */
  encodeVectors?(vectors: Vectors, request: ChatRequest, seed: Seed): string | null
  /** The reply to a task; null if the result is not one of the format. */
  encodeTask?(result: TaskResult, request: ChatRequest, seed: Seed): EncodedTask | null
  /** Writes a stream of pictures, sound or a transcript; absent if the format has none. */
  newMediaWriter?(request: ChatRequest, seed: Seed): MediaWriter
  /** The reply to a request that counts tokens; absent if the format has no such endpoint. */
  encodeCount?(inputTokens: number): string
  /** How later requests refer to stored replies; absent if the format has no such feature. */
  readonly storage?: ReplyStorage
}

/**
 * Decodes a reply with vectors: an error that the upstream sent with status 200, or null for another format.
 */
export type VectorReader = (reply: Outline) => Vectors | WireError | null

/** The whole reply to a task. */
interface TaskReply {
  /** The parsed body: an object or an array. */
  readonly body: JsonValue
  readonly headers: IncomingHttpHeaders
}

/** A complete reply that is not usable, although the upstream bills it. */
export interface UnfitTask extends Pick<TaskResult, 'usage' | 'model' | 'outputSize'> {
  readonly kind: 'unfit'
  readonly error: WireError
}

/**
 * Decodes the reply to a task: an error that the upstream sent with status 200, or null for another format.
 */
export type TaskReader = (reply: TaskReply, request: ChatRequest) => TaskResult | UnfitTask | WireError | null

/** The whole reply to a task for a client. */
export interface EncodedTask {
  readonly body: string | Buffer
  /** The content type if it is not JSON; null: events. */
  readonly type?: string | null
}

/** The form in which an upstream serves a task; the rest of its codec is that of OpenAI's format. */
export interface TaskForm {
  readonly path: (model: string, stream: boolean) => string
  /** The path of `base_url` below which `path` is; absent: without a version at its end. */
  readonly basePath?: (base: string) => string
  readonly encode: (request: ChatRequest, losses: Losses) => JsonObject
  /** What becomes of the client's form, which is sent instead; null: the request is sent as JSON. */
  readonly encodeForm?: (request: ChatRequest, losses: Losses) => FormRewrite | null
  /** Edits of a client's own body beside that of the model. */
  readonly edits?: (body: JsonObject, modelName: string) => readonly Edit[]
  readonly read: TaskReader
  /** Reads a stream of pictures, sound or a transcript; absent if the form has none. */
  readonly newReader?: (request: ChatRequest) => MediaReader
}

/** An upstream's endpoint that counts the tokens of a prompt. */
export interface TokenCounter {
  /** Path below the upstream's base URL. `model` is percent-encoded by the dialect. */
  path(model: string): string
  /** The body of the request, from the body of a chat that `encodeRequest` returned. */
  body(chat: JsonObject, model: string): JsonObject
  /** Encloses the final body; absent: it is sent unchanged. */
  wrap?(body: Buffer | string): string
  /** The codec of the request if it differs from that of chats. */
  readonly upstreamCodec?: UpstreamCodec
  /** The count in a reply; null if there is none. */
  read(reply: JsonObject): number | null
}

/** How the beta features that a client requests are forwarded. */
export interface BetaOptions {
  /** The beta features that the upstream's configuration allows; null allows all. */
  readonly betas: readonly string[] | null
  /** Receives the features that are not allowed. */
  readonly losses: Losses
}

/** What a part with a URL holds; `file` is a document. */
export type UrlKind = 'image' | 'file' | 'audio' | 'video'

export interface UpstreamCodec {
  readonly framing: Framing
  /**
   * The dialect whose reasoning state its replies have and its requests take; absent: its own. Converse has
   * that of Claude, so that a conversation can move between Anthropic and Bedrock.
   */
  readonly stateOrigin?: DialectName
  /**
   * Path below the upstream's base URL, and the `accept` header. `model` is percent-encoded by the dialect.
   */
  target(model: string, stream: boolean): { path: string; accept: string }
  /** The format requires a user message first. */
  readonly userFirst?: true
  /** Whether the upstream fetches the URL of an image or file itself; absent: it fetches all URLs. */
  readsUrl?(url: string, type: UrlKind): boolean
  /** Whether the codec encodes a field of `native`; absent: none. */
  readsNative?(path: string): boolean
  /**
   * Whether to request a stream although the client requests a whole reply: proxies close connections that
   * stay silent during a long reply, and some upstreams allow longer replies in streams.
   */
  streamsWhole?(request: ChatRequest, model: ModelFacts): boolean
  /** Whether to request a whole reply although the client requests a stream. */
  wholeOnly?(request: ChatRequest): boolean
  /** The headers with the upstream's credential. */
  credential(apiKey: string): Record<string, string>
  /** Headers that depend on the body (API version, beta flags). */
  headers(body: JsonObject): Record<string, string>
  /**
   * Moves headers of this format into the body, where a cloud expects them: the headers that stay, and the
   * members of the body. Absent: all stay headers.
   */
  inBody?(headers: Readonly<Record<string, string>>): {
    readonly headers: Readonly<Record<string, string>>
    readonly members: JsonObject
  }
  /** The beta features that the upstream's cloud accepts; absent: all. */
  readonly acceptedBetas?: readonly string[]
  /**
   * Adds headers of a client of the same dialect to `own`, the result of `headers`. Absent if the dialect has
   * no such headers.
   */
  forwardedHeaders?(
    own: Readonly<Record<string, string>>,
    client: Readonly<Record<string, string>>,
    options: BetaOptions,
  ): Record<string, string>
  /**
   * The body for this upstream. Throws `GatewayError(untranslatable)` for fields that must not be dropped;
   * reports other dropped fields to `losses`.
   */
  encodeRequest(request: ChatRequest, model: ModelFacts, losses: Losses): JsonObject
  /** The parts of a multipart form, which is sent instead of such a body. */
  encodeForm?(request: ChatRequest, losses: Losses): FormRewrite | null
  /** Serialises such a body faster than `stringifyExact`, which is used if this is absent. */
  readonly write?: (body: JsonObject) => SizedText
  /**
   * Edits of top-level members that adapt a client's own body to this upstream. They are applied to the
   * bytes. `modelName` is the upstream's name of the model. Throws and reports as `encodeRequest` does.
   */
  edits(body: JsonObject, modelName: string, context: EditContext): Edit[]
  /**
   * The body for a second attempt after the upstream refused reasoning of earlier turns that does not match
   * the conversation; it instructs the upstream to drop such reasoning. Null for other errors, and if the
   * body has the instruction already. Absent if upstreams of the format have no such error.
   */
  dropReasoning?(body: JsonObject, error: WireError): JsonObject | null
  /** Absent if upstreams of the format have no endpoint that counts tokens. */
  readonly tokenCounter?: TokenCounter
  /** The body for `decodeReply` of a reply that is the bytes of sound; absent: such a reply is malformed. */
  bodyOfBytes?(bytes: Buffer): JsonObject
  /** Emits a grammatical event stream for any body. Never throws. */
  decodeReply(body: JsonObject, request: ChatRequest, sink: EventSink): void
  /** `mayPause`: the decoder keeps the state that `continuation` needs. */
  newDecoder(request: ChatRequest, sink: EventSink, mayPause?: boolean): StreamDecoder
  /**
   * Decodes several choices at once, each into the sink of its index. Absent if the format has one choice
   * only.
   */
  newChoices?(request: ChatRequest, sinks: readonly EventSink[]): ChoicesDecoder
  /**
   * Whether the model may answer this body, encoded from the request, without the call that the request
   * demands. Its replies are then held back until they have a call, and repeated once by `continuation`.
   * Absent if all models of the format can be forced.
   */
  mayOmitCall?(body: JsonObject, request: ChatRequest): boolean
  /** How a paused reply is continued; null if the format has no pauses. */
  readonly continuation: Continuation | null
  /** A watcher for a stream that passes through; null if clients cannot use this dialect. */
  newWatcher: ((request: WatchedRequest) => StreamWatcher) | null
  /** Usage, finish reason or error of a whole reply that passes through. */
  replyFacts: ((body: JsonObject, onTool?: OnTool) => ReplyFacts) | null
  /** Set for embeddings. */
  readonly readVectors?: VectorReader
  /** Set for tasks. */
  readonly readTask?: TaskReader
  /** Set for tasks whose replies may be streams. */
  readonly newMediaReader?: (request: ChatRequest) => MediaReader
  /** The path of `base_url` below which the path of `target` is; absent: the whole path. */
  readonly basePath?: (base: string) => string
  /** `body` is at most 64 KiB of text. Keys are removed from the message, which has at most 2 KB. */
  decodeError(status: number, headers: IncomingHttpHeaders, body: string): WireError
}

/**
 * The continuation of a reply that the upstream paused. Such a part ends with a `finish` event with `resume`;
 * the gateway requests the next part and joins the parts.
 */
export interface Continuation {
  /** Whether the reply to this body may pause. */
  mayPause(body: JsonObject): boolean
  /**
   * The body that requests the next part, from the previous body and the `resume` of its reply. An empty
   * `resume`, after an event with `retrySame`, requests the same part again.
   */
  next(body: JsonObject, resume: JsonObject): JsonObject
}

/**
 * Decodes the frames of a stream: `frame` is called any number of times, then `end` once. Emits a grammatical
 * event stream for any frames.
 */
interface StreamDecoder extends FrameSink {
  end(): void
  /** The stream ended before its terminator, so that counts after its content may be missing. */
  readonly wasCut?: boolean
}

/** A decoder for several choices, of streams and of whole bodies. */
interface ChoicesDecoder extends StreamDecoder {
  /** Takes a whole body, or an array of all chunks of a stream. */
  take(body: JsonValue): void
}

/** Encodes the events of a stream, which must be in the order of the grammar. */
interface StreamEncoder extends EventSink {
  /** Returns and removes the frames so far. */
  take(): string
  /**
   * The frame that ends the stream in an error; absent if `encodeStreamError` needs nothing of the stream.
   */
  failed?(error: WireError): string | null
  /** The whole reply as JSON text, once it has finished, if the format's last frame repeats it. */
  readonly response?: string | null
}

/** The part of a request that a watcher needs. */
interface WatchedRequest {
  /** Whether the client requested the usage frame. */
  includeUsage: boolean
  /** Called with the whole reply if the format's last frame repeats it, before that frame is forwarded. */
  onWhole?: ((reply: JsonObject) => void) | undefined
  onTool?: OnTool | undefined
}

/** Called with the name of each tool that the model calls. */
type OnTool = (name: string) => void

/** The facts that a watcher collects. */
interface ReplyFacts {
  readonly usage: Usage
  readonly reason: FinishReason | null
  /** An error that the upstream sent with status 200. */
  readonly error: WireError | null
  /** The model that served the reply, as the upstream names it. */
  readonly model: string | null
  /** The vendor's service tier of the reply; null if unknown. */
  readonly tier: string | null
  /** The size of the output so far; for a whole reply only if it has no usage. */
  readonly outputSize: OutputSize
}

/** Watches a stream that passes through unchanged. */
interface StreamWatcher extends ReplyFacts {
  /**
   * False for a frame that must not reach the client: an error, or a frame that only the gateway requested.
   */
  frame(name: string, data: string): boolean
  /** The part of the last frame that only the gateway requested; empty if there is none. */
  readonly excess: string
  /** A frame that the upstream omitted, to be sent before the last frame; empty if there is none. */
  readonly missingFrame: string
  /** The stream has content, so the request must not be retried. */
  readonly hasContent: boolean
  /** The format's own terminator arrived, so an end of file completes the reply. */
  readonly isComplete: boolean
  /** Every choice that began has a finish reason, so an end of file truncates none. */
  readonly isFinished: boolean
  /** The terminator, which the gateway sends after a finished stream without one. */
  readonly terminator: string
  /**
   * The frame that ends the stream in an error; absent if `encodeStreamError` needs nothing of the stream.
   */
  failed?(error: WireError): string | null
}

/**
 * Reports the fields that only upstreams of the client's own format accept. Throws
 * `GatewayError(untranslatable)` if the reply would be wrong without one of them.
 */
export function reportNative(
  { native = [] }: ChatRequest,
  losses: Losses,
  codec: Pick<UpstreamCodec, 'readsNative'> = {},
): void {
  for (const { path, refusal, isMalformed = false } of native) {
    if (codec.readsNative?.(path) === true) continue
    const kind = isMalformed ? 'malformed_request' : 'untranslatable'
    if (refusal !== undefined) throw new GatewayError(kind, refusal, { param: path })
    losses.drop(path, 'no-equivalent')
  }
}

/** The vendor that a dialect belongs to; others may use it, too. */
export const VENDOR_OF: Readonly<Record<DialectName, string>> = {
  'openai-chat': 'openai',
  'openai-responses': 'openai',
  anthropic: 'anthropic',
  gemini: 'google',
  converse: 'amazon',
}

/** Facts of an ordinary model of the dialect's own vendor. */
export function ordinaryModel(id: string, dialect: DialectName): ModelFacts {
  return { id, family: VENDOR_OF[dialect], createdAtSeconds: 0 }
}
