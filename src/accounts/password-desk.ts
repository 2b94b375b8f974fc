/**
 * Where passwords are hashed and compared while the gateway serves: a few at a time, a short queue behind,
 * and a refusal for the rest, so that a flood of sign-ins costs two threads and no request its speed.
 * Knows no account and no address; who may try how often is somebody else's question.
 */
import { GatewayError } from '../errors.js'
import { hashPassword, isPassword } from './password.js'

/** Of the four threads that Node gives to such work; the store's commits need the others. */
const AT_ONCE = 2
/** At 24 ms each, the last of them waits 0.8 s. */
const MAX_WAITING = 64
/**
 * What is compared where there is no hash: the answer then takes as long as any other. Of the same costs as
 * new hashes; nobody knows its password.
 */
const NOBODY =
  '$argon2id$v=19$m=19456,t=2,p=1$shX3lHNxEJhwI0VdP6H3wQ$QENRXEh1sUBHfa/YCpGfbFVLayrhVI94Qeup6+G29zU'

/** Work on passwords, in turn. */
export class PasswordDesk {
  private running = 0
  private readonly waiting: (() => void)[] = []

  /** As `hashPassword`; `rate_limited` where too many wait. */
  hash(password: string): Promise<string> {
    return this.inTurn(() => hashPassword(password))
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
    const good = await this.inTurn(() => isPassword(has ? passwordHash : NOBODY, password))
    return has && good
  }

  private async inTurn<T>(work: () => Promise<T>): Promise<T> {
    if (this.running >= AT_ONCE) {
      if (this.waiting.length >= MAX_WAITING) {
        throw new GatewayError('rate_limited', 'Too many people sign in right now; try again.', {
          retryAfterSeconds: 2,
        })
      }
      // The place is handed over by who leaves it, so nobody slips in between.
      await new Promise<void>((resolve) => this.waiting.push(resolve))
    } else {
      this.running += 1
    }
    try {
      return await work()
    } finally {
      const next = this.waiting.shift()
      if (next === undefined) this.running -= 1
      else next()
    }
  }
}
