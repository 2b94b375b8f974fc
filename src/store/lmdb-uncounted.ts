/**
 * Rows that the embedded engine's tables have and its sums have not: grouped by key, model and hour until there
 * are many, so that a sum is read and written once for all of them. Knows no table.
 *
 * Nothing here has to survive: the tables know of every row whether it was counted, and of every row that was
 * not where it is (`Turn`), so others count what a process that died has not.
 */
import type { UsageRow } from '../ledger/row.js'
import { BUCKET_MS } from './lmdb-ledger-tables.js'
import { addToSum, newSum, type SumCounters } from './usage-sum.js'

/** How long a row waits for others. Whoever reads sums has them counted at once. */
const WAIT_MS = 5_000
/** So many rows do not wait: some five megabytes of names. */
const MANY = 65_536
/** Names and sums that one transaction takes: about a millisecond. */
const COST_AT_ONCE = 256
/** What the sums of a group cost, in names. */
const GROUP_COST = 8
/** A key that is asked for all the time has several groups of so many names. */
const MOST_NAMES = 128
/** A transaction takes this share of what waits where that is more, so that no backlog can stay. */
const SHARE = 1 / 64
/** Records of counted rows that one transaction drops. */
const RECORDS_AT_ONCE = 256

/** In the place of `Slice.others`, where each row has to be looked up. */
export const UNKNOWN = -1

/** Rows of one key, model and hour. */
export interface Group extends Pick<UsageRow, 'atMs' | 'accountId' | 'keyId' | 'model'> {
  /** Hours since 1970. */
  readonly hour: number
  /** Where the rows are in the tables. */
  readonly names: string[]
  /** What they come to together. */
  readonly added: SumCounters
}

/** What one transaction counts, and the records that say where the counted rows are. */
export interface Slice {
  /** How often rows of another process had been counted when the first of these was put. */
  readonly others: number
  readonly groups: readonly Group[]
  readonly records: readonly string[]
}

/** The group of a key, a model and an hour that takes more, and another of the key. */
interface Place {
  group: Group
  readonly other: Place | undefined
}

/** Groups by their rows' key, model and hour. */
export class Groups {
  private readonly groups: Group[] = []
  private readonly places = new Map<string, Place>()
  rows = 0

  /** `name` is the row's place in the tables. */
  add(name: string, row: UsageRow): void {
    const hour = Math.floor(row.atMs / BUCKET_MS.hour)
    const group = this.groupOf(row, hour)
    group.names.push(name)
    addToSum(group.added, row)
    this.rows += 1
  }

  /** In the order in which they are best written: neighbours in the tables one after another. */
  sorted(): Group[] {
    return this.groups.sort(byPlace)
  }

  private groupOf(row: UsageRow, hour: number): Group {
    const known = this.places.get(row.keyId)
    let place = known
    while (place !== undefined && !isOf(place.group, row, hour)) place = place.other
    if (place !== undefined && place.group.names.length < MOST_NAMES) return place.group
    const { atMs, accountId, keyId, model } = row
    const group = { atMs, accountId, keyId, model, hour, names: [], added: newSum() }
    this.groups.push(group)
    if (place === undefined) this.places.set(keyId, { group, other: known })
    else place.group = group
    return group
  }
}

function isOf(group: Group, { accountId, model }: UsageRow, hour: number): boolean {
  return group.model === model && group.hour === hour && group.accountId === accountId
}

function byPlace(a: Group, b: Group): number {
  if (a.accountId !== b.accountId) return a.accountId < b.accountId ? -1 : 1
  if (a.keyId !== b.keyId) return a.keyId < b.keyId ? -1 : 1
  if (a.model !== b.model) return a.model < b.model ? -1 : 1
  return a.hour - b.hour
}

/** Everything that was put before a moment, on its way into the sums. */
interface Round {
  others: number
  readonly groups: readonly Group[]
  readonly records: readonly string[]
  readonly cost: number
  groupsDone: number
  recordsDone: number
  areWhole: boolean
}

