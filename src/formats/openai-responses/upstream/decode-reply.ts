/**
 * Decodes the events of a streamed response, and a whole response as its own last event. Emits a grammatical
 * event stream for any input.
 *
 * Only `response.completed`, `.incomplete`, `.failed` and `error` end a response. The format has no `[DONE]`,
 * which some other vendors send. An end without a last event is a truncated reply.
 *
 * Source: OpenAI API reference, "Responses: streaming events", and recordings, read 2026-11-20.
 */
import type { WireError } from '../../../errors.js'
import type { EventSink, FinishReason } from '../../chat/event.js'
import { hostedToolName, withCalls, type CallCounts } from '../../chat/hosted-tools.js'
import {
  arrayOf,
  isObject,
  numberOf,
  objectOf,
  stringOf,
  type JsonObject,
  type JsonValue,
} from '../../../base/json.js'
import type { ChatRequest } from '../../chat/request.js'
import type { StreamDecoder } from '../../dialect.js'
import { errorIn } from '../../wire/error-text.js'
import { decodeErrorPayload } from '../../wire/openai/decode-error.js'
import { stopReasonOf } from '../../wire/stop-reasons.js'
import { MALFORMED_REPLY, strayFrame, TRUNCATED_REPLY } from '../../wire/upstream-errors.js'
import { UsageMeter } from '../../wire/usage-meter.js'
import { SERVED_TIERS } from '../constants.js'
import { Items, logprobsOf, type Fragment, type ItemKey } from './decode-items.js'
import { Blocks } from './emit-blocks.js'

/** Decodes one stream. */
export class EventDecoder implements StreamDecoder {
  private readonly sink: EventSink
  private readonly blocks: Blocks
  /** True if the request includes token probabilities. */
  private readonly withLogprobs: boolean
  private readonly items: Items
  private readonly meter = new UsageMeter()
  private hasUsage = false
  private id = ''
  /** The calls of hosted tools so far. */
  private calls: CallCounts | undefined
  private started = false
  private ended = false

  constructor(request: ChatRequest, sink: EventSink) {
    this.sink = sink
    this.withLogprobs = request.logprobs === true
    this.blocks = new Blocks(sink, () => this.id)
    this.items = new Items(this.blocks, request.logprobs === true)
  }

  frame(name: string, data: string): void {
    if (this.ended) return
    if (data === '[DONE]' || data.trim() === '[DONE]') return this.fail(TRUNCATED_REPLY)
    let event: unknown
    try {
      event = JSON.parse(data)
    } catch {
      return this.fail(name === 'error' ? errorOfEvent({ message: data }) : strayFrame(data))
    }
    if (!isObject(event)) return this.fail(strayFrame(data))
    this.take(name === 'error' ? name : (stringOf(event['type']) ?? name), event)
  }

  end(): void {
    this.fail(TRUNCATED_REPLY)
  }

  /** A whole response, which has the content of a last event. */
  whole(body: JsonObject): void {
    const { status, error } = body
    if (isObject(error) || status === 'failed' || status === 'cancelled') {
      return this.fail(errorOfResponse(body))
    }
    if (status === 'in_progress' || status === 'queued') return this.fail(TRUNCATED_REPLY)
    if (!Array.isArray(body['output']))
      return this.fail(errorIn(body) === null ? MALFORMED_REPLY : errorOfEvent(body))
    this.count(body)
    this.conclude(body, status === 'incomplete')
  }

