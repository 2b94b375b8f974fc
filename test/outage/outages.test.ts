/**
 * Goal: while Redis refuses connections, is frozen, unreachable, slow or read-only, or has lost its data:
 * requests with known keys are served almost without delay, unknown keys get 503 and never 401, only
 * completed changes are acknowledged, limits apply, the outage is reported, and afterwards no entry is
 * missing (G15, H-113, H-114).
 * Method: the whole program with two workers on a real redis-server and an emulator, under a steady HTTP
 * load; the ledger is compared with the emulator's counts. `SLUICE_OUTAGE_SECONDS=60` runs the long form,
 * which also checks the times of G15; by default an outage lasts a second and times are not checked.
 */
import { cpus, loadavg } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { stringOf } from '../../src/base/json.js'
import { newSecret } from '../../src/accounts/key-secret.js'
import { openStore } from '../../src/store/open-store.js'
import type { LedgerEntry } from '../../src/ledger/entry.js'
import { Browser } from '../dashboard/fixtures/stage.js'
import { startFaultProxy, type FaultProxy } from '../helpers/fault-proxy.js'
import { redisMissing, startRedis, type RedisServer } from '../helpers/redis.js'
import { EMAIL, PASSWORD, makeKey, startServe, until, type Served } from '../process/program.js'
import { ofToday } from '../helpers/long-suite.js'
import { Load, percentile } from './load.js'

const SECONDS = Number(process.env['SLUICE_OUTAGE_SECONDS'] ?? '1')
const ONLY = process.env['SLUICE_OUTAGE_ONLY']
/** Only long runs measure times and check them. */
const IS_LONG = SECONDS >= 10
const WARM_UP_MS = IS_LONG ? 10_000 : 1_500
/** Tolerance for delays of the machine. */
const SLACK_MS = 50
const LATE_MS = 500
const WORKERS = 2
/** Interval of expensive polls: metrics, the whole ledger. */
const SLOW_POLL_MS = 250
const SLOW_POLL = [20_000, SLOW_POLL_MS] as const
/** Requests a minute of the key that exceeds its limit. */
const LIMIT = 12
const RATES = IS_LONG ? { known: 30, limited: 10, unknown: 4 } : { known: 15, limited: 10, unknown: 4 }
const TIMEOUT_MS = 120_000 + SECONDS * 1_500

const missing = redisMissing()
const options = { timeout: TIMEOUT_MS, ...(missing === false ? {} : { skip: missing }) }
// It replaces the runner's own limit, so it must not be much longer than a run on a busy machine (130 s).
t.setTimeout(IS_LONG ? TIMEOUT_MS * 7 : 300_000)
// Short runs mostly wait, so two run at a time; long runs are measured, so they run in sequence.
t.jobs = IS_LONG ? 1 : 2

/** How Redis becomes unavailable, and how it recovers. */
interface Outage {
  readonly name: string
  begin(redis: RedisServer, proxy: FaultProxy): void | Promise<void>
  end(redis: RedisServer, proxy: FaultProxy): void | Promise<void>
  /** Changes on the dashboard succeed, with a delay. */
  readonly late?: boolean
}

let putBack: () => void = () => undefined

const OUTAGES: readonly Outage[] = [
  {
    name: 'refused',
    async begin(redis, proxy) {
      proxy.set({ kind: 'refuse' })
      await redis.kill()
    },
    async end(redis, proxy) {
      await redis.start()
      proxy.set({ kind: 'pass' })
    },
  },
  { name: 'frozen', begin: (redis) => redis.freeze(), end: (redis) => redis.thaw() },
  {
    name: 'in a black hole',
    begin: (_redis, proxy) => proxy.set({ kind: 'hole' }),
    end: (_redis, proxy) => proxy.set({ kind: 'pass' }),
  },
  {
    name: `${LATE_MS} ms late`,
    begin: (_redis, proxy) => proxy.set({ kind: 'delay', ms: LATE_MS }),
    end: (_redis, proxy) => proxy.set({ kind: 'pass' }),
    late: true,
  },
  {
    name: 'read-only',
    // A replica of an unreachable server, as a primary becomes in a failover.
    async begin(redis) {
      await redis.ask('replicaof', '127.0.0.1', 1)
    },
    async end(redis) {
      await redis.ask('replicaof', 'no', 'one')
    },
  },
  {
    name: 'back without its data',
    async begin(redis) {
      await redis.kill()
      putBack = redis.forget()
      await redis.start()
    },
    async end(redis) {
      await redis.kill()
      putBack()
      await redis.start()
    },
  },
]

