/**
 * Goal: a key that sends a hundred times its limit is refused at once and does not noticeably slow down other
 * keys (G-111).
 * Method: a quiet key sends requests, alone and then beside a loud one; all its requests must succeed, and
 * the loud key must get exactly its limit. The cost is printed but not checked, because the machine may run
 * other work.
 */
import t from 'tap'
import { createKey } from '../helpers/keys.js'
import { findAccount } from '../../src/accounts/changes/change-accounts.js'
import { openStore } from '../../src/store/open-store.js'
import { EMAIL, startServe, type Served } from '../process/program.js'
import { dirname, join } from 'node:path'

const LIMIT = 30
/** The interval for a hundred times the limit. */
const EVERY_MS = 60_000 / (LIMIT * 100)
const WATCH_MS = 2_500

void t.test(
  'G-111: a key above its limit does not slow down another key',
  { timeout: 120_000 },
  async (t) => {
    const served = await startServe(t, {
      more: `limits: [{ scope: key, requests_per_minute: ${LIMIT * 100} }, { scope: key, model: gpt-5.4-nano, requests_per_minute: ${LIMIT} }]`,
    })
    const quiet = await secondKey(served)
    const alone = await timed(t, served, quiet)
    const loud: Promise<number>[] = []
    const beganMs = performance.now()
    const shouting = setInterval(() => {
      // Sends the requests that a late timer has missed.
      while (loud.length < (performance.now() - beganMs) / EVERY_MS) loud.push(shout(served))
    }, EVERY_MS)
    const beside = await timed(t, served, quiet)
    clearInterval(shouting)
    const statuses = await Promise.all(loud)
    const answered = statuses.filter((status) => status === 200).length
    const refused = statuses.filter((status) => status === 429).length
    const flowedBack = Math.floor(((performance.now() - beganMs) / 60_000) * LIMIT)
    t.equal(answered + refused, loud.length)
    t.ok(loud.length > 2 * LIMIT, `${loud.length} were sent`)
    t.ok(answered >= LIMIT && answered <= LIMIT + flowedBack, `${answered} were served`)
    t.comment(`the quiet key alone: ${alone}; beside the loud one: ${beside}`)
  },
)

async function shout(served: Served): Promise<number> {
  const res = await served.chat({ model: 'gpt-5.4-nano' })
  await res.arrayBuffer()
  return res.status
}

async function secondKey(served: Served): Promise<string> {
  const store = await openStore(`sqlite:${join(dirname(served.file), 'data', 'sluice.db')}`)
  try {
    const account = await findAccount(store, EMAIL)
    if (account === null) throw new Error('the account is missing')
    const plan = { priceUsd: 0, maxKeys: null }
    const plans = { starter: plan, pro: plan, max: plan }
    return (await createKey(store, { plans, account, name: 'quiet' })).secret
  } finally {
    await store.close()
  }
}

/** The durations of requests in sequence; all must succeed. */
async function timed(
  t: { equal: (a: unknown, b: unknown, m: string) => void },
  served: Served,
  secret: string,
): Promise<string> {
  const times: number[] = []
  const untilMs = performance.now() + WATCH_MS
  while (performance.now() < untilMs) {
    const beganMs = performance.now()
    const res = await served.chat({ model: 'gpt-5.4-mini' }, secret)
    await res.arrayBuffer()
    times.push(performance.now() - beganMs)
    if (res.status !== 200) t.equal(res.status, 200, 'the quiet key is answered')
  }
  times.sort((a, b) => a - b)
  const share = (part: number): string => (times[Math.floor(times.length * part)] ?? 0).toFixed(1)
  return `p50 ${share(0.5)} ms, p99 ${share(0.99)} ms of ${times.length}`
}
