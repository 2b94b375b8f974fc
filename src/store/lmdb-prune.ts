/**
 * Dropping what is old from the embedded engine's ledger, a few records at a time.
 * Knows no clock: callers say what is old.
 */
import { dropName } from './lmdb-account-rows.js'
import { quietly } from './lmdb-failure.js'
import type { LedgerFile } from './lmdb-ledger-file.js'
import {
  afterTime,
  BUCKET_MS,
  sumsFrom,
  timeName,
  timeToldBy,
  type LedgerTables,
} from './lmdb-ledger-tables.js'
import { isIdle } from './lmdb-subjects.js'
import { spanOf } from './usage-days.js'
import { readRow } from './usage-record.js'

/** Subjects looked at in one step. */
const SUBJECTS_AT_ONCE = 256

/** Drops up to `limit` rows from before a time; how many. Only inside a transaction. */
export function pruneRows(tables: LedgerTables, beforeMs: number, limit: number): number {
  const { rows, ids, byAccount } = tables
  const found = Array.from(rows.getRange({ end: timeName(beforeMs), limit }))
  for (const { key: name, value: text } of found) {
    const requestId = afterTime(name)
    const accountId = accountIn(text)
    quietly(rows.remove(name))
    if (timeToldBy(requestId) === null) quietly(ids.remove(requestId))
    if (accountId !== null) dropName(byAccount, accountId, name)
  }
  return found.length
}

/** Drops up to `limit` sums of a kind from buckets that ended before a time; how many. Only inside a transaction. */
export function pruneSums(
  tables: LedgerTables,
  by: 'hour' | 'day',
  kind: 'key' | 'model',
  beforeMs: number,
  limit: number,
): number {
  const length = BUCKET_MS[by]
  const firstKeptMs = Math.floor(beforeMs / length) * length
  const range = { start: sumsFrom(by, 0, kind), end: sumsFrom(by, firstKeptMs, kind), limit }
  const names = Array.from(tables.sums.getKeys(range))
  for (const name of names) quietly(tables.sums.remove(name))
  return names.length
}

/** Drops up to `limit` records of days whose span ended before a time; how many. Only inside a transaction. */
export function pruneDays({ days }: LedgerTables, beforeMs: number, limit: number): number {
  const names = Array.from(days.getKeys({ end: timeName(spanOf(beforeMs)), limit }))
  for (const name of names) quietly(days.remove(name))
  return names.length
}

/** Forgets limits that nobody has come under for a day, and that hold nothing. */
export async function pruneSubjects(file: LedgerFile, nowMs: number): Promise<void> {
  let from = '\0'
  let more = true
  while (more) {
    more = await file.change('pruning', ({ subjects }) => {
      const range = { start: from, limit: SUBJECTS_AT_ONCE }
      const found = Array.from(subjects.getRange(range))
      for (const { key: name, value } of found) {
        from = `${name}\0`
        if (isIdle(value, nowMs)) quietly(subjects.remove(name))
      }
      return found.length === SUBJECTS_AT_ONCE
    })
  }
}

/** Null where the row is damaged: it has to go as well. */
function accountIn(text: string): string | null {
  try {
    return readRow(text).accountId
  } catch {
    return null
  }
}
