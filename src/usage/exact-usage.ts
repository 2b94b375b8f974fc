/**
 * The usage in one range, for every page, command and API: whole hours and days from the sums that the store
 * keeps, and what is left of the first and the last hour from its entries, so that every figure is the sum of
 * the entries in the range. Charts by minutes, groups that no sums are kept by, and conditions that only
 * single requests meet, are made of entries alone. The edges are read once for all questions about a range.
 */
import { DAY_MS, HOUR_MS } from '../base/time-units.js'
import { unitFiguresOf } from '../base/unit-counts.js'
import type { Ledger } from '../store/ledger.js'
import { addedUp, addUse, dayOfHour, propertiesOf, selectSums } from '../store/records/count-usage.js'
import {
  isByProperty,
  type EntryFilter,
  type GroupUse,
  type GroupUseQuery,
  type SumQuery,
  type UsageCell,
  type UsageSum,
} from '../store/usage-queries.js'
import { entriesIn, type OnBatch } from './entries-in-range.js'
import { inDays, type UsageRange } from './ranges.js'
import { remainingSums } from './add-sums.js'
import {
  groupNamesOf,
  isOfEntries,
  NONE,
  sumsOfEntries,
  type GroupedBy,
  type GroupName,
} from './sums-of-entries.js'

/** The parts of the ledger that usage is read from. */
type UsageSource = Pick<Ledger, 'sums' | 'groupUse' | 'cells' | 'export' | 'entry'>
/** Selects sums of a range. */
export type SumSelection = Omit<SumQuery, 'by' | 'fromMs' | 'toMs' | 'offsets'>
/** Selects the groups of a range. */
export interface GroupSelection extends Omit<GroupUseQuery, 'by' | 'fromMs' | 'toMs'> {
  readonly by: GroupedBy
  /** Conditions that only single requests meet: the groups are made of entries then. */
  readonly filter?: EntryFilter | undefined
  /** With groups of entries: only those of these accounts. */
  readonly accountIds?: ReadonlySet<string> | null | undefined
}

type KeptSelection = Omit<GroupUseQuery, 'fromMs' | 'toMs'>

/** Whose requests count: those of an account, or of one key of it. */
export interface UsageOwner {
  readonly accountId: string
  readonly keyId?: string
}

/** A part of a range; `toMs` is exclusive. */
interface Part {
  readonly from: 'entries' | 'hours' | 'days'
  readonly fromMs: number
  readonly toMs: number
}

/** Answers questions about the usage in one range. */
export class ExactUsage {
  readonly range: UsageRange
  private readonly ledger: UsageSource
  private readonly onBatch: OnBatch | undefined
  private readonly parts: readonly Part[]
  private readonly read = new Map<string, Promise<readonly UsageCell[]>>()
  private readonly owners: readonly UsageOwner[] | null

  /** `onBatch`: see `entriesIn`. `owners`: what "all accounts" of a selection means; null: every account. */
  constructor(
    ledger: UsageSource,
    range: UsageRange,
    { onBatch, owners = null }: { onBatch?: OnBatch | undefined; owners?: readonly UsageOwner[] | null } = {},
  ) {
    this.ledger = ledger
    this.onBatch = onBatch
    this.owners = owners
    this.range = range
    this.parts = partsOf(range)
  }

  /** The usage of the same owners in another range. */
  over(range: UsageRange): ExactUsage {
    const { onBatch, owners } = this
    return new ExactUsage(this.ledger, range, { onBatch, owners })
  }

  /** The same range in days (UTC). */
  inDays(): ExactUsage {
    return this.over(inDays(this.range))
  }

  /** Whether the owners are single keys, of which only sums by model are kept. */
  get isOfKeys(): boolean {
    return this.owners?.some(({ keyId }) => keyId !== undefined) ?? false
  }

