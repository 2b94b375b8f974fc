/**
 * Translates a reply that is read whole before the client gets any of it, as one body or as a complete
 * stream. Pure and synchronous. The reply arrives in one body, or in several if the upstream pauses.
 */
import type { ErrorKind } from '../../errors.js'
import { fragmentOf, isContent, type ChatEvent, type EventSink } from '../../formats/chat/event.js'
import { Fold, type Reply } from '../../formats/chat/fold.js'
import { Grammar } from '../../formats/chat/grammar.js'
import { JoinedReply } from '../../formats/chat/join-replies.js'
import { withoutCodeFence, violatesSchema } from '../../formats/chat/json-schema.js'
import type { JsonObject, JsonValue } from '../../base/json.js'
import { MustCall } from '../../formats/chat/must-call.js'
import { NO_OUTPUT, OutputMeter, outputSizeOf, type OutputSize } from '../../formats/chat/output-size.js'
import type { ChatRequest } from '../../formats/chat/request.js'
import { reportsOutput, addUsage, mergeUsage, type Usage } from '../../formats/chat/usage.js'
import type {
  UpstreamCodec,
  ClientCodec,
  Seed,
  StreamEncoder,
  Choice,
  ChoicesDecoder,
} from '../../formats/dialect.js'
import { newFramer } from '../../formats/wire/aws/event-stream.js'
import { sizedText, type SizedText } from '../../formats/wire/frames/sized-text.js'
import { stringifyExact } from '../../formats/wire/json/exact-numbers.js'
import type { Steps } from '../../base/steps.js'
import { LossList, note } from '../../formats/losses.js'
import {
  overflowError,
  tooComplex,
  TRUNCATED,
  type EventGuard,
  type ReplyResult,
  type TranslationOptions,
} from '../../formats/translated-stream.js'

/** A whole reply for the client, or why there is none. */
interface TranslatedReply extends ReplyResult {
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
  /** Judges the reply after the last body was read; null if that is done already. */
  judge(): Promise<void> | null
  /** The reply for the client, after the last body was read. */
  encode(): TranslatedReply
}

/** A reply with one choice. */
export class SingleWholeReply implements WholeReply, EventSink {
  private readonly upstreamCodec: UpstreamCodec
  private readonly clientCodec: ClientCodec
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
  /** The approximate size of the encoded reply. */
  private size = 0
  /** See `ReplyResult.wasCut`. */
  private wasCut = false
  /** Null if nothing judges the reply. */
  private readonly guard: EventGuard | null
  /** The events that the guard has not judged, and their size. */
  private unjudged: ChatEvent[] = []
  private readonly received = new OutputMeter()
  private readonly onTool: TranslationOptions['onTool']

  /** `isStreamed`: the client gets the events of a stream. */
  constructor(options: TranslationOptions, isStreamed: boolean) {
    const { upstreamCodec, clientCodec, request, seed } = options
    const { mayPause = false, mayOmitCall = false, guard = null } = options
    this.guard = guard
    this.onTool = options.onTool
    this.upstreamCodec = upstreamCodec
    this.clientCodec = clientCodec
    this.request = request
    this.seed = seed
    this.joined = mayPause ? new JoinedReply(this.grammar, request.maxOutputTokens) : null
    const sink = this.joined ?? this.grammar
    this.sink = mayOmitCall ? new MustCall(sink) : sink
    this.encoder = isStreamed ? clientCodec.newEncoder(request, seed) : null
  }

  read(body: JsonObject | JsonValue[]): JsonObject | null {
    const sink = this.nextPart()
    if (Array.isArray(body)) {
      const decoder = this.upstreamCodec.newDecoder(this.request, sink, this.joined !== null)
      for (const event of body) decoder.frame('', stringifyExact(event))
      decoder.end()
    } else this.upstreamCodec.decodeReply(body, this.request, sink)
    return this.joined?.resume ?? null
  }

