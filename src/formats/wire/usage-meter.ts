/**
 * Reads the token counts of a reply, in every place and under every name that providers use. The only reader
 * of usage: every format, and the endpoints without one, get their counts from here.
 *
 * Sources: the vendors' API references and recorded replies, read 2026-11-20; usage in `choices[0]`:
 * Moonshot, "Chat Completion"; cache writes: DashScope, "Context Cache", and LiteLLM, "Prompt Caching", read
 * 2026-11-29.
 */
import { withCalls, type CallCounts } from '../chat/hosted-tools.js'
import { arrayOf, isObject, numberOf, objectOf, type JsonObject, type JsonValue } from '../../base/json.js'
import { isImplausible, tokenCount, usageOfChoices, type TokenKind, type Usage } from '../chat/usage.js'

/** What a member counts. */
type Count =
  | TokenKind
  /** Prompt tokens that `input` leaves out: results of the provider's tools. */
  | 'toolInput'
  /** Reasoning that `output` leaves out. */
  | 'thoughts'
  /** The parts of `cacheWrite` by how long they are kept. */
  | 'cacheWrite5m'
  | 'total'

/**
 * The members of each count, in snake case; each is also read in camel case. A name that comes earlier is
 * preferred, unless its value is zero.
 */
const NAMES: readonly (readonly [Count, ...string[]])[] = [
  [
    'input',
    'prompt_tokens',
    'input_tokens',
    'prompt_token_count',
    'input_token_count',
    'prompt_eval_count',
    'tokens_evaluated',
    'prompt_n',
  ],
  ['toolInput', 'tool_use_prompt_token_count'],
  [
    'output',
    'completion_tokens',
    'output_tokens',
    'candidates_token_count',
    'response_token_count',
    'output_token_count',
    'eval_count',
    'tokens_predicted',
    'predicted_n',
  ],
  ['thoughts', 'thoughts_token_count'],
  ['reasoning', 'reasoning_tokens', 'thinking_tokens'],
  [
    'cacheRead',
    'cached_tokens',
    'prompt_cache_hit_tokens',
    'num_cached_tokens',
    'cached_content_token_count',
    'cache_read_input_tokens',
    'cache_read_input_token_count',
    'cache_read_tokens',
    'cached_input_tokens',
    'cached_prompt_tokens',
    'precached_prompt_tokens',
    'cache_n',
  ],
  [
    'cacheWrite',
    'cache_write_tokens',
    'cache_creation_tokens',
    'cache_creation_input_tokens',
    'cache_write_input_tokens',
    'cache_write_input_token_count',
  ],
  ['cacheWrite5m', 'ephemeral_5m_input_tokens'],
  ['cacheWrite1h', 'ephemeral_1h_input_tokens'],
  ['total', 'total_tokens', 'total_token_count'],
]

/** Names in snake case, and the same in camel case. */
function inBothCases(...names: readonly string[]): string[] {
  return names.flatMap((name) => [
    name,
    name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase()),
  ])
}

type Part = 'input' | 'output' | 'cache' | 'cached'

/** Objects inside the counts, and the part of the counts to which their members belong. */
const DETAILS: ReadonlyMap<string, Part> = new Map(
  (
    [
      ['prompt_tokens_details', 'input'],
      ['prompt_token_details', 'input'],
      ['input_tokens_details', 'input'],
      ['input_token_details', 'input'],
      ['completion_tokens_details', 'output'],
      ['completion_token_details', 'output'],
      ['output_tokens_details', 'output'],
      ['output_token_details', 'output'],
      ['cached_tokens_details', 'cached'],
      ['cache_creation', 'cache'],
      ['cache_creation_token_details', 'cache'],
    ] as const
  ).flatMap(([name, part]) => inBothCases(name).map((each): [string, Part] => [each, part])),
)

interface Member {
  readonly count: Count
  readonly rank: number
  /** See `PROMPT_ALONE`. */
  readonly isAlone: boolean
}

function memberOf(count: Count, rank = 0, isAlone = false): Member {
  return { count, rank, isAlone }
}

/** Counts by kind of token in the details. Vendors report zero for the kinds of a request with text alone. */
const KINDS: Readonly<Record<Part, ReadonlyMap<string, TokenKind>>> = {
  input: new Map([
    ['text_tokens', 'inputText'],
    ['image_tokens', 'inputImage'],
    ['audio_tokens', 'inputAudio'],
    ['video_tokens', 'inputVideo'],
  ]),
  output: new Map([
    ['text_tokens', 'outputText'],
    ['image_tokens', 'outputImage'],
    ['audio_tokens', 'outputAudio'],
  ]),
  cache: new Map(),
  cached: new Map([
    ['audio_tokens', 'cachedAudio'],
    ['image_tokens', 'cachedImage'],
  ]),
}

