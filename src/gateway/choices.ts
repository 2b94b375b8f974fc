/**
 * Several answers to one request (`n`), read as a whole before the client gets any of them.
 * Each is an answer of its own, with its own grammar, fold and encoder; only the counts are shared. The
 * upstreams that give several give them whole, so nothing here pauses and nothing is streamed on.
 */
import type { ChatEvent } from '../chat/event.js'
import { Fold } from '../chat/fold.js'
import { Grammar } from '../chat/grammar.js'
import type { JsonObject, JsonValue } from '../chat/json.js'
import { jsonAnswer, missesSchema } from '../chat/json-answer.js'
import type { ChatRequest } from '../chat/request.js'
import type { Choice, ChoicesDecoder, Egress, Ingress, Seed } from '../dialects/dialect.js'
import { SseFramer } from '../wire/sse.js'
import { LossList } from './losses.js'
import { note, OVERFLOW } from './translate.js'
import { type TranslatedReply, verdictOf, type WholeReply } from './whole.js'

/** One of the answers, as it is read. */
class Candidate {
  readonly fold = new Fold()
  readonly events: ChatEvent[] = []
  readonly grammar = new Grammar({
    event: (event) => {
      this.fold.event(event)
      this.events.push(event)
    },
  })
}

/** The answers to one request that asks for several. */
export class WholeChoices implements WholeReply {
  readonly mishap = null
  private readonly ingress: Ingress
  private readonly request: ChatRequest
  private readonly seed: Seed
  private readonly candidates: readonly Candidate[]
  private readonly decoder: ChoicesDecoder
  private readonly losses = new LossList()

  private constructor(
    ingress: Ingress,
    request: ChatRequest,
    seed: Seed,
    candidates: readonly Candidate[],
    decoder: ChoicesDecoder,
  ) {
    this.ingress = ingress
    this.request = request
    this.seed = seed
    this.candidates = candidates
    this.decoder = decoder
  }

  /** As many answers as the request asks for; null where the upstream's format has but one. */
  static open(
    egress: Egress,
    ingress: Ingress,
    request: ChatRequest,
    seed: Seed,
  ): WholeChoices | null {
    const candidates = Array.from({ length: request.candidates ?? 1 }, () => new Candidate())
    const grammars = candidates.map(({ grammar }) => grammar)
    const decoder = egress.newChoices?.(request, grammars)
    if (decoder === undefined) return null
    return new WholeChoices(ingress, request, seed, candidates, decoder)
  }

  read(body: JsonObject | JsonValue[]): null {
    this.decoder.take(body)
    this.decoder.end()
    return null
  }

  readEvents(bytes: Buffer): null {
    const framer = new SseFramer(this.decoder)
    framer.write(bytes)
    framer.end()
    if (framer.overflow) {
      for (const { grammar } of this.candidates) {
        if (!grammar.ended) grammar.event({ type: 'error', error: OVERFLOW })
      }
    }
    this.decoder.end()
    return null
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
      if (missesSchema(reply, request)) losses.drop('response_format.json_schema')
    }
    const [first] = came
    const { fold, grammar } = candidates[first?.index ?? 0] ?? new Candidate()
    return verdictOf(fold, grammar.breach, losses, () => {
      if (request.stream) return this.stream(came)
      const choices = came.map(({ index, reply }) => ({
        index,
        reply: jsonAnswer(reply, request),
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
