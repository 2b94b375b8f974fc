/**
 * Ledgers under load: admissions and settlements of 10,000 keys, five limits each, one and many at a time, in
 * one, two and four processes on one store: SQLite, and a Redis server of the benchmark, which is also
 * measured with a few busy keys.
 */
import type { ChildProcess } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { WORKER_FLAGS } from '../../src/process/serve.js'
import { Children, freePorts, listening } from '../processes/children.js'
import { figure, ratios, type Figure, type Pace, type SuiteResult } from '../report/figures.js'
import { order, type LedgerLoad } from '../ledger/ledger-messages.js'
import { CORES, findProgram } from '../processes/machine.js'

const LOAD = fileURLToPath(new URL('../ledger/ledger-process.js', import.meta.url))
const ROUNDS = 3
/** Longer than the interval of the roll-up in SQLite, whose cost is part of a round. */
const SECONDS = 6
/** Time until V8 has compiled the measured code: 14 to 20 s. */
const WARM_UP_SECONDS = 20

/** The number of processes, and of requests in flight in each. */
interface Case {
  readonly name: string
  /** SQLite, Redis, or the load alone. */
  readonly at: 'ledger' | 'redis' | 'none'
  /**
   * Requests without limits, which leave only an entry; or sixteen keys instead of 10,000, without and with a
   * concurrency limit.
   */
  readonly what?: 'unlimited' | 'hot' | 'places'
  readonly processes: number
  readonly atOnce: number
}

const CASES: readonly Case[] = [
  { name: 'nothing', at: 'none', processes: 1, atOnce: 64 },
  { name: 'alone', at: 'ledger', processes: 1, atOnce: 1 },
  { name: 'sixteen', at: 'ledger', processes: 1, atOnce: 16 },
  { name: 'load', at: 'ledger', processes: 1, atOnce: 64 },
  { name: 'unlimited', at: 'ledger', processes: 1, atOnce: 16, what: 'unlimited' },
  { name: 'two_processes', at: 'ledger', processes: 2, atOnce: 32 },
  { name: 'four_processes', at: 'ledger', processes: 4, atOnce: 16 },
  { name: 'redis_alone', at: 'redis', processes: 1, atOnce: 1 },
  { name: 'redis_load', at: 'redis', processes: 1, atOnce: 64 },
  { name: 'redis_hot_alone', at: 'redis', processes: 1, atOnce: 1, what: 'hot' },
  { name: 'redis_hot', at: 'redis', processes: 1, atOnce: 64, what: 'hot' },
  { name: 'redis_places', at: 'redis', processes: 1, atOnce: 64, what: 'places' },
  { name: 'redis_hot_four', at: 'redis', processes: 4, atOnce: 16, what: 'hot' },
]

/** Cases for which the cost of a new process is reported. */
const COLD: ReadonlySet<string> = new Set(['load', 'redis_load'])
/** Goals for the CPU time of a request, in µs. */
const GOALS: Readonly<Record<string, string>> = { load: '≤ 30', unlimited: '≤ 30' }

/** Measures in separate processes; rejects if one of them fails. */
export async function runLedger(pace: Pace): Promise<SuiteResult> {
  const rounds = pace.rounds ?? ROUNDS
  const seconds = pace.seconds ?? SECONDS
  const [found, cold] = [new Map<string, LedgerLoad[]>(), new Map<string, LedgerLoad>()]
  const children = new Children()
  const hasRedis = findProgram('redis-server') !== null
  const cases = CASES.filter(({ at }) => at !== 'redis' || hasRedis)
  try {
    const redis = hasRedis ? await startRedis(children) : null
    const running = cases.map((each) => ({ ...each, loads: startLoads(children, each) }))
    const run = (each: (typeof running)[number], length: number) =>
      runCase(each.loads, storeOf(children, each, redis), length)
    for (const each of running) {
      const first = await run(each, seconds)
      if (COLD.has(each.name)) cold.set(each.name, first)
      await run(each, Math.max(seconds, WARM_UP_SECONDS - seconds))
    }
    for (let round = 0; round < rounds; round += 1) {
      for (const each of running) {
        found.set(each.name, [...(found.get(each.name) ?? []), await run(each, seconds)])
      }
    }
  } finally {
    await children.close()
  }
  // The cost of the load itself is subtracted.
  const own = (found.get('nothing') ?? []).map(cpuOf)
  const cpu = (name: string) => (found.get(name) ?? []).map((load, at) => cpuOf(load) - (own[at] ?? 0))
  return {
    figures: [
      ...cases.flatMap(({ name }) => figuresOf(name, found.get(name) ?? [], cpu(name))),
      ...Array.from(cold, ([name, load]) =>
        figure(`ledger.${name}.cold_cpu`, [cpuOf(load)], { unit: 'µs/op' }),
      ),
      figure('ledger.batching_ratio', ratios(cpu('load'), cpu('alone')), {
        unit: 'of alone',
        better: 'lower',
      }),
      figure('ledger.contention_ratio', ratios(cpu('four_processes'), cpu('load')), {
        unit: 'of one',
        better: 'lower',
      }),
    ],
    remarks: hasRedis ? [] : ['redis-server is missing (Debian package redis-server).'],
  }
}

