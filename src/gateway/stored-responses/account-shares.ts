/**
 * Tracks the share of the store's cache that each account uses with values of this process. An account that
 * exceeds its share loses its own oldest values.
 */

/** Values that were written together and expire together. */
interface Batch {
  readonly sizes: readonly { readonly name: string; readonly bytes: number }[]
  readonly expiresAtMs: number
}

/** The maximum for one account. */
export interface ShareLimit {
  readonly entries: number
  readonly bytes: number
}

interface Share {
  /** Oldest first. */
  readonly batches: Batch[]
  entries: number
  bytes: number
}

/**
 * Maximum number of tracked accounts. Beyond it, the account whose last write is oldest is no longer tracked.
 */
const MAX_ACCOUNTS = 10_000

/** The limit of the shares, and the cache of the values. */
export interface AccountSharesOptions {
  /** The current limit. */
  readonly limit: () => ShareLimit
  /** Deletes a value from the cache. */
  readonly remove: (name: string, nowMs: number) => Promise<void>
}

/** Counts the values of each account. */
export class AccountShares {
  private readonly shares = new Map<string, Share>()
  private readonly options: AccountSharesOptions

  constructor(options: AccountSharesOptions) {
    this.options = options
  }

  /**
   * Counts the values of a batch that was written to the cache, and removes the account's oldest values if it
   * exceeds its share. Rejects if `remove` does.
   */
  async add(accountId: string, batch: Batch, nowMs: number): Promise<void> {
    const limit = this.options.limit()
    const share = this.shares.get(accountId) ?? { batches: [], entries: 0, bytes: 0 }
    this.shares.delete(accountId)
    this.shares.set(accountId, share)
    share.batches.push(batch)
    count(share, batch, 1)
    const [oldest] = this.shares.keys()
    if (this.shares.size > MAX_ACCOUNTS && oldest !== undefined) this.shares.delete(oldest)
    const namesToRemove: string[] = []
    for (let [first] = share.batches; first !== undefined; [first] = share.batches) {
      const isOver = share.entries > limit.entries || share.bytes > limit.bytes
      const hasExpired = first.expiresAtMs <= nowMs
      if (!hasExpired && (!isOver || share.batches.length === 1)) break
      share.batches.shift()
      count(share, first, -1)
      if (!hasExpired) namesToRemove.push(...first.sizes.map(({ name }) => name))
    }
    for (const name of namesToRemove) await this.options.remove(name, nowMs)
  }
}

function count(share: Share, { sizes }: Batch, sign: 1 | -1): void {
  share.entries += sign * sizes.length
  for (const { bytes } of sizes) share.bytes += sign * bytes
}
