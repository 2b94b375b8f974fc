/**
 * Keeps the reasoning state of answers for clients that do not send it back, and puts it into the
 * history when they ask again: signed thinking, thought signatures, sealed reasoning.
 * Knows no dialect but by its name, no engine and no socket. Whatever fails here, the request goes on
 * without the state; nothing of it is ever logged.
 */
import type { Reply, ReplyBlock } from '../chat/reply/fold.js'
import type { ChatRequest, Message } from '../chat/request.js'
import type { EscrowConfig } from '../config/config.js'
import type { SharedCache, CachedValue } from '../store/store.js'
import { StateCache, type CachedState } from './state-cache.js'
import { Seal } from './seal.js'
import { hasState, readState, restored, writeState } from './state.js'
import { turnOf, turnOfReply, TurnNames } from './turn.js'
import { withinTime } from './within-time.js'

/** Whose state it is: it never serves another account, another format or another model. */
export interface Scope {
  readonly accountId: string
  /** The dialect of the upstream. */
  readonly family: string
  /** As the upstream is asked for it. */
  readonly model: string
}

/** What became of a look-up or of a state to be kept. */
export type EscrowResult = 'hit' | 'miss' | 'stored' | 'too_large' | 'failed'

/** What an escrow is made of. */
export interface EscrowOptions {
  readonly shelf: SharedCache
  /** The settings in force. */
  readonly settings: () => EscrowConfig
  readonly secret: string
  /** Wall clock, in ms: several processes compare times. */
  readonly now: () => number
  readonly onResult: (result: EscrowResult) => void
}

const SWEEP_MS = 60_000
/** Of a state in memory, besides its text. */
const ENTRY_BYTES = 300
/** One answer may have so much of the store's room. */
const SHARE = 64

type AssistantMessage = Extract<Message, { role: 'assistant' }>

interface Wanted {
  readonly at: number
  readonly message: AssistantMessage
  readonly name: string
}

