/**
 * Goal: during any fault of Redis, cached keys are accepted, unknown keys get 503 and never 401, and no
 * request waits long. Within two seconds of its end, everything works again.
 * Method: a real server behind a proxy that delays, drops, truncates or corrupts replies, or replies with
 * errors; and a server that is suspended, killed or emptied. The tests run in parallel;
 * `SLUICE_FAULT_SECONDS` sets the length of a fault.
 */
import { endKey, putAccount, putKey } from '../../helpers/store-changes.js'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { digestOf, newSecret } from '../../../src/accounts/key-secret.js'
import { Authenticator } from '../../../src/accounts/authentication/authenticator.js'
import { GatewayError } from '../../../src/errors.js'
import { openStore } from '../../../src/store/open-store.js'
import { startFaultProxy, type Fault } from '../../helpers/fault-proxy.js'
import { redisMissing, startRedis, until, type RedisServer } from '../../helpers/redis.js'
import { stopwatch } from '../../helpers/stopwatch.js'
import { anAdmission, aRow, requests } from '../ledger/sample-entries.js'
import { aKey, anAccount } from '../contract/sample-records.js'

const FAULT_MS = Number(process.env['SLUICE_FAULT_SECONDS'] ?? '0.6') * 1_000
/** Tolerance for the machine: other tests run in parallel. */
const SLACK_MS = 150
const missing = redisMissing()
const options = missing === false ? { buffered: true } : { skip: missing }
// The tests mostly wait. Each gets a copy of the options, because tap changes them.
t.jobs = 6
const server: RedisServer | null = missing === false ? await startRedis(t) : null
let lastDb = 0

/** A store with an account, a key that the authenticator has cached, and a key that it has not. */
async function scene(t: Test, port: number) {
  lastDb += 1
  const url = `redis://127.0.0.1:${port}/${lastDb}`
  const store = await openStore(url)
  t.teardown(() => store.close())
  const settings = { acceptImportedKeys: false, freshSeconds: 0.05, staleSeconds: 300 }
  const auth = new Authenticator({ store, settings: () => settings, now: () => performance.now() })
  t.teardown(() => auth.close())
  const account = anAccount()
  await putAccount(store, account)
  const make = async (): Promise<string> => {
    const secret = newSecret()
    await putKey(store, aKey(account.id, { digest: digestOf(secret) }), null)
    return secret
  }
  const [known, fresh] = [await make(), await make()]
  const bench = { url, store, auth, account, known, fresh, settings, make }
  t.equal((await ask(bench, known)).kind, 'ok')
  return bench
}

/** Kind and cause of the failure of the store; `done` if it succeeded. */
async function failure(work: Promise<unknown>): Promise<string> {
  try {
    await work
    return 'done'
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    return `${error.kind}: ${error.cause instanceof Error ? error.cause.message : ''}`
  }
}

/** The result of an authentication, whether it waited for the store, and for how long. */
async function ask({ auth }: { auth: Authenticator }, secret: string) {
  const watch = stopwatch()
  let kind = 'ok'
  let waited = false
  try {
    const identity = auth.identify(secret)
    waited = identity instanceof Promise
    await identity
  } catch (error) {
    kind = error instanceof GatewayError ? error.kind : String(error)
  }
  return { kind, waited, ms: watch() }
}

type Scene = Awaited<ReturnType<typeof scene>>

/** Checks known keys, unknown keys and writes during a fault. */
async function suffers(t: Test, bench: Scene, late = false): Promise<void> {
  const beganMs = performance.now()
  const times: number[] = []
  let slow = 0
  const kinds = new Map<string, number>()
  await delay(60)
  let unknown = 0
  while (performance.now() < beganMs + FAULT_MS) {
    const { kind, waited, ms } = await ask(bench, bench.known)
    times.push(ms)
    if (waited) slow += 1
    kinds.set(kind, (kinds.get(kind) ?? 0) + 1)
    const other = await ask(bench, unknown % 2 === 0 ? newSecret() : bench.fresh)
    unknown += 1
    if (other.kind !== 'store_unavailable') kinds.set(`unknown: ${other.kind}`, 1)
    if (other.ms > 200 + SLACK_MS) kinds.set(`unknown after ${other.ms.toFixed()} ms`, 1)
    await delay(5)
  }
  t.same(Object.fromEntries(kinds), { ok: times.length }, 'known keys are accepted, others get 503')
  const lasted = (performance.now() - beganMs) / 1_000
  t.ok(Math.max(...times) <= 100 + SLACK_MS, `slowest ${Math.max(...times).toFixed()} ms`)
  t.ok(slow <= 2 + lasted, `${slow} of ${times.length} waited at all`)
  // Commands of the dashboard have a longer time limit: a slow server still executes them.
  if (late) return
  const key = aKey(bench.account.id)
  t.match(await failure(putKey(bench.store, key, null)), /^store_unavailable/, 'no write is acked')
}

