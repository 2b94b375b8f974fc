/**
 * Ledger entries as rows: what an entry has of its own in `entry_rows`, and what it has in common with others
 * once a month in `entry_kinds` and `entry_texts`. They are read through the view `ledger_entries`.
 */
import { createHash } from 'node:crypto'
import { timeOfRequestId } from '../../../http/request-id.js'
import { EMPTY_ENTRY, parseEntry, STAGES, STORED, type LedgerEntry } from '../../../ledger/entry.js'
import { monthOf } from '../../limit-arithmetic.js'
import { numbersIn, numbersText } from '../../records/packed-entry.js'
import { damaged } from '../../store-errors.js'
import { numberIn, type Row, type Statement, type Statements, type Value } from '../driver.js'
import { finite } from '../../records/entry-text.js'

const STAGE_NAMES = Object.keys(STAGES)

/** The columns of `entry_kinds`; their values are in common. */
const KIND_COLUMNS = [
  ...['account_id', 'key_id', 'model_asked', 'model_answered', 'model', 'upstream', 'dialect', 'attempts'],
  ...['stream', 'status', 'outcome', 'finish_reason', 'source', 'losses', 'generation', 'ingress', 'limit'],
  ...['upstream_status', 'attempted', 'price_version', 'gateway', 'generation_hash', 'cache_hit'],
  ...['account_path', 'identity', 'guardrails', 'recorded', 'program', 'user'],
]
const KIND_VALUES = KIND_COLUMNS.flatMap((name) => STORED.find(({ column }) => column === name) ?? [])

const OWN_COLUMNS = [
  ...['seq', 'id', 'at_ms', 'kind', 'labels_text', 'error_text', 'is_failed', 'duration_us', 'input_tokens'],
  ...['output_tokens', 'cache_read_tokens', 'cache_write_tokens', 'cache_write_1h_tokens'],
  ...['reasoning_tokens', 'cost_nano_usd', 'tokens_after_disconnect', 'first_content_us', 'overhead_us'],
  ...['stages_us', 'attempts_us', 'upstream_request_id', 'shadow_of', 'client_request_id'],
  ...['retry_after_seconds', 'saved_nano_usd', 'cache_marks', 'cache_marks_saved_nano_usd', 'dimensions'],
  ...['units', 'batch'],
]
const INSERT_ROW = `INSERT INTO entry_rows (${OWN_COLUMNS.join(', ')})
  VALUES (${OWN_COLUMNS.map(() => '?').join(', ')})`

/** Selects the entry of a request. Two queries, because SQLite uses one index for each. */
export const SELECT_REQUEST = `SELECT seq FROM entry_ids WHERE at_ms = ?1 AND id = ?2
  UNION ALL SELECT seq FROM entry_ids WHERE typeof(id) = 'text' AND id = ?3`

/** The values of `SELECT_REQUEST`. */
type IdValues = readonly [atMs: number, id: Uint8Array | null, text: string]

/** The last values: a request is looked up, reserved and settled in sequence. */
let last: IdValues = [-1, null, '']

/** The values of a request. */
export function idValues(requestId: string): IdValues {
  if (last[2] === requestId) return last
  const atMs = timeOfRequestId(requestId)
  last = atMs === null ? [-1, null, requestId] : [atMs, bytesOf(requestId), requestId]
  return last
}

/** The id of an entry in its row. */
export function idOf(requestId: string, atMs: number): Uint8Array | string {
  const [idMs, id] = idValues(requestId)
  return idMs === atMs && id !== null ? id : requestId
}

function bytesOf(uuid: string): Uint8Array {
  return Buffer.from(uuid.replaceAll('-', ''), 'hex')
}

/** Numbers of kinds and texts that are kept in memory: about 4 MB. */
const MOST_KEPT = 8_000
/** Those of one name, which are compared in sequence. */
const MOST_OF_NAME = 40

/** The name under which a kind is kept: key, model and status. */
function kindName(values: readonly Value[]): string {
  return `${String(values[1])} ${String(values[4])} ${String(values[9])}`
}

/** Writes entries. Its methods are for the inside of a transaction. */
export class EntryWriter {
  private readonly nowMs: () => number
  private readonly isKnown: Statement
  private readonly insertRow: Statement
  private readonly kinds: Common
  private readonly texts: Common

