/**
 * The prices of vendors with a preset that serve models of other makers, as the package ships them: one with
 * each vendor. The file is read when a configuration has such a preset.
 */
import { readFileSync } from 'node:fs'
import * as z from 'zod'
import { objectOf, type JsonObject } from '../base/json.js'
import type { ModelPrices } from '../formats/chat/model-facts.js'
import { packageFile } from './package-file.js'
import type { PresetName } from './presets.js'
import { priceFacts, pricesSchema } from './schema/catalogue-schema.js'

const FILE = 'config/prices-by-preset.json'
const listSchema = z.record(z.string(), pricesSchema)

let file: JsonObject | null = null
const known = new Map<PresetName, Readonly<Record<string, ModelPrices>>>()

/** The shipped prices of a preset by model; empty for one without a list. */
export function shippedPrices(preset: PresetName): Readonly<Record<string, ModelPrices>> {
  const cached = known.get(preset)
  if (cached !== undefined) return cached
  file ??= objectOf(JSON.parse(readFileSync(packageFile(FILE), 'utf8')))
  const list = listSchema.parse(objectOf(file['presets'])[preset] ?? {})
  const prices = Object.fromEntries(Object.entries(list).map(([model, price]) => [model, priceFacts(price)]))
  known.set(preset, prices)
  return prices
}
