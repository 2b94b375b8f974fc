/**
 * The code of the background thread: runs the tasks that background.ts posts, in sequence.
 */
import { statSync } from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'
import { connect, type Connection } from '../driver.js'
import type { BackgroundFile, TaskMessage, TaskResult } from './background.js'
import { tasksOf } from './tasks.js'
import { cutsLog, WriteAheadLog } from './write-ahead-log.js'

const BUSY_MS = 10_000
const PRAGMAS = `
  PRAGMA busy_timeout = ${BUSY_MS};
  PRAGMA synchronous = NORMAL;
  PRAGMA wal_autocheckpoint = 0;
  PRAGMA temp_store = MEMORY;
  PRAGMA cache_size = -16000;
`

const file = workerData as BackgroundFile
const { path, longBytes } = file
const db = connectTo(file)
db.exec(PRAGMAS + cutsLog(longBytes))
const tasks = tasksOf(db, new WriteAheadLog(db, path, { longBytes, busyMs: BUSY_MS }))

parentPort?.on('message', (message: TaskMessage) => {
  parentPort?.postMessage(run(message))
})

/** SQLite would create a file that was moved away, and its log beside the one that comes back. */
function connectTo({ path, opened }: BackgroundFile): Connection {
  const now = statSync(path, { throwIfNoEntry: false })
  if (now?.ino !== opened.ino || now.dev !== opened.dev) {
    throw new Error(`'${path}' was removed or replaced while it was open`)
  }
  return connect(path)
}

function run({ id, name, args }: TaskMessage): TaskResult {
  try {
    const task: (...given: readonly never[]) => unknown = tasks[name]
    return { id, result: task(...args) }
  } catch (error) {
    return { id, failure: error instanceof Error ? error.message : String(error) }
  }
}
