/** A memory cache of reasoning states with least-recently-used eviction. */
import type { ReplyBlock } from '../chat/reply/fold.js'

/** The state of one reply. */
export interface CachedState {
  readonly blocks: readonly ReplyBlock[]
  readonly bytes: number
  /** When the stored state expires, in ms since 1970. */
  readonly expiresAtMs: number
}

/** States by name, limited by their total size in bytes. */
export class StateCache {
  private readonly states = new Map<string, CachedState>()
  private bytes = 0

  /** The state, which becomes the most recently used one; null if there is none or it has expired. */
  get(name: string, nowMs: number): CachedState | null {
    const state = this.states.get(name)
    if (state === undefined) return null
    this.states.delete(name)
    if (state.expiresAtMs <= nowMs) {
      this.bytes -= state.bytes
      return null
    }
    this.states.set(name, state)
    return state
  }

  /** Adds the state, unless it alone exceeds the limit, and evicts the least recently used ones. */
  set(name: string, state: CachedState, roomBytes: number): void {
    this.remove(name)
    if (state.bytes <= roomBytes) {
      this.states.set(name, state)
      this.bytes += state.bytes
    }
    for (const oldest of this.states.keys()) {
      if (this.bytes <= roomBytes) return
      this.remove(oldest)
    }
  }

  private remove(name: string): void {
    this.bytes -= this.states.get(name)?.bytes ?? 0
    this.states.delete(name)
  }
}
