/**
 * The code of the background thread: runs the tasks that background.ts posts, in sequence. A thread that only
 * copies the log, as that of a gateway without requests does, never loads the other tasks.
 */
import { statSync } from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'
import { isReadOnly, type Connection } from '../driver.js'
import { openToRead, REOPEN_MS, writableConnection } from '../reopen.js'
import type { BackgroundFile, TaskMessage, TaskResult } from './background.js'
import type { Tasks } from './tasks.js'
import { cutsLog, WriteAheadLog } from './write-ahead-log.js'

const BUSY_MS = 10_000
let reopenedAtMs = Number.NEGATIVE_INFINITY
const PRAGMAS = `
  PRAGMA busy_timeout = ${BUSY_MS};
  PRAGMA synchronous = NORMAL;
  PRAGMA wal_autocheckpoint = 0;
  PRAGMA temp_store = MEMORY;
  PRAGMA cache_size = -16000;
`

const file = workerData as BackgroundFile
const { path, longBytes } = file
const pragmas = PRAGMAS + cutsLog(longBytes)
let db = connectTo(file)
let log = logOf(db)
/** On the current connection, from the first use on. */
let tasks: Tasks | null = null
let last: Promise<void> = Promise.resolve()

parentPort?.on('message', (message: TaskMessage) => {
  last = last.then(async () => parentPort?.postMessage(await run(message)))
})

/** SQLite would create a file that was moved away, and its log beside the one that comes back. */
function connectTo({ path, opened }: BackgroundFile): Connection {
  const now = statSync(path, { throwIfNoEntry: false })
  if (now?.ino !== opened.ino || now.dev !== opened.dev) {
    throw new Error(`'${path}' was removed or replaced while it was open`)
  }
  return openToRead(path, pragmas).db
}

function logOf(connection: Connection): WriteAheadLog {
  return new WriteAheadLog(connection, path, { longBytes, busyMs: BUSY_MS })
}

async function run(message: TaskMessage): Promise<TaskResult> {
  const { id, name, args } = message
  try {
    if (name === 'checkpoint') return { id, result: log.copy() }
    if (name === 'close') return { id, result: db.close() }
    const { tasksOf } = await import('./tasks.js')
    tasks ??= tasksOf(db, log)
    const task: (...given: readonly never[]) => unknown = tasks[name]
    return { id, result: task(...args) }
  } catch (error) {
    if (isReadOnly(error) && reopen()) return run(message)
    return { id, failure: error instanceof Error ? error.message : String(error) }
  }
}

/** Replaces a connection that is read-only, if the file can be written now. */
function reopen(): boolean {
  const nowMs = performance.now()
  if (nowMs - reopenedAtMs < REOPEN_MS) return false
  reopenedAtMs = nowMs
  const writable = writableConnection(path, pragmas)
  if (writable === null) return false
  db.close()
  db = writable
  log = logOf(db)
  tasks = null
  return true
}
