/**
 * Rows on their way into the `redis` engine's ledger: those that come together go in one command, and with
 * each what there is to say of the slices that its request was under. Knows no admission.
 */
import type { UsageRow } from '../ledger/row.js'
import { unavailable } from './failure.js'
import type { Claim, Demand } from './ledger.js'
import { BUCKET_MS, own, rowName, slotOf, type LedgerNames } from './redis-ledger-layout.js'
import { numbersOf, sharedOf, type Hold } from './redis-ledger-demands.js'
import { RELEASE_SHARED } from './redis-ledger-scripts.js'
import type { Argument, RedisLink } from './redis-link.js'
import { listOf, numbersOfJson } from './redis-records.js'
import { SETTLE } from './redis-settle-scripts.js'
import type { Slices } from './redis-slices.js'
import { countersOf } from './usage-sum.js'

/** Rows of one command: the server does nothing else for about two milliseconds. */
const AT_ONCE = 32
/** Commands under way at once; what comes meanwhile goes together. */
const UNDER_WAY = 4
const WHAT = 'settling a request'

/** A row that waits for its command. */
interface Waiting {
  readonly row: UsageRow
  readonly text: string
  readonly claim: Claim | undefined
  readonly resolve: (isNew: boolean) => void
  readonly reject: (error: unknown) => void
}

/** Rows that go together: of one account in a Cluster, else all. */
interface Group {
  readonly mode: 'due' | ''
  readonly waiting: Waiting[]
}

/** What a settlement needs of its ledger. */
export interface SettlementOptions {
  readonly link: RedisLink
  readonly names: LedgerNames
  /** As in `RedisLedger`. */
  readonly clock: () => Argument
  readonly slices: Slices
  /** This process, as slices are written down for. */
  readonly member: string
}

/** The way of rows into one ledger. */
export class Settlement {
  private readonly options: SettlementOptions
  private readonly groups = new Map<string, Group>()
  private underWay = 0
  private isDue = false

  constructor(options: SettlementOptions) {
    this.options = options
  }

  /** False where the ledger has the row already, or where it is not due. */
  settle(
    row: UsageRow,
    text: string,
    mode: 'due' | '',
    claim: Claim | undefined,
  ): Promise<boolean> {
    return new Promise((resolve, reject) => {
      const name = `${mode}\0${this.options.names.isCluster ? row.accountId : ''}`
      const waiting = { row, text, claim, resolve, reject }
      const group = this.groups.get(name)
      if (group === undefined) this.groups.set(name, { mode, waiting: [waiting] })
      else group.waiting.push(waiting)
      if (this.isDue) return
      this.isDue = true
      setImmediate(() => {
        this.isDue = false
        this.send()
      })
    })
  }

  private send(): void {
    for (const [name, { mode, waiting }] of this.groups) {
      while (waiting.length > 0) {
        if (this.underWay >= UNDER_WAY) return
        this.underWay += 1
        void this.run(mode, waiting.splice(0, AT_ONCE)).finally(() => {
          this.underWay -= 1
          this.send()
        })
      }
      this.groups.delete(name)
    }
  }

  /** Never rejects: each row is told for itself. */
  private async run(mode: 'due' | '', rows: readonly Waiting[]): Promise<void> {
    const [first] = rows
    if (first === undefined) return
    const { link, names, clock, member, slices } = this.options
    const { accountId } = first.row
    const askedMs = performance.now()
    const limits = this.limitsOf(rows)
    const told = slices.told(limits, askedMs)
    const keys = names.isCluster ? keysOf(names, rows, limits) : [names.open(accountId)]
    const fixed = [names.ids(accountId), names.ends(accountId), names.allOrder ?? '']
    const args: Argument[] = [clock(), mode, member, JSON.stringify(told), ...fixed]
    for (const { row, text, claim } of rows) {
      args.push(JSON.stringify(partsOf(names, row, claim)), text)
    }
    try {
      const answers = listOf(await link.run(WHAT, SETTLE, keys, args))
      const [numbers, codes, ...more] = answers
      slices.heard(told, numbersOfJson(numbers), askedMs, performance.now())
      const outcomes = numbersOfJson(codes)
      for (const [at, waiting] of rows.entries()) {
        const place = more.length === 0 ? -1 : more.indexOf(at + 1)
        this.answer(waiting, outcomes[at], place < 0 ? null : more[place + 1])
      }
    } catch (error) {
      for (const { reject } of rows) reject(error)
    }
  }

  /** All that the rows were under, each once. */
  private limitsOf(rows: readonly Waiting[]): Set<string> {
    const limits = new Set<string>()
    for (const { row, claim } of rows) {
      if (claim === undefined) continue
      for (const name of namesOf(this.options.names, row.accountId, claim.demands)) {
        if (name !== null) limits.add(name)
      }
    }
    return limits
  }

