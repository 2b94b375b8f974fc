/**
 * How a row of the ledger is written down: a compact JSON array with a version first, `[1,…]`.
 * Knows no engine, so that every engine keeps the same text and refuses the same damage.
 */
import type { Usage } from '../chat/usage.js'
import { ERRORS } from '../errors.js'
import { quote } from '../wire/quote.js'
import type { RowHops, RowOutcome, UsageRow, UsageSource } from '../ledger/row.js'

/** The version that this code writes. It reads no other: a migration is a decision, not a guess. */
const VERSION = 1

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

/** The text of a row; never a line break in it. Joined by hand: each request writes one. */
export function writeRow(row: UsageRow): string {
  const { losses, costNanoUsd, modelAsked, modelAnswered, model } = row
  const asked = quoted(modelAsked)
  // They are one name most of the time.
  const answered = modelAnswered === modelAsked ? asked : quoted(modelAnswered)
  const counted = model === modelAsked ? asked : quoted(model)
  return (
    `[${VERSION},${quoted(row.requestId)},${epoch(row.atMs)},${micros(row.durationMs)},` +
    `${quoted(row.accountId)},${quoted(row.keyId)},${asked},${answered},${counted},` +
    `${quoted(row.upstream)},${plain(row.dialect)},${finite(row.attempts)},${row.stream ? 1 : 0},` +
    `${finite(row.status)},${plain(row.outcome)},${quoted(row.finish)},` +
    `[${countsOf(row.usage)}],${plain(row.source)},` +
    `${costNanoUsd === null ? 'null' : finite(costNanoUsd)},${finite(row.tokensAfterDisconnect)},` +
    `${losses.length === 0 ? '[]' : JSON.stringify(losses)},${finite(row.generation)},` +
    `[${stagesOf(row.hops)}]]`
  )
}

/** The request id in a row's text, without reading the rest; null where only reading can tell. */
export function requestIdIn(text: string): string | null {
  return LEADING_ID.exec(text)?.[1] ?? null
}

const LEADING_ID = /^\[\d+,"([!#-[\]-~]+)",/

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
  }
}

function quoted(text: string | null): string {
  return text === null ? 'null' : quote(text)
}

/** A name of ours, which needs no escape. */
function plain(name: DialectName | RowOutcome | UsageSource | null): string {
  return name === null ? 'null' : `"${name}"`
}

/** A number that is none would be written as null, and the row could never be read again. */
function finite(value: number): number {
  return Number.isFinite(value) ? value : 0
}

/** Many rows a millisecond have the same, and a number beyond 2^31 is slow to write. */
function epoch(atMs: number): string {
  if (atMs !== lastEpoch.ms) lastEpoch = { ms: atMs, text: String(finite(atMs)) }
  return lastEpoch.text
}

let lastEpoch = { ms: 0, text: '0' }

/** Times are written as whole microseconds: fewer digits, and quicker to write than a fraction. */
function micros(ms: number): number {
  return finite(Math.round(ms * 1_000))
}

/** Counts in the order of `COUNTS`; what nobody told is null, and the last one, which is rare, left out. */
function countsOf({
  input,
  output,
  cacheRead,
  cacheWrite,
  reasoning,
  cacheWrite1h,
}: Usage): string {
  const last = cacheWrite1h === undefined ? '' : `,${finite(cacheWrite1h)}`
  return (
    `${count(input)},${count(output)},${count(cacheRead)},${count(cacheWrite)},` +
    `${count(reasoning)}${last}`
  )
}

function count(value: number | undefined): number | null {
  return value === undefined ? null : finite(value)
}

/** Times in the order of `STAGES`. Stages that were not reached are null; at the end they are left out. */
function stagesOf(hops: RowHops): string {
  const { authenticate, receive, route, admit, connect, firstByte } = hops
  const { translate, relay, firstContent, overhead } = hops
  const times =
    `${time(authenticate)},${time(receive)},${time(route)},${time(admit)},${time(connect)},` +
    `${time(firstByte)},${time(translate)},${time(relay)},${time(firstContent)},${time(overhead)}`
  return overhead === undefined ? times.replace(UNREACHED, '') : times
}

const UNREACHED = /(?:^|,)null(?:,null)*$/

function time(ms: number | undefined): number | null {
  return ms === undefined ? null : micros(ms)
}

/** The array of a row, asked field by field. */
class Fields {
  private readonly values: readonly unknown[]

  constructor(text: string) {
    const value = parsed(text)
    if (!Array.isArray(value)) throw new Error('not a JSON array')
    this.values = value
    if (this.values[0] !== VERSION) throw new Error(`field 'v' is not ${VERSION}`)
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

function isDialect(value: string): value is DialectName {
  return DIALECTS.includes(value)
}

function isSource(value: string): value is UsageSource {
  return SOURCES.includes(value)
}

function isOutcome(value: string): value is RowOutcome {
  return value === 'ok' || value === 'lost' || Object.hasOwn(ERRORS, value)
}