  constructor(db: Statements, nowMs: () => number) {
    this.nowMs = nowMs
    this.isKnown = db.prepare(`${SELECT_REQUEST} LIMIT 1`)
    this.insertRow = db.prepare(INSERT_ROW)
    this.kinds = new Common(db, 'entry_kinds', KIND_COLUMNS, kindName)
    this.texts = new Common(db, 'entry_texts', ['text'], String)
  }

  /** Whether the request has an entry. */
  has(requestId: string): boolean {
    return this.isKnown.get(...idValues(requestId)) !== undefined
  }

  /** Adds an entry of a request that has none; null is the next `seq`. */
  insert(entry: LedgerEntry, seq: number | null): void {
    const { atMs, usage, hops, labels, errorMessage } = entry
    const month = monthOf(atMs)
    // Another process may remove what earlier months have in common.
    const isKept = month >= monthOf(this.nowMs())
    const textOf = (text: string) => this.texts.number(month, [text], isKept)
    const stages: Parts = hops
    // `get` makes no object with the number of changes.
    this.insertRow.get(
      seq,
      idOf(entry.requestId, atMs),
      finite(atMs),
      this.kindOf(entry, month, isKept),
      labels === null ? null : textOf(labels),
      errorMessage === null ? null : textOf(errorMessage),
      entry.outcome === 'ok' ? 0 : 1,
      micros(entry.durationMs),
      known(usage.input),
      known(usage.output),
      known(usage.cacheRead),
      known(usage.cacheWrite),
      known(usage.cacheWrite1h),
      known(usage.reasoning),
      known(entry.costNanoUsd),
      finite(entry.tokensAfterDisconnect),
      hops.firstContent === undefined ? null : micros(hops.firstContent),
      hops.overhead === undefined ? null : micros(hops.overhead),
      numbersText(STAGE_NAMES.map((stage) => microsIfKnown(stages[stage]))),
      entry.attemptMs === null ? null : numbersText(entry.attemptMs.map(micros)),
      entry.upstreamRequestId,
      entry.shadowOf,
      entry.clientRequestId,
      known(entry.retryAfterSeconds),
      known(entry.savedNanoUsd),
      known(entry.cacheMarks),
      known(entry.cacheMarksSavedNanoUsd),
      entry.dimensions,
      entry.units,
      entry.batch,
    )
  }

  /** The number of what the entry has in common with others. */
  private kindOf(entry: LedgerEntry, month: number, isKept: boolean): number {
    const values: Value[] = []
    for (const { member } of KIND_VALUES) values.push(plain(entry[member]))
    return this.kinds.number(month, values, isKept)
  }

  /** Drops what was written in a transaction that was rolled back. */
  drop(): void {
    this.kinds.drop()
    this.texts.drop()
  }
}

/** Values and their number, of one month. */
interface Kept {
  readonly values: readonly Value[]
  readonly month: number
  readonly number: number
}

/** What entries of a month have in common, in one table; each set of values has a number. */
class Common {
  private readonly select: Statement
  private readonly insert: Statement
  private readonly nameOf: (values: readonly Value[]) => string
  /** Lists by name: a text of all values would take longer than their comparison. */
  private readonly kept = new Map<string, Kept[]>()
  private size = 0

  constructor(
    db: Statements,
    table: 'entry_kinds' | 'entry_texts',
    columns: readonly string[],
    nameOf: (values: readonly Value[]) => string,
  ) {
    const names = columns.map((column) => `"${column}"`).join(', ')
    this.nameOf = nameOf
    this.select = db.prepare(`SELECT number FROM ${table} WHERE month = ? AND digest = ?`)
    this.insert = db.prepare(
      `INSERT INTO ${table} (month, digest, ${names}) VALUES (?, ?, ${columns.map(() => '?').join(', ')})
       RETURNING number`,
    )
  }

  /** The number of the values; with `isKept` it stays in memory. */
  number(month: number, values: readonly Value[], isKept: boolean): number {
    const name = isKept ? this.nameOf(values) : ''
    const list = this.kept.get(name)
    const known = isKept
      ? list?.find((each) => each.month === month && areSame(each.values, values))
      : undefined
    if (known !== undefined) return known.number
    const digest = createHash('sha256').update(JSON.stringify(values)).digest().subarray(0, 16)
    const row = this.select.get(month, digest) ?? this.insert.get(month, digest, ...values)
    const number = numberIn(row ?? {}, 'number')
    if (isKept) this.keep(name, { values, month, number })
    return number
  }

