/**
 * Asking for limits that are not all in one slot. Knows no slice and no row.
 *
 * A limit that several accounts share has no slot in common with the account. Without a Cluster, one
 * question touches both. With one, the shared limits are request first, each in its slot, and given back
 * where another refuses: never too much is admitted, and for a moment perhaps too little.
 */
import type { Admission, Demand, Raise, LimitState } from '../../ledger.js'
import { slotRequestOf, type AdmissionBatches, type SlotReply } from './admission-batches.js'
import { encodeHolds, amountsOf, type Hold } from './encode-demands.js'
import { limitKey, accountPrefix, slotPrefix, type LedgerKeys } from '../ledger/key-names.js'
import { RELEASE_SHARED } from '../ledger/scripts.js'
import type { RedisLink } from '../connection/link.js'
import type { Argument } from '../connection/script.js'

const WHAT = 'admitting a request'
/** What asks for no reservation of its own. */
const UNRESERVED = { requestId: '', atMs: 0, shared: '[]', row: '' } as const

/** Some of the demands, which are of one slot, with their places among all. */
interface Part {
  readonly slot: string
  readonly demands: readonly Demand[]
  readonly places: readonly number[]
}

/** What a part was granted, until all are. */
interface GrantedPart {
  readonly part: Part
  readonly holds: readonly Hold[]
  readonly period: readonly [number, number]
}

/** The slots of one ledger's limits. */
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

  /** All that is demanded, or nothing; `member` is unlike that of any other attempt. */
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
    if (answer.outcome !== 'taken') for (const each of taken) await this.giveBack(each)
    return shared.length === 0 ? answer : this.whole(admission, answer)
  }

  /** How they stand, without taking anything. */
  async limitStates(accountId: string, demands: readonly Demand[]): Promise<LimitState[]> {
    const limitStates: LimitState[] = []
    for (const { slot, places, demands: some } of this.parts(accountId, demands)) {
      const request = { ...UNRESERVED, slot, accountId, leaseMs: 0, demands: some, member: '' }
      const answer = await this.admissions.request({ ...request, what: 'look' })
      answer.limitStates.forEach((each, at) => (limitStates[places[at] ?? 0] = each))
    }
    return limitStates
  }

  /** Takes all demands without a reservation, or none: then null. */
  async raise(accountId: string, demands: Raise['demands']): Promise<Raise | null> {
    const taken: { readonly demands: Raise['demands']; day: number; month: number }[] = []
    for (const { slot, places } of this.parts(accountId, demands)) {
      const some = demands.filter((_, place) => places.includes(place))
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

  /** Gives back what `raise` took. */
  async lower(accountId: string, { demands, day, month }: Raise): Promise<void> {
    for (const { slot, demands: some } of this.parts(accountId, demands)) {
      if (some.length === 0) continue
      const args = [this.clock(), encodeHolds(accountId, some, ''), day, month, '0', 0]
      await this.link.run('lowering a reservation', RELEASE_SHARED, [`${slot}:none`], args)
    }
  }

  /** What the shared slots gave, up to the first that refused. */
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

  /** The account's own demands first, and all that are in its slot; then those of each other slot. */
  private parts(accountId: string, demands: readonly Demand[]): [Part, ...Part[]] {
    const places = demands.map((_, place) => place)
    const slot = accountPrefix(accountId)
    if (!this.names.isCluster) return [{ slot, demands, places }]
    const slots = demands.map((demand) => slotPrefix(accountId, demand))
    const pick = (name: string): Part => {
      const isHere = (_: unknown, place: number): boolean => slots[place] === name
      return { slot: name, demands: demands.filter(isHere), places: places.filter(isHere) }
    }
    const others = new Set(slots)
    others.delete(slot)
    return [pick(slot), ...Array.from(others, pick)]
  }

  /** Only the account's own script finds this out by itself. */
  private async isKnown(accountId: string, requestId: string): Promise<boolean> {
    const names = [this.names.reservations(accountId), this.names.ids(accountId)]
    const found = names.map((name) => this.link.send(WHAT, 'hexists', [name, requestId]))
    return (await Promise.all(found)).includes(1)
  }

  private async giveBack({ part, holds, period }: GrantedPart): Promise<void> {
    const args = [this.clock(), JSON.stringify(holds), ...period, 'never', 0]
    await this.link.run(WHAT, RELEASE_SHARED, [`${part.slot}:none`], args)
  }

  /** All limitStates as they are now, with what each part that refused said of when to come again. */
  private async whole(
    { accountId, demands }: Admission,
    { outcome }: SlotReply,
  ): Promise<Pick<SlotReply, 'outcome' | 'limitStates'>> {
    const limitStates = await this.limitStates(accountId, demands)
    if (outcome === 'refused') return { outcome, limitStates }
    return { outcome, limitStates: limitStates.map((each) => ({ ...each, retryAfterMs: 0 })) }
  }
}

/** What a part that others share holds, as it stands with the reservation. */
function holdsOf({ slot, demands }: Part, member: string): Hold[] {
  return demands.map((demand, at) => {
    const { limit, cost } = amountsOf(demand)
    const of = demand.kind === 'concurrent' ? `${member}#${at}` : ''
    return [demand.kind, limitKey(slot, demand.kind, demand.subject), cost, limit, of]
  })
}
