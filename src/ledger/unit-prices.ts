/**
 * Prices of what is not counted in tokens: searches, characters, seconds of sound, pages and pictures. Pure;
 * `price.ts` adds them to the cost of the tokens.
 */
import type { ModelPrice } from '../formats/chat/model-facts.js'
import type { Task } from '../formats/chat/task.js'
import { UNITS, type Unit, type Usage } from '../formats/chat/usage.js'

/** The prices of units of one model. */
export interface UnitPrices {
  /** Femto-dollars of each unit that is charged by number; of a second of sound: of a thousandth of it. */
  readonly units: Readonly<Partial<Record<Unit, number>>>
  /** Femto-dollars of a picture by quality and size; `*` is any. Empty if pictures have no price. */
  readonly pictures: Readonly<Record<string, number>>
  /** Seconds of sound that each request is charged at least. */
  readonly minAudioSeconds: number
}

const FEMTO_PER_USD = 1e15

/** The price of each unit, among the prices of a model; others are not charged by number. */
const UNIT_PRICES = [
  ['search', 'perSearch'],
  ['character', 'perCharacter'],
  ['page', 'perPage'],
  ['audio_second', 'perSecondAudio'],
] as const satisfies readonly (readonly [Unit, keyof ModelPrice])[]

/** Parts in which a unit is counted: sound in thousandths of a second. */
const PARTS: Readonly<Partial<Record<Unit, number>>> = { audio_second: 1000 }

/** What the replies of an operation count. */
interface Counted {
  readonly units: readonly Unit[]
  /** The kind of token that the prompt, or the reply, consists of if its price names no rate of text. */
  readonly input?: 'inputAudio'
  readonly output?: 'outputAudio' | 'outputImage'
  /** The reply is no output of the model. */
  readonly isOutputFree?: true
}

/** What the replies of each operation count. */
export const COUNTED: Readonly<Record<Task['kind'], Counted>> = {
  rerank: { units: ['search'], isOutputFree: true },
  moderations: { units: [], isOutputFree: true },
  images: { units: ['image'], output: 'outputImage' },
  image_edits: { units: ['image'], output: 'outputImage' },
  transcriptions: { units: ['audio_second'], input: 'inputAudio' },
  translations: { units: ['audio_second'], input: 'inputAudio' },
  speech: { units: ['character'], output: 'outputAudio' },
}

/** The prices of units among those of a model. */
export function unitPricesOf(price: ModelPrice): UnitPrices {
  const units: Partial<Record<Unit, number>> = {}
  for (const [unit, name] of UNIT_PRICES) {
    const usd = price[name]
    if (usd !== undefined) units[unit] = Math.round((usd * FEMTO_PER_USD) / (PARTS[unit] ?? 1))
  }
  const { minAudioSeconds = 0, perImage = {} } = price
  const byKind = Object.entries(typeof perImage === 'number' ? { '*': perImage } : perImage)
  const pictures = Object.fromEntries(byKind.map(([kind, usd]) => [kind, Math.round(usd * FEMTO_PER_USD)]))
  return { units, pictures, minAudioSeconds }
}

/** The prices of a service tier. */
export function scaledUnits({ units, pictures, minAudioSeconds }: UnitPrices, factor: number): UnitPrices {
  const scaled = <Key extends string>(rates: Readonly<Partial<Record<Key, number>>>): Record<Key, number> => {
    const entries = Object.entries<number | undefined>(rates)
    const named = entries.map(([key, rate = 0]) => [key, Math.round(rate * factor)])
    return Object.fromEntries(named) as Record<Key, number>
  }
  return { units: scaled(units), pictures: scaled(pictures), minAudioSeconds }
}

/** The units of the operation that have a price. */
export function unitsWithPrice(
  { units, pictures }: UnitPrices,
  { kind }: Pick<Task, 'kind'>,
): readonly Unit[] {
  return COUNTED[kind].units.filter((unit) =>
    unit === 'image' ? Object.keys(pictures).length > 0 : units[unit] !== undefined,
  )
}

/** The units of the operation that cost something. */
export function chargedUnits(prices: UnitPrices, task: Task): readonly Unit[] {
  const { units, pictures } = prices
  return unitsWithPrice(prices, task).filter((unit) =>
    unit === 'image' ? Object.values(pictures).some((rate) => rate > 0) : (units[unit] ?? 0) > 0,
  )
}

/** Whether no unit costs anything. */
export function areUnitsFree({ units, pictures }: UnitPrices): boolean {
  return [...Object.values(units), ...Object.values(pictures)].every((rate) => rate === 0)
}

/**
 * The parts of the cost that units have; units without a price cost nothing by themselves. A rate is null if
 * pictures have prices and none is for those that were made.
 */
export function unitParts(
  { units: rates, pictures, minAudioSeconds }: UnitPrices,
  { units = {}, pictures: made = '' }: Pick<Usage, 'units' | 'pictures'>,
): (readonly [count: number, rate: number | null])[] {
  return UNITS.map((unit) => {
    const count = units[unit] ?? 0
    if (unit === 'image') return [count, count === 0 ? 0 : pictureRate(pictures, made)]
    const least = unit === 'audio_second' && count > 0 ? minAudioSeconds : 0
    return [Math.round(Math.max(count, least) * (PARTS[unit] ?? 1)), rates[unit] ?? 0]
  })
}

/**
 * The rate of a picture by its quality and size, the most specific first. If one of them is not known, the
 * dearest rate that is possible. Null if there are rates and none is for it.
 */
function pictureRate(rates: UnitPrices['pictures'], made: string): number | null {
  const kinds = Object.entries(rates)
  if (kinds.length === 0) return 0
  const [quality = '', size = ''] = made.split('/')
  if (quality !== '' && size !== '') {
    const names = [`${quality}/${size}`, `${quality}/*`, size, '*']
    const name = names.find((each) => Object.hasOwn(rates, each))
    return name === undefined ? null : (rates[name] ?? null)
  }
  const possible = kinds.filter(([kind]) => {
    const [ownSize = '', ownQuality] = kind.split('/').reverse()
    const hasQuality = quality === '' || ownQuality === undefined || ownQuality === quality
    return hasQuality && (size === '' || ownSize === '*' || ownSize === size)
  })
  return possible.length === 0 ? null : Math.max(...possible.map(([, rate]) => rate))
}
