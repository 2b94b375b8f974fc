/**
 * Asking for limits that are not all in one slot. Knows no slice and no row.
 *
 * A limit that several accounts share has no slot in common with the account. Without a Cluster, one
 * question touches both. With one, the shared limits are asked first, each in its slot, and given back
 * where another refuses: never too much is admitted, and for a moment perhaps too little.
 */
import type { Admission, Demand, Raise, LimitState } from '../../ledger.js'
import { questionOf, type Admissions, type Answer } from './send-admissions.js'
import { holdsText, numbersOf, type Hold } from './encode-demands.js'
import { limitName, own, slotOf, type LedgerNames } from '../ledger/key-names.js'
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
interface Taken {
  readonly part: Part
  readonly holds: readonly Hold[]
  readonly period: readonly [number, number]
}

/** The slots of one ledger's limits. */
export class Slots {
  private readonly link: RedisLink
  private readonly names: LedgerNames
  /** As in `RedisLedger`. */
  private readonly clock: () => Argument
  private readonly admissions: Admissions

  constructor(link: RedisLink, names: LedgerNames, clock: () => Argument, admissions: Admissions) {
    this.link = link
    this.names = names
    this.clock = clock
    this.admissions = admissions
  }

  /** All that is demanded, or nothing; `member` is unlike that of any other attempt. */
  async ask(
    admission: Admission,
    member: string,
  ): Promise<Pick<Answer, 'outcome' | 'limitStates'>> {
    const { accountId, demands } = admission
    if (!this.names.isCluster) {
      return this.admissions.ask(questionOf(admission, 'take', demands, member))
    }
    const [own, ...shared] = this.parts(accountId, demands)
    const { taken, verdict } = await this.askShared(admission, shared, member)
    const theirs = JSON.stringify(
      taken.map(({ part, period, holds }) => [part.slot, period, holds]),
    )
    const answer =
      verdict ??
      (await this.admissions.ask(questionOf(admission, 'take', own.demands, member, theirs)))
    if (answer.outcome !== 'taken') for (const each of taken) await this.giveBack(each)
    return shared.length === 0 ? answer : this.whole(admission, answer)
  }

  /** How they stand, without taking anything. */
  async look(accountId: string, demands: readonly Demand[]): Promise<LimitState[]> {
    const limitStates: LimitState[] = []
    for (const { slot, places, demands: some } of this.parts(accountId, demands)) {
      const asked = { ...UNRESERVED, slot, accountId, leaseMs: 0, demands: some, member: '' }
      const answer = await this.admissions.ask({ ...asked, what: 'look' })
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
      const asked = { ...UNRESERVED, slot, accountId, leaseMs: 0, demands: some, member: '' }
      const { outcome, period } = await this.admissions.ask({ ...asked, what: 'take' })
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
      const args = [this.clock(), holdsText(accountId, some, ''), day, month, '0', 0]
      await this.link.run('lowering a reservation', RELEASE_SHARED, [`${slot}:none`], args)
    }
  }

  /** What the shared slots gave, up to the first that refused. */
  private async askShared(
    { accountId, requestId, leaseMs }: Admission,
    shared: readonly Part[],
    member: string,
  ): Promise<{ taken: Taken[]; verdict: Answer | null }> {
    const taken: Taken[] = []
    for (const part of shared) {
      const { slot, demands } = part
      const asked = { ...UNRESERVED, slot, accountId: '', leaseMs, demands, member }
      const answer = await this.admissions.ask({ ...asked, what: 'take' })
      if (answer.outcome === 'refused') {
        const isKnown = await this.isKnown(accountId, requestId)
        return { taken, verdict: isKnown ? { ...answer, outcome: 'known' } : answer }
      }
      taken.push({ part, holds: holdsOf(part, member), period: answer.period })
    }
    return { taken, verdict: null }
  }

  /** The account's own demands first, and all that are in its slot; then those of each other slot. */
  private parts(accountId: string, demands: readonly Demand[]): [Part, ...Part[]] {
    const places = demands.map((_, place) => place)
    const slot = own(accountId)
    if (!this.names.isCluster) return [{ slot, demands, places }]
    const slots = demands.map((demand) => slotOf(accountId, demand))
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
    const names = [this.names.open(accountId), this.names.ids(accountId)]
    const found = names.map((name) => this.link.send(WHAT, 'hexists', [name, requestId]))
    return (await Promise.all(found)).includes(1)
  }

  private async giveBack({ part, holds, period }: Taken): Promise<void> {
    const args = [this.clock(), JSON.stringify(holds), ...period, 'never', 0]
    await this.link.run(WHAT, RELEASE_SHARED, [`${part.slot}:none`], args)
  }

  /** All limitStates as they are now, with what each part that refused said of when to come again. */
  private async whole(
    { accountId, demands }: Admission,
    { outcome }: Answer,
  ): Promise<Pick<Answer, 'outcome' | 'limitStates'>> {
    const limitStates = await this.look(accountId, demands)
    if (outcome === 'refused') return { outcome, limitStates }
    return { outcome, limitStates: limitStates.map((each) => ({ ...each, retryAfterMs: 0 })) }
  }
}

/** What a part that others share holds, as it stands with the reservation. */
function holdsOf({ slot, demands }: Part, member: string): Hold[] {
  return demands.map((demand, at) => {
    const { limit, cost } = numbersOf(demand)
    const of = demand.kind === 'concurrent' ? `${member}#${at}` : ''
    return [demand.kind, limitName(slot, demand.kind, demand.subject), cost, limit, of]
  })
}
