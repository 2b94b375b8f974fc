/** `sluice models diff`: compares an operator's catalogue with the shipped one. No side effects. */
import type { JsonValue } from '../../chat/json.js'
import { loadConfig, readCatalogue, readText } from '../../config/load-config.js'
import type { ConfigProblem } from '../../config/problem.js'
import { packageFile } from '../../files/package-file.js'
import { priceVersionOf } from '../../ledger/price-version.js'
import { problemLines } from '../check/check.js'
import { parseAction } from '../parse-action.js'
import { type Command } from '../command.js'
import { configPath } from '../config-option.js'
import {
  catalogueDiff,
  type CatalogueDiff,
  type ChangeKind,
  type FactChange,
} from './catalogue-diff.js'

/** `sluice models`. */
export const command: Command = {
  name: 'models',
  summary: 'compare the catalogue with the shipped one',
  help: `
Usage: sluice models diff [--config FILE] [--exit-code] [--json]

Compares the catalogue of the configuration (its key models) with the one that this version ships: models
that were added or removed, and prices, limits and other facts that differ. Run it after an upgrade to see
which new models and prices your own catalogue lacks.

Options:
  --config FILE   the configuration file (default: the variable SLUICE_CONFIG)
  --exit-code     exit 1 if there are differences
  --json          print one JSON object: { shipped_file, own_file, price_version, added, removed,
                  changed: [{ model, kind, fact, shipped, own }] }

Exit status: 0 success, 1 a file is not valid (with --exit-code also if there are differences), 2 wrong usage.

Example:
  sluice models diff --config config/gateway.yaml
`,
  run(argv) {
    const { values } = parseAction('models', argv, {
      options: {
        config: { type: 'string' },
        'exit-code': { type: 'boolean' },
        json: { type: 'boolean' },
      },
      allowed: { diff: ['config', 'exit-code', 'json'] },
    })
    const isJson = values.json === true
    const compared = compare(configPath(values.config, 'sluice models diff'))
    if ('errors' in compared) {
      console.log(isJson ? JSON.stringify(compared) : problemLines(compared.errors))
      return Promise.resolve(1)
    }
    console.log(isJson ? JSON.stringify(compared) : diffText(compared))
    const { added, removed, changed } = compared
    const isDifferent = added.length + removed.length + changed.length > 0
    return Promise.resolve(isDifferent && values['exit-code'] === true ? 1 : 0)
  },
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

function section(title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : ['', title, ...lines.map((line) => `  ${line}`)]
}

function changeText({ model, fact, shipped, own }: FactChange): string {
  return `${model} ${fact}: shipped ${valueText(shipped)}, in this catalogue ${valueText(own)}`
}

function valueText(value: JsonValue): string {
  if (value === null) return 'unknown'
  return typeof value === 'string' ? value : JSON.stringify(value)
}