const KIND_NAMES: ReadonlySet<string> = new Set(Object.values(KINDS).flatMap((kinds) => [...kinds.keys()]))

/**
 * Names of prompts that leave out the cache if its counts stand beside them (Anthropic, Converse, llama.cpp).
 */
const PROMPT_ALONE: ReadonlySet<string> = new Set(
  inBothCases('input_tokens', 'input_token_count', 'prompt_n'),
)
/** The names of these counts of the cache, and of objects with them. */
const BESIDE_PROMPT: ReadonlySet<string> = new Set(
  inBothCases(
    'cache_creation',
    'cache_creation_input_tokens',
    'cache_read_input_tokens',
    'cache_read_input_token_count',
    'cache_write_input_tokens',
    'cache_write_input_token_count',
    'cache_n',
  ),
)

const HOUR = memberOf('cacheWrite1h')
const CACHES: ReadonlySet<Count> = new Set<Count>(['cacheRead', 'cacheWrite', 'cacheWrite5m', 'cacheWrite1h'])

const MEMBERS: ReadonlyMap<string, Member> = new Map(
  NAMES.flatMap(([count, ...names]) =>
    names.flatMap((name, rank) => {
      const member = memberOf(count, rank, PROMPT_ALONE.has(name))
      return inBothCases(name).map((each): [string, Member] => [each, member])
    }),
  ),
)

const CALLS = new Set(['server_tool_use', 'server_tool_use_details'])
const REQUESTS = '_requests'

/** A count as text, which some proxies send. */
const DIGITS = /^\d{1,15}(?:\.0*)?$/

type Counts = Partial<Record<Count, number>>

/** The objects of a frame that may have the counts. */
const HOLDERS = ['x_groq', 'message', 'delta', 'response']
const CHOICE_HOLDERS = ['delta', 'message']
/** Maximum choices that are counted apart; OpenAI accepts no more. */
const MAX_CHOICES = 128
const USAGES = ['amazon-bedrock-invocationMetrics', 'usage_metadata', 'usageMetadata', 'usage_info', 'usage']
/** Objects with the counts of replies that have none of these: Cohere's, and llama.cpp's. */
const OTHER_USAGES = ['meta', 'timings']
/** The counts of Ollama and llama.cpp that are members of the reply itself. */
const BARE_COUNTS = ['prompt_eval_count', 'eval_count', 'tokens_evaluated', 'tokens_predicted']
/** Objects inside the counts that have them instead: Cohere's, of which the first is what it bills. */
const BILLED = 'billed_units'
const INNER_COUNTS: ReadonlySet<string> = new Set([BILLED, 'tokens'])

/**
 * The counts of one reply. Reports are cumulative: each count of a later one replaces the earlier value. A
 * zero never does, because some proxies send zeros for counts that they do not have.
 */
export class UsageMeter {
  private counts: Counts = {}
  private calls: CallCounts | undefined
  /** The name of the prompt, and those of the cache, are of vendors that count one without the other. */
  private isPromptAlone = false
  private isCacheBeside = false
  /** The kinds of token that were counted apart. */
  private readonly kinds: TokenKind[] = []
  private hasChanged = false
  /** The ranks of the names in the current report. */
  private ranks: Counts = {}
  /** The choice whose counts these are, and the meters of others that have counts of their own. */
  private choice: number | undefined
  private others: Map<number, UsageMeter> | undefined

  /** Reads the counts of a chunk, an event or a whole reply. Returns whether it has any. */
  takeFrame(frame: JsonObject): boolean {
    const hasWhole = this.takeWhole(frame)
    if (hasWhole && this.others !== undefined && countsOutput(frame)) this.others = undefined
    let hasUsage = hasWhole
    for (const choice of arrayOf(frame['choices'])) {
      if (!isObject(choice) || !hasCounts(choice)) continue
      hasUsage = true
      if (!hasWhole || !countsOutput(frame)) this.takeChoice(choice)
    }
    return hasUsage
  }

  /** Reads the counts of all choices together. */
  private takeWhole(frame: JsonObject): boolean {
    let hasUsage = this.takeIn(frame) || this.takeBare(frame)
    for (const name of HOLDERS) hasUsage = this.takeIn(frame[name]) || hasUsage
    return hasUsage
  }

  /** Reads the counts of one choice: Moonshot counts each of several in its own last chunk. */
  private takeChoice(choice: JsonObject): void {
    const index = numberOf(choice['index']) ?? 0
    this.choice ??= index
    const meter = index === this.choice ? this : this.meterOf(index)
    meter.takeIn(choice)
    for (const name of CHOICE_HOLDERS) meter.takeIn(choice[name])
  }

