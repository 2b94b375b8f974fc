/**
 * Goal (G20): a request whose attempts may be billed together reserves for all of them: a hedge and an
 * attempt after one that was truncated are sent only if the limits of the client allow it, and budgets are
 * never exceeded.
 * Method: gateways on both stores with limits for one attempt, and for two; the emulator hangs or is late.
 */
import t, { type Test } from 'tap'
import { ask, eventually, isComplete, question, series } from '../../faults/scene.js'
import { rowsOf } from '../../helpers/ledger.js'
import type { TestGateway } from '../../helpers/gateway.js'
import { freshDatabases, redisMissing, startRedis } from '../../helpers/redis.js'
import { breakProvider, CHAIN, counts, startWith } from './fixtures.js'
import { anotherDay } from '../../helpers/long-suite.js'

const HEDGED = 'targets: [ { upstream: openai, model: gpt-4o } ], hedge: { after_ms: 50, extra_spend: 1 }'
const FALLBACK = `${CHAIN}, retry: { attempts: 1, non_idempotent: true }`
const TIMEOUT_TEXTS = { kind: 'delay', ms: 400, mode: 'headers' } as const
/** A reply of 500 tokens of gpt-4o costs 0.005 dollars. */
const REPLY = { max_tokens: 500 }
const MOST_USD = 0.005

type Stores = () => string | undefined

async function gatewayOf(t: Test, stores: Stores, more: string): Promise<TestGateway> {
  const store = stores()
  return startWith(t, [`model: hedged, ${HEDGED}`, `model: chain, ${FALLBACK}`], {
    upstreamOptions: 'timeouts: { first_byte_ms: 2000 }',
    more: `limits:\n  - { scope: account, ${more} }`,
    ...(store === undefined ? {} : { store }),
  })
}

/** The remaining tokens of the minute, from the headers of the next request. */
async function remaining(gateway: TestGateway): Promise<number> {
  const { headers } = await ask(gateway, question('gpt-4o', false, { text: 'Hi', max_tokens: 1 }))
  return Number(headers['x-ratelimit-remaining-tokens'])
}

async function hedges(t: Test, stores: Stores): Promise<void> {
  const gateway = await gatewayOf(t, stores, 'tokens_per_minute: 800')
  breakProvider(gateway, 'openai', { fault: TIMEOUT_TEXTS, times: 1 })
  const alone = await ask(gateway, question('hedged', true, { text: 'Hi', ...REPLY }))
  t.ok(isComplete(alone))
  t.equal(counts(gateway).openai, 1, 'no room for a second attempt')
  t.equal(await series(gateway, 'sluice_hedges_total{upstream="openai",result="denied"}'), 1)
  const roomy = await gatewayOf(t, stores, 'tokens_per_minute: 1500')
  breakProvider(roomy, 'openai', { fault: TIMEOUT_TEXTS, times: 1 })
  const both = await ask(roomy, question('hedged', true, { text: 'Hi', ...REPLY }))
  t.equal(both.headers['x-sluice-attempts'], 'openai:cancelled, openai:ok')
  await eventually(async () => (await remaining(roomy)) > 1_200, 'the unused tokens are released')
}

async function afterBilled(t: Test, stores: Stores): Promise<void> {
  const prompt = 'word '.repeat(1_000)
  const gateway = await gatewayOf(t, stores, 'tokens_per_minute: 2000')
  breakProvider(gateway, 'openai', { fault: { kind: 'hang' }, times: 1 })
  const refused = await ask(gateway, question('chain', true, { text: prompt, ...REPLY }))
  t.equal(refused.status, 504, 'the error of the attempt that was billed')
  t.same(counts(gateway), { openai: 1, anthropic: 0, gemini: 0 })
  const free = await gatewayOf(t, stores, 'tokens_per_minute: 2000')
  breakProvider(free, 'openai', { fault: { kind: 'status', code: 503 }, times: 1 })
  t.ok(isComplete(await ask(free, question('chain', true, { text: prompt, ...REPLY }))), 'a refusal is free')
  const roomy = await gatewayOf(t, stores, 'tokens_per_minute: 4000')
  breakProvider(roomy, 'openai', { fault: { kind: 'hang' }, times: 1 })
  const moved = await ask(roomy, question('chain', true, { text: prompt, ...REPLY }))
  t.equal(moved.headers['x-sluice-attempts'], 'openai:upstream_timeout, anthropic:ok')
}

async function budgets(t: Test, stores: Stores): Promise<void> {
  const budgetUsd = MOST_USD * 6.5
  const gateway = await gatewayOf(t, stores, `usd_per_day: ${budgetUsd}`)
  breakProvider(gateway, 'openai', { fault: TIMEOUT_TEXTS })
  const text = '[[words: 600]] Go on.'
  const replies = await Promise.all(
    Array.from({ length: 20 }, () => ask(gateway, question('hedged', true, { text, ...REPLY }), 20_000)),
  )
  const served = replies.filter(({ status }) => status === 200).length
  t.ok(served >= 3 && served < 20, `${served} of 20 are served`)
  const denied = await series(gateway, 'sluice_hedges_total{upstream="openai",result="denied"}')
  t.ok(denied > 0, `${denied} hedges were not sent`)
  const costs = async (): Promise<number[]> =>
    (await rowsOf(gateway)).filter(({ outcome }) => outcome === 'ok').map((row) => row.costNanoUsd ?? 0)
  await eventually(async () => (await costs()).length === served, 'all are in the ledger')
  const nanoUsd = (await costs()).reduce((sum, each) => sum + each, 0)
  t.ok(nanoUsd > 0 && nanoUsd <= budgetUsd * 1e9, `${nanoUsd / 1e9} of ${budgetUsd} dollars`)
}

function suite(t: Test, stores: Stores): void {
  void t.test('a hedge', (t) => hedges(t, stores))
  void t.test('an attempt after a billed one', (t) => afterBilled(t, stores))
  void t.test('hedges of many requests at once', (t) => budgets(t, stores))
}

void t.test('sqlite', { skip: anotherDay(0, 2) }, (t) => {
  suite(t, () => undefined)
  t.end()
})

void t.test('redis', { skip: anotherDay(1, 2) || redisMissing() }, async (t) => {
  suite(t, freshDatabases(await startRedis(t)))
})
