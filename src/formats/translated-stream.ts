/**
 * Translates an upstream's stream for the client: bytes in, bytes out. Pure and synchronous. The end of the
 * upstream's connection is an input like any other; the only outcomes are `complete` and `failed`.
 */
import type { ErrorKind, WireError } from '../errors.js'
import { isContent, type ChatEvent, type EventSink, type FinishReason } from './chat/event.js'
import { Grammar } from './chat/grammar.js'
import { JoinedReply } from './chat/join-replies.js'
import type { JsonObject } from '../base/json.js'
import { MustCall } from './chat/must-call.js'
import { OutputMeter, type OutputSize } from './chat/output-size.js'
import type { ChatRequest } from './chat/request.js'
import { mergeUsage, type Usage } from './chat/usage.js'
import type { UpstreamCodec, ClientCodec, Seed, StreamDecoder, StreamEncoder } from './dialect.js'
import { LossList, note } from './losses.js'
import { newFramer } from './wire/aws/event-stream.js'
import type { FrameSink, SseFramer } from './wire/frames/sse-framer.js'

/** The result of a reply so far. */
export interface ReplyResult {
  readonly outcome: 'open' | 'complete' | 'failed'
  readonly error: WireError | null
  /** The violation of the grammar, for the log; null if there is none. */
  readonly breach: string | null
  readonly usage: Usage
  readonly reason: FinishReason | null
  /** The model that replied, as the upstream names it. */
  readonly model: string | null
  /** The vendor's service tier, by OpenAI's names; null if the reply does not state it. */
  readonly tier: string | null
  /** Paths of parts of the reply that the client's format cannot represent. */
  readonly lost: readonly string[]
  /** Size of the output so far; of a whole reply only if `usage` lacks the output tokens. */
  readonly outputSize: OutputSize
  /** The stream ended before its terminator, so that counts after its content may be missing. */
  readonly wasCut?: boolean
  /** A guardrail refused the reply: `cut`: before the upstream had completed it. */
  readonly blocked?: 'cut' | 'complete' | undefined
}

/** Judges the events of a reply on their way to the client. */
export interface EventGuard {
  /**
   * Takes events in order, and passes to `release` those that were judged and may be sent, without delay.
   * Resolves when all are; null: they are already.
   */
  take(events: readonly ChatEvent[], release: (events: readonly ChatEvent[]) => void): Promise<void> | null
  /** The client has left: nothing more is judged. */
  stop(): void
  /** A guardrail refused the reply. */
  readonly blocked: ReplyResult['blocked']
}

/** The translation of one reply. After `complete` or `failed` it ignores input and returns no output. */
export interface Translation extends ReplyResult {
  /** Content has been seen: from here on nothing may be retried. */
  readonly content: boolean
  /** Set if the upstream paused: the state with which the rest is requested. */
  readonly resume: JsonObject | null
  /** The error because of which the same request is sent again; null if the upstream only paused. */
  readonly repeatCause: ErrorKind | null
  /** Call before the rest of a paused reply, which arrives as a separate stream. */
  proceed(): void
  /** Takes a chunk; returns the output for the client, empty if there is none. */
  write(chunk: Buffer): string | Buffer
  /** The upstream's connection ended. */
  end(): string | Buffer
  /** The end of the body completes the reply, so that a lost connection fails it. */
  readonly endsWithBody?: boolean
  /**
   * A large event is waiting, because it is processed in turns of the event loop of its own: `more` is called
   * once in each turn while this is true, and nothing else.
   */
  readonly isPending: boolean
  /** Processes a part of what is waiting; returns its output. */
  more(): string | Buffer
  /** Resolves when `more` can continue; null: in the next turn. */
  readonly judging?: Promise<void> | null
  /** The client has left: the rest is not judged. */
  unguard?(): void
  /** A guardrail refused the rest, which is still read: it only counts. */
  meter?(): void
  /** The transport failed. */
  fail(error: WireError): void
  /** The error frame for the client; null if the format's frame does not depend on the stream. */
  errorFrame(error: WireError): string | null
}

/** The formats of a reply, and its request. */
export interface TranslationOptions {
  /** The format of the upstream. */
  readonly upstreamCodec: UpstreamCodec
  /** The format of the client. */
  readonly clientCodec: ClientCodec
  readonly request: ChatRequest
  /** The members of the reply that the gateway makes itself. */
  readonly seed: Seed
  /**
   * The upstream may pause: the reply then arrives in several parts, each a separate stream or body. Default
   * false.
   */
  readonly mayPause?: boolean
  /** The model may omit the call that the request demands. Default false. */
  readonly mayOmitCall?: boolean
  /** Absent or null: the reply is not judged. */
  readonly guard?: EventGuard | null
  /** Gets the name of each tool that the model calls. */
  readonly onTool?: ((name: string) => void) | undefined
}

