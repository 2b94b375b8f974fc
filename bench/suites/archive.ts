/**
 * A ledger with an archive: how fast entries that wait reach it, and reads of a month over both. The variable
 * ARCHIVE_URL names the database, in which the suite makes tables of its own and removes them.
 */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ArchiveCopier } from '../../src/store/archive/copier.js'
import { withArchive } from '../../src/store/archive/archived-ledger.js'
import { openArchiveEngine } from '../../src/store/archive/open-archive-engine.js'
import { schemaStatements } from '../../src/store/archive/schema-statements.js'
import type { ArchiveConfig } from '../../src/config/config.js'
import { newRequestId } from '../../src/http/request-id.js'
import { UNEXPLAINED, type LedgerEntry } from '../../src/ledger/entry.js'
import { openStore } from '../../src/store/open-store.js'
import type { Store } from '../../src/store/store.js'
import { figure, type Figure, type Pace, type SuiteResult } from '../report/figures.js'

/** Thousands of entries without `--streams`. */
const THOUSANDS = 60
const AT_ONCE = 1_000
const DAY_MS = 86_400_000
/** The number of days that the entries are of. */
const DAYS = 28
const LEDGER = {
  ...{ keepDays: 30, hoursDays: 90, daysDays: 730, spool: '', spoolMaxBytes: 1, maxMemory: 1 },
  ...({ whenFull: 'serve', errorMessages: true } as const),
}

/** `--streams` is the number of entries in thousands, `--rounds` how often each read is repeated. */
export async function runArchive(pace: Pace): Promise<SuiteResult> {
  const url = process.env['ARCHIVE_URL']
  if (url === undefined)
    throw new Error('ARCHIVE_URL names no database, such as postgresql://bench@127.0.0.1/bench')
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-archive-'))
  const config = configOf(url)
  const engine = await openArchiveEngine(config)
  const store = await openStore(`sqlite:${folder}/store.db`)
  const figures: Figure[] = []
  try {
    const statements = schemaStatements({ engine: engine.kind, config })
    for (const statement of statements) await engine.run(statement)
    const count = 1_000 * (pace.streams ?? THOUSANDS)
    const startMs = Date.now() - DAYS * DAY_MS
    for (let from = 0; from < count; from += AT_ONCE) {
      const some = Array.from({ length: AT_ONCE }, (_, at) => anEntry(from + at, startMs, count))
      await Promise.all(some.map((entry) => store.ledger.append(entry)))
    }
    figures.push(...(await caughtUp(store, { config, engine, count })))
    figures.push(...(await reads(store, config, { startMs, rounds: pace.rounds ?? 5 })))
  } finally {
    for (const name of ['entries', 'hours', 'archive']) {
      const cascade = engine.kind === 'postgresql' ? ' CASCADE' : ''
      await engine.run(`DROP TABLE IF EXISTS ${config.prefix}${name}${cascade}`)
    }
    await engine.close()
    await store.close()
    rmSync(folder, { recursive: true, force: true })
  }
  return { figures, remarks: [] }
}

function configOf(url: string): ArchiveConfig {
  return {
    ...{
      url,
      keepDays: 400,
      sumsDays: 1_100,
      hotHours: 24,
      prefix: `bench_${randomBytes(4).toString('hex')}_`,
    },
    ...{ waitingMaxBytes: 2 ** 30, spoolMaxBytes: 2 ** 30, settings: {}, folder: process.cwd() },
    tls: { ca: null, cert: null, key: null, serverName: null },
  }
}

