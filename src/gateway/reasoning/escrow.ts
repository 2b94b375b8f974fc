/**
 * Stores the reasoning state of replies (signed thinking, thought signatures, encrypted reasoning) and
 * inserts it into later requests of clients that do not send it back. If the store fails, the request
 * continues without the state. The state is never logged.
 */
import type { EscrowConfig } from '../../config/config.js'
import type { Reply, ReplyBlock } from '../../formats/chat/fold.js'
import type { AssistantMessage, ChatRequest, Message } from '../../formats/chat/request.js'
import type { Steps } from '../../base/steps.js'
import { Seal } from '../../store/seal.js'
import type { SharedCache, CachedValue } from '../../store/store.js'
import { bodyTurns } from '../../base/turn-queue.js'
import { turnOfReply, TurnNames, type Turn } from './name-turns.js'
import { hasState, readState, restored, writeState } from './serialize-state.js'

/** The owner of a state, which is never used for another account, dialect or model. */
export interface Scope {
  readonly accountId: string
  /** The dialect of the upstream. */
  readonly family: string
  /** The upstream's name of the model. */
  readonly model: string
}

/** The result of finding or storing a state. */
export type EscrowResult = 'hit' | 'miss' | 'stored' | 'too_large' | 'failed'

/** The dependencies of an escrow. */
interface EscrowOptions {
  readonly cache: SharedCache
  /** The current settings. */
  readonly settings: () => EscrowConfig
  readonly secret: string
  /** Wall clock in ms, because several processes compare times. */
  readonly now: () => number
  readonly onResult: (result: EscrowResult) => void
}

const SWEEP_MS = 60_000
/** Memory of a cached state in addition to its text. */
const ENTRY_BYTES = 300
/** One reply may use this fraction of the store: 1/64. */
const SHARE = 64

/** An assistant turn of a request, and the name of its state. */
interface NamedTurn {
  /** The index of the message. */
  readonly messageIndex: number
  readonly message: AssistantMessage
  readonly name: string
}

/** The result of finding the states of a request. */
interface FoundStates {
  readonly turns: readonly NamedTurn[]
  /** The state of each turn; null if none is stored. */
  readonly states: readonly (readonly ReplyBlock[] | null)[]
  /** The dialect that the states belong to. */
  readonly family: Scope['family']
}

/** The stored reasoning state, for one process. Holds a timer until `close`. */
export class Escrow {
  private readonly options: EscrowOptions
  private readonly seal: Seal
  private readonly memory = new StateCache()
  private readonly timer: NodeJS.Timeout

  constructor(options: EscrowOptions) {
    this.options = options
    this.seal = new Seal(options.secret)
    this.timer = setInterval(() => this.sweep(), SWEEP_MS).unref()
  }

  /** Whether the configuration enables the escrow. */
  get enabled(): boolean {
    return this.options.settings().enabled
  }

  /**
   * The request with the stored state of its turns; the same object if none was found. Synchronous if the
   * conversation is short, and all turns are in memory or the store is synchronous.
   */
  restore(request: ChatRequest, scope: Scope): ChatRequest | Promise<ChatRequest> {
    const { messages } = request
    if (!messages.some(({ role }) => role === 'assistant')) return request
    const turns = bodyTurns.start(this.namedTurns(messages, scope))
    return turns instanceof Promise
      ? turns.then((named) => this.restoreTurns(request, named, scope))
      : this.restoreTurns(request, turns, scope)
  }

  private restoreTurns(
    request: ChatRequest,
    turns: readonly NamedTurn[],
    scope: Scope,
  ): ChatRequest | Promise<ChatRequest> {
    const nowMs = this.options.now()
    const cachedStates = turns.map(({ name }) => this.cached(name, nowMs))
    const missing = turns.filter((_, index) => cachedStates[index] === null).map(({ name }) => name)
    const fill = (items: (CachedValue | null)[]): ChatRequest => {
      let next = 0
      const states = cachedStates.map((blocks, index) => {
        if (blocks !== null) return blocks
        const name = turns[index]?.name ?? ''
        return this.opened(name, items[next++] ?? null, nowMs)
      })
      return this.filled(request, { turns, states, family: scope.family })
    }
    if (missing.length === 0) return fill([])
    try {
      const items = this.options.cache.get(missing, nowMs)
      return items instanceof Promise ? items.catch(() => this.failed()).then(fill) : fill(items)
    } catch {
      return fill(this.failed())
    }
  }

  /**
   * Stores a reply's state; once this resolves, any process can restore it. Null if the reply has no state,
   * which is the usual case, or if the state is too large. Never rejects.
   */
  keep(request: ChatRequest, reply: Reply, scope: Scope): Promise<void> | null {
    if (!hasState(reply.blocks)) return null
    const blocks = reply.blocks.map((block) => (block.type === 'text' ? uncited(block) : block))
    const { maxBytes } = this.options.settings()
    const text = writeState(blocks)
    if (text.length > maxBytes / SHARE) {
      this.options.onResult('too_large')
      return null
    }
    const turn = turnOfReply(blocks, request.legacyFunctions === true)
    const name = bodyTurns.start(this.replyName(request.messages, turn, scope))
    return withinTime(
      name instanceof Promise
        ? name.then((known) => this.put(known, blocks, text))
        : this.put(name, blocks, text),
    )
  }