  private take(type: string, event: JsonObject): void {
    const textEvent = TEXT_EVENTS.get(type)
    if (textEvent !== undefined) return this.text(textEvent, event)
    this.count(event)
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
        return this.items.cite(keyOf(event), count(event['content_index']), event['annotation'])
      case 'response.completed':
      case 'response.incomplete':
        return this.last(objectOf(event['response']), type === 'response.incomplete')
      case 'response.failed':
      case 'response.cancelled':
        return this.fail(errorOfResponse(objectOf(event['response'])))
      case 'error':
        return this.fail(errorOfEvent(event))
      default:
        // Unknown events are ignored unless they contain an error.
        if (errorIn(event) !== null) this.fail(errorOfEvent(event))
    }
  }

  private text({ kind, member, indexMember, isWhole }: TextEvent, event: JsonObject): void {
    const text = stringOf(event[member])
    if (text === undefined || text === '') return
    this.start({})
    const at = count(event[indexMember])
    const fragment: Fragment =
      this.withLogprobs && kind === 'text'
        ? { kind, at, text, tokens: logprobsOf(event['logprobs']) }
        : { kind, at, text }
    if (isWhole) this.items.completePart(keyOf(event), fragment)
    else this.items.addFragment(keyOf(event), fragment)
    if (this.items.overflow) this.fail(MALFORMED_REPLY)
  }

  private item(done: boolean, event: JsonObject): void {
    const item = objectOf(event['item'])
    const key = numberOf(event['output_index']) ?? stringOf(item['id']) ?? null
    this.start({})
    if (done) this.done(key, item)
    else this.items.add(key, item)
    if (this.items.overflow) this.fail(MALFORMED_REPLY)
  }

  private done(key: ItemKey, item: JsonObject): void {
    const calls = withItem(this.calls, item)
    if (calls !== undefined && calls !== this.calls) {
      this.calls = calls
      this.sink.event({ type: 'usage', usage: { calls } })
    }
    this.items.done(key, item)
  }

  private start(response: JsonObject): void {
    if (!this.started) {
      this.started = true
      this.id = stringOf(response['id']) ?? ''
      this.sink.event({ type: 'start', id: this.id, model: stringOf(response['model']) ?? '' })
      if (this.hasUsage) this.emitUsage()
    }
  }

  /** Emits usage as soon as it arrives, so that a truncated response is still priced. */
  private count(frame: JsonObject): void {
    if (!this.meter.takeFrame(frame)) return
    this.hasUsage = true
    if (this.started) this.emitUsage()
  }

  private emitUsage(): void {
    this.sink.event({ type: 'usage', usage: this.meter.usage() })
  }

  private last(response: JsonObject, incomplete: boolean): void {
    const { status } = response
    if (status === 'failed' || status === 'cancelled') {
      return this.fail(errorOfResponse(response))
    }
    this.conclude(response, incomplete || status === 'incomplete')
  }

  private conclude(response: JsonObject, incomplete: boolean): void {
    this.start(response)
    const output = arrayOf(response['output'])
    const calls = callsOf(output)
    if (calls !== undefined) this.sink.event({ type: 'usage', usage: { calls } })
    this.items.reconcile(output)
    if (!this.items.finish()) return this.fail(MALFORMED_REPLY)
    this.ended = true
    const { reason, raw } = endingOf(response, incomplete, this.blocks.calls)
    const tier = stringOf(response['service_tier'])
    this.sink.event(
      tier === undefined || !SERVED_TIERS.has(tier)
        ? { type: 'finish', reason, raw }
        : { type: 'finish', reason, raw, serviceTier: tier },
    )
  }

  private fail(error: WireError): void {
    if (this.ended) return
    this.ended = true
    this.sink.event({ type: 'error', error: { ...error } })
  }
}

/** An event that contains text of an item. */
interface TextEvent {
  readonly kind: Fragment['kind']
  /** The member with the text. */
  readonly member: string
  /** The member with the index of the part in the item. */
  readonly indexMember: string
  /** The text is the whole text of the part. */
  readonly isWhole: boolean
}

const TEXT_EVENTS: ReadonlyMap<string, TextEvent> = new Map([
  ...textEvents('response.output_text', {
    kind: 'text',
    member: 'text',
    indexMember: 'content_index',
  }),
  ...textEvents('response.refusal', {
    kind: 'refusal',
    member: 'refusal',
    indexMember: 'content_index',
  }),
  ...textEvents('response.function_call_arguments', {
    kind: 'arguments',
    member: 'arguments',
    indexMember: '',
  }),
  ...textEvents('response.custom_tool_call_input', {
    kind: 'arguments',
    member: 'input',
    indexMember: '',
  }),
  ...textEvents('response.reasoning_summary_text', {
    kind: 'summary',
    member: 'text',
    indexMember: 'summary_index',
  }),
  ...textEvents('response.reasoning_text', {
    kind: 'reasoning',
    member: 'text',
    indexMember: 'content_index',
  }),
])

