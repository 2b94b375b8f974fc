/**
 * Goal: whenever the whole gateway or Redis is killed with SIGKILL, no acknowledged key is lost, no revoked
 * key is valid, and every reply that a client received, and every running request, has a ledger entry (G13).
 * Method: the whole program under load, while a client creates and revokes keys on the dashboard; the primary
 * and its workers, or the redis-server, are killed at random times and restarted. `SLUICE_KILLS=200` sets the
 * number of kills; the default is small. With an embedded store only the gateway is killed.
 */
import { join } from 'node:path'
import { loadavg } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { digestOf } from '../../src/accounts/key-secret.js'
import { objectOf, stringOf } from '../../src/base/json.js'
import type { LedgerEntry } from '../../src/ledger/entry.js'
import { openStore } from '../../src/store/open-store.js'
import type { Store } from '../../src/store/store.js'
import { Browser } from '../dashboard/fixtures/stage.js'
import { freePort } from '../helpers/free-port.js'
import { redisMissing, startRedis, type RedisServer } from '../helpers/redis.js'
import { EMAIL, makeKey, PASSWORD, prepare, run, until, type Program } from '../process/program.js'
import { anotherDay } from '../helpers/long-suite.js'
import { Load } from './load.js'

const KILLS = Number(process.env['SLUICE_KILLS'] ?? '2')
const BUDGET = 1e12
const PER_SECOND = 50
/**
 * Over Redis, a request that a slice admits has no reservation for its first half second, and the time of a
 * command (docs/explanation/redis-store.md, "What a crash loses"): a kill of the gateway loses the entries of
 * such requests.
 */
const UNRESERVED_SECONDS = 0.75
/** Time after which every reservation has expired. */
const LATER_MS = 120_000
const TIMEOUT_MS = 60_000 + KILLS * 15_000
t.setTimeout(TIMEOUT_MS * 2)

const missing = anotherDay(0, 2) || redisMissing()

/** A gateway on fixed ports that is killed and restarted. `program` is null in between. */
class Gateway {
  readonly port: number
  private readonly t: Test
  private readonly file: string
  private program: Program | null = null

  constructor(t: Test, file: string, port: number) {
    this.t = t
    this.file = file
    this.port = port
  }

  async start(): Promise<void> {
    const program = run(this.t, ['serve', '--config', this.file])
    this.program = program
    await until(() => program.out().includes('"sluice serves"'), 60_000)
  }

  async kill(): Promise<void> {
    const { program } = this
    if (program === null) return
    for (const pid of [program.pid, ...program.workers()]) process.kill(pid, 'SIGKILL')
    await program.ended
  }
}

/** Creates keys on the dashboard and revokes every second one; collects those that were acknowledged. */
class Owner {
  readonly made: string[] = []
  readonly revoked: string[] = []
  private readonly browser: Browser
  private isOver = false
  private running: Promise<void> = Promise.resolve()

  constructor(port: number) {
    this.browser = new Browser(`http://127.0.0.1:${port}`)
  }

  async begin(): Promise<void> {
    const { status } = await this.browser.signIn(EMAIL, PASSWORD)
    if (status !== 200) throw new Error(`cannot sign in: ${status}`)
    this.running = this.work()
  }

  async end(): Promise<void> {
    this.isOver = true
    await this.running
  }

  private async work(): Promise<void> {
    for (let at = 0; !this.isOver; at += 1) {
      // A failed change is not acknowledged, so its effect is not checked.
      await this.once(at).catch(() => undefined)
      await delay(20)
    }
  }

  private async once(at: number): Promise<void> {
    const { status, json } = await this.browser.ask('POST', '/keys', {
      body: { name: `key ${at}` },
    })
    const secret = stringOf(json['secret'])
    if (status !== 201 || secret === undefined) return
    this.made.push(secret)
    if (at % 2 === 0) return
    const id = stringOf(objectOf(json['key'])['id']) ?? ''
    if ((await this.browser.ask('DELETE', `/keys/${id}`)).status === 200) this.revoked.push(secret)
  }
}

async function kills(t: Test, url: string | null, redis: RedisServer | null): Promise<void> {
  const [port, opsPort] = [await freePort(), await freePort()]
  const settings = { server: 'workers: 2, drain_ms: 500', port, opsPort }
  const { emulator, folder, file } = await prepare(t, url === null ? settings : { ...settings, store: url })
  const store = url ?? `sqlite:${join(folder, 'data', 'sluice.db')}`
  const secret = await makeKey(store, { nanoUsdPerDay: BUDGET })
  const gateway = new Gateway(t, file, port)
  await gateway.start()
  const owner = new Owner(port)
  await owner.begin()
  const load = new Load(port, [{ name: 'app', secret: () => secret, perSecond: PER_SECOND }])
  t.teardown(() => Promise.all([load.stop(), owner.end()]))
  const answersAgain = (): Promise<number> => {
    const sinceMs = performance.now()
    const isServed = (): boolean =>
      load.between(sinceMs, Number.POSITIVE_INFINITY, 'app').some(({ status }) => status === 200)
    return until(isServed, 60_000)
  }
  await answersAgain()
  for (let kill = 0; kill < KILLS; kill += 1) {
    await delay(Math.random() * 400)
    if (redis !== null && kill % 2 === 1) {
      await redis.kill()
      await redis.start()
    } else {
      await gateway.kill()
      await gateway.start()
    }
    await answersAgain()
  }
  await until(() => owner.revoked.length > 0, 60_000)
  await load.stop()
  await owner.end()

  const later = await openStore(store, { nowMs: () => Date.now() + LATER_MS, minTimeoutMs: 5_000 })
  t.teardown(() => later.close())
  const gatewayKills = redis === null ? 0 : Math.ceil(KILLS / 2)
  const unreserved = gatewayKills * PER_SECOND * UNRESERVED_SECONDS
  const figures = [
    await keysKept(t, later, owner),
    await entriesKept(t, later, { load, requests: emulator.ledger, unreserved }),
  ]
  t.comment(`FIGURES ${KILLS} kills (load ${loadavg()[0]?.toFixed()}): ${figures.join('; ')}`)
}

