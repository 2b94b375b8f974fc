/**
 * Computes the cost of tokens, cached and reasoning tokens included, and of calls of tools, exactly and in
 * whole nano-dollars. Pure; the prices are those of the catalogue and the configuration.
 */
import { isFreeCall, type CallCounts } from '../formats/chat/hosted-tools.js'
import type { LongContextPrice, ModelPrice, TierPrice } from '../formats/chat/model-facts.js'
import type { Task } from '../formats/chat/task.js'
import type { UnitCounts, Usage } from '../formats/chat/usage.js'
import {
  areUnitsFree,
  COUNTED,
  scaledUnits,
  unitParts,
  unitPricesOf,
  unitsWithPrice,
  type UnitPrices,
} from './unit-prices.js'

/** Femto-dollars (1e-15) of one token; null if the price is unknown. */
type Rate = number | null

/** The price of one token, by its kind. */
interface Rates {
  readonly input: Rate
  readonly cacheRead: Rate
  readonly cacheWrite: Rate
  readonly cacheWrite1h: Rate
  readonly output: Rate
  readonly reasoning: Rate
  readonly inputAudio: Rate
  /** Null: sound that is read from the cache costs as much as other sound. */
  readonly cachedAudio: Rate
  /** Null: pictures, or videos, cost as much as text. */
  readonly inputImage: Rate
  readonly inputVideo: Rate
  /** Null: as much as other pictures, or as text that is read from the cache if `inputImage` is null. */
  readonly cachedImage: Rate
  readonly outputAudio: Rate
  readonly outputImage: Rate
}

/** Kinds of tokens that are no text and may have a rate of their own. */
export const MEDIA_KINDS = ['inputAudio', 'inputImage', 'inputVideo', 'outputAudio', 'outputImage'] as const
export type MediaKind = (typeof MEDIA_KINDS)[number]
/** No such tokens. */
export const TEXT_ONLY: readonly MediaKind[] = []

/** The rates of a service tier with its own. */
type TierRates = Pick<Price, 'usual' | 'long' | 'aboveInputTokens'>

/** A model's prices, prepared for computing. */
export interface Price {
  /** The factor of each service tier of the vendor by its name, or the rates of the tier. */
  readonly tiers: Readonly<Record<string, number | TierRates>>
  readonly usual: Rates
  /** The rates for prompts of more than `aboveInputTokens`; null if the length does not change the price. */
  readonly long: Rates | null
  readonly aboveInputTokens: number
  /** Nano-dollars per call of a tool, by its name. */
  readonly calls: Readonly<Record<string, number>>
  /** Nano-dollars per call of any other tool that is not free; null if unknown. */
  readonly otherCall: number | null
  readonly byUnit: UnitPrices
}

/** A US dollar per million tokens is 1e-6 dollars a token; in femto-dollars that is 1e9. */
const FEMTO_PER_USD_PER_MILLION = 1e9
const FEMTO_PER_NANO = 1_000_000
const NANO_PER_USD = 1e9
const NO_CALLS: Price['calls'] = {}

/** Prepares a price. */
export function priceOf(price: ModelPrice): Price {
  const usual = usualRates(price)
  const long = longPart(usual, price.longContext)
  const { serviceTiers = {} } = price
  const tiers = Object.entries(serviceTiers).map(([name, tier]): [string, number | TierRates] => {
    return [name, typeof tier === 'number' ? tier : tierRates(tier, { usual, ...long })]
  })
  const calls = price.calls === undefined ? NO_CALLS : nanoPrices(price.calls)
  const byUnit = unitPricesOf(price)
  return { tiers: Object.fromEntries(tiers), usual, ...long, calls, otherCall: null, byUnit }
}

/** A price in US dollars per million tokens of text, without unknown members. */
interface ShownPrice {
  readonly input?: number
  readonly output?: number
  readonly cacheRead?: number
  readonly cacheWrite?: number
  /** The price of prompts with more tokens. */
  readonly longContext?: ShownPrice & { aboveInputTokens: number; input: number; output: number }
}

/** A prepared price as the catalogue and the configuration state it. */
export function shownPrice({ usual, long, aboveInputTokens }: Price): ShownPrice {
  const { input, output } = long ?? usual
  return {
    ...shownRates(usual),
    ...(long === null || input === null || output === null
      ? {}
      : {
          longContext: {
            ...shownRates(long),
            ...{ aboveInputTokens, input: shownRate(input), output: shownRate(output) },
          },
        }),
  }
}

