/**
 * Anthropic's usage: the counts, and the options that change the price of tokens.
 */
import { withCalls } from '../../chat/hosted-tools.js'
import { arrayOf, isObject, objectOf, stringOf, type JsonObject } from '../../chat/json.js'
import { tokenCount, type Usage } from '../../chat/usage.js'
import { UsageMeter } from '../../wire/usage-meter.js'

/** Collects the usage of one message. */
export class MessageUsage {
  private readonly meter = new UsageMeter()
  private advised = 0
  private tier: string | undefined
  private isFast = false
  private hasGeo = false

  /** Reads the usage in an event, or in a whole message. Returns whether it has any. */
  take(frame: JsonObject): boolean {
    const counted = isObject(frame.usage) ? this.own(frame.usage) : undefined
    return this.meter.takeFrame(counted === undefined ? frame : { ...frame, usage: counted })
  }

  /** Clears all counts, for a message that starts again. */
  reset(): void {
    this.meter.reset()
    this.advised = 0
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

  /** The canonical usage so far. Advisors are calls, whose tokens the counts leave out. */
  usage(): Usage {
    const usage = this.meter.usage()
    if (this.advised === 0) return usage
    const calls = withCalls(usage.calls, 'advisor', this.advised)
    return calls === undefined ? usage : { ...usage, calls }
  }

  /** Notes the options of the usage. Returns its counts. */
  private own(usage: JsonObject): JsonObject {
    this.tier = stringOf(usage.service_tier) ?? this.tier
    this.isFast ||= usage.speed === 'fast'
    this.hasGeo ||= typeof usage.inference_geo === 'string' && !FREE_GEOS.has(usage.inference_geo)
    const { iterations } = usage
    if (iterations === undefined) return usage
    const advised = arrayOf(iterations).filter((one) => objectOf(one).type === 'advisor_message')
    this.advised = Math.max(this.advised, advised.length)
    return withIterations(usage)
  }
}

/** Places that do not change the price. */
const FREE_GEOS: ReadonlySet<string> = new Set(['', 'global', 'not_available'])

const COUNTS = ['input_tokens', 'cache_creation_input_tokens', 'cache_read_input_tokens', 'output_tokens']

/**
 * Sums the counts of the iterations if there was a compaction, which the top-level counts leave out.
 * If a fallback model replied, the top-level counts are used.
 */
function withIterations(usage: JsonObject): JsonObject {
  const iterations = arrayOf(usage.iterations).filter(isObject)
  const compacted = iterations.some((one) => one.type === 'compaction')
  if (!compacted || iterations.some((one) => one.type === 'fallback_message')) return usage
  const counted = iterations.filter((one) => one.type === 'compaction' || one.type === 'message')
  const sums: JsonObject = { ...usage }
  for (const name of COUNTS) {
    let sum: number | undefined
    for (const one of counted) {
      const count = tokenCount(one[name])
      if (count !== undefined) sum = (sum ?? 0) + count
    }
    if (sum !== undefined) sums[name] = sum
  }
  return sums
}