interface Stage {
  readonly redis: RedisServer
  readonly proxy: FaultProxy
  readonly served: Served
  readonly limited: string
  readonly browser: Browser
}

async function startStage(t: Test): Promise<Stage> {
  const redis = await startRedis(t)
  const proxy = await startFaultProxy(t, redis.port)
  const served = await startServe(t, {
    server: `workers: ${WORKERS}, drain_ms: 1000`,
    store: `redis://127.0.0.1:${proxy.port}`,
    more: 'limits: [{ scope: key, requests_per_minute: 1000000 }]',
  })
  const limited = await makeKey(redis.url(), { requestsPerMinute: LIMIT })
  const browser = new Browser(`http://127.0.0.1:${served.port}`)
  const { status } = await browser.signIn(EMAIL, PASSWORD)
  if (status !== 200) throw new Error(`cannot sign in: ${status}`)
  return { redis, proxy, served, limited, browser }
}

const chosen = IS_LONG || ONLY !== undefined ? OUTAGES : [...ofToday(OUTAGES, 3)]
for (const outage of chosen.filter(({ name }) => ONLY === undefined || name === ONLY)) {
  void t.test(`Redis is ${outage.name}`, options, async (t) => {
    const stage = await startStage(t)
    const { served } = stage
    const load = new Load(served.port, [
      { name: 'known', secret: () => served.secret, perSecond: RATES.known },
      { name: 'limited', secret: () => stage.limited, perSecond: RATES.limited },
      { name: 'unknown', secret: () => newSecret(), perSecond: RATES.unknown },
    ])
    t.teardown(() => load.stop())
    await Promise.all([delay(WARM_UP_MS), until(() => isKnown(served))])
    const beganMs = performance.now()
    await outage.begin(stage.redis, stage.proxy)
    const downMs = performance.now()
    const acknowledged = await writesUntil(stage, downMs + SECONDS * 1_000)
    await reportsOutage(t, stage)
    const endedMs = performance.now()
    await outage.end(stage.redis, stage.proxy)
    const upMs = performance.now()
    const backMs = await recovered(stage, load)
    await until(async () => (await served.ops('/readyz')).status === 200)
    await load.stop()

    const figures = [
      servedAll(t, load, { fromMs: beganMs, toMs: endedMs, downMs }),
      unknownKeys(t, load, { fromMs: downMs, toMs: endedMs, late: outage.late }),
      limitsKept(t, load, { fromMs: beganMs, toMs: performance.now() }),
      await writesAcknowledged(t, stage, { ...acknowledged, late: outage.late }),
      `back ${((backMs - upMs) / 1_000).toFixed(1)} s after it`,
      await rowsOfAll(t, stage, load),
    ]
    if (isMeasured()) t.ok(backMs - upMs <= 2_000 + SLACK_MS, 'back within two seconds')
    t.comment(`FIGURES ${outage.name} (load ${loadavg()[0]?.toFixed()}): ${figures.join('; ')}`)
    await quiet(t, stage)
  })
}

/**
 * Whether times are checked: not in short runs and not on a busy machine, whose other work delays requests.
 */
function isMeasured(): boolean {
  return IS_LONG && (loadavg()[0] ?? 0) < 2 * cpus().length
}

/** Whether each worker has authenticated both keys: only cached keys are accepted without the store. */
function isKnown(served: Served): boolean {
  const met = new Set<string>()
  for (const { msg, pid, key_id: key } of served.program.lines()) {
    if (msg === 'exchange' && typeof key === 'string') met.add(`${Number(pid)} ${key}`)
  }
  return met.size === 2 * WORKERS
}

/** Tries to create keys on the dashboard; resolves with the names of the acknowledged ones. */
async function writesUntil({ browser }: Stage, endMs: number) {
  const made: string[] = []
  const statuses = new Set<number>()
  for (let at = 0; performance.now() < endMs || at === 0; at += 1) {
    const name = `made in an outage ${at}`
    const { status } = await browser.ask('POST', '/keys', { body: { name } })
    statuses.add(status)
    if (status === 201) made.push(name)
    await delay(Math.min(1_000, Math.max(0, endMs - performance.now())))
  }
  return { made, statuses }
}

