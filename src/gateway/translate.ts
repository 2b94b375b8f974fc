/**
 * An upstream's reply, rewritten for the client: pure, synchronous, one machine per exchange.
 * Knows no socket and no clock. Bytes in, bytes out; the end of file is an input like any other, and
 * the only ways out are `complete` and `failed`.
 */
import type { ChatEvent, EventSink, FinishReason } from '../chat/event.js'
import { isContent } from '../chat/event.js'
import { Fold, type Reply } from '../chat/fold.js'
import { Grammar } from '../chat/grammar.js'
import { Joined } from '../chat/joined.js'
import type { JsonObject, JsonValue } from '../chat/json.js'
import { jsonAnswer, missesSchema } from '../chat/json-answer.js'
import type { ChatRequest } from '../chat/request.js'
import { mergeUsage, type Usage } from '../chat/usage.js'
import type { Egress, Ingress, Seed, StreamDecoder, StreamEncoder } from '../dialects/dialect.js'
import type { WireError } from '../errors.js'
import { SseFramer } from '../wire/sse.js'
import { LossList } from './losses.js'

/** What a reply has come to. */
export interface Verdict {
  readonly outcome: 'open' | 'complete' | 'failed'
  readonly error: WireError | null
  /** What broke the grammar, for the log. */
  readonly breach: string | null
  readonly usage: Usage
  readonly reason: FinishReason | null
  /** The model that answered, as the upstream names it. */
  readonly model: string | null
  /** What the upstream said that the client's format has no words for. */
  readonly lost: readonly string[]
}

/** A reply on its way through. After `complete` or `failed` it takes nothing more and gives nothing. */
export interface Translation extends Verdict {
  /** Content has been seen: from here on nothing may be retried. */
  readonly content: boolean
  /** The upstream paused: with this it can be asked for the rest. Null where there is none to ask for. */
  readonly resume: JsonObject | null
  /** The rest of a paused answer is about to come, as a stream of its own. */
  proceed(): void
  /** What is ready for the client; empty where nothing is. The chunk is only lent, for this call. */
  write(chunk: Buffer): string | Buffer
  /** The upstream's end of file. */
  end(): string | Buffer
  /** The upstream failed in a way that only the transport saw. */
  fail(error: WireError): void
}

/** The reply ended before it was whole. */
export const TRUNCATED: WireError = {
  kind: 'upstream_truncated',
  message: 'The upstream closed the stream before its reply was complete.',
}
/** One event of the reply is too large to be held. */
export const OVERFLOW: WireError = {
  kind: 'upstream_malformed',
  message: 'The upstream sent a single event that is too large.',
}

/** Chunks → frames → events → grammar → the client's dialect. */
export class TranslatedStream implements Translation, EventSink {
  outcome: Verdict['outcome'] = 'open'
  error: WireError | null = null
  usage: Usage = {}
  reason: FinishReason | null = null
  model: string | null = null
  content = false
  private readonly egress: Egress
  private readonly ingress: Ingress
  private readonly request: ChatRequest
  private readonly losses = new LossList()
  private framer: SseFramer
  private decoder: StreamDecoder
  /** Null where the upstream cannot pause: then there is nothing to join. */
  private readonly joined: Joined | null
  private readonly grammar: Grammar
  private readonly encoder: StreamEncoder

  /** `mayPause`: the answer may come in several parts, each a stream of its own. */
  constructor(
    egress: Egress,
    ingress: Ingress,
    request: ChatRequest,
    seed: Seed,
    mayPause = false,
  ) {
    this.egress = egress
    this.ingress = ingress
    this.request = request
    this.encoder = ingress.newEncoder(request, seed)
    this.grammar = new Grammar(this)
    this.joined = mayPause ? new Joined(this.grammar, request.maxOutputTokens) : null
    this.decoder = egress.newDecoder(request, this.joined ?? this.grammar, mayPause)
    this.framer = new SseFramer(this.decoder)
  }

  get breach(): string | null {
    return this.grammar.breach
  }

  get lost(): readonly string[] {
    return this.losses.paths
  }

  get resume(): JsonObject | null {
    return this.joined?.resume ?? null
  }

  proceed(): void {
    if (this.joined === null) return
    this.joined.proceed()
    this.decoder = this.egress.newDecoder(this.request, this.joined, true)
    this.framer = new SseFramer(this.decoder)
  }

  write(chunk: Buffer): string {
    if (this.outcome !== 'open') return ''
    this.framer.write(chunk)
    if (this.framer.overflow) this.fail(OVERFLOW)
    return this.encoder.take()
  }

