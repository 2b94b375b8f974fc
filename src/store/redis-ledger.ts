/**
 * The ledger in Redis: one script admits a request, one settles it. Knows no key of a client and no
 * arithmetic; `RedisUsage` reads.
 *
 * A limit that several accounts share has no slot in common with the account. Without a Cluster, one
 * script touches both. With one, the shared limits are asked first, each in its slot, and given back
 * where another refuses: never too much is admitted, and for a moment perhaps too little.
 */
import type { UsageRow } from '../ledger/row.js'
import { unavailable } from './failure.js'
import type {
  Admission,
  BudgetSpent,
  Claim,
  Demand,
  KeyUse,
  KeyUseQuery,
  Ledger,
  Retention,
  RowPage,
  RowQuery,
  SettleOutcome,
  Standing,
  SumQuery,
  UsageSum,
  Verdict,
} from './ledger.js'
import { budgets, putBudgets } from './redis-budgets.js'
import { ACCOUNTS, endPlace, LedgerNames, slotOf } from './redis-ledger-layout.js'
import {
  answerOf,
  argumentsOf,
  numbersOf,
  sharedOf,
  type Answer,
  type Hold,
  type Part,
} from './redis-ledger-demands.js'
import * as scripts from './redis-ledger-scripts.js'
import type { RedisEngine } from './redis-engine.js'
import type { Argument, RedisLink, Script } from './redis-link.js'
import { listOf } from './redis-records.js'
import { namesOf, Settlement } from './redis-settlement.js'
import { SliceRounds } from './redis-slice-rounds.js'
import { Slices } from './redis-slices.js'
import { putSums } from './redis-sums.js'
import { RedisUsage } from './redis-usage.js'
import { readRow, writeRow } from './usage-record.js'

/** Reservations that ran out, settled before the next are asked for. */
const DUE_AT_ONCE = 64
const RENEWED_AT_ONCE = 256
/** Accounts that this process has put on the list. */
const MOST_LISTED = 100_000
const NAME = /^[^\0]{1,400}$/

/** Works on the engine's connections, until those are closed. */
export class RedisLedger implements Ledger {
  private readonly link: RedisLink
  private readonly names: LedgerNames
  private readonly usage: RedisUsage
  private readonly reports: RedisLink
  /** For tests; empty is the server's clock. */
  private readonly clock: () => Argument
  private readonly listed = new Set<string>()
  private readonly slices = new Slices()
  private readonly settlement: Settlement
  /** This process, in what is written down of it. */
  private readonly member = `${process.pid}.${Math.floor(Math.random() * 2 ** 40).toString(36)}`
  private readonly rounds: SliceRounds
  private attempts = 0

  /** `nowMs` in place of the server's clock. */
  constructor({ place, ledger, admin }: RedisEngine, nowMs: (() => number) | undefined) {
    this.link = ledger
    this.names = new LedgerNames(place.kind === 'cluster')
    this.clock = nowMs ?? (() => '')
    // Reports may take longer.
    this.reports = admin
    this.usage = new RedisUsage(admin, this.names)
    const { link, names, clock, slices, member } = this
    this.settlement = new Settlement({ link, names, clock, slices, member })
    this.rounds = new SliceRounds({ link, names, clock, slices, member })
  }

