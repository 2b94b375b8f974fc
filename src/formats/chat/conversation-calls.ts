/**
 * The calls of a conversation and their results. Some models give each call the same id, or none: a result
 * belongs to the latest call with its id that has no result.
 */
import type { NativeField } from './request.js'

/** The calls with one id in one turn; those before `next` have results. */
interface OpenCalls {
  readonly turn: number
  readonly ids: string[]
  next: number
}

/**
 * Gives each call of a conversation an id of its own, which upstreams such as Anthropic require. It depends
 * only on the calls before it, so that the prefix of a longer conversation stays the same.
 */
export class ConversationCalls {
  /**
   * The first call or result without its counterpart. The provider of the same format judges it; a request
   * that is translated is refused.
   */
  unpaired: NativeField | null = null
  private readonly used = new Set<string>()
  /** How often each id was given. */
  private readonly counts = new Map<string, number>()
  private readonly open = new Map<string, OpenCalls[]>()

  /** The own id of the call; the given one if no earlier call has it. `turn` increases from turn to turn. */
  add(id: string, turn: number): string {
    const own = this.unused(id)
    const known = this.open.get(id)
    const last = known?.at(-1)
    if (last?.turn === turn) last.ids.push(own)
    else if (known === undefined) this.open.set(id, [{ turn, ids: [own], next: 0 }])
    else known.push({ turn, ids: [own], next: 0 })
    return own
  }

  /** The own id of the call that a result with this id belongs to; null if no such call is open. */
  answer(id: string): string | null {
    const known = this.open.get(id)
    const last = known?.at(-1)
    const own = last?.ids[last.next]
    if (known === undefined || last === undefined || own === undefined) return null
    last.next += 1
    if (last.next === last.ids.length) known.pop()
    return own
  }

  /** Calls before this one cannot get results any more. */
  close(): void {
    this.open.clear()
  }

  /** Records a call or result without its counterpart, at a path that breaks a rule. */
  refuseElsewhere(path: string, rule: string): void {
    this.unpaired ??= { path, refusal: `${path} ${rule}`, isMalformed: true }
  }

  private unused(id: string): string {
    let count = this.counts.get(id) ?? 0
    let own = ''
    do {
      count += 1
      own = count === 1 ? id : `${id}_${count}`
      if (id === '') own = `call_${count}`
    } while (this.used.has(own))
    this.counts.set(id, count)
    this.used.add(own)
    return own
  }
}
