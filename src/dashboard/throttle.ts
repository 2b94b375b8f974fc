/**
 * How often somebody may try to sign in: GCRA over the account and network, the address, and all together.
 * Slows guessing down and locks nobody out: who knows the password gets in after a short wait, and from a
 * device that has signed in before without one.
 *
 * Counts in this process alone: with several workers each allows as much. Addresses are the sockets', since
 * anybody can write an `x-forwarded-for`; behind a proxy all are one, which has the limit of a whole network.
 */
import { isIPv4 } from 'node:net'
import { GatewayError } from '../errors.js'

interface Rate {
  /** So many at once, … */
  readonly burst: number
  /** … and one more each so often. */
  readonly everyMs: number
}

/** 8,640 guesses a day for one account from one network, where nobody knows the password. */
const ACCOUNT: Rate = { burst: 5, everyMs: 10_000 }
const ADDRESS: Rate = { burst: 50, everyMs: 1_000 }
/** Half of what two threads can compare. */
const ALL: Rate = { burst: 200, everyMs: 25 }
/** What is remembered at most; the oldest is forgotten first. */
const MAX_SUBJECTS = 20_000

/** Counts attempts. */
export class Throttle {
  private readonly now: () => number
  /** When each subject's bucket is full again, ms. */
  private readonly fullAt = new Map<string, number>()

  constructor(now: () => number = () => performance.now()) {
    this.now = now
  }

  /** How much is remembered. */
  get size(): number {
    return this.fullAt.size
  }

  /**
   * Counts an attempt to sign in as `name` from an address; throws `rate_limited` with the time to wait.
   * `device` is one that has signed in as `name` before, and then has its own count.
   */
  attempt(name: string, address: string, device: string | null): void {
    this.count([[subjectOf(name, address, device), ACCOUNT], ...shared(address)])
  }

  /** Counts something else that costs and that nobody can guess, such as the use of a link. */
  step(address: string): void {
    this.count(shared(address))
  }

  /** The password was right: whoever mistyped it before need not wait the next time. */
  forgive(name: string, address: string, device: string | null): void {
    this.fullAt.delete(subjectOf(name, address, device))
  }

  private count(subjects: readonly Counted[]): void {
    const nowMs = this.now()
    let waitMs = 0
    for (const [subject, rate] of subjects)
      waitMs = Math.max(waitMs, this.wait(subject, rate, nowMs))
    if (waitMs > 0) {
      const seconds = Math.ceil(waitMs / 1000)
      throw new GatewayError('rate_limited', `Too many attempts; try again in ${seconds} s.`, {
        retryAfterSeconds: seconds,
      })
    }
    for (const [subject, rate] of subjects) this.take(subject, rate, nowMs)
  }

  private wait(subject: string, rate: Rate, nowMs: number): number {
    const fullAt = this.fullAt.get(subject) ?? 0
    return Math.max(0, fullAt + rate.everyMs - nowMs - rate.burst * rate.everyMs)
  }

  private take(subject: string, rate: Rate, nowMs: number): void {
    const fullAt = Math.max(nowMs, this.fullAt.get(subject) ?? 0) + rate.everyMs
    // Deleted first, so that the order is that of the last attempts.
    this.fullAt.delete(subject)
    this.fullAt.set(subject, fullAt)
    if (this.fullAt.size <= MAX_SUBJECTS) return
    for (const oldest of this.fullAt.keys()) {
      if (oldest !== 'all') this.fullAt.delete(oldest)
      if (this.fullAt.size <= MAX_SUBJECTS) return
    }
  }
}

/** What is counted, and how often it may be. */
type Counted = readonly [subject: string, rate: Rate]

function subjectOf(name: string, address: string, device: string | null): string {
  return device === null ? `account ${name} ${networkOf(address)}` : `device ${device}`
}

function shared(address: string): Counted[] {
  return [
    [`address ${addressOf(address)}`, ADDRESS],
    ['all', ALL],
  ]
}

/** A neighbourhood that one person is likely to have at hand: a /24, or a /48 of version 6. */
function networkOf(address: string): string {
  const plain = unmapped(address)
  return isIPv4(plain)
    ? plain.split('.').slice(0, 3).join('.')
    : expanded(plain).slice(0, 3).join(':')
}

/** A /64 of version 6 is one customer, who has all of its addresses. */
function addressOf(address: string): string {
  const plain = unmapped(address)
  return isIPv4(plain) ? plain : expanded(plain).slice(0, 4).join(':')
}

function unmapped(address: string): string {
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address
}

/** The eight groups of an address of version 6. */
function expanded(address: string): string[] {
  const [head = '', tail] = address.split('::')
  const before = head === '' ? [] : head.split(':')
  const after = tail === undefined || tail === '' ? [] : tail.split(':')
  const missing = Array<string>(Math.max(0, 8 - before.length - after.length)).fill('0')
  return tail === undefined ? before : [...before, ...missing, ...after]
}
