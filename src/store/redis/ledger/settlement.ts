/**
 * Settles requests in batches, one command for those of one turn of the event loop. The command also reports the slices
 * of their limits.
 */
import type { LedgerEntry } from '../../../ledger/entry.js'
import { unavailable } from '../../errors.js'
import type { BudgetDemand, Reservation, Demand } from '../../ledger.js'
import { Batches } from '../connection/batches.js'
import { BUCKET_MS, slotPrefix, timePrefix, type LedgerKeys } from './key-names.js'
import { encodeHolds, amountsOf, parseSharedHolds } from '../limits/encode-demands.js'
import { RELEASE_SHARED } from './scripts.js'
import type { RedisLink } from '../connection/link.js'
import type { Argument } from '../connection/script.js'
import { listOf, parseNumbers } from '../keys/read-records.js'
import { SETTLE } from './scripts.js'
import { NUMBERS_PER_SLICE, type SliceRequest, type Slices } from '../limits/slices.js'
import { chargedNanoUsd, countersOf, usedTokens } from '../../records/count-usage.js'

/**
 * Entries of one command, which blocks the server for about two milliseconds. With fewer, slices would be reported
 * more often.
 */
const MAX_SETTLEMENTS = 32
const WHAT = 'settling a request'
/** The script's result of an entry. */
const [ALREADY, SETTLED] = [0, 1]

/** An entry that waits for its command. */
interface PendingSettlement extends SliceRequest {
  readonly entry: LedgerEntry
  readonly reservation: Reservation | undefined
  /** As `SETTLE` parses it. */
  readonly text: string
  readonly resolve: (isNew: boolean) => void
  readonly reject: (error: unknown) => void
}

/** The parts of the ledger that settlements use. */
export interface SettlementOptions {
  readonly link: RedisLink
  readonly names: LedgerKeys
  /** As in `RedisLedger`. */
  readonly clock: () => Argument
  readonly slices: Slices
  /** The name of this process in slices. */
  readonly processName: string
}

/** Settles the requests of one ledger. */
export class Settlement {
  private readonly options: SettlementOptions
  private readonly batches: Batches<PendingSettlement>

  constructor(options: SettlementOptions) {
    this.options = options
    this.batches = new Batches(MAX_SETTLEMENTS, options.names.isCluster, (entries) =>
      this.send(entries),
    )
  }

  /**
   * False if the ledger has the entry already or, with `isDue`, the reservation has not expired. `rowText` is the
   * entry's record.
   */
  settle(
    entry: LedgerEntry,
    rowText: string,
    isDue: boolean,
    reservation: Reservation | undefined,
  ): Promise<boolean> {
    return new Promise((resolve, reject) => {
      const { isCluster } = this.options.names
      const { accountId } = entry
      const demands = reservation?.demands ?? []
      const holds = unreservedHolds(accountId, reservation, ({ shared }) => !isCluster || !shared)
      const text = `${encodeSettlement(entry, isDue, reservation)}\0${holds}\n${rowText}`
      const waiting = { entry, reservation, accountId, demands, text, resolve, reject }
      this.batches.add(isCluster ? accountId : '', waiting)
    })
  }

  private async send(entries: readonly PendingSettlement[]): Promise<void> {
    const { link, names, clock, processName, slices } = this.options
    const accountId = entries[0]?.entry.accountId ?? ''
    const reportedAtMs = performance.now()
    const reports = slices.reportsFor(entries, reportedAtMs)
    const keys = names.isCluster ? keysOf(names, entries) : [names.reservations(accountId)]
    const fixed = [names.ids(accountId), names.ends(accountId), names.allOrder ?? '']
    const args: Argument[] = [clock(), processName, JSON.stringify(reports), ...fixed]
    for (const { text } of entries) args.push(text)
    try {
      const [text, ...more] = listOf(await link.run(WHAT, SETTLE, keys, args))
      const numbers = parseNumbers(text)
      slices.applyReplies(reports, numbers, reportedAtMs, performance.now())
      for (const [at, waiting] of entries.entries()) {
        const position = more.length === 0 ? -1 : more.indexOf(at + 1)
        const code = numbers[NUMBERS_PER_SLICE * reports.length + at]
        this.answer(waiting, code, position < 0 ? null : more[position + 1])
      }
    } catch (error) {
      for (const { reject } of entries) reject(error)
    }
  }

