/**
 * A ledger with an archive: how fast entries that wait reach it, and reads of a month over both. The variable
 * ARCHIVE_URL names the database, in which the suite makes tables of its own and removes them.
 */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ArchiveCopier } from '../../src/store/archive/copier.js'
import { rowsOfCells } from '../../src/store/archive/columns.js'
import { withArchive } from '../../src/store/archive/archived-ledger.js'
import { openArchiveEngine } from '../../src/store/archive/open-archive-engine.js'
import { schemaStatements } from '../../src/store/archive/schema-statements.js'
import { cellsOfEntries } from '../../src/store/archive/seal-hours.js'
import type { ArchiveConfig } from '../../src/config/config.js'
import { newRequestId } from '../../src/http/request-id.js'
import { UNEXPLAINED, type LedgerEntry } from '../../src/ledger/entry.js'
import { openStore } from '../../src/store/open-store.js'
import type { Store } from '../../src/store/store.js'
import { figure, type Figure, type Pace, type SuiteResult } from '../report/figures.js'

/** Thousands of entries without `--streams`, and without `--archived`. */
const THOUSANDS = 60
const ARCHIVED = 0
const AT_ONCE = 1_000
const DAY_MS = 86_400_000
/** The number of days that the entries are of. */
const DAYS = 28
const LEDGER = {
  // Sums are read from the archive.
  ...{ keepDays: 30, hoursDays: 1, daysDays: 1, spool: '', spoolMaxBytes: 1, maxMemory: 1 },
  ...({ whenFull: 'serve', errorMessages: true } as const),
}

/**
 * `--streams` is the number of entries in thousands that are copied, `--archived` that of those that the
 * database makes by itself before the reads, `--rounds` how often each read is repeated.
 */
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
    figures.push(...(await archivedRows(engine, { count: 1_000 * (pace.archived ?? ARCHIVED), startMs })))
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

/** Rows of one statement of the database, and the time whose entries are added up by one. */
const MADE = {
  clickhouse: { rows: 250_000, spanMs: 4 * DAY_MS },
  postgresql: { rows: 25_000, spanMs: DAY_MS / 4 },
} as const

/** Entries and their sums that the database makes, as an operator imports them: of batch and transfer 0. */
async function archivedRows(
  engine: Waiting['engine'],
  { count, startMs }: Pick<Waiting, 'count'> & Pick<ReadRange, 'startMs'>,
): Promise<Figure[]> {
  if (count === 0) return []
  const isPostgres = engine.kind === 'postgresql'
  const { is } = engine
  const table = is.entries.split(' ')[0] ?? ''
  const [number, text] = isPostgres ? ['n', 'n::text'] : ['toInt64(number)', 'toString(number)']
  const startedMs = performance.now()
  const { rows: atOnce, spanMs } = MADE[engine.kind]
  for (let from = 0; from < count; from += atOnce) {
    const to = Math.min(count, from + atOnce)
    const rows = isPostgres ? `generate_series(${from}, ${to - 1}) AS n` : `numbers(${from}, ${to - from})`
    const at = `${startMs} + ${number} * ${(DAYS - 2) * DAY_MS} / ${count}`
    const key = `${number} % 400`
    const join = (...parts: readonly string[]) =>
      `concat(${parts.map((each) => textOf(engine, each)).join(', ')})`
    await engine.run(
      `INSERT INTO ${table} (at, request_id, batch, duration_ms, account_id, account_path, key_id, labels, model_asked,
         model_answered, model, upstream, dialect, ingress, attempts, stream, status, outcome, finish_reason, source,
         input_tokens, output_tokens, cost_nano_usd, tokens_after_disconnect, losses, generation, first_content_ms,
         overhead_ms, attempted, upstream_request_id, gateway)
       SELECT ${is.time(isPostgres ? `(${at})::bigint` : `toInt64(${at})`)}, ${isPostgres ? 'md5' : 'hex(MD5'}(${text}${isPostgres ? ')' : '))'}, 0,
         900, ${join("'acc_'", `${key} % 40`)}, ${join("'org/team'", `${key} % 40`)}, ${join("'key_'", key)},
         ${join("'team=t'", `${key} % 40`, "' app=a'", `${key} % 13`)}, ${join("'model-'", `${key} % 7`)},
         ${join("'model-'", `${key} % 7`)}, ${join("'model-'", `${key} % 7`)}, ${join("'upstream-'", `${key} % 3`)},
         'openai-chat', 'chat', 1, true, 200, CASE WHEN ${number} % 97 = 0 THEN 'upstream_failed' ELSE 'ok' END,
         'stop', 'reported', 900 + ${number} % 701, 100 + ${number} % 301, 1000003 + ${number}, 0, '', 1,
         300 + ${number} % 211, 0.5, 'upstream:ok', ${isPostgres ? 'md5' : 'hex(MD5'}(${join("'u'", number)}${isPostgres ? ')' : '))'}, 'bench'
       FROM ${rows}`,
    )
  }
  const batch = { upTo: 0 } as const
  const firstMs = Math.floor(startMs / DAY_MS) * DAY_MS
  for (let fromMs = firstMs; fromMs < startMs + DAYS * DAY_MS; fromMs += spanMs) {
    const cells = await cellsOfEntries(engine, { fromMs, toMs: fromMs + spanMs, batch })
    if (cells.length > 0) await engine.insert('hours', rowsOfCells(cells, 0), `bench/${fromMs}`)
  }
  return [figure('archive.made', [count / ((performance.now() - startedMs) / 1_000)], { unit: 'rows/s' })]
}

