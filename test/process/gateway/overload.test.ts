/**
 * Goal: an overloaded process refuses requests with 503 and `retry-after`, by priority; health and metrics
 * answer throughout; it recovers by itself, and not before `hold_ms` (G4).
 * Method: the real program. A module that it loads keeps its event loop busy for most of the time; its slots
 * are filled with requests without a reply of the upstream, or with an open loop of three and ten times the
 * rate that its slots can serve, each on one day of four. Latencies are printed without a limit: the machine
 * that runs the tests has other work.
 */
import { dirname, join } from 'node:path'
import t from 'tap'
import { createKey } from '../../helpers/keys.js'
import { findAccount } from '../../../src/accounts/changes/change-accounts.js'
import type { Labels } from '../../../src/accounts/labels.js'
import { openStore } from '../../../src/store/open-store.js'
import { EMAIL, startServe, until, type Served } from '../program.js'
import { anotherDay, IS_LONG } from '../../helpers/long-suite.js'

const HOLD_MS = 1_500

async function keyWith({ file }: Served, labels: Labels): Promise<string> {
  const store = await openStore(`sqlite:${join(dirname(file), 'data', 'sluice.db')}`)
  const account = await findAccount(store, EMAIL)
  if (account === null) throw new Error('there is no account')
  const plan = { priceUsd: 0, maxKeys: null }
  const { secret } = await createKey(store, {
    plans: { starter: plan, pro: plan, max: plan },
    account,
    name: 'x',
    labels,
  })
  await store.close()
  return secret
}

async function levelOf(served: Served): Promise<number> {
  const { status, text } = await served.ops('/metrics')
  if (status !== 200) throw new Error(`/metrics answered ${status}`)
  return Number(/^sluice_overload_level (\d)/m.exec(text)?.[1])
}

/** A module that uses 150 ms of CPU in a turn every 200 ms, from one SIGWINCH to the next. */
const BUSY = `
  let isBusy = false
  process.on('SIGWINCH', () => (isBusy = !isBusy))
  setInterval(() => {
    for (const since = process.cpuUsage(); isBusy && process.cpuUsage(since).user < 150_000;) {
      for (const endMs = performance.now() + 5; performance.now() < endMs;);
    }
  }, 200).unref()`

async function refusal(res: Response): Promise<object> {
  const { error } = (await res.json()) as { error: { kind: string; code: string | null } }
  const { kind, code } = error
  return { status: res.status, retry: res.headers.get('retry-after'), kind, code }
}

const REFUSED = { status: 503, retry: /^[1-5]$/, kind: 'overloaded', code: null }

void t.test(
  'G-106, G-112: a delayed event loop refuses requests by priority',
  { timeout: 120_000 },
  async (t) => {
    const server = `workers: 1, drain_ms: 500, overload: { delay_ms: [60, 100, 60000], rise_ms: 500, hold_ms: ${HOLD_MS} }`
    const module = `data:text/javascript,${encodeURIComponent(BUSY)}`
    const served = await startServe(t, { server }, { NODE_OPTIONS: `--import=${module}` })
    const high = await keyWith(served, { priority: 'high' })
    t.equal((await served.chat()).status, 200)
    t.equal(await levelOf(served), 0)
    served.program.child.kill('SIGWINCH')
    await until(async () => (await levelOf(served)) === 2, 60_000)
    t.match(await refusal(await served.chat()), REFUSED)
    const kept = await fetch(`http://127.0.0.1:${served.port}/v1/models`, {
      headers: { authorization: `Bearer ${high}` },
    })
    t.equal(kept.status, 200, 'high priority is served')
    t.equal(kept.headers.get('connection'), 'close')
    // An unread reply whose connection ends is an error in undici that nothing can catch.
    await kept.text()
    t.equal((await served.ops('/healthz')).status, 200)
    const ready = await served.ops('/readyz')
    t.match(ready, { status: 200, text: /level 2 of 3: event loop delay/ })
    t.match((await served.ops('/metrics')).text, /^sluice_shed_total\{resource="delay"\} [1-9]/m)
    served.program.child.kill('SIGWINCH')
    const endedAtMs = Date.now()
    await until(async () => (await levelOf(served)) === 0, 60_000)
    t.ok(Date.now() - endedAtMs >= HOLD_MS - 300, 'the level held for hold_ms')
    t.equal((await served.chat()).status, 200)
    const isLogged = (event: string): boolean => served.program.lines().some(({ msg }) => msg === event)
    await until(() => isLogged('overloaded') && isLogged('no longer overloaded'))
    const shed = served.program.lines().filter(({ outcome }) => outcome === 'overloaded')
    t.match(shed, [{ status: 503 }])
  },
)

