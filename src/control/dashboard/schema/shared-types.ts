/** Types that the other files of the schema share. */
import { MODEL_NAME } from '../../../formats/chat/model-facts.js'
import * as z from 'zod'
import type { JsonValue } from '../../../base/json.js'
import { boundsOf, byMember } from '../../../base/limit-members.js'

/** The id of an account, a key, a request: opaque. */
export const id = z.string().regex(/^[A-Za-z0-9_-]{1,100}$/, { error: 'is not an id' })

/** A time, ms since 1970. */
export const timeMs = z.int().min(0).max(9_999_999_999_999)

/** A number of items, at least 0. */
export const count = z.int().min(0)

/** Whole nano-dollars. */
export const nanoUsd = z.int().min(0)

/** A sum of money: the server writes all of its digits, and the page has the nearest number. */
export const nanoUsdSum = z.union([z.number().min(0), z.bigint().min(0n)]).transform(Number)

/** A model's id as clients write it. */
export const modelId = z.string().regex(MODEL_NAME, {
  error: 'must be 1 to 256 printable ASCII characters, with single spaces only between words',
})

/** Limits of a plan's keys, or of one key within its plan. An omitted member is unlimited. */
export const keyLimits = z.strictObject(
  byMember('field', (member) => {
    const { min, max } = boundsOf(member)
    return (member.counts === 'usd' ? nanoUsd : z.int().min(min).max(max)).optional()
  }),
)

/** A value in a request that `accounts/changes` checks, for every door with the same words. */
export const wanted = z.custom<JsonValue>((value) => value !== undefined, { error: 'is required' })

/** Limits in a request. */
export const wantedLimits = z.strictObject(
  byMember('field', () => wanted.optional()),
  // A `rule` of `accounts/changes`, which the page cannot import.
  {
    error: ({ code }) =>
      code === 'invalid_type' ? 'The value of $PATH is not an object.\nSend a JSON object.' : undefined,
  },
)

/** A number in a query. */
export const numberText = (min: number, max: number) =>
  z
    .string()
    .regex(/^\d{1,15}$/, { error: 'must be a whole number' })
    .transform(Number)
    .pipe(z.int().min(min).max(max))

/** A time in a query, ms since 1970. */
export const timeText = numberText(0, 9_999_999_999_999)

const lists = new WeakSet<z.ZodType>()

/** A filter of which the query may have several values, as several parameters: one of them must match. */
export function several<Item extends z.ZodType>(item: Item) {
  const filter = z.union([item, z.array(item).min(1).max(50)]).optional()
  lists.add(filter)
  return filter
}

/** Whether the query may have this parameter more than once. */
export function takesSeveral(schema: z.ZodType | null, name: string): boolean {
  if (!(schema instanceof z.ZodObject)) return false
  const field: unknown = (schema.shape as Readonly<Record<string, unknown>>)[name]
  return field instanceof z.ZodType && lists.has(field)
}

/** The account of an administrator's query: an id, or `all`. */
export const scope = z.union([z.literal('all'), id])

/** The cursor of a list: `next` of the previous page. */
export const cursor = z.string().regex(/^[!-~]{1,1000}$/, { error: 'is not the end of a page' })

/** The order of a list: a column, or `-` and a column for descending. The server names the columns. */
export const sort = z.string().max(64)

/** One label of a query: `name=value`. */
export const labelText = z.string().regex(/^[a-z0-9_.-]{1,32}=[!-~]{1,64}$/, {
  error: 'must be a label such as team=research',
})

/** A search text: part of a name or e-mail address, case-insensitive, without patterns. */
export const search = z.string().max(100)

/** An empty reply. */
export const doneReply = z.strictObject({})

/** An empty reply. */
export type DoneReply = z.output<typeof doneReply>
/** Limits in a request. */
export type WantedLimits = z.output<typeof wantedLimits>
/** Limits of a plan's keys, or of one key. */
export type KeyLimits = z.output<typeof keyLimits>

/** A reply as the server writes it: sums of money may be bigints. */
export type Sent<Schema extends z.ZodType> = z.input<Schema>

/** The unit of charts: minutes (single ones, five in ranges above 100 minutes), hours or days. */
export const unit = z.enum(['minute', 'hour', 'day'])

/** A range of time: one that ends now, or `fromMs` and `toMs`. */
export const rangeFields = {
  range: z.enum(['15m', '1h', '6h', '24h', '7d', '30d', '90d']).optional(),
  fromMs: timeText.optional(),
  /** Exclusive. */
  toMs: timeText.optional(),
}

/** A time zone, as an IANA name. */
export const zone = z.string().regex(/^[A-Za-z0-9_+/-]{1,64}$/, { error: 'is not a time zone' })
