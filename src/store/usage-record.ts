/**
 * How a row of the ledger is written: a compact JSON array with a version first, `[1,…]`.
 * Knows no engine, so that every engine keeps the same text and refuses the same damage.
 */
import type { Usage } from '../chat/usage.js'
import { putAscii, putNumber, putQuoted } from '../wire/json-bytes.js'
import type { RowHops, UsageRow } from '../ledger/row.js'

/** The version that this code writes; `read-usage-record.ts` reads it. */
export const VERSION = 2

/** Characters that are not of texts: digits, commas, brackets, quotes. */
const MOST_BESIDE = 1_024
let scratch = Buffer.allocUnsafeSlow(16 * 1024)

/** The text of a row; never a line break in it. Put together as bytes: each request writes one. */
export function writeRow(row: UsageRow): string {
  const { requestId, accountId, keyId, modelAsked, modelAnswered, model, upstream, finish } = row
  const losses = row.losses.length === 0 ? '' : JSON.stringify(row.losses)
  const characters =
    requestId.length +
    accountId.length +
    keyId.length +
    lengthOf(modelAsked) +
    model.length +
    lengthOf(modelAnswered) +
    lengthOf(upstream) +
    lengthOf(finish) +
    losses.length +
    explainedLength(row)
  const most = MOST_BESIDE + 6 * characters
  if (most > scratch.length) scratch = Buffer.allocUnsafeSlow(2 * most)
  const bytes = scratch
  let at = putAscii(bytes, 0, BEGIN)
  at = putQuoted(bytes, at, requestId)
  at = numberBehind(bytes, at, row.atMs)
  at = numberBehind(bytes, at, micros(row.durationMs))
  at = textBehind(bytes, at, accountId)
  at = textBehind(bytes, at, keyId)
  at = putModels(bytes, at, row)
  at = numberBehind(bytes, at, row.attempts)
  at = numberBehind(bytes, at, row.stream ? 1 : 0)
  at = numberBehind(bytes, at, row.status)
  at = textBehind(bytes, at, row.outcome)
  at = textBehind(bytes, at, finish)
  at = putCounts(bytes, at, row.usage)
  at = textBehind(bytes, at, row.source)
  at = numberBehind(bytes, at, row.costNanoUsd)
  at = numberBehind(bytes, at, row.tokensAfterDisconnect)
  bytes[at] = COMMA
  at = losses === '' ? putAscii(bytes, at + 1, '[]') : at + 1 + bytes.write(losses, at + 1)
  at = numberBehind(bytes, at, row.generation)
  at = putStages(bytes, at, row.hops)
  at = putExplanation(bytes, at, row)
  bytes[at] = CLOSE
  return bytes.toString('utf8', 0, at + 1)
}

function explainedLength(row: UsageRow): number {
  return (
    lengthOf(row.ingress) +
    lengthOf(row.errorMessage) +
    lengthOf(row.limit) +
    lengthOf(row.upstreamRequestId) +
    lengthOf(row.attempted) +
    lengthOf(row.shadowOf) +
    lengthOf(row.labels) +
    lengthOf(row.clientRequestId)
  )
}

/** The members from `ingress` on, each behind a comma. */
function putExplanation(bytes: Buffer, from: number, row: UsageRow): number {
  let at = textBehind(bytes, from, row.ingress)
  at = textBehind(bytes, at, row.errorMessage)
  at = textBehind(bytes, at, row.limit)
  at = numberBehind(bytes, at, row.upstreamStatus)
  at = textBehind(bytes, at, row.upstreamRequestId)
  at = textBehind(bytes, at, row.attempted)
  at = textBehind(bytes, at, row.shadowOf)
  at = textBehind(bytes, at, row.labels)
  return textBehind(bytes, at, row.clientRequestId)
}

/** What rows of one model have in common: kept as bytes, which cost a third of what it takes to write them. */
interface Models extends Pick<UsageRow, 'modelAnswered' | 'model' | 'upstream' | 'dialect'> {
  readonly bytes: Buffer
}

/** By what was asked for; so many are kept, then they are gathered anew. */
const models = new Map<string, Models>()
const MOST_MODELS = 1_024
/** A text of them that is longer is one of its kind. */
const MOST_MODEL_BYTES = 512

