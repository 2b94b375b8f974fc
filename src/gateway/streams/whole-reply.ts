/**
 * Translates a reply that is read whole before the client gets any of it, as one body or as a complete
 * stream. Pure and synchronous. The reply arrives in one body, or in several if the upstream pauses.
 */
import type { ChatEvent, EventSink } from '../../chat/event.js'
import { Fold, type Reply } from '../../chat/reply/fold.js'
import { Grammar } from '../../chat/grammar.js'
import { JoinedReply } from '../../chat/reply/join-replies.js'
import { MustCall } from '../../chat/reply/must-call.js'
import type { JsonObject, JsonValue } from '../../chat/json.js'
import { withoutCodeFence, violatesSchema } from '../../chat/reply/json-reply.js'
import type { ChatRequest } from '../../chat/request.js'
import { NO_OUTPUT, outputSizeOf } from '../../chat/reply/output-size.js'
import { reportsOutput, type Usage } from '../../chat/usage.js'
import type { Egress, Ingress, Seed, StreamEncoder } from '../../dialects/dialect.js'
import type { ErrorKind } from '../../errors.js'
import { stringifyExact } from '../../wire/json/exact-numbers.js'
import { sizedText, type SizedText } from '../../wire/frames/sized-text.js'
import { SseFramer } from '../../wire/frames/sse-framer.js'
import type { Steps } from '../../wire/steps.js'
import { LossList } from './translation-losses.js'
import {
  note,
  overflowError,
  TRUNCATED,
  type ReplyResult,
  type TranslationOptions,
} from './translated-stream.js'

/** A whole reply for the client, or why there is none. */
export interface TranslatedReply extends ReplyResult {
  readonly body: string
  /** Size of the body in UTF-8. */
  readonly bytes: number
}

/** Reads the bodies of one reply and encodes it for the client. */
export interface WholeReply {
  /**
   * Takes a body, or all events of a stream in one array (Gemini without `alt=sse`). Returns the state with
   * which the rest is requested, or null after the last part.
   */
  read(body: JsonObject | JsonValue[]): JsonObject | null
  /** The same, for a complete event stream, one chunk in each step. */
  readEvents(chunks: readonly Buffer[]): Steps<JsonObject | null>
  /** The error because of which the same request is sent again; null if the upstream only paused. */
  readonly repeatCause: ErrorKind | null
  /** The counts of the parts so far. */
  readonly usage: Usage
  /** The reply for the client, after the last body was read. */
  encode(): TranslatedReply
}

/** A reply with one choice. */
export class SingleWholeReply implements WholeReply, EventSink {
  private readonly egress: Egress
  private readonly ingress: Ingress
  private readonly request: ChatRequest
  private readonly seed: Seed
  private readonly fold = new Fold()
  private readonly losses = new LossList()
  private readonly grammar = new Grammar(this)
  /** Joins the parts of the reply; null if the upstream cannot pause. */
  private readonly joined: JoinedReply | null
  /** Takes the events of the decoder. */
  private readonly sink: EventSink
  /** Null if the client requested a whole reply. */
  private readonly encoder: StreamEncoder | null
  private parts = 0
  /** See `ReplyResult.wasCut`. */
  private wasCut = false

  /** `isStreamed`: the client gets the events of a stream. */
  constructor(
    { egress, ingress, request, seed, ...options }: TranslationOptions,
    isStreamed: boolean,
  ) {
    const { mayPause = false, mayOmitCall = false } = options
    this.egress = egress
    this.ingress = ingress
    this.request = request
    this.seed = seed
    this.joined = mayPause ? new JoinedReply(this.grammar, request.maxOutputTokens) : null
    const sink = this.joined ?? this.grammar
    this.sink = mayOmitCall ? new MustCall(sink) : sink
    this.encoder = isStreamed ? ingress.newEncoder(request, seed) : null
  }

