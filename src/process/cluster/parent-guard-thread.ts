/**
 * The thread of `parent-guard.ts`: kills its process when its parent process changes. On every Unix an orphan
 * gets a new parent at once, and no process of the same PID namespace can fake that.
 */
import { workerData } from 'node:worker_threads'
import type { GuardedParent } from './parent-guard.js'

const { parentPid, intervalMs, graceMs } = workerData as GuardedParent

const timer = setInterval(() => {
  if (process.ppid === parentPid) return
  clearInterval(timer)
  setTimeout(() => process.kill(process.pid, 'SIGKILL'), graceMs)
}, intervalMs)
