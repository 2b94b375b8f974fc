/**
 * Reads of usage as the dashboard and the admin API make them, and the cost of the writes that they need. The
 * store has 10,000 keys and a million entries: an embedded one, and with `--only redis` a Redis server of the
 * benchmark.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openStore } from '../../src/store/open-store.js'
import type { Store } from '../../src/store/store.js'
import { ExactUsage } from '../../src/usage/exact-usage.js'
import { rangeOf } from '../../src/usage/ranges.js'
import { accountReport } from '../../src/usage/reports.js'
import { statementOf } from '../../src/usage/statements.js'
import { groupsIn, type Grouping } from '../../src/usage/usage-groups.js'
import { fillStore } from '../../test/dashboard/fixtures/large-store.js'
import { Children, freePorts, listening } from '../processes/children.js'
import { CORES } from '../processes/machine.js'
import { figure, type Figure, type Pace, type SuiteResult } from '../report/figures.js'

const KEYS = 10_000
const ACCOUNTS = 1_000
/** Thousands of entries without `--archived`. */
const THOUSANDS = 1_000
const ROUNDS = 5
const DAY_MS = 86_400_000
const KEPT = { entriesMs: 0, hoursMs: 0 }
const GROUPINGS: readonly Grouping[] = ['key', 'model', 'account', 'parent', 'upstream', 'label:team']

/** `--archived` is the number of entries in thousands, `--rounds` how often each read is repeated. */
export async function runUsage({ archived, rounds, only }: Pace): Promise<SuiteResult> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-usage-'))
  const children = new Children()
  const figures: Figure[] = []
  try {
    const engine = only?.includes('redis') === true ? 'redis' : 'sqlite'
    const address = engine === 'redis' ? await startRedis(children) : `sqlite:${folder}/store.db`
    const store = await openStore(address)
    try {
      figures.push(await written(store, 1_000 * (archived ?? THOUSANDS)))
      for (const [name, read] of readsOf(store)) figures.push(await timed(name, read, rounds ?? ROUNDS))
    } finally {
      await store.close()
    }
  } finally {
    await children.close()
    rmSync(folder, { recursive: true, force: true })
  }
  return { figures, remarks: [] }
}

async function startRedis(children: Children): Promise<string> {
  const [port = 0] = await freePorts(1)
  const args = ['--bind', '127.0.0.1', '--port', String(port), '--save', '']
  await listening(port, children.start(CORES.rest, ['redis-server', ...args], { stdio: 'ignore' }))
  return `redis://127.0.0.1:${port}?timeout_ms=9999`
}

/** CPU time of this process for an entry and its sums; keys and accounts are made meanwhile. */
async function written(store: Store, rows: number): Promise<Figure> {
  const cpu = process.cpuUsage()
  await fillStore(store, { keys: KEYS, rows, accounts: ACCOUNTS, isSpread: true }, Date.now())
  // Adds up what has not been added yet.
  await store.ledger.sums({ accountId: null, by: 'hour', fromMs: 0, toMs: 1 })
  const { user, system } = process.cpuUsage(cpu)
  return figure('usage.cpu_of_a_write', [(user + system) / rows], { unit: 'µs' })
}

type Read = () => Promise<unknown>

function readsOf(store: Store): [name: string, read: Read][] {
  const over = (range: '1h' | '24h' | '30d'): ExactUsage =>
    new ExactUsage(store.ledger, rangeOf({ range }, Date.now(), KEPT))
  const all = { accountId: null }
  const perModel = { ...all, per: 'model' } as const
  const entries = { ...all, after: null, limit: 50 }
  const month = new Date(Date.now() - DAY_MS).toISOString().slice(0, 7)
  const lastDays = (): { fromMs: number; toMs: number } => ({
    fromMs: Date.now() - 30 * DAY_MS,
    toMs: Date.now(),
  })
  return [
    ['hour_by_minute', () => over('1h').sums(perModel)],
    ['day_by_hour', () => over('24h').sums(perModel)],
    ['month_by_day', () => over('30d').sums(perModel)],
    ...GROUPINGS.map((group): [string, Read] => [
      `month_by_${group.replace(':', '_')}`,
      () => groupsIn({ store }, over('30d'), { ...all, group }),
    ]),
    [
      'report_by_account',
      () => accountReport(store, { ...lastDays(), by: 'account', account: null, tree: true }),
    ],
    ['statement', () => statementOf(store, null, month)],
    ['page_of_requests', () => store.ledger.entries(entries)],
    ['page_of_failures', () => store.ledger.entries({ ...entries, failed: true })],
  ]
}

async function timed(name: string, read: Read, rounds: number): Promise<Figure> {
  const samples: number[] = []
  for (let round = 0; round < rounds; round += 1) {
    const startedMs = performance.now()
    await read()
    samples.push(performance.now() - startedMs)
  }
  return figure(`usage.${name}`, samples, { unit: 'ms', goal: '≤ 1,000' })
}
