/**
 * The thread of backup.ts, which copies a store to a file while the main thread reports progress.
 * `VACUUM INTO` copies one snapshot and does not block writers.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { connect } from '../driver.js'
import { isCopyOrder } from './backup.js'

/** Maximum time to wait for a lock of another process. */
const LOCK_TIMEOUT_MS = 10_000

const order: unknown = workerData
if (!isCopyOrder(order)) throw new Error('workerData names no store')
const db = connect(order.path)
try {
  db.exec(`PRAGMA busy_timeout = ${LOCK_TIMEOUT_MS}`)
  db.prepare('VACUUM INTO ?').run(order.file)
} finally {
  db.close()
}
parentPort?.postMessage('copied')
