/**
 * The code of the background thread: runs the tasks that background.ts posts, in sequence.
 */
import { statSync } from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'
import { connect, type Connection } from '../driver.js'
import type { BackgroundFile, TaskMessage, TaskResult } from './background.js'
import { tasksOf } from './tasks.js'

const PRAGMAS = `
  PRAGMA busy_timeout = 10000;
  PRAGMA synchronous = NORMAL;
  PRAGMA wal_autocheckpoint = 0;
  PRAGMA temp_store = MEMORY;
  PRAGMA cache_size = -16000;
`

const db = connectTo(workerData as BackgroundFile)
db.exec(PRAGMAS)
const tasks = tasksOf(db)

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