  private meterOf(index: number): UsageMeter {
    this.others ??= new Map()
    let meter = this.others.get(index)
    if (meter !== undefined) return meter
    meter = new UsageMeter()
    if (this.others.size < MAX_CHOICES) this.others.set(index, meter)
    return meter
  }

  /** Reads one object of counts. Returns whether a count has changed. */
  take(usage: JsonObject): boolean {
    this.hasChanged = false
    this.ranks = {}
    this.members(objectOf(usage[BILLED]))
    this.members(usage)
    return this.hasChanged
  }

  /** Clears all counts, for a reply that starts again. */
  reset(): void {
    this.counts = {}
    this.kinds.length = 0
    this.calls = undefined
    this.choice = undefined
    this.others = undefined
  }

  /** The canonical usage so far, without counts that were not reported. */
  usage(): Usage {
    const { counts } = this
    const { cacheRead, cacheWrite1h, total = 0 } = counts
    const cacheWrite = largest(counts.cacheWrite, sum(counts.cacheWrite5m, cacheWrite1h))
    const prompt = this.input(sum(counts.input, counts.toolInput), cacheRead, cacheWrite)
    // No prompt has no tokens: a zero is a count that the upstream does not have.
    const input = prompt === 0 && (counts.output ?? 0) > 0 && total > 0 ? undefined : prompt
    const output = outputOf(counts, input)
    const isRest = input === undefined && output !== undefined && total > output
    const usage: Usage = {}
    set(usage, 'input', isRest ? total - output : prompt)
    set(usage, 'output', output)
    if (total > 0 && !((prompt ?? 0) > 0) && !((output ?? 0) > 0)) usage.total = total
    set(usage, 'cacheRead', cacheRead)
    set(usage, 'cacheWrite', cacheWrite)
    // Omitted if 0, which it nearly always is.
    if (cacheWrite1h !== 0) set(usage, 'cacheWrite1h', cacheWrite1h)
    set(usage, 'reasoning', counts.reasoning ?? counts.thoughts)
    for (const kind of this.kinds) set(usage, kind, counts[kind])
    if (this.calls !== undefined) usage.calls = this.calls
    if (this.others === undefined) return usage
    return usageOfChoices([usage, ...Array.from(this.others.values(), (each) => each.usage())])
  }

  private takeIn(holder: JsonValue | undefined): boolean {
    if (!isObject(holder)) return false
    return this.takeObjects(holder, USAGES) || this.takeObjects(holder, OTHER_USAGES)
  }

  /** Reads the members with these names. Returns whether there is one with counts. */
  private takeObjects(holder: JsonObject, names: readonly string[]): boolean {
    let hasUsage = false
    for (const name of names) {
      const usage = holder[name]
      if (!isObject(usage)) continue
      const hasChanged = this.take(usage)
      hasUsage ||= hasChanged || names === USAGES
    }
    return hasUsage
  }

  /** Reads the counts beside the other members of a reply. */
  private takeBare(frame: JsonObject): boolean {
    const known = BARE_COUNTS.filter((name) => frame[name] !== undefined)
    return known.length > 0 && this.take(Object.fromEntries(known.map((name) => [name, frame[name]])))
  }

  private members(usage: JsonObject): void {
    for (const name in usage) this.member(name, usage[name])
  }

  private member(name: string, value: JsonValue | undefined): void {
    const known = MEMBERS.get(name)
    if (known !== undefined) return this.put(known, countOf(value), BESIDE_PROMPT.has(name))
    if (name === 'cacheDetails') return this.put(HOUR, hourOf(value), true)
    if (!isObject(value)) return
    const part = DETAILS.get(name)
    if (part !== undefined) this.details(value, part, BESIDE_PROMPT.has(name))
    else if (INNER_COUNTS.has(name)) this.members(value)
    else if (CALLS.has(name)) this.calls = callsIn(value) ?? this.calls
  }

  private details(details: JsonObject, part: Part, isBeside: boolean): void {
    for (const name in details) {
      const value = details[name]
      const known = MEMBERS.get(name)
      const kind = KINDS[part].get(name)
      if (known !== undefined) this.put(known, countOf(value), isBeside)
      else if (kind !== undefined && value !== 0) this.putKind(kind, countOf(value))
      else this.inner(name, value, isBeside)
    }
  }

  /** An object of counts of the cache inside the details. */
  private inner(name: string, value: JsonValue | undefined, isBeside: boolean): void {
    const part = DETAILS.get(name)
    if (isObject(value) && (part === 'cache' || part === 'cached')) this.details(value, part, isBeside)
  }

  private putKind(kind: TokenKind, value: number | undefined): void {
    if (value === undefined || value === 0) return
    if (!this.kinds.includes(kind)) this.kinds.push(kind)
    this.counts[kind] = value
  }

