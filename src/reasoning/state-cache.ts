/**
 * What a process has lately kept or found, in memory, least recently used out first.
 * Knows no store and no seal.
 */
import type { ReplyBlock } from '../chat/reply/fold.js'

/** One answer's state. */
export interface CachedState {
  readonly blocks: readonly ReplyBlock[]
  readonly bytes: number
  /** When the store lets go of it. */
  readonly expiresAtMs: number
}

/** At most so many bytes of states, by name. */
export class StateCache {
  private readonly held = new Map<string, CachedState>()
  private bytes = 0

  /** The state, now the most recently used; null where there is none, or its time is over. */
  get(name: string, nowMs: number): CachedState | null {
    const found = this.held.get(name)
    if (found === undefined) return null
    this.held.delete(name)
    if (found.expiresAtMs <= nowMs) {
      this.bytes -= found.bytes
      return null
    }
    this.held.set(name, found)
    return found
  }

  /** Keeps the state, if there can be room for it at all. */
  set(name: string, state: CachedState, roomBytes: number): void {
    this.remove(name)
    if (state.bytes <= roomBytes) {
      this.held.set(name, state)
      this.bytes += state.bytes
    }
    for (const oldest of this.held.keys()) {
      if (this.bytes <= roomBytes) return
      this.remove(oldest)
    }
  }

  private remove(name: string): void {
    this.bytes -= this.held.get(name)?.bytes ?? 0
    this.held.delete(name)
  }
}