function textOf({ kind }: Waiting['engine'], expression: string): string {
  if (expression.startsWith("'")) return expression
  return kind === 'postgresql' ? `(${expression})::text` : `toString(${expression})`
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
  const [page, failed, month, days]: [number[], number[], number[], number[]] = [[], [], [], []]
  const [statement, sums, labels]: [number[], number[], number[]] = [[], [], []]
  const timed = async (into: number[], read: () => Promise<unknown>): Promise<void> => {
    const startedMs = performance.now()
    await read()
    into.push(performance.now() - startedMs)
  }
  try {
    for (let round = 0; round < rounds; round += 1) {
      const entries = { accountId: null, toMs, after: null, limit: 50 }
      await timed(page, () => joint.ledger.entries(entries))
      await timed(failed, () => joint.ledger.entries({ ...entries, accountId: 'acc_7', failed: true }))
      const range = { accountId: null, fromMs: startMs, toMs }
      await timed(month, () => joint.ledger.cells({ ...range, stepMs: DAYS * DAY_MS }))
      await timed(days, () => joint.ledger.cells({ ...range, stepMs: DAY_MS }))
      await timed(statement, () => joint.ledger.accountUse({ fromMs: startMs, toMs, by: 'keys' }))
      await timed(sums, () => joint.ledger.sums({ ...range, by: 'day' }))
      await timed(labels, () => joint.ledger.sums({ ...range, by: 'day', property: 'label' }))
    }
  } finally {
    await joint.close()
  }
  return [
    figure('archive.page', page, { unit: 'ms', goal: '≤ 500' }),
    figure('archive.page_of_failures', failed, { unit: 'ms', goal: '≤ 500' }),
    figure('archive.month_by_all', month, { unit: 'ms', goal: '≤ 1,000' }),
    figure('archive.days_by_all', days, { unit: 'ms', goal: '≤ 1,000' }),
    figure('archive.days_by_key', sums, { unit: 'ms', goal: '≤ 1,000' }),
    figure('archive.days_by_label', labels, { unit: 'ms', goal: '≤ 1,000' }),
    figure('archive.statement', statement, { unit: 'ms', goal: '≤ 1,000' }),
  ]
}
