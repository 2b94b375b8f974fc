/**
 * Counts wrong keys by client address and slows down an address that sends many. Of one process; holds
 * a bounded number of addresses. Knows no key and no HTTP.
 */
import type { Identity } from '../accounts/account.js'
import { GatewayError } from '../errors.js'

/** An address may send this many wrong keys at once, and then so many a second. */
export const FAILURES_BURST = 30
/** Wrong keys a second, over a long time. */
export const FAILURES_PER_SECOND = 3
/** A throttled address may have this many unknown keys of the right form looked up at once. */
export const LOOKUPS_BURST = 20
/** And so many a second. */
export const LOOKUPS_PER_SECOND = 10
/** About 200 bytes each; the address that failed longest ago is forgotten first. */
const MAX_ADDRESSES = 20_000
/** How long a throttled refusal is held back, so that a flood waits for its answers. */
const HOLD_MS = 200
/** Refusals held back at once; one more is answered at once. */
const MAX_HELD = 1_000

const THROTTLED =
  'Too many wrong API keys came from this address: check the key and try again later.'

/** What an address has left of both rates, at a time. */
interface Count {
  failures: number
  lookups: number
  atMs: number
}

/** Wrong keys by address. */
export class Failures {
  private readonly counts = new Map<string, Count>()
  private readonly maxAddresses: number

  /** `maxAddresses`: for tests; the default is for production. */
  constructor(maxAddresses = MAX_ADDRESSES) {
    this.maxAddresses = maxAddresses
  }

  /** Addresses that are remembered. */
  get size(): number {
    return this.counts.size
  }

  /** A key from the address was wrong. An empty address is not counted. */
  note(address: string, nowMs: number): void {
    if (address === '') return
    const name = addressName(address)
    const count = this.now(name, nowMs)
    count.failures = Math.max(0, count.failures - 1)
    // Behind all others: it failed last.
    this.counts.delete(name)
    this.counts.set(name, count)
    if (this.counts.size <= this.maxAddresses) return
    const [oldest] = this.counts.keys()
    if (oldest !== undefined) this.counts.delete(oldest)
  }

  /** Whether the address has sent too many wrong keys. */
  isThrottled(address: string, nowMs: number): boolean {
    const count = this.counts.get(addressName(address))
    return count !== undefined && refilled(count, nowMs).failures < 1
  }

  /** Takes one look-up from what a throttled address has left; false if nothing is. */
  takeLookUp(address: string, nowMs: number): boolean {
    const count = this.counts.get(addressName(address))
    if (count === undefined) return true
    if (refilled(count, nowMs).lookups < 1) return false
    count.lookups -= 1
    return true
  }

  private now(name: string, nowMs: number): Count {
    const count = this.counts.get(name)
    if (count !== undefined) return refilled(count, nowMs)
    return { failures: FAILURES_BURST, lookups: LOOKUPS_BURST, atMs: nowMs }
  }
}

/** Refuses keys from addresses that have sent too many wrong ones. */
export class WrongKeys {
  private readonly failures = new Failures()
  private readonly clock: () => number
  private held = 0

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

  /** What `identify` gives; its failure is counted for the address. */
  counted(
    address: string,
    identify: () => Identity | Promise<Identity>,
  ): Identity | Promise<Identity> {
    try {
      const found = identify()
      if (!(found instanceof Promise)) return found
      return found.catch((error: unknown) => this.failed(address, error))
    } catch (error) {
      return this.failed(address, error)
    }
  }

  /** Rejects with `auth_throttled` a little later; at once if too many refusals are held back. */
  async refuse(): Promise<never> {
    if (this.held < MAX_HELD) {
      this.held += 1
      await new Promise((resolve) => setTimeout(resolve, HOLD_MS))
      this.held -= 1
    }
    throw new GatewayError('auth_throttled', THROTTLED, { retryAfterSeconds: 1 })
  }

  private failed(address: string, error: unknown): never {
    if (error instanceof GatewayError && error.kind === 'unauthenticated') {
      this.failures.note(address, this.clock())
    }
    throw error
  }
}

function refilled(count: Count, nowMs: number): Count {
  const seconds = Math.max(0, nowMs - count.atMs) / 1000
  count.failures = Math.min(FAILURES_BURST, count.failures + seconds * FAILURES_PER_SECOND)
  count.lookups = Math.min(LOOKUPS_BURST, count.lookups + seconds * LOOKUPS_PER_SECOND)
  count.atMs = nowMs
  return count
}

/** What an address is counted as: a /64 of version 6 is one customer, who has all of its addresses. */
export function addressName(address: string): string {
  if (!address.includes(':')) return address
  // An address of version 4 on a socket that takes both.
  if (address.startsWith('::ffff:') && address.includes('.')) return address.slice(7)
  const [head = '', tail] = address.split('::')
  const before = head === '' ? [] : head.split(':')
  if (tail === undefined) return before.slice(0, 4).join(':')
  const after = tail === '' ? [] : tail.split(':')
  const zeros = Array<string>(Math.max(0, 8 - before.length - after.length)).fill('0')
  return [...before, ...zeros, ...after].slice(0, 4).join(':')
}
