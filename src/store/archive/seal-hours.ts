/**
 * The sums of hours as they move to the archive: cells are added up from the entries of confirmed batches and
 * compared with the store's own sums, which were counted when each request ended. So entries and sums check
 * each other; what the entries lack (they left the store before there was an archive) becomes a cell without
 * the other dimensions.
 */
import { CAUSES, outcomesOf } from '../../errors.js'
import { arrayOf, type JsonObject } from '../../base/json.js'
import { UNIT_FIGURES } from '../../base/unit-counts.js'
import { FIRST_CONTENT_COUNTERS } from '../first-content.js'
import type { UsageSum } from '../usage-queries.js'
import { Sql, type ArchiveEngine, type Expressions } from './archive-engine.js'
import { DIMENSIONS, FIGURES, numberIn, textIn, timeText, type ArchiveRow } from './columns.js'

/** The entries to add up: of these hours, and up to a batch, of one, or of some requests. */
interface CellsOfEntries {
  readonly fromMs: number
  readonly toMs: number
  readonly batch:
    { readonly upTo: number } | { readonly only: number } | { readonly ofRequests: readonly string[] }
}

/** A cell as a row of `hours`, without its seal. */
export interface CellRow extends JsonObject {
  start: string
}

/** A figure of a cell, which is a text. */
export function figureIn(cell: CellRow, name: (typeof FIGURES)[number]): bigint {
  const value = cell[name]
  return BigInt(typeof value === 'string' ? value : 0)
}

/** The cells of entries in the archive. Rejects with `ArchiveFailure`. */
export async function cellsOfEntries(
  engine: ArchiveEngine,
  { fromMs, toMs, batch }: CellsOfEntries,
): Promise<CellRow[]> {
  const { is } = engine
  const sql = new Sql(is)
  const batches = conditionOf(sql, batch)
  const text = `SELECT ${is.millis('start')} AS start_ms, cells.* FROM (
      SELECT ${is.hourOf('at')} AS start, ${dimensionsOf(is)}, ${figuresOf(is)}
      FROM ${is.entries} WHERE at >= ${sql.time(fromMs)} AND at < ${sql.time(toMs)} AND ${batches}
      GROUP BY ${DIMENSIONS.map((_, at) => at + 2).join(', ')}, 1
    ) AS cells ORDER BY ${['start_ms', ...DIMENSIONS.map(aliasOf)].join(', ')}`
  const rows = await engine.query(text, sql.parameters)
  return rows.map((row) => cellOf(row))
}

function conditionOf(sql: Sql, batch: CellsOfEntries['batch']): string {
  if ('upTo' in batch) return `batch <= ${sql.number(batch.upTo)}`
  if ('only' in batch) return `batch = ${sql.number(batch.only)}`
  return sql.is.isOneOf('request_id', sql.texts(batch.ofRequests))
}

/**
 * Cells of entries without what the cells of earlier versions of these entries have; a cell is there once,
 * and not at all if nothing is left.
 */
export function withoutReplaced(cells: readonly CellRow[], replaced: readonly JsonObject[]): CellRow[] {
  const all = new Map<string, CellRow>()
  const add = (cell: JsonObject, sign: bigint): void => {
    const start = typeof cell['start'] === 'string' ? cell['start'] : ''
    const name = JSON.stringify([start, ...DIMENSIONS.map((dimension) => cell[dimension])])
    const known: CellRow = all.get(name) ?? { ...cell, ...NOTHING, start }
    const figures: JsonObject = {}
    for (const figure of FIGURES) {
      figures[figure] = String(figureIn(known, figure) + sign * figureIn({ ...cell, start }, figure))
    }
    const [before, more] = [arrayOf(known['first_content']), arrayOf(cell['first_content'])]
    const firstContent = before.map((count, at) => Number(count) + Number(sign) * Number(more[at] ?? 0))
    all.set(name, { ...known, ...figures, start, first_content: firstContent })
  }
  for (const cell of cells) add(cell, 1n)
  for (const cell of replaced) add(cell, -1n)
  return [...all.values()].filter((cell) => {
    const isLeft = FIGURES.some((figure) => figureIn(cell, figure) !== 0n)
    return isLeft || arrayOf(cell['first_content']).some((count) => count !== 0)
  })
}

/** The dimensions of entries, `d_NAME` in the order of `DIMENSIONS`. */
export function dimensionsOf(is: Expressions): string {
  const expressions: Readonly<Record<string, string>> = {
    shadow: `CASE WHEN ${is.plain('shadow_of')} <> '' THEN ${is.plain('upstream')} ELSE '' END`,
  }
  return DIMENSIONS.map((name) => `${expressions[name] ?? is.plain(name)} AS ${aliasOf(name)}`).join(', ')
}

/** ClickHouse would use an alias of a column's name inside other expressions. */
function aliasOf(name: string): string {
  return `d_${name}`
}

/** The figures of entries that are grouped as columns, then the counts of `first_content`. */
function figuresOf(is: Expressions): string {
  const figures = figureExpressions(is).map((expression, at) => `${expression} AS f_${FIGURES[at] ?? ''}`)
  return [...figures, ...countExpressions(is).map((expression, at) => `${expression} AS b_${at}`)].join(', ')
}