void t.test(
  'G-105, G-112: too many requests in progress are refused by priority',
  { timeout: 60_000 },
  async (t) => {
    const served = await startServe(t, {
      server: 'workers: 1, drain_ms: 500, overload: { max_inflight: 5, rise_ms: 60000 }',
    })
    const high = await keyWith(served, { priority: 'high' })
    const { emulator } = served
    emulator.script({ fault: { kind: 'hang' } })
    const gone = new AbortController()
    const held = Array.from({ length: 5 }, () =>
      fetch(`http://127.0.0.1:${served.port}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization: `Bearer ${served.secret}`, 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'gpt-4o', messages: [{ role: 'user', content: 'Hi' }] }),
        signal: gone.signal,
      }).catch(() => null),
    )
    await until(() => emulator.open() === 5)
    emulator.reset()
    t.match(await refusal(await served.chat()), REFUSED)
    t.equal((await served.chat({}, high)).status, 200)
    t.equal((await served.ops('/healthz')).status, 200)
    t.match((await served.ops('/metrics')).text, /^sluice_shed_total\{resource="in_flight"\} 1/m)
    gone.abort()
    await Promise.all(held)
    await until(async () => (await served.chat()).status === 200)
  },
)

/** One request of an open loop. */
interface Shot {
  readonly status: number
  readonly tookMs: number
  readonly retryAfter: string | null
}

const UPSTREAM_MS = 1_000
const IN_FLIGHT = 20
/** Of the upstream's delay and the maximum number of requests in progress. */
const CAPACITY_PER_SECOND = IN_FLIGHT / (UPSTREAM_MS / 1000)

for (const [number, times] of [3, 10].entries()) {
  const skip = anotherDay(2 * number + 1, 4)
  void t.test(`G-105, G-112: ${times} times the load`, { skip, timeout: 120_000 }, async (t) => {
    const seconds = IS_LONG ? 60 : 6
    const served = await startServe(t, {
      server: `workers: 1, drain_ms: 500, overload: { max_inflight: ${IN_FLIGHT}, rise_ms: 60000 }`,
    })
    const high = await keyWith(served, { priority: 'high' })
    served.emulator.script({ fault: { kind: 'delay', ms: UPSTREAM_MS, mode: 'headers' } })
    const ordinary = openLoop(served, served.secret, {
      perSecond: CAPACITY_PER_SECOND * times,
      seconds,
    })
    const important = openLoop(served, high, { perSecond: 0.5, seconds })
    const health: Shot[] = []
    while (health.length < seconds * 4) {
      for (const path of ['/healthz', '/metrics']) health.push(await timed(() => opsOf(served, path)))
      await new Promise((resolve) => setTimeout(resolve, 400))
    }
    const shots = await ordinary
    const done = shots.filter(({ status }) => status === 200)
    const refused = shots.filter(({ status }) => status === 503)
    t.equal(done.length + refused.length, shots.length, 'served, or refused with 503')
    // Little's law: the average number of slots in use.
    const totalMs = done.reduce((sum, { tookMs }) => sum + tookMs, 0)
    const inUse = totalMs / 1000 / seconds
    t.ok(inUse >= 0.85 * IN_FLIGHT, `${inUse.toFixed(1)} of ${IN_FLIGHT} places are in use`)
    t.ok(refused.length > shots.length * (1 - 1.5 / times), `${refused.length} are refused`)
    t.ok(
      refused.every(({ retryAfter }) => /^[1-5]$/.test(retryAfter ?? '')),
      'with retry-after',
    )
    // By the gateway's own clock: on a busy machine, this process sends its requests late.
    const loggedMs = (status: number): number =>
      at(
        served.program
          .lines()
          .filter((line) => line['status'] === status)
          .map((line) => ({ tookMs: Number(line['duration_ms']) })),
        0.5,
      )
    t.ok(loggedMs(503) < loggedMs(200) / 2, `refusals are sent at once: ${loggedMs(503).toFixed(1)} ms`)
    const kept = await important
    t.ok(
      kept.every(({ status }) => status === 200),
      'every request of high priority is served',
    )
    t.ok(
      health.every(({ status }) => status === 200),
      'health and metrics are served',
    )
    t.comment(
      `refused p50 ${at(refused, 0.5).toFixed(1)} ms, p99 ${at(refused, 0.99).toFixed(1)} ms, served p50 ${at(done, 0.5).toFixed(0)} ms, p99 ${at(done, 0.99).toFixed(0)} ms, health worst ${at(health, 1).toFixed(1)} ms`,
    )
    t.equal((await served.chat()).status, 200, 'the gateway recovers at once')
  })
}

/** Sends a number of requests per second at fixed times, regardless of their replies. */
async function openLoop(
  served: Served,
  secret: string,
  { perSecond, seconds }: { perSecond: number; seconds: number },
): Promise<Shot[]> {
  const beganMs = performance.now()
  const shots: Promise<Shot>[] = []
  while (shots.length < perSecond * seconds) {
    const due = Math.min(perSecond * seconds, ((performance.now() - beganMs) / 1000) * perSecond)
    while (shots.length < due) {
      shots.push(
        timed(() =>
          fetch(`http://127.0.0.1:${served.port}/v1/chat/completions`, {
            method: 'POST',
            headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
            body: JSON.stringify({ model: 'gpt-4o', messages: [{ role: 'user', content: 'Hi' }] }),
          }),
        ),
      )
    }
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  return Promise.all(shots)
}

function opsOf({ opsPort }: Served, path: string): Promise<Response> {
  return fetch(`http://127.0.0.1:${opsPort}${path}`)
}

async function timed(ask: () => Promise<Response>): Promise<Shot> {
  const beganMs = performance.now()
  const reply = await ask()
  await reply.arrayBuffer()
  const { status, headers } = reply
  return { status, tookMs: performance.now() - beganMs, retryAfter: headers.get('retry-after') }
}

/** The quantile of the durations of the requests. */
function at(shots: readonly Pick<Shot, 'tookMs'>[], share: number): number {
  const times = shots.map(({ tookMs }) => tookMs).sort((a, b) => a - b)
  return times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0
}
