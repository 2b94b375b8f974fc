/**
 * The figures of the groups of an account in hours or days, from the hashes of their sums. Groups need
 * six of two dozen counters: Redis leaves the others out, and no sum is made of them, because a million
 * requests have eight million counters.
 */
import { PROPERTY_MARK, type GroupUse, type GroupUseQuery } from '../../usage-queries.js'
import { GROUP_COUNTERS, isOfProperty } from '../../records/count-usage.js'
import { listOf } from '../connection/parse-replies.js'
import type { RedisConnection } from '../connection/redis-connection.js'
import { adminTurns } from '../../turn-queue.js'
import type { LedgerKeys } from './ledger-keys.js'

/** Fields read by one command: some 64 KiB. */
const FIELDS = 1_000
/** Buckets read at once. */
const AT_ONCE = 20
const WHAT = 'reading the use of groups'

/** The place of each counter in `Figures`, by its name in Redis. */
const PLACES: ReadonlyMap<string, number> = new Map(
  GROUP_COUNTERS.map((counter, place) => [String(counter), place]),
)

/** Matches the fields of these counters, of all keys or of one property. */
function patternOf(by: GroupUseQuery['by']): string {
  const isKey = by === 'key' || by === 'model'
  const start = isKey ? '' : `${PROPERTY_MARK}${by}${by.includes('=') ? '' : '='}`
  return `${start.replace(/[*?[\]\\]/g, '\\$&')}*\0[${[...PLACES.keys()].join('')}]`
}

/** In the order of `GROUP_COUNTERS`. */
type Figures = [number, number, number, number, number, number]

/** Buckets of one length; `toMs` is exclusive. */
interface BucketSpan {
  readonly length: 'hour' | 'day'
  readonly fromMs: number
  readonly toMs: number
}

/** The groups of a query and their figures. */
export class GroupFigures {
  readonly isByProperty: boolean
  /** Matches the fields that `add` needs. */
  readonly pattern: string
  private readonly groups = new Map<string, Figures>()
  private readonly query: Pick<GroupUseQuery, 'by' | 'model' | 'keyId'>
  private readonly accountId: string

  constructor(accountId: string, query: Pick<GroupUseQuery, 'by' | 'model' | 'keyId'>) {
    this.accountId = accountId
    this.query = query
    this.isByProperty = query.by !== 'key' && query.by !== 'model'
    this.pattern = patternOf(query.by)
  }

  /** Adds the figures of a key, or of a property's value (`*PROPERTY=VALUE`), and a model. */
  add(name: string, figures: Figures): void {
    const group = this.groupOf(name)
    if (group === null) return
    const sums = this.groups.get(group)
    if (sums === undefined) this.groups.set(group, figures)
    else {
      for (const [at, figure] of figures.entries()) {
        sums[at] = Math.min(Number.MAX_SAFE_INTEGER, (sums[at] ?? 0) + figure)
      }
    }
  }

  /** The groups that were used. */
  uses(): GroupUse[] {
    const accountId = this.query.by === 'key' ? this.accountId : ''
    return Array.from(this.groups, ([keyId, figures]) => {
      const [requests, errors, inputTokens, outputTokens, costNanoUsd, unpriced] = figures
      return {
        ...{ accountId, keyId, requests, errors, inputTokens, outputTokens, costNanoUsd, unpriced },
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
      starts.slice(at, at + AT_ONCE).map(async (startMs) => {
        const name = names[to.isByProperty ? 'propertySum' : 'sum'](accountId, length, startMs)
        for (const [of, figures] of await rowsOf(link, name, to.pattern)) {
          to.add(of, figures)
        }
      }),
    )
  }
}

/**
 * The rows of a hash, by `KEY\0MODEL`. A field that is read twice, because the hash grows meanwhile, counts
 * once.
 */
async function rowsOf(link: RedisConnection, name: string, pattern: string): Promise<Map<string, Figures>> {
  const rows = new Map<string, Figures>()
  for (let cursor = '0'; ;) {
    const scan = [name, cursor, 'MATCH', pattern, 'COUNT', FIELDS]
    const [next, found] = listOf(await link.send(WHAT, 'hscan', scan))
    const fields = listOf(found)
    for (let at = 0; at < fields.length; at += 2) {
      const field = String(fields[at])
      const end = field.lastIndexOf('\0')
      const place = PLACES.get(field.slice(end + 1))
      if (place === undefined) continue
      const of = field.slice(0, end)
      const known = rows.get(of)
      const figures: Figures = known ?? [0, 0, 0, 0, 0, 0]
      if (known === undefined) rows.set(of, figures)
      figures[place] = Math.min(Number.MAX_SAFE_INTEGER, Number(fields[at + 1]))
    }
    cursor = String(next)
    if (cursor === '0') return rows
    await adminTurns.next()
  }
}
