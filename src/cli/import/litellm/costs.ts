/** What a million tokens of a prompt and of a reply cost together, to find the cheapest deployment. */
import type { JsonObject } from '../../../base/json.js'
import { readCatalogue, readText } from '../../../config/load-config.js'
import { packageFile } from '../../../config/package-file.js'
import { priceAt } from '../../../formats/chat/model-facts.js'
import { numberIn } from './context.js'

/** The cost of a model with the price of its entry, else that of the shipped catalogue; null: unknown. */
type CostOf = (model: string, price: JsonObject | null) => number | null

/** Reads the shipped catalogue. `nowMs` selects among prices with dates. */
export function shippedCosts(nowMs: number): CostOf {
  const file = packageFile('config/models.yaml')
  const { catalogue } = readCatalogue(file, readText(file) ?? '')
  return (model, price) => {
    const [input, output] = [numberIn(price?.['input']), numberIn(price?.['output'])]
    if (input !== null || output !== null) return (input ?? 0) + (output ?? 0)
    const known = priceAt(catalogue?.find(model)?.price, nowMs)
    return known === undefined ? null : (known.input ?? 0) + (known.output ?? 0)
  }
}
