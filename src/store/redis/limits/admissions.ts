/**
 * Admits requests, also those whose limits are in several slots of a Cluster.
 *
 * A limit that several accounts share is in another slot than the account. Without a Cluster, one script
 * checks both. In a Cluster, the shared limits are taken first, each in its slot, and returned if another
 * limit refuses: no limit is ever exceeded, and for a moment a request may be refused too early.
 */
import { monthOf } from '../../../limits/arithmetic/budget-period.js'
import type { Admission, Demand, LimitState, Raise } from '../../ledger.js'
import type { LedgerContext } from '../ledger/context.js'
import { accountPrefix, slotPrefix } from '../ledger/key-names.js'
import { groupBy } from '../group-by.js'
import { AdmissionBatches, type SlotReply } from './admission-batches.js'
import { holdsOf, type SharedHolds } from './encode-demands.js'
import { chargeActualUsage } from './charge-actual-usage.js'

const WHAT = 'admitting a request'
const DAY_MS = 86_400_000

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
    const decision =
      refusal ?? (await this.batches.request({ ...request, what: 'take', reservation }))
    if (decision.outcome !== 'taken') {
      const unused = { tokens: 'never', cost: 0 } as const
      for (const each of shared)
        await chargeActualUsage(this.context, WHAT, { holds: each, usage: unused })
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
      const unused = { tokens: 0, cost: 0 }
      const what = 'lowering a reservation'
      await chargeActualUsage(this.context, what, {
        holds: [part.slot, [day, monthOf(day * DAY_MS)], holds],
        usage: unused,
      })
    }
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
