/**
 * An answer that is read as a whole before the client gets any of it, whole or as a stream that is over
 * at once. Pure and synchronous, like every translation; it comes in one body, or in one for each part
 * where the upstream pauses.
 */
import type { ChatEvent, EventSink } from '../../chat/event.js'
import { Fold, type Reply } from '../../chat/reply/fold.js'
import { Grammar } from '../../chat/grammar.js'
import { JoinedReply } from '../../chat/reply/join-replies.js'
import type { JsonObject, JsonValue } from '../../chat/json.js'
import { withoutCodeFence, violatesSchema } from '../../chat/reply/json-reply.js'
import type { ChatRequest } from '../../chat/request.js'
import { NO_OUTPUT, outputSizeOf } from '../../chat/reply/output-size.js'
import { reportsOutput } from '../../chat/usage.js'
import type { Egress, Ingress, Seed, StreamEncoder } from '../../dialects/dialect.js'
import type { ErrorKind } from '../../errors.js'
import { sizedText, type SizedText } from '../../wire/frames/sized-text.js'
import { SseFramer } from '../../wire/frames/sse.js'
import { LossList } from './translation-losses.js'
import { note, OVERFLOW, TRUNCATED, type ReplyResult } from './translated-stream.js'

/** A whole reply for the client, or why there is none. */
export interface TranslatedReply extends ReplyResult {
  readonly body: string
  /** How many the body has in UTF-8. */
  readonly bytes: number
}

/** How an answer is to be read, and how the client wants it. */
export interface Reading {
  /** The client asked for a stream: the same events go through its encoder of streams. */
  readonly stream: boolean
  /** The upstream may pause; the answer then comes in several parts. */
  readonly mayPause: boolean
}

/** Bodies of one answer in, what the client gets of it out. */
export interface WholeReply {
  /**
   * Takes a body, or all the pieces of a stream in one array (Gemini without `alt=sse`). Returns with
   * what the rest is to be asked for, or null where this was the last.
   */
  read(body: JsonObject | JsonValue[]): JsonObject | null
  /** The same of a stream's bytes, all of them. */
  readEvents(bytes: Buffer): JsonObject | null
  /** Why what was read last came to nothing and is asked for again; null where it only paused. */
  readonly mishap: ErrorKind | null
  /** What the client gets, once the last body was read. */
  encode(): TranslatedReply
}

/** A whole answer being collected. */
export class SingleWholeReply implements WholeReply, EventSink {
  private readonly egress: Egress
  private readonly ingress: Ingress
  private readonly request: ChatRequest
  private readonly seed: Seed
  private readonly fold = new Fold()
  private readonly losses = new LossList()
  private readonly grammar = new Grammar(this)
  /** Null where the upstream cannot pause: then there is nothing to join. */
  private readonly joined: JoinedReply | null
  /** Null where the client wants the answer whole. */
  private readonly encoder: StreamEncoder | null
  private parts = 0

  constructor(
    egress: Egress,
    ingress: Ingress,
    request: ChatRequest,
    seed: Seed,
    { stream, mayPause }: Reading,
  ) {
    this.egress = egress
    this.ingress = ingress
    this.request = request
    this.seed = seed
    this.joined = mayPause ? new JoinedReply(this.grammar, request.maxOutputTokens) : null
    this.encoder = stream ? ingress.newEncoder(request, seed) : null
  }

  read(body: JsonObject | JsonValue[]): JsonObject | null {
    const sink = this.nextPart()
    if (Array.isArray(body)) {
      const decoder = this.egress.newDecoder(this.request, sink, this.joined !== null)
      for (const piece of body) decoder.frame('', JSON.stringify(piece))
      decoder.end()
    } else this.egress.decodeReply(body, this.request, sink)
    return this.joined?.resume ?? null
  }

  readEvents(bytes: Buffer): JsonObject | null {
    const sink = this.nextPart()
    const decoder = this.egress.newDecoder(this.request, sink, this.joined !== null)
    const framer = new SseFramer(decoder)
    framer.write(bytes)
    framer.end()
    if (framer.overflow && !this.grammar.ended) sink.event({ type: 'error', error: OVERFLOW })
    decoder.end()
    return this.joined?.resume ?? null
  }

  get mishap(): ErrorKind | null {
    return this.joined?.failure ?? null
  }

  event(event: ChatEvent): void {
    this.fold.event(event)
    note(this.ingress, event, this.losses)
    if (event.type !== 'error') this.encoder?.event(event)
  }

  /** Fold → the client's dialect. */
  encode(): TranslatedReply {
    const { losses, ingress, request, seed, encoder } = this
    return replyResultOf(this.fold, this.grammar.breach, losses, (reply) => {
      if (encoder !== null) return sizedText(encoder.take())
      if (violatesSchema(reply, request)) losses.drop('response_format.json_schema')
      return ingress.encodeReply(withoutCodeFence(reply, request), request, seed)
    })
  }

  private nextPart(): EventSink {
    if (this.parts > 0) this.joined?.startNextPart()
    this.parts += 1
    return this.joined ?? this.grammar
  }
}

/** Decode → grammar → fold → encode: the same events that a stream of this answer is made of. */
export function translateReply(
  body: JsonObject,
  egress: Egress,
  ingress: Ingress,
  request: ChatRequest,
  seed: Seed,
): TranslatedReply {
  const reading = { stream: false, mayPause: false }
  const answer = new SingleWholeReply(egress, ingress, request, seed, reading)
  answer.read(body)
  return answer.encode()
}

/**
 * A body of JSON in answer to a request that asked for a stream: a whole reply from an upstream that
 * ignored `stream`, or all the stream's pieces in one array.
 */
export function streamReply(
  body: JsonObject | JsonValue[],
  egress: Egress,
  ingress: Ingress,
  request: ChatRequest,
  seed: Seed,
): TranslatedReply {
  const reading = { stream: true, mayPause: false }
  const answer = new SingleWholeReply(egress, ingress, request, seed, reading)
  answer.read(body)
  return answer.encode()
}

/** What a fold has come to; `body` is asked only where it has come to a reply. */
export function replyResultOf(
  fold: Fold,
  breach: string | null,
  losses: LossList,
  body: (reply: Reply) => SizedText,
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
      reason: null,
      model: null,
      tier: null,
      lost: losses.paths,
      outputSize: NO_OUTPUT,
    }
  }
  const { usage, reason, model, serviceTier: tier = null } = reply
  const { text, bytes } = body(reply)
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
  }
}
