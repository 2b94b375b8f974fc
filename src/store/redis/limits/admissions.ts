/**
 * Admits requests, also those whose limits are in several slots of a Cluster.
 *
 * A limit that several accounts share is in another slot than the account. Without a Cluster, one script
 * checks both. In a Cluster, the shared limits are taken first, each in its slot, and returned if another
 * limit refuses: no limit is ever exceeded, and for a moment a request may be refused too early.
 */
import { DAY_MS } from '../../../base/time-units.js'
import { unavailable } from '../../store-errors.js'
import type {
  Admission,
  BudgetDemand,
  BudgetMark,
  Demand,
  Ledger,
  LimitState,
  QuotaDemand,
  Raise,
} from '../../ledger.js'
import { monthOf, periodOf } from '../../limit-arithmetic.js'
import { writeEntry } from '../../records/entry-text.js'
import { CommandBatches } from '../connection/command-batches.js'
import { parseBatchReply } from '../connection/parse-replies.js'
import type { LedgerContext } from '../ledger/context.js'
import { nameOfId } from '../ledger/entry-names.js'
import { accountPrefix, slotPrefix, groupBy, limitKey, LEDGER_SCRIPTS } from '../ledger/ledger-keys.js'
import { markIn } from './budget-mark.js'
import { holdsOf, amountsOf, NO_UNITS, type SharedHolds } from './encode-demands.js'

const WHAT = 'admitting a request'

/** The demands of one slot, with their positions among all. */
interface Part<D extends Demand> {
  readonly slot: string
  readonly demands: readonly D[]
  readonly positions: readonly number[]
}

/** The decision about all demands. */
type Decision = Pick<SlotReply, 'outcome' | 'limitStates'>

/** Admissions to the limits of one ledger. */
export class Admissions {
  private readonly context: LedgerContext
  private readonly batches: AdmissionBatches

  constructor(context: LedgerContext) {
    this.context = context
    this.batches = new AdmissionBatches(context)
  }

  /** Takes all demands or none; `member` is unique to the attempt. */
  async take(admission: Admission, member: string): Promise<Decision> {
    const { accountId, demands, leaseMs } = admission
    const slot = accountPrefix(accountId)
    const parts = this.parts(accountId, demands)
    const own = parts.find((part) => part.slot === slot)?.demands ?? []
    const others = parts.filter((part) => part.slot !== slot)
    const { shared, refusal } = await this.takeShared(admission, others, member)
    const request = { slot, accountId, demands: own, member, leaseMs }
    const reservation = { admission, shared }
    const decision = refusal ?? (await this.batches.request({ ...request, what: 'take', reservation }))
    if (decision.outcome !== 'taken') {
      const unused = { tokens: 'never', cost: 0 } as const
      for (const each of shared) await chargeActualUsage(this.context, WHAT, { holds: each, usage: unused })
    }
    if (others.length === 0) return decision
    // The current states of all limits; those of an admitted request need no retry.
    const { outcome } = decision
    const limitStates = await this.limitStates(accountId, demands)
    if (outcome === 'refused') return { outcome, limitStates }
    return { outcome, limitStates: limitStates.map((each) => ({ ...each, retryAfterMs: 0 })) }
  }

  /** Writes the reservation of a request that slices have admitted. */
  async note(admission: Admission): Promise<void> {
    const { accountId, demands, leaseMs } = admission
    const request = { slot: accountPrefix(accountId), accountId, demands, member: '', leaseMs }
    const reservation = { admission, shared: [] }
    await this.batches.request({ ...request, what: 'note', reservation })
  }

  /** The states of the limits, without taking anything. */
  async limitStates(accountId: string, demands: readonly Demand[]): Promise<LimitState[]> {
    const limitStates: LimitState[] = []
    for (const part of this.parts(accountId, demands)) {
      const reply = await this.request('look', accountId, part)
      reply.limitStates.forEach((each, at) => (limitStates[part.positions[at] ?? 0] = each))
    }
    return limitStates
  }

  /** Takes all demands without a reservation, or none and returns null. */
  async raise(accountId: string, demands: Raise['demands']): Promise<Raise | null> {
    const taken: Raise[] = []
    for (const part of this.parts(accountId, demands)) {
      const { outcome, period } = await this.request('take', accountId, part)
      if (outcome === 'refused') {
        for (const each of taken) await this.lower(accountId, each)
        return null
      }
      taken.push({ demands: part.demands, day: period[0] })
    }
    const [first] = taken
    return first === undefined ? null : { ...first, demands }
  }

  /** Returns what `raise` took. */
  async lower(accountId: string, { demands, day }: Raise): Promise<void> {
    for (const part of this.parts(accountId, demands)) {
      const holds = holdsOf(accountId, part.demands, '')
      const unused = { tokens: 0, chargedTokens: 0, units: NO_UNITS, cost: 0 }
      const what = 'lowering a reservation'
      await chargeActualUsage(this.context, what, {
        holds: [part.slot, [day, monthOf(day * DAY_MS)], holds],
        usage: unused,
      })
    }
  }

