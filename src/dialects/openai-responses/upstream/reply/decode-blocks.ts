/**
 * Puts blocks that may grow at the same time one after the other, as the grammar wants them.
 * Knows no output item: it is told of blocks, their pieces and their ends.
 *
 * Blocks queue in the order in which they began. Only the first is open and passes its pieces on at
 * once; the others keep theirs until it is complete, which at the latest it is at the end.
 */
import type { Citation, EventSink } from '../../../../chat/event.js'
import type { TokenLogprob } from '../../../../chat/reply/logprobs.js'
import type { JsonObject } from '../../../../chat/json.js'
import { CallIds } from '../../../../wire/openai/names.js'

/** What begins a block. */
export type Head =
  | { kind: 'text' | 'refusal' | 'thinking' }
  | { kind: 'tool'; id: string; name: string; custom: boolean }
  | { kind: 'opaque'; item: JsonObject }

/** One block. Only `Blocks` looks inside. */
export interface Block {
  readonly head: Head
  readonly pieces: string[]
  readonly citations: Citation[]
  /** Tokens of pieces that wait, or of the text as a whole. */
  tokens: TokenLogprob[]
  signature?: string
  complete: boolean
}

/** A reply with more blocks than this is broken. */
const MAX_BLOCKS = 4_096

/** Emits blocks in order; `finish` closes what is open. */
export class Blocks {
  /** Calls that have begun or wait. */
  calls = 0
  /** The reply has more blocks than any real one. */
  overflow = false
  private readonly sink: EventSink
  private readonly nameOf: (name: string) => string
  private readonly replyId: () => string
  private readonly queue: Block[] = []
  private readonly callIds = new CallIds()
  private index = -1
  private open = false
  private total = 0

  /** `nameOf` turns a tool's wire name into the client's; `replyId` seeds ids that never came. */
  constructor(sink: EventSink, nameOf: (name: string) => string, replyId: () => string) {
    this.sink = sink
    this.nameOf = nameOf
    this.replyId = replyId
  }

  /** Begins a block after all that have begun. */
  begin(head: Head): Block {
    const block: Block = { head, pieces: [], citations: [], tokens: [], complete: false }
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

  /** Adds a piece of text or of arguments. */
  say(block: Block, piece: string): void {
    if (piece === '') return
    block.pieces.push(piece)
    if (block === this.queue[0]) this.advance()
  }

  /** Tells the tokens of the text that comes next, or that came. */
  weigh(block: Block, tokens: readonly TokenLogprob[]): void {
    for (const token of tokens) block.tokens.push(token)
  }

  /** Cites a source, after all text so far. */
  cite(block: Block, citation: Citation): void {
    block.citations.push(citation)
    if (block === this.queue[0]) this.advance()
  }

  /** Nothing more will come for the block. */
  end(block: Block, signature?: string): void {
    if (block.complete) return
    block.complete = true
    if (signature !== undefined) block.signature = signature
    if (block === this.queue[0]) this.advance()
  }

  /** Closes everything. */
  finish(): void {
    for (const block of this.queue) block.complete = true
    this.advance()
  }

  /** Passes on what the first block has, and moves on while it is complete. */
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
      const name = this.nameOf(head.name)
      const custom = head.custom ? { custom: true } : {}
      this.sink.event({ type: 'tool-start', index, id, name, ...custom })
    } else this.sink.event({ type: `${head.kind}-start`, index })
  }

  private flush(block: Block): void {
    const { index } = this
    const { head, pieces, citations, tokens } = block
    if (head.kind === 'opaque') return
    if (tokens.length > 0) {
      block.tokens = []
      this.sink.event({ type: 'logprobs', index, tokens })
    }
    for (const piece of pieces) {
      if (head.kind === 'tool') this.sink.event({ type: 'tool-delta', index, json: piece })
      else this.sink.event({ type: `${head.kind}-delta`, index, text: piece })
    }
    pieces.length = 0
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
