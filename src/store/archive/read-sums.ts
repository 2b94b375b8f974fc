/** Reads sums of the archive, and the use of accounts. Only transfers that are committed count. */
import type { ArchiveProgress } from '../archive-feed.js'
import { UNIT_FIGURES, unitFigures, type UnitFigures } from '../../base/unit-counts.js'
import { monthOf } from '../limit-arithmetic.js'
import {
  PROPERTY_MARK,
  type AccountUse,
  type CellQuery,
  type SumQuery,
  type UsageCell,
  type UsageSum,
} from '../usage-queries.js'
import { Sql, type ArchiveEngine } from './archive-engine.js'
import { FIGURES, nanoUsdIn, numberIn, textIn, type ArchiveRow } from './columns.js'
import { leftOut, MOST_IDS, READ_SECONDS } from './read-entries.js'
import { partsOfCounters } from '../first-content.js'
import { BUCKETS, figuresOf } from './seal-hours.js'

/** The progress by which rows count, and requests whose entries are read elsewhere. */
type Committed = Pick<ArchiveProgress, 'confirmed' | 'round' | 'abandoned' | 'erased'> & {
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
   * The sums of hours or of days in UTC (`stepMs`) in a time, whose end is exclusive, by account, key and
   * model; for a query by property, by its values. The caller selects and groups them.
   */
  async sums(query: SumQuery, { fromMs, toMs, stepMs }: Steps, committed: Committed): Promise<UsageSum[]> {
    const { is } = this.engine
    const sql = new Sql(is)
    const columns = columnsOf(query)
    const conditions = [
      `start >= ${sql.time(fromMs)}`,
      `start < ${sql.time(toMs)}`,
      ...(query.accountId === null ? [] : [`account_id = ${sql.text(query.accountId)}`]),
      ...(query.keyId === undefined || query.keyId.startsWith(PROPERTY_MARK)
        ? []
        : [`key_id = ${sql.text(query.keyId)}`]),
      ...(query.model === undefined ? [] : [`model = ${sql.text(query.model)}`]),
      ...isCommitted(sql, committed),
    ]
    const group = columns.map((_, at) => at + 2).join(', ')
    const rows = await this.engine.query(
      `SELECT ${is.millis('start')} - ${is.millis('start')} % ${sql.number(stepMs)} AS start_ms,
         ${columns.join(', ')}, ${figureSums()}
       FROM ${is.hours} WHERE ${conditions.join(' AND ')} GROUP BY 1, ${group} ORDER BY start_ms`,
      sql.parameters,
      READ_SECONDS,
    )
    return rows.flatMap((row) => sumsOfRow(row, query))
  }

  /** See `Ledger.cells`; of the entries that the archive has confirmed. */
  async cells({ accountId, fromMs, toMs, stepMs }: CellQuery, committed: Committed): Promise<UsageCell[]> {
    const { is } = this.engine
    const sql = new Sql(is)
    const conditions = [
      ...[
        `at >= ${sql.time(fromMs)}`,
        `at < ${sql.time(toMs)}`,
        `batch <= ${sql.number(committed.confirmed)}`,
      ],
      ...(accountId === null ? [] : [`account_id = ${sql.text(accountId)}`]),
      ...leftOut(sql, committed.erased),
      ...notOf(sql, committed),
    ]
    const names = ['account_id', 'account_path', 'key_id', 'model', 'upstream', 'ingress', 'labels']
    const columns = names.map((name) => `${is.plain(name)} AS d_${name}`)
    const rows = await this.engine.query(
      `SELECT ${is.millis('at')} - ${is.millis('at')} % ${sql.number(stepMs)} AS start_ms,
         CASE WHEN ${is.plain('shadow_of')} = '' THEN 0 ELSE 1 END AS is_shadow,
         ${columns.join(', ')}, ${figuresOf(is)}
       FROM ${is.entries} WHERE
         ${conditions.join(' AND ')} GROUP BY 1, 2, ${names.map((_, at) => at + 3).join(', ')}`,
      sql.parameters,
      READ_SECONDS,
    )
    const text = (row: ArchiveRow, name: string) => textIn(row, `d_${name}`)
    return rows.map((row) => ({
      ...figuresIn(row),
      ...{ startMs: numberIn(row, 'start_ms'), isShadow: numberIn(row, 'is_shadow') === 1 },
      ...{ accountId: text(row, 'account_id'), keyId: text(row, 'key_id'), model: text(row, 'model') },
      ...{ accountPath: text(row, 'account_path') || null, upstream: text(row, 'upstream') || null },
      ...{ ingress: text(row, 'ingress') || null, labels: text(row, 'labels') || null },
    }))
  }

  /** What accounts used by the entries of a time that the archive has confirmed. */
  async accountUse(
    fromMs: number,
    toMs: number,
    byLabels: boolean,
    committed: Committed,
  ): Promise<AccountUse[]> {
    const { is } = this.engine
    const found: AccountUse[] = []
    for (let from = fromMs; from < toMs;) {
      const month = monthOf(from)
      const to = Math.min(toMs, Date.UTC(1970, month + 1))
      const sql = new Sql(is)
      const names = ['account_id', 'account_path', 'key_id', 'model', ...(byLabels ? ['labels'] : [])]
      const conditions = [
        ...[`at >= ${sql.time(from)}`, `at < ${sql.time(to)}`, `batch <= ${sql.number(committed.confirmed)}`],
        ...leftOut(sql, committed.erased),
        ...notOf(sql, committed),
      ]
      const rows = await this.engine.query(
        `SELECT ${names.map((name) => `${is.plain(name)} AS d_${name}`).join(', ')}, count(*) AS requests,
           ${is.countIf("outcome <> 'ok'")} AS failed,
           coalesce(sum(input_tokens), 0) AS input, coalesce(sum(output_tokens), 0) AS output,
           coalesce(sum(cost_nano_usd), 0) AS cost,
           ${is.countIf("cost_nano_usd IS NULL AND source <> 'none'")} AS unpriced,
           ${UNIT_FIGURES.map(({ unit, column, one }) => `coalesce(sum(${is.units(unit, one)}), 0) AS f_${column}`).join(', ')}
         FROM ${is.entries} WHERE ${conditions.join(' AND ')}
         GROUP BY ${names.map((_, at) => at + 1).join(', ')}`,
        sql.parameters,
        READ_SECONDS,
      )
      // There may be more than a call has arguments.
      for (const row of rows) found.push(useOfRow(row, month))
      from = to
    }
    return found
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

/** The columns by which a query groups. */
function columnsOf({ property, accounts }: SumQuery): string[] {
  if (accounts !== undefined) return ['account_id', 'account_path', 'model']
  const name = property?.split('=')[0]
  switch (name) {
    case 'upstream':
      return ['account_id', 'upstream', 'model']
    case 'format':
      return ['account_id', 'ingress', 'model']
    case 'label':
      return ['account_id', 'labels', 'model']
    case 'shadow':
      return ['account_id', 'shadow', 'model']
    case 'account':
      return ['account_id', 'account_path', 'model']
    default:
      return ['account_id', 'key_id', 'model']
  }
}

function figureSums(): string {
  const figures = FIGURES.map((name) => `coalesce(sum(${name}), 0) AS f_${name}`)
  const counts = Array.from(
    { length: BUCKETS },
    (_, at) => `coalesce(sum(first_content[${at + 1}]), 0) AS b_${at}`,
  )
  // An array of ClickHouse has 0 beyond its end, one of PostgreSQL NULL.
  return [...figures, ...counts].join(', ')
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

/** The sums of a row: of its key, or of each value of the property. */
function sumsOfRow(row: ArchiveRow, { property, accounts }: SumQuery): UsageSum[] {
  const sum = {
    ...figuresIn(row),
    startMs: numberIn(row, 'start_ms'),
    accountId: textIn(row, 'account_id'),
    model: textIn(row, 'model'),
  }
  return keysOf(row, accounts === undefined ? property?.split('=')[0] : 'account').map((keyId) => ({
    ...sum,
    keyId,
  }))
}

function figuresIn(row: ArchiveRow): Omit<UsageSum, 'startMs' | 'accountId' | 'keyId' | 'model'> {
  const figure = (name: (typeof FIGURES)[number]) => numberIn(row, `f_${name}`)
  return {
    ...{ requests: figure('requests'), failed: figure('errors'), inputTokens: figure('input_tokens') },
    ...{ outputTokens: figure('output_tokens'), cacheReadTokens: figure('cache_read_tokens') },
    ...{ cacheWriteTokens: figure('cache_write_tokens'), reasoningTokens: figure('reasoning_tokens') },
    costNanoUsd: nanoUsdIn(row, 'f_cost_nano_usd'),
    ...{ unpriced: figure('unpriced'), estimated: figure('estimated'), assumed: figure('assumed') },
    ...{ cacheHits: 0, savedNanoUsd: 0 },
    ...unitsInRow(row),
    firstContent: partsOfCounters(Array.from({ length: BUCKETS }, (_, at) => numberIn(row, `b_${at}`))),
    byCause: {
      client: figure('errors_client'),
      limits: figure('errors_limits'),
      gateway: figure('errors_gateway'),
      provider: figure('errors_provider'),
    },
  }
}

function keysOf(row: ArchiveRow, property: string | undefined): string[] {
  const marked = (value: string) => `${PROPERTY_MARK}${property ?? ''}=${value}`
  switch (property) {
    case undefined:
      return [textIn(row, 'key_id')]
    case 'account':
      return [marked(`${textIn(row, 'account_id')} ${textIn(row, 'account_path')}`)]
    case 'label':
      return textIn(row, 'labels').split(' ').filter(Boolean).map(marked)
    default: {
      const value = textIn(row, property === 'format' ? 'ingress' : property)
      return value === '' ? [] : [marked(value)]
    }
  }
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
    ...unitsInRow(row),
  }
}

function unitsInRow(row: ArchiveRow): UnitFigures {
  return unitFigures((figure) => {
    return numberIn(row, `f_${UNIT_FIGURES.find((each) => each.figure === figure)?.column ?? ''}`)
  })
}
