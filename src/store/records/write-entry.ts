/**
 * Writes a ledger entry as a compact JSON array that begins with its version, `[2,…]`; every engine keeps the same
 * text. `read-entry.ts` reads it.
 */
import type { Usage } from '../../chat/usage.js'
import type { EntryHops, LedgerEntry } from '../../ledger/entry.js'

/** The version that `writeRow` writes. */
export const VERSION = 2

/** The text of an entry, without a line break. A number that is not finite becomes 0. */
export function writeEntry(entry: LedgerEntry): string {
  return JSON.stringify([
    VERSION,
    entry.requestId,
    finite(entry.atMs),
    micros(entry.durationMs),
    entry.accountId,
    entry.keyId,
    entry.modelAsked,
    entry.modelAnswered,
    entry.model,
    entry.upstream,
    entry.dialect,
    finite(entry.attempts),
    entry.stream ? 1 : 0,
    finite(entry.status),
    entry.outcome,
    entry.finish,
    countsOf(entry.usage),
    entry.source,
    entry.costNanoUsd === null ? null : finite(entry.costNanoUsd),
    finite(entry.tokensAfterDisconnect),
    entry.losses,
    finite(entry.generation),
    timesOf(entry.hops),
    entry.ingress,
    entry.errorMessage,
    entry.limit,
    entry.upstreamStatus,
    entry.upstreamRequestId,
    entry.attempted,
    entry.shadowOf,
    entry.labels,
    entry.clientRequestId,
    entry.attemptMs === null ? null : entry.attemptMs.map(micros),
    entry.retryAfterSeconds === null ? null : finite(entry.retryAfterSeconds),
    entry.priceVersion,
  ])
}

/** Counts in the order of `COUNTS`; an unknown one is null. The last is rare and left out if it is unknown. */
function countsOf(usage: Usage): (number | undefined)[] {
  const { input, output, cacheRead, cacheWrite, reasoning, cacheWrite1h } = usage
  const counts = [input, output, cacheRead, cacheWrite, reasoning]
  return cacheWrite1h === undefined ? counts : [...counts, cacheWrite1h]
}

/** Times in the order of `STAGES`. Stages that were not reached are null; at the end they are left out. */
function timesOf(hops: EntryHops): (number | null)[] {
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
