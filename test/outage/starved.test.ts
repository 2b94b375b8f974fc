/**
 * Goal: a gateway that the system does not schedule refuses no request: a late timer of its own is no proof
 * of an overload or of an outage of the store.
 * Method: the real program with its default number of workers and limits of every kind, under a steady load:
 * while other processes keep every core busy, and while all its processes are stopped for 320 of each 400 ms.
 * Each day has one of them, or none. `SLUICE_OUTAGE_SECONDS=60` sets the length.
 */
import { spawn } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { redisMissing, startRedis } from '../helpers/redis.js'
import { startServe, type Served } from '../process/program.js'
import { anotherDay } from '../helpers/long-suite.js'
import { Load } from './load.js'

const SECONDS = Number(process.env['SLUICE_OUTAGE_SECONDS'] ?? '6')
/** Busy processes for each core. */
const BUSY = Number(process.env['SLUICE_BUSY'] ?? '4')
const PERIOD_MS = 400
const STOPPED_MS = 320
const LIMITS =
  'limits: [{ scope: key, requests_per_minute: 100000, tokens_per_minute: 100000000, concurrent: 1000, usd_per_day: 1000 }]'

const SLOW_MS = 10_000
const timeout = 60_000 + SECONDS * 4_000

t.setTimeout(3 * timeout)

void t.test('every core is kept busy by others', { timeout, skip: anotherDay(1, 4) }, async (t) => {
  const served = await started(t, 'SQLite')
  const stop = keepBusy(t)
  await load(t, served, 20)
  stop()
})

const missing = redisMissing()

for (const [store, skip] of [
  ['SQLite', anotherDay(0, 4)],
  ['Redis', anotherDay(2, 4) || missing],
] as const) {
  const options = { timeout, ...(skip === false ? {} : { skip }) }
  void t.test(`${store}: the gateway is stopped for most of the time`, options, async (t) => {
    const served = await started(t, store)
    const stop = interrupt(t, served)
    await load(t, served, 15)
    stop()
  })
}

async function started(t: Test, store: string): Promise<Served> {
  // Less than a stop of the gateway, and more than a busy machine lets Redis wait.
  const redis = store === 'Redis' ? { store: `${(await startRedis(t)).url()}?timeout_ms=250` } : {}
  return startServe(t, { server: 'drain_ms: 1000', more: LIMITS, ...redis })
}

/** Keeps every core busy until the function that it returns is called. */
function keepBusy(t: Test): () => void {
  const busy = Array.from({ length: BUSY * availableParallelism() }, () =>
    spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }),
  )
  const end = (): void => busy.forEach((each) => each.kill('SIGKILL'))
  t.teardown(end)
  return end
}

/** Stops all processes of the gateway for `STOPPED_MS` of each `PERIOD_MS`. */
function interrupt(t: Test, { program }: Served): () => void {
  const pids = [program.pid, ...program.workers()]
  const signal = (name: 'SIGSTOP' | 'SIGCONT'): void => pids.forEach((pid) => process.kill(pid, name))
  const turn = setInterval(() => {
    signal('SIGSTOP')
    setTimeout(() => signal('SIGCONT'), STOPPED_MS)
  }, PERIOD_MS)
  const end = (): void => {
    clearInterval(turn)
    signal('SIGCONT')
  }
  t.teardown(end)
  return end
}

async function load(t: Test, served: Served, perSecond: number): Promise<void> {
  const { program, port, secret } = served
  const running = new Load(port, [{ name: 'known', secret: () => secret, perSecond, catchesUp: true }])
  await delay(SECONDS * 1_000)
  await running.stop()
  // A machine with little left for the gateway may not serve all of them in time.
  const inTime = running.answers.filter(({ status, ms }) => status !== 0 || ms < SLOW_MS)
  const refusals = inTime.filter(({ status }) => status !== 200)
  t.same(refusals.map(({ status, text }) => `${status} ${text}`).slice(0, 3), [], 'none is refused')
  t.ok(inTime.length >= perSecond, `${inTime.length} requests`)
  const warnings = program
    .lines()
    .filter(({ level }) => level !== 'info')
    .map(({ msg, reason, outcome, err }) => JSON.stringify([msg, reason ?? outcome, err]))
  t.same([...new Set(warnings)], [], 'nothing is reported as overloaded or unavailable')
}
