/**
 * The two meta pages of an LMDB data file: which transaction is the last, and how to go back to one.
 * Knows the offsets (dependencies/lmdb mdb.c, MDB_meta) and no table.
 */
import { fdatasyncSync, readSync, writeSync } from 'node:fs'
import { META_BYTES, PAGE_SIZE_AT } from './lmdb-file.js'

/** Where a meta page tells its transaction, and where what it tells begins and ends. */
const TXN_AT = 152
const BODY_AT = 24
const BODY_END = 168

/** A transaction and all that the engine needs to find its tree. */
export interface Snapshot {
  readonly txn: number
  readonly meta: Buffer
}

/** The last committed transaction; exact while the caller holds the writers' lock. */
export function lastSnapshot(file: number): Snapshot {
  const [first, second] = metas(file)
  const [one, two] = [txnOf(first), txnOf(second)]
  return one > two ? { txn: one, meta: first } : { txn: two, meta: second }
}

/** Makes a snapshot the last transaction, durably; only where no process has the file open. */
export function goBackTo(file: number, { txn, meta }: Snapshot): void {
  const body = Buffer.from(meta.subarray(BODY_AT, BODY_END))
  const pageBytes = meta.readUInt32LE(PAGE_SIZE_AT)
  for (const each of [txn, Math.max(0, txn - 1)]) {
    body.writeBigUInt64LE(BigInt(each), TXN_AT - BODY_AT)
    writeSync(file, body, 0, body.length, (each % 2) * pageBytes + BODY_AT)
  }
  fdatasyncSync(file)
}

function metas(file: number): [Buffer, Buffer] {
  const first = Buffer.alloc(META_BYTES + 8)
  const second = Buffer.alloc(META_BYTES + 8)
  readSync(file, first, 0, first.length, 0)
  readSync(file, second, 0, second.length, first.readUInt32LE(PAGE_SIZE_AT))
  return [first, second]
}

function txnOf(meta: Buffer): number {
  return Number(meta.readBigUInt64LE(TXN_AT))
}