function shownRates({ input, output, cacheRead, cacheWrite }: Rates): Omit<ShownPrice, 'longContext'> {
  return {
    ...(input === null ? {} : { input: shownRate(input) }),
    ...(output === null ? {} : { output: shownRate(output) }),
    ...(cacheRead === null ? {} : { cacheRead: shownRate(cacheRead) }),
    ...(cacheWrite === null ? {} : { cacheWrite: shownRate(cacheWrite) }),
  }
}

function shownRate(femtoUsd: number): number {
  return femtoUsd / FEMTO_PER_USD_PER_MILLION
}

function usualRates(price: TierPrice): Rates {
  return {
    input: rateOf(price.input),
    cacheRead: rateOf(price.cacheRead),
    cacheWrite: rateOf(price.cacheWrite),
    cacheWrite1h: rateOf(price.cacheWrite1h),
    output: rateOf(price.output),
    reasoning: rateOf(price.reasoning ?? price.output),
    inputAudio: rateOf(price.inputAudio),
    cachedAudio: rateOf(price.cachedAudio),
    inputImage: rateOf(price.inputImage),
    inputVideo: rateOf(price.inputVideo),
    cachedImage: rateOf(price.cachedImage),
    outputAudio: rateOf(price.outputAudio),
    outputImage: rateOf(price.outputImage),
  }
}

/**
 * A tier's own rates. A rate that it lacks keeps its share of the usual input or output rate, and so do the
 * rates for long prompts.
 */
function tierRates(tier: TierPrice, { usual, long, aboveInputTokens }: TierRates): TierRates {
  const own = usualRates(tier)
  const scaled = inProportion(usual, own.input ?? usual.input, own.output ?? usual.output)
  const rates = mappedRates(own, (rate, kind) => rate ?? scaled[kind])
  if (tier.longContext !== undefined) return { usual: rates, ...longPart(rates, tier.longContext) }
  const share = (rate: Rate, kind: keyof Rates): Rate => scaledRate(rate, usual[kind], rates[kind])
  return { usual: rates, long: long === null ? null : mappedRates(long, share), aboveInputTokens }
}

/**
 * The rates for long prompts. Without rates of the cache, it keeps its share of the input rate, as at every
 * vendor with such rates; so do sound and pictures.
 */
function longPart(
  usual: Rates,
  long: LongContextPrice | undefined,
): Pick<Price, 'long' | 'aboveInputTokens'> {
  if (long === undefined) return { long: null, aboveInputTokens: 0 }
  const rates = inProportion(usual, rateOf(long.input), rateOf(long.output))
  const cacheRead = rateOf(long.cacheRead) ?? rates.cacheRead
  const cacheWrite = rateOf(long.cacheWrite) ?? rates.cacheWrite
  return { long: { ...rates, cacheRead, cacheWrite }, aboveInputTokens: long.aboveInputTokens }
}

/** The rates for another rate of input and of output: all others keep their shares of these. */
function inProportion(usual: Rates, input: Rate, output: Rate): Rates {
  const ofInput = (rate: Rate): Rate => scaledRate(rate, usual.input, input)
  const ofOutput = (rate: Rate): Rate => scaledRate(rate, usual.output, output)
  return {
    input,
    cacheRead: ofInput(usual.cacheRead),
    cacheWrite: ofInput(usual.cacheWrite),
    cacheWrite1h: ofInput(usual.cacheWrite1h),
    output,
    reasoning: ofOutput(usual.reasoning),
    inputAudio: ofInput(usual.inputAudio),
    cachedAudio: ofInput(usual.cachedAudio),
    inputImage: ofInput(usual.inputImage),
    inputVideo: ofInput(usual.inputVideo),
    cachedImage: ofInput(usual.cachedImage),
    outputAudio: ofOutput(usual.outputAudio),
    outputImage: ofOutput(usual.outputImage),
  }
}

const ofTasks = new WeakMap<Price, Map<Task['kind'], Price>>()

/**
 * The price for the request. A ranking has no output, and a task that is charged by its units needs no rate
 * of tokens; a price that has neither is unknown.
 */