  /** The start of the minute, hour or day of a time, as sums have it. */
  startOf(atMs: number): number {
    const { stepMs, offsets, starts } = this.range
    if (offsets === undefined) return Math.floor(atMs / stepMs) * stepMs
    const day = dayOfHour(atMs, offsets)
    return starts.get(day) ?? day
  }

  /** Sums of each minute, hour or day; `startMs` is a value of `range.starts`. In order of time. */
  async sums(selection: SumSelection): Promise<UsageSum[]> {
    // Sums by account are those of all accounts, of which their names are a part.
    const namesAccounts =
      selection.accounts !== undefined || selection.property?.startsWith('account') === true
    const each = selection.accountId === null && !namesAccounts ? this.eachOwner(selection) : null
    if (each === null) return this.sumsOfParts(selection)
    const found = await Promise.all(
      each.map(({ per, ...own }) => {
        return this.sumsOfParts(own.keyId === undefined && per !== undefined ? { ...own, per } : own)
      }),
    )
    return found.flat().sort((a, b) => a.startMs - b.startMs)
  }

  private async sumsOfParts(selection: SumSelection): Promise<UsageSum[]> {
    const found = await Promise.all(this.parts.map((part) => this.sumsOf(part, selection)))
    const [first = [], ...others] = found.filter((sums) => sums.length > 0)
    const sums = others.length === 0 ? first : addedUp([first, ...others].flat(), (sum) => sum)
    return others.length === 0 ? sums : sums.sort((a, b) => a.startMs - b.startMs)
  }

  /** The totals of each group, in no order. Groups of entries have `(none)`. */
  async groups(selection: GroupSelection): Promise<GroupUse[]> {
    if (!isKept(selection)) {
      const sums = await sumsOfEntries(this.entries(selection), selection)
      return sums.map((sum) => useOf(sum, sum))
    }
    const each = selection.accountId === null ? this.eachOwner(selection) : null
    if (each === null) return this.groupsOfParts(selection)
    if (selection.by === 'account') {
      const ids = new Set(each.map(({ accountId }) => accountId))
      const all = await this.groupsOfParts(selection)
      return all.filter(({ keyId }) => ids.has(keyId.slice(0, keyId.indexOf(' '))))
    }
    const uses = new Map<string, GroupUse>()
    for (const found of await Promise.all(each.map((own) => this.groupsOfParts(own)))) {
      for (const use of found) addUse(uses, use)
    }
    return [...uses.values()]
  }

  /** The selections of single requests that a selection consists of. */
  ownersOf<S extends { readonly accountId: string | null; readonly keyId?: string }>(selection: S): S[] {
    return (selection.accountId === null ? this.eachOwner(selection) : null) ?? [selection]
  }

  /** A selection of all accounts as one of each owner; null: every account is one. */
  private eachOwner<S extends { readonly keyId?: string }>(
    selection: S,
  ): (S & { readonly accountId: string })[] | null {
    if (this.owners === null) return null
    const { keyId: wanted } = selection
    return this.owners.flatMap(({ accountId, keyId = wanted }) => {
      if (wanted !== undefined && keyId !== wanted) return []
      return [{ ...selection, accountId, ...(keyId === undefined ? {} : { keyId }) }]
    })
  }

  private async groupsOfParts(selection: KeptSelection): Promise<GroupUse[]> {
    const whole = this.parts.filter(({ from }) => from !== 'entries')
    const [fromMs, toMs] = [whole[0]?.fromMs ?? 0, whole.at(-1)?.toMs ?? 0]
    const [kept, ...cells] = await Promise.all([
      fromMs < toMs ? this.ledger.groupUse({ ...selection, fromMs, toMs }) : [],
      ...this.parts
        .filter(({ from }) => from === 'entries')
        .map((part) => this.cells(part, selection.accountId)),
    ])
    const edges = cells.flat()
    if (edges.length === 0) return kept
    const uses = new Map<string, GroupUse>()
    for (const use of kept) addUse(uses, use)
    for (const cell of edges) for (const use of groupsOf(cell, selection)) addUse(uses, use)
    return [...uses.values()]
  }

