/** `dimensions:` of the file: what distinguishes requests below a key, such as an end user or a run. */
import * as z from 'zod'
import { whole } from './value-types.js'

/** The most dimensions of a gateway. */
export const MAX_DIMENSIONS = 5
const MAX_PLACES = 10
/** Names that have another meaning in usage and limits. */
const RESERVED = ['team', 'key', 'account', 'model', 'upstream']

/** The name of a dimension. */
export const DIMENSION_NAME = /^[a-z][a-z0-9_]{0,31}$/

const PLACE =
  /^(?:header:[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}|(?:body|claim):[^\s.\p{Cc}]{1,64}(?:\.[^\s.\p{Cc}]{1,64}){0,7})$/u

const dimension = z.strictObject({
  name: z
    .string()
    .regex(DIMENSION_NAME, {
      error: 'must be 1 to 32 characters of a-z, 0-9 and _, and start with a letter',
    })
    .refine((name) => !RESERVED.includes(name), { error: `must not be one of ${RESERVED.join(', ')}` })
    .describe(
      `The name in limits, usage and the ledger; unique, and not ${RESERVED.join(', ')}. \`run\` also has the admin API's routes of runs.`,
    ),
  from: z
    .array(
      z.string().regex(PLACE, {
        error: 'must be header:NAME, body:PATH or claim:PATH, with dots between the names of a path',
      }),
    )
    .min(1)
    .max(MAX_PLACES)
    .describe(
      'The places that may have the value; the first place that is present counts. `header:NAME`, which does not reach the upstream; `body:PATH`, a text or number in the body, with dots between names; `claim:PATH` of the token of a workload. A name may have dots itself, as in `claim:https://example.com/run`.',
    ),
  required: z
    .boolean()
    .default(false)
    .describe('Whether a request without a value gets 400 `dimension_required`.'),
  max_values: whole(1, 1_000_000)
    .default(100_000)
    .describe(
      'Number of values of an account that are distinguished. Further ones count as `other`, together under a limit.',
    ),
  keep_seconds: whole(3_600, 31_536_000)
    .default(604_800)
    .describe(
      'How long a value without requests keeps its place, and what it has used of an amount that never resets.',
    ),
})

/** `dimensions:` */
export const dimensionsSchema = z
  .array(dimension)
  .max(MAX_DIMENSIONS)
  .default([])
  .describe(
    'What distinguishes requests below their key, such as `end_user` or `run`: in the ledger, in usage, and by limits with `scope: dimension:NAME`. A value has 1 to 128 printable characters and belongs to the account.',
  )

/** A place that may have the value of a dimension. */
export interface DimensionPlace {
  readonly kind: 'header' | 'body' | 'claim'
  /** The name of the header in lower case, or the names of members from the root. */
  readonly path: readonly string[]
}

/** A dimension. */
export interface DimensionConfig {
  readonly name: string
  /** As in the file. */
  readonly from: readonly string[]
  readonly places: readonly DimensionPlace[]
  readonly required: boolean
  readonly maxValues: number
  readonly keepMs: number
}

/** The resolved section. */
export function dimensionsOf(values: z.output<typeof dimensionsSchema>): DimensionConfig[] {
  return values.map(({ name, from, required, max_values: maxValues, keep_seconds: seconds }) => {
    return { name, from, places: from.map(placeOf), required, maxValues, keepMs: seconds * 1_000 }
  })
}

function placeOf(text: string): DimensionPlace {
  const at = text.indexOf(':')
  const rest = text.slice(at + 1)
  if (text.startsWith('header:')) return { kind: 'header', path: [rest.toLowerCase()] }
  return { kind: text.startsWith('body:') ? 'body' : 'claim', path: rest.split('.') }
}
