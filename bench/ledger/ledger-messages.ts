/**
 * What the ledger's bench asks of its processes, and what they answer: one message each way for a round.
 * Knows no store.
 */
import type { ChildProcess } from 'node:child_process'
import { isObject, numberOf, objectOf, stringOf } from '../../src/chat/json.js'

/** One round of one process. */
export interface LedgerOrder {
  /** A store that nobody has used; `none` measures what the load itself costs. */
  readonly url: string
  readonly seconds: number
}

/** What one process of a round measured. */
export interface LedgerLoad {
  readonly operations: number
  readonly seconds: number
  /** User and system time of all threads. */
  readonly cpuMicroseconds: number
  readonly admitMs: { readonly p50: number; readonly p99: number }
  /** How long the event loop was held up: 99.9 % of the time at most, and the longest. */
  readonly loopMs: { readonly p999: number; readonly most: number }
}

/** In a process of the bench: runs what is ordered, and ends with whoever orders. */
export function obey(run: (order: LedgerOrder) => Promise<LedgerLoad>): void {
  process.on('message', (message: unknown) => {
    void run(readOrder(message)).then((load) => process.send?.(load))
  })
}

/** Orders a round of a process. Rejects where it ends without having measured. */
export function order(child: ChildProcess, what: LedgerOrder): Promise<LedgerLoad> {
  return new Promise((resolve, reject) => {
    const onExit = (code: number | null): void =>
      reject(new Error(`the load ended with ${String(code)}`))
    child.once('exit', onExit)
    child.once('message', (message: unknown) => {
      child.removeListener('exit', onExit)
      resolve(readLoad(message))
    })
    child.send(what)
  })
}

function readOrder(value: unknown): LedgerOrder {
  const { url, seconds } = objectOf(value)
  return { url: stringOf(url) ?? '', seconds: numberOf(seconds) ?? 1 }
}

function readLoad(value: unknown): LedgerLoad {
  if (!isObject(value)) throw new Error('the load gave no numbers')
  const number = (from: unknown): number => numberOf(from) ?? Number.NaN
  const [admit, loop] = [objectOf(value['admitMs']), objectOf(value['loopMs'])]
  return {
    operations: number(value['operations']),
    seconds: number(value['seconds']),
    cpuMicroseconds: number(value['cpuMicroseconds']),
    admitMs: { p50: number(admit['p50']), p99: number(admit['p99']) },
    loopMs: { p999: number(loop['p999']), most: number(loop['most']) },
  }
}
