/** Reads sums of the archive, and the use of accounts. Only transfers that are committed count. */
import { addNanoUsd, nanoUsdOf, type NanoUsd } from '../../base/nano-usd.js'
import { DAY_MS, HOUR_MS } from '../../base/time-units.js'
import type { ArchiveProgress } from '../archive-feed.js'
import { UNIT_FIGURES, unitFigures, type UnitFigures } from '../../base/unit-counts.js'
import { monthOf } from '../limit-arithmetic.js'
import { isOfProperty } from '../records/count-usage.js'
import {
  PROPERTY_MARK,
  type AccountUse,
  type CellQuery,
  type SumQuery,
  type UsageCell,
  type UsageSum,
  type UseDetail,
} from '../usage-queries.js'
import { Sql, type ArchiveEngine, type Expressions } from './archive-engine.js'
import { FIGURES, nanoUsdIn, numberIn, textIn, type ArchiveRow } from './columns.js'
import { leftOut, MOST_IDS, READ_SECONDS } from './read-entries.js'
import { partsOfCounters } from '../first-content.js'
import { BUCKETS, countExpressions, figureExpressions } from './seal-hours.js'

/** The progress by which rows count, and requests whose entries are read elsewhere. */
type Committed = Pick<
  ArchiveProgress,
  'confirmed' | 'round' | 'abandoned' | 'erased' | 'sumsFromMs' | 'sumsToMs' | 'late'
> & {
  readonly without?: ReadonlySet<string>
}

/** A time, whose end is exclusive, in steps. */
interface Steps {
  readonly fromMs: number
  readonly toMs: number
  readonly stepMs: number
}

/** The sums of one archive. Every method rejects with `ArchiveFailure`. */
export class ArchivedSums {
  private readonly engine: ArchiveEngine

  constructor(engine: ArchiveEngine) {
    this.engine = engine
  }

  /**
   * What `Ledger.sums` has of a time, whose end is exclusive, in steps of hours or of days in UTC, or in days
   * of the query's zone.
   */
  async sums(query: SumQuery, steps: Steps, committed: Committed): Promise<UsageSum[]> {
    const { is } = this.engine
    const sql = new Sql(is)
    const columns = columnsOf(query)
    const conditions = [
      `start >= ${sql.time(steps.fromMs)}`,
      `start < ${sql.time(steps.toMs)}`,
      ...(query.accountId === null ? [] : [`account_id = ${sql.text(query.accountId)}`]),
      ...(query.keyId === undefined ? [] : [`key_id = ${sql.text(query.keyId)}`]),
      ...(query.model === undefined ? [] : [`model = ${sql.text(query.model)}`]),
      ...isCommitted(sql, committed),
    ]
    const rows = await this.engine.query(
      `SELECT ${stepIn(sql, query, steps)} AS start_ms, ${columns.join(', ')}, ${figureSums(is)}
       FROM ${is.hours} WHERE ${conditions.join(' AND ')} GROUP BY ${numbersTo(columns.length + 1)} ORDER BY start_ms`,
      sql.parameters,
      READ_SECONDS,
    )
    return addedUp(rows, query)
  }

  /** See `Ledger.cells`: whole hours from the sums that moved, the rest from entries that are confirmed. */
  async cells(query: CellQuery, committed: Committed): Promise<UsageCell[]> {
    const found: UsageCell[] = []
    for (const part of partsOf(query, committed)) {
      for (const row of await this.cellsOf(part, query, committed)) found.push(cellOfRow(row))
    }
    return found
  }

