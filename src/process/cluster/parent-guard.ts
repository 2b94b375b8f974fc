/**
 * Ends a worker whose primary has exited. Node does that itself when the channel closes, but only once the
 * event loop is free and every exit handler has run. The guard is a thread, so a blocked event loop does not
 * stop it.
 */
import { Worker } from 'node:worker_threads'
import { programFile } from '../../config/package-file.js'

/** Data for the thread. */
export interface GuardedParent {
  readonly parentPid: number
  /** Time between checks of the parent's id. */
  readonly intervalMs: number
  /** Time for a regular exit. */
  readonly graceMs: number
}

/** The thread runs one timer: V8's defaults for its heap would reserve several times as much. */
const THREAD_LIMITS = { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 1, stackSizeMb: 1 }

/**
 * Starts the guard: this process ends within 3 s after its parent, by SIGKILL if necessary. If the thread
 * cannot be started, only Node's own handling of the closed channel remains.
 */
export function endWithParent(): void {
  const workerData: GuardedParent = {
    parentPid: process.ppid,
    intervalMs: 1000,
    graceMs: 2000,
  }
  const script = programFile('process/cluster/parent-guard-thread.js')
  const options = { workerData, resourceLimits: THREAD_LIMITS, execArgv: [] }
  const thread = new Worker(script, options)
  thread.unref()
  thread.on('error', () => undefined)
}
