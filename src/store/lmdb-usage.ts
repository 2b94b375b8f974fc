/**
 * Reading the embedded engine's ledger: a row, pages of rows, sums, everything. Long reads go in
 * slices, so that no question, however wide, holds the event loop up. Knows no limit and writes nothing.
 */
import type { UsageRow } from '../ledger/row.js'
import { readRow } from './usage-record.js'
import { readSum, shownSum } from './usage-sum.js'
import type { RowPage, RowQuery, SumQuery, UsageSum } from './ledger.js'
import { namesBelow } from './lmdb-account-rows.js'
import { damaged } from './lmdb-failure.js'
import type { LedgerFile } from './lmdb-ledger-file.js'
import {
  BUCKET_MS,
  endOf,
  isName,
  readSumName,
  rowNameOf,
  sumsFrom,
  sumsBegin,
  timeName,
  type LedgerTables,
} from './lmdb-ledger-tables.js'

/** Records read in one slice: a millisecond or two. */
const SLICE = 200
/** Rows looked at for one page; where no more match, the page is short and says where it stopped. */
const MOST_LOOKED_AT = 10_000
/** As much as any end of a page that we gave out. */
const MOST_CURSOR = 300

/** One row, by request id. */
export function rowOf(
  tables: LedgerTables,
  accountId: string | null,
  requestId: string,
): UsageRow | null {
  const name = isName(requestId) ? rowNameOf(tables, requestId) : null
  const text = name === null ? undefined : tables.rows.get(name)
  if (name === null || text === undefined) return null
  const row = readRowAt(name, text)
  return accountId === null || row.accountId === accountId ? row : null
}

/** One page of rows, newest first. */
export async function pageOf(file: LedgerFile, query: RowQuery): Promise<RowPage> {
  const rows: UsageRow[] = []
  const oldest = timeName(query.fromMs ?? 0)
  // Text that a row must have to match: most rows of others need not be parsed.
  const marks = [query.keyId, query.model].flatMap((mark) =>
    mark === undefined ? [] : [JSON.stringify(mark)],
  )
  let from = newestOf(query)
  let next: string | null = null
  let lookedAt = 0
  await file.readInSlices('reading rows', (tables) => {
    let seen = 0
    for (const name of namesFrom(tables, query.accountId, from, oldest)) {
      if (name === from) continue
      if (rows.length === query.limit || seen === SLICE) {
        next = from
        break
      }
      seen += 1
      from = name
      next = null
      const text = tables.rows.get(name)
      // A row that was damaged leaves its name behind when it is dropped.
      if (text === undefined) continue
      if (!marks.every((mark) => text.includes(mark))) continue
      const row = readRowAt(name, text)
      if (matches(row, query)) rows.push(row)
    }
    lookedAt += seen
    return next === null || rows.length === query.limit || lookedAt >= MOST_LOOKED_AT
  })
  return { rows, next }
}

/** Sums, in order of time. */
export async function sumsOf(file: LedgerFile, query: SumQuery): Promise<UsageSum[]> {
  const found: UsageSum[] = []
  await eachSum(file, query, (name, bytes) => {
    found.push(shownSum(sumAt(name, bytes), readSumName(name)))
  })
  return found
}

/** All rows from a time on, oldest first. */
export async function* exported(
  file: LedgerFile,
  sinceMs: number,
): AsyncGenerator<readonly UsageRow[]> {
  let from = timeName(sinceMs)
  for (;;) {
    const batch = await file.read('exporting rows', (tables) => {
      const range = { start: from, limit: SLICE }
      return Array.from(tables.rows.getRange(range), ({ key: name, value }) => {
        from = `${name}\0`
        return readRowAt(name, value)
      })
    })
    if (batch.length === 0) return
    yield batch
  }
}

/** Calls back for each sum of a question; others are skipped, not read. */
async function eachSum(
  file: LedgerFile,
  query: SumQuery,
  found: (name: string, bytes: Buffer) => void,
): Promise<void> {
  const { by, model, per: kind = 'key' } = query
  const own = ownerPrefix(query, kind)
  if (own === null) return
  const length = BUCKET_MS[by]
  const lastMs = Math.floor(query.toMs / length) * length
  let atMs = Math.floor(Math.max(0, query.fromMs) / length) * length
  let from = sumsFrom(by, atMs, kind) + own
  await file.readInSlices('reading sums', (tables) => {
    let seen = 0
    while (atMs <= lastMs && seen < SLICE) {
      const prefix = sumsFrom(by, atMs, kind) + own
      const range = { start: from, end: endOf(sumsBegin(by, kind)), limit: SLICE }
      let nextMs: number | null = null
      for (const { key: name, value } of tables.sums.getRange(range)) {
        seen += 1
        if (!name.startsWith(prefix)) {
          // Another's in this bucket, or the first of the next that has any: a year without one is one step.
          nextMs = Math.max(atMs + length, readSumName(name).startMs)
          break
        }
        from = `${name}\0`
        if (isOf(name, query, model)) found(name, value)
      }
      if (nextMs === null) return seen < SLICE
      atMs = nextMs
      from = sumsFrom(by, atMs, kind) + own
    }
    return atMs > lastMs
  })
}

/** What the names of a question's sums go on with behind the time; null where there can be none. */
function ownerPrefix({ accountId, keyId }: SumQuery, kind: 'key' | 'model'): string | null {
  if (accountId !== null && !isName(accountId)) return null
  if (keyId !== undefined && !isName(keyId)) return null
  // Everybody's have no account in their name.
  if (accountId === null) return kind === 'model' ? ' ' : ''
  return keyId === undefined ? `${accountId} ` : `${accountId} ${keyId} `
}

/** Whether a sum is of the model, and of the key where its place does not tell already. */
function isOf(name: string, { accountId, keyId }: SumQuery, model: string | undefined): boolean {
  const isKnown = keyId === undefined || accountId !== null
  if (model === undefined && isKnown) return true
  const of = readSumName(name)
  return (model === undefined || of.model === model) && (isKnown || of.keyId === keyId)
}

/** Names of rows from one down to another, newest first. */
function* namesFrom(
  tables: LedgerTables,
  accountId: string | null,
  from: string,
  oldest: string,
): Generator<string> {
  if (accountId === null) {
    const range = { start: from, end: oldest, reverse: true }
    for (const name of tables.rows.getKeys(range)) yield name
    return
  }
  if (!isName(accountId)) return
  yield* namesBelow(tables.byAccount, accountId, from, oldest)
}

/** Behind the first row that a page may show. */
function newestOf({ toMs, after }: RowQuery): string {
  const newest = toMs === undefined ? endOf('') : timeName(Math.max(0, toMs))
  if (after === null) return newest
  const cursor = after.slice(0, MOST_CURSOR)
  return cursor < newest ? cursor : newest
}

function matches(row: UsageRow, { keyId, model, failed }: RowQuery): boolean {
  return (
    (keyId === undefined || row.keyId === keyId) &&
    (model === undefined || row.model === model) &&
    (failed === undefined || (row.outcome !== 'ok') === failed)
  )
}

function readRowAt(name: string, text: string): UsageRow {
  try {
    return readRow(text)
  } catch (cause) {
    throw damaged(`row '${name}'`, cause instanceof Error ? cause.message : String(cause))
  }
}

function sumAt(name: string, bytes: Buffer): ReturnType<typeof readSum> {
  try {
    return readSum(bytes)
  } catch (cause) {
    throw damaged(`sum '${name}'`, cause instanceof Error ? cause.message : String(cause))
  }
}