/** The delta event and the done event of an event name; `member` is that of the done event. */
function textEvents(
  event: string,
  { kind, member, indexMember }: Omit<TextEvent, 'isWhole'>,
): [string, TextEvent][] {
  return [
    [`${event}.delta`, { kind, member: 'delta', indexMember, isWhole: false }],
    [`${event}.done`, { kind, member, indexMember, isWhole: true }],
  ]
}

/** The key of an event's item: its index, because some upstreams send another id in each event. */
function keyOf(event: JsonObject): ItemKey {
  return numberOf(event['output_index']) ?? stringOf(event['item_id']) ?? null
}

function count(value: unknown): number {
  return numberOf(value) ?? 0
}

/** Emits the events that a stream of the same response would. Never throws. */
export function decodeReply(body: JsonObject, request: ChatRequest, sink: EventSink): void {
  new EventDecoder(request, sink).whole(body)
}

/**
 * The error of a failed response; its status serves as the code if the response has no `error`. Errors with
 * another status than 200 are decoded by `formats/wire/openai/decode-error.ts`.
 */
export function errorOfResponse(response: JsonObject): WireError {
  const error = objectOf(response['error'])
  const own = stringOf(error['code'])
  const code = own ?? stringOf(response['status']) ?? 'failed'
  const { code: named, ...decoded } = decodeErrorPayload({ ...error, code })
  return own === undefined || named === undefined ? decoded : { ...decoded, code: named }
}

/** The error of an `error` event, whose members are in the event itself or in its `error`. */
export function errorOfEvent(event: JsonObject): WireError {
  const { error } = event
  if (isObject(error)) return decodeErrorPayload(error)
  // The `type` of the event is not the type of an error.
  const members = { ...event, type: null }
  return decodeErrorPayload(errorIn(members) ?? members)
}

const CALL = '_call'
/** Actions of a search that open a page which a search found. */
const FREE_ACTIONS: ReadonlySet<unknown> = new Set(['find_in_page', 'open_page'])

/** The counts with the call that an output item is, if the provider ran a tool. */
export function withItem(calls: CallCounts | undefined, item: JsonObject): CallCounts | undefined {
  const type = stringOf(item['type']) ?? ''
  if (!type.endsWith(CALL) || OWN_CALLS.has(type)) return calls
  if (FREE_ACTIONS.has(objectOf(item['action'])['type'])) return calls
  return withCalls(calls, hostedToolName(type.slice(0, -CALL.length)), 1)
}

/** Calls that the client runs. `withCalls` leaves out those of harmless tools too. */
const OWN_CALLS: ReadonlySet<string> = new Set(['custom_tool_call', 'function_call', 'shell_call'])

/** The calls in the output of a response; undefined if there are none. */
export function callsOf(output: JsonValue | undefined): CallCounts | undefined {
  let calls: CallCounts | undefined
  for (const item of arrayOf(output)) calls = withItem(calls, objectOf(item))
  return calls
}

/** Why a response ended: the canonical reason and the upstream's own word. */
interface Ending {
  readonly reason: FinishReason
  readonly raw: string
}

/**
 * The ending of a response that did not fail. The format has no reason for tool calls, so `calls`, the number
 * of calls in the output, decides. A response that is incomplete for an unknown reason counts as truncated by
 * its length.
 */
export function endingOf(response: JsonObject, incomplete: boolean, calls: number): Ending {
  if (!incomplete) return { reason: calls > 0 ? 'tool-use' : 'stop', raw: 'completed' }
  const raw = stringOf(objectOf(response['incomplete_details'])['reason']) ?? 'incomplete'
  const reason = stopReasonOf('openai-responses', raw, 'length')
  return { reason: reason === 'stop' && calls > 0 ? 'tool-use' : reason, raw }
}
