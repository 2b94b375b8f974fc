/**
 * Keeps the heads of the last requests of this process for `sluice plan`: key, model, format, kinds of
 * content, sizes and usage, but no contents. Of many requests per second it keeps a sample.
 */
import type { Labels } from '../../accounts/labels.js'
import { isImplausible, type Usage } from '../../chat/usage.js'
import type { DialectName, WireFormat } from '../../dialects/dialect.js'
import type { ClientFormat } from '../../dialects/match-endpoint.js'
import { promptSizeOf, inputTokens } from '../../ledger/estimate-tokens.js'
import type { Exchange } from '../client-exchange.js'
import { nameOf, outcomeOf } from './ledger-entry.js'
import type { Results } from './phase-results.js'
import { requestShapeOf, type RequestShape } from './request-shape.js'

/** One request without its contents. Can be serialized as JSON. */
export interface RequestHead {
  /** When it ended, ms since 1970. */
  readonly atMs: number
  /** The id of the API key, or `playground`. */
  readonly keyId: string
  readonly accountId: string
  readonly labels: Labels
  readonly format: ClientFormat
  readonly dialect: DialectName
  readonly wire: WireFormat
  /** The model that the client requested; at most 256 characters. */
  readonly model: string
  readonly stream: boolean
  readonly bodyBytes: number
  /** The upstream's count, else an estimate. */
  readonly promptTokens: number
  /** The counts that the upstream reported; empty if it reported none or no request was sent. */
  readonly usage: Usage
  /** The vendor's tier that served it; null if unknown. */
  readonly tier: string | null
  /** `ok`, or the kind of error that ended it. */
  readonly outcome: string
  readonly sketch: RequestShape
}

/** Number of requests that a process keeps: at most about 1 MB. */
export const MAX_HEADS = 1_000
/**
 * The number of requests per second that are kept after a burst of `MAX_HEADS`. A higher number would fill
 * the ring with the last few milliseconds and cost up to 7 % of a request's CPU time.
 */
const HEADS_PER_MS = 0.1

/** The last requests, in a ring. */
export class RecentHeads {
  private readonly ring: RequestHead[] = []
  private next = 0
  /** The number of heads that may be added now; see `HEADS_PER_MS`. */
  private free = MAX_HEADS
  private sinceMs = 0

  /** Whether the head of a request that ends now is to be added. `nowMs` is monotonic. */
  takes(nowMs: number): boolean {
    this.free = Math.min(MAX_HEADS, this.free + (nowMs - this.sinceMs) * HEADS_PER_MS)
    this.sinceMs = nowMs
    if (this.free < 1) return false
    this.free -= 1
    return true
  }

  add(head: RequestHead): void {
    this.ring[this.next] = head
    this.next = (this.next + 1) % MAX_HEADS
  }

  /** Oldest first. */
  all(): RequestHead[] {
    return [...this.ring.slice(this.next), ...this.ring.slice(0, this.next)]
  }
}

/** Merges the heads of several processes, oldest first; keeps the newest `MAX_HEADS`. */
export function mergedHeads(lists: readonly (readonly RequestHead[])[]): RequestHead[] {
  const heads = lists.flat().sort((a, b) => a.atMs - b.atMs)
  return heads.slice(-MAX_HEADS)
}

/** The head of an ended exchange; null if its body was not read or its key was refused. */
export function headOf(x: Exchange, results: Results): RequestHead | null {
  const { authenticated, call, intake, replyResult } = results
  if (authenticated === null || call === null) return null
  const { keyId, accountId, labels } = authenticated.identity
  const { request, format, dialect, wire } = call
  const reported = replyResult?.usage ?? {}
  const usage = isImplausible(reported) ? {} : reported
  const model = nameOf(request.model) ?? ''
  const estimate = (): number =>
    inputTokens(promptSizeOf(request), x.generation.facts(model).family)
  return {
    atMs: Date.now(),
    keyId,
    accountId,
    labels,
    format,
    dialect,
    wire,
    model,
    stream: request.stream,
    bodyBytes: intake?.bytes ?? 0,
    promptTokens: usage.input ?? estimate(),
    usage,
    tier: replyResult?.tier ?? null,
    outcome: outcomeOf(x, results),
    sketch: requestShapeOf(request),
  }
}
