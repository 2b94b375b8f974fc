/**
 * Settles requests in batches, one command for those of one turn of the event loop. The command also reports
 * the slices of their limits.
 */
import type { LedgerEntry } from '../../../ledger/entry.js'
import type { NanoUsd } from '../../../base/nano-usd.js'
import { dayOf, isBudget, isWindowed, monthOf, WINDOWS } from '../../limit-arithmetic.js'
import { unavailable } from '../../store-errors.js'
import type { Demand, Reservation, SettleOutcome } from '../../ledger.js'
import { beganAtMs, correctedUses, type CorrectedUse } from '../../records/correct-entry.js'
import { chargedNanoUsd, chargedTokens, countersOf, usedTokens } from '../../records/count-usage.js'
import { digestOf, packEntry } from '../../records/packed-entry.js'
import { CommandBatches } from '../connection/command-batches.js'
import type { Argument } from '../connection/script.js'
import { parseBatchReply } from '../connection/parse-replies.js'
import { amountsOf, holdsOf, NO_UNITS, parseSharedHolds, type Hold } from '../limits/encode-demands.js'
import { chargeActualUsage, usageText, type ReleasedUsage } from '../limits/admissions.js'
import { NUMBERS_PER_SLICE } from '../limits/slices.js'
import { useFieldsOf } from './account-use.js'
import { cellOf, cellText, countersText } from './cells.js'
import type { LedgerContext } from './context.js'
import { nameOfEntry, nameOfId, timeIn } from './entry-names.js'
import { BUCKET_MS, slotPrefix, LEDGER_SCRIPTS, type LedgerKeys } from './ledger-keys.js'

/**
 * Entries of one command, which blocks the server for about two milliseconds. With fewer, slices would be
 * reported more often.
 */
const MAX_SETTLEMENTS = 32
const WHAT = 'settling a request'
/** The script's result of an entry. */
const [ALREADY, SETTLED, LATE] = [0, 1, 2]
const OUTCOMES: ReadonlyMap<unknown, SettleOutcome> = new Map([
  [ALREADY, 'already'],
  [SETTLED, 'settled'],
  [LATE, 'late'],
])

/** An entry to settle. */
export interface SettledEntry {
  readonly entry: LedgerEntry
  /** `due`: settles only an expired reservation. `asked`: the archive does not have the entry. */
  readonly mode: 'due' | 'asked' | ''
  readonly reservation?: Reservation | undefined
}

/** A correction of an entry. */
interface StoredCorrection {
  readonly former: LedgerEntry
  /** Its member in the log; null: it has left the store. */
  readonly member: string | null
  readonly entry: LedgerEntry
  readonly demands: readonly Demand[]
}

/** The result of an entry; `shared`: the holds of its reservation in other slots of a Cluster. */
interface Settled {
  readonly outcome: SettleOutcome
  readonly shared: string | null
}

/** Settles the requests of one ledger. */
export class Settlement {
  private readonly context: LedgerContext
  private readonly batches: CommandBatches<SettledEntry, Settled>

  constructor(context: LedgerContext) {
    this.context = context
    const { isCluster } = context.names
    this.batches = new CommandBatches(MAX_SETTLEMENTS, isCluster, (entries) => this.send(entries))
  }

  /** `already`, too, with `due` if the reservation has not expired. */
  async settle(settled: SettledEntry): Promise<SettleOutcome> {
    const { isCluster } = this.context.names
    const slot = isCluster ? settled.entry.accountId : ''
    const { outcome, shared } = await this.batches.add(slot, settled)
    if (outcome === 'settled' && isCluster) await this.releaseShared(settled, shared)
    return outcome
  }

