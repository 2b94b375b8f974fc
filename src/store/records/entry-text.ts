/**
 * The text of a ledger entry: a compact JSON array that begins with its version, `[2,…]`. The spool and every
 * engine store the same text.
 */
import { z } from 'zod'
import { isOutcome } from '../../errors.js'
import type { EntryOutcome, LedgerEntry } from '../../ledger/entry.js'
import { checkFields, parseJson } from './parse-record.js'

const VERSION = 2
/** The earlier version, which ends with `hops`. */
const WITHOUT_EXPLANATION = 1

/** In order; a new one goes to the end, and is absent from earlier entries. */
const COUNTS = ['input', 'output', 'cacheRead', 'cacheWrite', 'reasoning', 'cacheWrite1h'] as const
/** The stages of a request in their order, up to the end of its reply. */
export const HOPS = [
  'authenticate',
  'receive',
  'route',
  'admit',
  'connect',
  'firstByte',
  'translate',
  'relay',
] as const
const STAGES = [...HOPS, 'firstContent', 'overhead'] as const

const dialectSchema = z.enum(['openai-chat', 'openai-responses', 'anthropic', 'gemini'])
const sourceSchema = z.enum(['reported', 'estimated', 'assumed', 'none'])
const outcomeSchema = z.custom<EntryOutcome>(
  (value) => typeof value === 'string' && isOutcome(value),
)

const text = z.string()
const textOrNull = text.nullable()
const number = z.number()
const numberOrNull = number.nullable()
/** Written in whole microseconds, which have fewer digits than fractions of a millisecond. */
const milliseconds = number.transform((micros) => micros / 1_000)
const flag = z.literal([0, 1]).transform((value) => value === 1)

/** The members in the order of the array; a new one goes to the end, with a default for earlier entries. */
const entrySchema = z.object({
  requestId: text,
  atMs: number,
  durationMs: milliseconds,
  accountId: text,
  keyId: text,
  modelAsked: textOrNull,
  modelAnswered: textOrNull,
  model: text,
  upstream: textOrNull,
  dialect: dialectSchema.nullable(),
  attempts: number,
  stream: flag,
  status: number,
  outcome: outcomeSchema,
  finish: textOrNull,
  usage: z.array(numberOrNull).transform((counts) => named(COUNTS, counts)),
  source: sourceSchema,
  costNanoUsd: numberOrNull,
  tokensAfterDisconnect: number,
  losses: z.array(text),
  generation: number,
  hops: z.array(milliseconds.nullable()).transform((times) => named(STAGES, times)),
  // Version 1 ends here.
  ingress: textOrNull.default(null),
  errorMessage: textOrNull.default(null),
  limit: textOrNull.default(null),
  upstreamStatus: numberOrNull.default(null),
  upstreamRequestId: textOrNull.default(null),
  attempted: textOrNull.default(null),
  shadowOf: textOrNull.default(null),
  labels: textOrNull.default(null),
  clientRequestId: textOrNull.default(null),
  attemptMs: z.array(milliseconds).nullable().default(null),
  retryAfterSeconds: numberOrNull.default(null),
  priceVersion: textOrNull.default(null),
})
const FIELDS = entrySchema.keyof().options

/**
 * The text of an entry, without a line break. A number that is not finite becomes 0. Every request writes
 * one: a loop over `FIELDS` takes twice the time.
 */
export function writeEntry(entry: LedgerEntry): string {
  const { usage, hops, attemptMs, costNanoUsd, retryAfterSeconds } = entry
  return JSON.stringify([
    VERSION,
    entry.requestId,
    finite(entry.atMs),
    micros(entry.durationMs),
    entry.accountId,
    entry.keyId,
    entry.modelAsked,
    entry.modelAnswered,
    entry.model,
    entry.upstream,
    entry.dialect,
    finite(entry.attempts),
    entry.stream ? 1 : 0,
    finite(entry.status),
    entry.outcome,
    entry.finish,
    listed(COUNTS.map((name) => usage[name])),
    entry.source,
    costNanoUsd === null ? null : finite(costNanoUsd),
    finite(entry.tokensAfterDisconnect),
    entry.losses,
    finite(entry.generation),
    listed(STAGES.map((stage) => micros(hops[stage]))),
    entry.ingress,
    entry.errorMessage,
    entry.limit,
    entry.upstreamStatus,
    entry.upstreamRequestId,
    entry.attempted,
    entry.shadowOf,
    entry.labels,
    entry.clientRequestId,
    attemptMs === null ? null : attemptMs.map(micros),
    retryAfterSeconds === null ? null : finite(retryAfterSeconds),
    entry.priceVersion,
  ])
}

/** Throws an Error naming the field that is damaged, never its value. */
export function readEntry(text: string): LedgerEntry {
  const list = parseJson(text)
  if (!Array.isArray(list)) throw new Error('not a JSON array')
  const values: readonly unknown[] = list
  if (values[0] !== VERSION && values[0] !== WITHOUT_EXPLANATION) {
    throw new Error(`field 'v' is not ${VERSION}`)
  }
  return checkFields(
    entrySchema,
    Object.fromEntries(FIELDS.map((name, at) => [name, values[at + 1]])),
  )
}

/** Whether it is the name of an upstream's format. */
export function isDialect(name: string): name is z.output<typeof dialectSchema> {
  return dialectSchema.safeParse(name).success
}

/** Whether it is the name of a source. */
export function isSource(name: string): name is z.output<typeof sourceSchema> {
  return sourceSchema.safeParse(name).success
}

/** Members without a number are absent. */
function named<Name extends string>(
  names: readonly Name[],
  values: readonly (number | null)[],
): { [Each in Name]?: number } {
  const found: { [Each in Name]?: number } = {}
  names.forEach((name, at) => {
    const value = values[at] ?? null
    if (value !== null) found[name] = value
  })
  return found
}

/** Unknown numbers are null; at the end they are left out. */
function listed(numbers: readonly (number | undefined)[]): readonly (number | undefined)[] {
  return numbers.slice(0, numbers.findLastIndex((each) => each !== undefined) + 1)
}

function micros(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : Math.round(finite(ms) * 1_000)
}

function finite(value: number): number {
  return Number.isFinite(value) ? value : 0
}
