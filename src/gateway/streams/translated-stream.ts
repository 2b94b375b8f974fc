/**
 * An upstream's reply, rewritten for the client: pure, synchronous, one machine per exchange.
 * Knows no socket and no clock. Bytes in, bytes out; the end of file is an input like any other, and
 * the only ways out are `complete` and `failed`.
 */
import type { ChatEvent, EventSink, FinishReason } from '../../chat/event.js'
import { isContent } from '../../chat/event.js'
import { Grammar } from '../../chat/grammar.js'
import { JoinedReply } from '../../chat/reply/join-replies.js'
import type { JsonObject } from '../../chat/json.js'
import type { ChatRequest } from '../../chat/request.js'
import { OutputMeter, type OutputSize } from '../../chat/reply/output-size.js'
import { mergeUsage, type Usage } from '../../chat/usage.js'
import type { Egress, Ingress, Seed, StreamDecoder, StreamEncoder } from '../../dialects/dialect.js'
import type { ErrorKind, WireError } from '../../errors.js'
import { SseFramer } from '../../wire/frames/sse.js'
import { LossList } from './translation-losses.js'

/** What a reply has come to. */
export interface ReplyResult {
  readonly outcome: 'open' | 'complete' | 'failed'
  readonly error: WireError | null
  /** What broke the grammar, for the log. */
  readonly breach: string | null
  readonly usage: Usage
  readonly reason: FinishReason | null
  /** The model that answered, as the upstream names it. */
  readonly model: string | null
  /** The vendor's tier that served it, as OpenAI names them; null where the reply does not say. */
  readonly tier: string | null
  /** What the upstream said that the client's format has no words for. */
  readonly lost: readonly string[]
  /** How much was said so far; of a whole reply only where `usage` does not tell. */
  readonly outputSize: OutputSize
}

/** A reply on its way through. After `complete` or `failed` it takes nothing more and gives nothing. */
export interface Translation extends ReplyResult {
  /** Content has been seen: from here on nothing may be retried. */
  readonly content: boolean
  /** The upstream paused: with this it can be asked for the rest. Null where there is none to ask for. */
  readonly resume: JsonObject | null
  /** Why what it said so far came to nothing and is asked for again; null where it only paused. */
  readonly mishap: ErrorKind | null
  /** The rest of a paused answer is about to come, as a stream of its own. */
  proceed(): void
  /** What is ready for the client; empty if nothing is. */
  write(chunk: Buffer): string | Buffer
  /** The upstream's end of file. */
  end(): string | Buffer
  /** The upstream failed in a way that only the transport saw. */
  fail(error: WireError): void
  /** The frame that tells the client of the error; null if the format's frame needs nothing of the stream. */
  errorFrame(error: WireError): string | null
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
  outcome: ReplyResult['outcome'] = 'open'
  error: WireError | null = null
  usage: Usage = {}
  reason: FinishReason | null = null
  model: string | null = null
  tier: string | null = null
  content = false
  readonly outputSize = new OutputMeter()
  private readonly egress: Egress
  private readonly ingress: Ingress
  private readonly request: ChatRequest
  private readonly losses = new LossList()
  private framer: SseFramer
  private decoder: StreamDecoder
  /** Null where the upstream cannot pause: then there is nothing to join. */
  private readonly joined: JoinedReply | null
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
    this.joined = mayPause ? new JoinedReply(this.grammar, request.maxOutputTokens) : null
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

  get mishap(): ErrorKind | null {
    return this.joined?.failure ?? null
  }

  proceed(): void {
    if (this.joined === null) return
    this.joined.startNextPart()
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

  errorFrame(error: WireError): string | null {
    return this.encoder.failed?.(error) ?? null
  }

  event(event: ChatEvent): void {
    if (!this.content) this.content = isContent(event)
    this.outputSize.add(event)
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
        this.tier = event.serviceTier ?? null
        note(this.ingress, event, this.losses)
        break
      case 'citation':
      case 'image':
      case 'opaque':
        note(this.ingress, event, this.losses)
        break
      default:
    }
    this.encoder.event(event)
  }
}

/** Reports what the client's format cannot say of an event. */
export function note(ingress: Ingress, event: ChatEvent, losses: LossList): void {
  const path = ingress.lossOf(event)
  if (path !== null) losses.drop(path)
}
