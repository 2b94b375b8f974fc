/**
 * Reservations of the embedded engine whose lease has run out: found, and settled as their row says. Whoever
 * prolongs one writes it anew, and no order by time is kept, which each request would pay for: all that are
 * open are looked at, a slice at a time. Knows no limit.
 */
import type { LedgerFile } from './lmdb-ledger-file.js'
import { endOfLease } from './lmdb-reservation.js'

/** Reservations looked at in one slice: about half a millisecond. */
const SLICE = 500
/** Settled in one step; others may come in between. */
const AT_ONCE = 64
/** Looking for places to free may take this share of the time. */
const SHARE = 1 / 20

/** The leases of one ledger. */
export class Leases {
  private readonly file: LedgerFile
  private readonly nowMs: () => number
  private restMs = Number.NEGATIVE_INFINITY
  private looking: Promise<number> | null = null

  /** `nowMs` is the engine's clock. */
  constructor(file: LedgerFile, nowMs: () => number) {
    this.file = file
    this.nowMs = nowMs
  }

  /** Settles what ran out so long ago; how many. What is damaged is told of once the others are settled. */
  async expire(overdueMs: number): Promise<number> {
    const due = await this.due(overdueMs)
    const all: Promise<boolean>[] = []
    for (let at = 0; at < due.length; at += AT_ONCE) {
      for (const requestId of due.slice(at, at + AT_ONCE)) {
        const step = this.file.write('settling what has run out', (turn) =>
          turn.expire(requestId, overdueMs),
        )
        all.push(step)
      }
      await Promise.allSettled(all.slice(at))
    }
    return (await Promise.all(all)).filter(Boolean).length
  }

  /** The same for a request that finds no place free: whoever died in one does not hold it any longer. */
  freePlaces(): Promise<number> {
    if (this.nowMs() < this.restMs) return Promise.resolve(0)
    this.looking ??= this.look().finally(() => (this.looking = null))
    return this.looking
  }

  private async look(): Promise<number> {
    const beganMs = this.nowMs()
    // What of them is damaged is told by the next sweep.
    const freed = await this.expire(0).catch(() => 0)
    this.restMs = this.nowMs() + (this.nowMs() - beganMs) / SHARE
    return freed
  }

  private async due(overdueMs: number): Promise<string[]> {
    const latestMs = this.nowMs() - overdueMs
    const what = 'looking for what has run out'
    const due = await this.file.readRecent(what, (_, recent) => recent.dueBy(latestMs))
    const recent = new Set(due)
    let from = '\0'
    await this.file.readInSlices(what, ({ open }) => {
      let seen = 0
      for (const { key, value } of open.getRange({ start: from, limit: SLICE })) {
        // One that was prolonged or has ended meanwhile is found out when it is to be settled.
        if (endOfLease(value) <= latestMs && !recent.has(key)) due.push(key)
        from = `${key}\0`
        seen += 1
      }
      return seen < SLICE
    })
    return due
  }
}
