/**
 * A store whose replies a test delays or fails, and which records the digests that are looked up. It
 * simulates faults of a remote engine that the embedded one cannot have.
 */
import { digestOf, newSecret } from '../../../src/accounts/key-secret.js'
import type { Account, ApiKey } from '../../../src/accounts/account.js'
import { GatewayError } from '../../../src/errors.js'
import type { KeyChange, KeyLookup } from '../../../src/store/store.js'
import { aKey, anAccount } from '../../store/contract/sample-records.js'

export class FakeStore {
  /** `sync` and `async` reply at once, `held` waits for `release`, `down` and `down-sync` fail. */
  mode: 'sync' | 'async' | 'held' | 'down' | 'down-sync' = 'sync'
  readonly lookedUp: string[] = []
  running = 0
  mostRunning = 0
  listeners = 0
  private readonly lookups = new Map<string, KeyLookup>()
  private readonly hidden = new Set<string>()
  private readonly heldReplies: (() => void)[] = []
  private listener: ((change: KeyChange) => void) | null = null

  /** Adds a key and its account. Returns the secret of the key. */
  add(account: Partial<Account> = {}, key: Partial<ApiKey> = {}): string {
    const secret = newSecret()
    const owner = anAccount(account)
    const digest = digestOf(secret)
    this.lookups.set(digest, { account: owner, key: aKey(owner.id, { digest, ...key }) })
    return secret
  }

  /** Changes the account and key of a secret without notifying the subscriber. */
  edit(secret: string, account: Partial<Account>, key: Partial<ApiKey>): void {
    const old = this.lookups.get(digestOf(secret))
    if (old === undefined) throw new Error('no such key')
    const next = { account: { ...old.account, ...account }, key: { ...old.key, ...key } }
    this.lookups.set(digestOf(secret), next)
  }

  /** Hides the key of a secret, or shows it again, without notifying the subscriber. */
  hide(secret: string, hidden: boolean): void {
    if (hidden) this.hidden.add(digestOf(secret))
    else this.hidden.delete(digestOf(secret))
  }

  /** Notifies the subscriber of a change of one key, or of an unspecified change (null). */
  notify(secret: string | null): void {
    this.listener?.({ digest: secret === null ? null : digestOf(secret) })
  }

  findKey(digest: string): KeyLookup | null | Promise<KeyLookup | null> {
    this.lookedUp.push(digest)
    // The state at the time of the call, even if the reply is delayed.
    const lookup = this.hidden.has(digest) ? null : (this.lookups.get(digest) ?? null)
    if (this.mode === 'sync') return lookup
    if (this.mode === 'down-sync') throw this.failure()
    return this.later(lookup)
  }

  subscribe(listener: (change: KeyChange) => void): () => void {
    this.listener = listener
    this.listeners += 1
    return () => {
      this.listener = null
      this.listeners -= 1
    }
  }

  /** Sends all held replies. */
  release(): void {
    for (const send of this.heldReplies.splice(0)) send()
  }

  failure(): GatewayError {
    return new GatewayError('store_unavailable', 'down', { retryAfterSeconds: 1 })
  }

  private async later(lookup: KeyLookup | null): Promise<KeyLookup | null> {
    this.running += 1
    this.mostRunning = Math.max(this.mostRunning, this.running)
    try {
      if (this.mode === 'held') await new Promise<void>((resolve) => this.heldReplies.push(resolve))
      else await Promise.resolve()
      if (this.mode === 'down') throw this.failure()
      return lookup
    } finally {
      this.running -= 1
    }
  }
}
