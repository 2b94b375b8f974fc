/**
 * The thread of `background.ts`: answers questions one after another, each in a read transaction of its own.
 */
import { parentPort, workerData } from 'node:worker_threads'
import type { Answer, Asked, Question } from './background.js'
import { connect, numberIn } from '../../sqlite-driver.js'
import { RollUp } from './ledger/roll-up.js'
import { KeyUses, lastUseOf } from './ledger/key-use.js'
import { sumsOf } from './ledger/read-sums.js'
import { budgetsOf, exported, isByOwner, pageOf } from './ledger/usage.js'

/** Frames of the log (4 KiB each) above which writers wait once, so that it starts from its beginning: 64 MiB. */
const LONG_LOG = 16_384
const PRAGMAS = `
  PRAGMA busy_timeout = 10000;
  PRAGMA synchronous = NORMAL;
  PRAGMA wal_autocheckpoint = 0;
  PRAGMA query_only = OFF;
  PRAGMA temp_store = MEMORY;
  PRAGMA cache_size = -16000;
`

const DONE: Answer = { is: 'done', count: 0 }

const db = connect(String(workerData))
db.exec(PRAGMAS)
const rollUp = new RollUp(db)
const keyUses = new KeyUses(db)

parentPort?.on('message', ({ id, question }: Asked) => {
  parentPort?.postMessage({ id, answer: tried(question) })
})

function tried(question: Question): Answer {
  try {
    return answerTo(question)
  } catch (error) {
    return { is: 'failed', why: error instanceof Error ? error.message : String(error) }
  }
}

function answerTo(question: Question): Answer {
  switch (question.ask) {
    case 'checkpoint':
      checkpoint()
      return DONE
    case 'count':
      rollUp.catchUp()
      rollUp.addToDays(question.daysBeforeMs)
      return DONE
    case 'put':
      rollUp.put(question.by, question.sums, question.lastUse)
      return DONE
    case 'prune':
      return { is: 'done', count: rollUp.prune(question.what, question.beforeMs) }
    case 'rows':
      if (isByOwner(question.query)) catchUpIfPossible()
      return { is: 'rows', page: pageOf(db, question.query) }
    case 'sums':
      rollUp.catchUp()
      return { is: 'sums', sums: sumsOf(db, question.query) }
    case 'keyUse':
      rollUp.catchUp()
      return { is: 'keyUse', uses: keyUses.of(question.query) }
    case 'lastUse':
      rollUp.catchUp()
      return { is: 'lastUse', uses: lastUseOf(db, question.accountId, question.keyIds) }
    case 'exported':
      return { is: 'exported', batch: exported(db, question.after) }
    case 'budgets':
      return { is: 'budgets', batch: budgetsOf(db, question.after) }
    case 'close':
      db.close()
      return DONE
    default:
      return question satisfies never
  }
}

/** On a full disk, pages of entries are answered without those that are not counted yet. */
function catchUpIfPossible(): void {
  try {
    rollUp.catchUp()
  } catch {
    // The next query tries again.
  }
}

/**
 * Copies the log into the file. While requests go on, the log is never copied to its end and would grow: once it is
 * long, the rest is copied while writers wait, which is as long as a sync of a few pages takes.
 */
function checkpoint(): void {
  const row = db.prepare('PRAGMA wal_checkpoint(PASSIVE)').get()
  if (row === undefined || numberIn(row, 'log') < LONG_LOG) return
  db.prepare('PRAGMA wal_checkpoint(RESTART)').get()
}
