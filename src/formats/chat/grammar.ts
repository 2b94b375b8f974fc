/**
 * The grammar of canonical events, checked at run time between every decoder and every encoder. A breach
 * becomes one `upstream_malformed` error event, and later events are dropped.
 *
 *     stream := start (block | citation | logprobs | image | opaque | usage)* finish     complete
 *             | start …                                    error      truncated, blocks may be open
 *             | error                                                 never started
 *     block  := K-start K-delta* K-end                     K ∈ text, refusal, thinking, tool
 *
 * Indexes are 0,1,2,… in order of start, and blocks never overlap. An `image` or `opaque` is a block of its
 * own. `logprobs` belong to the open text block, a `citation` to any text block so far, because some
 * upstreams send sources at the end. Usage is cumulative: later events replace earlier ones. No event follows
 * `finish` or `error`. If a call has cut arguments, a `finish` by the will of the model becomes an error.
 */
import type { WireError } from '../../errors.js'
import { JsonCompletion } from './json-completion.js'
import type { ChatEvent, EventSink, FinishReason } from './event.js'

type BlockKind = 'text' | 'refusal' | 'thinking' | 'tool'

/** Reasons after which the arguments of the last call may be cut. */
export const CUTS: ReadonlySet<FinishReason> = new Set<FinishReason>(['length', 'filter', 'pause'])

const DISORDERED: Readonly<WireError> = {
  kind: 'upstream_malformed',
  message: "The upstream's reply has its parts in an invalid order and could not be translated.",
}
/** The reply is reported as finished, and the arguments of one of its calls are not. */
export const CUT_CALL: Readonly<WireError> = {
  kind: 'upstream_truncated',
  message: "The upstream's reply ended within the arguments of a tool call.",
}

/** Forwards grammatical events, and stops at the first breach. */
export class Grammar implements EventSink {
  /** The breach, for the log; null if there is none. */
  breach: string | null = null
  /** A `finish` or `error` event was forwarded. */
  ended = false
  private started = false
  private nextIndex = 0
  private open: BlockKind | null = null
  /** The text blocks so far, which may have citations. */
  private readonly texts = new Set<number>()
  /** The arguments of the open call; null if it has free text, or there is none. */
  private json: JsonCompletion | null = null
  private hasCutCall = false
  private readonly next: EventSink

  constructor(next: EventSink) {
    this.next = next
  }

  event(event: ChatEvent): void {
    if (this.breach !== null) return
    const breach = this.check(event)
    if (breach === null) {
      const isCut = event.type === 'finish' && this.hasCutCall && !CUTS.has(event.reason)
      this.next.event(isCut ? { type: 'error', error: { ...CUT_CALL } } : event)
      return
    }
    this.breach = breach
    if (this.ended) return
    this.ended = true
    this.next.event({ type: 'error', error: { ...DISORDERED } })
  }

  /** Takes one event; returns the breach, or null. */
  private check(event: ChatEvent): string | null {
    if (this.ended) return `${event.type} after the end`
    if (event.type === 'error') {
      this.ended = true
      return null
    }
    if (event.type === 'start') {
      if (this.started) return 'second start'
      this.started = true
      return null
    }
    if (!this.started) return `${event.type} before start`
    return this.checkBody(event)
  }

  private checkBody(event: Exclude<ChatEvent, { type: 'error' | 'start' }>): string | null {
    switch (event.type) {
      case 'usage':
        return null
      case 'finish':
        if (this.open !== null) return `finish inside ${this.open}`
        this.ended = true
        return null
      case 'image':
      case 'opaque':
        return this.openBlock(null, event.index)
      case 'citation':
        return this.texts.has(event.index) ? null : `citation of ${event.index}, no text`
      case 'logprobs':
        return this.checkOpenBlock('text', event.index)
      case 'text-start':
        this.texts.add(event.index)
        return this.openBlock('text', event.index)
      case 'refusal-start':
        return this.openBlock('refusal', event.index)
      case 'thinking-start':
        return this.openBlock('thinking', event.index)
      case 'tool-start':
        this.json = event.custom === true ? null : new JsonCompletion()
        return this.openBlock('tool', event.index)
      case 'text-delta':
        return this.checkOpenBlock('text', event.index)
      case 'refusal-delta':
        return this.checkOpenBlock('refusal', event.index)
      case 'thinking-delta':
        return this.checkOpenBlock('thinking', event.index)
      case 'tool-delta':
        this.json?.add(event.json)
        return this.checkOpenBlock('tool', event.index)
      case 'text-end':
        return this.closeBlock('text', event.index)
      case 'refusal-end':
        return this.closeBlock('refusal', event.index)
      case 'thinking-end':
        return this.closeBlock('thinking', event.index)
      case 'tool-end':
        this.hasCutCall ||= this.json?.isOpen === true
        this.json = null
        return this.closeBlock('tool', event.index)
      default:
        event satisfies never
        return 'unknown event'
    }
  }

  private openBlock(kind: BlockKind | null, index: number): string | null {
    if (this.open !== null) return `block ${index} starts inside ${this.open}`
    if (index !== this.nextIndex) return `block ${index} instead of ${this.nextIndex}`
    this.nextIndex += 1
    this.open = kind
    return null
  }

  private checkOpenBlock(kind: BlockKind, index: number): string | null {
    if (this.open !== kind) return `${kind} ${index} is not open`
    return index === this.nextIndex - 1 ? null : `${kind} ${index} is not the open block`
  }

  private closeBlock(kind: BlockKind, index: number): string | null {
    const breach = this.checkOpenBlock(kind, index)
    this.open = null
    return breach
  }
}