  /**
   * Sums of each group by model and by minute, hour or day; `keyId` is the group, `(none)` that of requests
   * without the property. `ids`: only these groups. In no order.
   */
  async sumsByGroup(selection: GroupSelection, ids?: ReadonlySet<string>): Promise<UsageSum[]> {
    if (!isKept(selection)) {
      const startOf = (atMs: number): number => this.startOf(atMs)
      return sumsOfEntries(this.entries(selection), { by: selection.by, startOf, ids })
    }
    const { by, accountId, model, keyId } = selection
    const of = {
      accountId,
      ...(model === undefined ? {} : { model }),
      ...(keyId === undefined ? {} : { keyId }),
    }
    const isWanted = ({ keyId }: UsageSum): boolean => ids?.has(keyId) !== false
    if (by === 'key' || by === 'model') {
      const sums = await this.sums(by === 'model' && of.keyId === undefined ? { ...of, per: 'model' } : of)
      return (by === 'key' ? sums : sums.map((sum) => ({ ...sum, keyId: sum.model }))).filter(isWanted)
    }
    if (by === 'key model') throw new Error('sums of keys have their model')
    const [all, own] = await Promise.all([
      this.sums({ ...of, per: 'model' }),
      this.sums({ ...of, property: by }),
    ])
    const sums = own.map((sum) => ({ ...sum, keyId: sum.keyId.slice(sum.keyId.indexOf('=') + 1) }))
    return [...sums, ...remainingSums(all, own, NONE)].filter(isWanted)
  }

  /** The entries of the range that a selection counts. */
  private entries({ accountId, accountIds, keyId, model, filter }: GroupSelection) {
    const { by, fromMs, toMs, nowMs } = this.range
    // As in sums, an hour that goes on is whole.
    const endMs = by !== 'minute' && toMs >= nowMs ? Math.ceil(toMs / HOUR_MS) * HOUR_MS : toMs
    const owners = accountId === null ? this.owners : null
    const keys = owners?.flatMap((owner) => owner.keyId ?? []) ?? []
    const own = {
      ...filter,
      ...(accountId === null ? {} : { accountId }),
      ...(keys.length === 0 ? {} : { keyId: keys }),
      ...(keyId === undefined ? {} : { keyId }),
      ...(model === undefined ? {} : { model }),
    }
    const ids = owners === null ? accountIds : new Set(owners.map((owner) => owner.accountId))
    return entriesIn(this.ledger, { fromMs, toMs: endMs, filter: own, accountIds: ids }, this.onBatch)
  }

  private async sumsOf(part: Part, selection: SumSelection): Promise<UsageSum[]> {
    const { by, offsets, starts } = this.range
    const moved = (sums: readonly UsageSum[]): UsageSum[] =>
      addedUp(sums, (sum) => ({ ...sum, startMs: this.startOf(sum.startMs) }))
    if (part.from === 'entries') {
      const cells = await this.cells(part, selection.accountId)
      return moved(selectSums(sumsOfCells(cells, selection), { ...selection, ...part, by: 'hour' }))
    }
    // The store's query includes the hour or day of its end.
    const span = { fromMs: part.fromMs, toMs: part.toMs - 1 }
    if (offsets !== undefined) {
      const sums = await this.ledger.sums({ ...selection, ...span, by: 'day', offsets })
      return sums.map((sum) => ({ ...sum, startMs: starts.get(sum.startMs) ?? sum.startMs }))
    }
    const kept = part.from === 'days' ? 'day' : 'hour'
    const sums = await this.ledger.sums({ ...selection, ...span, by: kept })
    return kept === by ? sums : moved(sums)
  }

