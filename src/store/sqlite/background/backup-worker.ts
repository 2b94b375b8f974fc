/**
 * The thread of `backup.ts`: copies a store to a file while the thread that started it reports how far it is.
 * `VACUUM INTO` reads one snapshot; writers go on meanwhile.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { connect } from '../driver.js'
import { isCopyOrder } from './backup.js'

/** How long a lock of another process is waited for. */
const PATIENCE_MS = 10_000

const order: unknown = workerData
if (!isCopyOrder(order)) throw new Error('no store to copy was named')
const db = connect(order.path)
try {
  db.exec(`PRAGMA busy_timeout = ${PATIENCE_MS}`)
  db.prepare('VACUUM INTO ?').run(order.file)
} finally {
  db.close()
}
parentPort?.postMessage('copied')