function anEntry(number: number, startMs: number, count: number): LedgerEntry {
  const atMs = Math.floor(startMs + (number / count) * (DAYS - 2) * DAY_MS)
  const key = number % 400
  const model = `model-${key % 7}`
  return {
    ...UNEXPLAINED,
    ...{ requestId: newRequestId(atMs), atMs, durationMs: 900 + (number % 997) / 8 },
    ...{
      accountId: `acc_${number % 40}`,
      keyId: `key_${number % 400}`,
      accountPath: `org/team${number % 40}`,
    },
    ...{ modelAsked: model, modelAnswered: `${model}-2026-03-01`, model, upstream: `upstream-${key % 3}` },
    ...{ dialect: 'openai-chat', attempts: 1, stream: true, status: 200, outcome: 'ok', finish: 'stop' },
    ...{ source: 'reported', usage: { input: 900 + (number % 701), output: 100 + (number % 301) } },
    ...{ costNanoUsd: 1_000_003 + number, tokensAfterDisconnect: 0, losses: [], generation: 1 },
    ...{ hops: { authenticate: 0.1, connect: 2.5, firstContent: 300 + (number % 211), overhead: 0.5 } },
    ...{ ingress: 'chat', labels: `team=t${key % 40} app=a${key % 13}`, attempted: 'upstream:ok' },
    ...{ attemptMs: [900], gateway: 'bench', upstreamRequestId: randomBytes(12).toString('hex') },
  } as const
}

interface Waiting {
  readonly config: ArchiveConfig
  readonly engine: Awaited<ReturnType<typeof openArchiveEngine>>
  readonly count: number
}

/** Copies all entries, as a leader does after an outage. */
async function caughtUp(store: Store, { config, engine, count }: Waiting): Promise<Figure[]> {
  // Adds up the entries, which is no part of the copy.
  await store.ledger.sums({ accountId: null, by: 'day', fromMs: 0, toMs: Date.now() })
  const copier = new ArchiveCopier({
    ...{ store, engine, config, leader: { id: 'bench', gateway: 'bench', pid: process.pid } },
    refused: (_, reason) => {
      throw new Error(`an entry was refused: ${reason}`)
    },
    warn: () => undefined,
  })
  const [startedMs, cpu] = [performance.now(), process.cpuUsage()]
  while ((await store.ledger.archive.waiting()).rows > 0) await copier.step()
  const seconds = (performance.now() - startedMs) / 1_000
  const { user, system } = process.cpuUsage(cpu)
  while ((await copier.step()) === true);
  await copier.close()
  const goal = engine.kind === 'clickhouse' ? '≥ 20,000' : '≥ 5,000'
  return [
    figure('archive.rows_a_second', [count / seconds], { unit: 'rows/s', goal }),
    figure('archive.cpu_of_a_row', [(user + system) / count], { unit: 'µs' }),
  ]
}

interface ReadRange {
  readonly startMs: number
  readonly rounds: number
}

async function reads(store: Store, config: ArchiveConfig, { startMs, rounds }: ReadRange): Promise<Figure[]> {
  // What is closed here is the connection of the reads; the store is closed by the caller.
  const joint = withArchive({ ...store, close: () => Promise.resolve() }, () => ({
    archive: config,
    ledger: LEDGER,
  }))
  const toMs = Date.now() - 2 * DAY_MS
  const each = { page: [] as number[], month: [] as number[], statement: [] as number[] }
  const timed = async (into: number[], read: () => Promise<unknown>): Promise<void> => {
    const startedMs = performance.now()
    await read()
    into.push(performance.now() - startedMs)
  }
  try {
    for (let round = 0; round < rounds; round += 1) {
      await timed(each.page, () => joint.ledger.entries({ accountId: null, toMs, after: null, limit: 50 }))
      const range = { accountId: null, fromMs: startMs, toMs }
      await timed(each.month, () => joint.ledger.cells({ ...range, stepMs: DAYS * DAY_MS }))
      await timed(each.statement, () => joint.ledger.accountUse({ fromMs: startMs, toMs }))
    }
  } finally {
    await joint.close()
  }
  return [
    figure('archive.page', each.page, { unit: 'ms', goal: '≤ 500' }),
    figure('archive.month_by_all', each.month, { unit: 'ms', goal: '≤ 1,000' }),
    figure('archive.statement', each.statement, { unit: 'ms', goal: '≤ 1,000' }),
  ]
}
