/**
 * What the emulator saw and did, request by request: the other side's truth for a test.
 * Knows no provider. Bounded; credentials never get in.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { JsonObject } from '../chat/json.js'
import type { Provider } from './exchange.js'

/** One request. */
export interface LedgerEntry {
  readonly id: number
  readonly provider: Provider
  readonly method: string
  readonly path: string
  model: string | undefined
  /** Milliseconds since 1970. */
  readonly receivedAt: number
  bodyBytes: number
  /** `undefined` where it was no JSON object, or was let go to save memory. */
  body: JsonObject | undefined
  /** As they came, credentials replaced by their length. */
  readonly headers: IncomingHttpHeaders
  status: number
  /** Of the body, handed to the connection. */
  bytesSent: number
  faults: readonly string[]
  /** Tokens of the whole answer, however much of it was sent; `undefined` where there is none. */
  counted: { readonly input: number; readonly output: number } | undefined
  /** Milliseconds since 1970; `undefined` while the request is open. */
  closedAt: number | undefined
  outcome: 'open' | 'done' | 'client_closed' | 'faulted'
}

const SECRETS = new Set([
  'authorization',
  'x-api-key',
  'x-goog-api-key',
  'api-key',
  'cookie',
  'proxy-authorization',
])

/** The headers with every credential replaced by `masked:<length>`. */
export function maskedHeaders(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const masked: IncomingHttpHeaders = {}
  for (const [name, value] of Object.entries(headers)) {
    masked[name] = SECRETS.has(name) ? `masked:${String(value).length}` : value
  }
  return masked
}

/** Bytes of request bodies that are kept; older ones are let go, their entries stay. */
const HELD_BODIES = 32 * 1024 * 1024

/** The last entries, oldest first. */
export class Ledger {
  readonly #limit: number
  readonly #entries: LedgerEntry[] = []
  #held = 0
  /** Entries before this one hold no body. */
  #lean = 0

  /** Keeps at most `limit` entries; 0 keeps none. */
  constructor(limit: number) {
    this.#limit = limit
  }

  get on(): boolean {
    return this.#limit > 0
  }

  /** Every entry kept, oldest first. */
  get entries(): readonly LedgerEntry[] {
    return this.#entries.slice(-this.#limit)
  }

  add(entry: LedgerEntry): void {
    if (this.#limit === 0) {
      return
    }
    this.#entries.push(entry)
    // Dropped in lumps: shifting one by one would move the whole array per request.
    if (this.#entries.length > this.#limit + 1024) {
      const gone = this.#entries.splice(0, this.#entries.length - this.#limit)
      this.#held -= gone.reduce((sum, { body, bodyBytes }) => sum + (body ? bodyBytes : 0), 0)
      this.#lean = Math.max(0, this.#lean - gone.length)
    }
  }

  /** Keeps an entry's body, and lets go of the oldest bodies where they weigh too much together. */
  keepBody(entry: LedgerEntry, body: JsonObject | undefined): void {
    if (this.#limit === 0 || body === undefined) {
      return
    }
    entry.body = body
    this.#held += entry.bodyBytes
    while (this.#held > HELD_BODIES && this.#lean < this.#entries.length) {
      const oldest = this.#entries[this.#lean]
      if (oldest?.body !== undefined) {
        oldest.body = undefined
        this.#held -= oldest.bodyBytes
      }
      this.#lean += 1
    }
  }

  clear(): void {
    this.#entries.length = 0
    this.#held = 0
    this.#lean = 0
  }
}
