/**
 * The responses that a WebSocket made: its turns continue them by their ids, stored or not. They share the
 * items of the conversation, so that one more turn costs the memory of its own items.
 */
import type { StoredReply } from '../../formats/chat/stored-reply.js'
import type { HeldMemory } from '../body-memory.js'

/** A response, and the model that its client requested. */
export interface StoredRecord extends StoredReply {
  readonly model: string
}

/** A kept response with its size. */
interface ConnectionResponse extends StoredRecord {
  /** Size of the whole conversation with the reply, in bytes of its JSON. */
  readonly bytes: number
  /** The part of it that the response added to the one it continues. */
  readonly ownBytes: number
}

/** Maximum number of kept responses; clients continue the last one, or one shortly before it. */
const MAX_RESPONSES = 16

/** The memory of one connection. */
export class ConnectionResponses {
  private readonly held: HeldMemory
  private readonly maxBytes: () => number
  private readonly responses = new Map<string, ConnectionResponse>()
  private heldBytes = 0
  /** The id of the response that was added last; null before the first. */
  lastId: string | null = null

  /** `held` counts the memory in the share of the account; `maxBytes` is the limit of the connection. */
  constructor(held: HeldMemory, maxBytes: () => number) {
    this.held = held
    this.maxBytes = maxBytes
  }

  find(id: string): ConnectionResponse | null {
    return this.responses.get(id) ?? null
  }

  /** Adds a response; the oldest ones leave if there is no room. A response that is too large is not kept. */
  add(id: string, response: ConnectionResponse): void {
    this.responses.delete(id)
    this.responses.set(id, response)
    this.lastId = id
    const room = this.maxBytes()
    while (this.responses.size > MAX_RESPONSES || this.sizeOf() > room) this.dropOldest()
    while (!this.adjust()) this.dropOldest()
  }

  /** Frees the memory when the connection has closed. */
  end(): void {
    this.responses.clear()
    this.held.end()
  }

  private dropOldest(): void {
    const [oldest] = this.responses.keys()
    if (oldest !== undefined) this.responses.delete(oldest)
  }

  /** The last conversation, and what the others have beside it. */
  private sizeOf(): number {
    let last = 0
    let others = 0
    for (const { bytes, ownBytes } of this.responses.values()) {
      others += ownBytes
      last = bytes - ownBytes
    }
    return last + others
  }

  /** Holds the memory of the current size; false if the account has none. Text has two bytes a character. */
  private adjust(): boolean {
    const wanted = 2 * this.sizeOf()
    try {
      if (wanted > this.heldBytes) this.held.take(wanted - this.heldBytes)
      else this.held.free(this.heldBytes - wanted)
    } catch {
      return this.responses.size === 0
    }
    this.heldBytes = wanted
    return true
  }
}