  /** Stops the sweep. */
  close(): void {
    clearInterval(this.timer)
  }

  /** The name under which the state of the reply to a conversation is stored. */
  private *replyName(messages: readonly Message[], reply: Turn, scope: Scope): Steps<string> {
    const turns = new TurnNames()
    yield* turns.addMessages(messages)
    return this.nameOf(scope, yield* turns.addReply(reply))
  }

  /** The assistant turns with the names under which their state would be stored. */
  private *namedTurns(messages: readonly Message[], scope: Scope): Steps<readonly NamedTurn[]> {
    const named: NamedTurn[] = []
    yield* new TurnNames().addMessages(messages, (message, messageIndex, turn) => {
      named.push({ messageIndex, message, name: this.nameOf(scope, turn) })
    })
    return named
  }

  private nameOf({ accountId, family, model }: Scope, turn: string): string {
    return this.seal.name([accountId, family, model, turn])
  }

  /** The request with the states in its turns. */
  private filled(request: ChatRequest, { turns, states, family }: FoundStates): ChatRequest {
    let messages: Message[] | null = null
    for (const [index, { messageIndex, message }] of turns.entries()) {
      const blocks = states[index] ?? null
      this.options.onResult(blocks === null ? 'miss' : 'hit')
      if (blocks === null) continue
      messages ??= [...request.messages]
      messages[messageIndex] = restored(message, blocks, family)
    }
    return messages === null ? request : { ...request, messages }
  }

  private cached(name: string, nowMs: number): readonly ReplyBlock[] | null {
    const state = this.memory.get(name, nowMs)
    if (state === null) return null
    this.prolong(name, state, nowMs)
    return state.blocks
  }

  /** Decrypts a stored state and adds it to the memory cache. */
  private opened(name: string, item: CachedValue | null, nowMs: number): readonly ReplyBlock[] | null {
    const text = item === null ? null : this.seal.open(name, item.value)
    const blocks = text === null ? null : readState(text)
    if (item === null || text === null || blocks === null) return null
    const state = { blocks, bytes: memoryBytesOf(text), expiresAtMs: item.expiresAtMs }
    this.memory.set(name, state, this.options.settings().memoryBytes)
    this.prolong(name, state, nowMs)
    return blocks
  }

  /**
   * Stores a state again when half of its lifetime is over, so that the states of active conversations do not
   * expire.
   */
  private prolong(name: string, { blocks, expiresAtMs }: CachedState, nowMs: number): void {
    const halfMs = this.options.settings().ttlSeconds * 500
    if (expiresAtMs - nowMs < halfMs) void this.put(name, blocks, writeState(blocks))
  }

  private async put(name: string, blocks: readonly ReplyBlock[], text: string): Promise<void> {
    const { ttlSeconds, maxEntries, maxBytes, memoryBytes } = this.options.settings()
    const nowMs = this.options.now()
    const expiresAtMs = nowMs + ttlSeconds * 1000
    this.memory.set(name, { blocks, bytes: memoryBytesOf(text), expiresAtMs }, memoryBytes)
    const item = { name, value: this.seal.seal(name, text), expiresAtMs }
    const room = { entries: maxEntries, bytes: maxBytes }
    try {
      await this.options.cache.put(item, room, nowMs)
      this.options.onResult('stored')
    } catch {
      this.failed()
    }
  }

  private sweep(): void {
    const { maxEntries, maxBytes } = this.options.settings()
    const room = { entries: maxEntries, bytes: maxBytes }
    this.options.cache.sweep(room, this.options.now()).catch(() => this.failed())
  }

  /** Reports a failure of the store; the result is an empty list of states. */
  private failed(): [] {
    this.options.onResult('failed')
    return []
  }
}

/** Memory of a cached state: at most two bytes per character, and the name, the objects and the map entry. */
function memoryBytesOf(text: string): number {
  return 2 * text.length + ENTRY_BYTES
}

/** The block without citations and token probabilities, which upstreams do not need. */
function uncited(block: Extract<ReplyBlock, { type: 'text' }>): ReplyBlock {
  const { logprobs, ...bare } = block
  return block.citations.length === 0 && logprobs === undefined ? block : { ...bare, citations: [] }
}

/** The state of one reply. */
interface CachedState {
  readonly blocks: readonly ReplyBlock[]
  readonly bytes: number
  /** When the stored state expires, in ms since 1970. */
  readonly expiresAtMs: number
}

/** States by name, limited by their total size in bytes. */
class StateCache {
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

/** Maximum waiting time; the store operation continues after it. */
const WAIT_MS = 500

/** Resolves when `work` does, or after 500 ms. `work` must not reject. */
export function withinTime(work: Promise<void>): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, WAIT_MS)
    void work.then(() => {
      clearTimeout(timer)
      resolve()
    })
  })
}
