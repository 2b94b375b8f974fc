/**
 * The columns of the tables of an archive with their types in each engine, and an entry as a row of
 * `entries`. The names are those of `sluice usage export`; `at` is a time. Columns are added at the end and
 * never renamed, since people query these tables.
 */
import {
  STORED,
  storedIn,
  EMPTY_ENTRY,
  parseEntry,
  STAGES,
  type LedgerEntry,
  type StoredValue,
} from '../../ledger/entry.js'
import { nanoUsdOf, type NanoUsd } from '../../base/nano-usd.js'
import { isObject } from '../../base/json.js'
import { UNIT_FIGURES } from '../../base/unit-counts.js'
import { FIRST_CONTENT_COUNTERS, FORMER_COUNTERS } from '../first-content.js'

/** A column: its name, its types, and its comment in the database. */
interface Column {
  readonly name: string
  readonly clickhouse: string
  readonly postgresql: string
  readonly means: string
}

const LOW = 'LowCardinality(String)'
const T64 = 'CODEC(T64,ZSTD(1))'

function meansOf(name: string): string {
  return OWN_MEANS[name] ?? STORED.find((stored) => nameIn(stored) === name)?.means ?? ''
}

/** The column of a stored value; `batch` is the archive's own. */
function nameIn({ column: name }: StoredValue): string {
  return name === 'batch' ? 'batch_id' : name
}

const OWN_MEANS: Readonly<Record<string, string>> = {
  at: 'When the request arrived, UTC.',
  version: 'Starts at 1; a correction has the next number and replaces the row.',
  batch:
    'The number of the batch that wrote it; 0 if the operator did. Counts up to confirmed of the archive table.',
  hops: 'Milliseconds of authenticate, receive, route, admit, connect, first byte, translate, relay, guard.',
  attempt_ms: 'Milliseconds of each attempt, in the order of attempted.',
  retry_after_seconds: 'The retry-after of the reply.',
}

function column(name: string, clickhouse: string, postgresql: string): Column {
  return { name, clickhouse, postgresql, means: meansOf(name) }
}
const low = (name: string, isNullable = true) => column(name, LOW, isNullable ? 'text' : 'text NOT NULL')

/** The columns of `entries` in their order. */
export const ENTRY_COLUMNS: readonly Column[] = [
  column('at', "DateTime64(3,'UTC') CODEC(DoubleDelta,ZSTD(1))", 'timestamptz(3) NOT NULL'),
  column('request_id', 'String CODEC(ZSTD(1))', 'text COLLATE "C" NOT NULL'),
  column('version', 'UInt16 DEFAULT 1', 'smallint NOT NULL DEFAULT 1'),
  column('batch', 'UInt64 DEFAULT 0 CODEC(Delta,ZSTD(1))', 'bigint NOT NULL DEFAULT 0'),
  column('duration_ms', 'Float64', 'double precision'),
  column('account_id', LOW, 'text COLLATE "C" NOT NULL'),
  low('account_path'),
  column('key_id', LOW, 'text COLLATE "C" NOT NULL'),
  ...['identity', 'labels', 'model_asked', 'model_answered'].map((name) => low(name)),
  low('model', false),
  ...['upstream', 'dialect', 'ingress'].map((name) => low(name)),
  column('attempts', 'UInt8', 'smallint'),
  column('stream', 'Bool', 'boolean'),
  column('status', 'UInt16', 'smallint'),
  low('outcome', false),
  low('finish_reason'),
  low('source', false),
  column('input_tokens', `Nullable(UInt32) ${T64}`, 'bigint'),
  column('output_tokens', `Nullable(UInt32) ${T64}`, 'bigint'),
  ...['cache_read_tokens', 'cache_write_tokens', 'cache_write_1h_tokens', 'reasoning_tokens'].map((name) =>
    column(name, 'Nullable(UInt32)', 'bigint'),
  ),
  column('cost_nano_usd', `Nullable(Int64) ${T64}`, 'bigint'),
  column('tokens_after_disconnect', 'UInt32', 'bigint'),
  column('losses', 'String', 'text'),
  column('generation', 'UInt32', 'bigint'),
  column('first_content_ms', 'Nullable(Float64)', 'double precision'),
  column('overhead_ms', 'Nullable(Float64)', 'double precision'),
  column('hops', 'Array(Nullable(Float32))', 'real[]'),
  column('attempt_ms', 'Array(Float32)', 'real[]'),
  column('error_message', 'String CODEC(ZSTD(3))', 'text'),
  low('limit'),
  column('upstream_status', 'Nullable(UInt16)', 'smallint'),
  column('upstream_request_id', 'String', 'text'),
  low('attempted'),
  column('shadow_of', 'String', 'text'),
  column('client_request_id', 'String', 'text'),
  column('retry_after_seconds', 'Nullable(UInt32)', 'bigint'),
  ...['price_version', 'gateway', 'generation_hash'].map((name) => low(name)),
  column('cache_hit', 'Nullable(Bool)', 'boolean'),
  column('saved_nano_usd', 'Nullable(Int64)', 'bigint'),
  low('guardrails'),
  column('cache_marks', 'Nullable(UInt8)', 'smallint'),
  column('cache_marks_saved_nano_usd', 'Nullable(Int64)', 'bigint'),
  column('recorded', 'Nullable(Bool)', 'boolean'),
  column('dimensions', 'String CODEC(ZSTD(1))', 'text'),
  ...['program', 'user'].map((name) => low(name)),
  column('units', 'String CODEC(ZSTD(1))', 'text'),
  column('batch_id', 'String CODEC(ZSTD(1))', 'text'),
]

