/**
 * Hashes and compares passwords while the gateway serves: one at a time, in a thread of the lowest priority,
 * with a short queue. Further requests are refused, so that a flood of sign-ins does not slow API requests
 * down.
 */
import { Worker } from 'node:worker_threads'
import { programFile } from '../config/package-file.js'
import { GatewayError } from '../errors.js'
import { assertPassword } from './password.js'
import type { PasswordJob } from './password-thread.js'

/** Maximum number of waiting jobs. At 24 ms each, the last one waits 1.6 s on an idle machine. */
const MAX_WAITING = 64
/** Argon2's own 19 MiB are not on the heap of the thread. */
const HEAP = { maxOldGenerationSizeMb: 32, maxYoungGenerationSizeMb: 4 }
const THREAD = programFile('accounts/password-thread.js')
/**
 * The hash that is compared for an account without one, so that the reply takes the same time. It has the
 * same cost as new hashes, and its password is unknown.
 */
const MISSING_HASH =
  '$argon2id$v=19$m=19456,t=2,p=1$shX3lHNxEJhwI0VdP6H3wQ$QENRXEh1sUBHfa/YCpGfbFVLayrhVI94Qeup6+G29zU'

/** A job and its promise. */
interface Job {
  readonly passwordJob: PasswordJob
  readonly resolve: (result: unknown) => void
  readonly reject: (error: Error) => void
}

/** A queue of jobs. Its thread starts with the first one. */
export class PasswordQueue {
  private readonly waiting: Job[] = []
  private running: Job | null = null
  private thread: Worker | null = null

  /** As `hashPassword`; rejects with `rate_limited` if too many jobs wait. */
  async hash(password: string): Promise<string> {
    assertPassword(password)
    return String(await this.runJob({ kind: 'hash', password }))
  }

  /**
   * A new hash for a password that has just been verified; null if the current rules refuse it or too many
   * jobs wait.
   */
  async rehash(password: string): Promise<string | null> {
    try {
      return await this.hash(password)
    } catch {
      // The old hash stays in use until the next sign-in.
      return null
    }
  }

  /** As `isPassword`. Without a hash (null or empty) the result is false, after the same time. */
  async matches(passwordHash: string | null, password: string): Promise<boolean> {
    const hasHash = passwordHash !== null && passwordHash !== ''
    const passwordJob = {
      kind: 'compare',
      password,
      passwordHash: hasHash ? passwordHash : MISSING_HASH,
    } as const
    return (await this.runJob(passwordJob)) === true && hasHash
  }

  /** Ends the thread; waiting jobs reject. */
  async close(): Promise<void> {
    for (const { reject } of this.waiting.splice(0)) reject(threadExited())
    await this.thread?.terminate()
  }

  private runJob(passwordJob: PasswordJob): Promise<unknown> {
    if (this.waiting.length >= MAX_WAITING) {
      throw new GatewayError('rate_limited', 'Too many sign-ins are in progress: try again in a moment.', {
        retryAfterSeconds: 2,
      })
    }
    return new Promise((resolve, reject) => {
      this.waiting.push({ passwordJob, resolve, reject })
      if (this.running === null) this.next()
    })
  }

  private next(): void {
    const job = this.waiting.shift() ?? null
    this.running = job
    if (job === null) {
      // An idle thread does not keep the process running.
      this.thread?.unref()
      return
    }
    this.thread ??= this.startThread()
    this.thread.ref()
    this.thread.postMessage(job.passwordJob)
  }

  private startThread(): Worker {
    const thread = new Worker(THREAD, { execArgv: [], resourceLimits: HEAP })
    thread.on('message', (result: unknown) => {
      this.running?.resolve(result)
      this.next()
    })
    let reason = threadExited()
    thread.once('error', (error) => (reason = error))
    thread.once('exit', () => {
      // The next job starts a new thread.
      this.thread = null
      this.running?.reject(reason)
      this.next()
    })
    return thread
  }
}

function threadExited(): Error {
  return new Error('the password thread exited')
}
