/**
 * Goal: in the whole gateway a request under frequently used limits costs Redis one command, and its
 * admission none; the final counts are exact; while Redis is unavailable requests continue at the same speed,
 * and the budget includes them after its recovery.
 * Method: the real program over a real Redis, whose statistics show how many scripts ran; then it is frozen.
 */
import t from 'tap'
import { openStore } from '../../src/store/open-store.js'
import type { Demand } from '../../src/store/ledger.js'
import { redisMissing, startRedis, until as untilRedis } from '../helpers/redis.js'
import { stopwatch } from '../helpers/stopwatch.js'
import { newKey } from './create-test-key.js'
import { startServe } from '../process/program.js'

const missing = redisMissing()
const options = missing === false ? { timeout: 60_000 } : { skip: missing }
const DOLLARS = 1_000

void t.test('a hot key over Redis', options, async (t) => {
  const redis = await startRedis(t)
  const served = await startServe(t, {
    server: 'workers: 1, drain_ms: 100',
    store: `${redis.url()}?timeout_ms=1000`,
    more: `limits: [{ scope: key, requests_per_minute: 100000, tokens_per_minute: 100000000, concurrent: 100, usd_per_day: ${DOLLARS} }]`,
  })
  const store = await openStore(`${redis.url()}?timeout_ms=2000`)
  t.teardown(() => store.close())
  const { secret, accountId, keyId } = await newKey(store)
  const ask = async (): Promise<Response> => {
    const res = await served.chat({ model: 'gpt-5.4-mini', max_completion_tokens: 50 }, secret)
    await res.arrayBuffer()
    return res
  }
  const scripts = async (): Promise<number> => {
    const text = String(await redis.ask('info', 'commandstats'))
    return Number(/cmdstat_evalsha:calls=(\d+)/.exec(text)?.[1] ?? 0)
  }
  const budget: Demand = {
    kind: 'usd_day',
    subject: `key:${keyId}`,
    shared: false,
    limitNanoUsd: DOLLARS * 1e9,
    costNanoUsd: 0,
  }
  const spent = async (): Promise<number> => {
    const [limitState] = await store.ledger.limitStates(accountId, [budget])
    return DOLLARS * 1e9 - (limitState?.remaining ?? 0)
  }
  const charged = async (): Promise<number> => {
    const page = await store.ledger.entries({ accountId, keyId, after: null, limit: 1_000 })
    return page.entries.reduce((sum, { costNanoUsd }) => sum + (costNanoUsd ?? 0), 0)
  }

  const five = () => Promise.all(Array.from({ length: 5 }, ask))
  for (let index = 0; index < 12; index += 1) {
    for (const { status } of await five()) t.equal(status, 200)
  }
  const before = await scripts()
  let remaining = ''
  for (let index = 0; index < 20; index += 1) {
    remaining = (await five())[4]?.headers.get('x-ratelimit-remaining-requests') ?? ''
  }
  const commands = (await scripts()) - before
  t.ok(commands < 150, `100 requests took ${commands} scripts; two for each would be 200`)
  t.ok(Number(remaining) > 98_000 && Number(remaining) < 100_000, `${remaining} are reported as remaining`)
  await untilRedis(async () => (await spent()) === (await charged()), 'the budget is the rows')

  for (let index = 0; index < 12; index += 1) await five()
  redis.freeze()
  const times: number[] = []
  for (let index = 0; index < 15; index += 1) {
    const watch = stopwatch()
    t.equal((await ask()).status, 200)
    times.push(watch())
  }
  redis.thaw()
  // Only the first settlement waits half a second, and detects the failure.
  const durations = times.map((ms) => ms.toFixed(0)).join(' ')
  t.ok((times.sort((a, b) => a - b)[7] ?? 0) < 400, `in ms: ${durations}`)
  await untilRedis(async () => {
    const page = await store.ledger.entries({ accountId, keyId, after: null, limit: 1_000 })
    return page.entries.length === 235
  }, 'the rows')
  await untilRedis(async () => (await spent()) === (await charged()), 'the budget counts them')
})
