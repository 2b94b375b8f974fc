/**
 * Moves what gateways of former versions wrote into the form of this one: entries from the stream of their
 * account to its log, and the counters of sums into cells. Each script moves a few entries or cells whole,
 * so that a reader finds each once, and several processes may move at the same time. A gateway of a former
 * version may go on writing: the next round moves that, too.
 */
import type { LedgerEntry } from '../../../ledger/entry.js'
import { readEntry } from '../../records/entry-text.js'
import { addCounter, newSum } from '../../records/count-usage.js'
import { adminTurns } from '../../../base/turn-queue.js'
import { listOf } from '../connection/parse-replies.js'
import { cellText, countsIn, parseCell, readBucket } from './cells.js'
import { timePrefix } from './entry-names.js'
import { BUCKET_MS, LEDGER_SCRIPTS } from './ledger-keys.js'
import { after } from './property-sums.js'
import type { RedisUsage } from './read-usage.js'
import { encodeEntry } from './settlement.js'

/** Entries moved by one script, which blocks the server for about two milliseconds. */
const ENTRIES = 50
/** Cells written by one script. */
const CELLS = 50
/**
 * A gateway of a former version may settle a request again meanwhile, from its spool, and looks up its id.
 */
const KEPT_MS = 3_600_000
const WHAT = 'moving entries of a former version'

type Source = Pick<RedisUsage, 'link' | 'names' | 'properties'>
type Bucket = readonly [by: 'hour' | 'day', startMs: number]

/** Moves everything of an account that was written before the call. */
export async function moveFormer(source: Source, accountId: string): Promise<void> {
  const { link, names } = source
  const isMoved = (await link.send(WHAT, 'get', [names.moved(accountId)])) !== null
  const buckets = new Map<string, Bucket>()
  const note = (by: 'hour' | 'day', startMs: number) => buckets.set(`${by} ${startMs}`, [by, startMs])
  for (const { atMs } of await moveEntries(source, accountId)) {
    for (const by of ['hour', 'day'] as const) note(by, Math.floor(atMs / BUCKET_MS[by]) * BUCKET_MS[by])
  }
  if (!isMoved) {
    for (const by of ['hour', 'day'] as const) {
      const starts = listOf(await link.send(WHAT, 'zrange', [names.buckets(accountId, by), 0, -1]))
      for (const start of starts) note(by, Number(start))
    }
  }
  for (const bucket of buckets.values()) await moveSums(source, accountId, bucket)
  if (!isMoved) await link.send(WHAT, 'set', [names.moved(accountId), 1])
}

/** Resolves to the times of the moved entries. A damaged entry stays. */
async function moveEntries(source: Source, accountId: string): Promise<{ readonly atMs: number }[]> {
  const { link, names, properties } = source
  const stream = names.formerEntries(accountId)
  if (Number(await link.send(WHAT, 'exists', [stream])) === 0) return []
  // The sums by property have every entry up to this one.
  const counted = await properties.catchUp(accountId)
  const until = `${Date.now() - KEPT_MS}`
  const last = Number(counted.split('-')[0]) < Number(until) ? counted : until
  const moved: { readonly atMs: number }[] = []
  const order = names.formerOrder(accountId)
  const keys = [stream, names.ids(accountId), order, names.formerNames ?? order, names.log(accountId)]
  for (let from = '-'; last !== '';) {
    const found = listOf(await link.send(WHAT, 'xrange', [stream, from, last, 'COUNT', ENTRIES])).map(listOf)
    const place = found.at(-1)?.[0]
    if (typeof place !== 'string') break
    from = after(place)
    const entries = found.flatMap(([id, fields]) => entryIn(String(id), listOf(fields)[1], accountId))
    const args = entries.flatMap(({ place: at, entry }) => {
      return [at, entry.requestId, `${timePrefix(entry.atMs)}${entry.requestId}`, encodeEntry(entry)]
    })
    const all = names.allNames ?? ''
    if (args.length > 0)
      await link.run(WHAT, LEDGER_SCRIPTS.moveEntries, { keys, args: [accountId, all, ...args] })
    moved.push(...entries.map(({ entry }) => ({ atMs: entry.atMs })))
    await adminTurns.next()
  }
  return moved
}

function entryIn(place: string, text: unknown, accountId: string): { place: string; entry: LedgerEntry }[] {
  try {
    const entry = readEntry(String(text))
    return entry.accountId === accountId ? [{ place, entry }] : []
  } catch {
    return []
  }
}

/** Makes cells of the counters of former versions in a bucket. */
async function moveSums({ link, names }: Source, accountId: string, [by, startMs]: Bucket): Promise<void> {
  for (const kind of ['sum', 'propertySum'] as const) {
    const name = names[kind](accountId, by, startMs)
    const fields = await readBucket(link, WHAT, name)
    const former = new Map<string, [field: string, value: string][]>()
    for (const [field, value] of fields) {
      const { kind: of, owner } = parseCell(accountId, field, value)
      if (of !== 'former') continue
      const own = former.get(owner) ?? []
      former.set(owner, own)
      own.push([field, value])
    }
    const owners = [...former]
    for (let at = 0; at < owners.length; at += CELLS) {
      const args = owners.slice(at, at + CELLS).flatMap(([owner, counters]) => {
        const before = fields.get(owner) ?? ''
        const sum = newSum()
        for (const [counter, count] of countsIn(before)) addCounter(sum, counter, count)
        for (const [field, value] of counters) {
          for (const [counter, count] of parseCell(accountId, field, value).counts)
            addCounter(sum, counter, count)
        }
        return [owner, before, cellText(sum), counters.length, ...counters.flat()]
      })
      await link.run(WHAT, LEDGER_SCRIPTS.putCells, { keys: [name, names.past(accountId)], args })
    }
  }
}
