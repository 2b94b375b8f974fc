/**
 * What is taken of a subject's limits, as the embedded engine writes it down: one record of numbers with all
 * kinds, so that a request under five limits of one key reads and writes once.
 * Knows no table and no arithmetic of limits.
 */
import type { BudgetSpent, Demand } from './ledger.js'
import { damaged } from './failure.js'
import { MOST_NAMES } from './lmdb-ledger-tables.js'

/** What a reservation holds of a subject, until it ends. */
export type Hold =
  | readonly [kind: 'tokens', subject: string, cost: number, perMinute: number]
  | readonly [kind: 'concurrent', subject: string]
  | readonly [kind: 'usd_day' | 'usd_month', subject: string, cost: number, period: number]

/** The record's places; all are doubles. */
export const PLACE_OF = {
  version: 0,
  requests: 1,
  requestsAt: 2,
  tokens: 3,
  tokensAt: 4,
  places: 5,
  day: 6,
  daySpent: 7,
  month: 8,
  monthSpent: 9,
  // Of what was spent, what requests that run have reserved.
  dayReserved: 10,
  monthReserved: 11,
} as const
/** How many numbers a record has. */
export const LIMIT_NUMBERS = 12
const VERSION = 2
/** As versions before wrote it, which did not tell what is reserved. */
export const FORMER_NUMBERS = 10
const FORMER_VERSION = 1

/** The record of a subject; one that is not there has nothing taken. Throws what is damaged. */
export function readLimits(bytes: Buffer | undefined, name: string): Float64Array {
  const record = new Float64Array(LIMIT_NUMBERS)
  record[PLACE_OF.version] = VERSION
  if (bytes === undefined) return record
  const isFormer = bytes.length === FORMER_NUMBERS * record.BYTES_PER_ELEMENT
  if (bytes.length !== record.byteLength && !isFormer) {
    throw damaged(`the limits of '${name}'`, 'its length is wrong')
  }
  new Uint8Array(record.buffer).set(bytes)
  if (record[PLACE_OF.version] !== (isFormer ? FORMER_VERSION : VERSION)) {
    throw damaged(`the limits of '${name}'`, `its version is not ${VERSION}`)
  }
  record[PLACE_OF.version] = VERSION
  return record
}

/** Makes `record` what so many of the numbers say, from there on. */
export function copyLimits(
  record: Float64Array,
  numbers: Float64Array,
  from: number,
  count: number,
): void {
  for (let at = 0; at < LIMIT_NUMBERS; at += 1) {
    record[at] = at < count ? (numbers[from + at] ?? 0) : 0
  }
  record[PLACE_OF.version] = VERSION
}

/** The bytes of a record; good until the next. */
export function writeLimits(record: Float64Array): Buffer {
  scratch.set(record)
  return scratchBytes
}

const scratch = new Float64Array(LIMIT_NUMBERS)
const scratchBytes = Buffer.from(scratch.buffer)

/** An account's own subjects stand apart from everybody else's; a shared one is everybody's. */
export function subjectName(
  accountId: string,
  { subject, shared }: Pick<Demand, 'subject' | 'shared'>,
): string {
  const name = shared ? `:${subject}` : `${accountId.length}:${accountId}:${subject}`
  if (name.length > MOST_NAMES)
    throw new Error(`a limit's subject is over ${MOST_NAMES} characters`)
  return name
}

/** What the record says was spent, by the name that `subjectName` gave it. */
export function spentOf(name: string, bytes: Buffer): BudgetSpent[] {
  const record = readLimits(bytes, name)
  const colon = name.indexOf(':')
  const end = colon + 1 + Number(name.slice(0, colon))
  const isShared = colon === 0
  const accountId = isShared ? null : name.slice(colon + 1, end)
  const subject = isShared ? name.slice(1) : name.slice(end + 1)
  const of = (kind: BudgetSpent['kind'], at: number): BudgetSpent => ({
    accountId,
    kind,
    subject,
    period: record[at] ?? 0,
    nanoUsd: record[at + 1] ?? 0,
  })
  return [of('usd_day', PLACE_OF.day), of('usd_month', PLACE_OF.month)].filter(
    ({ nanoUsd }) => nanoUsd > 0,
  )
}
