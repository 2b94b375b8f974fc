/**
 * A transaction of the embedded engine, and what becomes of one when the process ends in the middle of it.
 * Knows no table.
 *
 * The engine's writing thread holds the lock of all processes while it waits for the event loop to do the
 * transaction's work. A loop that ends instead (`process.exit`, an error that nobody caught) waits for that
 * thread, for ever: the process would neither end nor let anybody else write. So it is killed, which the
 * engine survives by design: the lock is free, and nothing of the transaction has happened.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { RootDatabase } from 'lmdb'

let underWay = 0
let isWatched = false

/** Runs `action` in a transaction; resolves with its result once that is committed. */
export async function transact<Value, Result>(
  root: Pick<RootDatabase<Value>, 'transaction'>,
  action: () => Result,
): Promise<Result> {
  if (!isWatched) process.on('exit', endAtOnce)
  isWatched = true
  underWay += 1
  try {
    return await root.transaction(action)
  } finally {
    underWay -= 1
  }
}

/**
 * Resolves when no transaction of this process is under way. Opening an environment takes the lock on the
 * event loop: where another environment of this process has it, and waits for the loop, neither would go on.
 */
export async function noTransaction(): Promise<void> {
  while (underWay > 0) await nextTurn()
}

function endAtOnce(): void {
  if (underWay > 0) process.kill(process.pid, 'SIGKILL')
}