/** The figures of entries that are grouped, in the order of `FIGURES`. */
export function figureExpressions(is: Expressions): string[] {
  const sum = (column: string) => `coalesce(sum(${column}), 0)`
  const expressions: Readonly<Record<string, string>> = {
    requests: 'count(*)',
    errors: is.countIf("outcome <> 'ok'"),
    unpriced: is.countIf("cost_nano_usd IS NULL AND source <> 'none'"),
    estimated: is.countIf("source = 'estimated'"),
    assumed: is.countIf("source = 'assumed'"),
    ...Object.fromEntries(UNIT_FIGURES.map(({ unit, column, one }) => [column, sum(is.units(unit, one))])),
    ...Object.fromEntries(
      CAUSES.map((cause) => {
        const outcomes = outcomesOf(cause).map((outcome) => `'${outcome}'`)
        return [`errors_${cause}`, is.countIf(`outcome IN (${outcomes.join(', ')})`)]
      }),
    ),
  }
  return FIGURES.map((name) => expressions[name] ?? sum(name))
}

/** The number of counts in `first_content`. */
export const BUCKETS = FIRST_CONTENT_COUNTERS.length
/** The figures of a cell without entries. */
const NOTHING: JsonObject = {
  ...Object.fromEntries(FIGURES.map((name) => [name, '0'])),
  first_content: Array.from({ length: BUCKETS }, () => 0),
}

/** The counts of `first_content` of entries that are grouped. */
export function countExpressions(is: Expressions): string[] {
  return FIRST_CONTENT_COUNTERS.map(({ overMs, upToMs }) => {
    const conditions = [
      'first_content_ms IS NOT NULL',
      ...(overMs === 0 ? [] : [`first_content_ms > ${overMs}`]),
      ...(upToMs === Infinity ? [] : [`first_content_ms <= ${upToMs}`]),
    ]
    return is.countIf(conditions.join(' AND '))
  })
}

function cellOf(row: ArchiveRow): CellRow {
  return {
    start: timeText(numberIn(row, 'start_ms')).slice(0, 19),
    grain: 'hour',
    ...Object.fromEntries(DIMENSIONS.map((name) => [name, textIn(row, aliasOf(name))])),
    // As texts: a sum may be more than a number holds exactly.
    ...Object.fromEntries(FIGURES.map((name) => [name, textIn(row, `f_${name}`) || '0'])),
    first_content: Array.from({ length: BUCKETS }, (_, at) => numberIn(row, `b_${at}`)),
  }
}

/** The figures of a store's sum, in the order of `FIGURES`. */
function figuresOfSum(sum: UsageSum): (number | bigint)[] {
  const { requests, failed, inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens } = sum
  const { reasoningTokens, costNanoUsd, unpriced, estimated, assumed, byCause } = sum
  return [
    ...[requests, failed, inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens],
    ...[reasoningTokens, costNanoUsd, unpriced, estimated, assumed],
    ...[byCause.client, byCause.limits, byCause.gateway, byCause.provider],
    ...UNIT_FIGURES.map(({ figure }) => sum[figure]),
  ]
}

/** The cells of what the store's sums have and the cells of entries lack; empty if both are equal. */
export function differenceOf(sums: readonly UsageSum[], cells: readonly CellRow[]): CellRow[] {
  const rests = new Map<string, { readonly cell: CellRow; readonly rest: bigint[] }>()
  for (const sum of sums) {
    const { accountId, keyId, model } = sum
    const start = timeText(sum.startMs).slice(0, 19)
    const empty = Object.fromEntries(DIMENSIONS.map((dimension) => [dimension, '']))
    const cell = { start, grain: 'hour', ...empty, account_id: accountId, key_id: keyId, model }
    const rest = figuresOfSum(sum).map((figure) => BigInt(figure))
    rests.set(JSON.stringify([start, accountId, keyId, model]), { cell, rest })
  }
  for (const cell of cells) {
    const { start, account_id: account, key_id: key, model } = cell
    const name = JSON.stringify([start, account, key, model])
    const known = rests.get(name)
    const rest = known?.rest ?? FIGURES.map(() => 0n)
    for (const [at, figure] of FIGURES.entries()) rest[at] = (rest[at] ?? 0n) - figureIn(cell, figure)
    if (known === undefined) {
      const empty = Object.fromEntries(DIMENSIONS.map((dimension) => [dimension, '']))
      const own = { start, grain: 'hour', ...empty, account_id: account, key_id: key, model }
      rests.set(name, { cell: own, rest })
    }
  }
  return Array.from(rests.values()).flatMap(({ cell, rest }): CellRow[] => {
    if (rest.every((figure) => figure === 0n)) return []
    const figures = Object.fromEntries(FIGURES.map((name, at) => [name, String(rest[at] ?? 0n)]))
    return [{ ...cell, ...figures, first_content: Array.from({ length: BUCKETS }, () => 0) }]
  })
}

/** What the archive has of a transfer. */
export async function sealedInArchive(
  engine: ArchiveEngine,
  seal: number,
): Promise<{ readonly cells: number; readonly requests: bigint; readonly cost: bigint }> {
  const sql = new Sql(engine.is)
  const [row] = await engine.query(
    `SELECT count(*) AS cells, coalesce(sum(requests), 0) AS requests, coalesce(sum(cost_nano_usd), 0) AS cost
     FROM ${engine.is.hours} WHERE seal = ${sql.number(seal)}`,
    sql.parameters,
  )
  const big = (name: string) => BigInt(textIn(row, name) || '0')
  return { cells: numberIn(row, 'cells'), requests: big('requests'), cost: big('cost') }
}

/** The totals of cells. */
export function totalsOf(cells: readonly CellRow[]): { cells: number; requests: bigint; cost: bigint } {
  let [requests, cost] = [0n, 0n]
  for (const cell of cells) {
    requests += figureIn(cell, 'requests')
    cost += figureIn(cell, 'cost_nano_usd')
  }
  return { cells: cells.length, requests, cost }
}