  async admit(admission: Admission): Promise<Verdict> {
    const { accountId, requestId, unsettled, demands } = admission
    const what = 'admitting a request'
    assertNames(what, requestId, accountId, unsettled.keyId, unsettled.model)
    if (admission.isTaken) return this.note(what, admission)
    const names = namesOf(this.names, accountId, demands)
    const standings = this.slices.take(requestId, demands, names, performance.now())
    if (standings !== null) return { admitted: true, standings, isSlice: true }
    await this.list(what, accountId)
    const [own, ...shared] = this.parts(accountId, demands)
    // Unlike any other attempt's: what is given back after a refusal must be only what this one took.
    const member = `${requestId}#${process.pid}.${(this.attempts += 1)}`
    const taken: { part: Part; holds: Hold[]; period: readonly [number, number] }[] = []
    let verdict: Answer | null = null
    for (const part of shared) {
      const holds = this.holds(accountId, part, member, true)
      const answer = await this.take(what, admission, part, member, null)
      if (answer.outcome === 'refused') {
        const isKnown = await this.isKnown(what, accountId, requestId)
        verdict = isKnown ? { ...answer, outcome: 'known' } : answer
        break
      }
      taken.push({ part, holds, period: answer.period })
    }
    verdict ??= await this.take(what, admission, own, member, taken)
    if (verdict.outcome !== 'taken') {
      for (const { part, holds, period } of taken) {
        await this.release(what, part.slot, holds, period, 'never', 0)
      }
    }
    if (shared.length === 0) {
      return { admitted: verdict.outcome !== 'refused', standings: verdict.standings }
    }
    return this.whole(admission, verdict)
  }

  letGo(requestId: string): void {
    this.slices.letGo(requestId)
  }

  async append(row: UsageRow): Promise<void> {
    await this.settle(row)
  }

  async settle(row: UsageRow, claim?: Claim): Promise<SettleOutcome> {
    return (await this.settled(row, writeRow(row), '', claim)) ? 'settled' : 'already'
  }

  async renew(
    requests: readonly { requestId: string; accountId: string }[],
    leaseMs: number,
  ): Promise<void> {
    const what = 'prolonging reservations'
    const byAccount = new Map<string, string[]>()
    for (const { requestId, accountId } of requests) {
      const known = byAccount.get(accountId)
      if (known === undefined) byAccount.set(accountId, [requestId])
      else known.push(requestId)
    }
    if (byAccount.size === 0) await this.link.opened()
    for (const [accountId, ids] of byAccount) {
      for (let from = 0; from < ids.length; from += RENEWED_AT_ONCE) {
        const places = ids.slice(from, from + RENEWED_AT_ONCE)
        const args = places.flatMap((id) => [id, endPlace(accountId, id)])
        const keys = [this.names.open(accountId), this.names.ends(accountId)]
        const answer = await this.run(what, scripts.RENEW, keys, [this.clock(), leaseMs, ...args])
        for (const text of listOf(answer)) await this.renewShared(what, text, leaseMs)
      }
    }
  }

  async expire(overdueMs = 0): Promise<number> {
    const what = 'settling what has run out'
    let count = 0
    const accounts = this.names.isCluster ? await this.usage.accounts() : ['']
    for (const account of accounts) {
      for (;;) {
        const args = [this.clock(), DUE_AT_ONCE, overdueMs]
        const ends = [this.names.ends(account)]
        const due = listOf(await this.run(what, scripts.DUE, ends, args)).map(String)
        const done = await Promise.all(due.map((place) => this.settleDue(what, place)))
        count += done.filter(Boolean).length
        if (due.length < DUE_AT_ONCE) break
      }
    }
    return count
  }

  async look(accountId: string, demands: readonly Demand[]): Promise<Standing[]> {
    const standings: Standing[] = []
    for (const { slot, demands: some, places } of this.parts(accountId, demands)) {
      const keys = [...dummies(slot), ...some.map((each) => this.names.limit(accountId, each))]
      const args = [this.clock(), 'look', '', '', 0, '', '', '', ...argumentsOf(some, '')]
      const answer = answerOf(await this.run('reading limits', scripts.ADMIT, keys, args), some)
      answer.standings.forEach((each, at) => (standings[places[at] ?? 0] = each))
    }
    return standings
  }

  sums(query: SumQuery): Promise<UsageSum[]> {
    return this.usage.sums(query)
  }

  rows(query: RowQuery): Promise<RowPage> {
    return this.usage.page(query)
  }

  row(accountId: string | null, requestId: string): Promise<UsageRow | null> {
    return this.usage.row(accountId, requestId)
  }

