/**
 * The heads of the last requests of this process, for `sluice plan`: who asked for which model, in which format, with
 * what kinds of content and how large, and what it used. No contents.
 */
import type { Labels } from '../../accounts/labels.js'
import { isImplausible, type Usage } from '../../chat/usage.js'
import type { DialectName, WireFormat } from '../../dialects/dialect.js'
import type { ClientFormat } from '../../dialects/endpoints.js'
import { promptSizeOf, inputTokens } from '../../ledger/estimate-tokens.js'
import type { Exchange } from '../exchange.js'
import { nameOf, outcomeOf } from './ledger-entry.js'
import type { Results } from './results.js'
import { requestShapeOf, type RequestShape } from './request-shape.js'

/** One request without its contents. Survives JSON. */
export interface RequestHead {
  /** When it ended, ms since 1970. */
  readonly atMs: number
  /** A key's id, or `playground`. */
  readonly keyId: string
  readonly accountId: string
  readonly labels: Labels
  readonly format: ClientFormat
  readonly dialect: DialectName
  readonly wire: WireFormat
  /** As the client asked; at most 256 characters. */
  readonly model: string
  readonly stream: boolean
  readonly bodyBytes: number
  /** As the upstream counted, else estimated. */
  readonly promptTokens: number
  /** As the upstream reported; empty if it did not, or no request was sent. */
  readonly usage: Usage
  /** The vendor's tier that served it; null if unknown. */
  readonly tier: string | null
  /** `ok`, or the kind of error that ended it. */
  readonly outcome: string
  readonly sketch: RequestShape
}

/** Number of requests that a process keeps: at most about 1 MB. */
export const MAX_HEADS = 1_000

/** The last requests, in a ring. */
export class RecentHeads {
  private readonly ring: RequestHead[] = []
  private next = 0

  add(head: RequestHead): void {
    this.ring[this.next] = head
    this.next = (this.next + 1) % MAX_HEADS
  }

  /** Oldest first. */
  all(): RequestHead[] {
    return [...this.ring.slice(this.next), ...this.ring.slice(0, this.next)]
  }
}

/** The heads of several processes as one list, oldest first; at most `MAX_HEADS` of the newest. */
export function mergedHeads(lists: readonly (readonly RequestHead[])[]): RequestHead[] {
  const all = lists.flat().sort((a, b) => a.atMs - b.atMs)
  return all.slice(-MAX_HEADS)
}

/** The head of an exchange that is over; null if its body was not read or its key was refused. */
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
