/**
 * Reads the events of a streamed response, and a whole response as its own last event.
 * Emits a grammatical stream for any input; knows no client dialect.
 *
 * Rules: only `response.completed`, `.incomplete`, `.failed` and `error` end a response; the format has no
 * `[DONE]`, though copies of it send one; an end before its last event is a truncated reply.
 *
 * Source: OpenAI API reference, "Responses: streaming events", and recordings, read 2026-11-20.
 */
import type { EventSink } from '../../../chat/event.js'
import {
  arrayOf,
  isObject,
  type JsonObject,
  numberOf,
  objectOf,
  stringOf,
} from '../../../chat/json.js'
import type { ChatRequest } from '../../../chat/request.js'
import type { WireError } from '../../../errors.js'
import { clientNames } from '../../../wire/openai/names.js'
import type { StreamDecoder } from '../../dialect.js'
import { Blocks } from './reply/decode-blocks.js'
import { eventError, failureOf, MALFORMED, TRUNCATED } from './decode-error.js'
import { Items, type Piece, type Place } from './reply/decode-items.js'
import { logprobsOf } from './reply/decode-logprobs.js'
import { endingOf, SERVED_TIERS, usageOf } from '../shared/names.js'

/** Decodes one stream. */
export class EventDecoder implements StreamDecoder {
  private readonly sink: EventSink
  private readonly blocks: Blocks
  /** The tokens of the texts were asked for. */
  private readonly weighs: boolean
  private readonly items: Items
  private id = ''
  private started = false
  private ended = false

  constructor(request: ChatRequest, sink: EventSink) {
    this.sink = sink
    this.weighs = request.logprobs === true
    this.blocks = new Blocks(sink, clientNames(request.tools), () => this.id)
    this.items = new Items(this.blocks, request.logprobs === true)
  }

  frame(name: string, data: string): void {
    if (this.ended) return
    if (data === '[DONE]' || data.trim() === '[DONE]') return this.fail(TRUNCATED)
    let event: unknown
    try {
      event = JSON.parse(data)
    } catch {
      return this.fail(MALFORMED)
    }
    if (!isObject(event)) return this.fail(MALFORMED)
    this.take(stringOf(event['type']) ?? name, event)
  }

  end(): void {
    this.fail(TRUNCATED)
  }

  /** A whole response: what its last event would have held. */
  whole(body: JsonObject): void {
    const { status, error } = body
    if (isObject(error) || status === 'failed' || status === 'cancelled') {
      return this.fail(failureOf(body))
    }
    if (status === 'in_progress' || status === 'queued') return this.fail(TRUNCATED)
    if (!Array.isArray(body['output'])) return this.fail(MALFORMED)
    this.conclude(body, status === 'incomplete')
  }

  private take(type: string, event: JsonObject): void {
    const piece = PIECES.get(type)
    if (piece !== undefined) return this.piece(piece, event)
    switch (type) {
      case 'response.created':
      case 'response.queued':
      case 'response.in_progress':
        return this.start(objectOf(event['response']))
      case 'response.output_item.added':
      case 'response.output_item.done':
        return this.item(type === 'response.output_item.done', event)
      case 'response.output_text.annotation.added':
        this.start({})
        return this.items.cite(placeOf(event), count(event['content_index']), event['annotation'])
      case 'response.completed':
      case 'response.incomplete':
        return this.last(objectOf(event['response']), type === 'response.incomplete')
      case 'response.failed':
      case 'response.cancelled':
        return this.fail(failureOf(objectOf(event['response'])), event['response'])
      case 'error':
        return this.fail(eventError(event))
      default:
        // An event nobody knows means nothing, save where it can only be a failure.
        if (isObject(event['error'])) this.fail(eventError(event))
    }
  }

