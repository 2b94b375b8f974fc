/** `sluice models`: compares an operator's catalogue with the shipped one, and updates it from a list. */
import { loadConfig, readCatalogue, readText } from '../config/load-config.js'
import { snakeKeys } from '../config/masked-config.js'
import type { ConfigProblem } from '../config/config-problem.js'
import { packageFile } from '../config/package-file.js'
import { isObject, objectOf, type JsonValue, type JsonObject } from '../base/json.js'
import type { ModelFacts } from '../formats/chat/model-facts.js'
import { priceVersionOf } from '../ledger/price-version.js'
import { problemLines } from './problem-lines.js'
import { configOption, declare } from './command.js'
import { updateModels, section } from './models-update.js'

type ChangeKind = 'price' | 'limit' | 'fact'

/** A fact of a model that differs; `null` if the catalogue lacks it. */
interface FactChange {
  readonly model: string
  readonly kind: ChangeKind
  /** In the spelling of `models.yaml`: `price.long_context.input`. */
  readonly fact: string
  readonly shipped: JsonValue
  readonly own: JsonValue
}

/** The difference between the shipped catalogue and another one. */
interface CatalogueDiff {
  /** Ids that only the other catalogue has. */
  readonly added: readonly string[]
  /** Ids that only the shipped catalogue has. */
  readonly removed: readonly string[]
  readonly changed: readonly FactChange[]
}

const LIMITS = new Set(['context_window', 'max_output_tokens', 'max_output_tokens_whole'])

/** In file order: first the models of `own`, then those that it lacks. */
function catalogueDiff(shipped: readonly ModelFacts[], own: readonly ModelFacts[]): CatalogueDiff {
  const known = new Map(shipped.map((facts) => [facts.id, facts]))
  const ids = new Set(own.map(({ id }) => id))
  return {
    added: own.filter(({ id }) => !known.has(id)).map(({ id }) => id),
    removed: shipped.filter(({ id }) => !ids.has(id)).map(({ id }) => id),
    changed: own.flatMap((facts) => {
      const before = known.get(facts.id)
      return before === undefined ? [] : changesOf(before, facts)
    }),
  }
}

function changesOf(shipped: ModelFacts, own: ModelFacts): FactChange[] {
  const [before, after] = [leavesOf(shipped), leavesOf(own)]
  const names = new Set([...before.keys(), ...after.keys()])
  return [...names].flatMap((fact) => {
    const [one, other] = [before.get(fact) ?? null, after.get(fact) ?? null]
    if (JSON.stringify(one) === JSON.stringify(other)) return []
    return [{ model: own.id, kind: kindOf(fact), fact, shipped: one, own: other }]
  })
}

function kindOf(fact: string): ChangeKind {
  if (fact.startsWith('price.')) return 'price'
  return LIMITS.has(fact) ? 'limit' : 'fact'
}

/** The facts by path. Lists are one value. The release date is omitted: its default is the file's `as_of`. */
function leavesOf(facts: ModelFacts): Map<string, JsonValue> {
  const leaves = new Map<string, JsonValue>()
  gather(objectOf(snakeKeys(facts)), '', leaves)
  leaves.delete('id')
  leaves.delete('created_at_seconds')
  return leaves
}

function gather(object: JsonObject, path: string, leaves: Map<string, JsonValue>): void {
  for (const [name, value] of Object.entries(object)) {
    if (value === undefined) continue
    const inner = path === '' ? name : `${path}.${name}`
    if (isObject(value)) gather(value, inner, leaves)
    else leaves.set(inner, value)
  }
}