  private keep(name: string, kept: Kept): void {
    if (this.size >= MOST_KEPT) this.drop()
    this.size += 1
    const list = this.kept.get(name)
    if (list === undefined || list.length >= MOST_OF_NAME) this.kept.set(name, [kept])
    else list.push(kept)
  }

  drop(): void {
    this.kept.clear()
    this.size = 0
  }
}

function areSame(one: readonly Value[], other: readonly Value[]): boolean {
  return one.every((value, at) => value === other[at])
}

/** Removes what only entries of months before a time, and before the oldest entry, had in common. */
export function dropMonths(db: Statements, beforeMs: number): void {
  const oldest = db.prepare('SELECT min(at_ms) AS at_ms FROM entry_rows').get()?.['at_ms']
  const month = monthOf(Math.min(beforeMs, typeof oldest === 'number' ? oldest : beforeMs))
  for (const table of ['entry_kinds', 'entry_texts']) {
    db.prepare(`DELETE FROM ${table} WHERE month < ?`).run(month)
  }
}

/** Counts or durations by name. */
type Parts = Readonly<Record<string, number | undefined>>

/** A value that is no count, duration or list of durations. */
function plain(value: unknown): Value {
  if (typeof value === 'string') return value
  if (typeof value === 'number') return finite(value)
  if (typeof value === 'boolean') return value ? 1 : 0
  if (!Array.isArray(value)) return null
  return value.length === 0 ? '[]' : JSON.stringify(value)
}

function known(value: number | null | undefined): number | null {
  return value === null || value === undefined ? null : finite(value)
}

function micros(ms: number): number {
  return Math.round(finite(ms) * 1_000)
}

function microsIfKnown(ms: number | undefined): number | null {
  return ms === undefined || !Number.isFinite(ms) ? null : micros(ms)
}

/** The values of an entry of `ledger_entries` in the order of `STORED`, as a JSON array. */
export const ENTRY_VALUES = `json_array(${STORED.map(({ column }) => `"${column}"`).join(', ')})`

/** The entry in a row of `ledger_entries`. Throws an Error that names it if it is damaged. */
export function entryIn(row: Row): LedgerEntry {
  return entryOfValues(STORED.map(({ column }) => row[column] ?? null))
}

/** The entry with these values in the order of `STORED`. Throws an Error that names it if it is damaged. */
export function entryOfValues(values: readonly unknown[]): LedgerEntry {
  try {
    const { success, data, error } = parseEntry(membersOf(values))
    if (success) return data
    const [member, part] = error.issues[0]?.path ?? []
    const wrong = STORED.find((each) => each.member === member && (each.part ?? part) === part)
    throw new Error(`column '${wrong?.column ?? ''}' is not valid`)
  } catch (cause) {
    const id = values[STORED.findIndex(({ member }) => member === 'requestId')]
    const named = typeof id === 'string' ? id : ''
    throw damaged(`request '${named}'`, cause instanceof Error ? cause.message : String(cause))
  }
}

function membersOf(values: readonly unknown[]): Readonly<Record<string, unknown>> {
  const usage: Record<string, unknown> = {}
  const hops: Record<string, unknown> = {}
  const members: Record<string, unknown> = { ...EMPTY_ENTRY, usage, hops }
  let at = 0
  for (const { member, part, column, kind } of STORED) {
    const stored = values[at++] ?? null
    const value = typeof stored === 'bigint' ? Number(stored) : stored
    if (kind === 'stages') addStages(hops, durationsIn(value, column))
    else if (member === 'attemptMs') members[member] = value === null ? null : durationsIn(value, column)
    else if (kind === 'list') members[member] = value === null ? null : listIn(value, column)
    else if (kind === 'flag') members[member] = value === 1 ? true : value === 0 ? false : value
    else if (part === null) members[member] = value
    else if (value !== null) (member === 'usage' ? usage : hops)[part] = value
  }
  return members
}

function addStages(hops: Record<string, unknown>, times: readonly unknown[]): void {
  for (const [at, stage] of STAGE_NAMES.entries()) {
    if (typeof times[at] === 'number') hops[stage] = times[at]
  }
}

/** Durations in ms: a list of microseconds, or of an earlier version a list of ms in JSON. */
function durationsIn(text: unknown, column: string): readonly unknown[] {
  if (typeof text !== 'string' || text.startsWith('[')) return listIn(text, column)
  return numbersIn(text).map((each) => (each === null ? null : each / 1_000))
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