  private piece(piece: PieceEvent, event: JsonObject): void {
    const text = stringOf(event[piece.text])
    if (text === undefined || text === '') return
    this.start({})
    const at = count(event[piece.at])
    const said: Piece =
      this.weighs && piece.kind === 'text'
        ? { kind: piece.kind, at, text, tokens: logprobsOf(event['logprobs']) }
        : { kind: piece.kind, at, text }
    if (piece.whole) this.items.settlePiece(placeOf(event), said)
    else this.items.piece(placeOf(event), said)
    if (this.items.overflow) this.fail(MALFORMED)
  }

  private item(done: boolean, event: JsonObject): void {
    const item = objectOf(event['item'])
    const place = numberOf(event['output_index']) ?? stringOf(item['id']) ?? null
    this.start({})
    if (done) this.items.done(place, item)
    else this.items.add(place, item)
    if (this.items.overflow) this.fail(MALFORMED)
  }

  private start(response: JsonObject): void {
    if (!this.started) {
      this.started = true
      this.id = stringOf(response['id']) ?? ''
      this.sink.event({ type: 'start', id: this.id, model: stringOf(response['model']) ?? '' })
    }
    this.count(response)
  }

  /** Usage goes out as soon as it is known, so that a response that breaks off is still priced. */
  private count(response: JsonObject): void {
    const { usage } = response
    if (isObject(usage)) this.sink.event({ type: 'usage', usage: usageOf(usage) })
  }

  private last(response: JsonObject, incomplete: boolean): void {
    const { status } = response
    if (status === 'failed' || status === 'cancelled') {
      return this.fail(failureOf(response), response)
    }
    this.conclude(response, incomplete || status === 'incomplete')
  }

  private conclude(response: JsonObject, incomplete: boolean): void {
    this.start(response)
    this.items.reconcile(arrayOf(response['output']))
    if (!this.items.finish()) return this.fail(MALFORMED)
    this.ended = true
    const { reason, raw } = endingOf(response, incomplete, this.blocks.calls)
    const tier = stringOf(response['service_tier'])
    this.sink.event(
      tier === undefined || !SERVED_TIERS.has(tier)
        ? { type: 'finish', reason, raw }
        : { type: 'finish', reason, raw, serviceTier: tier },
    )
  }

  /** `response` is the failed one, which may say what it has cost. */
  private fail(error: WireError, response?: unknown): void {
    if (this.ended) return
    this.ended = true
    if (this.started) this.count(objectOf(response))
    this.sink.event({ type: 'error', error: { ...error } })
  }
}

/** Decodes a whole response. Never throws; emits the same events that a stream of it would. */
export function decodeReply(body: JsonObject, request: ChatRequest, sink: EventSink): void {
  new EventDecoder(request, sink).whole(body)
}

/** Where an event that brings words has them. */
interface PieceEvent {
  readonly kind: Piece['kind']
  /** The member that holds the words. */
  readonly text: string
  /** The member that says which part of the item they are of. */
  readonly at: string
  /** Whether they are the whole of the part. */
  readonly whole: boolean
}

const PIECES: ReadonlyMap<string, PieceEvent> = new Map([
  ...pieces('text', 'response.output_text', 'text', 'content_index'),
  ...pieces('refusal', 'response.refusal', 'refusal', 'content_index'),
  ...pieces('arguments', 'response.function_call_arguments', 'arguments', ''),
  ...pieces('arguments', 'response.custom_tool_call_input', 'input', ''),
  ...pieces('summary', 'response.reasoning_summary_text', 'text', 'summary_index'),
  ...pieces('reasoning', 'response.reasoning_text', 'text', 'content_index'),
])

function pieces(
  kind: Piece['kind'],
  event: string,
  whole: string,
  at: string,
): [string, PieceEvent][] {
  return [
    [`${event}.delta`, { kind, text: 'delta', at, whole: false }],
    [`${event}.done`, { kind, text: whole, at, whole: true }],
  ]
}

/** Where an event's item is; by its number, since some upstreams give it another id each time. */
function placeOf(event: JsonObject): Place {
  return numberOf(event['output_index']) ?? stringOf(event['item_id']) ?? null
}

function count(value: unknown): number {
  return numberOf(value) ?? 0
}