async function keysKept(t: Test, store: Store, { made, revoked }: Owner): Promise<string> {
  let [lost, valid] = [0, 0]
  for (const secret of made) if ((await store.findKey(digestOf(secret))) === null) lost += 1
  for (const secret of revoked) {
    if ((await store.findKey(digestOf(secret)))?.key.revokedAtMs === undefined) valid += 1
  }
  t.ok(made.length > 0 && revoked.length > 0, `${made.length} keys, ${revoked.length} revoked`)
  t.same({ lost, valid }, { lost: 0, valid: 0 }, 'acknowledged keys exist, revoked ones are refused')
  return `${lost} of ${made.length} keys lost, ${valid} of ${revoked.length} revoked keys valid`
}

interface SentRequests {
  readonly load: Load
  /** The requests that the emulator received. */
  readonly requests: readonly {
    counted: { input: number; output: number } | undefined
    body?: unknown
  }[]
  readonly unreserved: number
}

async function entriesKept(
  t: Test,
  { ledger }: Store,
  { load, requests, unreserved }: SentRequests,
): Promise<string> {
  const held = load.answers.filter(({ status, isWhole }) => status === 200 && isWhole)
  const rows = new Map<string, LedgerEntry>()
  let count = 0
  const read = async (): Promise<void> => {
    rows.clear()
    count = 0
    for await (const batch of ledger.export(0)) {
      for (const row of batch) rows.set(row.requestId, row)
      count += batch.length
    }
  }
  // Spooled entries are replayed without further requests.
  await until(async () => {
    await read()
    return held.every(({ id }) => rows.has(id))
  }, 60_000).catch(() => undefined)
  const lost = await ledger.expire()
  await read()
  const missing = held.filter(({ id }) => !rows.has(id)).length
  t.equal(missing, 0, 'no answer that a client holds is without its entry')
  t.equal(count, rows.size, 'no entry twice')
  const counted = new Map<string, { input: number; output: number }>()
  for (const { body, counted: counts } of requests) {
    const tag = /Say (tag-\d+)\./.exec(JSON.stringify(body))?.[1]
    if (tag !== undefined && counts !== undefined) counted.set(tag, counts)
  }
  const differing = held.filter(({ id, tag }) => {
    const [row, counts] = [rows.get(id), counted.get(tag)]
    const isSame = row?.usage.input === counts?.input && row?.usage.output === counts?.output
    return row?.source !== 'reported' || !isSame
  })
  t.equal(differing.length, 0, 'and each has the tokens that the upstream counted')
  t.ok(
    rows.size >= requests.length - unreserved,
    `${rows.size} entries for ${requests.length} requests that the upstream received`,
  )
  const all = [...rows.values()]
  const [first] = all
  const spent = all.reduce((sum, { costNanoUsd }) => sum + (costNanoUsd ?? 0), 0)
  const [day] = await ledger.limitStates(first?.accountId ?? '', [
    {
      kind: 'usd_day',
      subject: `key:${first?.keyId ?? ''};own`,
      shared: false,
      limitNanoUsd: BUDGET,
      costNanoUsd: 0,
    },
  ])
  const drift = Math.abs(BUDGET - spent - (day?.remaining ?? 0))
  const gone = all.filter(({ outcome }) => outcome === 'lost').length
  return (
    `${missing} of ${held.length} replies without entry, ${differing.length} with other tokens; ` +
    `${requests.length} requests at the upstream, ${rows.size} entries, ${gone} of them with outcome lost (${lost} at the end); ` +
    `budget ${drift} of ${spent} nano-dollars apart`
  )
}

void t.test(
  'kill -9 of the gateway and of Redis, under load',
  { timeout: TIMEOUT_MS, ...(missing === false ? {} : { skip: missing }) },
  async (t) => {
    // With `everysec` Redis replies before it writes.
    const redis = await startRedis(t, ['--appendfsync', 'always'])
    await kills(t, redis.url(), redis)
  },
)

const embedded = { timeout: TIMEOUT_MS, skip: anotherDay(1, 2) }
void t.test('kill -9 of the gateway, embedded store, under load', embedded, (t) => kills(t, null, null))
