/**
 * Goal: after SIGKILL at any point of a request, every reservation is settled: possible usage is charged
 * once, and nothing else is charged (L-190, G13).
 * Method: the whole program, held at one point from outside: a proxy before Redis holds one command or its
 * reply, another process holds the lock of the embedded ledger, or the upstream holds its reply. After the
 * kill the ledger is read as another gateway reads it a minute later.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { LedgerEntry } from '../../src/ledger/entry.js'
import { openStore } from '../../src/store/open-store.js'
import { LEDGER_SCRIPTS } from '../../src/store/redis/ledger/ledger-keys.js'
import { redisMissing, startRedis } from '../helpers/redis.js'
import { makeKey, prepare, run, until, type Program, killAll } from '../process/program.js'
import { anotherDay } from '../helpers/long-suite.js'
import { startHoldingProxy, type HoldingProxy } from './holding-proxy.js'
import { testProgram } from '../helpers/test-program.js'

const HOLDER = testProgram('store/processes/lock-process')
const BUDGET = 1_000_000_000
const LATER_MS = 120_000
const missing = anotherDay(1, 2) || redisMissing()
// Each starts a program five times or three, which takes ten seconds each on a busy machine.
const options = { timeout: 235_000 }
t.setTimeout(240_000)
t.jobs = 2

/** Replies at once, or holds its reply until `release`. */
class Upstream {
  port = 0
  asked = 0
  holds = false
  private held: (() => void)[] = []

  async open(t: Test): Promise<void> {
    const server = createServer((req, res) => {
      req.resume()
      req.once('end', () => {
        this.asked += 1
        if (this.holds) this.held.push(() => answer(res))
        else answer(res)
      })
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const address = server.address()
    if (address === null || typeof address === 'string') throw new Error('no port')
    this.port = address.port
    t.teardown(() => {
      server.close()
      server.closeAllConnections()
    })
  }

  release(): void {
    this.holds = false
    for (const go of this.held.splice(0)) go()
  }
}

const USED = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 }

function answer(res: ServerResponse): void {
  const message = { role: 'assistant', content: 'Yes.' }
  const body = {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1,
    model: 'gpt-5.4-mini',
    choices: [{ index: 0, message, finish_reason: 'stop' }],
    usage: USED,
  }
  res.setHeader('content-type', 'application/json')
  res.end(JSON.stringify(body))
}

/** A gateway that can be restarted on the same store. */
interface Stage {
  readonly t: Test
  readonly upstream: Upstream
  readonly folder: string
  readonly file: string
  /** The store's URL for reading, without the proxy. */
  readonly url: string
  readonly secret: string
}

async function startStage(t: Test, url: string | null, through: string | null): Promise<Stage> {
  const upstream = new Upstream()
  await upstream.open(t)
  const { emulator, folder, file } = await prepare(t, {
    server: 'workers: 1, drain_ms: 200',
    upstreams: ['openai'],
    ...(through === null ? {} : { store: through }),
  })
  const text = readFileSync(file, 'utf8')
  const own = `http://127.0.0.1:${upstream.port}`
  writeFileSync(file, text.replace(emulator.baseUrls.openai, own))
  const store = url ?? `sqlite:${join(folder, 'data', 'sluice.db')}`
  // One slot: if it were not released, no further request would be admitted.
  const secret = await makeKey(store, { concurrent: 1, nanoUsdPerDay: BUDGET })
  return { t, upstream, folder, file, url: store, secret }
}

async function started({ t, file }: Stage): Promise<{ program: Program; port: number }> {
  const program = run(t, ['serve', '--config', file])
  await until(() => program.out().includes('"sluice serves"'), 60_000)
  const port = Number(program.lines().find(({ msg }) => msg === 'sluice serves')?.['port'])
  return { program, port }
}

/** The status of a request; null if the connection broke. */
async function ask({ secret }: Stage, port: number): Promise<number | null> {
  try {
    const res = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        model: 'gpt-5.4-mini',
        max_tokens: 50,
        messages: [{ role: 'user', content: 'Hi.' }],
      }),
    })
    await res.text()
    return res.status
  } catch {
    return null
  }
}

