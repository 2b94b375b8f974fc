/**
 * Admits requests whose limits are in several slots of a Cluster.
 *
 * A limit that several accounts share is in another slot than the account. Without a Cluster, one script checks both. In
 * a Cluster, the shared limits are taken first, each in its slot, and returned if another limit refuses: no limit is
 * ever exceeded, and for a moment a request may be refused too early.
 */
import type { Admission, Demand, Raise, LimitState } from '../../ledger.js'
import { slotRequestOf, type AdmissionBatches, type SlotReply } from './admission-batches.js'
import { encodeHolds, amountsOf, type Hold } from './encode-demands.js'
import { limitKey, accountPrefix, slotPrefix, type LedgerKeys } from '../ledger/key-names.js'
import { RELEASE_SHARED } from '../ledger/scripts.js'
import type { RedisLink } from '../connection/link.js'
import type { Argument } from '../connection/script.js'

const WHAT = 'admitting a request'
/** The members of a request without a reservation. */
const UNRESERVED = { requestId: '', atMs: 0, shared: '[]', entry: '' } as const

/** The demands of one slot, with their positions among all. */
interface Part {
  readonly slot: string
  readonly demands: readonly Demand[]
  readonly positions: readonly number[]
}

/** A part that was taken. */
interface GrantedPart {
  readonly part: Part
  readonly holds: readonly Hold[]
  readonly period: readonly [number, number]
}

/** Admissions to the limits of one ledger. */
export class SlotAdmissions {
  private readonly link: RedisLink
  private readonly names: LedgerKeys
  /** As in `RedisLedger`. */
  private readonly clock: () => Argument
  private readonly admissions: AdmissionBatches

  constructor(
    link: RedisLink,
    names: LedgerKeys,
    clock: () => Argument,
    admissions: AdmissionBatches,
  ) {
    this.link = link
    this.names = names
    this.clock = clock
    this.admissions = admissions
  }

  /** Takes all demands or none; `member` is unique to the attempt. */
  async take(
    admission: Admission,
    member: string,
  ): Promise<Pick<SlotReply, 'outcome' | 'limitStates'>> {
    const { accountId, demands } = admission
    if (!this.names.isCluster) {
      return this.admissions.request(slotRequestOf(admission, 'take', demands, member))
    }
    const [own, ...shared] = this.parts(accountId, demands)
    const { taken, refusal } = await this.takeShared(admission, shared, member)
    const theirs = JSON.stringify(
      taken.map(({ part, period, holds }) => [part.slot, period, holds]),
    )
    const answer =
      refusal ??
      (await this.admissions.request(slotRequestOf(admission, 'take', own.demands, member, theirs)))
    if (answer.outcome !== 'taken') for (const each of taken) await this.returnHolds(each)
    return shared.length === 0 ? answer : this.whole(admission, answer)
  }

  /** The states of the limits, without taking anything. */
  async limitStates(accountId: string, demands: readonly Demand[]): Promise<LimitState[]> {
    const limitStates: LimitState[] = []
    for (const { slot, positions, demands: some } of this.parts(accountId, demands)) {
      const request = { ...UNRESERVED, slot, accountId, leaseMs: 0, demands: some, member: '' }
      const answer = await this.admissions.request({ ...request, what: 'look' })
      answer.limitStates.forEach((each, at) => (limitStates[positions[at] ?? 0] = each))
    }
    return limitStates
  }

  /** Takes all demands without a reservation, or none and returns null. */
  async raise(accountId: string, demands: Raise['demands']): Promise<Raise | null> {
    const taken: { readonly demands: Raise['demands']; day: number; month: number }[] = []
    for (const { slot, positions } of this.parts(accountId, demands)) {
      const some = demands.filter((_, position) => positions.includes(position))
      if (some.length === 0) continue
      const request = { ...UNRESERVED, slot, accountId, leaseMs: 0, demands: some, member: '' }
      const { outcome, period } = await this.admissions.request({ ...request, what: 'take' })
      if (outcome === 'refused') {
        for (const each of taken) await this.lower(accountId, each)
        return null
      }
      taken.push({ demands: some, day: period[0], month: period[1] })
    }
    const [first] = taken
    return first === undefined ? null : { ...first, demands }
  }

