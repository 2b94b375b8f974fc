/**
 * The grammar of canonical events, checked in production between every decoder and every encoder.
 * A breach becomes one `upstream_malformed` error event; a corrupt stream never gets through.
 *
 *     stream := start (block | citation | logprobs | image | opaque | usage)* finish     complete
 *             | start …                                    error      cut anywhere, blocks may be open
 *             | error                                                 never started
 *     block  := K-start K-delta* K-end                     K ∈ text, refusal, thinking, tool
 *
 * Indexes are 0,1,2,… in order of start; blocks never overlap; an `image` or `opaque` is a block of its own;
 * `logprobs` belong to the text block that is open, a `citation` to any that has begun, since some upstreams
 * name their sources at the very end; usage is cumulative, the last one wins; nothing follows finish or error.
 */
import type { ChatEvent, EventSink } from './event.js'

type BlockKind = 'text' | 'refusal' | 'thinking' | 'tool'

/** Passes grammatical events on and stops at the first that is not. */
export class Grammar implements EventSink {
  /** What broke the grammar, for the log; null while all is well. */
  breach: string | null = null
  /** True once `finish` or `error` has passed. */
  ended = false
  private started = false
  private nextIndex = 0
  private open: BlockKind | null = null
  /** The text blocks so far, which may be cited. */
  private readonly texts = new Set<number>()
  private readonly next: EventSink

  constructor(next: EventSink) {
    this.next = next
  }

  event(event: ChatEvent): void {
    if (this.breach !== null) return
    const breach = this.check(event)
    if (breach === null) {
      this.next.event(event)
      return
    }
    this.breach = breach
    if (this.ended) return
    this.ended = true
    const message = 'The upstream’s reply was not in order and could not be translated.'
    this.next.event({ type: 'error', error: { kind: 'upstream_malformed', message } })
  }

  /** Advances by one event; returns what is wrong with it, or null. */
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
        return this.inside('text', event.index)
      case 'text-start':
        this.texts.add(event.index)
        return this.openBlock('text', event.index)
      case 'refusal-start':
        return this.openBlock('refusal', event.index)
      case 'thinking-start':
        return this.openBlock('thinking', event.index)
      case 'tool-start':
        return this.openBlock('tool', event.index)
      case 'text-delta':
        return this.inside('text', event.index)
      case 'refusal-delta':
        return this.inside('refusal', event.index)
      case 'thinking-delta':
        return this.inside('thinking', event.index)
      case 'tool-delta':
        return this.inside('tool', event.index)
      case 'text-end':
        return this.closeBlock('text', event.index)
      case 'refusal-end':
        return this.closeBlock('refusal', event.index)
      case 'thinking-end':
        return this.closeBlock('thinking', event.index)
      case 'tool-end':
        return this.closeBlock('tool', event.index)
      default:
        event satisfies never
        return 'unknown event'
    }
  }

  private openBlock(kind: BlockKind | null, index: number): string | null {
    if (this.open !== null) return `block ${index} starts inside ${this.open}`
    if (index !== this.nextIndex) return `block ${index} where ${this.nextIndex} was due`
    this.nextIndex += 1
    this.open = kind
    return null
  }

  private inside(kind: BlockKind, index: number): string | null {
    if (this.open !== kind) return `${kind} ${index} is not open`
    return index === this.nextIndex - 1 ? null : `${kind} ${index} is not the open block`
  }

  private closeBlock(kind: BlockKind, index: number): string | null {
    const breach = this.inside(kind, index)
    this.open = null
    return breach
  }
}