/** All entries after expired reservations are settled, and the remaining budget. */
async function minutesLater({ url, secret }: Stage, rowsBefore: number) {
  const store = await openStore(url, { nowMs: () => Date.now() + LATER_MS, minTimeoutMs: 5_000 })
  try {
    await until(async () => (await countOf(store.ledger.export(0))).length >= rowsBefore)
    const lost = await store.ledger.expire()
    const rows = await countOf(store.ledger.export(0))
    const [row] = rows
    const subject = `key:${row?.keyId ?? ''};own`
    const [places, day] = await store.ledger.limitStates(row?.accountId ?? '', [
      { kind: 'concurrent', subject, shared: false, limit: 1 },
      { kind: 'usd_day', subject, shared: false, limitNanoUsd: BUDGET, costNanoUsd: 0 },
    ])
    return { lost, rows, places: places?.remaining, left: day?.remaining, secret }
  } finally {
    await store.close()
  }
}

async function countOf(batches: AsyncIterable<readonly LedgerEntry[]>): Promise<LedgerEntry[]> {
  const rows: LedgerEntry[] = []
  for await (const batch of batches) rows.push(...batch)
  return rows
}

const LOST_ENTRY = {
  source: 'assumed',
  upstream: 'openai',
  status: 500,
  errorMessage: /^The gateway process ended before this request did/,
}

/** The point at which the gateway is killed, and the expected ledger. */
interface Point {
  readonly name: string
  /** Sends the request and resolves when it has reached the point. */
  reach(stage: Stage, proxy: HoldingProxy, request: () => void): Promise<void>
  /** Requests that the upstream received. */
  readonly asked: number
  /** The expected entry: none, one with the outcome `lost`, or a complete one. */
  readonly row: 'none' | 'lost' | 'ok'
}

const HELD_UPSTREAM: Point = {
  name: 'after the upstream received the request',
  async reach({ upstream }, _proxy, request) {
    const before = upstream.asked
    upstream.holds = true
    request()
    await until(() => upstream.asked > before)
  },
  asked: 1,
  row: 'lost',
}

function atCommand(script: { sha: string }, what: 'command' | 'reply'): Point['reach'] {
  return async (_stage, proxy, request) => {
    const reached = proxy.hold(script.sha, what)
    request()
    await reached
  }
}

const POINTS: readonly Point[] = [
  {
    name: 'before it reserves',
    reach: atCommand(LEDGER_SCRIPTS.admit, 'command'),
    asked: 0,
    row: 'none',
  },
  {
    name: 'after it has reserved',
    reach: atCommand(LEDGER_SCRIPTS.admit, 'reply'),
    asked: 0,
    row: 'lost',
  },
  HELD_UPSTREAM,
  {
    name: 'before it settles',
    reach: atCommand(LEDGER_SCRIPTS.settle, 'command'),
    asked: 1,
    row: 'lost',
  },
  {
    name: 'after it has settled, before it replies',
    reach: atCommand(LEDGER_SCRIPTS.settle, 'reply'),
    asked: 1,
    row: 'ok',
  },
]

/**
 * Runs one round: a request that succeeds, one during which the gateway is killed, and a check of the ledger.
 */
