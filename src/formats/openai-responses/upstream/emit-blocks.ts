/**
 * Emits blocks that may grow at the same time in sequence, as the grammar requires. Blocks queue in the order
 * in which they begin. Only the first block is open: its fragments are emitted at once, those of the others
 * are kept until it is complete.
 */
import type { Citation, EventSink, TokenLogprob } from '../../chat/event.js'
import type { JsonObject } from '../../../base/json.js'
import { CallIds } from '../../wire/openai/tools.js'

/** The start of a block. */
export type Head =
  | { kind: 'text' | 'refusal' | 'thinking' }
  | { kind: 'tool'; id: string; name: string; custom: boolean; byProgram: boolean }
  | { kind: 'opaque'; item: JsonObject }

/** One block. Its members are private to `Blocks`, except `complete`. */
export interface Block {
  readonly head: Head
  readonly fragments: string[]
  readonly citations: Citation[]
  /** Tokens that are not emitted yet. */
  tokens: TokenLogprob[]
  signature?: string
  complete: boolean
}

/** Limit for the blocks of one reply; a reply with more is malformed. */
const MAX_BLOCKS = 4_096

/** Emits blocks in order; `finish` closes what is open. */
export class Blocks {
  /** Calls so far, those in the queue included. */
  calls = 0
  /** The reply has too many blocks. */
  overflow = false
  private readonly sink: EventSink
  private readonly replyId: () => string
  private readonly queue: Block[] = []
  private readonly callIds = new CallIds()
  private index = -1
  private open = false
  private total = 0

  /** `replyId` is the seed of ids that the upstream omits. */
  constructor(sink: EventSink, replyId: () => string) {
    this.sink = sink
    this.replyId = replyId
  }

  /** Begins a block after all others. */
  begin(head: Head): Block {
    const block: Block = { head, fragments: [], citations: [], tokens: [], complete: false }
    this.total += 1
    if (this.total > MAX_BLOCKS) {
      this.overflow = true
      return block
    }
    if (head.kind === 'tool') this.calls += 1
    this.queue.push(block)
    this.advance()
    return block
  }

  /** Adds a fragment of text or of arguments. */
  append(block: Block, fragment: string): void {
    if (fragment === '') return
    block.fragments.push(fragment)
    if (block === this.queue[0]) this.advance()
  }

  /** Adds tokens, which are emitted before the next fragment. */
  addLogprobs(block: Block, tokens: readonly TokenLogprob[]): void {
    for (const token of tokens) block.tokens.push(token)
  }

  /** Adds a citation after all text so far. */
  cite(block: Block, citation: Citation): void {
    block.citations.push(citation)
    if (block === this.queue[0]) this.advance()
  }

  /** Ends a block. */
  end(block: Block, signature?: string): void {
    if (block.complete) return
    block.complete = true
    if (signature !== undefined) block.signature = signature
    if (block === this.queue[0]) this.advance()
  }

  /** Closes all blocks. */
  finish(): void {
    for (const block of this.queue) block.complete = true
    this.advance()
  }

  /** Emits what the first block holds, and continues with the next block while the first is complete. */
  private advance(): void {
    for (let first = this.queue[0]; first !== undefined; first = this.queue[0]) {
      if (!this.open) this.start(first.head)
      this.flush(first)
      if (!first.complete) return
      this.close(first)
    }
  }

  private start(head: Head): void {
    this.open = true
    this.index += 1
    const { index } = this
    if (head.kind === 'opaque') {
      this.sink.event({ type: 'opaque', index, provider: 'openai-responses', block: head.item })
    } else if (head.kind === 'tool') {
      const id = this.callIds.take(head.id, this.replyId(), this.index)
      const { name } = head
      const custom = head.custom ? { custom: true } : {}
      const caller = head.byProgram ? { byProgram: true as const } : {}
      this.sink.event({ type: 'tool-start', index, id, name, ...custom, ...caller })
    } else this.sink.event({ type: `${head.kind}-start`, index })
  }

  private flush(block: Block): void {
    const { index } = this
    const { head, fragments, citations, tokens } = block
    if (head.kind === 'opaque') return
    if (tokens.length > 0) {
      block.tokens = []
      this.sink.event({ type: 'logprobs', index, tokens })
    }
    for (const fragment of fragments) {
      if (head.kind === 'tool') this.sink.event({ type: 'tool-delta', index, json: fragment })
      else this.sink.event({ type: `${head.kind}-delta`, index, text: fragment })
    }
    fragments.length = 0
    for (const citation of citations) this.sink.event({ type: 'citation', index, citation })
    citations.length = 0
  }

  private close({ head, signature }: Block): void {
    const { index } = this
    if (head.kind === 'thinking' && signature !== undefined) {
      this.sink.event({ type: 'thinking-end', index, signature })
    } else if (head.kind !== 'opaque') this.sink.event({ type: `${head.kind}-end`, index })
    this.open = false
    this.queue.shift()
  }
}