/** `sluice models`. */
export function command() {
  const models = declare({
    name: 'models',
    summary: 'compare the catalogue with the shipped one, update it from a list of prices',
    description: `
Compares the catalogue of the configuration (its key models) with the one that this version ships: models
that were added or removed, and prices, limits and other facts that differ. Run it after an upgrade to see
which new models and prices your own catalogue lacks.

'update' compares a catalogue with a list of models and prices: a file or an https URL in the form of
models.yaml, of LiteLLM or of genai-prices, or the lists of this version, genai-prices and litellm. It prints
a plan, with the change of each key's cost of the last seven days if a configuration is named, and writes the
file; a running gateway loads it as a new generation, which 'sluice generations rollback' undoes. Entries without source, or with source: own, stay. If
the configuration uses the shipped catalogue, models.yaml is written beside it.`,
    exitStatus:
      '0 success, 1 a file is not valid (with --exit-code also if there are differences), 2 wrong usage, or with --dry-run if there are differences.',
    example: 'sluice models diff --config config/gateway.yaml',
  })
  models
    .command('diff')
    .addOption(configOption())
    .option('--exit-code', 'exit 1 if there are differences')
    .option(
      '--json',
      'print one JSON object: { shipped_file, own_file, price_version, added, removed, changed: [{ model, kind, fact, shipped, own }] }',
    )
    .action(({ config, exitCode, json }) => {
      const compared = compare(config)
      if ('errors' in compared) {
        console.log(json ? JSON.stringify(compared) : problemLines(compared.errors))
        process.exitCode = 1
        return
      }
      console.log(json ? JSON.stringify(compared) : diffText(compared))
      const { added, removed, changed } = compared
      const isDifferent = added.length + removed.length + changed.length > 0
      process.exitCode = isDifferent && exitCode ? 1 : 0
    })
  models
    .command('update')
    .requiredOption('--from <SOURCE>', 'a file, an https URL, genai-prices or litellm')
    .option('--catalogue <FILE>', 'the catalogue (default: that of the configuration)')
    .addOption(configOption().makeOptionMandatory(false))
    .option('--dry-run', 'print the plan only')
    .option(
      '--json',
      'print one JSON object: { source, catalogue, added, removed, changed: [{ model, fact, before, after, from }], own: [{ model, differs }], keys: [{ key_id, from, before_usd, after_usd, before_unpriced, after_unpriced }], applied }',
    )
    .action(async (options) => {
      process.exitCode = await updateModels(options)
    })
  return models
}

interface Compared extends CatalogueDiff {
  readonly shipped_file: string
  readonly own_file: string
  /** The price version in the ledger entries of a gateway with this configuration. */
  readonly price_version: string
}

function compare(path: string): Compared | { readonly errors: readonly ConfigProblem[] } {
  const loaded = loadConfig(path, process.env)
  if (!loaded.ok) return { errors: loaded.errors }
  const shippedFile = packageFile('config/models.yaml')
  const shipped = readCatalogue(shippedFile, readText(shippedFile) ?? '')
  const { path: ownFile, text } = loaded.sources.catalogue
  const own = readCatalogue(ownFile, text)
  if (shipped.catalogue === null) return { errors: shipped.errors }
  if (own.catalogue === null) return { errors: own.errors }
  return {
    shipped_file: shippedFile,
    own_file: ownFile,
    price_version: priceVersionOf(loaded.catalogue.models, Object.values(loaded.config.upstreams)),
    ...catalogueDiff(shipped.catalogue.models, own.catalogue.models),
  }
}

const TITLES: readonly (readonly [ChangeKind, string])[] = [
  ['price', 'Prices that differ (USD per million tokens)'],
  ['limit', 'Limits that differ (tokens)'],
  ['fact', 'Other facts that differ'],
]

function diffText({ own_file: file, price_version, added, removed, changed }: Compared): string {
  const version = `Price version ${price_version}`
  if (added.length + removed.length + changed.length === 0) {
    return `${file}: the same models and facts as the shipped catalogue\n${version}`
  }
  const sections = TITLES.flatMap(([kind, title]) => {
    const rows = changed.filter((change) => change.kind === kind)
    return section(title, rows.map(changeText))
  })
  return [
    `${file}, compared with the shipped catalogue`,
    ...section('Only in this catalogue', added),
    ...section('Only in the shipped catalogue', removed),
    ...sections,
    '',
    version,
  ].join('\n')
}

function changeText({ model, fact, shipped, own }: FactChange): string {
  return `${model} ${fact}: shipped ${valueText(shipped)}, in this catalogue ${valueText(own)}`
}

function valueText(value: JsonValue): string {
  if (value === null) return 'unknown'
  return typeof value === 'string' ? value : JSON.stringify(value)
}