/** The reply ended before its terminator. */
export const TRUNCATED: WireError = {
  kind: 'upstream_truncated',
  message: 'The upstream closed the stream before its reply was complete.',
}
/** One event of the reply exceeds the limit of the framer. */
const OVERFLOW: WireError = {
  kind: 'upstream_malformed',
  message: 'The upstream sent a single event that is too large.',
}

/** The error of a part of a reply, such as `event`, that exceeds a limit of `ReplyScan`. */
export function tooComplex(part: string, excess: string): WireError {
  return {
    kind: 'upstream_malformed',
    message:
      `The upstream's ${part} is too complex to be translated: it has ${excess}. Request less, such as fewer ` +
      'choices or top_logprobs, or use a format of the upstream.',
  }
}

/** Text of a reply, in bytes: some formats repeat all of it in their last event. */
const MAX_TEXT_BYTES = 4 * 1024 * 1024

/** The error of a stream whose framer has stopped. */
export function overflowError({ excess, fault }: Pick<SseFramer, 'excess' | 'fault'>): WireError {
  if (fault !== null) return fault
  return excess === null ? OVERFLOW : tooComplex('event', excess)
}

interface WaitingFrame {
  readonly name: string
  readonly data: string
  readonly isLarge: boolean
}

/** Chunks → frames → events → grammar → the client's dialect. */
export class TranslatedStream implements Translation, EventSink, FrameSink {
  outcome: ReplyResult['outcome'] = 'open'
  error: WireError | null = null
  usage: Usage = {}
  reason: FinishReason | null = null
  model: string | null = null
  tier: string | null = null
  content = false
  readonly outputSize: OutputMeter
  private readonly upstreamCodec: UpstreamCodec
  private readonly clientCodec: ClientCodec
  private readonly request: ChatRequest
  private readonly losses = new LossList()
  private framer: SseFramer
  private decoder: StreamDecoder
  /** Joins the parts of the reply; null if the upstream cannot pause. */
  private readonly joined: JoinedReply | null
  private readonly grammar: Grammar
  /** Takes the events of the decoder. */
  private readonly sink: EventSink
  private readonly encoder: StreamEncoder
  /** A large frame and those after it, while their output is not complete; null if there is none. */
  private waiting: WaitingFrame[] | null = null
  /** The upstream's connection has ended behind the waiting frames. */
  private hasEnded = false
  private readonly guard: EventGuard | null
  /** Events that the guard does not have yet. */
  private unjudged: ChatEvent[] = []
  /** Resolves when the guard has released events, or judged all that it has; null if it has none. */
  judging: Promise<void> | null = null
  /** Settle `judging`. */
  private wake: () => void = () => undefined
  private threw: (cause: unknown) => void = () => undefined
  /** What follows a refusal is read to count its tokens. */
  private isMetered = false
  /** The upstream's reply was complete when it was metered. */
  private hasCompleted = false

  constructor({ upstreamCodec, clientCodec, request, seed, ...options }: TranslationOptions) {
    const { mayPause = false, mayOmitCall = false, guard = null, onTool } = options
    this.outputSize = new OutputMeter(onTool)
    this.guard = guard
    this.upstreamCodec = upstreamCodec
    this.clientCodec = clientCodec
    this.request = request
    this.encoder = clientCodec.newEncoder(request, seed)
    this.grammar = new Grammar(this)
    this.joined = mayPause ? new JoinedReply(this.grammar, request.maxOutputTokens) : null
    const sink = this.joined ?? this.grammar
    this.sink = mayOmitCall ? new MustCall(sink) : sink
    this.decoder = upstreamCodec.newDecoder(request, this.sink, mayPause)
    this.framer = newFramer(this.upstreamCodec.framing, this)
  }

  get isPending(): boolean {
    if (this.judging !== null) return true
    return this.waiting !== null || (this.reads && this.framer.isPending)
  }

  /** Whether input counts. */
  private get reads(): boolean {
    return this.outcome === 'open' || this.isMetered
  }

  get blocked(): ReplyResult['blocked'] {
    return this.hasCompleted ? 'complete' : this.guard?.blocked
  }

  meter(): void {
    this.isMetered = true
  }

  unguard(): void {
    this.guard?.stop()
  }

  /** Passes the new events to the guard, and those that it has judged to the encoder. Returns the output. */
  private judged(): string {
    const { guard, unjudged } = this
    if (guard === null) return this.encoder.take()
    if (unjudged.length > 0 && this.judging === null) {
      this.unjudged = []
      if (this.isMetered) return ''
      const judging = guard.take(unjudged, (events) => this.release(events))
      if (judging !== null) this.awaitJudged(judging)
    }
    // The end of a reply waits for its ledger entry, which is written when nothing is judged any more.
    return this.judging === null || this.outcome === 'open' ? this.encoder.take() : ''
  }

  private awaitJudged(judging: Promise<void>): void {
    this.awaitEvents()
    judging.then(
      () => {
        this.judging = null
        this.wake()
      },
      (cause: unknown) => {
        this.judging = null
        this.threw(cause)
      },
    )
  }

