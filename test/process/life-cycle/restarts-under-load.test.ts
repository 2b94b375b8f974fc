/**
 * Goal (G12): rolling restarts under load refuse and reset no connection; streams that finish within
 * `drain_ms` are complete, and the others get an error event.
 * Method: the real program with two workers, requests on persistent and new connections, open streams of
 * which some outlast the drain, SIGUSR2 again and again. `SLUICE_RESTARTS=50 SLUICE_STREAMS=500
 * SLUICE_RATE=200` is the full measurement.
 */
import { loadavg } from 'node:os'
import t from 'tap'
import { objectOf } from '../../../src/base/json.js'
import { startServe, until, type Served } from '../program.js'
import { tally, Traffic } from '../traffic.js'
import { anotherDay } from '../../helpers/long-suite.js'

const RESTARTS = Number(process.env['SLUICE_RESTARTS'] ?? '2')
const STREAMS = Number(process.env['SLUICE_STREAMS'] ?? '40')
const RATE = Number(process.env['SLUICE_RATE'] ?? '60')
const DRAIN_MS = RESTARTS >= 50 ? 10_000 : 2500
const PACE_MS = 250
/** Streams that finish in 60 % of the drain, and streams that outlast it. */
const WORDS = { short: (DRAIN_MS / PACE_MS) * 0.6, long: (DRAIN_MS / PACE_MS) * 2.4 }
t.setTimeout(120_000 + RESTARTS * 30_000)

interface Restarts {
  readonly settled: number
  readonly failure: string | null
  readonly pids: readonly unknown[]
}

async function restartsOf(served: Served): Promise<Restarts> {
  const page = JSON.parse((await served.ops('/workers')).text) as {
    workers: { pid: number }[]
    restarts: { settled: number; failure: string | null }
  }
  return { ...page.restarts, pids: page.workers.map(({ pid }) => pid) }
}

const skip = anotherDay(1, 6)
void t.test('G12: rolling restarts under load refuse and reset no connection', { skip }, async (t) => {
  const served = await startServe(t, { server: `workers: 2, drain_ms: ${DRAIN_MS}` })
  const { port, secret } = served
  let streams = 0
  const words = (): number => ((streams += 1) % 2 === 0 ? WORDS.short : WORDS.long)
  const load = { port, secret, perSecond: RATE, streams: STREAMS, words, paceMs: PACE_MS }
  const traffic = new Traffic(load)
  t.teardown(() => traffic.stop())
  await until(() => traffic.open > STREAMS * 0.8, 60_000)
  const first = await restartsOf(served)
  for (let round = 1; round <= RESTARTS; round += 1) {
    served.program.child.kill('SIGUSR2')
    await until(async () => (await restartsOf(served)).settled === round, 120_000, 50)
  }
  const last = await restartsOf(served)
  t.equal(last.failure, null)
  t.notOk(
    first.pids.some((pid) => last.pids.slice(0, 2).includes(pid)),
    'all workers are new',
  )
  // The previous workers end, and with them the streams that outlast the drain.
  await until(async () => (await restartsOf(served)).pids.length === 2, 60_000, 50)
  await traffic.stop()
  const [requests, ends] = [tally(traffic.requests), tally(traffic.streams)]
  t.same(Object.keys(requests), ['200 complete'], 'no request is refused, reset or answered 5xx')
  const { '200 complete': complete = 0, '200 error event draining': drained = 0, ...others } = ends
  t.same(others, {}, 'no stream ends without its terminator or an error event')
  t.ok(complete > 0, `${complete} streams are complete`)
  t.ok(drained > 0, `${drained} streams that outlast the drain get an error event`)
  const readyz = await served.ops('/readyz')
  t.match(objectOf(JSON.parse(readyz.text)), { ready: true })
  t.comment(
    `FIGURES ${RESTARTS} restarts, ${STREAMS} streams, ${RATE}/s (load ${loadavg()[0]?.toFixed()}): ` +
      `requests ${JSON.stringify(requests)}, streams ${JSON.stringify(ends)}`,
  )
})
