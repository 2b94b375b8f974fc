/**
 * Writes a ledger entry as a compact JSON array that begins with its version, `[2,…]`; every engine keeps the same
 * text. `read-entry.ts` reads it.
 */
import type { Usage } from '../../chat/usage.js'
import type { RowHops, UsageRow } from '../../ledger/row.js'

/** The version that `writeRow` writes. */
export const VERSION = 2

/** The text of an entry, without a line break. A number that is not finite becomes 0. */
export function writeEntry(row: UsageRow): string {
  return JSON.stringify([
    VERSION,
    row.requestId,
    finite(row.atMs),
    micros(row.durationMs),
    row.accountId,
    row.keyId,
    row.modelAsked,
    row.modelAnswered,
    row.model,
    row.upstream,
    row.dialect,
    finite(row.attempts),
    row.stream ? 1 : 0,
    finite(row.status),
    row.outcome,
    row.finish,
    countsOf(row.usage),
    row.source,
    row.costNanoUsd === null ? null : finite(row.costNanoUsd),
    finite(row.tokensAfterDisconnect),
    row.losses,
    finite(row.generation),
    timesOf(row.hops),
    row.ingress,
    row.errorMessage,
    row.limit,
    row.upstreamStatus,
    row.upstreamRequestId,
    row.attempted,
    row.shadowOf,
    row.labels,
    row.clientRequestId,
    row.attemptMs === null ? null : row.attemptMs.map(micros),
    row.retryAfterSeconds === null ? null : finite(row.retryAfterSeconds),
    row.priceVersion,
  ])
}

/** Counts in the order of `COUNTS`; an unknown one is null. The last is rare and left out if it is unknown. */
function countsOf(usage: Usage): (number | undefined)[] {
  const { input, output, cacheRead, cacheWrite, reasoning, cacheWrite1h } = usage
  const counts = [input, output, cacheRead, cacheWrite, reasoning]
  return cacheWrite1h === undefined ? counts : [...counts, cacheWrite1h]
}

/** Times in the order of `STAGES`. Stages that were not reached are null; at the end they are left out. */
function timesOf(hops: RowHops): (number | null)[] {
  const times = [
    ...[hops.authenticate, hops.receive, hops.route, hops.admit, hops.connect, hops.firstByte],
    ...[hops.translate, hops.relay, hops.firstContent, hops.overhead],
  ].map((ms) => (ms === undefined ? null : micros(ms)))
  return times.slice(0, times.findLastIndex((time) => time !== null) + 1)
}

/** Whole microseconds have fewer digits than fractions of a millisecond. */
function micros(ms: number): number {
  return Math.round(finite(ms) * 1_000)
}

function finite(value: number): number {
  return Number.isFinite(value) ? value : 0
}
