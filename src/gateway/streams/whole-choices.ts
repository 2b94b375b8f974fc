/**
 * Reads a whole reply with several choices (`n`) before the client gets any of them. Each choice has its own
 * grammar, fold and encoder; they share the token counts. Upstreams return several choices only in whole
 * replies, so nothing pauses. If all choices are empty because of a retryable failure, the same request is
 * sent once again.
 */
import { isContent, type ChatEvent, type EventSink } from '../../chat/event.js'
import { Fold } from '../../chat/reply/fold.js'
import { Grammar } from '../../chat/grammar.js'
import type { JsonObject, JsonValue } from '../../chat/json.js'
import { withoutCodeFence, violatesSchema } from '../../chat/reply/json-reply.js'
import type { ChatRequest } from '../../chat/request.js'
import { addUsage, mergeUsage, type Usage } from '../../chat/usage.js'
import type { ErrorKind } from '../../errors.js'
import type { Choice, ChoicesDecoder, Ingress, Seed } from '../../dialects/dialect.js'
import { sizedText } from '../../wire/frames/sized-text.js'
import { SseFramer } from '../../wire/frames/sse-framer.js'
import type { Steps } from '../../wire/steps.js'
import { LossList } from './translation-losses.js'
import { note, overflowError, type TranslationOptions } from './translated-stream.js'
import { type TranslatedReply, replyResultOf, type WholeReply } from './whole-reply.js'

/** One choice while it is read. */
class PendingChoice {
  readonly fold = new Fold()
  readonly events: ChatEvent[] = []
  readonly grammar: Grammar
  /** The failure because of which the request should be sent again; null if there is none. */
  repeatCause: ErrorKind | null = null
  /** It has content, or finished without an error. */
  content = false
  /** The counts of this attempt. */
  usage: Usage = {}

  /** `earlierUsage`: the counts of the previous attempt, which is billed too. */
  constructor(earlierUsage: Usage) {
    this.grammar = new Grammar({
      event: (event) =>
        this.take(event.type === 'usage' ? this.counted(event, earlierUsage) : event),
    })
  }

  private take(event: ChatEvent): void {
    if (event.type === 'error' && event.retrySame === true) this.repeatCause = event.error.kind
    else if (event.type === 'finish' && event.retrySame === true)
      this.repeatCause = 'upstream_failed'
    else this.content ||= isContent(event)
    this.fold.event(event)
    this.events.push(event)
  }

  private counted(event: Extract<ChatEvent, { type: 'usage' }>, earlierUsage: Usage): ChatEvent {
    this.usage = mergeUsage(this.usage, event.usage)
    return { type: 'usage', usage: addUsage(earlierUsage, this.usage) }
  }
}

type Decoding = (sinks: readonly EventSink[]) => ChoicesDecoder

/** The choices of one reply. */
export class WholeChoices implements WholeReply {
  repeatCause: ErrorKind | null = null
  private readonly ingress: Ingress
  private readonly request: ChatRequest
  private readonly seed: Seed
  private readonly decoderFor: Decoding
  private readonly losses = new LossList()
  private candidates: readonly PendingChoice[] = []
  /** The request has not been sent again, and may be. */
  private mayRepeat: boolean

  get usage(): Usage {
    return this.candidates[0]?.usage ?? {}
  }

  private constructor(
    { ingress, request, seed, mayPause = false }: TranslationOptions,
    decoderFor: Decoding,
  ) {
    this.ingress = ingress
    this.request = request
    this.seed = seed
    this.decoderFor = decoderFor
    this.mayRepeat = mayPause
  }

  /**
   * The requested number of choices; null if the upstream's format has only one. `mayPause`: the request may
   * be sent again.
   */
  static open(options: TranslationOptions): WholeChoices | null {
    const { egress, request } = options
    const decoderFor = egress.newChoices?.bind(egress, request)
    return decoderFor === undefined ? null : new WholeChoices(options, decoderFor)
  }

  read(body: JsonObject | JsonValue[]): JsonObject | null {
    const decoder = this.next()
    decoder.take(body)
    decoder.end()
    return this.repeat()
  }

  *readEvents(chunks: readonly Buffer[]): Steps<JsonObject | null> {
    const decoder = this.next()
    const framer = new SseFramer(decoder)
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

  /** The decoder of an attempt. Drops the choices of the previous one and keeps its counts. */
  private next(): ChoicesDecoder {
    const earlierUsage = this.candidates[0]?.usage ?? {}
    const { candidates = 1 } = this.request
    this.candidates = Array.from({ length: candidates }, () => new PendingChoice(earlierUsage))
    return this.decoderFor(this.candidates.map(({ grammar }) => grammar))
  }

  /** The state with which the same request is sent again if no choice has content; else null. */
  private repeat(): JsonObject | null {
    const { candidates, mayRepeat } = this
    const repeatCause =
      candidates.find((candidate) => candidate.repeatCause !== null)?.repeatCause ?? null
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
    const { candidates, ingress, losses, request, seed } = this
    const complete = candidates.flatMap(
      (candidate, index): (Choice & { events: ChatEvent[] })[] => {
        const reply = candidate.fold.reply()
        return reply === null ? [] : [{ index, reply, events: candidate.events }]
      },
    )
    if (complete.length < candidates.length) losses.drop('reply.choices')
    for (const { events, reply } of complete) {
      for (const event of events) note(ingress, event, losses)
      if (violatesSchema(reply, request)) losses.drop('response_format.json_schema')
    }
    const [first] = complete
    const { fold, grammar } = candidates[first?.index ?? 0] ?? new PendingChoice({})
    return replyResultOf({ fold, breach: grammar.breach, losses }, () => {
      if (request.stream) return sizedText(this.stream(complete))
      const choices = complete.map(({ index, reply }) => ({
        index,
        reply: withoutCodeFence(reply, request),
      }))
      return ingress.encodeChoices(choices, request, seed)
    })
  }

  /** The choices in sequence, with the terminator of the stream after the last one. */
  private stream(complete: readonly { index: number; events: readonly ChatEvent[] }[]): string {
    const streams = complete.map(({ index, events }, position) => {
      const choicePosition = { index, isLast: position === complete.length - 1 }
      const encoder = this.ingress.newEncoder(this.request, this.seed, choicePosition)
      for (const event of events) encoder.event(event)
      return encoder.take()
    })
    return streams.join('')
  }
}