  read(body: JsonObject | JsonValue[]): JsonObject | null {
    const sink = this.nextPart()
    if (Array.isArray(body)) {
      const decoder = this.egress.newDecoder(this.request, sink, this.joined !== null)
      for (const event of body) decoder.frame('', stringifyExact(event))
      decoder.end()
    } else this.egress.decodeReply(body, this.request, sink)
    return this.joined?.resume ?? null
  }

  *readEvents(chunks: readonly Buffer[]): Steps<JsonObject | null> {
    const sink = this.nextPart()
    const decoder = this.egress.newDecoder(this.request, sink, this.joined !== null)
    const framer = new SseFramer(decoder)
    for (const chunk of chunks) {
      framer.write(chunk)
      yield
    }
    framer.end()
    if (framer.overflow && !this.grammar.ended) {
      sink.event({ type: 'error', error: overflowError(framer) })
    }
    decoder.end()
    this.wasCut = decoder.wasCut === true
    return this.joined?.resume ?? null
  }

  get repeatCause(): ErrorKind | null {
    return this.joined?.failure ?? null
  }

  get usage(): Usage {
    return this.fold.partialUsage()
  }

  event(event: ChatEvent): void {
    this.fold.event(event)
    note(this.ingress, event, this.losses)
    if (event.type !== 'error') this.encoder?.event(event)
  }

  /** Fold → the client's dialect. */
  encode(): TranslatedReply {
    const { losses, ingress, request, seed, encoder, wasCut } = this
    const folded = { fold: this.fold, breach: this.grammar.breach, losses, wasCut }
    return replyResultOf(folded, (reply) => {
      if (encoder !== null) return sizedText(encoder.take())
      if (violatesSchema(reply, request)) losses.drop('response_format.json_schema')
      return ingress.encodeReply(withoutCodeFence(reply, request), request, seed)
    })
  }

  private nextPart(): EventSink {
    if (this.parts > 0) this.joined?.startNextPart()
    this.parts += 1
    return this.sink
  }
}

/** Translates a whole body: decode → grammar → fold → encode, with the same events as a stream. */
export function translateReply(body: JsonObject, options: TranslationOptions): TranslatedReply {
  const reply = new SingleWholeReply(options, false)
  reply.read(body)
  return reply.encode()
}

/**
 * Translates a JSON body in reply to a request for a stream: a whole reply from an upstream that ignored
 * `stream`, or all events of the stream in one array.
 */
export function streamReply(
  body: JsonObject | JsonValue[],
  options: TranslationOptions,
): TranslatedReply {
  const reply = new SingleWholeReply(options, true)
  reply.read(body)
  return reply.encode()
}

/** A reply after its last event. */
export interface FoldedReply {
  readonly fold: Fold
  /** The violation of the grammar; null if there is none. */
  readonly breach: string | null
  readonly losses: LossList
  /** See `ReplyResult.wasCut`. */
  readonly wasCut?: boolean
}

/** The reply for the client; `encode` is called only if the fold has a reply. */
export function replyResultOf(
  { fold, breach, losses, wasCut = false }: FoldedReply,
  encode: (reply: Reply) => SizedText,
): TranslatedReply {
  const reply = fold.reply()
  if (reply === null) {
    return {
      body: '',
      bytes: 0,
      outcome: 'failed',
      error: fold.error ?? TRUNCATED,
      breach,
      usage: fold.partialUsage(),
      reason: fold.endReason,
      model: null,
      tier: null,
      lost: losses.paths,
      outputSize: outputSizeOf(fold.partialBlocks()),
    }
  }
  const { usage, reason, model, serviceTier: tier = null } = reply
  const { text, bytes } = encode(reply)
  return {
    body: text,
    bytes,
    outcome: 'complete',
    error: null,
    breach: null,
    usage,
    reason,
    model,
    tier,
    lost: losses.paths,
    outputSize: reportsOutput(usage) ? NO_OUTPUT : outputSizeOf(reply.blocks),
    wasCut,
  }
}
