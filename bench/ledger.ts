/**
 * Ledgers under load: admissions and settlements of 10,000 keys, five limits each, one and many at a time,
 * in one, two and four processes at one store; the embedded one, and that of a Redis of its own, which is also
 * asked for few keys all the time. Knows no gateway.
 */
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { isObject, numberOf, objectOf } from '../src/chat/json.js'
import { Children, freePorts, listening } from './children.js'
import { figure, ratios, type Figure, type Pace, type SuiteResult } from './figures.js'
import type { LedgerLoad } from './ledger-load.js'
import { CORES, findProgram } from './machine.js'

const LOAD = fileURLToPath(new URL('./ledger-load.js', import.meta.url))
const BARE = fileURLToPath(new URL('./ledger-bare.js', import.meta.url))
const ROUNDS = 3
const SECONDS = 2

/** How many processes, and how many requests at a time in each. */
interface Case {
  readonly name: string
  /** The embedded ledger, the bare engine, that of Redis, or the load alone. */
  readonly at: 'ledger' | 'bare' | 'redis' | 'none'
  /**
   * Requests that nothing limits, of which only a row is kept; or sixteen keys in place of 10,000, without a
   * limit on places, and with one.
   */
  readonly what?: 'unlimited' | 'hot' | 'places'
  readonly processes: number
  readonly atOnce: number
}

const CASES: readonly Case[] = [
  { name: 'nothing', at: 'none', processes: 1, atOnce: 64 },
  { name: 'bare', at: 'bare', processes: 1, atOnce: 64 },
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

/** Those whose cost the product has a goal for. */
const GOALS: ReadonlySet<string> = new Set(['load', 'unlimited'])

/** Measures in processes of its own; rejects where one of them fails. */
export async function runLedger(pace: Pace): Promise<SuiteResult> {
  const rounds = pace.rounds ?? ROUNDS
  const seconds = pace.seconds ?? SECONDS
  const found = new Map<string, LedgerLoad[]>()
  const children = new Children()
  const hasRedis = findProgram('redis-server') !== null
  const cases = CASES.filter(({ at }) => at !== 'redis' || hasRedis)
  try {
    const redis = hasRedis ? await startRedis(children) : null
    for (let round = 0; round < rounds; round += 1) {
      for (const each of cases) {
        const load = await runCase(children, each, seconds, redis)
        found.set(each.name, [...(found.get(each.name) ?? []), load])
      }
    }
  } finally {
    await children.close()
  }
  // What the load itself takes is not the ledger's.
  const own = (found.get('nothing') ?? []).map(cpuOf)
  const cpu = (name: string) =>
    (found.get(name) ?? []).map((load, at) => cpuOf(load) - (name === 'bare' ? 0 : (own[at] ?? 0)))
  return {
    figures: [
      ...cases.flatMap(({ name }) => figuresOf(name, found.get(name) ?? [], cpu(name))),
      figure('ledger.over_bare_ratio', 'of bare', ratios(cpu('load'), cpu('bare')), {
        better: 'lower',
      }),
      figure('ledger.batching_ratio', 'of alone', ratios(cpu('load'), cpu('alone')), {
        better: 'lower',
      }),
      figure('ledger.contention_ratio', 'of one', ratios(cpu('four_processes'), cpu('load')), {
        better: 'lower',
      }),
    ],
    remarks: hasRedis ? [] : ['redis-server is missing (Debian package redis-server).'],
  }
}

function figuresOf(name: string, loads: readonly LedgerLoad[], cpu: readonly number[]): Figure[] {
  if (name === 'nothing') return [figure('ledger.nothing.cpu', 'µs/op', loads.map(cpuOf))]
  const of = (what: string, unit: string, pick: (load: LedgerLoad) => number) =>
    figure(`ledger.${name}.${what}`, unit, loads.map(pick))
  return [
    figure(`ledger.${name}.cpu`, 'µs/op', cpu, GOALS.has(name) ? { goal: '≤ 12' } : {}),
    ...(name === 'bare'
      ? []
      : [
          of('operations', '/s', (load) => load.operations / load.seconds),
          of('admit_p50', 'ms', (load) => load.admitMs.p50),
          of('admit_p99', 'ms', (load) => load.admitMs.p99),
          of('loop', 'ms at most', (load) => load.loopMs),
        ]),
  ]
}

function cpuOf(load: LedgerLoad): number {
  return load.cpuMicroseconds / load.operations
}

/** All processes of a case at one new store; counts are added, of times the worst stands. */
async function runCase(
  children: Children,
  each: Case,
  seconds: number,
  redis: NewDatabase | null,
): Promise<LedgerLoad> {
  const store = join(children.folder, 'store')
  const urls = { ledger: `lmdb:${store}`, bare: store, none: 'none', redis: redis?.() ?? '' }
  const program = each.at === 'bare' ? BARE : LOAD
  const what = each.what ?? 'limited'
  const args = [program, urls[each.at], String(each.atOnce), String(seconds), what]
  const loads = await Promise.all(
    Array.from({ length: each.processes }, (_, child) => {
      const core = child % 2 === 0 ? CORES.tested : CORES.rest
      return loadOf(children, core, args)
    }),
  )
  rmSync(store, { recursive: true, force: true })
  return loads.reduce((one, other) => ({
    operations: one.operations + other.operations,
    seconds: Math.max(one.seconds, other.seconds),
    cpuMicroseconds: one.cpuMicroseconds + other.cpuMicroseconds,
    admitMs: {
      p50: Math.max(one.admitMs.p50, other.admitMs.p50),
      p99: Math.max(one.admitMs.p99, other.admitMs.p99),
    },
    loopMs: Math.max(one.loopMs, other.loopMs),
  }))
}

/** The address of a database that nobody has used. */
type NewDatabase = () => string

/** As it is told to be run: with a log that is on the disk every second. */
async function startRedis(children: Children): Promise<NewDatabase> {
  const [port = 0] = await freePorts(1)
  const args = ['--port', String(port), '--databases', '1000', '--appendonly', 'yes']
  const started = children.start(
    CORES.rest,
    ['redis-server', '--bind', '127.0.0.1', ...args],
    'ignore',
  )
  await listening(port, started)
  let last = 0
  return () => `redis://127.0.0.1:${port}/${(last += 1)}?timeout_ms=5000`
}

async function loadOf(
  children: Children,
  core: number,
  args: readonly string[],
): Promise<LedgerLoad> {
  const { process: child } = children.start(
    core,
    [process.execPath, ...args],
    ['ignore', 'pipe', 'inherit'],
  )
  if (child.stdout === null) throw new Error('the load has no output')
  const [output] = await Promise.all([text(child.stdout), once(child, 'exit')])
  if (child.exitCode !== 0) throw new Error(`the load ended with ${String(child.exitCode)}`)
  return readLoad(JSON.parse(output))
}

function readLoad(value: unknown): LedgerLoad {
  if (!isObject(value)) throw new Error('the load gave no numbers')
  const number = (from: unknown): number => numberOf(from) ?? Number.NaN
  const admit = objectOf(value['admitMs'])
  return {
    operations: number(value['operations']),
    seconds: number(value['seconds']),
    cpuMicroseconds: number(value['cpuMicroseconds']),
    admitMs: { p50: number(admit['p50']), p99: number(admit['p99']) },
    loopMs: number(value['loopMs']),
  }
}
