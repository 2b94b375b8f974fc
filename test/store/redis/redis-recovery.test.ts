/**
 * Goal: when Redis comes back while four workers have all their keys in the cache, every key is looked up
 * again, a few at a time. All requests are served meanwhile, and Redis is not slower (H-119).
 * Method: four stores with authenticators at a real server behind a proxy that refuses connections for a
 * while, with more keys than wait for look-ups at once; the long suite has 600, `SLUICE_KEYS=10000` more. The
 * times are the server's own.
 */
import { putAccount, putKey } from '../../helpers/store-changes.js'
import { loadavg } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { digestOf, newSecret } from '../../../src/accounts/key-secret.js'
import { Authenticator } from '../../../src/accounts/authentication/authenticator.js'
import { openStore } from '../../../src/store/open-store.js'
import type { Store } from '../../../src/store/store.js'
import { startFaultProxy } from '../../helpers/fault-proxy.js'
import { IS_LONG } from '../../helpers/long-suite.js'
import { redisMissing, startRedis } from '../../helpers/redis.js'
import { aKey, anAccount } from '../contract/sample-records.js'

const KEYS = Number(process.env['SLUICE_KEYS'] ?? (IS_LONG ? '600' : '350'))
const OF_ACCOUNT = 10
const WORKERS = 4
/** Maximum look-ups of an authenticator: under way, and waiting. */
const AT_ONCE = 32
const WAITING = 256
const MOST_MS = 10
const AWAY_MS = 600
const TIMEOUT_MS = 60_000 + KEYS * 20
const missing = redisMissing()
t.setTimeout(TIMEOUT_MS)
const options = { timeout: TIMEOUT_MS, ...(missing === false ? {} : { skip: missing }) }

/** A worker with counted look-ups. */
class Counted {
  running = 0
  most = 0
  /** The digests for which the store has replied. */
  readonly answered = new Set<string>()
  private readonly store: Store

  constructor(store: Store) {
    this.store = store
  }

  async findKey(digest: string) {
    this.running += 1
    this.most = Math.max(this.most, this.running)
    try {
      const found = await this.store.findKey(digest)
      this.answered.add(digest)
      return found
    } finally {
      this.running -= 1
    }
  }

  subscribe(listener: Parameters<Store['subscribe']>[0]): () => void {
    return this.store.subscribe(listener)
  }
}

async function startWorker(t: Test, url: string) {
  const store = await openStore(url)
  t.teardown(() => store.close())
  const counted = new Counted(store)
  const settings = () => ({ acceptImportedKeys: false, freshSeconds: 3_600, staleSeconds: 3_600 })
  const auth = new Authenticator({ store: counted, settings, now: () => performance.now() })
  t.teardown(() => auth.close())
  return { counted, auth }
}

type Worker = Awaited<ReturnType<typeof startWorker>>

/** The number of keys that a worker accepts when all are authenticated at once. */
async function letIn({ auth }: Worker, secrets: readonly string[]): Promise<number> {
  const asked = secrets.map(async (secret) => auth.identify(secret))
  const outcomes = await Promise.allSettled(asked)
  return outcomes.filter(({ status }) => status === 'fulfilled').length
}

/** Looks up all keys at once, then repeats failed look-ups; returns the number of failures. */
async function lookUpAll(worker: Worker, secrets: readonly string[]): Promise<number> {
  const isOpen = (secret: string): boolean => !worker.counted.answered.has(digestOf(secret))
  let refused = 0
  let asked = secrets
  while (asked.length > 0) {
    refused += asked.length - (await letIn(worker, asked))
    asked = secrets.filter(isOpen).slice(0, AT_ONCE + WAITING)
    await delay(10)
  }
  return refused
}

void t.test('H-119: four workers revalidate all keys when Redis is back', options, async (t) => {
  const redis = await startRedis(t)
  const proxy = await startFaultProxy(t, redis.port)
  // On a busy machine, look-ups wait for the processor.
  const url = `redis://127.0.0.1:${proxy.port}?timeout_ms=9000`
  const owner = await openStore(url)
  t.teardown(() => owner.close())
  const secrets = Array.from({ length: KEYS }, newSecret)
  // A change of an account reads and writes the list of its keys.
  for (let at = 0; at < KEYS; at += OF_ACCOUNT) {
    const account = anAccount()
    await putAccount(owner, account)
    for (const secret of secrets.slice(at, at + OF_ACCOUNT)) {
      await putKey(owner, aKey(account.id, { digest: digestOf(secret) }), null)
    }
  }
  const workers = await Promise.all(Array.from({ length: WORKERS }, () => startWorker(t, url)))
  for (const worker of workers) await lookUpAll(worker, secrets)

  proxy.set({ kind: 'refuse' })
  await delay(AWAY_MS)
  for (const worker of workers) t.equal(await letIn(worker, secrets), KEYS, 'known keys are accepted')
  for (const { counted } of workers) {
    counted.answered.clear()
    counted.most = 0
  }
  await redis.ask('config', 'resetstat')
  proxy.set({ kind: 'pass' })
  const backMs = performance.now()
  const recover = async (worker: Worker) => {
    const refused = await lookUpAll(worker, secrets)
    return { refused, ms: performance.now() - backMs }
  }
  const recovered = await Promise.all(workers.map(recover))
  t.ok(
    recovered.every(({ refused }) => refused === 0),
    'and go on to pass',
  )
  const most = Math.max(...workers.map(({ counted }) => counted.most))
  t.ok(most > 1 && most <= AT_ONCE, `${most} look-ups of a worker at once`)
  const stats = String(await redis.ask('info', 'latencystats'))
  const p99 = Number(/hmget:.*?p99=([\d.]+)/.exec(stats)?.[1]) / 1_000
  const calls = Number(/hmget:calls=(\d+)/.exec(String(await redis.ask('info', 'commandstats')))?.[1])
  t.ok(calls >= WORKERS * KEYS, `${calls} look-ups`)
  t.ok(p99 <= MOST_MS, `p99 ${p99.toFixed(3)} ms in Redis`)
  t.comment(
    `FIGURES ${WORKERS} workers, ${KEYS} keys (load ${loadavg()[0]?.toFixed()}): all looked up again after ` +
      `${recovered.map(({ ms }) => ms.toFixed()).join(', ')} ms, ${most} at once, p99 in Redis ${p99.toFixed(3)} ms`,
  )
})
