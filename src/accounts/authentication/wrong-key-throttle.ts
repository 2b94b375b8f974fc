/**
 * Counts wrong keys by client address in one process, and throttles an address that sends many. The number of
 * addresses is bounded.
 */
import { Lru } from '../../base/lru.js'
import type { Identity } from '../account.js'
import { AccountDisabled, WrongSignature } from './authentication-result.js'
import { GatewayError } from '../../errors.js'

/** An address may send this many wrong keys at once, then `FAILURES_PER_SECOND`. */
export const FAILURES_BURST = 30
/** Sustained wrong keys a second of one address. */
const FAILURES_PER_SECOND = 3
/** Lookups at once of well-formed unknown keys from a throttled address. */
export const LOOKUPS_BURST = 20
/** Sustained lookups a second of a throttled address. */
const LOOKUPS_PER_SECOND = 10
/** About 200 bytes each; the address whose last failure is oldest is dropped first. */
const MAX_ADDRESSES = 20_000
/** Delay of a throttled refusal, in ms; it slows clients that send many keys. */
const DELAY_MS = 200
/** Maximum delayed refusals; further ones are sent without delay. */
const MAX_DELAYED = 1_000

const THROTTLED = 'Too many wrong API keys came from this address: check the key and try again later.'

/** The remaining failures and lookups of an address at `atMs`. */
interface Count {
  failures: number
  lookups: number
  atMs: number
}

/** How many wrong keys an address may send. */
interface FailureRate {
  readonly burst: number
  readonly perSecond: number
}

const FAILURE_RATE: FailureRate = { burst: FAILURES_BURST, perSecond: FAILURES_PER_SECOND }

/** Wrong keys by address. */
export class WrongKeyCounts {
  private readonly counts: Lru<Count>
  private readonly rate: FailureRate

  /** `maxAddresses`: tests pass a smaller one. */
  constructor(maxAddresses = MAX_ADDRESSES, rate = FAILURE_RATE) {
    this.counts = new Lru(maxAddresses)
    this.rate = rate
  }

  /** Number of addresses with a count. */
  get size(): number {
    return this.counts.size
  }

  /** Counts a wrong key from the address. An empty address is not counted. */
  note(address: string, nowMs: number): void {
    if (address === '') return
    const name = addressName(address)
    const count = this.now(name, nowMs)
    count.failures = Math.max(0, count.failures - 1)
    this.counts.set(name, count)
  }

  /** Whether the address has sent too many wrong keys. */
  isThrottled(address: string, nowMs: number): boolean {
    const count = this.counts.get(addressName(address))
    return count !== undefined && this.refilled(count, nowMs).failures < 1
  }

  /** Takes one lookup from what remains for a throttled address; false if none remains. */
  takeLookUp(address: string, nowMs: number): boolean {
    const count = this.counts.get(addressName(address))
    if (count === undefined) return true
    if (this.refilled(count, nowMs).lookups < 1) return false
    count.lookups -= 1
    return true
  }

  private now(name: string, nowMs: number): Count {
    const count = this.counts.get(name)
    if (count !== undefined) return this.refilled(count, nowMs)
    return { failures: this.rate.burst, lookups: LOOKUPS_BURST, atMs: nowMs }
  }

  private refilled(count: Count, nowMs: number): Count {
    const { burst, perSecond } = this.rate
    const seconds = Math.max(0, nowMs - count.atMs) / 1000
    count.failures = Math.min(burst, count.failures + seconds * perSecond)
    count.lookups = Math.min(LOOKUPS_BURST, count.lookups + seconds * LOOKUPS_PER_SECOND)
    count.atMs = nowMs
    return count
  }
}

/** Refuses unknown keys from addresses that have sent too many wrong ones. */
export class WrongKeyThrottle {
  private readonly failures = new WrongKeyCounts()
  private readonly clock: () => number
  private delayed = 0

  /** `clock`: monotonic, in ms. */
  constructor(clock: () => number) {
    this.clock = clock
  }

  isThrottled(address: string, nowMs: number): boolean {
    return this.failures.isThrottled(address, nowMs)
  }

  takeLookUp(address: string, nowMs: number): boolean {
    return this.failures.takeLookUp(address, nowMs)
  }

  /** Returns the result of `identify` and counts its failure for the address. */
  counted(address: string, identify: () => Identity | Promise<Identity>): Identity | Promise<Identity> {
    try {
      const identifying = identify()
      if (!(identifying instanceof Promise)) return identifying
      return identifying.catch((error: unknown) => this.failed(address, error))
    } catch (error) {
      return this.failed(address, error)
    }
  }

  /** Rejects with `auth_throttled` after 200 ms, or at once if too many refusals are delayed. */
  async refuse(): Promise<never> {
    if (this.delayed < MAX_DELAYED) {
      this.delayed += 1
      await new Promise((resolve) => setTimeout(resolve, DELAY_MS))
      this.delayed -= 1
    }
    throw new GatewayError('auth_throttled', THROTTLED, { retryAfterSeconds: 1 })
  }

  private failed(address: string, error: unknown): never {
    if (error instanceof AccountDisabled) throw error
    const isWrongKey = error instanceof GatewayError && error.kind === 'unauthenticated'
    if (isWrongKey || error instanceof WrongSignature) {
      this.failures.note(address, this.clock())
    }
    throw error
  }
}

/**
 * The name under which an address is counted: the /64 network of an IPv6 address, because one customer
 * usually has all of it.
 */
export function addressName(address: string): string {
  if (!address.includes(':')) return address
  // An IPv4 address on a dual-stack socket.
  if (address.startsWith('::ffff:') && address.includes('.')) return address.slice(7)
  const [head = '', tail] = address.split('::')
  const leading = head === '' ? [] : head.split(':')
  if (tail === undefined) return leading.slice(0, 4).join(':')
  const trailing = tail === '' ? [] : tail.split(':')
  const zeros = Array<string>(Math.max(0, 8 - leading.length - trailing.length)).fill('0')
  return [...leading, ...zeros, ...trailing].slice(0, 4).join(':')
}
