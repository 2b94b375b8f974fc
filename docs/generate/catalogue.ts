/**
 * Writes the models of the kept lists, `config/prices-*.json`, into the shipped catalogue; own entries stay.
 * `npm run catalogue` runs it after a list has changed, and Prettier after it. With paths of LiteLLM's own
 * JSON or of genai-prices' JSON as arguments, it first replaces the kept lists with those; with both, it also
 * writes the prices and limits of vendors that serve models of other makers, `config/prices-by-preset.json`.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { parse } from 'yaml'
import { arrayOf, isObject, objectOf, stringOf, type JsonObject } from '../../src/base/json.js'
import { planOf } from '../../src/cli/models-update.js'
import { editCatalogue } from '../../src/config/edit-catalogue.js'
import { presetLimitsOf, presetPricesOf } from './preset-prices.js'
import {
  isOfItsMaker,
  joinLists,
  sourceIn,
  type PriceSource,
  type SourceModel,
} from '../../src/config/price-sources.js'

const CATALOGUE = 'config/models.yaml'

function fileOf(name: string): string {
  return `config/prices-${name}.json`
}

function read(file: string): JsonObject {
  const value: unknown = JSON.parse(readFileSync(file, 'utf8'))
  return isObject(value) ? value : {}
}

function listIn(file: string): PriceSource {
  const source = sourceIn(JSON.parse(readFileSync(file, 'utf8')))
  if (source === null) throw new Error(`${file} has none of the known forms`)
  return source
}

const raw = process.argv.slice(2).map((file): unknown => JSON.parse(readFileSync(file, 'utf8')))
const [ofLitellm, ofGenai] = [raw.find(isObject), raw.find((value) => Array.isArray(value))]
if (ofLitellm !== undefined && ofGenai !== undefined) {
  const presets = presetPricesOf(ofLitellm, ofGenai)
  const catalogue = arrayOf(objectOf(parse(readFileSync(CATALOGUE, 'utf8')))['models']).map(objectOf)
  const limits = presetLimitsOf(presets, { litellm: ofLitellm, genai: ofGenai, catalogue })
  writeFileSync(
    'config/prices-by-preset.json',
    JSON.stringify({ source: 'litellm, genai-prices', as_of: today(), presets, limits }),
  )
}
for (const file of process.argv.slice(2)) {
  const { name, models: listed } = listIn(file)
  const models = [...listed].sort((one, other) => (one.id < other.id ? -1 : 1))
  const list = { source: name, from: read(fileOf(name))['from'], as_of: today(), models }
  writeFileSync(fileOf(name), JSON.stringify(list))
}
const asOf = stringOf(read(fileOf('litellm'))['as_of']) ?? today()
/** Models of endpoints that the gateway passes on unchanged, if at all: live sound, and Imagen's. */
const UNSERVED = /(?:^|-)(?:realtime|live)(?:-|$)|^imagen-/
/** Not retired, and with limits or another task: those without are no models for text. */
const isServed = (model: SourceModel): boolean => {
  const { id, shutdown, context_window: context, max_output_tokens: output, operations } = model
  if ((stringOf(shutdown) ?? '9999') <= asOf || UNSERVED.test(id)) return false
  return operations !== undefined || (context !== undefined && output !== undefined)
}
const models = joinLists(listIn(fileOf('litellm')), listIn(fileOf('genai-prices')))
  .filter(isServed)
  .filter(isOfItsMaker)
const text = readFileSync(CATALOGUE, 'utf8')
const entries = arrayOf(objectOf(parse(text))['models']).map(objectOf)
const { edits, added, changed, own } = planOf(entries, { name: 'lists', models })
const dated = edits.map(({ id, entry }) => ({ id, entry: entry === null ? null : { ...entry, as_of: asOf } }))
if (dated.length > 0) writeFileSync(CATALOGUE, editCatalogue(text, dated, asOf))
process.stdout.write(
  `${added.length} added, ${changed.length} facts changed, ${own.length} own entries differ\n`,
)

function today(): string {
  return new Date().toISOString().slice(0, 10)
}
