/**
 * How a row of the ledger is written down: a compact JSON array with a version first, `[1,…]`.
 * Knows no engine, so that every engine keeps the same text and refuses the same damage.
 */
import type { Usage } from '../chat/usage.js'
import { ERRORS } from '../errors.js'
import { putAscii, putNumber, putQuoted } from '../wire/json-bytes.js'
import { UNEXPLAINED, type RowHops, type RowOutcome, type UsageRow, type UsageSource } from '../ledger/row.js'

/** The version that this code writes. It reads version 1 too, which ends with `hops`, and no other. */
const VERSION = 2
const WITHOUT_EXPLANATION = 1

type DialectName = NonNullable<UsageRow['dialect']>

/** The places of the array, in order; a new field goes to the end and needs a new version. */
const FIELDS = [
  'v',
  'requestId',
  'atMs',
  'durationMs',
  'accountId',
  'keyId',
  'modelAsked',
  'modelAnswered',
  'model',
  'upstream',
  'dialect',
  'attempts',
  'stream',
  'status',
  'outcome',
  'finish',
  'usage',
  'source',
  'costNanoUsd',
  'tokensAfterDisconnect',
  'losses',
  'generation',
  'hops',
  'ingress',
  'errorMessage',
  'limit',
  'upstreamStatus',
  'upstreamRequestId',
  'attempted',
  'shadowOf',
  'labels',
  'clientRequestId',
] as const
type Field = (typeof FIELDS)[number]
const PLACE = Object.fromEntries(FIELDS.map((name, at) => [name, at])) as Record<Field, number>

/** In order; a new one goes to the end, where rows of before have none. */
const COUNTS = ['input', 'output', 'cacheRead', 'cacheWrite', 'reasoning', 'cacheWrite1h'] as const
const STAGES = [
  'authenticate',
  'receive',
  'route',
  'admit',
  'connect',
  'firstByte',
  'translate',
  'relay',
  'firstContent',
  'overhead',
] as const
const DIALECTS: readonly string[] = ['openai-chat', 'openai-responses', 'anthropic', 'gemini']
const SOURCES: readonly string[] = ['reported', 'estimated', 'none']

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

/** Throws an Error naming the field that is damaged, never its value. */
export function readRow(text: string): UsageRow {
  const from = new Fields(text)
  return {
    requestId: from.string('requestId'),
    atMs: from.number('atMs'),
    durationMs: from.number('durationMs') / 1_000,
    accountId: from.string('accountId'),
    keyId: from.string('keyId'),
    modelAsked: from.stringOrNull('modelAsked'),
    modelAnswered: from.stringOrNull('modelAnswered'),
    model: from.string('model'),
    upstream: from.stringOrNull('upstream'),
    dialect: from.dialect(),
    attempts: from.number('attempts'),
    stream: from.flag('stream'),
    status: from.number('status'),
    outcome: from.outcome(),
    finish: from.stringOrNull('finish'),
    usage: from.usage(),
    source: from.source(),
    costNanoUsd: from.numberOrNull('costNanoUsd'),
    tokensAfterDisconnect: from.number('tokensAfterDisconnect'),
    losses: from.strings('losses'),
    generation: from.number('generation'),
    hops: from.hops(),
    ...(from.isExplained ? explanationIn(from) : UNEXPLAINED),
  }
}

function explanationIn(from: Fields): Pick<UsageRow, keyof typeof UNEXPLAINED> {
  return {
    ingress: from.stringOrNull('ingress'),
    errorMessage: from.stringOrNull('errorMessage'),
    limit: from.stringOrNull('limit'),
    upstreamStatus: from.numberOrNull('upstreamStatus'),
    upstreamRequestId: from.stringOrNull('upstreamRequestId'),
    attempted: from.stringOrNull('attempted'),
    shadowOf: from.stringOrNull('shadowOf'),
    labels: from.stringOrNull('labels'),
    clientRequestId: from.stringOrNull('clientRequestId'),
  }
}

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

/** The array of a row, asked field by field. */
class Fields {
  /** Has the members from `ingress` on. */
  readonly isExplained: boolean
  private readonly values: readonly unknown[]

  constructor(text: string) {
    const value = parsed(text)
    if (!Array.isArray(value)) throw new Error('not a JSON array')
    this.values = value
    this.isExplained = this.values[0] === VERSION
    if (!this.isExplained && this.values[0] !== WITHOUT_EXPLANATION) {
      throw new Error(`field 'v' is not ${VERSION}`)
    }
  }

  string(name: Field): string {
    const value = this.values[PLACE[name]]
    if (typeof value !== 'string') throw new Error(`field '${name}' is not a string`)
    return value
  }

  stringOrNull(name: Field): string | null {
    return this.values[PLACE[name]] === null ? null : this.string(name)
  }

  number(name: Field): number {
    const value = this.values[PLACE[name]]
    if (typeof value !== 'number') throw new Error(`field '${name}' is not a number`)
    return value
  }

  numberOrNull(name: Field): number | null {
    return this.values[PLACE[name]] === null ? null : this.number(name)
  }

  flag(name: Field): boolean {
    const value = this.values[PLACE[name]]
    if (value !== 0 && value !== 1) throw new Error(`field '${name}' is not 0 or 1`)
    return value === 1
  }

  list(name: Field): readonly unknown[] {
    const value = this.values[PLACE[name]]
    if (!Array.isArray(value)) throw new Error(`field '${name}' is not a list`)
    return value
  }

  strings(name: Field): string[] {
    return this.list(name).map((each) => {
      if (typeof each !== 'string') throw new Error(`field '${name}' is not a list of strings`)
      return each
    })
  }

  usage(): Usage {
    const usage: Usage = {}
    this.list('usage').forEach((count, at) => {
      const name = COUNTS[at]
      if (name === undefined || count === null) return
      if (typeof count !== 'number') throw new Error("field 'usage' is not a list of numbers")
      usage[name] = count
    })
    return usage
  }

  hops(): RowHops {
    const hops: { -readonly [Stage in keyof RowHops]: number } = {}
    this.list('hops').forEach((time, at) => {
      const stage = STAGES[at]
      if (stage === undefined || time === null) return
      if (typeof time !== 'number') throw new Error("field 'hops' is not a list of numbers")
      hops[stage] = time / 1_000
    })
    return hops
  }

  dialect(): DialectName | null {
    const value = this.stringOrNull('dialect')
    if (value === null || isDialect(value)) return value
    throw new Error("field 'dialect' is not a dialect's name")
  }

  source(): UsageSource {
    const value = this.string('source')
    if (isSource(value)) return value
    throw new Error("field 'source' is not a source's name")
  }

  outcome(): RowOutcome {
    const value = this.string('outcome')
    if (isOutcome(value)) return value
    throw new Error("field 'outcome' is not an outcome's name")
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // The parser's own message quotes the text.
    throw new Error('not JSON')
  }
}

/** Whether it is the name of a dialect. */
export function isDialect(value: string): value is DialectName {
  return DIALECTS.includes(value)
}

/** Whether it is the name of a source. */
export function isSource(value: string): value is UsageSource {
  return SOURCES.includes(value)
}

/** Whether it is the name of an outcome. */
export function isOutcome(value: string): value is RowOutcome {
  return value === 'ok' || value === 'lost' || Object.hasOwn(ERRORS, value)
}
