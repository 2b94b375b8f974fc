/**
 * Measures the cost of Redis for a request, and the time until a revocation is in force, for the tables in
 * docs/how-to/run-a-fleet-on-redis.md: `redis-server --port 7777 --appendonly yes & node
 * build/test/store/redis/redis-measure.js redis://127.0.0.1:7777`.
 */
import { endKey, putAccount, putKey } from '../../helpers/store-changes.js'
import { openStore } from '../../../src/store/open-store.js'
import { anAdmission, aRow, budget, places, requests, tokens } from '../ledger/sample-entries.js'
import { aKey, anAccount } from '../contract/sample-records.js'

const ROUNDS = 3_000
const REVOCATIONS = 1_000

const [url = 'redis://127.0.0.1:6379'] = process.argv.slice(2)
const store = await openStore(url)
const other = await openStore(url)
const account = anAccount()
await putAccount(store, account)

await measured('admission (5 limits)', ROUNDS, async () => {
  await store.ledger.admit(wish())
})
const settling = Array.from({ length: ROUNDS }, wish)
for (const each of settling) await store.ledger.admit(each)
await measured('settlement', ROUNDS, async (round) => {
  await store.ledger.settle(aRow({ requestId: settling[round]?.requestId ?? '' }))
})
const keys = Array.from({ length: REVOCATIONS }, () => aKey(account.id))
for (const key of keys) await putKey(store, key, null)
await measured('look-up', REVOCATIONS, async (round) => {
  await store.findKey(keys[round]?.digest ?? '')
})
let notified: (() => void) | null = null
other.subscribe(() => notified?.())
await measured('revocation, until another process is notified', REVOCATIONS, async (round) => {
  const notification = new Promise<void>((resolve) => (notified = resolve))
  await Promise.all([endKey(store, { accountId: account.id, id: keys[round]?.id ?? '' }, 1), notification])
})
await Promise.all([store.close(), other.close()])

function wish() {
  const demands = [
    requests(1e9),
    tokens(1e12, 500),
    places(1e9),
    budget('usd_day', { limitNanoUsd: 1e15, costNanoUsd: 1_000 }),
  ]
  return anAdmission([...demands, budget('usd_month', { limitNanoUsd: 1e15, costNanoUsd: 1_000 })])
}

/** Runs commands in sequence; prints the time of each and the processor time of this process. */
async function measured(name: string, count: number, work: (round: number) => Promise<void>): Promise<void> {
  const times: number[] = []
  const before = process.cpuUsage()
  for (let round = 0; round < count; round += 1) {
    const beganMs = performance.now()
    await work(round)
    times.push(performance.now() - beganMs)
  }
  const { user, system } = process.cpuUsage(before)
  times.sort((a, b) => a - b)
  const at = (share: number): string => (times[Math.floor(times.length * share)] ?? 0).toFixed(2)
  const cpu = ((user + system) / count).toFixed(0)
  process.stdout.write(`${name}: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, ${cpu} µs cpu each, ${count} times\n`)
}
