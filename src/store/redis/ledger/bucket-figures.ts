/**
 * The figures of the groups of an account in hours or days, from the cells of their sums. Groups need a few
 * of all counters, and no sum is made of the others.
 */
import { isByProperty, type GroupUse, type GroupUseQuery } from '../../usage-queries.js'
import { addNanoUsd, type NanoUsd } from '../../../base/nano-usd.js'
import { UNIT_NAMES, unitFigures } from '../../../base/unit-counts.js'
import { GROUP_COUNTERS, isOfProperty } from '../../records/count-usage.js'
import { listOf } from '../connection/parse-replies.js'
import type { RedisConnection } from '../connection/redis-connection.js'
import { parseCell, readBucket, type Count } from './cells.js'
import type { LedgerKeys } from './ledger-keys.js'

/** Buckets read at once. */
const AT_ONCE = 20
const WHAT = 'reading the use of groups'

/** The place of each counter in `Figures`. */
const PLACES: ReadonlyMap<number, number> = new Map(GROUP_COUNTERS.map((counter, place) => [counter, place]))

/** The place of the cost. */
const COST = 4
/** In the order of `GROUP_COUNTERS`. */
type Figures = [number, number, number, number, NanoUsd, number, ...number[]]
const NOTHING: Figures = [0, 0, 0, 0, 0, 0, ...UNIT_NAMES.map(() => 0)]

/** Buckets of one length; `toMs` is exclusive. */
interface BucketSpan {
  readonly length: 'hour' | 'day'
  readonly fromMs: number
  readonly toMs: number
}

/** The groups of a query and their figures. */
export class GroupFigures {
  readonly isByProperty: boolean
  private readonly groups = new Map<string, Figures>()
  private readonly query: Pick<GroupUseQuery, 'by' | 'model' | 'keyId'>
  private readonly accountId: string

  constructor(accountId: string, query: Pick<GroupUseQuery, 'by' | 'model' | 'keyId'>) {
    this.accountId = accountId
    this.query = query
    this.isByProperty = isByProperty(query.by)
  }

  /** Adds counters of a key, or of a property's value (`*PROPERTY=VALUE`), and a model. */
  add(name: string, counts: readonly Count[]): void {
    const group = this.groupOf(name)
    if (group === null) return
    const sums = this.groups.get(group) ?? [...NOTHING]
    for (const [counter, count] of counts) {
      const place = PLACES.get(counter)
      if (place === undefined) continue
      if (place === COST) sums[COST] = addNanoUsd(sums[COST], count)
      else sums[place] = Math.min(Number.MAX_SAFE_INTEGER, Number(sums[place] ?? 0) + Number(count))
    }
    this.groups.set(group, sums)
  }

  /** The groups that were used. */
  uses(): GroupUse[] {
    const { by } = this.query
    const accountId = by === 'key' || by === 'key model' ? this.accountId : ''
    return Array.from(this.groups, ([keyId, figures]) => {
      const [requests, failed, inputTokens, outputTokens, costNanoUsd, unpriced, ...units] = figures
      return {
        ...{ accountId, keyId, requests, failed, inputTokens, outputTokens, costNanoUsd, unpriced },
        ...unitFigures((figure) => units[UNIT_NAMES.indexOf(figure)] ?? 0),
      }
    })
  }

  /** The group of `KEY\0MODEL`; null if the query excludes it. */
  private groupOf(name: string): string | null {
    const { by, model, keyId } = this.query
    const end = name.indexOf('\0')
    if (model !== undefined && name.slice(end + 1) !== model) return null
    const of = name.slice(0, end)
    if (keyId !== undefined && of !== keyId) return null
    if (by === 'key') return of
    if (by === 'key model') return `${of}\t${name.slice(end + 1)}`
    if (by === 'model') return name.slice(end + 1)
    return isOfProperty(of, by) ? of.slice(of.indexOf('=') + 1) : null
  }
}

/** Adds the figures of an account in a span. */
export async function addFigures(
  { link, names }: { readonly link: RedisConnection; readonly names: LedgerKeys },
  accountId: string,
  { length, fromMs, toMs }: BucketSpan,
  to: GroupFigures,
): Promise<void> {
  const range = [names.buckets(accountId, length), fromMs, `(${toMs}`]
  const starts = listOf(await link.send(WHAT, 'zrangebyscore', range)).map(Number)
  for (let at = 0; at < starts.length; at += AT_ONCE) {
    await Promise.all(
      starts
        .slice(at, at + AT_ONCE)
        .map((startMs) => addBucket({ link, names }, accountId, { length, startMs }, to)),
    )
  }
}

async function addBucket(
  { link, names }: { readonly link: RedisConnection; readonly names: LedgerKeys },
  accountId: string,
  { length, startMs }: { readonly length: 'hour' | 'day'; readonly startMs: number },
  to: GroupFigures,
): Promise<void> {
  for (const [field, value] of await readBucket(link, WHAT, names.sum(accountId, length, startMs))) {
    const cell = parseCell(accountId, field, value)
    const { owner, model, counts } = cell
    if (!to.isByProperty) to.add(owner, counts)
    else for (const property of cell.properties()) to.add(`${property}\0${model}`, counts)
  }
  if (!to.isByProperty) return
  for (const [field, value] of await readBucket(link, WHAT, names.propertySum(accountId, length, startMs))) {
    const { owner, counts } = parseCell(accountId, field, value)
    to.add(owner, counts)
  }
}
