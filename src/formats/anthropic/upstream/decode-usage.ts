/**
 * Anthropic's usage: the counts, and the options that change the price of tokens.
 */
import { ADVISOR, withCalls } from '../../chat/hosted-tools.js'
import { arrayOf, isObject, stringOf, type JsonObject } from '../../../base/json.js'
import { tokenCount, type Usage, type UsageElsewhere } from '../../chat/usage.js'
import { isPricedGeo, usageOf, UsageMeter } from '../../wire/usage-meter.js'

/** Collects the usage of one message. */
export class MessageUsage {
  private readonly meter = new UsageMeter()
  private advised = 0
  private elsewhere: readonly UsageElsewhere[] = []
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
    this.elsewhere = []
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

  /** The canonical usage so far. Advisors are calls, whose tokens are those of another model. */
  usage(): Usage {
    const usage = this.meter.usage()
    if (this.advised === 0) return usage
    const calls = withCalls(usage.calls, ADVISOR, this.advised)
    if (calls !== undefined) usage.calls = calls
    if (this.elsewhere.length > 0) usage.elsewhere = this.elsewhere
    return usage
  }

  /** Notes the options of the usage. Returns its counts. */
  private own(usage: JsonObject): JsonObject {
    this.tier = stringOf(usage.service_tier) ?? this.tier
    this.isFast ||= usage.speed === 'fast'
    this.hasGeo ||= typeof usage.inference_geo === 'string' && isPricedGeo(usage.inference_geo)
    const { iterations } = usage
    if (iterations === undefined) return usage
    const advised = arrayOf(iterations).filter(isObject).filter(isAdvised)
    if (advised.length >= this.advised) {
      this.advised = advised.length
      this.elsewhere = usageOfAdvisors(advised)
    }
    return withIterations(usage)
  }
}

/** Maximum advisors of one message whose tokens are read; the others are calls of unknown price. */
const MAX_ADVISORS = 100

function isAdvised({ type }: JsonObject): boolean {
  return type === 'advisor_message'
}

/** The tokens of each advisor that are known with its model (Anthropic, "Advisor tool", read 2026-11-29). */
function usageOfAdvisors(advised: readonly JsonObject[]): UsageElsewhere[] {
  const known: UsageElsewhere[] = []
  for (const one of advised.slice(0, MAX_ADVISORS)) {
    const { model } = one
    const usage = usageOf(one)
    if (typeof model !== 'string' || usage.input === undefined || usage.output === undefined) continue
    known.push({ tool: ADVISOR, model, count: 1, usage })
  }
  return known
}

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