  private cellsOf(part: Part, { accountId, stepMs }: CellQuery, committed: Committed): Promise<ArchiveRow[]> {
    const { is } = this.engine
    const sql = new Sql(is)
    const { table, time, shadow, figures } = sourceOf(is, part)
    const conditions = [
      ...conditionsOf(sql, part, committed),
      ...(accountId === null ? [] : [`account_id = ${sql.text(accountId)}`]),
    ]
    const columns = CELL_COLUMNS.map((name) => `${is.plain(name)} AS d_${name}`)
    return this.engine.query(
      `SELECT ${is.stepOf(time, stepMs)} AS start_ms, ${shadow} AS is_shadow, ${columns.join(', ')}, ${figures}
       FROM ${table} WHERE ${conditions.join(' AND ')} GROUP BY ${numbersTo(CELL_COLUMNS.length + 2)}`,
      sql.parameters,
      READ_SECONDS,
    )
  }

  /** What accounts used in a time: whole hours from the sums that moved, the rest from confirmed entries. */
  async accountUse(fromMs: number, toMs: number, by: UseDetail, committed: Committed): Promise<AccountUse[]> {
    const found: AccountUse[] = []
    for (let from = fromMs; from < toMs;) {
      const month = monthOf(from)
      const to = Math.min(toMs, Date.UTC(1970, month + 1))
      for (const part of partsOf({ fromMs: from, toMs: to, stepMs: HOUR_MS }, committed)) {
        // There may be more than a call has arguments.
        for (const row of await this.useOf(part, by, committed)) found.push(useOfRow(row, month))
      }
      from = to
    }
    return found
  }

  private useOf(part: Part, by: UseDetail, committed: Committed): Promise<ArchiveRow[]> {
    const { is } = this.engine
    const sql = new Sql(is)
    const { table, uses } = sourceOf(is, part)
    const keys = by === 'accounts' ? [] : ['key_id', 'model']
    const names = ['account_id', 'account_path', ...keys, ...(by === 'labels' ? ['labels'] : [])]
    return this.engine.query(
      `SELECT ${names.map((name) => `${is.plain(name)} AS d_${name}`).join(', ')}, ${uses}
       FROM ${table} WHERE ${conditionsOf(sql, part, committed).join(' AND ')} GROUP BY ${numbersTo(names.length)}`,
      sql.parameters,
      READ_SECONDS,
    )
  }
}

/** A part of a time, whose end is exclusive, and the table that it is read from. */
interface Part {
  readonly from: 'entries' | 'hours'
  readonly fromMs: number
  readonly toMs: number
  /** Only these accounts, or all but these. */
  readonly accounts?: { readonly only: readonly string[] } | { readonly not: readonly string[] }
}

/**
 * The parts of a time: whole hours whose sums have moved are read from these. While late entries of such
 * hours have no sums yet, or entries are corrected, all is read from entries; also what is left of accounts
 * of which entries were erased.
 */
function partsOf(
  { fromMs, toMs, stepMs }: Pick<CellQuery, 'fromMs' | 'toMs' | 'stepMs'>,
  { sumsFromMs, sumsToMs, late, erased, without }: Committed,
): Part[] {
  const low = Math.max(Math.ceil(fromMs / HOUR_MS) * HOUR_MS, sumsFromMs)
  const high = Math.min(Math.floor(toMs / HOUR_MS) * HOUR_MS, sumsToMs)
  const isMoving = late !== null || (without !== undefined && without.size > 0)
  if (low >= high || isMoving || stepMs % HOUR_MS !== 0) return [{ from: 'entries', fromMs, toMs }]
  const ids = erased.map(({ accountId }) => accountId)
  const parts: Part[] = [
    { from: 'entries', fromMs, toMs: low },
    { from: 'hours', fromMs: low, toMs: high, ...(ids.length === 0 ? {} : { accounts: { not: ids } }) },
    ...(ids.length === 0
      ? []
      : [{ from: 'entries', fromMs: low, toMs: high, accounts: { only: ids } } as const]),
    { from: 'entries', fromMs: high, toMs },
  ]
  return parts.filter((part) => part.fromMs < part.toMs)
}

