/**
 * The limits of every ledger are exact: 200 concurrent requests, in one process and in four, for each kind of
 * demand; each day a half of the kinds in one round, in the long suite all in two (`SLUICE_LEDGER_ROUNDS`).
 */
import { randomBytes } from 'node:crypto'
import type { Test } from 'tap'
import type { Admission, Demand } from '../../../src/store/ledger.js'
import type { LedgerEntry } from '../../../src/ledger/entry.js'
import type { LedgerOrder } from '../processes/ledger-process.js'
import { obedientProcess } from '../processes/start-processes.js'
import {
  anAdmission,
  aName,
  aRow,
  budget,
  DAY,
  NOON,
  places,
  requests,
  tokens,
  type LedgerUnderTest,
} from './sample-entries.js'
import { testProgram } from '../../helpers/test-program.js'
import { IS_LONG, ofToday } from '../../helpers/long-suite.js'

/** The program of another process at the same ledger. */
export const LEDGER_CHILD = testProgram('store/processes/ledger-process')
const ROUNDS = Number(process.env['SLUICE_LEDGER_ROUNDS'] ?? (IS_LONG ? '2' : '1'))
const AT_ONCE = 200
const FIT = 60

/** Demands by kind, each of which admits exactly `FIT` requests. */
const KINDS: Readonly<Record<string, (subject: string) => Demand>> = {
  requests: (subject) => requests(FIT, { subject }),
  'shared requests': (subject) => requests(FIT, { subject, shared: true }),
  tokens: (subject) => tokens(FIT * 250 + 249, 250, subject),
  concurrent: (subject) => places(FIT, subject),
  usd_day: (subject) => budget('usd_day', { limitNanoUsd: FIT * 1_000 + 999, costNanoUsd: 1_000, subject }),
  usd_week: (subject) => budget('usd_week', { limitNanoUsd: FIT * 1_000 + 1, costNanoUsd: 1_000, subject }),
  usd_month: (subject) => budget('usd_month', { limitNanoUsd: FIT * 1_000, costNanoUsd: 1_000, subject }),
}

export async function exactness(t: Test, { ledger, url }: LedgerUnderTest): Promise<void> {
  const others = await Promise.all([1, 2, 3].map(() => obedientProcess<LedgerOrder>(t, LEDGER_CHILD, url)))
  await Promise.all(others.map((other) => other.tell({ op: 'clock', atMs: NOON })))
  const here = async (admissions: readonly Admission[]): Promise<boolean[]> =>
    (await Promise.all(admissions.map((each) => ledger.admit(each)))).map((each) => each.admitted)
  const everywhere = async (admissions: readonly Admission[]): Promise<boolean[]> => {
    const quarter = admissions.length / 4
    const parts = [0, 1, 2, 3].map((at) => admissions.slice(at * quarter, (at + 1) * quarter))
    const answers = await Promise.all([
      here(parts[0] ?? []),
      ...others.map((other, at) => other.tell({ op: 'admit', admissions: parts[at + 1] ?? [] })),
    ])
    return answers.flat().map(Boolean)
  }
  for (const [kind, demandOf] of ofToday(Object.entries(KINDS), 2)) {
    for (const [where, admit] of Object.entries({
      'one process': here,
      'four processes': everywhere,
    })) {
      for (let round = 0; round < ROUNDS; round += 1) {
        const demand = demandOf(aName('key'))
        const admissions = Array.from({ length: AT_ONCE }, () => anAdmission([demand]))
        const admitted = (await admit(admissions)).filter(Boolean).length
        t.equal(admitted, FIT, `${kind} admits ${FIT} of ${AT_ONCE} concurrent requests in ${where}`)
        const [left] = await ledger.limitStates('acc_ada', [demand])
        t.ok((left?.remaining ?? -1) >= 0 && (left?.remaining ?? 0) < 1_000, 'almost nothing remains')
      }
    }
  }

  const all = Object.values(KINDS).map((demandOf) => demandOf(aName('key')))
  const twice = Array.from({ length: FIT }, () => anAdmission(all))
  const answers = await everywhere([...twice, ...twice, ...twice, ...twice])
  t.ok(answers.every(Boolean), 'each request sent from four processes is admitted')
  const rest = await ledger.limitStates('acc_ada', all)
  t.same(
    rest.map(({ remaining }) => remaining),
    [0, 0, 249, 0, 999, 1, 0],
    'each request is counted once',
  )

  const rows = twice.map(({ requestId }) => aRow({ requestId, keyId: 'key_race', costNanoUsd: 0 }))
  const outcomes = (
    await Promise.all([
      ...rows.map((row) => ledger.settle(row)),
      ...others.map((other) => other.tell({ op: 'settle', rows })),
    ])
  ).flat()
  t.equal(outcomes.length, 4 * FIT)
  t.equal(outcomes.filter((outcome) => outcome === 'settled').length, FIT, 'each request is settled once')
  const sums = await ledger.sums({ accountId: 'acc_ada', by: 'hour', fromMs: NOON, toMs: NOON })
  t.equal(sums.find(({ keyId }) => keyId === 'key_race')?.requests, FIT)
  t.same(
    (await ledger.limitStates('acc_ada', all)).map(({ remaining }) => remaining),
    [0, 0, FIT * 250 + 249 - FIT * 120, FIT, ...[999, 1, 0].map((rest) => FIT * 1_000 + rest)],
    'unused amounts are returned once',
  )
}