export function priceFor(
  price: Price | null,
  { task }: { readonly task?: Pick<Task, 'kind'> | undefined },
): Price | null {
  if (price === null || task === undefined) return price
  let byKind = ofTasks.get(price)
  if (byKind === undefined) ofTasks.set(price, (byKind = new Map<Task['kind'], Price>()))
  let priced = byKind.get(task.kind)
  if (priced === undefined) {
    priced = pricedAs(price, task)
    byKind.set(task.kind, priced)
  }
  return priced
}

function pricedAs(price: Price, task: Pick<Task, 'kind'>): Price {
  const counted = COUNTED[task.kind]
  const isByUnit = unitsWithPrice(price.byUnit, task).length > 0
  const ratesOf = (rates: Rates): Rates => {
    if (counted.isOutputFree === true) {
      return { ...rates, input: rates.input ?? (isByUnit ? 0 : null), output: 0, reasoning: 0 }
    }
    const own = isByUnit ? mappedRates(rates, (rate) => rate ?? 0) : rates
    const { input, output } = counted
    const text = output === undefined ? own.output : (own.output ?? own[output])
    return {
      ...own,
      input: input === undefined ? own.input : (own.input ?? own[input]),
      output: text,
      reasoning: own.reasoning ?? text,
    }
  }
  const each = <Own extends TierRates>(own: Own): Own => ({
    ...own,
    usual: ratesOf(own.usual),
    long: own.long === null ? null : ratesOf(own.long),
  })
  const tiers = Object.entries(price.tiers).map(([name, own]): [string, number | TierRates] => {
    return [name, typeof own === 'number' ? own : each(own)]
  })
  return { ...each(price), tiers: Object.fromEntries(tiers) }
}

/** Whether the price charges any tokens. */
export function chargesTokens({ usual, long }: Price): boolean {
  return [usual, long ?? usual].some((rates) => RATE_NAMES.some((kind) => (rates[kind] ?? 0) > 0))
}

/** Whether the price charges tokens of replies. */
export function chargesOutput({ usual, long }: Price): boolean {
  return [usual, long ?? usual].some((rates) => OUTPUT_RATES.some((kind) => (rates[kind] ?? 0) > 0))
}

const OUTPUT_RATES = ['output', 'outputAudio', 'outputImage'] as const

/** Whether the price charges prompt tokens. */
export function chargesInput({ usual, long }: Price): boolean {
  return [usual, long ?? usual].some(({ input }) => input !== 0)
}

function nanoPrices(usd: Readonly<Record<string, number>>): Price['calls'] {
  return Object.fromEntries(
    Object.entries(usd).map(([name, price]) => [name, Math.round(price * NANO_PER_USD)]),
  )
}

/**
 * Names of the usual tier at OpenAI, Google and Groq; `''` is no tier, and `auto` leaves the choice to the
 * vendor.
 */
const USUAL_TIERS: ReadonlySet<string> = new Set(['default', 'standard', 'on_demand', '', 'auto'])

/**
 * The price of a service tier (null: not reported), or of several options such as `fast+inference_geo`; null
 * if one is unknown.
 */
export function tierPrice(price: Price, tier: string | null): Price | null {
  if (tier === null || (USUAL_TIERS.has(tier) && !Object.hasOwn(price.tiers, tier))) return price
  let [found, factor] = [price, 1]
  for (const name of tier.split('+')) {
    const own = Object.hasOwn(price.tiers, name) ? price.tiers[name] : undefined
    if (own === undefined) return null
    if (typeof own === 'number') factor *= own
    else found = { ...found, ...own }
  }
  if (factor === 1) return found
  const { usual, long, byUnit } = found
  return {
    ...found,
    usual: scaledRates(usual, factor),
    long: long === null ? null : scaledRates(long, factor),
    byUnit: scaledUnits(byUnit, factor),
  }
}

/** The price of a request in a batch: that of the tier `batch`, else the usual one, which is higher. */
export function batchPrice(price: Price): Price {
  return tierPrice(price, BATCH) ?? price
}

/** The tier in a batch's reply, whose price the batch has already. */
export function tierInBatch(tier: string | null): string | null {
  return tier === BATCH ? null : tier
}

const BATCH = 'batch'