function figuresOf(name: string, loads: readonly LedgerLoad[], cpu: readonly number[]): Figure[] {
  if (name === 'nothing') return [figure('ledger.nothing.cpu', loads.map(cpuOf), { unit: 'µs/op' })]
  const of = (what: string, unit: string, pick: (load: LedgerLoad) => number) =>
    figure(`ledger.${name}.${what}`, loads.map(pick), { unit })
  // A request is an admission and a settlement with its entry; without limits it is an entry alone.
  const requests = cpu.map((each) => (name === 'unlimited' ? each : 2 * each))
  const goal = GOALS[name]
  return [
    figure(`ledger.${name}.cpu`, cpu, { unit: 'µs/op' }),
    figure(`ledger.${name}.request_cpu`, requests, {
      unit: 'µs/request',
      ...(goal === undefined ? {} : { goal }),
    }),
    of('operations', '/s', (load) => load.operations / load.seconds),
    of('admit_p50', 'ms', (load) => load.admitMs.p50),
    of('admit_p99', 'ms', (load) => load.admitMs.p99),
    of('loop_p999', 'ms', (load) => load.loopMs.p999),
    of('loop', 'ms at most', (load) => load.loopMs.most),
  ]
}

function cpuOf(load: LedgerLoad): number {
  return load.cpuMicroseconds / load.operations
}

/** The processes of a case, with the flags of the gateway's. */
function startLoads(children: Children, { processes, atOnce, what }: Case): ChildProcess[] {
  const args = [LOAD, String(atOnce), what ?? 'limited']
  return Array.from({ length: processes }, (_, child) => {
    const core = child % 2 === 0 ? CORES.tested : CORES.rest
    const command = [process.execPath, ...WORKER_FLAGS, ...args]
    return children.start(core, command, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] }).process
  })
}

/** The URL of an unused store. */
function storeOf(children: Children, { at }: Case, redis: NewDatabase | null): string {
  const store = join(children.folder, 'store')
  rmSync(store, { recursive: true, force: true })
  if (at === 'redis') return redis?.() ?? ''
  return { ledger: `sqlite:${join(store, 'sluice.db')}`, none: 'none' }[at]
}

/** All processes of a case on one store: counts are added, times are the worst. */
async function runCase(
  processes: readonly ChildProcess[],
  url: string,
  seconds: number,
): Promise<LedgerLoad> {
  const loads = await Promise.all(processes.map((each) => order(each, { url, seconds })))
  return loads.reduce((one, other) => ({
    operations: one.operations + other.operations,
    seconds: Math.max(one.seconds, other.seconds),
    cpuMicroseconds: one.cpuMicroseconds + other.cpuMicroseconds,
    admitMs: {
      p50: Math.max(one.admitMs.p50, other.admitMs.p50),
      p99: Math.max(one.admitMs.p99, other.admitMs.p99),
    },
    loopMs: {
      p999: Math.max(one.loopMs.p999, other.loopMs.p999),
      most: Math.max(one.loopMs.most, other.loopMs.most),
    },
  }))
}

/** The address of an unused database. */
type NewDatabase = () => string

/** As documented: with an append-only file that is synced every second. */
async function startRedis(children: Children): Promise<NewDatabase> {
  const [port = 0] = await freePorts(1)
  const args = ['--port', String(port), '--databases', '1000', '--appendonly', 'yes']
  const started = children.start(CORES.rest, ['redis-server', '--bind', '127.0.0.1', ...args], {
    stdio: 'ignore',
  })
  await listening(port, started)
  let last = 0
  return () => `redis://127.0.0.1:${port}/${(last += 1)}?timeout_ms=5000`
}