/** Concurrent requests have different ids that contain their time, as the gateway's do. */
export async function crowds(t: Test, { ledger }: LedgerUnderTest): Promise<void> {
  const ids = Array.from({ length: 60 }, (_, at) => timedId(NOON + at))
  const rowsOf = (from: number, to: number): LedgerEntry[] =>
    ids.slice(from, to).map((requestId, at) => aRow({ requestId, atMs: NOON + from + at }))
  const settleAll = async (rows: readonly LedgerEntry[]): Promise<number> => {
    const outcomes = await Promise.all(rows.map((row) => ledger.settle(row)))
    return outcomes.filter((outcome) => outcome === 'settled').length
  }
  const early = rowsOf(0, 20)
  t.equal(
    await settleAll([...early.slice(5), ...early.slice(10)]),
    15,
    'settles each request of one turn once',
  )
  t.equal(await settleAll([...rowsOf(20, 30), ...early]), 15, 'settles older requests among newer ones')
  t.equal(await settleAll([...rowsOf(10, 40)]), 10, 'settles only requests without an entry')
  const demands = [places(100)]
  const admissions = ids.slice(30).map((requestId) => anAdmission(demands, { requestId }))
  const results = await Promise.all([...admissions, ...admissions].map((one) => ledger.admit(one)))
  t.ok(results.every(({ admitted }) => admitted))
  const left = async (): Promise<number> => {
    const [standing] = await ledger.limitStates('acc_ada', demands)
    return standing?.remaining ?? Number.NaN
  }
  t.equal(await left(), 80, 'frees one slot for each settled request')
  t.equal(await settleAll([...rowsOf(30, 60), ...rowsOf(30, 60)]), 20)
  t.equal(await left(), 100)
  const { entries: rows } = await ledger.entries({ accountId: 'acc_ada', after: null, limit: 100 })
  t.same(
    rows.map(({ requestId }) => requestId),
    ids.toReversed(),
  )
  const sums = await ledger.sums({ accountId: 'acc_ada', by: 'hour', fromMs: 0, toMs: NOON + DAY })
  t.equal(
    sums.reduce((sum, { requests }) => sum + requests, 0),
    60,
  )
}

/** A UUID of version 7. */
function timedId(atMs: number): string {
  const time = atMs.toString(16).padStart(12, '0')
  const chance = randomBytes(9).toString('hex')
  const [a, b, c] = [chance.slice(0, 3), chance.slice(3, 6), chance.slice(6)]
  return `${time.slice(0, 8)}-${time.slice(8)}-7${a}-8${b}-${c}`
}
