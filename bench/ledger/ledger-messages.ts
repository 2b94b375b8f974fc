/**
 * The messages between the ledger benchmark and its processes: one in each direction for a round.
 */
import type { ChildProcess } from 'node:child_process'
import { isObject, numberOf, objectOf, stringOf } from '../../src/base/json.js'

/** One round of one process. */
export interface LedgerOrder {
  /** An unused store; `none` measures the cost of the load itself. */
  readonly url: string
  readonly seconds: number
}

/** The measurements of one process in a round. */
export interface LedgerLoad {
  readonly operations: number
  readonly seconds: number
  /** User and system time of all threads. */
  readonly cpuMicroseconds: number
  readonly admitMs: { readonly p50: number; readonly p99: number }
  /** Delays of the event loop: the 99.9th percentile and the maximum. */
  readonly loopMs: { readonly p999: number; readonly most: number }
}

/** In a process of the benchmark: runs the rounds that the parent orders, and exits with it. */
export function obey(run: (order: LedgerOrder) => Promise<LedgerLoad>): void {
  process.on('message', (message: unknown) => {
    void run(readOrder(message)).then((load) => process.send?.(load))
  })
}

/** Starts a round in a process. Rejects if it exits without a result. */
export function order(child: ChildProcess, what: LedgerOrder): Promise<LedgerLoad> {
  return new Promise((resolve, reject) => {
    const onExit = (code: number | null): void => reject(new Error(`the load ended with ${String(code)}`))
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
