/**
 * Records what the upstream received and sent, for comparison in tests. Bounded; credentials are masked.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { JsonObject } from '../base/json.js'
import type { Provider } from './emulated-exchange.js'

/** One request and its reply. */
export interface LedgerEntry {
  readonly id: number
  readonly provider: Provider
  readonly method: string
  readonly path: string
  model: string | undefined
  /** Milliseconds since 1970. */
  readonly receivedAt: number
  bodyBytes: number
  /** `undefined` if it was not a JSON object, or was dropped to save memory. */
  body: JsonObject | undefined
  /** The request's headers, with credentials replaced by their length. */
  readonly headers: IncomingHttpHeaders
  status: number
  /** Bytes of the body written to the connection. */
  bytesSent: number
  faults: readonly string[]
  /** Tokens of the whole output, regardless of how much was sent; `undefined` without output. */
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

/** Maximum bytes of stored request bodies. Older bodies are dropped; their entries stay. */
const MAX_BODY_BYTES = 32 * 1024 * 1024

/** The latest entries, oldest first. */
export class Ledger {
  readonly #limit: number
  readonly #entries: LedgerEntry[] = []
  #storedBodyBytes = 0
  /** Entries before this index have no body. */
  #firstWithBody = 0

  /** Keeps at most `limit` entries; 0 keeps none. */
  constructor(limit: number) {
    this.#limit = limit
  }

  get isEnabled(): boolean {
    return this.#limit > 0
  }

  /** All stored entries, oldest first. */
  get entries(): readonly LedgerEntry[] {
    return this.#entries.slice(-this.#limit)
  }

  add(entry: LedgerEntry): void {
    if (this.#limit === 0) {
      return
    }
    this.#entries.push(entry)
    // Dropped in batches: shifting one entry moves the whole array.
    if (this.#entries.length > this.#limit + 1024) {
      const removed = this.#entries.splice(0, this.#entries.length - this.#limit)
      this.#storedBodyBytes -= removed.reduce((sum, { body, bodyBytes }) => sum + (body ? bodyBytes : 0), 0)
      this.#firstWithBody = Math.max(0, this.#firstWithBody - removed.length)
    }
  }

  /** Stores an entry's body, and drops the oldest bodies above the limit. */
  keepBody(entry: LedgerEntry, body: JsonObject | undefined): void {
    if (this.#limit === 0 || body === undefined) {
      return
    }
    entry.body = body
    this.#storedBodyBytes += entry.bodyBytes
    while (this.#storedBodyBytes > MAX_BODY_BYTES && this.#firstWithBody < this.#entries.length) {
      const oldest = this.#entries[this.#firstWithBody]
      if (oldest?.body !== undefined) {
        oldest.body = undefined
        this.#storedBodyBytes -= oldest.bodyBytes
      }
      this.#firstWithBody += 1
    }
  }

  clear(): void {
    this.#entries.length = 0
    this.#storedBodyBytes = 0
    this.#firstWithBody = 0
  }
}