  end(): string {
    if (this.outcome !== 'open') return ''
    this.framer.end()
    this.decoder.end()
    if (this.resume === null) this.fail(TRUNCATED)
    return this.encoder.take()
  }

  fail(error: WireError): void {
    if (this.outcome !== 'open') return
    this.outcome = 'failed'
    this.error = error
  }

  event(event: ChatEvent): void {
    if (!this.content) this.content = isContent(event)
    switch (event.type) {
      case 'error':
        this.fail(event.error)
        return
      case 'start':
        this.model = event.model
        break
      case 'usage':
        this.usage = mergeUsage(this.usage, event.usage)
        break
      case 'finish':
        this.outcome = 'complete'
        this.reason = event.reason
        note(this.ingress, event, this.losses)
        break
      case 'citation':
      case 'opaque':
        note(this.ingress, event, this.losses)
        break
      default:
    }
    this.encoder.event(event)
  }
}

/** A whole reply for the client, or why there is none. */
export interface TranslatedReply extends Verdict {
  readonly body: string
}

/** A whole answer being collected: one body, or one for each part where the upstream pauses. */
export class WholeAnswer implements EventSink {
  private readonly egress: Egress
  private readonly ingress: Ingress
  private readonly request: ChatRequest
  private readonly fold = new Fold()
  private readonly losses = new LossList()
  private readonly grammar = new Grammar(this)
  private readonly joined: Joined | null
  private parts = 0

  constructor(egress: Egress, ingress: Ingress, request: ChatRequest, mayPause: boolean) {
    this.egress = egress
    this.ingress = ingress
    this.request = request
    this.joined = mayPause ? new Joined(this.grammar, request.maxOutputTokens) : null
  }

  /** Takes a body; with what the rest is to be asked for, or null where this was the last. */
  read(body: JsonObject): JsonObject | null {
    this.egress.decodeReply(body, this.request, this.nextPart())
    return this.joined?.resume ?? null
  }

  /** The same of a stream's bytes, all of them. */
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

  event(event: ChatEvent): void {
    this.fold.event(event)
    note(this.ingress, event, this.losses)
  }

  /** Fold → the client's dialect. */
  encode(seed: Seed): TranslatedReply {
    const { losses, ingress, request } = this
    return verdictOf(this.fold, this.grammar, losses, (reply) => {
      if (missesSchema(reply, request)) losses.drop('response_format.json_schema')
      return ingress.encodeReply(jsonAnswer(reply, request), request, seed)
    })
  }

  private nextPart(): EventSink {
    if (this.parts > 0) this.joined?.proceed()
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
  const answer = new WholeAnswer(egress, ingress, request, false)
  answer.read(body)
  return answer.encode(seed)
}

/**
 * A body of JSON in answer to a request that asked for a stream: a whole reply from an upstream that
 * ignored `stream`, or all the stream's pieces in one array (Gemini without `alt=sse`). The same events,
 * through the client's stream encoder.
 */
export function streamReply(
  body: JsonObject | JsonValue[],
  egress: Egress,
  ingress: Ingress,
  request: ChatRequest,
  seed: Seed,
): TranslatedReply {
  const encoder = ingress.newEncoder(request, seed)
  const fold = new Fold()
  const losses = new LossList()
  const grammar = new Grammar({
    event: (event) => {
      fold.event(event)
      note(ingress, event, losses)
      if (event.type !== 'error') encoder.event(event)
    },
  })
  if (Array.isArray(body)) {
    const decoder = egress.newDecoder(request, grammar)
    for (const piece of body) decoder.frame('', JSON.stringify(piece))
    decoder.end()
  } else {
    egress.decodeReply(body, request, grammar)
  }
  return verdictOf(fold, grammar, losses, () => encoder.take())
}

/** Reports what the client's format cannot say of an event. */
function note(ingress: Ingress, event: ChatEvent, losses: LossList): void {
  const path = ingress.unsaid(event)
  if (path !== null) losses.drop(path)
}

function verdictOf(
  fold: Fold,
  grammar: Grammar,
  losses: LossList,
  body: (reply: Reply) => string,
): TranslatedReply {
  const reply = fold.reply()
  if (reply === null) {
    return {
      body: '',
      outcome: 'failed',
      error: fold.error ?? TRUNCATED,
      breach: grammar.breach,
      usage: fold.partialUsage(),
      reason: null,
      model: null,
      lost: losses.paths,
    }
  }
  const { usage, reason, model } = reply
  return {
    body: body(reply),
    outcome: 'complete',
    error: null,
    breach: null,
    usage,
    reason,
    model,
    lost: losses.paths,
  }
}