/** Resolves when unknown keys get 401 again and writes are accepted. */
async function recovers(t: Test, bench: Scene): Promise<void> {
  const watch = stopwatch()
  await until(async () => (await ask(bench, bench.fresh)).kind === 'ok', 'look-ups')
  await until(
    async () => (await ask(bench, newSecret())).kind === 'unauthenticated',
    'a reply to an unknown key',
  )
  const tookMs = watch()
  t.ok(tookMs <= 2_000, `back after ${tookMs.toFixed()} ms`)
  await until(async () => (await bench.make()).length > 0, 'writes')
}

const ERRORS = [
  'LOADING Redis is loading the dataset in memory',
  "READONLY You can't write against a read only replica.",
  "OOM command not allowed when used memory > 'maxmemory'.",
  'BUSY Redis is busy running a script.',
  'NOAUTH Authentication required.',
  'MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to no.',
  'CLUSTERDOWN The cluster is down',
]
const FAULTS: readonly [string, Fault][] = [
  ['black hole', { kind: 'hole' }],
  ['refused', { kind: 'refuse' }],
  ['reset on each command', { kind: 'cut' }],
  ['500 ms late', { kind: 'delay', ms: 500 }],
  ['garbage', { kind: 'garbage' }],
  ...ERRORS.map((text): [string, Fault] => [text.split(' ')[0] ?? '', { kind: 'error', text }]),
]

for (const [name, fault] of FAULTS) {
  void t.test(name, { ...options }, async (t) => {
    const proxy = await startFaultProxy(t, server?.port ?? 0)
    const bench = await scene(t, proxy.port)
    proxy.set(fault)
    await suffers(t, bench, fault.kind === 'delay')
    proxy.set({ kind: 'pass' })
    await recovers(t, bench)
  })
}

void t.test('recovers after the server was suspended', { ...options }, async (t) => {
  const own = await startRedis(t)
  const bench = await scene(t, own.port)
  own.freeze()
  await suffers(t, bench)
  own.thaw()
  await recovers(t, bench)
})

void t.test('recovers after a kill and a restart', { ...options }, async (t) => {
  const own = await startRedis(t)
  const bench = await scene(t, own.port)
  await own.kill()
  await suffers(t, bench)
  await own.start()
  await recovers(t, bench)
})

void t.test('treats a server that became a replica as unavailable', { ...options }, async (t) => {
  const own = await startRedis(t)
  const bench = await scene(t, own.port)
  await own.ask('replicaof', '127.0.0.1', 1)
  await suffers(t, bench)
  await own.ask('replicaof', 'no', 'one')
  await recovers(t, bench)
})

void t.test('reads go on while writes are refused', { ...options }, async (t) => {
  const own = await startRedis(t)
  const bench = await scene(t, own.port)
  const others = await Promise.all(Array.from({ length: 5 }, () => bench.make()))
  await own.ask('config', 'set', 'min-replicas-to-write', 1)
  for (const other of others) {
    t.equal((await ask(bench, newSecret())).kind, 'store_unavailable', 'a newer primary may have the key')
    t.equal((await ask(bench, other)).kind, 'ok')
  }
  await own.ask('config', 'set', 'min-replicas-to-write', 0)
  await recovers(t, bench)
})

void t.test('no valid key gets 401 after the server was started again empty', { ...options }, async (t) => {
  const own = await startRedis(t)
  const bench = await scene(t, own.port)
  await own.ask('flushall')
  await delay(60)
  t.equal((await ask(bench, newSecret())).kind, 'store_unavailable')
  t.equal((await ask(bench, bench.fresh)).kind, 'store_unavailable')
  t.equal((await ask(bench, bench.known)).kind, 'ok', 'known keys are accepted')
  t.match(await failure(bench.store.probe()), /^store_unavailable.*emptied/)
  t.match(await failure(bench.make()), /^store_unavailable/)
  const other = await openStore(bench.url)
  t.teardown(() => other.close())
  t.match(await failure(bench.store.probe()), /emptied/, 'a new store is not the one that was opened')
  await other.probe()
})

void t.test('no entry is written to a server that has lost its data', { ...options }, async (t) => {
  const own = await startRedis(t)
  const bench = await scene(t, own.port)
  const [before, meanwhile] = [aRow(), aRow()]
  await bench.store.ledger.settle(before)
  await own.kill()
  const putBack = own.forget()
  await own.start()
  const refused = async (): Promise<boolean> =>
    /emptied/.test(await failure(bench.store.ledger.settle(meanwhile)))
  await until(refused, 'the ledger to notice')
  t.equal(await own.ask('dbsize'), 0, 'nothing was written')
  await own.kill()
  putBack()
  await own.start()
  await until(async () => (await failure(bench.store.ledger.settle(meanwhile))) === 'done', 'rows')
  // Entries are read on another connection, which may reconnect later.
  const reading = () => bench.store.ledger.entry(null, before.requestId)
  await until(async () => (await failure(reading())) === 'done', 'reading')
  t.same(await reading(), before)
  t.same(await bench.store.ledger.entry(null, meanwhile.requestId), meanwhile)
})

