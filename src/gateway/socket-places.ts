/**
 * The places for WebSockets in this process, those of Responses and those of native paths together. Plain
 * requests keep a quarter of `server.max_connections`; a key has at most a quarter, and an account as many as
 * are left for all others, so that a few of them cannot hold all places.
 */
import type { Identity } from '../accounts/account.js'
import { GatewayError } from '../errors.js'

/** The share of all connections that may be WebSockets. */
const SHARE = 0.75
/** The share of all connections that may be WebSockets of one key. */
const KEY_SHARE = 0.25
/** A key, and an account, may have this many while there is a place. */
const ALWAYS = 8

type Holder = Pick<Identity, 'accountId' | 'keyId'>

/** Counts them by key and account. */
export class SocketPlaces {
  private total = 0
  private readonly counts = new Map<string, number>()

  /**
   * Throws `rate_limited` if the key or the account has as many WebSockets as it may, and `overloaded` if all
   * places are taken. `maxConnections`: of the process.
   */
  assertRoom({ accountId, keyId }: Holder, maxConnections: number): void {
    const retry = { retryAfterSeconds: 1 }
    const most = Math.max(ALWAYS, Math.ceil(maxConnections * KEY_SHARE))
    if (this.countOf(keyName(accountId, keyId)) >= most) {
      const message = `This API key has ${most} open WebSockets, the maximum of one key.`
      throw new GatewayError('rate_limited', message, retry)
    }
    const left = Math.max(ALWAYS, Math.ceil(maxConnections * SHARE)) - this.total
    if (left <= 0) {
      const message = `The gateway has ${this.total} open WebSockets, the maximum; try again.`
      throw new GatewayError('overloaded', message, retry)
    }
    const own = this.countOf(accountId)
    if (own < Math.max(ALWAYS, left)) return
    const message = `This account has ${own} open WebSockets, and no more than these are left for all others: close some.`
    throw new GatewayError('rate_limited', message, retry)
  }

  /** Takes a place; the result gives it back. Throws as `assertRoom`. */
  take(holder: Holder, maxConnections: number): () => void {
    this.assertRoom(holder, maxConnections)
    const { accountId, keyId } = holder
    const names = [accountId, keyName(accountId, keyId)]
    const count = (change: number): void => {
      this.total += change
      for (const name of names) {
        const next = this.countOf(name) + change
        if (next > 0) this.counts.set(name, next)
        else this.counts.delete(name)
      }
    }
    count(1)
    let isTaken = true
    return () => {
      if (isTaken) count(-1)
      isTaken = false
    }
  }

  private countOf(name: string): number {
    return this.counts.get(name) ?? 0
  }
}

/** Ids have no space. */
function keyName(accountId: string, keyId: string): string {
  return `${accountId} ${keyId}`
}