  /** See `Ledger.addToBudget`. */
  async addToBudget(
    ...[accountId, demand, { period, total, sinceMs, isLast }]: Parameters<Ledger['addToBudget']>
  ): Promise<boolean> {
    const keys = [budgetKey(accountId, demand)]
    const args = [period, total, Math.floor(sinceMs ?? 0), isLast ? 1 : 0]
    return (await this.context.link.run(WHAT, LEDGER_SCRIPTS.addToBudget, { keys, args })) === 1
  }

  /** See `Ledger.budgetMarks`. */
  budgetMarks(...[accountId, demands]: Parameters<Ledger['budgetMarks']>): Promise<(BudgetMark | null)[]> {
    const { link, clock } = this.context
    const nowMs = Number(clock() === '' ? Date.now() : clock())
    return Promise.all(
      demands.map(async (demand) => {
        const mark = markIn(await link.send(WHAT, 'hget', [budgetKey(accountId, demand), 'b']))
        return mark === null || mark.period < periodOf(demand.kind, nowMs) ? null : mark
      }),
    )
  }

  private request(
    what: 'take' | 'look',
    accountId: string,
    { slot, demands }: Part<Demand>,
  ): Promise<SlotReply> {
    const request = { slot, what, accountId, demands, member: '', leaseMs: 0, reservation: null }
    return this.batches.request(request)
  }

  /** Takes the demands of the shared slots, up to the first that refuses. */
  private async takeShared(
    { accountId, requestId, leaseMs }: Admission,
    parts: readonly Part<Demand>[],
    member: string,
  ): Promise<{ shared: SharedHolds[]; refusal: SlotReply | null }> {
    const shared: SharedHolds[] = []
    for (const { slot, demands } of parts) {
      const request = { slot, accountId: '', demands, member, leaseMs, reservation: null }
      const reply = await this.batches.request({ ...request, what: 'take' })
      if (reply.outcome === 'refused') {
        const isKnown = await this.isKnown(accountId, requestId)
        return { shared, refusal: isKnown ? { ...reply, outcome: 'known' } : reply }
      }
      shared.push([slot, reply.period, holdsOf('', demands, member)])
    }
    return { shared, refusal: null }
  }

  /** Whether the request was admitted before; only the script of the account's slot checks that itself. */
  private async isKnown(accountId: string, requestId: string): Promise<boolean> {
    const { link, names } = this.context
    const found = [names.reservations(accountId), names.ids(accountId)].map((name) =>
      link.send(WHAT, 'hexists', [name, requestId]),
    )
    const name = nameOfId(requestId)
    if (name !== null) {
      const args = [names.log(accountId), `[${name}\0`, `(${name}\u0001`]
      found.push(link.send(WHAT, 'zlexcount', args))
    }
    return (await Promise.all(found)).includes(1)
  }

  /** The demands by slot. */
  private parts<D extends Demand>(accountId: string, demands: readonly D[]): Part<D>[] {
    const slotOf = ([, demand]: [number, D]) =>
      this.context.names.isCluster ? slotPrefix(accountId, demand) : accountPrefix(accountId)
    return Array.from(groupBy(demands.entries(), slotOf), ([slot, entries]) => ({
      slot,
      demands: entries.map(([, demand]) => demand),
      positions: entries.map(([position]) => position),
    }))
  }
}

function budgetKey(accountId: string, demand: BudgetDemand | QuotaDemand): string {
  return limitKey(slotPrefix(accountId, demand), demand.kind, demand.subject)
}

/** Requests of one command, which blocks the server for about a millisecond. */
const MAX_REQUESTS = 16
/** Numbers of each limit in the reply. */
const NUMBERS = 3
const OUTCOMES = ['refused', 'taken', 'known'] as const

interface SlotRequest {
  /** The prefix of every key of the slot. */
  readonly slot: string
  /**
   * `take` all or none; `look`: read the states; `note`: write the reservation of a request admitted by
   * slices.
   */
  readonly what: 'take' | 'look' | 'note'
  readonly accountId: string
  readonly demands: readonly Demand[]
  /** The beginning of its members in sets of concurrent requests; unique to the attempt. */
  readonly member: string
  readonly leaseMs: number
  /** Null for no reservation. */
  readonly reservation: {
    readonly admission: Admission
    /** Its holds in other slots of a Cluster. */
    readonly shared: readonly SharedHolds[]
  } | null
}

/** The decision of a slot. */
interface SlotReply {
  readonly outcome: (typeof OUTCOMES)[number]
  /** In the order of the demands; empty for a `note`. */
  readonly limitStates: readonly LimitState[]
  /** The day and month that were charged. */
  readonly period: readonly [number, number]
}

