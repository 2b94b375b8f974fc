/**
 * Goal: `sluice compare` sums the ledger entries of each side: requests, upstream errors, times to the
 * first content, tokens and cost; also for one model of an upstream, and for failed attempts of requests
 * that a fallback completed.
 * Method: entries settled in a store in a temporary folder; the built program for the exit status.
 */
import t from 'tap'
import { command } from '../../src/cli/compare.js'
import type { LedgerEntry } from '../../src/ledger/entry.js'
import { ledgerEntry } from '../ledger/build-entry.js'
import { configFolder, newSession, runOn, sluice, type TestSession } from './session.js'

const NOW = Date.parse('2026-11-20T12:00:00Z')
const MINUTE = 60_000

let count = 0

async function settle({ store }: TestSession, row: Partial<LedgerEntry>): Promise<void> {
  count += 1
  const atMs = NOW - 10 * MINUTE
  await store.ledger.settle(ledgerEntry(`request-${count}`, { atMs, outcome: 'ok', ...row }))
}

interface Shown {
  readonly model: string | null
  readonly sides: readonly Record<string, unknown>[]
}

function run(session: TestSession, ...argv: string[]): Promise<number> {
  return runOn(session, (open) => command(open, () => NOW), argv)
}

async function compared(session: TestSession, ...argv: string[]): Promise<Shown> {
  t.equal(await run(session, ...argv, '--json'), 0)
  return JSON.parse(session.output().join('\n')) as Shown
}

void t.test('each side has its requests, errors, times, tokens and cost', async (t) => {
  const session = await newSession(t)
  for (let at = 1; at <= 20; at += 1) {
    await settle(session, {
      ...{ upstream: 'old', attempted: 'old:ok', costNanoUsd: 1_000 },
      ...{ usage: { input: 10, output: 5 }, hops: { receive: 50, firstContent: 50 + at * 10 } },
    })
  }
  for (let at = 1; at <= 4; at += 1) {
    await settle(session, {
      ...{ upstream: 'new', attempted: 'new:ok', costNanoUsd: 3_000, shadowOf: `request-${at}` },
      ...{ usage: { input: 10, output: 8 }, hops: { firstContent: at * 100 } },
    })
  }
  const failed = { source: 'none', usage: {}, costNanoUsd: 0 } as const
  await settle(session, {
    ...{
      upstream: 'new',
      attempted: 'new:upstream_failed',
      outcome: 'upstream_failed',
      ...failed,
    },
  })
  await settle(session, {
    ...{ upstream: 'new', attempted: 'new:upstream_rejected', outcome: 'upstream_rejected' },
    ...failed,
  })
  // The old upstream completed a request that failed on the new one, and a hedge overtook a slow attempt.
  await settle(session, { upstream: 'old', attempted: 'new:upstream_busy, old:ok', hops: {} })
  await settle(session, { upstream: 'old', attempted: 'new:cancelled, old:ok', hops: {} })
  await settle(session, { upstream: 'old', attempted: 'old:ok', atMs: NOW - 2 * 60 * MINUTE })
  const { sides } = await compared(session, 'old', 'new')
  t.match(sides, [
    {
      ...{ upstream: 'old', model: null, requests: 22, shadow_requests: 0 },
      ...{ errors: 0, error_rate: 0, rejected: 0 },
      ...{ first_token_p50_ms: 100, first_token_p95_ms: 190 },
    },
    {
      ...{ upstream: 'new', requests: 7, shadow_requests: 4, errors: 2, error_rate: 2 / 7 },
      ...{ rejected: 1, first_token_p50_ms: 200, first_token_p95_ms: 400 },
      ...{ input_tokens: 40, output_tokens: 32 },
      ...{ cost_usd: '0.000012000', cost_per_request_usd: '0.000003000', unpriced: 0 },
    },
  ])
  t.same(session.errors(), [])
})

void t.test('a side is one model of an upstream or one requested model', async (t) => {
  const session = await newSession(t)
  const at = { upstream: 'one', attempted: 'one:ok' }
  await settle(session, { ...at, modelAsked: 'a', modelAnswered: 'big-2026-01-01' })
  await settle(session, { ...at, modelAsked: 'a', modelAnswered: 'big' })
  await settle(session, { ...at, modelAsked: 'b', modelAnswered: 'big-mini' })
  const both = await compared(session, 'one/big', 'one/big-mini')
  t.match(both.sides, [
    { upstream: 'one', model: 'big', requests: 2 },
    { upstream: 'one', model: 'big-mini', requests: 1 },
  ])
  const requested = await compared(session, 'one', 'two', '--model', 'a')
  t.match(requested, { model: 'a', sides: [{ requests: 2 }, { requests: 0, error_rate: null }] })
  t.same(session.errors(), [
    'sluice: no ledger entry of two since 1h: the configuration has no upstream "two"',
  ])
})

void t.test('the table has the same figures as the JSON', async (t) => {
  const session = await newSession(t)
  await settle(session, { upstream: 'one', attempted: 'one:ok', hops: { firstContent: 120.4 } })
  t.equal(await run(session, 'one', 'two', '--since', '30m'), 0)
  const [table = ''] = session.output()
  t.match(table, /^ +one +two\n/)
  t.match(table, /\nrequests +1 +0\n/)
  t.match(table, /\nfirst token p50 +120 ms +-\n/)
  t.match(table, /\nerror rate +0 % +-\n/)
})

void t.test('wrong usage exits with 2', async (t) => {
  const session = await newSession(t)
  for (const [argv, message] of [
    [['one'], /needs U1 and U2/],
    [['one', 'one'], /two different upstreams, not "one" twice/],
    [['one', 'two', 'three'], /Unexpected argument "three"/],
  ] as const) {
    await t.rejects(run(session, ...argv), { message })
  }
  const { good } = configFolder(t)
  const wrong = await sluice(['compare', 'one', '--config', good])
  t.equal(wrong.status, 2)
})
