/**
 * Ledger entries as rows of `ledger_entries`.
 */
import { entrySchema, STAGES, STORED, type LedgerEntry } from '../../../ledger/entry.js'
import { damaged } from '../../store-errors.js'
import type { Row, Value } from '../driver.js'

const STAGE_NAMES = Object.keys(STAGES)

/**
 * Adds an entry; the parameters are `valuesOf`. Violates a constraint if the request has an entry already.
 */
export const INSERT_ENTRY = `INSERT INTO ledger_entries
  (${STORED.map(({ column }) => `"${column}"`).join(', ')})
  VALUES (${STORED.map(() => '?').join(', ')})`

/**
 * The values of `INSERT_ENTRY`. One loop without a call for each of the 43 values: a third of the time of a
 * `map` over the table.
 */
export function valuesOf(entry: LedgerEntry): Value[] {
  const values: Value[] = []
  const usage: Parts = entry.usage
  const hops: Parts = entry.hops
  for (const { member, part, kind } of STORED) {
    const value =
      kind === 'stages'
        ? stagesText(hops)
        : part === null
          ? entry[member]
          : (member === 'usage' ? usage : hops)[part]
    if (typeof value === 'string') values.push(value)
    // SQLite stores NaN as NULL.
    else if (typeof value === 'number') values.push(Number.isFinite(value) ? value : 0)
    else if (typeof value === 'boolean') values.push(value ? 1 : 0)
    else if (!Array.isArray(value)) values.push(null)
    else values.push(value.length === 0 ? '[]' : JSON.stringify(value))
  }
  return values
}

/** Counts or durations by name. */
type Parts = Readonly<Record<string, number | undefined>>

/** The entry in a row with all columns. Throws an Error that names it if it is damaged. */
export function entryIn(row: Row): LedgerEntry {
  try {
    const { success, data, error } = entrySchema.safeParse(membersOf(row))
    if (success) return data
    const [member, part] = error.issues[0]?.path ?? []
    const wrong = STORED.find((each) => each.member === member && (each.part ?? part) === part)
    throw new Error(`column '${wrong?.column ?? ''}' is not valid`)
  } catch (cause) {
    const id = typeof row['request_id'] === 'string' ? row['request_id'] : ''
    throw damaged(`request '${id}'`, cause instanceof Error ? cause.message : String(cause))
  }
}

function membersOf(row: Row): unknown {
  const usage: Record<string, unknown> = {}
  const hops: Record<string, unknown> = {}
  const members: Record<string, unknown> = { usage, hops }
  for (const { member, part, column, kind } of STORED) {
    const stored = row[column] ?? null
    const value = typeof stored === 'bigint' ? Number(stored) : stored
    if (kind === 'stages') addStages(hops, listIn(value, column))
    else if (kind === 'list') members[member] = value === null ? null : listIn(value, column)
    else if (kind === 'flag') members[member] = value === 1 ? true : value === 0 ? false : value
    else if (part === null) members[member] = value
    else if (value !== null) (member === 'usage' ? usage : hops)[part] = value
  }
  return members
}

/**
 * The times of stages without a column of their own, in the order of `STAGES`; null for a stage not reached.
 */
function stagesText(times: Parts): string {
  let text = ''
  for (const stage of STAGE_NAMES) {
    text += `${text === '' ? '' : ','}${durationText(times[stage])}`
  }
  return `[${text}]`
}

/** A duration in ms as JSON, to the microsecond. V8 takes four times as long for a fraction. */
function durationText(ms: number | undefined): string {
  if (ms === undefined || !Number.isFinite(ms)) return 'null'
  const micros = Math.round(ms * 1000)
  const wholeMs = Math.trunc(micros / 1000)
  const rest = micros - wholeMs * 1000
  if (rest <= 0 || wholeMs > MAX_EXACT_MS) return String(micros / 1000)
  return `${wholeMs}.${rest < 10 ? '00' : rest < 100 ? '0' : ''}${rest}`
}

/** Above it, the microseconds are not exact. */
const MAX_EXACT_MS = 1e9

function addStages(hops: Record<string, unknown>, times: readonly unknown[]): void {
  for (const [at, stage] of STAGE_NAMES.entries()) {
    if (typeof times[at] === 'number') hops[stage] = times[at]
  }
}

function listIn(text: unknown, column: string): readonly unknown[] {
  if (text === '[]') return []
  let value: unknown
  try {
    value = JSON.parse(String(text))
  } catch {
    // The message of the parser would quote the text.
    throw new Error(`column '${column}' is not JSON`)
  }
  if (!Array.isArray(value)) throw new Error(`column '${column}' is not a list`)
  return value
}