  *readEvents(chunks: readonly Buffer[]): Steps<JsonObject | null> {
    const sink = this.nextPart()
    const decoder = this.upstreamCodec.newDecoder(this.request, sink, this.joined !== null)
    const framer = newFramer(this.upstreamCodec.framing, decoder)
    for (const chunk of chunks) {
      framer.write(chunk)
      yield
      for (; framer.isPending; yield) framer.more()
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
    this.size += sizeOf(event)
    if (event.type === 'tool-start') this.onTool?.(event.name)
    // The usage counts although the reply is refused.
    if (this.size > MAX_SIZE && event.type !== 'usage') {
      const error = tooComplex('reply', `more than ${MAX_SIZE} characters`)
      if (this.fold.error === null) this.fold.event({ type: 'error', error })
      return
    }
    if (this.guard === null) {
      this.accept(event)
      return
    }
    this.received.add(event)
    // The usage counts although the reply may be refused.
    if (event.type === 'usage') this.fold.event(event)
    this.unjudged.push(event)
  }

  judge(): Promise<void> | null {
    const { guard, unjudged } = this
    if (guard === null) return null
    this.unjudged = []
    return guard.take(unjudged, (events) => {
      for (const event of events) this.accept(event)
    })
  }

  /** Takes an event for the client. */
  private accept(event: ChatEvent): void {
    this.fold.event(event)
    note(this.clientCodec, event, this.losses)
    if (event.type !== 'error') this.encoder?.event(event)
  }

  /** Fold → the client's dialect. */
  encode(): TranslatedReply {
    const { losses, clientCodec, request, seed, encoder, wasCut } = this
    const { guard } = this
    const folded = {
      fold: this.fold,
      breach: this.grammar.breach,
      losses,
      wasCut,
      blocked: guard?.blocked,
      received: guard === null ? undefined : this.received,
    }
    return replyResultOf(folded, (reply) => {
      if (encoder !== null) return sizedText(encoder.take())
      if (violatesSchema(reply, request)) losses.drop('response_format.json_schema')
      return clientCodec.encodeReply(withoutCodeFence(reply, request), request, seed)
    })
  }

  private nextPart(): EventSink {
    if (this.parts > 0) this.joined?.startNextPart()
    this.parts += 1
    return this.sink
  }
}

/** Larger replies, which arrive in events, take too long to encode. Images do not count. */
const MAX_SIZE = 2 * 1024 * 1024
/** The approximate size of a block, a citation or a log probability in JSON. */
const ITEM_CHARS = 100

function sizeOf(event: ChatEvent): number {
  switch (event.type) {
    case 'logprobs':
      return event.tokens.reduce((sum, { top }) => sum + ITEM_CHARS * (1 + top.length), 0)
    case 'text-start':
    case 'refusal-start':
    case 'thinking-start':
    case 'tool-start':
    case 'citation':
    case 'image':
    case 'opaque':
      return ITEM_CHARS
    default:
      return fragmentOf(event)?.length ?? 0
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
export function streamReply(body: JsonObject | JsonValue[], options: TranslationOptions): TranslatedReply {
  const reply = new SingleWholeReply(options, true)
  reply.read(body)
  return reply.encode()
}

/** A reply after its last event. */
interface FoldedReply {
  readonly fold: Fold
  /** The violation of the grammar; null if there is none. */
  readonly breach: string | null
  readonly losses: LossList
  /** See `ReplyResult.wasCut`. */
  readonly wasCut?: boolean
  /** See `ReplyResult.blocked`. */
  readonly blocked?: ReplyResult['blocked']
  /** The size of the reply before it was judged. */
  readonly received?: OutputSize | undefined
}

/** The reply for the client; `encode` is called only if the fold has a reply. */
function replyResultOf(
  { fold, breach, losses, wasCut = false, blocked, received }: FoldedReply,
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
      outputSize: received ?? outputSizeOf(fold.partialBlocks()),
      blocked,
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
    outputSize: reportsOutput(usage) ? NO_OUTPUT : (received ?? outputSizeOf(reply.blocks)),
    wasCut,
  }
}

/** One choice while it is read. */
class PendingChoice {
  fold = new Fold()
  events: ChatEvent[] = []
  readonly grammar: Grammar
  /** The failure because of which the request should be sent again; null if there is none. */
  repeatCause: ErrorKind | null = null
  /** It has content, or finished without an error. */
  content = false
  /** The counts of this attempt. */
  usage: Usage = {}

  private readonly onTool: TranslationOptions['onTool']

  /** `earlierUsage`: the counts of the previous attempt, which is billed too. */
  constructor(earlierUsage: Usage, onTool: TranslationOptions['onTool']) {
    this.onTool = onTool
    this.grammar = new Grammar({
      event: (event) => this.take(event.type === 'usage' ? this.counted(event, earlierUsage) : event),
    })
  }

  private take(event: ChatEvent): void {
    if (event.type === 'error' && event.retrySame === true) this.repeatCause = event.error.kind
    else if (event.type === 'finish' && event.retrySame === true) this.repeatCause = 'upstream_failed'
    else this.content ||= isContent(event)
    if (event.type === 'tool-start') this.onTool?.(event.name)
    this.fold.event(event)
    this.events.push(event)
  }

  /** Replaces the choice with what a guard lets pass. */
  async judge(guard: EventGuard): Promise<void> {
    const judged: ChatEvent[] = []
    await guard.take(this.events, (events) => {
      for (const event of events) judged.push(event)
    })
    this.events = judged
    const { usage } = this
    this.fold = new Fold()
    this.fold.event({ type: 'usage', usage })
    for (const event of judged) this.fold.event(event)
  }

  private counted(event: Extract<ChatEvent, { type: 'usage' }>, earlierUsage: Usage): ChatEvent {
    this.usage = mergeUsage(this.usage, event.usage)
    return { type: 'usage', usage: addUsage(earlierUsage, this.usage) }
  }
}

/** Opens the guard of a choice. */
interface ChoiceJudge {
  open(isWhole: boolean): EventGuard
}

type Decoding = (sinks: readonly EventSink[]) => ChoicesDecoder

/**
 * Reads a whole reply with several choices (`n`) before the client gets any of them. Each choice has its own
 * grammar, fold and encoder; they share the token counts. Upstreams return several choices only in whole
 * replies, so nothing pauses. If all choices are empty because of a retryable failure, the same request is
 * sent once again.
 */
export class WholeChoices implements WholeReply {
  repeatCause: ErrorKind | null = null
  private readonly clientCodec: ClientCodec
  private readonly request: ChatRequest
  private readonly seed: Seed
  private readonly decoderFor: Decoding
  private readonly losses = new LossList()
  private candidates: readonly PendingChoice[] = []
  /** The request has not been sent again, and may be. */
  private mayRepeat: boolean
  /** Undefined if nothing judges the choices. */
  private readonly judges: ChoiceJudge | undefined
  private readonly onTool: TranslationOptions['onTool']
  private blocked: ReplyResult['blocked']

  get usage(): Usage {
    return this.candidates[0]?.usage ?? {}
  }

  private constructor(
    { clientCodec, request, seed, mayPause = false, onTool }: TranslationOptions,
    decoderFor: Decoding,
    judges: ChoiceJudge | undefined,
  ) {
    this.judges = judges
    this.onTool = onTool
    this.clientCodec = clientCodec
    this.request = request
    this.seed = seed
    this.decoderFor = decoderFor
    this.mayRepeat = mayPause
  }

  /**
   * The requested number of choices; null if the upstream's format has only one. `mayPause`: the request may
   * be sent again.
   */
  static open(options: TranslationOptions, judges?: ChoiceJudge): WholeChoices | null {
    const { upstreamCodec, request } = options
    const decoderFor = upstreamCodec.newChoices?.bind(upstreamCodec, request)
    return decoderFor === undefined ? null : new WholeChoices(options, decoderFor, judges)
  }

  read(body: JsonObject | JsonValue[]): JsonObject | null {
    const decoder = this.next()
    decoder.take(body)
    decoder.end()
    return this.repeat()
  }

  *readEvents(chunks: readonly Buffer[]): Steps<JsonObject | null> {
    const decoder = this.next()
    const framer = newFramer('sse', decoder)
    for (const chunk of chunks) {
      framer.write(chunk)
      yield
    }
    framer.end()
    if (framer.overflow) {
      const error = overflowError(framer)
      for (const { grammar } of this.candidates) {
        if (!grammar.ended) grammar.event({ type: 'error', error })
      }
    }
    decoder.end()
    return this.repeat()
  }

  /** A choice that is refused refuses the whole reply. */
  judge(): Promise<void> | null {
    return this.judges === undefined ? null : this.judgeChoices(this.judges)
  }

  private async judgeChoices(judges: ChoiceJudge): Promise<void> {
    for (const candidate of this.candidates) {
      const guard = judges.open(true)
      await candidate.judge(guard)
      const error = candidate.fold.error
      if (error?.guardrail === undefined) continue
      this.blocked = guard.blocked
      this.candidates = [candidate]
      return
    }
  }

  /** The decoder of an attempt. Drops the choices of the previous one and keeps its counts. */
  private next(): ChoicesDecoder {
    const earlierUsage = this.candidates[0]?.usage ?? {}
    const { candidates = 1 } = this.request
    this.candidates = Array.from({ length: candidates }, () => new PendingChoice(earlierUsage, this.onTool))
    return this.decoderFor(this.candidates.map(({ grammar }) => grammar))
  }

  /** The state with which the same request is sent again if no choice has content; else null. */
  private repeat(): JsonObject | null {
    const { candidates, mayRepeat } = this
    const repeatCause = candidates.find((candidate) => candidate.repeatCause !== null)?.repeatCause ?? null
    const repeats = mayRepeat && repeatCause !== null && !candidates.some(({ content }) => content)
    this.mayRepeat = false
    this.repeatCause = repeats ? repeatCause : null
    return repeats ? {} : null
  }

  /**
   * Leaves out choices that failed or are missing, and reports them as lost; if all are, returns the first
   * error.
   */
  encode(): TranslatedReply {
    const { candidates, clientCodec, losses, request, seed } = this
    const complete = candidates.flatMap((candidate, index): (Choice & { events: ChatEvent[] })[] => {
      const reply = candidate.fold.reply()
      return reply === null ? [] : [{ index, reply, events: candidate.events }]
    })
    if (complete.length < candidates.length) losses.drop('reply.choices')
    for (const { events, reply } of complete) {
      for (const event of events) note(clientCodec, event, losses)
      if (violatesSchema(reply, request)) losses.drop('response_format.json_schema')
    }
    const [first] = complete
    const { fold, grammar } = candidates[first?.index ?? 0] ?? new PendingChoice({}, undefined)
    const { blocked } = this
    return replyResultOf({ fold, breach: grammar.breach, losses, blocked }, () => {
      if (request.stream) return sizedText(this.stream(complete))
      const choices = complete.map(({ index, reply }) => ({
        index,
        reply: withoutCodeFence(reply, request),
      }))
      return clientCodec.encodeChoices(choices, request, seed)
    })
  }

  /** The choices in sequence, with the terminator of the stream after the last one. */
  private stream(complete: readonly { index: number; events: readonly ChatEvent[] }[]): string {
    const streams = complete.map(({ index, events }, position) => {
      const choicePosition = { index, isLast: position === complete.length - 1 }
      const encoder = this.clientCodec.newEncoder(this.request, this.seed, choicePosition)
      for (const event of events) encoder.event(event)
      return encoder.take()
    })
    return streams.join('')
  }
}