/**
 * Sends the admissions of one ledger.
 *
 * Sends admissions to Redis in batches: one command for those of one turn of the event loop, each decided
 * separately.
 */
class AdmissionBatches {
  private readonly context: LedgerContext
  private readonly batches: CommandBatches<SlotRequest, SlotReply>

  constructor(context: LedgerContext) {
    this.context = context
    const { isCluster } = context.names
    this.batches = new CommandBatches(MAX_REQUESTS, isCluster, (requests) => this.send(requests))
  }

  /** Rejects as `RedisConnection` does. */
  request(request: SlotRequest): Promise<SlotReply> {
    return this.batches.add(this.context.names.isCluster ? request.slot : '', request)
  }

  private async send(requests: readonly SlotRequest[]): Promise<(SlotReply | Error)[]> {
    const { link, names, clock } = this.context
    const accountId = requests[0]?.accountId ?? ''
    const args = [clock(), names.ids(accountId), names.ends(accountId)]
    for (const request of requests) args.push(encodeRequest(request))
    const reply = parseBatchReply(
      await link.run(WHAT, LEDGER_SCRIPTS.admit, { keys: this.keysOf(requests), args }),
    )
    const [day = 0, month = 0, ...numbers] = reply.numbers
    let from = 0
    return requests.map(({ what, demands }, at) => {
      const outcome = OUTCOMES[numbers[from] ?? -1]
      from += 1
      if (outcome === undefined) {
        const why = reply.valueAt(at) ?? 'the script returned no result'
        return unavailable(`${WHAT} failed`, new Error(why))
      }
      const limitStates = (what === 'note' ? [] : demands).map((demand, each) => {
        const start = from + NUMBERS * each
        const [remaining = 0, resetMs = 0, retryAfterMs = 0] = numbers.slice(start, start + NUMBERS)
        return { limit: amountsOf(demand).limit, remaining, resetMs, retryAfterMs }
      })
      from += NUMBERS * limitStates.length
      return { outcome, limitStates, period: [day, month] }
    })
  }

  /** The keys that the script accesses: a Cluster needs them while it moves the slot. */
  private keysOf(requests: readonly SlotRequest[]): string[] {
    const { names } = this.context
    const [first] = requests
    if (!names.isCluster) return [names.reservations(first?.accountId ?? '')]
    const keys = new Set<string>()
    for (const { slot, accountId, reservation, demands } of requests) {
      keys.add(`${slot}:none`)
      if (reservation !== null) {
        for (const name of ['reservations', 'ids', 'log', 'ends'] as const) keys.add(names[name](accountId))
      }
      for (const { kind, subject } of demands) keys.add(limitKey(slot, kind, subject))
    }
    return Array.from(keys)
  }
}

/** A request as `admit.lua` parses it; from the holds on it is the text of the reservation. */
function encodeRequest(request: SlotRequest): string {
  const { what, accountId, leaseMs, demands, member, reservation } = request
  const { requestId, unsettled } = reservation?.admission ?? { requestId: '', unsettled: null }
  const head = [accountId, requestId, Math.ceil(leaseMs), what, Math.floor(unsettled?.atMs ?? 0)]
  const name = requestId === '' ? '' : (nameOfId(requestId) ?? '')
  const holds = JSON.stringify(holdsOf(accountId, demands, member))
  const shared = JSON.stringify(reservation?.shared ?? [])
  return `${head.join('\0')}\0${name}\0${holds}\n${shared}\n${unsettled === null ? '' : writeEntry(unsettled)}`
}

/** The usage that replaces the amounts of the holds. */
export interface ReleasedUsage {
  /**
   * For limits of a minute. Empty: unknown, what is reserved stays. `never`: the request was not sent, so
   * rates of requests get theirs back.
   */
  readonly tokens: number | '' | 'never'
  /** For limits of a day, week or month and in all; empty: unknown. */
  readonly chargedTokens?: number | ''
  /** As in an entry; what is not named is unknown, with `NO_UNITS` none. */
  readonly units?: string
  /** Nano-dollars; empty: unknown. */
  readonly cost: number | ''
}

/** The tokens and units as `charge-actual-usage.lua` parses them. */
export function usageText({ tokens, chargedTokens = '', units = '' }: Omit<ReleasedUsage, 'cost'>): string {
  return `${tokens} ${chargedTokens} ${units}`
}

/** The holds of one slot, and the usage that replaces their amounts. */
interface Release {
  readonly holds: SharedHolds
  readonly usage: ReleasedUsage
}

/** Replaces the amounts of the holds by the usage. */
export async function chargeActualUsage(
  { link, clock }: LedgerContext,
  what: string,
  { holds: [slot, period, holds], usage }: Release,
): Promise<void> {
  const args = [clock(), JSON.stringify(holds), ...period, usageText(usage), usage.cost]
  await link.run(what, LEDGER_SCRIPTS.releaseShared, { keys: [`${slot}:none`], args })
}
