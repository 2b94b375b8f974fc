/**
 * The code of the background thread: runs the tasks that background.ts posts, in sequence.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { connect } from '../driver.js'
import type { TaskMessage, TaskResult } from './background.js'
import { tasksOf } from './tasks.js'

const PRAGMAS = `
  PRAGMA busy_timeout = 10000;
  PRAGMA synchronous = NORMAL;
  PRAGMA wal_autocheckpoint = 0;
  PRAGMA temp_store = MEMORY;
  PRAGMA cache_size = -16000;
`

const db = connect(String(workerData))
db.exec(PRAGMAS)
const tasks = tasksOf(db)

parentPort?.on('message', (message: TaskMessage) => {
  parentPort?.postMessage(run(message))
})

function run({ id, name, args }: TaskMessage): TaskResult {
  try {
    const task: (...given: readonly never[]) => unknown = tasks[name]
    return { id, result: task(...args) }
  } catch (error) {
    return { id, failure: error instanceof Error ? error.message : String(error) }
  }
}