  private awaitEvents(): void {
    this.judging = new Promise<void>((resolve, reject) => {
      this.wake = resolve
      this.threw = reject
    })
  }

  private release(events: readonly ChatEvent[]): void {
    for (const event of events) if (this.outcome === 'open') this.send(event)
    if (this.judging === null) return
    const { wake } = this
    this.awaitEvents()
    wake()
  }

  get breach(): string | null {
    return this.grammar.breach
  }

  get lost(): readonly string[] {
    return this.losses.paths
  }

  get wasCut(): boolean {
    return this.decoder.wasCut === true
  }

  get resume(): JsonObject | null {
    return this.joined?.resume ?? null
  }

  get repeatCause(): ErrorKind | null {
    return this.joined?.failure ?? null
  }

  proceed(): void {
    if (this.joined === null) return
    this.joined.startNextPart()
    this.decoder = this.upstreamCodec.newDecoder(this.request, this.sink, true)
    this.framer = newFramer(this.upstreamCodec.framing, this)
    this.hasEnded = false
  }

  write(chunk: Buffer): string {
    if (!this.reads) return ''
    this.framer.write(chunk)
    if (!this.isPending) this.checkOverflow()
    return this.judged()
  }

  end(): string {
    if (!this.reads) return ''
    this.framer.end()
    this.hasEnded = true
    if (this.waiting === null) this.finish()
    return this.judged()
  }

  frame(name: string, data: string): void {
    const isLarge = this.framer.largeEvent !== null
    if (isLarge) this.waiting ??= []
    if (this.waiting === null) this.decoder.frame(name, data)
    else this.waiting.push({ name, data, isLarge })
  }

  /** Reads one large frame, or the small ones up to the next; the output follows in a turn of its own. */
  more(): string {
    if (this.guard !== null) {
      const isRead = this.waiting === null && !this.framer.isPending
      if (this.unjudged.length > 0 || isRead) return this.judged()
    }
    if (this.reads && this.framer.isPending) {
      this.framer.more()
      if (!this.isPending) this.checkOverflow()
      return this.judged()
    }
    const { waiting } = this
    if (waiting === null) return ''
    let next = this.reads ? waiting.shift() : undefined
    if (next?.isLarge === true) {
      this.decoder.frame(next.name, next.data)
      return ''
    }
    const output = this.judged()
    for (; next !== undefined; next = waiting.shift()) {
      this.decoder.frame(next.name, next.data)
      if (waiting[0]?.isLarge === true) return output + this.judged()
    }
    this.waiting = null
    this.checkOverflow()
    if (this.hasEnded) this.finish()
    return output + this.judged()
  }

  private checkOverflow(): void {
    if (this.framer.overflow) this.fail(overflowError(this.framer))
  }

  private finish(): void {
    this.checkOverflow()
    if (!this.reads) return
    this.decoder.end()
    if (this.outcome !== 'open' || this.resume !== null) return
    if (this.guard === null) this.fail(TRUNCATED)
    else if (!this.grammar.ended) this.unjudged.push({ type: 'error', error: TRUNCATED })
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
    this.outputSize.add(event)
    if (this.outputSize.bytes > MAX_TEXT_BYTES) {
      this.fail(tooComplex('reply', `more than ${MAX_TEXT_BYTES} bytes of text`))
      return
    }
    if (this.guard === null) {
      this.send(event)
      return
    }
    // Usage and model count although the reply may be refused.
    if (event.type === 'usage') this.usage = mergeUsage(this.usage, event.usage)
    else if (event.type === 'start') this.model = event.model
    else if (event.type === 'finish' && this.isMetered) {
      this.hasCompleted = true
      this.reason ??= event.reason
      this.tier = event.serviceTier ?? null
    }
    this.unjudged.push(event)
  }

  /** Takes an event for the client. */
  private send(event: ChatEvent): void {
    if (event.type === 'error') {
      this.fail(event.error)
      this.reason = event.reason ?? null
      return
    }
    if (event.type === 'usage' && this.guard === null) {
      this.usage = mergeUsage(this.usage, event.usage)
    }
    noteSent(this, event, this.clientCodec, this.losses)
    this.encoder.event(event)
  }
}

/** The members of a result that the events of the reply state. */
type SentReply = {
  -readonly [Name in 'outcome' | 'reason' | 'model' | 'tier' | 'content']: Translation[Name]
}

/** Notes what an event states about the reply to its client. */
export function noteSent(
  reply: SentReply,
  event: ChatEvent,
  clientCodec: ClientCodec,
  losses: LossList,
): void {
  if (!reply.content) reply.content = isContent(event)
  switch (event.type) {
    case 'start':
      reply.model = event.model
      return
    case 'finish':
      reply.outcome = 'complete'
      reply.reason = event.reason
      reply.tier = event.serviceTier ?? null
      note(clientCodec, event, losses)
      return
    case 'tool-start':
    case 'citation':
    case 'image':
    case 'opaque':
      note(clientCodec, event, losses)
      return
    default:
  }
}