  /** Replaces the entry of a request that was taken for lost; false if it is not there any more. */
  async correct(correction: StoredCorrection): Promise<boolean> {
    const { link, names, clock } = this.context
    const { former, member, entry } = correction
    const { accountId, atMs } = entry
    const negative = (counts: readonly NanoUsd[]) => cellText(counts.map((count) => -count))
    const [field, figures] = useFieldsOf(former)
    const [name, , month, shared = '', own = ''] = encodeEntry(entry).split(/[\0\n]/)
    const uses = correctedUses(former, entry, correction.demands)
    const amountOf = (kind: 'usd' | 'tokens') =>
      uses.find(({ demand }) => WINDOWS[demand.kind].counts === kind)?.amount ?? 0
    const args: Argument[] = [
      ...[clock(), accountId, names.ids(accountId), names.allNames ?? ''],
      ...[names.archiveMark(accountId), names.waiting(accountId), names.batch(accountId), member ?? ''],
      ...[negative(countersOf(former)), cellOf(former), field, figures.replaceAll(/(\d+)/g, '-$1')],
      ...[Math.floor(atMs), countersText(entry), cellOf(entry), name ?? '', month ?? '', shared, own],
    ]
    const isElsewhere = ({ demand }: CorrectedUse) => names.isCluster && demand.shared
    const holds = uses.filter((use) => !isElsewhere(use)).map((use) => correctedHold(accountId, use))
    args.push(JSON.stringify(holds), ` ${amountOf('tokens')} `, amountOf('usd'))
    const keys = names.isCluster
      ? [...keysOf(names, [{ entry, mode: '' }]), names.batch(accountId), names.months(accountId)]
      : [names.reservations(accountId)]
    if ((await link.run(WHAT, LEDGER_SCRIPTS.correct, { keys, args })) !== 1) return false
    const period = [dayOf(atMs), monthOf(atMs)] as const
    for (const use of uses.filter(isElsewhere)) {
      await chargeActualUsage(this.context, WHAT, {
        holds: [slotPrefix(accountId, use.demand), period, [correctedHold(accountId, use)]],
        usage: { tokens: '', chargedTokens: use.amount, cost: use.amount },
      })
    }
    return true
  }

  private async send(entries: readonly SettledEntry[]): Promise<(Settled | Error)[]> {
    const { link, names, clock, processName, slices } = this.context
    const accountId = entries[0]?.entry.accountId ?? ''
    const reportedAtMs = performance.now()
    const requests = entries.map(({ entry, reservation }) => {
      return { accountId: entry.accountId, demands: reservation?.demands ?? [] }
    })
    const reports = slices.reportsFor(requests, reportedAtMs)
    const keys = names.isCluster ? keysOf(names, entries) : [names.reservations(accountId)]
    const fixed = [
      ...[names.ids(accountId), names.ends(accountId), names.allNames ?? ''],
      ...[names.archiveMark(accountId), names.waiting(accountId)],
    ]
    const args: Argument[] = [clock(), processName, JSON.stringify(reports), ...fixed]
    for (const each of entries) args.push(encodeSettlement(each, names.isCluster))
    const { numbers, valueAt } = parseBatchReply(await link.run(WHAT, LEDGER_SCRIPTS.settle, { keys, args }))
    slices.applyReplies(reports, numbers, { reportedAtMs, nowMs: performance.now() })
    return entries.map((_, at) => {
      const code = numbers[NUMBERS_PER_SLICE * reports.length + at]
      const value = valueAt(at)
      const outcome = OUTCOMES.get(code)
      if (outcome !== undefined) return { outcome, shared: value }
      return unavailable(`${WHAT} failed`, new Error(value ?? 'no result'))
    })
  }

  /** Corrects limits in other slots of a Cluster. */
  private async releaseShared({ entry, reservation }: SettledEntry, shared: string | null): Promise<void> {
    const used = tokensAndUnitsOf(entry)
    const usage = { ...used, cost: chargedNanoUsd(entry) ?? '' } as const
    for (const holds of parseSharedHolds(shared)) {
      await chargeActualUsage(this.context, WHAT, { holds, usage })
    }
    if (shared !== null || reservation?.takenFrom !== 'nothing') return
    const period = [dayOf(entry.atMs), monthOf(entry.atMs)] as const
    const cost = unreservedCost(entry, reservation)
    for (const demand of reservation.demands) {
      if (!demand.shared || !isWindowed(demand)) continue
      const holds = unreservedHolds(entry.accountId, { ...reservation, demands: [demand] })
      const slot = slotPrefix(entry.accountId, demand)
      await chargeActualUsage(this.context, WHAT, {
        holds: [slot, period, holds],
        usage: { ...used, cost },
      })
    }
  }
}

const KEYS = [
  ...(['reservations', 'ids', 'ends', 'log', 'dictionaries', 'lastUse', 'settled', 'past'] as const),
  ...(['archiveMark', 'waiting'] as const),
]