  /** Returns what `raise` took. */
  async lower(accountId: string, { demands, day, month }: Raise): Promise<void> {
    for (const { slot, demands: some } of this.parts(accountId, demands)) {
      if (some.length === 0) continue
      const args = [this.clock(), encodeHolds(accountId, some, ''), day, month, '0', 0]
      await this.link.run('lowering a reservation', RELEASE_SHARED, [`${slot}:none`], args)
    }
  }

  /** Takes the demands of the shared slots, up to the first that refuses. */
  private async takeShared(
    { accountId, requestId, leaseMs }: Admission,
    shared: readonly Part[],
    member: string,
  ): Promise<{ taken: GrantedPart[]; refusal: SlotReply | null }> {
    const taken: GrantedPart[] = []
    for (const part of shared) {
      const { slot, demands } = part
      const request = { ...UNRESERVED, slot, accountId: '', leaseMs, demands, member }
      const answer = await this.admissions.request({ ...request, what: 'take' })
      if (answer.outcome === 'refused') {
        const isKnown = await this.isKnown(accountId, requestId)
        return { taken, refusal: isKnown ? { ...answer, outcome: 'known' } : answer }
      }
      taken.push({ part, holds: holdsOf(part, member), period: answer.period })
    }
    return { taken, refusal: null }
  }

  /** The demands of the account's slot first, then those of each other slot. */
  private parts(accountId: string, demands: readonly Demand[]): [Part, ...Part[]] {
    const positions = demands.map((_, position) => position)
    const slot = accountPrefix(accountId)
    if (!this.names.isCluster) return [{ slot, demands, positions }]
    const slots = demands.map((demand) => slotPrefix(accountId, demand))
    const pick = (name: string): Part => {
      const isHere = (_: unknown, position: number): boolean => slots[position] === name
      return { slot: name, demands: demands.filter(isHere), positions: positions.filter(isHere) }
    }
    const others = new Set(slots)
    others.delete(slot)
    return [pick(slot), ...Array.from(others, pick)]
  }

  /** Whether the request was admitted before; only the script of the account's slot checks that itself. */
  private async isKnown(accountId: string, requestId: string): Promise<boolean> {
    const names = [this.names.reservations(accountId), this.names.ids(accountId)]
    const found = names.map((name) => this.link.send(WHAT, 'hexists', [name, requestId]))
    return (await Promise.all(found)).includes(1)
  }

  private async returnHolds({ part, holds, period }: GrantedPart): Promise<void> {
    const args = [this.clock(), JSON.stringify(holds), ...period, 'never', 0]
    await this.link.run(WHAT, RELEASE_SHARED, [`${part.slot}:none`], args)
  }

  /** The current states of all limits; those of an admitted request need no retry. */
  private async whole(
    { accountId, demands }: Admission,
    { outcome }: SlotReply,
  ): Promise<Pick<SlotReply, 'outcome' | 'limitStates'>> {
    const limitStates = await this.limitStates(accountId, demands)
    if (outcome === 'refused') return { outcome, limitStates }
    return { outcome, limitStates: limitStates.map((each) => ({ ...each, retryAfterMs: 0 })) }
  }
}

/** The holds of a shared part, as the reservation stores them. */
function holdsOf({ slot, demands }: Part, member: string): Hold[] {
  return demands.map((demand, at) => {
    const { limit, cost } = amountsOf(demand)
    const of = demand.kind === 'concurrent' ? `${member}#${at}` : ''
    return [demand.kind, limitKey(slot, demand.kind, demand.subject), cost, limit, of]
  })
}