/** Columns that tables of an earlier release get by `ALTER TABLE`; in views they follow the others. */
export const LATER_COLUMNS: readonly string[] = [
  ...['units', 'batch_id'],
  ...UNIT_FIGURES.map(({ column }) => column),
]

/** The texts by which cells of `hours` differ, besides their hour. */
export const DIMENSIONS = [
  ...(['account_id', 'account_path', 'key_id', 'model', 'upstream', 'ingress', 'labels', 'shadow'] as const),
] as const
/** The figures of a cell, besides `first_content`. */
export const FIGURES = [
  ...([
    'requests',
    'errors',
    'input_tokens',
    'output_tokens',
    'cache_read_tokens',
    'cache_write_tokens',
  ] as const),
  ...(['reasoning_tokens', 'cost_nano_usd', 'unpriced', 'estimated', 'assumed'] as const),
  ...(['errors_client', 'errors_limits', 'errors_gateway', 'errors_provider'] as const),
  ...UNIT_FIGURES.map(({ column }) => column),
] as const

const SUM_MEANS: Readonly<Record<string, string>> = {
  start: 'The start of the hour (with another grain: of the day or month), UTC.',
  grain: 'hour; day or month in sums that are older than the archive.',
  shadow: 'The upstream, if the requests are copies for comparison.',
  seal: 'The number of the transfer that wrote it; 0 if the operator did. Counts up to round of the archive table.',
  requests: 'Requests.',
  errors: 'Requests with an outcome other than ok.',
  unpriced: 'Requests that used tokens whose price is unknown.',
  estimated: 'Requests whose tokens are estimated.',
  assumed: 'Requests whose tokens are the maximum that they may have used.',
  errors_client: 'Failures that the client has to act on.',
  errors_limits: 'Refusals by limits.',
  errors_gateway: 'Failures of the gateway.',
  errors_provider: 'Failures of the provider.',
  images: 'Pictures made.',
  audio_ms: 'Milliseconds of sound transcribed.',
  characters: 'Characters of speech.',
  pages: 'Pages of documents read.',
  searches: 'Search units of ranks.',
  documents: 'Documents ranked.',
  lines: 'Lines of batches.',
  first_content: firstContentMeans(),
}

function firstContentMeans(): string {
  const all = FIRST_CONTENT_COUNTERS.slice(0, FORMER_COUNTERS - 1).map(({ upToMs }) => upToMs)
  const parts = FIRST_CONTENT_COUNTERS.slice(FORMER_COUNTERS).map(({ overMs, upToMs }) => {
    return upToMs === Infinity ? `above ${overMs}` : `${overMs} to ${upToMs}`
  })
  return `Requests by time to first content, up to ${all.join(', ')} ms, and above; then of parts of these: ${parts.join(', ')} ms.`
}

function sumColumn(name: string, clickhouse: string, postgresql: string): Column {
  return { name, clickhouse, postgresql, means: SUM_MEANS[name] ?? meansOf(name) }
}

