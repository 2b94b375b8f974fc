/**
 * What the emulator saw and did, request by request: the other side's truth for a test.
 * Knows no provider. Bounded; credentials never get in.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { JsonObject } from '../chat/json.js'
import type { Provider } from './ask.js'

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
  body: JsonObject | undefined
  /** As they came, credentials replaced by their length. */
  readonly headers: IncomingHttpHeaders
  status: number
  /** Of the body, handed to the connection. */
  bytesSent: number
  faults: readonly string[]
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

/** The last entries, oldest first. */
export class Ledger {
  readonly #limit: number
  readonly #entries: LedgerEntry[] = []

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

  /** The newest entry. */
  get last(): LedgerEntry | undefined {
    return this.#entries.at(-1)
  }

  add(entry: LedgerEntry): void {
    if (this.#limit === 0) {
      return
    }
    this.#entries.push(entry)
    // Dropped in lumps: shifting one by one would move the whole array per request.
    if (this.#entries.length > this.#limit + 1024) {
      this.#entries.splice(0, this.#entries.length - this.#limit)
    }
  }

  clear(): void {
    this.#entries.length = 0
  }
}
