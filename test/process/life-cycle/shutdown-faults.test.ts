/**
 * Goal: clients get an error with the cause for every kind of process end, and no entry of a completed
 * request is lost.
 * Method: the real program with open streams and requests under way; signals, twice; heaps that are too
 * small.
 */
import { createServer } from 'node:net'
import { once } from 'node:events'
import { dirname, join } from 'node:path'
import t from 'tap'
import type { LedgerEntry } from '../../../src/ledger/entry.js'
import { openStore } from '../../../src/store/open-store.js'
import { anotherDay } from '../../helpers/long-suite.js'
import { isRunning, hasAllWorkers, startServe, until, type Served } from '../program.js'
import { tally, Traffic } from '../traffic.js'

/** All reservations have expired by then. */
const LATER_MS = 120_000
const ENDLESS = {
  stream: true,
  messages: [{ role: 'user', content: '[[words: 4000]] [[pace: 100]]' }],
}
t.setTimeout(170_000)

/** The ledger entries after all requests have ended. */
async function rowsOf(served: Served): Promise<Map<string, LedgerEntry>> {
  const url = `sqlite:${join(dirname(served.file), 'data', 'sluice.db')}`
  const store = await openStore(url, { nowMs: () => Date.now() + LATER_MS })
  try {
    await store.ledger.expire()
    const rows = new Map<string, LedgerEntry>()
    for await (const batch of store.ledger.export(0)) {
      for (const row of batch) rows.set(row.requestId, row)
    }
    return rows
  } finally {
    await store.close()
  }
}

/** The tests of a day. */
const EVEN = { skip: anotherDay(0, 2) }
const ODD = { skip: anotherDay(1, 2) }
const idOf = (response: Response): string => response.headers.get('x-request-id') ?? ''

void t.test('J-145: 200 streams that outlast the drain each get an error event', ODD, async (t) => {
  const served = await startServe(t, { server: 'workers: 2, drain_ms: 1000' })
  const { port, secret } = served
  let isDraining = false
  const words = (): number => (isDraining ? 1 : 400)
  const load = { port, secret, perSecond: 0.001, streams: 200, words, paceMs: 250 }
  const traffic = new Traffic(load)
  await until(() => traffic.open === 200, 60_000)
  isDraining = true
  const stopped = traffic.stop()
  served.program.child.kill('SIGTERM')
  t.equal(await served.program.ended, 0)
  await stopped
  t.same(tally(traffic.streams), { '200 error event draining': 200 })
})

void t.test('J-146: SIGTERM during requests loses no ledger entry and no log line', EVEN, async (t) => {
  const served = await startServe(t)
  const asking = Array.from({ length: 200 }, async () => {
    const response = await served.chat().catch(() => null)
    const text = (await response?.text().catch(() => '')) ?? ''
    return response !== null && response.status === 200 && text !== '' ? idOf(response) : null
  })
  await until(() => served.emulator.ledger.length >= 20)
  served.program.child.kill('SIGTERM')
  const answered = (await Promise.all(asking)).filter((id) => id !== null)
  t.equal(await served.program.ended, 0)
  t.ok(answered.length > 0, `${answered.length} requests were served`)
  const rows = await rowsOf(served)
  t.same(
    answered.filter((id) => !rows.has(id)),
    [],
    'each request has its entry',
  )
  const logged = served.program.lines().filter(({ msg, outcome }) => msg === 'exchange' && outcome === 'ok')
  t.same(
    logged.map(({ request_id: id }) => String(id)).sort(),
    [...answered].sort(),
    'each request has its log line',
  )
  t.equal([...rows.values()].filter(({ outcome }) => outcome === 'lost').length, 0)
})

void t.test('J-147: a second signal ends at once; the ledger is consistent', ODD, async (t) => {
  const served = await startServe(t)
  const done: string[] = []
  for (let sent = 0; sent < 5; sent += 1) {
    const response = await served.chat()
    await response.text()
    done.push(idOf(response))
  }
  const running = await Promise.all(Array.from({ length: 3 }, () => served.chat(ENDLESS)))
  const reading = running.map((response) => response.text().catch(() => ''))
  // A request without limits is noted in the store when it has run for half a second.
  await new Promise((resolve) => setTimeout(resolve, 1_500))
  served.program.child.kill('SIGTERM')
  await until(async () => (await served.ops('/readyz')).status === 503)
  served.program.child.kill('SIGINT')
  t.equal(await served.program.ended, 1)
  for (const text of await Promise.all(reading)) t.notMatch(text, '[DONE]')
  const rows = await rowsOf(served)
  t.equal(rows.size, 8, 'one entry for each request')
  for (const id of done) t.match(rows.get(id), { outcome: 'ok', source: 'reported' })
  for (const response of running) t.ok(rows.has(idOf(response)), 'also for truncated replies')
})

void t.test(
  'J-152: with a heap that is too small, bodies are refused or the worker is replaced, and the gateway still serves',
  ODD,
  async (t) => {
    const env = { NODE_OPTIONS: '--max-old-space-size=64' }
    const served = await startServe(t, {}, env)
    const content = 'x'.repeat(6_000_000)
    const large = Array.from({ length: 16 }, async () => {
      const response = await served.chat({ messages: [{ role: 'user', content }] }).catch(() => null)
      await response?.text().catch(() => '')
      return response?.status ?? 0
    })
    const statuses = await Promise.all(large)
    t.comment(statuses.join(' '))
    for (const status of statuses) t.ok([0, 200, 413, 429, 502, 503].includes(status), `${status}`)
    await until(async () => hasAllWorkers(await served.ops('/readyz')), 60_000)
    const small = await served.chat()
    t.equal(small.status, 200)
    await small.text()
    t.ok(isRunning(served.program.pid))
    t.notMatch(served.program.err(), 'x'.repeat(100), 'no prompt in a crash report')
  },
)

void t.test('J-154: SIGPIPE and SIGUSR1 change nothing, SIGQUIT ends all processes', EVEN, async (t) => {
  const served = await startServe(t)
  const workers = served.program.workers()
  for (const pid of [served.program.pid, ...workers]) {
    process.kill(pid, 'SIGPIPE')
    process.kill(pid, 'SIGUSR1')
  }
  const ignored = (): number => served.program.lines().filter(({ msg }) => msg === 'signal ignored').length
  await until(() => ignored() === 3)
  t.equal((await served.chat()).status, 200)
  t.same(served.program.workers(), workers)
  t.notMatch(served.program.err(), 'Debugger', 'no inspector opens')
  served.program.child.kill('SIGQUIT')
  t.equal(await served.program.ended, 'SIGQUIT')
  await until(() => !workers.some(isRunning))
  const server = createServer().listen(served.port, '127.0.0.1')
  await once(server, 'listening')
  server.close()
})
