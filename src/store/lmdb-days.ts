/**
 * Reading days of use from the embedded engine's ledger: what keys used, and when they were used last.
 * Long reads go in slices. Writes nothing.
 */
import type { KeyUse, KeyUseQuery } from './ledger.js'
import { damaged } from './lmdb-failure.js'
import type { LedgerFile } from './lmdb-ledger-file.js'
import {
  endOf,
  isName,
  readDaysName,
  timeName,
  timeOf,
  type LedgerTables,
  type PlaceOfUse,
} from './lmdb-ledger-tables.js'
import { added, readDays, SPAN_MS, spanOf, usedBetween } from './usage-days.js'

/** Records read in one slice: a millisecond or two. */
const SLICE = 500

/** See `Ledger.keyUse`. */
export async function keyUse(file: LedgerFile, query: KeyUseQuery): Promise<KeyUse[]> {
  const { accountId, keyIds, model, fromMs, toMs } = query
  const used = new Map<string, KeyUse>()
  const spans = await file.read('reading days', (tables) => spansOf(tables, fromMs, toMs))
  for (const spanMs of spans) {
    await eachRecord(file, spanMs, ownersOf(accountId, keyIds), (place, bytes) => {
      if (model !== undefined && place.model !== model) return
      const use = intact(place, () => usedBetween(bytes, spanMs, fromMs, toMs))
      if (use.requests === 0) return
      const { accountId, keyId } = place
      const id = `${accountId} ${keyId}`
      const before = used.get(id)
      const { requests, costNanoUsd, unpriced } = before === undefined ? use : added(before, use)
      used.set(id, { accountId, keyId, requests, costNanoUsd, unpriced })
    })
  }
  return [...used.values()]
}

/** See `Ledger.lastUse`. From the newest span back, until all keys that were asked for are found. */
export async function lastUse(
  file: LedgerFile,
  accountId: string,
  keyIds?: readonly string[],
): Promise<Map<string, number>> {
  const uses = new Map<string, number>()
  const spans = await file.read('reading uses', (tables) => spansOf(tables, 0, Number.MAX_VALUE))
  for (const spanMs of spans.reverse()) {
    const owners = ownersOf(
      accountId,
      keyIds?.filter((id) => !uses.has(id)),
    )
    await eachRecord(file, spanMs, owners, (place, bytes) => {
      const { lastAtMs } = intact(place, () => readDays(bytes))
      uses.set(place.keyId, Math.max(uses.get(place.keyId) ?? 0, lastAtMs))
    })
  }
  return uses
}

/** What names of records go on with behind the span: one beginning, or one for each key. */
function ownersOf(accountId: string | null, keyIds: readonly string[] | undefined): string[] {
  if (accountId === null) return ['']
  if (!isName(accountId)) return []
  if (keyIds === undefined) return [`${accountId} `]
  return keyIds.filter(isName).map((keyId) => `${accountId} ${keyId} `)
}

async function eachRecord(
  file: LedgerFile,
  spanMs: number,
  owners: readonly string[],
  found: (place: PlaceOfUse, bytes: Buffer) => void,
): Promise<void> {
  let at = 0
  let from = ''
  await file.readInSlices('reading days', ({ days }) => {
    for (let seen = 0; seen < SLICE; seen += 1) {
      const owner = owners[at]
      if (owner === undefined) return true
      const prefix = timeName(spanMs) + owner
      const start = from === '' ? prefix : from
      from = ''
      for (const { key: name, value } of days.getRange({ start, end: endOf(prefix) })) {
        found(readDaysName(name), value)
        seen += 1
        if (seen < SLICE) continue
        from = `${name}\0`
        return false
      }
      at += 1
    }
    return false
  })
}

/** The spans between two times that have anything; a handful, since older ones are dropped. */
function spansOf({ days }: LedgerTables, fromMs: number, toMs: number): number[] {
  const spans: number[] = []
  for (let atMs = spanOf(fromMs); atMs <= toMs;) {
    const [name] = Array.from(days.getKeys({ start: timeName(atMs), limit: 1 }))
    if (name === undefined || timeOf(name) > toMs) break
    spans.push(timeOf(name))
    atMs = timeOf(name) + SPAN_MS
  }
  return spans
}

function intact<T>({ keyId }: PlaceOfUse, read: () => T): T {
  try {
    return read()
  } catch (cause) {
    throw damaged(`days of '${keyId}'`, cause instanceof Error ? cause.message : String(cause))
  }
}