  private answer(waiting: PendingSettlement, outcome: number | undefined, what: unknown): void {
    const { entry, reservation, resolve, reject } = waiting
    if (outcome === ALREADY) resolve(false)
    else if (outcome !== SETTLED) {
      const reason = typeof what === 'string' ? what : 'no result'
      reject(unavailable(`${WHAT} failed`, new Error(reason)))
    } else if (!this.options.names.isCluster) resolve(true)
    else this.releaseShared(entry, reservation, what).then(() => resolve(true), reject)
  }

  /** Corrects limits in other slots of a Cluster. */
  private async releaseShared(
    entry: LedgerEntry,
    reservation: Reservation | undefined,
    reserved: unknown,
  ): Promise<void> {
    const { link, clock } = this.options
    const used = usedTokens(entry) ?? ''
    for (const [slot, [day, month], holds] of parseSharedHolds(reserved)) {
      const args = [clock(), JSON.stringify(holds), day, month, used, chargedNanoUsd(entry) ?? '']
      await link.run(WHAT, RELEASE_SHARED, [`${slot}:none`], args)
    }
    if (reserved !== null || reservation?.takenFrom !== 'nothing') return
    const day = Math.floor(entry.atMs / BUCKET_MS.day)
    const date = new Date(entry.atMs)
    const month = (date.getUTCFullYear() - 1970) * 12 + date.getUTCMonth()
    for (const demand of reservation.demands) {
      if (!demand.shared || !isBudget(demand)) continue
      const holds = unreservedHolds(entry.accountId, reservation, (each) => each === demand)
      const args = [clock(), holds, day, month, '', unreservedCost(entry, reservation)]
      await link.run(WHAT, RELEASE_SHARED, [`${slotPrefix(entry.accountId, demand)}:none`], args)
    }
  }
}

/** The keys that the script accesses: a Cluster needs them while it moves the slot. */
function keysOf(names: LedgerKeys, entries: readonly PendingSettlement[]): string[] {
  const keys = new Set<string>()
  for (const { entry, accountId, demands } of entries) {
    const { atMs } = entry
    for (const demand of demands) {
      const name = names.slice(accountId, demand)
      if (name !== null) keys.add(name)
    }
    for (const of of ['reservations', 'ids', 'ends', 'entries', 'order', 'lastUse'] as const) {
      keys.add(names[of](accountId))
    }
    for (const by of ['hour', 'day'] as const) {
      const startMs = Math.floor(atMs / BUCKET_MS[by]) * BUCKET_MS[by]
      keys.add(names.buckets(accountId, by)).add(names.sum(accountId, by, startMs))
    }
  }
  return Array.from(keys)
}

/** An entry as `SETTLE` parses it, without the holds and the record. */
function encodeSettlement(
  entry: LedgerEntry,
  isDue: boolean,
  reservation: Reservation | undefined,
): string {
  const { accountId, requestId, keyId, model, atMs } = entry
  return (
    `${accountId}\0${requestId}\0${keyId}\0${model}\0${timePrefix(atMs)}\0${Math.floor(atMs)}\0` +
    `${usedTokens(entry) ?? ''}\0${chargedNanoUsd(entry) ?? ''}\0${unreservedCost(entry, reservation)}\0` +
    `${countersOf(entry).join(' ')}\0${isDue ? 'due' : ''}`
  )
}

/** The holds to correct without a reservation: those of a slice, or budgets that were not charged. */
function unreservedHolds(
  accountId: string,
  reservation: Reservation | undefined,
  isWanted: (demand: Demand) => boolean,
): string {
  if (reservation === undefined || reservation.takenFrom === 'reserved') return '[]'
  const owed: Demand[] = []
  for (const demand of reservation.demands) {
    if (!isWanted(demand)) continue
    if (reservation.takenFrom === 'slice') {
      if (demand.kind === 'tokens' || isBudget(demand)) owed.push(demand)
    } else if (isBudget(demand)) owed.push({ ...demand, costNanoUsd: 0 })
  }
  return encodeHolds(accountId, owed, '')
}

/** The cost to charge without a reservation; if it is unknown, what a reservation would have held. */
function unreservedCost(entry: LedgerEntry, reservation: Reservation | undefined): number | '' {
  const charged = chargedNanoUsd(entry)
  if (charged !== null) return charged
  const budget = reservation?.demands.find(isBudget)
  return budget === undefined || reservation?.takenFrom !== 'nothing' ? '' : amountsOf(budget).cost
}

function isBudget(demand: Demand): demand is BudgetDemand {
  const { kind } = demand
  return kind === 'usd_day' || kind === 'usd_month'
}
