/**
 * Limits sign-in attempts per account and network, per address and in total, and new keys per account. The
 * counts are in the store and cover every process. Guessing becomes slow, but no account is locked: a user
 * with the right password signs in after a short wait, and without a wait from a known device.
 *
 * Addresses come from `client-address.ts`.
 */
import { createHash } from 'node:crypto'
import { isIPv4 } from 'node:net'
import { GatewayError } from '../../errors.js'
import type { ThrottleStore, ThrottleRate } from '../../store/throttle.js'

/** 8,640 guesses a day for one account from one network. */
const ACCOUNT: ThrottleRate = { burst: 5, everyMs: 10_000 }
const ADDRESS: ThrottleRate = { burst: 50, everyMs: 1_000 }
/**
 * New keys of one account, rotations included: each record stays for weeks. A plan with a maximum number of
 * keys is a limit already, and keys that it refuses count here, too, so its burst is larger.
 */
const KEYS = {
  unlimited: { burst: 60, everyMs: 10_000 },
  limited: { burst: 300, everyMs: 10_000 },
} as const satisfies Record<string, ThrottleRate>
/** What the password thread of one worker can compare. */
const ALL: ThrottleRate = { burst: 200, everyMs: 25 }
/**
 * A refusal is repeated for this time without a request to the store, so that floods do not reach the store.
 */
const REPEAT_MS = 1_000
/** Maximum number of cached refusals; the oldest is dropped first. */
const MAX_REFUSALS = 20_000

/** A refusal: when the subject may try again, and until when the refusal is repeated from the cache. */
interface Refusal {
  readonly retryAtMs: number
  readonly repeatUntilMs: number
}

/** Counts and limits attempts. */
export class AttemptLimits {
  private readonly attempts: Pick<ThrottleStore, 'take' | 'forget'>
  private readonly now: () => number
  private readonly refusals = new Map<string, Refusal>()

  /** `now` is in ms since 1970, the same for every process. */
  constructor(attempts: Pick<ThrottleStore, 'take' | 'forget'>, now: () => number = Date.now) {
    this.attempts = attempts
    this.now = now
  }

  /** Number of cached refusals. */
  get size(): number {
    return this.refusals.size
  }

  /**
   * Counts a sign-in attempt as `name` from an address. Rejects with `rate_limited` and the time to wait. A
   * known `device` has a count of its own.
   */
  attempt(name: string, address: string, device: string | null): Promise<void> {
    return this.count([[subjectOf(name, address, device), ACCOUNT], ...shared(address)])
  }

  /** Counts a costly step without a guessable secret, such as the use of a link. */
  countStep(address: string): Promise<void> {
    return this.count(shared(address))
  }

  /** Counts a new key of an account with this maximum (null: unlimited). Rejects like `attempt`. */
  keyCreation(accountId: string, maxKeys: number | null): Promise<void> {
    const rate = maxKeys === null ? KEYS.unlimited : KEYS.limited
    return this.count([[`keys ${accountId}`, rate]], 'Too many new keys')
  }

  /** Resets the count after a correct password. */
  async reset(name: string, address: string, device: string | null): Promise<void> {
    const subject = digestOf(subjectOf(name, address, device))
    this.refusals.delete(subject)
    await this.attempts.forget(subject)
  }

  /** Drops expired refusals. To be called periodically. */
  sweep(): void {
    const nowMs = this.now()
    for (const [subject, { repeatUntilMs }] of this.refusals) {
      if (repeatUntilMs <= nowMs) this.refusals.delete(subject)
    }
  }

  private async count(counted: readonly Counted[], what = 'Too many attempts'): Promise<void> {
    const nowMs = this.now()
    const subjects = counted.map(([subject, rate]) => ({ name: digestOf(subject), ...rate }))
    const repeated = subjects.map(({ name }) => this.refusedFor(name, nowMs))
    if (repeated.some((wait) => wait > 0)) throw tooMany(what, repeated)
    const waits = await this.attempts.take(subjects, nowMs)
    if (waits.every((wait) => wait === 0)) return
    subjects.forEach(({ name }, at) => this.keepRefusal(name, waits[at] ?? 0, nowMs))
    throw tooMany(what, waits)
  }

  private refusedFor(subject: string, nowMs: number): number {
    const refusal = this.refusals.get(subject)
    if (refusal === undefined || refusal.repeatUntilMs <= nowMs) return 0
    return refusal.retryAtMs - nowMs
  }

  private keepRefusal(subject: string, waitMs: number, nowMs: number): void {
    this.refusals.delete(subject)
    if (waitMs === 0) return
    const repeatUntilMs = nowMs + Math.min(waitMs, REPEAT_MS)
    this.refusals.set(subject, { retryAtMs: nowMs + waitMs, repeatUntilMs })
    if (this.refusals.size <= MAX_REFUSALS) return
    const [oldest] = this.refusals.keys()
    if (oldest !== undefined) this.refusals.delete(oldest)
  }
}

type Counted = readonly [subject: string, rate: ThrottleRate]

function tooMany(what: string, waits: readonly number[]): GatewayError {
  const seconds = Math.ceil(Math.max(...waits) / 1000)
  return new GatewayError('rate_limited', `${what}; try again in ${seconds} s.`, {
    retryAfterSeconds: seconds,
  })
}

/** The store gets neither names nor addresses, and long names use no additional memory. */
function digestOf(subject: string): string {
  return createHash('sha256').update(subject).digest('hex')
}

function subjectOf(name: string, address: string, device: string | null): string {
  return device === null ? `account ${name} ${networkOf(address)}` : `device ${device}`
}

function shared(address: string): Counted[] {
  return [
    [`address ${addressOf(address)}`, ADDRESS],
    ['all', ALL],
  ]
}

/** The network that one person is likely to control: a /24, or a /48 of IPv6. */
function networkOf(address: string): string {
  const plain = unmapped(address)
  return isIPv4(plain) ? plain.split('.').slice(0, 3).join('.') : expanded(plain).slice(0, 3).join(':')
}

/** An IPv6 /64 counts as one address, since one customer controls all of it. */
function addressOf(address: string): string {
  const plain = unmapped(address)
  return isIPv4(plain) ? plain : expanded(plain).slice(0, 4).join(':')
}

function unmapped(address: string): string {
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address
}

/** The eight groups of an IPv6 address. */
function expanded(address: string): string[] {
  const [head = '', tail] = address.split('::')
  const before = head === '' ? [] : head.split(':')
  const after = tail === undefined || tail === '' ? [] : tail.split(':')
  const missing = Array<string>(Math.max(0, 8 - before.length - after.length)).fill('0')
  return tail === undefined ? before : [...before, ...missing, ...after]
}