/** The conditions of a part, for what counts. */
function conditionsOf(sql: Sql, { from, fromMs, toMs, accounts }: Part, committed: Committed): string[] {
  const { is } = sql
  const time = from === 'hours' ? 'start' : 'at'
  const own =
    accounts === undefined
      ? []
      : 'only' in accounts
        ? [is.isOneOf('account_id', sql.texts(accounts.only))]
        : [`NOT ${is.isOneOf('account_id', sql.texts(accounts.not))}`]
  const range = [`${time} >= ${sql.time(fromMs)}`, `${time} < ${sql.time(toMs)}`, ...own]
  if (from === 'hours') return [...range, "grain = 'hour'", ...isCommitted(sql, committed)]
  const confirmed = `batch <= ${sql.number(committed.confirmed)}`
  return [...range, confirmed, ...leftOut(sql, committed.erased), ...notOf(sql, committed)]
}

/** What is read of the table of a part. */
function sourceOf(is: Expressions, { from }: Part) {
  if (from === 'hours') {
    return {
      ...{ table: is.hours, time: 'start', shadow: "CASE WHEN shadow = '' THEN 0 ELSE 1 END" },
      figures: figureSums(is),
      uses: `sum(requests) AS requests, sum(errors) AS failed, sum(input_tokens) AS input,
        sum(output_tokens) AS output, sum(cost_nano_usd) AS cost, sum(unpriced) AS unpriced,
        ${UNIT_FIGURES.map(({ column }) => `sum(${column}) AS f_${column}`).join(', ')}`,
    }
  }
  return {
    ...{ table: is.entries, time: 'at' },
    figures: `${is.numbersText(figureExpressions(is))} AS figures, ${is.numbersText(countExpressions(is))} AS counts`,
    shadow: `CASE WHEN ${is.plain('shadow_of')} = '' THEN 0 ELSE 1 END`,
    uses: `count(*) AS requests, ${is.countIf("outcome <> 'ok'")} AS failed,
      coalesce(sum(input_tokens), 0) AS input, coalesce(sum(output_tokens), 0) AS output,
      coalesce(sum(cost_nano_usd), 0) AS cost,
      ${is.countIf("cost_nano_usd IS NULL AND source <> 'none'")} AS unpriced,
      ${UNIT_FIGURES.map(({ unit, column, one }) => `coalesce(sum(${is.units(unit, one)}), 0) AS f_${column}`).join(', ')}`,
  }
}

/** The columns by which cells are grouped, besides their time and whether they are of copies. */
const CELL_COLUMNS = ['account_id', 'account_path', 'key_id', 'model', 'upstream', 'ingress', 'labels']

function numbersTo(last: number): string {
  return Array.from({ length: last }, (_, at) => at + 1).join(', ')
}

function cellOfRow(row: ArchiveRow): UsageCell {
  const text = (name: string) => textIn(row, `d_${name}`)
  const of = {
    ...{ startMs: numberIn(row, 'start_ms'), accountId: text('account_id') },
    ...{ keyId: text('key_id'), model: text('model') },
  }
  return {
    ...sumOf(of, numbersIn(row)),
    isShadow: numberIn(row, 'is_shadow') === 1,
    ...{ accountPath: text('account_path') || null, upstream: text('upstream') || null },
    ...{ ingress: text('ingress') || null, labels: text('labels') || null },
  }
}

function notOf(sql: Sql, { without = new Set() }: Committed): string[] {
  const ids = [...without]
  const conditions: string[] = []
  for (let at = 0; at < ids.length; at += MOST_IDS) {
    conditions.push(`NOT ${sql.is.isOneOf('request_id', sql.texts(ids.slice(at, at + MOST_IDS)))}`)
  }
  return conditions
}

/** The columns of the properties of sums. */
const PROPERTY_COLUMNS: Readonly<Record<string, string>> = {
  ...{ upstream: 'upstream', format: 'ingress', label: 'labels', shadow: 'shadow' },
}

