/**
 * The share of the store's cache that each account uses, as far as this process wrote it. An account that exceeds its share
 * loses its own oldest values.
 */

/** Values that were put together and expire together. */
interface Batch {
  readonly sizes: readonly { readonly name: string; readonly bytes: number }[]
  readonly expiresAtMs: number
}

/** Most that one account may have. */
interface Room {
  readonly entries: number
  readonly bytes: number
}

interface Share {
  /** Oldest first. */
  readonly batches: Batch[]
  entries: number
  bytes: number
}

/** Accounts with values; when there are more, the one that has not put anything for longest is not counted any more. */
const MAX_ACCOUNTS = 10_000

/** Counts by account. */
export class AccountShares {
  private readonly shares = new Map<string, Share>()
  private readonly remove: (name: string, nowMs: number) => Promise<void>

  /** `remove` takes a value off the shelf. */
  constructor(remove: (name: string, nowMs: number) => Promise<void>) {
    this.remove = remove
  }

  /** Counts what was put on the shelf, and removes what there is no room for. Rejects as `remove` does. */
  async add(accountId: string, batch: Batch, room: Room, nowMs: number): Promise<void> {
    const share = this.shares.get(accountId) ?? { batches: [], entries: 0, bytes: 0 }
    this.shares.delete(accountId)
    this.shares.set(accountId, share)
    share.batches.push(batch)
    count(share, batch, 1)
    const [oldest] = this.shares.keys()
    if (this.shares.size > MAX_ACCOUNTS && oldest !== undefined) this.shares.delete(oldest)
    const tooMuch: string[] = []
    for (let [first] = share.batches; first !== undefined; [first] = share.batches) {
      const isOver = share.entries > room.entries || share.bytes > room.bytes
      const hasExpired = first.expiresAtMs <= nowMs
      if (!hasExpired && (!isOver || share.batches.length === 1)) break
      share.batches.shift()
      count(share, first, -1)
      if (!hasExpired) tooMuch.push(...first.sizes.map(({ name }) => name))
    }
    for (const name of tooMuch) await this.remove(name, nowMs)
  }
}

function count(share: Share, { sizes }: Batch, sign: 1 | -1): void {
  share.entries += sign * sizes.length
  for (const { bytes } of sizes) share.bytes += sign * bytes
}
