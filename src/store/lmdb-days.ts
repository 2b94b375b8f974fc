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
} from './lmdb-ledger-tables.js'
import { readDays, SPAN_MS, spanOf, usedBetween } from './usage-days.js'

/** Records read in one slice: a millisecond or two. */
const SLICE = 500

/** See `Ledger.keyUse`. */
export async function keyUse(file: LedgerFile, query: KeyUseQuery): Promise<KeyUse[]> {
  const { accountId, keyIds, model, fromMs, toMs } = query
  const used = new Map<string, Mutable<KeyUse>>()
  const spans = await file.read('reading days', (tables) => spansOf(tables, fromMs, toMs))
  for (const spanMs of spans) {
    // The models of a key follow one another.
    let last = { prefix: '\0', use: NOBODY }
    await eachRecord(file, spanMs, ownersOf(accountId, keyIds), (name, bytes) => {
      if (model !== undefined && readDaysName(name).model !== model) return
      const use = intact(name, () => usedBetween(bytes, spanMs, fromMs, toMs))
      if (use.requests === 0) return
      if (!name.startsWith(last.prefix)) last = { prefix: keyPart(name), use: useOf(used, name) }
      last.use.requests += use.requests
      last.use.costNanoUsd += use.costNanoUsd
      last.use.unpriced += use.unpriced
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
    await eachRecord(file, spanMs, owners, (name, bytes) => {
      const { keyId } = readDaysName(name)
      const { lastAtMs } = intact(name, () => readDays(bytes))
      uses.set(keyId, Math.max(uses.get(keyId) ?? 0, lastAtMs))
    })
  }
  return uses
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

const NOBODY: Mutable<KeyUse> = {
  accountId: '',
  keyId: '',
  requests: 0,
  costNanoUsd: 0,
  unpriced: 0,
}

/** What a name begins with up to its model. */
function keyPart(name: string): string {
  return name.slice(0, name.indexOf(' ', name.indexOf(' ') + 1) + 1)
}

function useOf(used: Map<string, Mutable<KeyUse>>, name: string): Mutable<KeyUse> {
  const { accountId, keyId } = readDaysName(name)
  const id = `${accountId} ${keyId}`
  const known = used.get(id)
  if (known !== undefined) return known
  const made = { ...NOBODY, accountId, keyId }
  used.set(id, made)
  return made
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
  found: (name: string, bytes: Buffer) => void,
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
        found(name, value)
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

function intact<T>(name: string, read: () => T): T {
  try {
    return read()
  } catch (cause) {
    throw damaged(`the days '${name}'`, cause instanceof Error ? cause.message : String(cause))
  }
}