  export(sinceMs: number): AsyncIterable<readonly UsageRow[]> {
    return this.usage.export(sinceMs)
  }

  keyUse(query: KeyUseQuery): Promise<KeyUse[]> {
    return this.usage.keyUse(query)
  }

  lastUse(accountId: string, keyIds?: readonly string[]): Promise<ReadonlyMap<string, number>> {
    return this.usage.lastUse(accountId, keyIds)
  }

  async putSums(
    by: 'hour' | 'day',
    sums: readonly UsageSum[],
    lastUse: ReadonlyMap<string, number>,
  ): Promise<void> {
    for (const { accountId } of sums) await this.list('putting sums', accountId)
    await putSums(this.link, this.names, by, sums, lastUse)
  }

  budgets(): AsyncIterable<readonly BudgetSpent[]> {
    return budgets(this.reports)
  }

  putBudgets(all: readonly BudgetSpent[]): Promise<void> {
    return putBudgets(this.link, this.names, all)
  }

  prune(retention: Retention): Promise<number> {
    return this.usage.prune(retention)
  }

  /** Resolves when connected. */
  opened(): Promise<void> {
    return this.link.opened()
  }

  /** What slices are left goes back; never rejects. */
  close(): Promise<void> {
    return this.rounds.end()
  }

  private run(
    what: string,
    text: Script,
    keys: readonly string[],
    args: readonly Argument[],
  ): Promise<unknown> {
    return this.link.run(what, text, keys, args)
  }

  /** The reservation of what a slice has let in. */
  private async note(what: string, admission: Admission): Promise<Verdict> {
    const { accountId, requestId, unsettled, demands, leaseMs } = admission
    await this.list(what, accountId)
    const part = { slot: '', demands, places: [] }
    const holds = JSON.stringify(this.holds(accountId, part, '', false))
    const keys = this.fixed(accountId)
    const args = [this.clock(), requestId, endPlace(accountId, requestId), leaseMs]
    args.push(Math.floor(unsettled.atMs), holds, writeRow(unsettled))
    await this.run(what, scripts.NOTE, keys, args)
    return { admitted: true, standings: [] }
  }

  private fixed(accountId: string): string[] {
    return [this.names.open(accountId), this.names.ids(accountId), this.names.ends(accountId)]
  }

  /** The account's own demands first, and all that are in its slot; then those of each other slot. */
  private parts(accountId: string, demands: readonly Demand[]): [Part, ...Part[]] {
    const at = demands.map((_, place) => place)
    const slot = `sluice:{${accountId}}`
    if (!this.names.isCluster) return [{ slot, demands, places: at }]
    const pick = (name: string): Part => {
      const places = at.filter((place) => {
        const demand = demands[place]
        return demand !== undefined && slotOf(accountId, demand) === name
      })
      return { slot: name, places, demands: demands.filter((_, place) => places.includes(place)) }
    }
    const others = new Set(demands.map((demand) => slotOf(accountId, demand)))
    others.delete(slot)
    return [pick(slot), ...Array.from(others, pick)]
  }

  /** The script of one part; `shared` is what others took before it, null where this is one of them. */
  private async take(
    what: string,
    { accountId, requestId, leaseMs, unsettled }: Admission,
    part: Part,
    member: string,
    shared: readonly { part: Part; holds: Hold[]; period: readonly [number, number] }[] | null,
  ): Promise<Answer> {
    const limits = part.demands.map((demand) => this.names.limit(accountId, demand))
    const demands = argumentsOf(part.demands, member)
    const now = this.clock()
    if (shared === null) {
      const keys = [...dummies(part.slot), ...limits]
      const args = [now, 'take', '', '', leaseMs, '', '', '', ...demands]
      return answerOf(await this.run(what, scripts.ADMIT, keys, args), part.demands)
    }
    const fixed = this.fixed(accountId)
    const holds = JSON.stringify(this.holds(accountId, part, member, false))
    const theirs = JSON.stringify(shared.map((each) => [each.part.slot, each.period, each.holds]))
    const texts = [holds, theirs, writeRow(unsettled)]
    const place = endPlace(accountId, requestId)
    const args = [now, 'take', requestId, place, leaseMs, ...texts, ...demands]
    return answerOf(await this.run(what, scripts.ADMIT, [...fixed, ...limits], args), part.demands)
  }