/** The higher of the usual price and that of the tier, because the vendor may bill either. */
export function higherPrice(price: Price, tier: string | null): Price | null {
  const ofTier = tierPrice(price, tier)
  if (ofTier === null || tier === null) return ofTier
  const isHigher = (['input', 'output'] as const).some((kind) => {
    return (ofTier.usual[kind] ?? 0) > (price.usual[kind] ?? 0)
  })
  return isHigher ? ofTier : price
}

/** An assumed price in US dollars: per million tokens, and per call of a tool. */
interface AssumedPrice {
  readonly input: number
  readonly output: number
  readonly call: number
}

/** An assumed price for models of unknown price. Every kind of prompt token costs `input`. */
export function flatPrice({ input, output, call }: AssumedPrice): Price {
  const cached = { cacheRead: input, cacheWrite: input, cacheWrite1h: input, cachedAudio: input }
  const media = { inputAudio: input, outputAudio: output, outputImage: output }
  const price = { input, output, ...cached, ...media }
  return { ...priceOf(price), otherCall: Math.round(call * NANO_PER_USD) }
}

/**
 * The price with the rates of `assumed` for unknown rates. Sound and pictures of a known model get none: they
 * may cost many times as much as text.
 */
export function completedPrice(price: Price | null, assumed: Price): Price {
  if (price === null) return assumed
  const { usual, long } = price
  return {
    ...price,
    otherCall: price.otherCall ?? assumed.otherCall,
    usual: completedRates(usual, assumed.usual),
    long: long === null ? null : completedRates(long, assumed.usual),
  }
}

/** The price of a tier with unknown rates: each rate is the higher of the usual and the assumed one. */
export function highestPrice(price: Price, assumed: Price): Price {
  const { usual, long } = completedPrice(price, assumed)
  return {
    ...price,
    usual: highestRates(usual, assumed.usual),
    long: long === null ? null : highestRates(long, assumed.usual),
  }
}

/** Whether both input and output have a rate, for prompts of any length. */
export function isComplete({ usual, long }: Price): boolean {
  return [usual, long ?? usual].every(({ input, output }) => input !== null && output !== null)
}

/** The price for prompts of at most this length. */
export function priceUpTo(price: Price, inputTokens: number): Price {
  return price.long === null || longRates(price, inputTokens) !== null ? price : { ...price, long: null }
}

/** Whether all output tokens are free. */
export function isOutputFree({ usual, long }: Price): boolean {
  return [usual, long ?? usual].every(
    ({ output, reasoning, outputAudio, outputImage }) =>
      output === 0 && areFree(reasoning, outputAudio, outputImage),
  )
}

/** Whether no rate is above 0; unknown ones are those of tokens that the model does not have. */
function areFree(...rates: readonly Rate[]): boolean {
  return rates.every((rate) => (rate ?? 0) === 0)
}

/** Whether all tokens are free. */
export function isFree(price: Price): boolean {
  const { usual, long, byUnit } = price
  if (!areUnitsFree(byUnit)) return false
  return isOutputFree(price) && [usual, long ?? usual].every(isInputFree)
}

function isInputFree(rates: Rates): boolean {
  const { input, cacheWrite, cacheWrite1h, inputAudio, inputImage, inputVideo, cachedImage } = rates
  return input === 0 && areFree(cacheWrite, cacheWrite1h, inputAudio, inputImage, inputVideo, cachedImage)
}

/** The price of one call of a tool in nano-dollars; null if it is unknown. */
export function callNanoUsd({ calls, otherCall }: Price, name: string): number | null {
  if (Object.hasOwn(calls, name)) return calls[name] ?? null
  return isFreeCall(name) ? 0 : otherCall
}

/** The cost of these calls; null if a price is unknown. */
function callsNanoUsd(price: Price, counts: CallCounts): number | null {
  let cost = 0
  for (const [name, count] of Object.entries(counts)) {
    if (count === 0) continue
    const each = callNanoUsd(price, name)
    if (each === null) return null
    cost += each * count
  }
  return cost
}

/** The price of a model that a tool of the provider used; null if it is unknown. */
export type PriceOfOther = (model: string) => Price | null

/**
 * The cost, to the nearest nano-dollar; null if a needed price is unknown. Counts that contradict each other
 * (more tokens read from the cache than sent) never lower the cost. With `priceOfOther`, calls of tools that
 * run another model cost its tokens instead of the price of a call.
 */
