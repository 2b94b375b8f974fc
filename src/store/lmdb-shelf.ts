/**
 * The embedded engine's shelf: an LMDB environment of its own beside the accounts', so that no amount
 * of short-lived values can fill the file of keys, hold their writers up or harm them.
 * Knows nothing of what the values are.
 *
 * Beside each value stands its place in the order of expiry; how much there is in all is counted in
 * the same transaction. The environment is opened by the first who asks.
 */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { open, type Database, type RootDatabase } from 'lmdb'
import { quietly, reasonOf, unavailable } from './lmdb-failure.js'
import { assertLmdbFile } from './lmdb-file.js'
import type { Shelf, Shelved, ShelfRoom } from './store.js'
import { noTransaction, transact } from './lmdb-transaction.js'

/** Address space, not disk: four times the most that the configuration allows, for pages half full. */
const MAP_BYTES = 16 * 1024 ** 3
const MAX_READERS = 512
/** Removed in one transaction; others may write in between. */
const BATCH = 256
/** The time of expiry stands before each value, as a double. */
const HEAD_BYTES = 8

interface Tables {
  readonly root: RootDatabase<Buffer>
  readonly values: Database<Buffer, string>
  /** Expiry and name, in that order, to the bytes that the entry counts for. */
  readonly ends: Database<string, [number, string]>
  readonly totals: Database<string, string>
}

/** Opened on first use; `close` may be called in any state. */
export class LmdbShelf implements Shelf {
  private readonly path: string
  private tables: Tables | null = null
  private opening: Promise<Tables> | null = null
  private closed = false

  constructor(path: string) {
    this.path = path
  }

  async put(name: string, item: Shelved, room: ShelfRoom, nowMs: number): Promise<void> {
    const value = Buffer.concat([headOf(item.expiresAtMs), item.value])
    await this.write('keeping a value', (tables) => {
      removed(tables, name)
      const bytes = name.length + item.value.length
      quietly(tables.values.put(name, value))
      quietly(tables.ends.put([item.expiresAtMs, name], String(bytes)))
      add(tables, 1, bytes)
      return trimmed(tables, room, nowMs)
    })
  }

  get(names: readonly string[], nowMs: number): (Shelved | null)[] | Promise<(Shelved | null)[]> {
    if (this.tables !== null) return read(this.tables, names, nowMs, this.closed)
    return this.opened().then((tables) => read(tables, names, nowMs, this.closed))
  }

  async sweep(room: ShelfRoom, nowMs: number): Promise<number> {
    for (let count = 0; ;) {
      const gone = await this.write('sweeping', (tables) => trimmed(tables, room, nowMs))
      count += gone
      if (gone < BATCH) return count
    }
  }

  async close(): Promise<void> {
    this.closed = true
    const tables = await this.opening
    this.tables = null
    await tables?.root.close()
  }

  private async write<T>(what: string, action: (tables: Tables) => T): Promise<T> {
    const tables = await this.opened()
    try {
      return await transact(tables.root, () => action(tables))
    } catch (cause) {
      throw unavailable(`${what} failed`, await reasonOf(cause))
    }
  }

  private async opened(): Promise<Tables> {
    try {
      if (this.closed) throw new Error('the store has been closed')
      this.opening ??= openTables(this.path)
      this.tables = await this.opening
      return this.tables
    } catch (cause) {
      this.opening = null
      throw unavailable(`opening the shelf in '${this.path}' failed`, cause)
    }
  }
}

async function openTables(path: string): Promise<Tables> {
  await mkdir(path, { recursive: true, mode: 0o700 })
  await assertLmdbFile(join(path, 'data.mdb'))
  await noTransaction()
  const root = open<Buffer, string>({
    path,
    noSubdir: false,
    encoding: 'binary',
    overlappingSync: false,
    eventTurnBatching: false,
    mapSize: MAP_BYTES,
    maxReaders: MAX_READERS,
    maxDbs: 4,
  })
  return {
    root,
    values: root.openDB<Buffer, string>('values', { encoding: 'binary' }),
    ends: root.openDB<string, [number, string]>('ends', { encoding: 'string' }),
    totals: root.openDB<string, string>('totals', { encoding: 'string' }),
  }
}

function read(
  tables: Tables,
  names: readonly string[],
  nowMs: number,
  closed: boolean,
): (Shelved | null)[] {
  try {
    if (closed) throw new Error('the store has been closed')
    tables.root.resetReadTxn()
    return names.map((name) => {
      const item = itemOf(tables.values.get(name))
      return item === null || item.expiresAtMs <= nowMs ? null : item
    })
  } catch (cause) {
    throw unavailable('reading a value failed', cause)
  }
}

function headOf(expiresAtMs: number): Buffer {
  const head = Buffer.alloc(HEAD_BYTES)
  head.writeDoubleBE(expiresAtMs)
  return head
}

function itemOf(record: Buffer | undefined): Shelved | null {
  if (record === undefined || record.length < HEAD_BYTES) return null
  return { expiresAtMs: record.readDoubleBE(), value: record.subarray(HEAD_BYTES) }
}

/** Takes an entry and its place away; only inside a transaction. */
function removed(tables: Tables, name: string): void {
  const item = itemOf(tables.values.get(name))
  if (item === null) return
  quietly(tables.values.remove(name))
  quietly(tables.ends.remove([item.expiresAtMs, name]))
  add(tables, -1, -(name.length + item.value.length))
}

/** Up to `BATCH` entries fewer: the expired ones, then the next to expire while there is no room. */
function trimmed(tables: Tables, room: ShelfRoom, nowMs: number): number {
  let entries = total(tables, 'entries')
  let bytes = total(tables, 'bytes')
  const leaving: string[] = []
  for (const { key, value } of tables.ends.getRange({ limit: BATCH })) {
    const [expiresAtMs, name] = key
    if (expiresAtMs > nowMs && entries <= room.entries && bytes <= room.bytes) break
    entries -= 1
    bytes -= Number(value)
    leaving.push(name)
  }
  for (const name of leaving) removed(tables, name)
  return leaving.length
}

function total(tables: Tables, name: 'entries' | 'bytes'): number {
  return Number(tables.totals.get(name) ?? '0')
}

function add(tables: Tables, entries: number, bytes: number): void {
  quietly(tables.totals.put('entries', String(total(tables, 'entries') + entries)))
  quietly(tables.totals.put('bytes', String(total(tables, 'bytes') + bytes)))
}