const NOTHING: Slice = { others: 0, groups: [], records: [] }

/** What a transaction has put into the tables. */
interface Put {
  /** The record that says where. */
  readonly record: string
  readonly rows: readonly { readonly name: string; readonly row: UsageRow }[]
  /** As in `Slice`, by the transaction. */
  readonly others: number
}

/** The rows of one process. */
export class Uncounted {
  /** Rounds that are over. */
  rounds = 0
  private readonly onDue: () => void
  private waiting = new Groups()
  private records: string[] = []
  private others = 0
  /** Records of rows that are in here. */
  private readonly known = new Set<string>()
  private round: Round | null = null
  private timer: NodeJS.Timeout | null = null

  /** `onDue` is called where rows should be counted. */
  constructor(onDue: () => void) {
    this.onDue = onDue
  }

  /** Whether a round is under way. */
  get isCounting(): boolean {
    return this.round !== null
  }

  /** Whether the rows of a record are yet to be counted from here. */
  has(record: string): boolean {
    return this.known.has(record)
  }

  /** How many rounds there will have been when all is counted that has been put so far. */
  get roundsToCome(): number {
    const under = this.round === null ? 0 : 1
    return this.rounds + under + (this.waiting.rows > 0 ? 1 : 0)
  }

  /** Rows that a transaction has put; its `record` says where. */
  add({ record, rows, others }: Put): void {
    if (rows.length === 0) return
    if (this.waiting.rows === 0) this.others = others
    for (const { name, row } of rows) this.waiting.add(name, row)
    this.records.push(record)
    this.known.add(record)
    this.timer ??= setTimeout(() => {
      this.timer = null
      this.begin()
      this.onDue()
    }, WAIT_MS).unref()
    if (this.waiting.rows >= MANY) this.begin()
  }

  /** Has everything counted that has been put so far, once what is being counted is. */
  begin(): void {
    if (this.round !== null || this.waiting.rows === 0) return
    const groups = this.waiting.sorted()
    const cost = this.waiting.rows + groups.length * GROUP_COST
    const { records, others } = this
    this.round = { others, groups, records, cost, groupsDone: 0, recordsDone: 0, areWhole: true }
    this.waiting = new Groups()
    this.records = []
    if (this.timer !== null) clearTimeout(this.timer)
    this.timer = null
  }

  /** What the next transaction counts; `took` tells that it has. */
  next(): Slice {
    const { round } = this
    if (round === null) return NOTHING
    const { others, groups, records, groupsDone, recordsDone } = round
    const most = Math.max(COST_AT_ONCE, round.cost * SHARE)
    let end = groupsDone
    for (let cost = 0; end < groups.length && cost < most; end += 1) {
      cost += GROUP_COST + (groups[end]?.names.length ?? 0)
    }
    // Where rows are is forgotten when all of them are in the sums.
    const isAllCounted = groupsDone === groups.length && round.areWhole
    return {
      others,
      groups: groups.slice(groupsDone, end),
      records: isAllCounted ? records.slice(recordsDone, recordsDone + RECORDS_AT_ONCE) : [],
    }
  }

  /** The slice is in the sums for good; without `areWhole` a part of it could not be put there. */
  took({ groups, records }: Slice, areWhole: boolean): void {
    const { round } = this
    if (round === null) return
    round.groupsDone += groups.length
    round.recordsDone += records.length
    if (!areWhole) round.areWhole = false
    if (round.groupsDone < round.groups.length) return
    if (round.areWhole && round.recordsDone < round.records.length) return
    this.round = null
    this.rounds += 1
    // What could not be counted is tried again as what others have left.
    for (const record of round.records) this.known.delete(record)
    if (this.waiting.rows >= MANY) this.begin()
  }

  /** It cannot be told whether the slice is in the sums: whether each row is counted is looked up. */
  doubt(): void {
    if (this.round !== null) this.round.others = UNKNOWN
  }

  /** Nothing is called any more. */
  close(): void {
    if (this.timer !== null) clearTimeout(this.timer)
    this.timer = null
  }
}