/** The columns by which a query groups. */
function columnsOf({ accountId, per, property, accounts }: SumQuery): string[] {
  if (accounts !== undefined) return ['account_id', 'account_path', 'model']
  if (property === undefined) return per === 'model' ? ['model'] : ['account_id', 'key_id', 'model']
  const column = PROPERTY_COLUMNS[nameOf(property)]
  if (column === undefined) return ['account_id', 'account_path', 'model']
  return [...(accountId === null ? [] : ['account_id']), column, 'model']
}

/** The name of a property, which may have a value. */
function nameOf(property: string): string {
  return property.split('=')[0] ?? ''
}

/** The start of the step of a cell, or of the day of the query's zone. */
function stepIn(sql: Sql, { offsets }: SumQuery, { fromMs, stepMs }: Steps): string {
  if (offsets === undefined) return sql.is.stepOf('start', stepMs)
  const day = (offsetMs: number) => sql.is.stepOf('start', DAY_MS, offsetMs)
  const first = offsets.findLast((each) => each.fromMs <= fromMs)
  const later = offsets.filter((each) => each.fromMs > fromMs).reverse()
  const cases = later.map((each) => `WHEN start >= ${sql.time(each.fromMs)} THEN ${day(each.offsetMs)}`)
  const rest = day(first?.offsetMs ?? 0)
  return cases.length === 0 ? rest : `CASE ${cases.join(' ')} ELSE ${rest} END`
}

function figureSums(is: Expressions): string {
  const figures = is.numbersText(FIGURES.map((name) => `sum(${name})`))
  return `${figures} AS figures, ${is.listSumsText('first_content', BUCKETS)} AS counts`
}

/** Conditions for sums that count. */
export function isCommitted(
  sql: Sql,
  { round, abandoned }: Pick<ArchiveProgress, 'round' | 'abandoned'>,
): string[] {
  return [
    `seal <= ${sql.number(round)}`,
    ...(abandoned.length === 0
      ? []
      : [`seal NOT IN (${abandoned.map((seal) => sql.number(seal)).join(', ')})`]),
  ]
}

/** What a sum is of. */
type SumName = Pick<UsageSum, 'startMs' | 'accountId' | 'keyId' | 'model'>

/** The numbers of a row in the order of `FIGURES`, and its counts of `first_content`; changed in place. */
interface Numbers {
  readonly figures: NanoUsd[]
  readonly counts: number[]
}

// Checked by its type: the list has every figure.
const PLACES = Object.fromEntries(FIGURES.map((name, at) => [name, at])) as Record<
  (typeof FIGURES)[number],
  number
>
const COST = FIGURES.indexOf('cost_nano_usd')

function numbersIn(row: ArchiveRow): Numbers {
  const counts = textIn(row, 'counts')
  const texts = textIn(row, 'figures').split(',')
  const figures: NanoUsd[] = texts.map(Number)
  figures[COST] = nanoUsdOf(texts[COST] ?? '0')
  return { figures, counts: counts === '' ? [] : counts.split(',').map(Number) }
}

/** The sums of the rows that a query selects; those of labels and of several accounts are added up. */
function addedUp(rows: readonly ArchiveRow[], query: SumQuery): UsageSum[] {
  const { accounts, property } = query
  const wanted = accounts && new Set(accounts)
  const sums = new Map<string, { readonly of: SumName; readonly numbers: Numbers }>()
  for (const row of rows) {
    const own = wanted === undefined ? keysOf(row, query) : wanted.has(accountIn(row)) ? [''] : []
    const keys = property === undefined ? own : own.filter((keyId) => isOfProperty(keyId, property))
    if (keys.length === 0) continue
    const startMs = numberIn(row, 'start_ms')
    const accountId = wanted === undefined ? textIn(row, 'account_id') || (query.accountId ?? '') : ''
    const model = textIn(row, 'model')
    const numbers = numbersIn(row)
    for (const keyId of keys) {
      const name = `${startMs} ${accountId} ${model} ${keyId}`
      const known = sums.get(name)
      if (known === undefined) {
        // Each sum has numbers of its own, which are changed.
        const own = { figures: numbers.figures.slice(), counts: numbers.counts.slice() }
        sums.set(name, { of: { startMs, accountId, keyId, model }, numbers: own })
      } else add(known.numbers, numbers)
    }
  }
  return Array.from(sums.values(), ({ of, numbers }) => sumOf(of, numbers))
}