export function costNanoUsd(price: Price, usage: Usage, priceOfOther?: PriceOfOther): number | null {
  const tokens = tokensNanoUsd(price, usage)
  if (usage.calls === undefined || tokens === null) return tokens
  const { elsewhere } = usage
  if (elsewhere === undefined || priceOfOther === undefined) {
    return sumOfKnown(tokens, callsNanoUsd(price, usage.calls))
  }
  const calls = { ...usage.calls }
  let others: number | null = 0
  for (const { tool, model, count, usage: own } of elsewhere) {
    calls[tool] = Math.max(0, (calls[tool] ?? 0) - count)
    const other = priceOfOther(model)
    others = sumOfKnown(others, other === null ? null : costNanoUsd(other, own))
  }
  return sumOfKnown(sumOfKnown(tokens, others), callsNanoUsd(price, calls))
}

/** Null if one of them is unknown. */
export function sumOfKnown(one: number | null, other: number | null): number | null {
  return one === null || other === null ? null : one + other
}

function tokensNanoUsd(price: Price, usage: Usage): number | null {
  const { cacheRead = 0, cacheWrite = 0, output = 0 } = usage
  const written1h = Math.min(usage.cacheWrite1h ?? 0, cacheWrite)
  const reasoning = Math.min(usage.reasoning ?? 0, output)
  const cached = cacheRead + cacheWrite
  const input = Math.max(usage.input ?? 0, cached)
  const rates = longRates(price, input) ?? price.usual
  if (hasMedia(usage) || usage.units !== undefined) {
    const parts = partsWithMedia({ ...usage, input, output, reasoning }, rates)
    return sumInNano([...parts, ...unitParts(price.byUnit, usage)])
  }
  // Most sums are exact in floating point. Larger ones, and those with an unknown rate, are computed part by
  // part.
  const femto =
    product(input - cached, rates.input) +
    product(cacheRead, rates.cacheRead) +
    product(cacheWrite - written1h, rates.cacheWrite) +
    product(written1h, rates.cacheWrite1h) +
    product(output - reasoning, rates.output) +
    product(reasoning, rates.reasoning)
  if (Number.isSafeInteger(femto)) return nanoOf(femto)
  return sumInNano([
    [input - cached, rates.input],
    [cacheRead, rates.cacheRead],
    [cacheWrite - written1h, rates.cacheWrite],
    [written1h, rates.cacheWrite1h],
    [output - reasoning, rates.output],
    [reasoning, rates.reasoning],
  ])
}

function hasMedia(usage: Usage): boolean {
  if ((usage.outputOther ?? 0) > 0) return true
  return MEDIA_KINDS.some((kind) => (usage[kind] ?? 0) > 0)
}

type TotalUsage = Usage & Required<Pick<Usage, 'input' | 'output' | 'reasoning'>>

/**
 * The tokens of each kind with their rate. Sound and pictures are parts of the totals. A provider may report
 * cached tokens without their kind: they count as text first, which is the cheapest kind.
 */
function partsWithMedia(usage: TotalUsage, rates: Rates): (readonly [tokens: number, rate: Rate])[] {
  const { input, output, reasoning, cacheRead = 0, cacheWrite = 0 } = usage
  const written1h = Math.min(usage.cacheWrite1h ?? 0, cacheWrite)
  const audio = Math.min(usage.inputAudio ?? 0, input)
  const image = Math.min(usage.inputImage ?? 0, input - audio)
  const video = Math.min(usage.inputVideo ?? 0, input - audio - image)
  const ofCache = cacheRead + cacheWrite
  const cachedAudio = Math.min(audio, cacheRead, usage.cachedAudio ?? Math.max(0, ofCache - (input - audio)))
  const restOfCache = ofCache - cachedAudio
  const text = input - audio - image - video
  const inCache = Math.min(image, restOfCache, usage.cachedImage ?? Math.max(0, restOfCache - text - video))
  const cachedImage = Math.min(inCache, cacheRead - cachedAudio)
  const cachedVideo = Math.max(0, restOfCache - inCache - text)
  const newAudio = audio - cachedAudio
  const newImage = image - inCache
  const newVideo = Math.max(0, video - cachedVideo)
  const outAudio = Math.min(usage.outputAudio ?? 0, output - reasoning)
  const outImage = Math.min(usage.outputImage ?? 0, output - reasoning - outAudio)
  const outOther = Math.min(usage.outputOther ?? 0, output - reasoning - outAudio - outImage)
  return [
    [Math.max(0, input - ofCache - newAudio - newImage - newVideo), rates.input],
    [newAudio, rates.inputAudio],
    [newImage, rates.inputImage ?? rates.input],
    [newVideo, rates.inputVideo ?? rates.input],
    [cacheRead - cachedAudio - cachedImage, rates.cacheRead],
    [cachedAudio, rates.cachedAudio ?? rates.inputAudio],
    [cachedImage, rates.cachedImage ?? rates.inputImage ?? rates.cacheRead],
    [cacheWrite - written1h, rates.cacheWrite],
    [written1h, rates.cacheWrite1h],
    [output - reasoning - outAudio - outImage - outOther, rates.output],
    [outAudio, rates.outputAudio],
    [outImage, rates.outputImage],
    [outOther, null],
    [reasoning, rates.reasoning],
  ]
}