/** One per process; `close` stops its timer. */
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

  /** False while the settings say that nothing is to be kept. */
  get enabled(): boolean {
    return this.options.settings().enabled
  }

  /**
   * The request with the state that its turns had; the request itself where nothing was found. At once
   * where all turns are in memory or the engine answers so.
   */
  restore(request: ChatRequest, scope: Scope): ChatRequest | Promise<ChatRequest> {
    if (!request.messages.some(isAnswer)) return request
    const wanted = this.wanted(request.messages, scope)
    const nowMs = this.options.now()
    const found = wanted.map(({ name }) => this.remembered(name, nowMs))
    const missing = wanted.filter((_, at) => found[at] === null).map(({ name }) => name)
    const fill = (items: (CachedValue | null)[]): ChatRequest => {
      let next = 0
      const all = found.map((blocks, at) => {
        if (blocks !== null) return blocks
        const name = wanted[at]?.name ?? ''
        return this.opened(name, items[next++] ?? null, nowMs)
      })
      return this.filled(request, wanted, all, scope)
    }
    if (missing.length === 0) return fill([])
    try {
      const items = this.options.shelf.get(missing, nowMs)
      return items instanceof Promise ? items.catch(() => this.failed()).then(fill) : fill(items)
    } catch {
      return fill(this.failed())
    }
  }

  /**
   * Keeps a reply's state, so that the next turn finds it in any process once this resolves. Null where
   * there is nothing to keep, which is the case for most replies. Never rejects.
   */
  keep(request: ChatRequest, reply: Reply, scope: Scope): Promise<void> | null {
    if (!hasState(reply.blocks)) return null
    const blocks = reply.blocks.map((block) => (block.type === 'text' ? uncited(block) : block))
    const turns = new TurnNames()
    for (const message of request.messages) {
      if (message.role === 'assistant') turns.addReply(turnOf(message))
      else turns.addMessage(message)
    }
    const turn = turnOfReply(blocks, request.legacyFunctions === true)
    const name = this.nameOf(scope, turns.addReply(turn))
    const { maxBytes } = this.options.settings()
    const text = writeState(blocks)
    if (text.length > maxBytes / SHARE) {
      this.options.onResult('too_large')
      return null
    }
    return withinTime(this.put(name, blocks, text))
  }

  /** Stops the sweep. */
  close(): void {
    clearInterval(this.timer)
  }

  /** The assistant's turns with the names of what they may have left here. */
  private wanted(messages: readonly Message[], scope: Scope): Wanted[] {
    const turns = new TurnNames()
    const wanted: Wanted[] = []
    for (const [at, message] of messages.entries()) {
      if (message.role !== 'assistant') turns.addMessage(message)
      else {
        const name = this.nameOf(scope, turns.addReply(turnOf(message)))
        wanted.push({ at, message, name })
      }
    }
    return wanted
  }

  private nameOf({ accountId, family, model }: Scope, turn: string): string {
    return this.seal.name([accountId, family, model, turn])
  }

  private filled(
    request: ChatRequest,
    wanted: readonly Wanted[],
    found: readonly (readonly ReplyBlock[] | null)[],
    scope: Scope,
  ): ChatRequest {
    let messages: Message[] | null = null
    for (const [index, { at, message }] of wanted.entries()) {
      const blocks = found[index] ?? null
      this.options.onResult(blocks === null ? 'miss' : 'hit')
      if (blocks === null) continue
      messages ??= [...request.messages]
      messages[at] = restored(message, blocks, scope.family)
    }
    return messages === null ? request : { ...request, messages }
  }

  private remembered(name: string, nowMs: number): readonly ReplyBlock[] | null {
    const held = this.memory.get(name, nowMs)
    if (held === null) return null
    this.prolong(name, held, nowMs)
    return held.blocks
  }

  /** What the store had, now in memory too. */
  private opened(
    name: string,
    item: CachedValue | null,
    nowMs: number,
  ): readonly ReplyBlock[] | null {
    const text = item === null ? null : this.seal.open(name, item.value)
    const blocks = text === null ? null : readState(text)
    if (item === null || text === null || blocks === null) return null
    const held = { blocks, bytes: memoryBytesOf(text), expiresAtMs: item.expiresAtMs }
    this.memory.set(name, held, this.options.settings().memoryBytes)
    this.prolong(name, held, nowMs)
    return blocks
  }

  /** A conversation that goes on keeps its state, and what nobody asks for leaves first. */
  private prolong(name: string, { blocks, expiresAtMs }: CachedState, nowMs: number): void {
    const halfMs = this.options.settings().ttlSeconds * 500
    if (expiresAtMs - nowMs < halfMs) void this.put(name, blocks, writeState(blocks))
  }

  private async put(name: string, blocks: readonly ReplyBlock[], text: string): Promise<void> {
    const { ttlSeconds, maxEntries, maxBytes, memoryBytes } = this.options.settings()
    const nowMs = this.options.now()
    const expiresAtMs = nowMs + ttlSeconds * 1000
    this.memory.set(name, { blocks, bytes: memoryBytesOf(text), expiresAtMs }, memoryBytes)
    const item = { value: this.seal.seal(name, text), expiresAtMs }
    const room = { entries: maxEntries, bytes: maxBytes }
    try {
      await this.options.shelf.put(name, item, room, nowMs)
      this.options.onResult('stored')
    } catch {
      this.failed()
    }
  }

  private sweep(): void {
    const { maxEntries, maxBytes } = this.options.settings()
    const room = { entries: maxEntries, bytes: maxBytes }
    this.options.shelf.sweep(room, this.options.now()).catch(() => this.failed())
  }

  /** The store counts its own failures; here they only mean that nothing is found. */
  private failed(): [] {
    this.options.onResult('failed')
    return []
  }
}

/** What a state takes in memory: two bytes a character at most, and its name, objects and place in a map. */
function memoryBytesOf(text: string): number {
  return 2 * text.length + ENTRY_BYTES
}

function isAnswer({ role }: Message): boolean {
  return role === 'assistant'
}

/** Where the text cites from is for people, not for the model. */
function uncited(block: Extract<ReplyBlock, { type: 'text' }>): ReplyBlock {
  const { logprobs, ...bare } = block
  return block.citations.length === 0 && logprobs === undefined ? block : { ...bare, citations: [] }
}
