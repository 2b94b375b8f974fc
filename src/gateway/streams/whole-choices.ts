/**
 * Several answers to one request (`n`), read as a whole before the client gets any of them.
 * Each is an answer of its own, with its own grammar, fold and encoder; only the counts are shared. The
 * upstreams that give several give them whole, so nothing here pauses and nothing is streamed on. Where all
 * of them came to nothing, all are asked for once more.
 */
import { isContent, type ChatEvent, type EventSink } from '../../chat/event.js'
import { Fold } from '../../chat/reply/fold.js'
import { Grammar } from '../../chat/grammar.js'
import type { JsonObject, JsonValue } from '../../chat/json.js'
import { withoutCodeFence, violatesSchema } from '../../chat/reply/json-reply.js'
import type { ChatRequest } from '../../chat/request.js'
import { addUsage, mergeUsage, type Usage } from '../../chat/usage.js'
import type { ErrorKind } from '../../errors.js'
import type { Choice, ChoicesDecoder, Egress, Ingress, Seed } from '../../dialects/dialect.js'
import { sizedText } from '../../wire/frames/sized-text.js'
import { SseFramer } from '../../wire/frames/sse.js'
import { LossList } from './translation-losses.js'
import { note, OVERFLOW } from './translated-stream.js'
import { type TranslatedReply, replyResultOf, type WholeReply } from './whole-reply.js'

/** One of the answers, as it is read. */
class Candidate {
  readonly fold = new Fold()
  readonly events: ChatEvent[] = []
  readonly grammar: Grammar
  /** Why it is worth asking for once more; null where it is not. */
  mishap: ErrorKind | null = null
  /** It says something, or has ended well. */
  content = false
  /** The counts of this try, and of the one before with it. */
  usage: Usage = {}

  /** `before`: the counts of the try before, which is paid for as well. */
  constructor(before: Usage) {
    this.grammar = new Grammar({
      event: (event) => this.take(event.type === 'usage' ? this.counted(event, before) : event),
    })
  }

  private take(event: ChatEvent): void {
    if (event.type === 'error' && event.retrySame === true) this.mishap = event.error.kind
    else if (event.type === 'finish' && event.retrySame === true) this.mishap = 'upstream_failed'
    else this.content ||= isContent(event)
    this.fold.event(event)
    this.events.push(event)
  }

  private counted(event: Extract<ChatEvent, { type: 'usage' }>, before: Usage): ChatEvent {
    this.usage = mergeUsage(this.usage, event.usage)
    return { type: 'usage', usage: addUsage(before, this.usage) }
  }
}

type Decoding = (sinks: readonly EventSink[]) => ChoicesDecoder

/** The answers to one request that asks for several. */
export class WholeChoices implements WholeReply {
  mishap: ErrorKind | null = null
  private readonly ingress: Ingress
  private readonly request: ChatRequest
  private readonly seed: Seed
  private readonly decoderFor: Decoding
  private readonly losses = new LossList()
  private candidates: readonly Candidate[] = []
  /** Nothing was asked for twice yet, and it can be. */
  private mayAsk: boolean

  private constructor(
    ingress: Ingress,
    request: ChatRequest,
    seed: Seed,
    decoderFor: Decoding,
    mayPause: boolean,
  ) {
    this.ingress = ingress
    this.request = request
    this.seed = seed
    this.decoderFor = decoderFor
    this.mayAsk = mayPause
  }

  /**
   * As many answers as the request asks for; null where the upstream's format has but one. `mayPause`: it can
   * be asked once more.
   */
  static open(
    egress: Egress,
    ingress: Ingress,
    request: ChatRequest,
    seed: Seed,
    mayPause: boolean,
  ): WholeChoices | null {
    const decoderFor = egress.newChoices?.bind(egress, request)
    if (decoderFor === undefined) return null
    return new WholeChoices(ingress, request, seed, decoderFor, mayPause)
  }

  read(body: JsonObject | JsonValue[]): JsonObject | null {
    const decoder = this.next()
    decoder.take(body)
    decoder.end()
    return this.again()
  }

  readEvents(bytes: Buffer): JsonObject | null {
    const decoder = this.next()
    const framer = new SseFramer(decoder)
    framer.write(bytes)
    framer.end()
    if (framer.overflow) {
      for (const { grammar } of this.candidates) {
        if (!grammar.ended) grammar.event({ type: 'error', error: OVERFLOW })
      }
    }
    decoder.end()
    return this.again()
  }

  /** The decoder of a try; what the one before came to is forgotten, but for its counts. */
  private next(): ChoicesDecoder {
    const before = this.candidates[0]?.usage ?? {}
    const { candidates = 1 } = this.request
    this.candidates = Array.from({ length: candidates }, () => new Candidate(before))
    return this.decoderFor(this.candidates.map(({ grammar }) => grammar))
  }

  /** With what the same is asked for again, where none of the answers says anything; else null. */
  private again(): JsonObject | null {
    const { candidates, mayAsk } = this
    const mishap = candidates.find((candidate) => candidate.mishap !== null)?.mishap ?? null
    const isAgain = mayAsk && mishap !== null && !candidates.some(({ content }) => content)
    this.mayAsk = false
    this.mishap = isAgain ? mishap : null
    return isAgain ? {} : null
  }

  /** Answers that failed or never came are left out, which is told; where none came, the first says why. */
  encode(): TranslatedReply {
    const { candidates, ingress, losses, request, seed } = this
    const came = candidates.flatMap((candidate, index): (Choice & { events: ChatEvent[] })[] => {
      const reply = candidate.fold.reply()
      return reply === null ? [] : [{ index, reply, events: candidate.events }]
    })
    if (came.length < candidates.length) losses.drop('reply.choices')
    for (const { events, reply } of came) {
      for (const event of events) note(ingress, event, losses)
      if (violatesSchema(reply, request)) losses.drop('response_format.json_schema')
    }
    const [first] = came
    const { fold, grammar } = candidates[first?.index ?? 0] ?? new Candidate({})
    return replyResultOf(fold, grammar.breach, losses, () => {
      if (request.stream) return sizedText(this.stream(came))
      const choices = came.map(({ index, reply }) => ({
        index,
        reply: withoutCodeFence(reply, request),
      }))
      return ingress.encodeChoices(choices, request, seed)
    })
  }

  /** One after the other, and the end of the stream after the last. */
  private stream(came: readonly { index: number; events: readonly ChatEvent[] }[]): string {
    const pieces = came.map(({ index, events }, at) => {
      const place = { index, isLast: at === came.length - 1 }
      const encoder = this.ingress.newEncoder(this.request, this.seed, place)
      for (const event of events) encoder.event(event)
      return encoder.take()
    })
    return pieces.join('')
  }
}
