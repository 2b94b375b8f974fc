/** The tools that the model calls in a request of a run: their names and how often, never arguments. */
import type { ReplyObserver } from '../../formats/observed-format.js'
import { MAX_TOOLS, OTHER_TOOL } from '../../store/dimension-values.js'

const MAX_LENGTH = 128
const UNPRINTABLE = /[\p{C}\u2028\u2029]/u

/** Counts by name; names without end, and names that are not printable, count as `other`. */
export class CalledTools implements ReplyObserver {
  private counts: Map<string, number> | null = null

  /** Counts a call. */
  readonly tool = (name: string): void => {
    const counts = (this.counts ??= new Map<string, number>())
    const isName = name !== '' && name.length <= MAX_LENGTH && !UNPRINTABLE.test(name)
    const own = isName && (counts.has(name) || counts.size < MAX_TOOLS) ? name : OTHER_TOOL
    counts.set(own, (counts.get(own) ?? 0) + 1)
  }

  /** Null: none was called. */
  get calls(): ReadonlyMap<string, number> | null {
    return this.counts
  }
}