function figureColumn(name: string): Column {
  return sumColumn(name, 'Int64', 'bigint NOT NULL DEFAULT 0')
}

/** The columns of `hours` in their order. */
export const SUM_COLUMNS: readonly Column[] = [
  sumColumn('start', "DateTime('UTC') CODEC(DoubleDelta,ZSTD(1))", 'timestamptz(0) NOT NULL'),
  sumColumn('grain', `${LOW} DEFAULT 'hour'`, "text NOT NULL DEFAULT 'hour'"),
  ...DIMENSIONS.map((name) =>
    sumColumn(name, LOW, name === 'account_id' ? 'text COLLATE "C" NOT NULL' : "text NOT NULL DEFAULT ''"),
  ),
  sumColumn('seal', `UInt64 DEFAULT 0 ${T64}`, 'bigint NOT NULL DEFAULT 0'),
  ...FIGURES.filter((name) => !LATER_COLUMNS.includes(name)).map(figureColumn),
  sumColumn('first_content', 'Array(Int64)', "bigint[] NOT NULL DEFAULT '{}'"),
  ...FIGURES.filter((name) => LATER_COLUMNS.includes(name)).map(figureColumn),
]

/** What the tables and views are for, as comments of the database. */
export const TABLE_MEANS = {
  entries: 'One row per request. Read it through the view requests (ClickHouse: or with FINAL).',
  hours: 'Sums of hours. Read it through the view usage.',
  archive: 'What has been committed.',
  requests: 'One row per request that is confirmed, in its latest version, with cost_usd.',
  usage: 'Sums of hours that count, by account, key, model, upstream, format and labels, with cost_usd.',
} as const

/** The comments of the columns of the table `archive`. */
export const ARCHIVE_MEANS: Readonly<Record<string, string>> = {
  name: 'schema, store, confirmed, round, abandoned, sums_from, sums_to or hot_from.',
  value: 'A number, the id of the store, or numbers separated by commas.',
  version: 'A row with a higher one replaces the row of the same name.',
}

const COST = { name: 'cost_usd', means: 'The cost in US dollars, exact.' }
/** The columns of the views in any order, with their comments. */
export const VIEW_COLUMNS = { requests: [...ENTRY_COLUMNS, COST], usage: [...SUM_COLUMNS, COST] } as const

/** The values of a row in the order of the columns of its table. */
export type TableRow = readonly ColumnValue[]
type ColumnValue = string | number | boolean | readonly (number | null)[] | null

/** Rows that are made when they are read: so none lives longer than its text. */
export interface TableRows extends Iterable<TableRow> {
  readonly length: number
}

/** The number of the batch that writes an entry, and which version the entry is. */
interface Written {
  readonly version: number
  readonly batch: number
}

type ReadValue = (entry: LedgerEntry, written: Written) => ColumnValue

const ENTRY_VALUES: readonly ReadValue[] = ENTRY_COLUMNS.map(({ name }) => {
  if (name === 'at') return ({ atMs }) => timeText(atMs)
  if (name === 'version') return (_, { version }) => version
  if (name === 'batch') return (_, { batch }) => batch
  const stored = STORED.find((each) => nameIn(each) === name)
  if (stored === undefined) throw new Error(`an entry has no value for the column '${name}'`)
  const { member, part, kind } = stored
  if (kind === 'stages') return stagesOf
  if (member === 'losses') return ({ losses }) => losses.join(' ')
  if (part === null) return (entry) => valueOf(entry[member], name)
  return (entry) => valueOf(storedIn(entry, stored), name)
})

/** The row of `entries` of an entry. */
export function rowOfEntry(entry: LedgerEntry, written: Written): TableRow {
  return ENTRY_VALUES.map((read) => read(entry, written))
}

/** The rows of entries. */
export function rowsOfEntries(
  entries: readonly LedgerEntry[],
  writtenBy: (entry: LedgerEntry) => Written,
): TableRows {
  return {
    length: entries.length,
    *[Symbol.iterator]() {
      for (const entry of entries) yield rowOfEntry(entry, writtenBy(entry))
    },
  }
}

/** The rows of `hours` of cells, whose members have the names of columns, in a transfer. */
export function rowsOfCells(cells: readonly ArchiveRow[], seal: number): TableRow[] {
  return cells.map((cell) => {
    return SUM_COLUMNS.map(({ name }) => (name === 'seal' ? seal : valueOf(cell[name], name)))
  })
}