  /** The entries of a part as cells. Those of one account are taken from those of all, if these are read. */
  private cells({ fromMs, toMs }: Part, accountId: string | null): Promise<readonly UsageCell[]> {
    const stepMs = this.range.by === 'minute' ? this.range.stepMs : HOUR_MS
    const nameOf = (of: string | null): string => JSON.stringify([of, fromMs, toMs])
    const known = this.read.get(nameOf(accountId))
    if (known !== undefined) return known
    // One reading of all entries is cheaper than one for each of several owners.
    const all =
      this.owners === null || accountId === null
        ? this.read.get(nameOf(null))
        : this.cells({ from: 'entries', fromMs, toMs }, null)
    const cells =
      all === undefined
        ? this.ledger.cells({ accountId, fromMs, toMs, stepMs })
        : all.then((found) => found.filter((cell) => cell.accountId === accountId))
    this.read.set(nameOf(accountId), cells)
    return cells
  }
}

/** The parts of a range in order of time. An hour that goes on is whole: it has nothing after the present. */
function partsOf({ by, fromMs, toMs, nowMs, offsets }: UsageRange): Part[] {
  const isOpen = toMs >= nowMs
  const firstHour = Math.ceil(fromMs / HOUR_MS) * HOUR_MS
  const afterHours = (isOpen ? Math.ceil(toMs / HOUR_MS) : Math.floor(toMs / HOUR_MS)) * HOUR_MS
  if (by === 'minute' || firstHour >= afterHours) return [{ from: 'entries', fromMs, toMs }]
  const firstDay = Math.ceil(firstHour / DAY_MS) * DAY_MS
  const afterDays = (isOpen ? Math.ceil(toMs / DAY_MS) : Math.floor(toMs / DAY_MS)) * DAY_MS
  const isByDay = by === 'day' && offsets === undefined && firstDay < afterDays
  const middle: Part[] = isByDay
    ? [
        { from: 'hours', fromMs: firstHour, toMs: firstDay },
        { from: 'days', fromMs: firstDay, toMs: afterDays },
        { from: 'hours', fromMs: afterDays, toMs: afterHours },
      ]
    : [{ from: 'hours', fromMs: firstHour, toMs: afterHours }]
  const edges: Part[] = [
    { from: 'entries', fromMs, toMs: firstHour },
    ...middle,
    { from: 'entries', fromMs: afterHours, toMs },
  ]
  return edges.filter((part) => part.fromMs < part.toMs)
}

/** The sums of cells that a selection may need: of keys, or by property. */
function sumsOfCells(cells: readonly UsageCell[], { property, accounts }: SumSelection): UsageSum[] {
  if (property === undefined && accounts === undefined) return [...cells]
  return cells.flatMap((cell) => propertiesIn(cell).map((keyId) => ({ ...cell, keyId })))
}

function propertiesIn({ isShadow, ...cell }: UsageCell): string[] {
  return propertiesOf({ ...cell, shadowOf: isShadow ? '' : null })
}

/** Whether the store keeps sums of what is selected; else its entries are read. */
export function isKept(selection: GroupSelection): selection is GroupSelection & KeptSelection {
  const { by, filter, accountIds = null, keyId } = selection
  if (isOfEntries(by) || accountIds !== null || Object.keys(filter ?? {}).length > 0) return false
  return keyId === undefined || !isByProperty(by)
}

/** What a cell adds to the groups of a selection. */
function groupsOf(cell: UsageCell, { by, model, keyId }: KeptSelection): GroupUse[] {
  if (model !== undefined && cell.model !== model) return []
  if (keyId !== undefined && cell.keyId !== keyId) return []
  return groupNamesOf(cell, by).map((name) => useOf(cell, name))
}

function useOf(sum: UsageSum, { accountId, keyId }: GroupName): GroupUse {
  const { requests, failed, inputTokens, outputTokens, costNanoUsd, unpriced } = sum
  const figures = { requests, failed, inputTokens, outputTokens, costNanoUsd, unpriced }
  return { accountId, keyId, ...figures, ...unitFiguresOf(sum) }
}