void t.test('a request waits for one timeout only', { ...options }, async (t) => {
  const proxy = await startFaultProxy(t, server?.port ?? 0)
  const { store, known } = await scene(t, proxy.port)
  proxy.set({ kind: 'hole' })
  t.match(await failure(Promise.resolve(store.findKey(digestOf(known)))), /failed: no answer within 100 ms/)
  const others = [
    () => store.ledger.admit(anAdmission([requests(3)])),
    () => store.ledger.settle(aRow()),
    async () => store.cache.get(['name'], 0),
  ]
  for (const other of others) {
    t.match(await failure(Promise.resolve(other())), /failed a moment ago: no answer within 100 ms/)
  }
})

void t.test('a change that waits for replicas delays no other command', { ...options }, async (t) => {
  const { url, account } = await scene(t, server?.port ?? 0)
  const store = await openStore(`${url}?wait_replicas=1&timeout_ms=3000`)
  t.teardown(() => store.close())
  const refused: string[] = []
  const change = async (): Promise<void> => {
    refused.push(await failure(putKey(store, aKey(account.id), null)))
  }
  const changing = Promise.all([change(), change(), change()])
  let probes = 0
  for (; refused.length === 0; probes += 1) await store.probe()
  t.ok(probes > 3, `${probes} probes meanwhile`)
  await changing
  for (const why of refused) t.match(why, /^store_unavailable: .*0 of 1 replicas/)
})

void t.test('a stale time of 0 accepts no key while Redis is down', { ...options }, async (t) => {
  const own = await startRedis(t)
  const bench = await scene(t, own.port)
  bench.settings.staleSeconds = 0
  await own.kill()
  await delay(60)
  t.equal((await ask(bench, bench.known)).kind, 'store_unavailable')
})

void t.test('scripts that the server has lost are sent again', { ...options }, async (t) => {
  const bench = await scene(t, server?.port ?? 0)
  await server?.ask('script', 'flush')
  t.ok(await bench.make())
})

void t.test('a revocation during a cut is noticed later', { ...options }, async (t) => {
  const proxy = await startFaultProxy(t, server?.port ?? 0)
  const bench = await scene(t, proxy.port)
  bench.settings.freshSeconds = 30
  const direct = await openStore(bench.url.replace(String(proxy.port), String(server?.port)))
  t.teardown(() => direct.close())
  proxy.set({ kind: 'refuse' })
  const found = await direct.findKey(digestOf(bench.known))
  await endKey(direct, { accountId: bench.account.id, id: found?.key.id ?? '' }, 1)
  await delay(300)
  t.equal((await ask(bench, bench.known)).kind, 'ok', 'the process cannot know of the revocation yet')
  proxy.set({ kind: 'pass' })
  const watch = stopwatch()
  await until(async () => (await ask(bench, bench.known)).kind === 'unauthenticated', 'revocation')
  const tookMs = watch()
  t.ok(tookMs <= 1_000 + SLACK_MS, `noticed ${tookMs.toFixed()} ms after the link could be had again`)
})

void t.test('ignores invalid notifications', { ...options }, async (t) => {
  const bench = await scene(t, server?.port ?? 0)
  bench.settings.freshSeconds = 30
  const received: (string | null)[] = []
  bench.store.subscribe(({ digest }) => received.push(digest))
  const channels = await server?.ask('pubsub', 'channels', 'sluice:news:*')
  const digest = digestOf(bench.known)
  const texts = ['', '{}', '{"digest":null}', digest.toUpperCase(), `${digest}\n`, '\xff'.repeat(99)]
  for (const channel of Array.isArray(channels) ? channels.map(String) : []) {
    for (const text of [...texts, digest, digest]) await server?.ask('publish', channel, text)
  }
  await until(() => Promise.resolve(received.length >= 2), 'the notifications')
  t.same(received, [digest, digest], 'only digests, each time that they are published')
  t.equal((await ask(bench, bench.known)).kind, 'ok', 'a notification only repeats the look-up')
})

void t.test('refuses a server that would lose keys', { ...options }, async (t) => {
  const evicting = await startRedis(t, ['--maxmemory', '100mb', '--maxmemory-policy', 'allkeys-lru'])
  t.match(await failure(openStore(evicting.url())), /maxmemory-policy is allkeys-lru.*noeviction/)
  const forgetful = await startRedis(t, ['--appendonly', 'no'])
  const warnings: string[] = []
  const store = await openStore(forgetful.url(), { warn: (message) => warnings.push(message) })
  t.teardown(() => store.close())
  t.match(warnings, [/appendonly yes/])
  const locked = await startRedis(t)
  await locked.ask('config', 'set', 'requirepass', 'hunter2')
  t.match(await failure(openStore(locked.url())), /^store_unavailable.*NOAUTH/)
  const wrong = await failure(openStore(locked.url().replace('127', ':hunter3@127')))
  t.match(wrong, /^store_unavailable.*WRONGPASS/)
  t.notMatch(wrong, 'hunter')
  const right = await openStore(locked.url().replace('127', ':hunter2@127'))
  t.teardown(() => right.close())
  await right.probe()
})
