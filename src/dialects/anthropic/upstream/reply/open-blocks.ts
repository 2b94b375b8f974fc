/**
 * The content blocks of a stream that have started and not stopped.
 */
import type { JsonObject } from '../../../../chat/json.js'

/** What a block becomes. `json` is the synthetic tool whose arguments are the answer's text. */
export type Kind = 'text' | 'thinking' | 'tool' | 'custom' | 'json' | 'opaque' | 'ignored'

export interface Block {
  readonly at: number
  readonly kind: Kind
  readonly start: JsonObject
  /** The input that came with the start of a tool call; `{}` where there was none. */
  readonly input: string
  /** Its canonical index, once its turn has come. */
  index: number
  /** Text or JSON that waits: for its turn, or for its end where it can only be sent whole. */
  held: string
  length: number
  signature: string
  readonly citations: JsonObject[]
  stopped: boolean
}

export function newBlock(at: number, kind: Kind, start: JsonObject, input: string): Block {
  return {
    at,
    kind,
    start,
    input,
    index: -1,
    held: '',
    length: 0,
    signature: '',
    citations: [],
    stopped: false,
  }
}

/** Blocks that have not stopped, by their upstream index. There is nearly always one, and a Map costs 0.2 µs. */
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
