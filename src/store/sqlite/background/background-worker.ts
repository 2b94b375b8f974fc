/**
 * The thread of `background.ts`: answers tasks one after another.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { connect } from '../driver.js'
import type { Answered, Asked } from './background.js'
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

parentPort?.on('message', (asked: Asked) => {
  parentPort?.postMessage(answered(asked))
})

function answered({ id, name, args }: Asked): Answered {
  try {
    const answer: (...given: readonly never[]) => unknown = tasks[name]
    return { id, result: answer(...args) }
  } catch (error) {
    return { id, failure: error instanceof Error ? error.message : String(error) }
  }
}