/** The keys that the script accesses: a Cluster needs them while it moves the slot. */
function keysOf(names: LedgerKeys, entries: readonly SettledEntry[]): string[] {
  const keys = new Set<string>()
  for (const { entry, reservation } of entries) {
    const { accountId, atMs } = entry
    for (const demand of reservation?.demands ?? []) {
      const name = names.slice(accountId, demand)
      if (name !== null) keys.add(name)
    }
    for (const name of KEYS) keys.add(names[name](accountId))
    keys.add(names.dictionary(accountId, monthOf(timeIn(nameOfEntry(entry)))))
    for (const by of ['hour', 'day'] as const) {
      const startMs = Math.floor(atMs / BUCKET_MS[by]) * BUCKET_MS[by]
      keys.add(names.buckets(accountId, by)).add(names.sum(accountId, by, startMs))
    }
  }
  return Array.from(keys)
}

/** An entry as `settle.lua` parses it. */
function encodeSettlement({ entry, mode, reservation }: SettledEntry, isCluster: boolean): string {
  const { accountId, requestId, keyId, atMs } = entry
  const demands = reservation?.demands.filter(({ shared }) => !isCluster || !shared) ?? []
  const holds = unreservedHolds(accountId, reservation && { ...reservation, demands })
  const fields = [
    ...[accountId, requestId, keyId, Math.floor(atMs), Math.floor(Math.max(0, beganAtMs(entry)))],
    ...[usageText(tokensAndUnitsOf(entry)), chargedNanoUsd(entry) ?? ''],
    unreservedCost(entry, reservation),
    ...[countersText(entry), mode, JSON.stringify(holds)],
  ]
  return `${fields.join('\0')}\n${encodeEntry(entry)}${cellOf(entry)}`
}

/** The hold by which a budget or quota is corrected: nothing is reserved of it. */
function correctedHold(accountId: string, { demand }: CorrectedUse): Hold {
  const none = 'limitNanoUsd' in demand ? { ...demand, costNanoUsd: 0 } : { ...demand, cost: 0 }
  const [hold] = holdsOf(accountId, [none], '')
  if (hold === undefined) throw new Error('a demand has no hold')
  return hold
}

/** The names and the parts of an entry, as the scripts that store it parse them. */
export function encodeEntry(entry: LedgerEntry): string {
  const ofId = nameOfId(entry.requestId)
  const name = nameOfEntry(entry, ofId)
  const nameMs = timeIn(name)
  const { shared, own } = packEntry(entry, nameMs)
  let texts = ''
  for (const text of shared) texts += `${text === '' ? '' : digestOf(text)}\t${text}\t`
  return `${name}\0${ofId ?? ''}\0${monthOf(nameMs)}\0${texts}\n${own}\n`
}

/** What an entry counts for limits, as scripts read it. */
function tokensAndUnitsOf(entry: LedgerEntry): Omit<ReleasedUsage, 'cost'> {
  const units = entry.source === 'none' ? NO_UNITS : (entry.units ?? '')
  return { tokens: usedTokens(entry) ?? '', chargedTokens: chargedTokens(entry) ?? '', units }
}

/** The holds to correct without a reservation: those of a slice, or budgets that were not charged. */
function unreservedHolds(accountId: string, reservation: Reservation | undefined): Hold[] {
  if (reservation === undefined || reservation.takenFrom === 'reserved') return []
  const { demands, takenFrom } = reservation
  const unreserved = demands.flatMap((demand): Demand[] => {
    if (isWindowed(demand)) {
      if (takenFrom === 'slice') return [demand]
      return [isBudget(demand) ? { ...demand, costNanoUsd: 0 } : { ...demand, cost: 0 }]
    }
    return takenFrom === 'slice' && demand.kind === 'tokens' ? [demand] : []
  })
  return holdsOf(accountId, unreserved, '')
}

/**
 * The cost to charge without a reservation; if it is unknown, the amount that a reservation would have held.
 */
function unreservedCost(entry: LedgerEntry, reservation: Reservation | undefined): number | '' {
  const charged = chargedNanoUsd(entry)
  if (charged !== null) return charged
  const budget = reservation?.demands.find(isBudget)
  return budget === undefined || reservation?.takenFrom !== 'nothing' ? '' : amountsOf(budget).cost
}
