/**
 * The prices and limits of vendors with a preset that serve models of other makers, as the package ships
 * them: others with each vendor. The file is read when a configuration has such a preset.
 */
import { readFileSync } from 'node:fs'
import * as z from 'zod'
import { objectOf, type JsonObject } from '../base/json.js'
import type { ModelFacts, ModelPrices } from '../formats/chat/model-facts.js'
import { packageFile } from './package-file.js'
import type { PresetName } from './presets.js'
import { priceFacts, pricesSchema } from './schema/catalogue-schema.js'

const FILE = 'config/prices-by-preset.json'
const listSchema = z.record(z.string(), pricesSchema)

let file: JsonObject | null = null
const known = new Map<PresetName, Readonly<Record<string, ModelPrices>>>()

/** The limits of a model with a vendor. */
type ModelLimits = Readonly<Pick<ModelFacts, 'contextWindow' | 'maxOutputTokens'>>

const limitsSchema = z.record(
  z.string(),
  z
    .object({ context_window: z.number().optional(), max_output_tokens: z.number().optional() })
    .transform(({ context_window: contextWindow, max_output_tokens: maxOutputTokens }): ModelLimits => ({
      ...(contextWindow !== undefined && { contextWindow }),
      ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    })),
)
const knownLimits = new Map<PresetName, Readonly<Record<string, ModelLimits>>>()

/** The shipped limits of the models of a preset; empty for one without a list. */
export function shippedLimits(preset: PresetName): Readonly<Record<string, ModelLimits>> {
  const cached = knownLimits.get(preset)
  if (cached !== undefined) return cached
  const limits = limitsSchema.parse(listOf('limits', preset))
  knownLimits.set(preset, limits)
  return limits
}

function listOf(part: 'presets' | 'limits', preset: PresetName): unknown {
  file ??= objectOf(JSON.parse(readFileSync(packageFile(FILE), 'utf8')))
  return objectOf(file[part])[preset] ?? {}
}

/** The shipped prices of a preset by model; empty for one without a list. */
export function shippedPrices(preset: PresetName): Readonly<Record<string, ModelPrices>> {
  const cached = known.get(preset)
  if (cached !== undefined) return cached
  const list = listSchema.parse(listOf('presets', preset))
  const prices = Object.fromEntries(Object.entries(list).map(([model, price]) => [model, priceFacts(price)]))
  known.set(preset, prices)
  return prices
}