/** The maximum token counts of a request, and the kinds beside text that the tokens may be. */
export interface MaxTokens {
  readonly input: number
  readonly output: number
  readonly media?: readonly MediaKind[]
  readonly units?: UnitCounts
  readonly pictures?: string
}

/**
 * The maximum cost of a request: each prompt token at the highest rate that may apply (uncached, written to a
 * cache, or a kind of its own), and each output token likewise, by the rates of each prompt length that is
 * possible. Null if the price of input or output is unknown. Kinds without a rate add nothing.
 */
export function maxCostNanoUsd(price: Price, most: MaxTokens): number | null {
  const { input, output, media = TEXT_ONLY } = most
  const long = longRates(price, input)
  const tiers = long === null ? [price.usual] : [price.usual, long]
  let maxCost = 0
  for (const rates of tiers) {
    if (rates.input === null || rates.output === null) return null
    const { inputRate, outputRate } = dearestRates(rates, media)
    const cost = sumInNano([[input, inputRate], [output, outputRate], ...unitParts(price.byUnit, most)])
    maxCost = Math.max(maxCost, cost ?? 0)
  }
  return maxCost
}

function dearestRates(
  rates: Rates,
  media: readonly MediaKind[],
): { readonly inputRate: number; readonly outputRate: number } {
  let inputRate = Math.max(rates.input ?? 0, rates.cacheWrite ?? 0, rates.cacheWrite1h ?? 0)
  let outputRate = Math.max(rates.output ?? 0, rates.reasoning ?? 0)
  for (const kind of media) {
    const rate = rates[kind] ?? 0
    if (isInputKind(kind)) inputRate = Math.max(inputRate, rate)
    else outputRate = Math.max(outputRate, rate)
  }
  return { inputRate, outputRate }
}

function isInputKind(kind: MediaKind): boolean {
  return kind === 'inputAudio' || COSTS_AS_TEXT.has(kind)
}

/** The kinds that cost as much as text if they have no rate. */
const COSTS_AS_TEXT: ReadonlySet<MediaKind> = new Set(['inputImage', 'inputVideo'])

/** The first of these kinds that has no rate and does not cost as text; null if there is none. */
export function kindWithoutRate({ usual }: Price, kinds: readonly MediaKind[]): MediaKind | null {
  return kinds.find((kind) => !COSTS_AS_TEXT.has(kind) && usual[kind] === null) ?? null
}

/**
 * Token counts whose cost is the maximum cost of these tokens: the prompt is written to a cache if that costs
 * more than reading it, the output is reasoning if that costs more than text, and all tokens are of another
 * kind if that costs most.
 */