  /** Only the account's own script finds this out by itself. */
  private async isKnown(what: string, accountId: string, requestId: string): Promise<boolean> {
    const names = [this.names.open(accountId), this.names.ids(accountId)]
    const found = names.map((name) => this.link.send(what, 'hexists', [name, requestId]))
    return (await Promise.all(found)).includes(1)
  }

  private holds(accountId: string, part: Part, member: string, all: boolean): Hold[] {
    const holds: Hold[] = []
    part.demands.forEach((demand, at) => {
      if (demand.kind === 'requests' && !all) return
      const { limit, cost } = numbersOf(demand)
      holds.push([demand.kind, this.names.limit(accountId, demand), cost, limit, `${member}#${at}`])
    })
    return holds
  }

  private async release(
    what: string,
    slot: string,
    holds: readonly Hold[],
    [day, month]: readonly [number, number],
    tokens: number | string,
    cost: number | string,
  ): Promise<void> {
    const args = [this.clock(), JSON.stringify(holds), day, month, tokens, cost]
    await this.run(what, scripts.RELEASE_SHARED, [`${slot}:none`], args)
  }

  /** All standings as they are now, with what each part that refused said of when to come again. */
  private async whole(admission: Admission, verdict: Answer): Promise<Verdict> {
    const standings = await this.look(admission.accountId, admission.demands)
    const admitted = verdict.outcome !== 'refused'
    return {
      admitted,
      standings: standings.map((each) => (admitted ? { ...each, retryAfterMs: 0 } : each)),
    }
  }

  private async settled(
    row: UsageRow,
    text: string,
    mode: 'due' | '',
    claim?: Claim,
  ): Promise<boolean> {
    const what = 'settling a request'
    const { accountId, requestId } = row
    assertNames(what, requestId, accountId, row.keyId, row.model)
    if (!this.listed.has(accountId)) await this.list(what, accountId)
    return this.settlement.settle(row, text, mode, claim)
  }

  private async settleDue(what: string, place: string): Promise<boolean> {
    const [accountId = '', requestId = ''] = place.split('\0')
    const key = this.names.open(accountId)
    const text = await this.link.send(what, 'hget', [key, requestId])
    if (typeof text !== 'string') {
      await this.link.send(what, 'zrem', [this.names.ends(accountId), place])
      return false
    }
    const row = text.slice(text.lastIndexOf('\n') + 1)
    return this.settled(readRow(row), row, 'due')
  }

  private async renewShared(what: string, text: unknown, leaseMs: number): Promise<void> {
    for (const [, , holds] of sharedOf(text)) {
      for (const [kind, key, , , member] of holds) {
        if (kind !== 'concurrent') continue
        await this.run(what, scripts.RENEW_SHARED, [key], [this.clock(), leaseMs, member])
      }
    }
  }

  /** Who asks for all accounts finds only those on the list. */
  private async list(what: string, accountId: string): Promise<void> {
    if (this.listed.has(accountId)) return
    await this.link.send(what, 'sadd', [ACCOUNTS, accountId])
    if (this.listed.size >= MOST_LISTED) this.listed.clear()
    this.listed.add(accountId)
  }
}

/** Stand-ins for the account's names, in the slot of what is shared. */
function dummies(slot: string): string[] {
  return [`${slot}:none`, `${slot}:none`, `${slot}:none`]
}

/** Throws where names made of these could not be taken apart again. */
function assertNames(what: string, ...names: readonly string[]): void {
  if (names.every((name) => NAME.test(name))) return
  throw unavailable(`${what} failed`, new Error('a name is empty, too long, or has a NUL in it'))
}
