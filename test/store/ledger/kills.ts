/**
 * Every ledger keeps acknowledged writes when processes are killed: two at a time, with SIGKILL, during their
 * writes, each day at other numbers of writes. `SLUICE_KILLS` is the number of kills (2, in the long suite
 * 12).
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Test } from 'tap'
import type { Demand, Ledger } from '../../../src/store/ledger.js'
import { DAY as DAY_NUMBER, IS_LONG } from '../../helpers/long-suite.js'
import { budget, DAY, MINUTE, NOON, places, tokens, type LedgerUnderTest } from './sample-entries.js'
import { testProgram } from '../../helpers/test-program.js'

/** The program of a process that writes until it is killed. */
export const LEDGER_WRITER = testProgram('store/processes/writer-process')
/** The cost of each of its requests. */
export const WRITER_COST = 7
const RESERVED = 100
const PLACES = 1_000
const BUDGET = 1e12
const KILLS = Number(process.env['SLUICE_KILLS'] ?? (IS_LONG ? '12' : '2'))
const AT_ONCE = 2

/** The requests that the writers acknowledged. */
interface Acknowledged {
  readonly admitted: Set<string>
  readonly settled: Set<string>
  /** Entries without an admission and without a cost. */
  readonly appended: Set<string>
}

/** The demands of each of its requests. */
export function writerDemands(): Demand[] {
  const key = 'key:writer'
  return [
    places(PLACES, key),
    tokens(1e12, 5_000, key),
    budget('usd_day', { limitNanoUsd: BUDGET, costNanoUsd: RESERVED, subject: key }),
    budget('usd_month', { limitNanoUsd: BUDGET, costNanoUsd: RESERVED, subject: key }),
  ]
}

export async function killedWriters(t: Test, under: LedgerUnderTest): Promise<void> {
  const { ledger, clock, url } = under
  const acknowledged: Acknowledged = {
    admitted: new Set(),
    settled: new Set(),
    appended: new Set(),
  }
  let unsettled = 0
  for (let round = 0; round < KILLS / AT_ONCE; round += 1) {
    const lines = await Promise.all(
      Array.from({ length: AT_ONCE }, (_, at) =>
        killed(url, 5 + (((DAY_NUMBER + round) * 37 + at * 11) % 120)),
      ),
    )
    for (const line of lines.flat()) {
      const [what, id = ''] = line.split(' ')
      if (what === 'admitted') acknowledged.admitted.add(id)
      else if (what === 'settled') acknowledged.settled.add(id)
      else if (what === 'appended') acknowledged.appended.add(id)
      else t.fail(`unexpected output of a writer: ${line}`)
    }
    const [taken] = await ledger.limitStates('acc_ada', writerDemands())
    // A lease later, the reservations of the killed processes are settled once, and no slot is in use.
    clock.atMs = NOON + MINUTE
    const ended = await ledger.expire()
    clock.atMs = NOON
    if (PLACES - (taken?.remaining ?? 0) !== ended) t.fail('a place without a reservation, or two')
    unsettled += ended
  }
  t.ok(
    acknowledged.settled.size > KILLS,
    `${KILLS} killed writers settled ${acknowledged.settled.size} requests`,
  )
  await agreed(t, ledger, { acknowledged, unsettled })
}

/** Each acknowledged request has one entry, and limits, budgets and sums match the entries. */
async function agreed(
  t: Test,
  ledger: Ledger,
  { acknowledged, unsettled }: { acknowledged: Acknowledged; unsettled: number },
): Promise<void> {
  const ids = new Map<string, string>()
  let cost = 0
  let twice = 0
  let free = 0
  for (let after: string | null = null, more = true; more; more = after !== null) {
    const page = await ledger.entries({ accountId: null, after, limit: 1_000 })
    for (const row of page.entries) {
      if (ids.has(row.requestId)) twice += 1
      ids.set(row.requestId, row.outcome)
      cost += row.costNanoUsd ?? 0
      if (row.costNanoUsd === 0) free += 1
    }
    after = page.next
  }
  const all = [...ids.values()]
  const lost = all.filter((outcome) => outcome === 'lost').length
  t.equal(twice, 0, 'no request has two entries')
  t.same(
    [...acknowledged.settled, ...acknowledged.appended].filter((id) => ids.get(id) !== 'ok'),
    [],
    'every settled or appended request has an entry',
  )
  t.same(
    [...acknowledged.admitted].filter((id) => !ids.has(id)),
    [],
    'every admitted request has an entry',
  )
  t.equal(lost, unsettled, 'running requests have entries with the outcome lost')
  const most = acknowledged.admitted.size + acknowledged.appended.size + KILLS * 8
  t.ok(all.length <= most, 'other entries are at most those of running requests')
  t.equal(cost, (all.length - lost - free) * WRITER_COST + lost * RESERVED)
  const [place, , day, month] = await ledger.limitStates('acc_ada', writerDemands())
  t.equal(place?.remaining, PLACES, 'no slot is in use')
  t.equal(day?.remaining, BUDGET - cost, 'the budget of the day matches the entries')
  t.equal(month?.remaining, BUDGET - cost, 'the budget of the month matches the entries')
  const sums = await ledger.sums({ accountId: null, by: 'hour', fromMs: 0, toMs: NOON + DAY })
  t.equal(
    sums.reduce((sum, each) => sum + each.requests, 0),
    all.length,
    'the sums match the entries',
  )
}

/**
 * Runs a writer until it has acknowledged a number of requests, kills it, and returns its acknowledgements.
 */
async function killed(url: string, lines: number): Promise<string[]> {
  const child = spawn(process.execPath, [LEDGER_WRITER, url], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    output += chunk
    if (output.split('\n').length > lines) child.kill('SIGKILL')
  })
  await once(child, 'close')
  return output.split('\n').slice(0, -1)
}