async function cutAt(stage: Stage, proxy: HoldingProxy, { point, rounds }: { point: Point; rounds: number }) {
  const { t, upstream } = stage
  const { program, port } = await started(stage)
  t.equal(await ask(stage, port), 200, `${point.name}: the slot is free`)
  const askedBefore = upstream.asked
  let answered: Promise<number | null> = Promise.resolve(null)
  await point.reach(stage, proxy, () => {
    answered = ask(stage, port)
  })
  killAll(program)
  t.equal(await answered, null, 'the client gets no reply')
  proxy.release()
  upstream.release()
  await program.ended
  t.equal(upstream.asked - askedBefore, point.asked, `the upstream received ${point.asked}`)
  const { lost, rows, places, left } = await minutesLater(stage, rounds)
  t.equal(lost, point.row === 'lost' ? 1 : 0, 'the reservation is settled')
  const spent = rows.reduce((sum, { costNanoUsd }) => sum + (costNanoUsd ?? 0), 0)
  t.equal(left, BUDGET - spent, 'the budget matches the entries')
  t.equal(places, 1, 'the slot is free again')
  t.equal(new Set(rows.map(({ requestId }) => requestId)).size, rows.length, 'no entry is duplicated')
  return rows
}

function checkEntries(
  t: Test,
  { row }: Point,
  { before, rows }: { before: number; rows: readonly LedgerEntry[] },
): void {
  t.equal(rows.length, before + (row === 'none' ? 1 : 2))
  const lost = rows.filter(({ outcome }) => outcome === 'lost')
  for (const each of lost) t.match(each, LOST_ENTRY)
  for (const each of lost) t.ok((each.costNanoUsd ?? 0) > 0, 'charged with the maximum')
  const fine = rows.filter(({ outcome }) => outcome === 'ok')
  t.equal(fine.length + lost.length, rows.length)
  for (const { usage, source } of fine) {
    t.match({ usage, source }, { usage: { input: 11, output: 7 }, source: 'reported' })
  }
}

void t.test(
  'L-190: killed at a point of a request, over Redis',
  { ...options, ...(missing === false ? {} : { skip: missing }) },
  async (t) => {
    const redis = await startRedis(t)
    const proxy = await startHoldingProxy(t, redis.port)
    // A long timeout, so that no held command times out.
    const timeout = '?timeout_ms=9000'
    const through = `redis://127.0.0.1:${proxy.port}${timeout}`
    const stage = await startStage(t, `${redis.url()}${timeout}`, through)
    let rows: LedgerEntry[] = []
    for (const point of POINTS) {
      const before = rows.length
      const lostBefore = rows.filter(({ outcome }) => outcome === 'lost').length
      rows = await cutAt(stage, proxy, { point, rounds: before })
      checkEntries(t, point, { before, rows })
      const lost = rows.filter(({ outcome }) => outcome === 'lost').length
      t.equal(lost - lostBefore, point.row === 'lost' ? 1 : 0, `${point.name}: ${point.row}`)
    }
  },
)

/** Makes another process hold the lock that every change of the embedded ledger needs. */
async function lockHeld({ t, folder }: Stage): Promise<() => void> {
  const args = [HOLDER, join(folder, 'data', 'sluice.db'), '60000']
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  await once(child.stdout, 'data')
  return () => child.kill('SIGKILL')
}

void t.test(
  'L-190: killed at a point of a request, embedded',
  { ...options, skip: anotherDay(0, 2) },
  async (t) => {
    const stage = await startStage(t, null, null)
    let unlock: () => void = () => undefined
    const none: HoldingProxy = { port: 0, hold: () => Promise.resolve(), release: () => unlock() }
    // The embedded engine runs in the gateway: it cannot be held between a change and its result.
    const points: readonly Point[] = [
      {
        name: 'before it reserves',
        async reach(at, _proxy, request) {
          unlock = await lockHeld(at)
          request()
          await new Promise((resolve) => setTimeout(resolve, 200))
        },
        asked: 0,
        row: 'none',
      },
      HELD_UPSTREAM,
      {
        name: 'before it settles',
        async reach(at, proxy, request) {
          await HELD_UPSTREAM.reach(at, proxy, request)
          unlock = await lockHeld(at)
          at.upstream.release()
        },
        asked: 1,
        row: 'lost',
      },
    ]
    let rows: LedgerEntry[] = []
    for (const point of points) {
      const before = rows.length
      rows = await cutAt(stage, none, { point, rounds: before })
      checkEntries(t, point, { before, rows })
    }
  },
)