function add(sum: Numbers, { figures, counts }: Numbers): void {
  for (const [at, figure] of figures.entries()) {
    const before = sum.figures[at] ?? 0
    sum.figures[at] = at === COST ? addNanoUsd(before, figure) : Number(before) + Number(figure)
  }
  for (const [at, count] of counts.entries()) sum.counts[at] = (sum.counts[at] ?? 0) + count
}

/** Answers have thousands of sums, and an object that is put together of several takes ten times as long. */
function sumOf({ startMs, accountId, keyId, model }: SumName, { figures, counts }: Numbers): UsageSum {
  const figure = (name: (typeof FIGURES)[number]) => Number(figures[PLACES[name]])
  return {
    startMs,
    accountId,
    keyId,
    model,
    requests: figure('requests'),
    failed: figure('errors'),
    inputTokens: figure('input_tokens'),
    outputTokens: figure('output_tokens'),
    cacheReadTokens: figure('cache_read_tokens'),
    cacheWriteTokens: figure('cache_write_tokens'),
    reasoningTokens: figure('reasoning_tokens'),
    costNanoUsd: figures[COST] ?? 0,
    unpriced: figure('unpriced'),
    estimated: figure('estimated'),
    assumed: figure('assumed'),
    cacheHits: 0,
    savedNanoUsd: 0,
    images: figure('images'),
    audioMs: figure('audio_ms'),
    characters: figure('characters'),
    pages: figure('pages'),
    searches: figure('searches'),
    documents: figure('documents'),
    lines: figure('lines'),
    firstContent: partsOfCounters(counts),
    byCause: {
      client: figure('errors_client'),
      limits: figure('errors_limits'),
      gateway: figure('errors_gateway'),
      provider: figure('errors_provider'),
    },
  }
}

/** An account and its path, as the property `account` has them. */
function accountIn(row: ArchiveRow): string {
  return `${textIn(row, 'account_id')} ${textIn(row, 'account_path')}`
}

/** The `keyId` of the sums of a row: its key, or each value of the property. */
function keysOf(row: ArchiveRow, { property }: SumQuery): string[] {
  if (property === undefined) return [textIn(row, 'key_id')]
  const name = nameOf(property)
  const marked = (value: string) => `${PROPERTY_MARK}${name}=${value}`
  const column = PROPERTY_COLUMNS[name]
  if (column === undefined) return [marked(accountIn(row))]
  const value = textIn(row, column)
  if (name === 'label') return value.split(' ').filter(Boolean).map(marked)
  return value === '' ? [] : [marked(value)]
}

function useOfRow(row: ArchiveRow, month: number): AccountUse {
  return {
    month,
    accountId: textIn(row, 'd_account_id'),
    accountPath: textIn(row, 'd_account_path'),
    keyId: textIn(row, 'd_key_id'),
    model: textIn(row, 'd_model'),
    labels: textIn(row, 'd_labels'),
    requests: numberIn(row, 'requests'),
    failed: numberIn(row, 'failed'),
    inputTokens: numberIn(row, 'input'),
    outputTokens: numberIn(row, 'output'),
    costNanoUsd: nanoUsdIn(row, 'cost'),
    unpriced: numberIn(row, 'unpriced'),
    ...unitsOf((column) => numberIn(row, `f_${column}`)),
  }
}

function unitsOf(figure: (column: (typeof UNIT_FIGURES)[number]['column']) => number): UnitFigures {
  return unitFigures((name) => {
    const column = UNIT_FIGURES.find((each) => each.figure === name)?.column
    return column === undefined ? 0 : figure(column)
  })
}
