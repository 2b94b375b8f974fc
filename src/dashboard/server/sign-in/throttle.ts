/**
 * How often somebody may try to sign in: by the account and network, the address, and all together, counted
 * in the store for every process; and how often an account may make keys. Slows guessing down and locks nobody out: who knows the password gets in
 * after a short wait, and from a device that has signed in before without one.
 *
 * Addresses come from `client-address.ts`.
 */
import { createHash } from 'node:crypto'
import { isIPv4 } from 'node:net'
import { GatewayError } from '../../../errors.js'
import type { ThrottleStore, ThrottleRate } from '../../../store/throttle.js'

/** 8,640 guesses a day for one account from one network, where nobody knows the password. */
const ACCOUNT: ThrottleRate = { burst: 5, everyMs: 10_000 }
const ADDRESS: ThrottleRate = { burst: 50, everyMs: 1_000 }
/**
 * New keys of one account, replacements included: each is a record that stays for weeks. A plan with a number
 * of keys is a limit already, and what it refuses is counted here too, so its burst is larger.
 */
const KEYS = {
  unlimited: { burst: 60, everyMs: 10_000 },
  limited: { burst: 300, everyMs: 10_000 },
} as const satisfies Record<string, ThrottleRate>
/** What one worker's thread can compare. */
const ALL: ThrottleRate = { burst: 200, everyMs: 25 }
/** So long a refusal is repeated without asking the store: a flood of tries is no flood of questions. */
const REPEAT_MS = 1_000
/** Refusals that are remembered at most; the oldest is forgotten first. */
const MAX_REFUSALS = 20_000

/** When a subject that was refused has room again, ms, and until when that is repeated unasked. */
interface Refusal {
  readonly roomAtMs: number
  readonly repeatUntilMs: number
}

/** Counts attempts. */
export class Throttle {
  private readonly attempts: Pick<ThrottleStore, 'take' | 'forget'>
  private readonly now: () => number
  private readonly refusals = new Map<string, Refusal>()

  /** `now` is in ms since 1970, the same for every process. */
  constructor(attempts: Pick<ThrottleStore, 'take' | 'forget'>, now: () => number = Date.now) {
    this.attempts = attempts
    this.now = now
  }

  /** How much is remembered. */
  get size(): number {
    return this.refusals.size
  }

  /**
   * Counts an attempt to sign in as `name` from an address; rejects with `rate_limited` and the time to
   * wait. `device` is one that has signed in as `name` before, and then has its own count.
   */
  attempt(name: string, address: string, device: string | null): Promise<void> {
    return this.count([[subjectOf(name, address, device), ACCOUNT], ...shared(address)])
  }

  /** Counts something else that costs and that nobody can guess, such as the use of a link. */
  step(address: string): Promise<void> {
    return this.count(shared(address))
  }

  /** Counts a new key of an account, whose plan allows so many (null: any number); rejects as `attempt` does. */
  keyCreation(accountId: string, maxKeys: number | null): Promise<void> {
    const rate = maxKeys === null ? KEYS.unlimited : KEYS.limited
    return this.count([[`keys ${accountId}`, rate]], 'Too many new keys')
  }

  /** The password was right: whoever mistyped it before need not wait the next time. */
  async forgive(name: string, address: string, device: string | null): Promise<void> {
    const subject = digestOf(subjectOf(name, address, device))
    this.refusals.delete(subject)
    await this.attempts.forget(subject)
  }

  /** Forgets the refusals that are no longer repeated; to be called now and then. */
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
    return refusal.roomAtMs - nowMs
  }

  private keepRefusal(subject: string, waitMs: number, nowMs: number): void {
    this.refusals.delete(subject)
    if (waitMs === 0) return
    const repeatUntilMs = nowMs + Math.min(waitMs, REPEAT_MS)
    this.refusals.set(subject, { roomAtMs: nowMs + waitMs, repeatUntilMs })
    if (this.refusals.size <= MAX_REFUSALS) return
    const [oldest] = this.refusals.keys()
    if (oldest !== undefined) this.refusals.delete(oldest)
  }
}

/** What is counted, and how often it may be. */
type Counted = readonly [subject: string, rate: ThrottleRate]

function tooMany(what: string, waits: readonly number[]): GatewayError {
  const seconds = Math.ceil(Math.max(...waits) / 1000)
  return new GatewayError('rate_limited', `${what}; try again in ${seconds} s.`, {
    retryAfterSeconds: seconds,
  })
}

/** The store learns no name and no address, and whoever types a very long one fills no memory. */
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
