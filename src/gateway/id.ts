/**
 * Request ids: UUID version 7 (RFC 9562), so that ids sort by time in logs and in the ledger.
 */
import { randomFillSync } from 'node:crypto'

const POOL_BYTES = 10 * 400
const pool = Buffer.allocUnsafe(POOL_BYTES)
let used = POOL_BYTES

/** A new id for the time given, in ms since 1970. Random bytes are drawn 400 ids at a time. */
export function newRequestId(nowMs: number): string {
  if (used === POOL_BYTES) {
    randomFillSync(pool)
    used = 0
  }
  const time = nowMs.toString(16).padStart(12, '0')
  const random = pool.toString('hex', used, used + 10)
  used += 10
  const variant = '89ab'[parseInt(random.charAt(3), 16) & 3] ?? '8'
  return (
    `${time.slice(0, 8)}-${time.slice(8)}-7${random.slice(0, 3)}-` +
    `${variant}${random.slice(4, 7)}-${random.slice(8)}`
  )
}