const MAX_TINY = 255

function valueOf(value: unknown, name: string): ColumnValue {
  if (typeof value === 'string' || typeof value === 'boolean') return value
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) return 0
    if (name === 'attempts' || name === 'cache_marks') return Math.min(MAX_TINY, value)
    return name === 'retry_after_seconds' ? Math.ceil(value) : value
  }
  if (Array.isArray(value)) return value.map(Number)
  return name === 'attempt_ms' ? [] : null
}

const STAGE_NAMES = Object.keys(STAGES)

function stagesOf({ hops }: LedgerEntry): (number | null)[] {
  const times: Readonly<Record<string, number | undefined>> = hops
  return STAGE_NAMES.map((stage) => times[stage] ?? null)
}

/** A time as both engines read it: UTC with milliseconds. */
export function timeText(atMs: number): string {
  const text = new Date(atMs).toISOString()
  return `${text.slice(0, 10)} ${text.slice(11, 23)}`
}

/** Columns whose value is a number, which engines may return as a text. */
const NUMBERS: ReadonlySet<string> = new Set(
  ENTRY_COLUMNS.filter(
    ({ clickhouse }) => /Int|Float/.test(clickhouse) && !clickhouse.startsWith('Array'),
  ).map(({ name }) => name),
)
/** Texts that an entry always has. */
const ALWAYS: ReadonlySet<string> = new Set([
  'request_id',
  'account_id',
  'key_id',
  'model',
  'outcome',
  'source',
])

/** The entry of a row, whose time is in `at_ms`. Throws an Error that names the request if it is damaged. */
export function entryOfRow(row: Readonly<Record<string, unknown>>): LedgerEntry {
  const usage: Record<string, unknown> = {}
  const hops: Record<string, unknown> = {}
  const members: Record<string, unknown> = { ...EMPTY_ENTRY, usage, hops }
  for (const stored of STORED) {
    const { member, part, kind } = stored
    const name = nameIn(stored)
    const value = known(name, row[name])
    if (kind === 'stages') addStages(hops, value)
    else if (member === 'losses') members[member] = typeof value === 'string' ? value.split(' ') : []
    else if (member === 'attemptMs') members[member] = listOrNull(value)
    else if (part === null) members[member] = value
    else if (value !== null) (member === 'usage' ? usage : hops)[part] = value
  }
  const { success, data, error } = parseEntry(members)
  if (success) return data
  throw new Error(
    `request '${String(row['request_id'])}' in the archive: '${error.issues[0]?.path.join('.') ?? ''}' is not valid`,
  )
}

function known(name: string, value: unknown): unknown {
  if (value === undefined || value === null) return null
  if (value === '' && !ALWAYS.has(name)) return null
  if (NUMBERS.has(name) || name === 'at_ms') return Number(value)
  return value
}

function listOrNull(value: unknown): unknown {
  return Array.isArray(value) && value.length > 0 ? value.map(micros) : null
}

function addStages(hops: Record<string, unknown>, times: unknown): void {
  const list: readonly unknown[] = Array.isArray(times) ? times : []
  for (const [at, stage] of STAGE_NAMES.entries()) {
    if (typeof list[at] === 'number') hops[stage] = micros(list[at])
  }
}

/** Single precision has seven digits; a duration has microseconds. */
function micros(ms: unknown): number {
  return Math.round(Number(ms) * 1000) / 1000
}

/** A row of a query's result. */
export type ArchiveRow = Readonly<Record<string, unknown>>

/** The whole number in a column, which engines return as a text. */
export function numberIn(row: ArchiveRow | undefined, name: string): number {
  const value = row?.[name]
  return value === null || value === undefined ? 0 : Number(value)
}

/** The nano-dollars in a column, exact at any size. */
export function nanoUsdIn(row: ArchiveRow | undefined, name: string): NanoUsd {
  return nanoUsdOf(textIn(row, name) || '0')
}

/** The text in a column; empty for none. */
export function textIn(row: ArchiveRow | undefined, name: string): string {
  const value = row?.[name]
  return typeof value === 'string'
    ? value
    : value === null || value === undefined
      ? ''
      : JSON.stringify(value)
}

/** The rows of a parsed reply. */
export function rowsOf(values: readonly unknown[]): ArchiveRow[] {
  return values.filter(isObject)
}