  private put({ count, rank, isAlone }: Member, value: number | undefined, isBeside: boolean): void {
    if (value === undefined) return
    const { counts, ranks } = this
    if (value === 0) {
      if (counts[count] !== undefined) return
    } else {
      if ((ranks[count] ?? Infinity) <= rank) return
      ranks[count] = rank
      if (count === 'input') this.isPromptAlone = isAlone
      else if (CACHES.has(count)) this.isCacheBeside = isBeside
    }
    if (counts[count] === value) return
    counts[count] = value
    this.hasChanged = true
  }

  /** All prompt tokens. `own`: the prompt as reported, with or without its cached tokens. */
  private input(own: number | undefined, read = 0, written = 0): number | undefined {
    const cached = read + written
    if (cached === 0) return own
    if (own === undefined) return this.isCacheBeside ? cached : undefined
    if (this.isCacheBeside && this.isPromptAlone) return own + cached
    const { total = 0, output, thoughts } = this.counts
    const rest = total - own - (sum(output, thoughts) ?? 0)
    // More cached tokens than the prompt has are not a part of it. If the total states that they are, some
    // may be counted both as read and as written.
    const mayBePart = rest === 0 ? Math.max(read, written) <= own : rest !== cached && cached <= own
    return mayBePart ? own : own + cached
  }
}

/**
 * All output tokens. Some vendors count reasoning beside the completion (xAI), or only in the total (Google's
 * OpenAI endpoint).
 */
function outputOf(
  { output, thoughts, reasoning = 0, total = 0 }: Counts,
  input?: number,
): number | undefined {
  const own = sum(output, thoughts)
  if (total > 0 && input !== undefined) {
    const rest = total - input
    // Some replies of Gemini count the thoughts in the candidates, too (LiteLLM has the same rule).
    if (rest === output && rest >= (thoughts ?? 0)) return output
    return isImplausible({ output: rest }) ? own : Math.max(own ?? 0, rest)
  }
  return own !== undefined && reasoning > own ? own + reasoning : own
}

/** Whether a choice has counts of its own. */
function hasCounts(choice: JsonObject): boolean {
  return hasUsageIn(choice) || CHOICE_HOLDERS.some((name) => hasUsageIn(choice[name]))
}

function hasUsageIn(holder: JsonValue | undefined): boolean {
  return isObject(holder) && USAGES.some((name) => isObject(holder[name]))
}

/** Whether the frame counts output tokens for all choices. */
function countsOutput(frame: JsonObject): boolean {
  return (usageIn({ ...frame, choices: [] }).output ?? 0) > 0
}

/** The usage in a chunk, an event or a whole reply; empty if it has none. */
export function usageIn(frame: JsonObject): Usage {
  const meter = new UsageMeter()
  meter.takeFrame(frame)
  return meter.usage()
}

/** Values of Anthropic's `inference_geo` that do not change the price. */
const FREE_GEOS: ReadonlySet<string> = new Set(['', 'global', 'not_available'])

/** Whether the place of Anthropic's inference changes the price of the tokens. */
export function isPricedGeo(geo: string): boolean {
  return !FREE_GEOS.has(geo)
}

/** Whether a member of an object of counts has a count, or an object with more of them. */
export function isUsageMember(name: string): boolean {
  return MEMBERS.has(name) || DETAILS.has(name) || KIND_NAMES.has(name)
}

/** The usage of one object of counts. */
export function usageOf(counts: JsonObject): Usage {
  const meter = new UsageMeter()
  meter.take(counts)
  return meter.usage()
}

function countOf(value: JsonValue | undefined): number | undefined {
  if (typeof value === 'string') return DIGITS.test(value) ? Number(value) : undefined
  return tokenCount(value)
}

/** The tokens that Bedrock keeps for an hour, of a list by duration. */
function hourOf(value: JsonValue | undefined): number | undefined {
  const hours = arrayOf(value)
    .map(objectOf)
    .filter(({ ttl }) => ttl === '1h')
  return sum(...hours.map(({ inputTokens }) => countOf(inputTokens)))
}

/** The calls of tools that the provider ran. */
function callsIn(reported: JsonObject): CallCounts | undefined {
  let calls: CallCounts | undefined
  for (const [name, count] of Object.entries(reported)) {
    if (!name.endsWith(REQUESTS)) continue
    calls = withCalls(calls, name.slice(0, -REQUESTS.length), countOf(count) ?? 0)
  }
  return calls
}

/** Undefined if no count is known. */
function sum(...counts: readonly (number | undefined)[]): number | undefined {
  let total: number | undefined
  for (const count of counts) if (count !== undefined) total = (total ?? 0) + count
  return total
}

function largest(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? (one ?? other) : Math.max(one, other)
}

function set(usage: Usage, kind: TokenKind, count: number | undefined): void {
  if (count !== undefined) usage[kind] = count
}
