/**
 * Decodes Anthropic's token counts.
 * Counts are cumulative: each field of a later report replaces the earlier value.
 */
import { withCalls, type CallCounts } from '../../chat/hosted-tools.js'
import { arrayOf, isObject, objectOf, stringOf, type JsonObject } from '../../chat/json.js'
import { tokenCount, type Usage } from '../../chat/usage.js'

/** Collects the `usage` objects of one message. */
export class UsageMeter {
  private fresh: number | undefined
  private written: number | undefined
  private written1h: number | undefined
  private read: number | undefined
  private output: number | undefined
  private thinking: number | undefined
  private tier: string | undefined
  private calls: CallCounts | undefined
  private isFast = false
  private hasGeo = false

  /** Reads a `usage` object. Absent and null fields keep their values. */
  take(usage: JsonObject): void {
    const counts = withIterations(usage)
    this.fresh = tokenCount(counts.input_tokens) ?? this.fresh
    this.written = tokenCount(counts.cache_creation_input_tokens) ?? this.written
    const kept1h = objectOf(counts.cache_creation).ephemeral_1h_input_tokens
    this.written1h = tokenCount(kept1h) ?? this.written1h
    this.read = tokenCount(counts.cache_read_input_tokens) ?? this.read
    this.output = tokenCount(counts.output_tokens) ?? this.output
    this.thinking = tokenCount(objectOf(usage.output_tokens_details).thinking_tokens) ?? this.thinking
    this.tier = stringOf(usage.service_tier) ?? this.tier
    this.isFast ||= usage.speed === 'fast'
    this.hasGeo ||= typeof usage.inference_geo === 'string' && !FREE_GEOS.has(usage.inference_geo)
    this.calls = callsIn(usage) ?? this.calls
  }

  /** Clears all counts, for a message that starts again. */
  reset(): void {
    this.fresh = this.written = this.written1h = undefined
    this.read = this.output = this.thinking = undefined
    this.calls = undefined
  }

  /** OpenAI's name of the service tier; undefined for batches, for which OpenAI has no name. */
  get serviceTier(): string | undefined {
    if (this.tier === 'standard') return 'default'
    return this.tier === 'priority' ? 'priority' : undefined
  }

  /** The name of the price: the tier, and options that multiply it. */
  get pricedTier(): string | undefined {
    const options = [this.isFast ? 'fast' : '', this.hasGeo ? 'inference_geo' : '']
    const tiers = [this.serviceTier ?? '', ...options].filter((name) => name !== '')
    return tiers.length < 2 ? tiers[0] : tiers.join('+')
  }

  /** The canonical usage so far. `input` includes cached tokens. */
  usage(): Usage {
    const usage: Usage = {}
    if (this.fresh !== undefined || this.written !== undefined || this.read !== undefined) {
      usage.input = (this.fresh ?? 0) + (this.written ?? 0) + (this.read ?? 0)
    }
    if (this.output !== undefined) usage.output = this.output
    if (this.read !== undefined) usage.cacheRead = this.read
    if (this.written !== undefined) usage.cacheWrite = this.written
    // Omitted if 0, which it nearly always is.
    if (this.written1h !== undefined && this.written1h > 0) usage.cacheWrite1h = this.written1h
    if (this.thinking !== undefined) usage.reasoning = this.thinking
    if (this.calls !== undefined) usage.calls = this.calls
    return usage
  }
}

/** Places that do not change the price. */
const FREE_GEOS: ReadonlySet<string> = new Set(['', 'global', 'not_available'])

const REQUESTS = '_requests'

/** The calls of server tools, and of advisors, whose tokens the counts leave out. */
function callsIn(usage: JsonObject): CallCounts | undefined {
  let calls: CallCounts | undefined
  for (const [key, value] of Object.entries(objectOf(usage.server_tool_use))) {
    if (!key.endsWith(REQUESTS)) continue
    calls = withCalls(calls, key.slice(0, -REQUESTS.length), tokenCount(value) ?? 0)
  }
  const advised = arrayOf(usage.iterations).filter((one) => objectOf(one).type === 'advisor_message')
  return withCalls(calls, 'advisor', advised.length)
}

const COUNTS = ['input_tokens', 'cache_creation_input_tokens', 'cache_read_input_tokens', 'output_tokens']

/**
 * Sums the counts of the iterations if there was a compaction, which the top-level counts leave out.
 * If a fallback model replied, the top-level counts are used.
 */
function withIterations(usage: JsonObject): JsonObject {
  if (usage.iterations === undefined) return usage
  const iterations = arrayOf(usage.iterations).filter(isObject)
  const compacted = iterations.some((one) => one.type === 'compaction')
  if (!compacted || iterations.some((one) => one.type === 'fallback_message')) return usage
  const counted = iterations.filter((one) => one.type === 'compaction' || one.type === 'message')
  const sums: JsonObject = { cache_creation: usage.cache_creation ?? null }
  for (const name of COUNTS) {
    let sum: number | undefined
    for (const one of counted) {
      const count = tokenCount(one[name])
      if (count !== undefined) sum = (sum ?? 0) + count
    }
    sums[name] = sum ?? usage[name]
  }
  return sums
}
