/**
 * Reads the text of a ledger entry, as `write-entry.ts` writes it.
 */
import type { Usage } from '../../chat/usage.js'
import { isOutcome } from '../../error-cause.js'
import {
  UNEXPLAINED,
  type EntryHops,
  type EntryOutcome,
  type LedgerEntry,
  type UsageSource,
} from '../../ledger/entry.js'
import { VERSION } from './write-entry.js'

/** The version before, which ends with `hops`; of those, and no other, entries are read. */
const WITHOUT_EXPLANATION = 1

type DialectName = NonNullable<LedgerEntry['dialect']>

/** The places of the array, in order; a new field goes to the end, and is absent from the entries before. */
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
  // Entries of earlier versions of the program end here.
  'attemptMs',
  'retryAfterSeconds',
  'priceVersion',
] as const
type Field = (typeof FIELDS)[number]
const PLACE = Object.fromEntries(FIELDS.map((name, at) => [name, at])) as Record<Field, number>

/** In order; a new one goes to the end, where entries of before have none. */
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
const DIALECTS: readonly string[] = ['openai-chat', 'openai-responses', 'anthropic', 'gemini']
const SOURCES: readonly string[] = ['reported', 'estimated', 'none']

/** Throws an Error naming the field that is damaged, never its value. */
export function readEntry(text: string): LedgerEntry {
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

function explanationIn(from: Fields): Pick<LedgerEntry, keyof typeof UNEXPLAINED> {
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
    attemptMs: from.timesOrNull('attemptMs'),
    retryAfterSeconds: from.has('retryAfterSeconds')
      ? from.numberOrNull('retryAfterSeconds')
      : null,
    priceVersion: from.has('priceVersion') ? from.stringOrNull('priceVersion') : null,
  }
}

/** The array of an entry, read field by field. */
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

  has(name: Field): boolean {
    return this.values[PLACE[name]] !== undefined
  }

  /** Written in whole microseconds. */
  timesOrNull(name: Field): number[] | null {
    if (!this.has(name) || this.values[PLACE[name]] === null) return null
    return this.list(name).map((time) => {
      if (typeof time !== 'number') throw new Error(`field '${name}' is not a list of numbers`)
      return time / 1_000
    })
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

  hops(): EntryHops {
    const hops: { -readonly [Stage in keyof EntryHops]: number } = {}
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

  outcome(): EntryOutcome {
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