export function dearestUsage(price: Price | null, most: MaxTokens): Usage {
  const { input, output, media = TEXT_ONLY, units, pictures } = most
  const usage: Usage = {
    ...{ input, output },
    ...(units !== undefined && { units }),
    ...(pictures !== undefined && { pictures }),
  }
  if (price === null) return usage
  const rates = longRates(price, input) ?? price.usual
  const { inputRate, outputRate } = dearestRates(rates, media)
  for (const kind of media) {
    const isInput = isInputKind(kind)
    if (
      rates[kind] !== (isInput ? inputRate : outputRate) ||
      rates[kind] === rates[isInput ? 'input' : 'output']
    )
      continue
    usage[kind] = isInput ? input : output
  }
  const isText = MEDIA_KINDS.every((kind) => !isInputKind(kind) || usage[kind] === undefined)
  const written = rates.cacheWrite ?? 0
  const written1h = rates.cacheWrite1h ?? 0
  if (isText && Math.max(written, written1h) > (rates.input ?? 0)) usage.cacheWrite = input
  if (usage.cacheWrite !== undefined && written1h > written) usage.cacheWrite1h = input
  const isTextReply = usage.outputAudio === undefined && usage.outputImage === undefined
  if (isTextReply && (rates.reasoning ?? 0) > (rates.output ?? 0)) usage.reasoning = output
  return usage
}

function longRates({ long, aboveInputTokens }: Price, inputTokens: number): Rates | null {
  return inputTokens > aboveInputTokens ? long : null
}

const RATE_NAMES = [
  'input',
  'cacheRead',
  'cacheWrite',
  'cacheWrite1h',
  'output',
  'reasoning',
  'inputAudio',
  'cachedAudio',
  'inputImage',
  'inputVideo',
  'cachedImage',
  'outputAudio',
  'outputImage',
] as const satisfies readonly (keyof Rates)[]

function mappedRates(rates: Rates, change: (rate: Rate, name: keyof Rates) => Rate): Rates {
  const changed: { -readonly [Name in keyof Rates]: Rate } = { ...rates }
  for (const name of RATE_NAMES) changed[name] = change(rates[name], name)
  return changed
}

function scaledRates(rates: Rates, factor: number): Rates {
  return mappedRates(rates, (rate) => (rate === null ? null : Math.round(rate * factor)))
}

function completedRates(rates: Rates, assumed: Rates): Rates {
  return {
    ...rates,
    input: rates.input ?? assumed.input,
    cacheRead: rates.cacheRead ?? rates.input ?? assumed.cacheRead,
    cacheWrite: rates.cacheWrite ?? assumed.cacheWrite,
    cacheWrite1h: rates.cacheWrite1h ?? assumed.cacheWrite1h,
    output: rates.output ?? assumed.output,
    reasoning: rates.reasoning ?? rates.output ?? assumed.reasoning,
  }
}

function highestRates(a: Rates, b: Rates): Rates {
  return mappedRates(a, (rate, name) => Math.max(rate ?? 0, b[name] ?? 0))
}

function rateOf(usdPerMillion: number | undefined): Rate {
  return usdPerMillion === undefined ? null : Math.round(usdPerMillion * FEMTO_PER_USD_PER_MILLION)
}

/** Scales `rate` by `newBase / base`, exact to a femto-dollar. */
function scaledRate(rate: Rate, base: Rate, newBase: Rate): Rate {
  if (rate === null || base === null || newBase === null || base === 0) return null
  const [divisor, product] = [BigInt(base), BigInt(rate) * BigInt(newBase)]
  return Number((product + divisor / 2n) / divisor)
}

/** Whole numbers up to 2^53 add up exactly; larger sums use big integers. */
function sumInNano(parts: readonly (readonly [tokens: number, rate: Rate])[]): number | null {
  let femto = 0
  for (const [tokens, rate] of parts) {
    if (tokens === 0) continue
    if (rate === null) return null
    femto += tokens * rate
  }
  if (!Number.isSafeInteger(femto)) return exactTotal(parts)
  return nanoOf(femto)
}

/** NaN for tokens whose rate is unknown. */
function product(tokens: number, rate: Rate): number {
  return tokens === 0 ? 0 : tokens * (rate ?? NaN)
}

function nanoOf(femto: number): number {
  const remainder = femto % FEMTO_PER_NANO
  return (femto - remainder) / FEMTO_PER_NANO + (remainder * 2 >= FEMTO_PER_NANO ? 1 : 0)
}

function exactTotal(parts: readonly (readonly [tokens: number, rate: Rate])[]): number {
  let femto = 0n
  for (const [tokens, rate] of parts) femto += BigInt(tokens) * BigInt(rate ?? 0)
  const nano = (femto + BigInt(FEMTO_PER_NANO / 2)) / BigInt(FEMTO_PER_NANO)
  return nano > BigInt(Number.MAX_SAFE_INTEGER) ? Number.MAX_SAFE_INTEGER : Number(nano)
}