/** Which model was asked for, which one answered, and who was asked, each behind a comma. */
function putModels(bytes: Buffer, from: number, row: UsageRow): number {
  const { modelAsked, modelAnswered, model, upstream, dialect } = row
  const known = modelAsked === null ? undefined : models.get(modelAsked)
  if (
    known !== undefined &&
    known.modelAnswered === modelAnswered &&
    known.model === model &&
    known.upstream === upstream &&
    known.dialect === dialect
  ) {
    bytes.set(known.bytes, from)
    return from + known.bytes.length
  }
  let at = textBehind(bytes, from, modelAsked)
  at = textBehind(bytes, at, modelAnswered)
  at = textBehind(bytes, at, model)
  at = textBehind(bytes, at, upstream)
  at = textBehind(bytes, at, dialect)
  if (modelAsked === null || at - from > MOST_MODEL_BYTES) return at
  if (models.size === MOST_MODELS) models.clear()
  const copy = Buffer.from(bytes.subarray(from, at))
  models.set(modelAsked, { modelAnswered, model, upstream, dialect, bytes: copy })
  return at
}

const BEGIN = `[${VERSION},`
const [COMMA, OPEN, CLOSE, LAST_OF_NULL] = [0x2c, 0x5b, 0x5d, 0x6c]

function lengthOf(text: string | null): number {
  return text === null ? 0 : text.length
}

/** Behind a comma. */
function textBehind(bytes: Buffer, at: number, text: string | null): number {
  bytes[at] = COMMA
  return text === null ? putAscii(bytes, at + 1, 'null') : putQuoted(bytes, at + 1, text)
}

/** Behind a comma. */
function numberBehind(bytes: Buffer, at: number, value: number | null | undefined): number {
  bytes[at] = COMMA
  return value === null || value === undefined
    ? putAscii(bytes, at + 1, 'null')
    : putNumber(bytes, at + 1, value)
}

/** Times are written as whole microseconds: fewer digits, and quicker to write than a fraction. */
function micros(ms: number): number {
  return Math.round(ms * 1_000)
}

/** Counts in the order of `COUNTS`; what nobody told is null, and the last one, which is rare, left out. */
function putCounts(bytes: Buffer, from: number, usage: Usage): number {
  let at = numberBehind(bytes, from + 1, usage.input)
  at = numberBehind(bytes, at, usage.output)
  at = numberBehind(bytes, at, usage.cacheRead)
  at = numberBehind(bytes, at, usage.cacheWrite)
  at = numberBehind(bytes, at, usage.reasoning)
  if (usage.cacheWrite1h !== undefined) at = numberBehind(bytes, at, usage.cacheWrite1h)
  return bracketed(bytes, from, at)
}

/** Times in the order of `STAGES`. Stages that were not reached are null; at the end they are left out. */
function putStages(bytes: Buffer, from: number, hops: RowHops): number {
  let at = timeBehind(bytes, from + 1, hops.authenticate)
  at = timeBehind(bytes, at, hops.receive)
  at = timeBehind(bytes, at, hops.route)
  at = timeBehind(bytes, at, hops.admit)
  at = timeBehind(bytes, at, hops.connect)
  at = timeBehind(bytes, at, hops.firstByte)
  at = timeBehind(bytes, at, hops.translate)
  at = timeBehind(bytes, at, hops.relay)
  at = timeBehind(bytes, at, hops.firstContent)
  at = timeBehind(bytes, at, hops.overhead)
  while (at > from + 1 && bytes[at - 1] === LAST_OF_NULL) at -= ',null'.length
  return bracketed(bytes, from, at)
}

function timeBehind(bytes: Buffer, at: number, ms: number | undefined): number {
  return numberBehind(bytes, at, ms === undefined ? null : micros(ms))
}

/** Makes a list, behind a comma, of what was written from the next place on, each behind a comma of its own. */
function bracketed(bytes: Buffer, from: number, at: number): number {
  const end = Math.max(at, from + 2)
  bytes[from] = COMMA
  bytes[from + 1] = OPEN
  bytes[end] = CLOSE
  return end + 1
}
