/**
 * Goal: the comparison of upstreams sums the ledger entries of each: requests, upstream errors, times to the
 * first content, tokens and cost; also of failed attempts of requests that a fallback completed.
 */
import t from 'tap'
import { ComparedUpstream, type ComparedFigures } from '../../../src/control/dashboard/compare-upstreams.js'
import type { LedgerEntry } from '../../../src/ledger/entry.js'
import { ledgerEntry } from '../../ledger/build-entry.js'

/** The figures of an upstream of these entries. */
function figuresOf(upstream: string, entries: readonly Partial<LedgerEntry>[]): ComparedFigures {
  const side = new ComparedUpstream(upstream, () => 0)
  entries.forEach((entry, at) => {
    side.add(ledgerEntry(`request-${at}`, { outcome: 'ok', ...entry }))
  })
  return side.figures()
}

void t.test('an upstream has its requests, errors, times, tokens and cost', (t) => {
  const former = Array.from({ length: 20 }, (_, at) => ({
    ...{ upstream: 'old', attempted: 'old:ok', costNanoUsd: 1_000 },
    ...{ usage: { input: 10, output: 5 }, hops: { receive: 50, firstContent: 60 + at * 10 } },
  }))
  const copies = [1, 2, 3, 4].map((at) => ({
    ...{ upstream: 'new', attempted: 'new:ok', costNanoUsd: 3_000, shadowOf: `request-${at}` },
    ...{ usage: { input: 10, output: 8 }, hops: { firstContent: at * 100 } },
  }))
  const none = { source: 'none', usage: {}, costNanoUsd: 0 } as const
  const entries: Partial<LedgerEntry>[] = [
    ...former,
    ...copies,
    { upstream: 'new', attempted: 'new:upstream_failed', outcome: 'upstream_failed', ...none },
    { upstream: 'new', attempted: 'new:upstream_rejected', outcome: 'upstream_rejected', ...none },
    // The old upstream completed a request that failed on the new one, and a hedge overtook a slow attempt.
    { upstream: 'old', attempted: 'new:upstream_busy, old:ok', hops: {} },
    { upstream: 'old', attempted: 'new:cancelled, old:ok', hops: {} },
  ]
  t.match(figuresOf('old', entries), {
    ...{ requests: 22, shadowRequests: 0, failures: 0, failureShare: 0, rejected: 0 },
    ...{ firstContentP50Ms: 100, firstContentP95Ms: 190 },
  })
  t.match(figuresOf('new', entries), {
    ...{ requests: 7, shadowRequests: 4, failures: 2, failureShare: 2 / 7, rejected: 1 },
    ...{ firstContentP50Ms: 200, firstContentP95Ms: 400, inputTokens: 40, outputTokens: 32 },
    ...{ costNanoUsd: 12_000, costPerRequestNanoUsd: 3_000, unpriced: 0 },
  })
  t.match(figuresOf('third', entries), { requests: 0, failureShare: null, firstContentP50Ms: null })
  t.end()
})
