/** Counts of a reply: its tokens, and calls that the provider bills by number. */
import { addCalls, type CallCounts } from './hosted-tools.js'

/**
 * Token counts as the upstream reported them; `undefined` means "not reported", never zero.
 * The counts follow OpenAI's inclusion rules: cache reads and writes are part of `input`,
 * reasoning is part of `output`.
 */
export interface Usage {
  /** Prompt tokens, cache reads and writes included. */
  input?: number
  /** Completion tokens, reasoning included. */
  output?: number
  /** Prompt tokens read from the provider's cache. */
  cacheRead?: number
  /** Prompt tokens written to the provider's cache. */
  cacheWrite?: number
  /** The part of `cacheWrite` that is cached for an hour. */
  cacheWrite1h?: number
  /** Completion tokens spent on reasoning. */
  reasoning?: number
  /** Prompt tokens by kind, if the prompt is not text alone. */
  inputText?: number
  inputImage?: number
  inputAudio?: number
  inputVideo?: number
  /** The parts of `inputAudio` and `inputImage` that were read from the provider's cache. */
  cachedAudio?: number
  cachedImage?: number
  /** Completion tokens by kind, if the completion is not text alone. */
  outputText?: number
  outputImage?: number
  outputAudio?: number
  /** Completion tokens of a kind that has no price, such as video. */
  outputOther?: number
  /** Prompt and completion tokens together, if the upstream counts nothing else (MiniMax). */
  total?: number
  /** Calls of tools that the provider ran; absent: none. */
  calls?: CallCounts
  /** Counts of other units than tokens and calls; absent: none was counted. */
  units?: UnitCounts
  /** Quality and size of the pictures of a reply, `high/1536x1024`; what is not known is empty. */
  pictures?: string
  /** Tokens of other models that tools of the provider used; the counts above leave them out. */
  elsewhere?: readonly UsageElsewhere[]
}

/** Units that are not tokens, by their names in ledger entries and metrics. */
export const UNITS = ['audio_second', 'character', 'document', 'image', 'line', 'page', 'search'] as const
export type Unit = (typeof UNITS)[number]
export type UnitCounts = Readonly<Partial<Record<Unit, number>>>

/** The tokens of calls of a tool that runs a model of its own. */
export interface UsageElsewhere {
  /** The tool, as in `calls`. */
  readonly tool: string
  readonly model: string
  readonly count: number
  readonly usage: Usage
}

/** A count of tokens. */
export type TokenKind = Exclude<keyof Usage, 'total' | 'calls' | 'units' | 'pictures' | 'elsewhere'>

/** Later counts replace earlier ones field by field, because usage within one reply is cumulative. */
export function mergeUsage(earlier: Usage, later: Usage): Usage {
  // Most replies report all counts each time. Two spreads would cost a microsecond.
  for (const name in earlier) if (!(name in later)) return { ...earlier, ...later }
  return later
}

const COUNTS: readonly TokenKind[] = [
  'input',
  'output',
  'cacheRead',
  'cacheWrite',
  'cacheWrite1h',
  'reasoning',
  'inputText',
  'inputImage',
  'inputAudio',
  'inputVideo',
  'cachedAudio',
  'cachedImage',
  'outputText',
  'outputImage',
  'outputAudio',
  'outputOther',
]

/** The sum of two usages; a count that only one of them has is taken from it. */
export function addUsage(one: Usage, other: Usage): Usage {
  const sum: Usage = { ...one }
  for (const name of COUNTS) {
    const count = other[name]
    if (count !== undefined) sum[name] = (sum[name] ?? 0) + count
  }
  if (other.calls !== undefined) sum.calls = addCalls(sum.calls ?? {}, other.calls)
  if (other.units !== undefined) sum.units = addUnits(sum.units ?? {}, other.units)
  if (other.pictures !== undefined) sum.pictures = other.pictures
  if (other.elsewhere !== undefined) sum.elsewhere = [...(sum.elsewhere ?? []), ...other.elsewhere]
  return sum
}

/** The sum of both; a unit that only one of them has is taken from it. */
export function addUnits(one: UnitCounts, other: UnitCounts): UnitCounts {
  const sum: Partial<Record<Unit, number>> = { ...one }
  for (const unit of UNITS) {
    const count = other[unit]
    if (count !== undefined) sum[unit] = (sum[unit] ?? 0) + count
  }
  return sum
}

/** The kinds of tokens that each choice adds; the choices of a reply have the prompt in common. */
const OF_EACH_CHOICE: ReadonlySet<TokenKind> = new Set<TokenKind>([
  'output',
  'reasoning',
  'outputText',
  'outputImage',
  'outputAudio',
  'outputOther',
])

/** The usage of a reply whose choices were counted apart. */
export function usageOfChoices(choices: readonly Usage[]): Usage {
  const whole: Usage = {}
  for (const choice of choices) {
    for (const name of COUNTS) {
      const count = choice[name]
      if (count === undefined) continue
      const before = whole[name] ?? 0
      whole[name] = OF_EACH_CHOICE.has(name) ? before + count : Math.max(before, count)
    }
    if (choice.calls !== undefined) whole.calls = addCalls(whole.calls ?? {}, choice.calls)
  }
  return whole
}

/** Prompt and completion tokens together; `undefined` if neither was reported. */
export function totalTokens(usage: Usage): number | undefined {
  if (usage.input === undefined && usage.output === undefined) return undefined
  return (usage.input ?? 0) + (usage.output ?? 0)
}

/** A provider's token count as a safe integer ≥ 0; `undefined` for any other value. */
export function tokenCount(value: unknown): number | undefined {
  if (typeof value !== 'number' || !Number.isFinite(value) || value < 0) return undefined
  return Math.min(Math.trunc(value), Number.MAX_SAFE_INTEGER)
}

/** Limit for a plausible count: 50 times the largest context window. */
const MAX_TOKENS = 100_000_000
/** Limit for a plausible number of units of one kind. */
const MAX_UNITS = 10_000_000
/** Limit for a plausible number of calls of one tool. */
const MAX_CALLS = 100_000

/** Whether a count is larger than any request can have. */
export function isImplausible({
  input = 0,
  output = 0,
  total = 0,
  cacheRead = 0,
  cacheWrite = 0,
  calls,
  units = {},
  elsewhere = [],
}: Usage): boolean {
  if (elsewhere.some(({ usage }) => isImplausible(usage))) return true
  if (Object.values(units).some((count) => count > MAX_UNITS)) return true
  if (calls !== undefined && Object.values(calls).some((count) => count > MAX_CALLS)) return true
  return Math.max(input, output, total, cacheRead, cacheWrite) > MAX_TOKENS
}

/** Whether the upstream reported a plausible number of output tokens. */
export function reportsOutput(usage: Usage): boolean {
  return (usage.output ?? 0) > 0 && !isImplausible(usage)
}
