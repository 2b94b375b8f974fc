/**
 * The text of a ledger entry: a compact JSON array that begins with its version, `[2,…]`. The spool and every
 * engine store the same text.
 */
import { entryHopsSchema, entrySchema, parseEntry, type LedgerEntry } from '../../ledger/entry.js'
import { parsed, parseJson } from './parse-record.js'

const VERSION = 2
/** The earlier version, which ends with `hops`. */
const WITHOUT_EXPLANATION = 1

/** The counts of `usage` in the order of the text; a new one goes to the end. */
const COUNTS = ['input', 'output', 'cacheRead', 'cacheWrite', 'reasoning', 'cacheWrite1h'] as const
/** In the order of the text; a new one goes to the end. */
const DURATIONS = [
  ...entryHopsSchema.keyof().exclude(['guard']).options,
  ...entryHopsSchema.keyof().extract(['guard']).options,
]

/** A field of an entry. */
export type EntryField = keyof typeof entrySchema.shape

/** The fields in the order of the text, in which the usage precedes its source. */
const FIELDS: readonly EntryField[] = entrySchema.keyof().options.map((name) => {
  if (name === 'source') return 'usage'
  return name === 'usage' ? 'source' : name
})

/** The text of an entry, without a line break. A number that is not finite becomes 0. */
export function writeEntry(entry: LedgerEntry): string {
  const values = [VERSION, ...FIELDS.map((name) => packed(name, entry))]
  const last = values.findLastIndex((value) => value !== null && value !== undefined)
  return JSON.stringify(values.slice(0, last + 1))
}

/**
 * The value of a field as JSON has it. Durations are in whole microseconds, which have fewer digits than
 * fractions of a millisecond.
 */
export function packed(name: EntryField, entry: LedgerEntry): unknown {
  switch (name) {
    case 'durationMs':
      return micros(entry.durationMs)
    case 'stream':
      return entry.stream ? 1 : 0
    case 'usage':
      return listed(COUNTS.map((count) => entry.usage[count]))
    case 'hops':
      return listed(DURATIONS.map((stage) => micros(entry.hops[stage])))
    case 'attemptMs':
      return entry.attemptMs?.map(micros) ?? null
    default: {
      const value = entry[name]
      return typeof value === 'number' ? finite(value) : value
    }
  }
}

/** Throws an Error naming the field that is damaged, never its value. */
export function readEntry(text: string): LedgerEntry {
  const list = parseJson(text)
  if (!Array.isArray(list)) throw new Error('not a JSON array')
  const values: readonly unknown[] = list
  if (values[0] !== VERSION && values[0] !== WITHOUT_EXPLANATION) {
    throw new Error(`field 'v' is not ${VERSION}`)
  }
  return entryOf(Object.fromEntries(FIELDS.map((name, at) => [name, unpacked(name, values[at + 1])])))
}

/** The entry with these members. Throws an Error naming the one that is damaged, never its value. */
export function entryOf(members: Readonly<Partial<Record<EntryField, unknown>>>): LedgerEntry {
  return parsed(parseEntry(members))
}

/** The value of a field for the schema, from its JSON; a value that is damaged is none for it. */
export function unpacked(name: EntryField, value: unknown): unknown {
  switch (name) {
    case 'durationMs':
      return milliseconds(value)
    case 'stream':
      return value === 1 ? true : value === 0 ? false : null
    case 'usage':
      return areNumbers(value) ? named(COUNTS, value) : null
    case 'hops':
      return areNumbers(value) ? named(DURATIONS, value.map(milliseconds)) : null
    case 'attemptMs':
      return areNumbers(value) ? value.map(milliseconds) : value
    default:
      return value
  }
}

function areNumbers(value: unknown): value is readonly (number | null)[] {
  return Array.isArray(value) && value.every((each) => each === null || typeof each === 'number')
}

/** Members without a number are absent. */
function named(names: readonly string[], values: readonly unknown[]): Record<string, unknown> {
  const found = names.map((name, at) => [name, values[at] ?? null] as const)
  return Object.fromEntries(found.filter(([, value]) => value !== null))
}

/** Unknown numbers are null; at the end they are left out. */
function listed(numbers: readonly (number | undefined)[]): readonly (number | undefined)[] {
  return numbers.slice(0, numbers.findLastIndex((each) => each !== undefined) + 1)
}

function micros(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : Math.round(finite(ms) * 1_000)
}

function milliseconds(value: unknown): unknown {
  return typeof value === 'number' ? value / 1_000 : value
}

/** The number; 0 for NaN, which JSON and SQLite write as null. */
export function finite(value: number): number {
  return Number.isFinite(value) ? value : 0
}
