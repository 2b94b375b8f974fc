/**
 * The content blocks of a stream that have started and not stopped.
 */
import type { JsonObject } from '../../../../chat/json.js'

/**
 * The canonical kind of a block. `json` is a call of the synthetic tool whose arguments are the reply's text.
 */
export type Kind = 'text' | 'thinking' | 'tool' | 'custom' | 'json' | 'opaque' | 'ignored'

/** A block of one reply. `at` is its upstream index, `start` the content block of its start event. */
export interface Block {
  readonly at: number
  readonly kind: Kind
  readonly start: JsonObject
  /** The input in the start of a tool call, as JSON text; `{}` if there is none. */
  readonly input: string
  /** The canonical index; -1 until the block is emitted. */
  index: number
  /**
   * Text or JSON that is held until earlier blocks end, or until the end of a block that is emitted whole.
   */
  pending: string
  length: number
  signature: string
  readonly citations: JsonObject[]
  stopped: boolean
}

/** A block that has just started. */
export function newBlock({
  at,
  kind,
  start,
  input,
}: Pick<Block, 'at' | 'kind' | 'start' | 'input'>): Block {
  return {
    at,
    kind,
    start,
    input,
    index: -1,
    pending: '',
    length: 0,
    signature: '',
    citations: [],
    stopped: false,
  }
}

/** Blocks that have not stopped, by upstream index. Avoids a Map (0.2 µs) for the usual case of one block. */
export class OpenBlocks {
  private one: Block | null = null
  private others: Map<number, Block> | null = null

  get(at: number): Block | undefined {
    return this.one?.at === at ? this.one : this.others?.get(at)
  }

  add(block: Block): void {
    if (this.one === null) this.one = block
    else (this.others ??= new Map<number, Block>()).set(block.at, block)
  }

  remove(block: Block): void {
    if (this.one === block) this.one = null
    else this.others?.delete(block.at)
  }

  all(): readonly Block[] {
    const { one, others } = this
    if (others === null) return one === null ? NONE : [one]
    return one === null ? [...others.values()] : [one, ...others.values()]
  }
}

const NONE: readonly Block[] = []