/** The ops port and the log report the outage. */
async function reportsOutage(t: Test, { served }: Stage): Promise<void> {
  await until(
    async () => {
      const { text } = await served.ops('/metrics')
      return new RegExp(`^sluice_limits_local\\S* ${WORKERS}$`, 'm').test(text)
    },
    ...SLOW_POLL,
  )
  let ready = ''
  await until(async () => {
    ready = (await served.ops('/readyz')).text
    return ready.includes('kept by each process alone') && /unavailable, [1-9]\d* rows spooled/.test(ready)
  }).catch(() => t.fail(ready))
  const messages = served.program.lines().map(({ msg }) => msg)
  t.ok(messages.includes('limits are enforced by this process alone: the store is unavailable'))
  t.ok(messages.includes('ledger unavailable, rows are spooled'))
}

/** Resolves when the store refuses an unknown key again, and accepts a new one. */
async function recovered(stage: Stage, load: Load): Promise<number> {
  const { browser, served } = stage
  const beganMs = performance.now()
  const isRefused = (): boolean =>
    load.between(beganMs, Number.POSITIVE_INFINITY, 'unknown').at(-1)?.status === 401
  await until(isRefused)
  await until(async () => {
    const { status, json } = await browser.ask('POST', '/keys', {
      body: { name: 'made afterwards' },
    })
    return status === 201 && (await served.chat({}, stringOf(json['secret']))).status === 200
  })
  return performance.now()
}

function servedAll(
  t: Test,
  load: Load,
  { fromMs, toMs, downMs }: { fromMs: number; toMs: number; downMs: number },
): string {
  const before = load.between(0, fromMs, 'known').filter(({ sentMs }) => sentMs > fromMs - WARM_UP_MS / 2)
  const during = load.between(fromMs, toMs, 'known')
  const bad = during.filter(({ status, isWhole }) => status !== 200 || !isWhole)
  t.ok(during.length >= RATES.known * SECONDS * 0.3, `${during.length} asked`)
  t.ok(bad.length <= during.length / 1_000, `${bad.length} of ${during.length} not served`)
  if (bad.length > 0)
    t.comment(
      bad
        .slice(0, 3)
        .map(({ status, text }) => `${status} ${text}`)
        .join(),
    )
  const times = during.map(({ ms }) => ms)
  const slowest = Math.max(...times)
  const settled = during.filter(({ sentMs }) => sentMs > downMs + 1_000).map(({ ms }) => ms)
  const usual = percentile(
    before.map(({ ms }) => ms),
    0.5,
  )
  const later = percentile(settled, 0.5)
  // Requests before the outage show the delays of the machine.
  const most = 100 + SLACK_MS + Math.max(...before.map(({ ms }) => ms))
  if (isMeasured()) t.ok(slowest <= most, `the slowest ${slowest.toFixed()} ms, at most ${most.toFixed()}`)
  if (isMeasured()) t.ok(later - usual <= 2, `then ${(later - usual).toFixed(1)} ms more than before`)
  const all = percentile(
    before.map(({ ms }) => ms),
    0.99,
  )
  return (
    `known ${during.length - bad.length} of ${during.length}, slowest ${slowest.toFixed()} ms, ` +
    `p50 ${usual.toFixed(1)} → ${later.toFixed(1)} ms, p99 ${all.toFixed()} → ${percentile(settled, 0.99).toFixed()} ms`
  )
}

function unknownKeys(
  t: Test,
  load: Load,
  { fromMs, toMs, late }: { fromMs: number; toMs: number; late: boolean | undefined },
): string {
  // A request that is sent just before the end may be served after it. A late store's answer is used by a
  // worker that the system did not schedule while it waited.
  const asked = load
    .between(fromMs, toMs - 200, 'unknown')
    .filter(({ status, ms }) => !(late === true && status === 401 && ms >= LATE_MS))
  const statuses = countOf(asked.map(({ status }) => status))
  t.same(
    asked.filter(({ status }) => status !== 503),
    [],
    'unknown keys are 503',
  )
  t.ok(asked.every(({ text }) => text.includes('"store_unavailable"')))
  const slowest = Math.max(0, ...asked.map(({ ms }) => ms))
  if (isMeasured()) t.ok(slowest <= 100 + SLACK_MS + 50, `unknown keys wait ${slowest.toFixed()} ms at most`)
  return `unknown ${statuses}`
}

