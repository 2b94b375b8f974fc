/**
 * Goal: no run of many exceeds its limits by one request or nano-dollar, over two gateways on Redis.
 * Method: two gateways; the requests of all runs are sent to both at the same time, more than fit for each
 * run. The long suite has 10,000 runs, other runs of the suite 200.
 */
import t from 'tap'
import { openStore } from '../../../src/store/open-store.js'
import { startGateway, type TestGateway } from '../../helpers/gateway.js'
import { IS_LONG } from '../../helpers/long-suite.js'
import { redisMissing, startRedis } from '../../helpers/redis.js'

const RUNS = IS_LONG ? 10_000 : 80
/** Requests of a run, and those that fit. */
const ASKED = 4
const FIT = 2
const AT_ONCE = 64
const USD = 0.002
const MORE = `
dimensions: [{ name: run, from: [header:x-run-id] }]
limits: [{ scope: 'dimension:run', requests_total: ${FIT}, usd_total: ${USD} }]
`

t.setTimeout(IS_LONG ? 1_800_000 : 180_000)

void t.test('runs over two gateways', { skip: redisMissing() }, async (t) => {
  const redis = await startRedis(t)
  const store = `${redis.url()}?timeout_ms=5000`
  const first = await startGateway(t, { more: MORE, store })
  const second = await startGateway(t, { more: MORE, store, hasAccount: true })
  const work = Array.from({ length: RUNS * ASKED }, (_, at) => at)
  const admitted = new Map<string, number>()
  const wrong: string[] = []
  const next = async (): Promise<void> => {
    for (let at = work.shift(); at !== undefined; at = work.shift()) {
      // The requests of one run follow each other closely, half of them at each gateway.
      const run = `run-${Math.floor(at / ASKED)}`
      const status = await send(at % 2 === 0 ? first : second, first.secret, run)
      if (status === 200) admitted.set(run, (admitted.get(run) ?? 0) + 1)
      else if (status !== 429 && status !== 402) wrong.push(`${run}: ${status}`)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, next))
  t.same(wrong.slice(0, 3), [])
  t.equal(admitted.size, RUNS)
  const over = [...admitted].filter(([, count]) => count !== FIT)
  t.same(over.slice(0, 3), [], 'each run has exactly the requests that fit')
  const counters = await openStore(store)
  t.teardown(() => counters.close())
  const spent: number[] = []
  for await (const batch of counters.ledger.budgets()) {
    for (const { kind, amount } of batch) if (kind === 'usd_total') spent.push(amount)
  }
  t.equal(spent.length, RUNS)
  t.ok(Math.max(...spent) <= USD * 1e9, 'no run has spent more than its budget')
})

async function send({ origin }: TestGateway, secret: string, run: string): Promise<number> {
  const reply = await fetch(`${origin}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json', 'x-run-id': run },
    body: JSON.stringify({
      model: 'gpt-5.4-mini',
      messages: [{ role: 'user', content: 'Hi' }],
      max_completion_tokens: 20,
    }),
  })
  await reply.text()
  return reply.status
}