  private answer(waiting: Waiting, outcome: number | undefined, what: unknown): void {
    const { row, claim, resolve, reject } = waiting
    if (outcome === 0) resolve(false)
    else if (outcome !== 1) {
      const reason = typeof what === 'string' ? what : 'no answer'
      reject(unavailable(`${WHAT} failed`, new Error(reason)))
    } else if (!this.options.names.isCluster) resolve(true)
    else this.releaseShared(row, claim, what).then(() => resolve(true), reject)
  }

  /** What of a Cluster is in other slots. */
  private async releaseShared(
    row: UsageRow,
    claim: Claim | undefined,
    reserved: unknown,
  ): Promise<void> {
    const { link, names, clock } = this.options
    const used = usedTokens(row) ?? ''
    for (const [slot, [day, month], holds] of sharedOf(reserved)) {
      const args = [clock(), JSON.stringify(holds), day, month, used, row.costNanoUsd ?? '']
      await link.run(WHAT, RELEASE_SHARED, [`${slot}:none`], args)
    }
    if (reserved !== null || claim?.taken !== 'nothing') return
    const day = Math.floor(row.atMs / BUCKET_MS.day)
    const date = new Date(row.atMs)
    const month = (date.getUTCFullYear() - 1970) * 12 + date.getUTCMonth()
    for (const demand of claim.demands) {
      if (!demand.shared || !isBudget(demand)) continue
      const holds = JSON.stringify(owedHolds(names, row.accountId, claim, [demand]))
      const args = [clock(), holds, day, month, '', owedCost(row, claim)]
      await link.run(WHAT, RELEASE_SHARED, [`${slotOf(row.accountId, demand)}:none`], args)
    }
  }
}

/**
 * Where each demand is counted; null where it cannot be reached with what is the account's. What is held of places
 * stands in a second name, which a Cluster that moves a slot would not know of.
 */
export function namesOf(
  names: LedgerNames,
  accountId: string,
  demands: readonly Demand[],
): (string | null)[] {
  return demands.map((demand) =>
    names.isCluster && (demand.shared || demand.kind === 'concurrent')
      ? null
      : names.limit(accountId, demand),
  )
}

/** Input and output; null where nobody knows. */
export function usedTokens({ usage, source }: UsageRow): number | null {
  if (source === 'none') return 0
  if (usage.input === undefined && usage.output === undefined) return null
  return (usage.input ?? 0) + (usage.output ?? 0)
}

/** All that the script touches of one account: a Cluster that moves its slot must know. */
function keysOf(
  names: LedgerNames,
  rows: readonly Waiting[],
  limits: ReadonlySet<string>,
): string[] {
  const keys = new Set(limits)
  for (const { row } of rows) {
    const { accountId, atMs } = row
    for (const of of ['open', 'ids', 'ends', 'rows', 'order', 'used'] as const) {
      keys.add(names[of](accountId))
    }
    for (const by of ['hour', 'day'] as const) {
      const startMs = Math.floor(atMs / BUCKET_MS[by]) * BUCKET_MS[by]
      keys.add(names.buckets(accountId, by)).add(names.sum(accountId, by, startMs))
    }
  }
  return Array.from(keys)
}

/** In the order in which `SETTLE` takes it apart. */
function partsOf(names: LedgerNames, row: UsageRow, claim: Claim | undefined): unknown[] {
  const { accountId, requestId, keyId, model, atMs, costNanoUsd } = row
  const isOfSlot = ({ shared }: Demand): boolean => !names.isCluster || !shared
  const demands = claim?.demands.filter(isOfSlot) ?? []
  return [
    own(accountId),
    requestId,
    accountId,
    rowName(row),
    usedTokens(row) ?? '',
    costNanoUsd ?? '',
    keyId,
    Math.floor(atMs),
    `${keyId}\0${model}\0`,
    countersOf(row).flat(),
    claim === undefined ? [] : owedHolds(names, accountId, claim, demands),
    owedCost(row, claim),
  ]
}

/** What is corrected where there is no reservation: all that a slice took, or what budgets have not heard of. */
function owedHolds(
  names: LedgerNames,
  accountId: string,
  { taken }: Claim,
  demands: readonly Demand[],
): Hold[] {
  if (taken === 'reserved') return []
  const isSlice = taken === 'slice'
  const holds: Hold[] = []
  for (const demand of demands) {
    if (!isBudget(demand) && !(isSlice && demand.kind === 'tokens')) continue
    const { limit, cost } = numbersOf(demand)
    holds.push([demand.kind, names.limit(accountId, demand), isSlice ? cost : 0, limit, ''])
  }
  return holds
}

/** What it cost; where that is not known, what a reservation of it would have stood for. */
function owedCost({ costNanoUsd }: UsageRow, claim: Claim | undefined): number | '' {
  if (costNanoUsd !== null) return costNanoUsd
  const budget = claim?.demands.find(isBudget)
  return budget === undefined || claim?.taken !== 'nothing' ? '' : numbersOf(budget).cost
}

function isBudget({ kind }: Demand): boolean {
  return kind === 'usd_day' || kind === 'usd_month'
}