/** For the key that exceeds its limit: the limit, one window for the outage, and rounding. */
function limitsKept(t: Test, load: Load, { fromMs, toMs }: { fromMs: number; toMs: number }): string {
  const asked = load.between(fromMs, toMs, 'limited')
  const admitted = asked.filter(({ status }) => status === 200).length
  const most = LIMIT * ((toMs - fromMs) / 60_000) + LIMIT + WORKERS
  t.ok(asked.length > 2 * LIMIT * (SECONDS / 60), `${asked.length} asked`)
  t.ok(admitted <= most, `${admitted} of the limited key, at most ${most.toFixed(1)}`)
  t.same(countOf(asked.map(({ status }) => status)).replace(/\d+ × (200|429)(, )?/g, ''), '')
  const due = LIMIT * ((toMs - fromMs) / 60_000)
  return `limited key ${admitted} admitted where ${due.toFixed(0)} flow back`
}

interface Writes {
  /** The names of the keys that the store acknowledged. */
  readonly made: readonly string[]
  readonly statuses: ReadonlySet<number>
  /** See `Outage.late`. */
  readonly late: boolean | undefined
}

async function writesAcknowledged(
  t: Test,
  { browser }: Stage,
  { made, statuses, late }: Writes,
): Promise<string> {
  const { text } = await browser.get('/keys')
  t.same(
    made.filter((name) => !text.includes(`"${name}"`)),
    [],
    'acknowledged keys exist',
  )
  const statusText = [...statuses].join(', ')
  if (late === true)
    t.ok(
      [...statuses].every((status) => status === 201 || status === 503),
      statusText,
    )
  else t.same([...statuses], [503], 'no change is acknowledged')
  return `dashboard ${statusText}`
}

/** The ledger has exactly one entry for each reply, with the tokens that the emulator counted. */
async function rowsOfAll(t: Test, { redis, served }: Stage, load: Load): Promise<string> {
  const store = await openStore(`${redis.url()}?timeout_ms=5000`)
  t.teardown(() => store.close())
  const due = load.answers.filter(
    ({ client, status }) => client !== 'unknown' && (status === 200 || status === 429),
  )
  const rows = new Map<string, LedgerEntry>()
  let count = 0
  const isComplete = async (): Promise<boolean> => {
    rows.clear()
    count = 0
    for await (const batch of store.ledger.export(0)) {
      for (const row of batch) rows.set(row.requestId, row)
      count += batch.length
    }
    return due.every(({ id }) => rows.has(id))
  }
  await until(isComplete, 60_000, SLOW_POLL_MS).catch(() => undefined)
  t.equal(due.filter(({ id }) => !rows.has(id)).length, 0, 'no answer without its row')
  t.equal(count, rows.size, 'no row twice')
  const counted = new Map<string, { input: number; output: number }>()
  for (const { body, counted: counts } of served.emulator.ledger) {
    const tag = /Say (tag-\d+)\./.exec(JSON.stringify(body))?.[1]
    if (tag !== undefined && counts !== undefined) counted.set(tag, counts)
  }
  const complete = due.filter(({ status, isWhole }) => status === 200 && isWhole)
  const differing = complete.filter(({ id, tag }) => isOther(rows.get(id), counted.get(tag)))
  t.equal(differing.length, 0, 'and each has the tokens that the upstream counted')
  t.equal(complete.length, counted.size, 'and the upstream received no others')
  return `ledger ${due.length} of ${due.length} rows, ${differing.length} apart`
}

function isOther(row: LedgerEntry | undefined, counts: { input: number; output: number } | undefined) {
  if (row === undefined || counts === undefined || row.source !== 'reported') return true
  return row.usage.input !== counts.input || row.usage.output !== counts.output
}

/** No crash, no bug, and the end of the outage is logged. */
async function quiet(t: Test, { served }: Stage): Promise<void> {
  const isLogged = (text: string): boolean => served.program.lines().some(({ msg }) => msg === text)
  await until(() => isLogged('ledger is back') && isLogged('limits are enforced by the store again'))
  t.notOk(isLogged('unforeseen failure'))
  const isBack = async (): Promise<boolean> =>
    /^sluice_limits_local\S* 0$/m.test((await served.ops('/metrics')).text)
  await until(isBack, ...SLOW_POLL)
}

function countOf(statuses: readonly number[]): string {
  const counts = new Map<number, number>()
  for (const status of statuses) counts.set(status, (counts.get(status) ?? 0) + 1)
  return [...counts].map(([status, count]) => `${count} × ${status}`).join(', ')
}
