/**
 * Where passwords are hashed and compared while the gateway serves: one at a time, in a thread that gives
 * way to everything else, a short queue before it, and a refusal for the rest. So a flood of sign-ins takes
 * no request its processor. Knows no account and no address; who may try how often is somebody else's
 * question.
 */
import { Worker } from 'node:worker_threads'
import { GatewayError } from '../errors.js'
import { assertPassword } from './password.js'
import type { PasswordJob } from './password-thread.js'

/** At 24 ms each, the last of them waits 1.6 s on a machine that has nothing else to do. */
const MAX_WAITING = 64
/** The thread needs little more than Argon2's own 19 MiB, which are not of its heap. */
const HEAP = { maxOldGenerationSizeMb: 32, maxYoungGenerationSizeMb: 4 }
const THREAD = new URL('./password-thread.js', import.meta.url)
/**
 * What is compared where there is no hash: the answer then takes as long as any other. Of the same costs as
 * new hashes; nobody knows its password.
 */
const NOBODY =
  '$argon2id$v=19$m=19456,t=2,p=1$shX3lHNxEJhwI0VdP6H3wQ$QENRXEh1sUBHfa/YCpGfbFVLayrhVI94Qeup6+G29zU'

/** An order, and who waits for what comes of it. */
interface Job {
  readonly order: PasswordJob
  readonly resolve: (answer: unknown) => void
  readonly reject: (error: Error) => void
}

/** Work on passwords, in turn. Its thread starts with the first of them. */
export class PasswordQueue {
  private readonly waiting: Job[] = []
  private running: Job | null = null
  private thread: Worker | null = null

  /** As `hashPassword`; `rate_limited` where too many wait. */
  async hash(password: string): Promise<string> {
    assertPassword(password)
    return String(await this.answerTo({ kind: 'hash', password }))
  }

  /** A hash for a password that has been right, whatever is now asked of new ones; null where it gets none. */
  async rehash(password: string): Promise<string | null> {
    try {
      return await this.hash(password)
    } catch {
      // It is on the list by now, or too many wait: the old hash does until the next time.
      return null
    }
  }

  /** As `isPassword`; false, after as long a time, where there is no hash (null or empty). */
  async matches(passwordHash: string | null, password: string): Promise<boolean> {
    const has = passwordHash !== null && passwordHash !== ''
    const order = { kind: 'compare', password, passwordHash: has ? passwordHash : NOBODY } as const
    return (await this.answerTo(order)) === true && has
  }

  /** Ends the thread; whoever waits is told that it ended. */
  async close(): Promise<void> {
    for (const { reject } of this.waiting.splice(0)) reject(ended())
    await this.thread?.terminate()
  }

  private answerTo(order: PasswordJob): Promise<unknown> {
    if (this.waiting.length >= MAX_WAITING) {
      throw new GatewayError('rate_limited', 'Too many people sign in right now; try again.', {
        retryAfterSeconds: 2,
      })
    }
    return new Promise((resolve, reject) => {
      this.waiting.push({ order, resolve, reject })
      if (this.running === null) this.next()
    })
  }

  private next(): void {
    const job = this.waiting.shift() ?? null
    this.running = job
    if (job === null) {
      // A thread with nothing to do keeps no process alive.
      this.thread?.unref()
      return
    }
    this.thread ??= this.started()
    this.thread.ref()
    this.thread.postMessage(job.order)
  }

  private started(): Worker {
    const thread = new Worker(THREAD, { execArgv: [], resourceLimits: HEAP })
    thread.on('message', (answer: unknown) => {
      this.running?.resolve(answer)
      this.next()
    })
    let reason = ended()
    thread.once('error', (error) => (reason = error))
    thread.once('exit', () => {
      // The next order gets another.
      this.thread = null
      this.running?.reject(reason)
      this.next()
    })
    return thread
  }
}

function ended(): Error {
  return new Error('the thread for passwords ended')
}
