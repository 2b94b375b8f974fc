/**
 * Generates the JSON Schema for editors and `docs/reference/configuration.md` from the schemas of the
 * configuration.
 */
import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import * as z from 'zod'
import { arrayOf, isObject, objectOf, stringOf, type JsonObject } from '../../src/base/json.js'
import { catalogueSchema } from '../../src/config/schema/catalogue-schema.js'
import { shippedPrices } from '../../src/config/preset-prices.js'
import { PRESET_NAMES, PRESETS, type PresetName } from '../../src/config/presets.js'
import { fileSchema } from '../../src/config/schema/config-file-schema.js'

const NOTICE = 'Generated from src/config by `npm run generate`; do not edit.'

/** `config/schema.json`: JSON Schema 2020-12 for editors. */
export function editorSchema(): string {
  const schema = z.toJSONSchema(fileSchema, {
    io: 'input',
    override: ({ jsonSchema }) => {
      const { type } = jsonSchema
      if (type !== 'integer' && type !== 'number' && type !== 'boolean') return
      // The loader also accepts a placeholder for a number or a boolean.
      jsonSchema.type = [type, 'string']
      jsonSchema.pattern = '^\\$\\{.+\\}$'
    },
  })
  const body = JSON.stringify({ $comment: NOTICE, title: 'Sluice', ...schema }, null, 2)
  return `${body.replace('{\n  ', '{ ')}\n`
}

/** `docs/reference/configuration.md`: every key with its type, default and meaning. */
export function configurationPage(): string {
  const file = objectOf(z.toJSONSchema(fileSchema, { io: 'input' }))
  const catalogue = objectOf(z.toJSONSchema(catalogueSchema, { io: 'input' }))
  return [
    `<!-- ${NOTICE} -->`,
    '',
    '# Configuration',
    '',
    INTRODUCTION.trim(),
    '',
    ...section('The file', '', file),
    ...presets(),
    '# The catalogue',
    '',
    CATALOGUE_INTRODUCTION.trim(),
    '',
    ...catalogueFigures(),
    ...section('`models.yaml`', '', catalogue),
  ].join('\n')
}

const INTRODUCTION = `
The gateway reads one YAML file: \`node dist/main.js serve --config config/gateway.yaml\`. \`config/gateway.example.yaml\`
has every key with a comment, \`config/schema.json\` lets an editor complete and check them, and
\`node dist/main.js check --config FILE\` validates a file as loading does, and reports errors with file, line and column.

 **Secrets.** A value may contain \`\${NAME}\`, an environment variable (or, if the process does not
have it, a variable of the file \`.env\` beside the configuration), or \`\${file:/path}\`, the content of a file without
surrounding white space; \`$\${\` is a literal \`\${\`. An unset or empty variable is an error, except in \`api_key\` and
\`api_keys\`: an upstream without any key is unconfigured, and a request without another target gets 503 with the name of
the variable. A missing or empty file is always an error. A placeholder may also contain a number. Placeholders are
replaced after the YAML is parsed, so that no value can change the file's structure.

 **Reload.** A change of the file, of its catalogue, of \`.env\` beside it or of a \`\${file:…}\` takes
effect within a second, as
does SIGHUP. A valid change becomes a new generation; an invalid one is refused with its line, and the generation in force
stays. Requests keep the generation that they started with. Addresses, ports, \`workers\`, \`log.level\`, \`telemetry.otlp\`,
\`store\` and a few others are read at the start only: changes of them need a restart and are listed in
\`waiting_for_restart\` of \`/config\`. \`sluice generations\` lists, compares and rolls back
(how-to/change-configuration-live.md).

 **Strictness.** At most 4 MiB, YAML 1.2, each key once, at most 100 aliases. Unknown keys and
unsupported keys are errors.

The end of a key is the unit of its number: \`_ms\` milliseconds, \`_seconds\` seconds, \`_bytes\` bytes, \`_usd\` US dollars.
`

const CATALOGUE_INTRODUCTION = `
The models of \`GET /v1/models\`, with the facts that translation and prices need. An omitted fact is unknown; the gateway
then treats the model like the newest models of its family. An unlisted id has the facts of the longest listed id that it
extends with \`-\` (a dated variant of it).

A change of the file takes effect within a second, for requests that start afterwards; ledger entries name the version of
their prices (\`price_version\`). After an upgrade, \`sluice models diff\` shows the differences between your file and the
shipped one: added and removed models, prices, limits and other facts.
`

const PRESETS_INTRODUCTION = `
An upstream with the chat completions format needs six lines of YAML and no code. For these vendors one is enough:
\`groq: { preset: groq }\` sets the address, the variable and the form of the key, and the quirks, unless the file sets
them. Of several variables the first one that is set holds the key. With a \`base_url\` of the file, and for local
servers, the key is optional. Dropped fields of a request are reported
as lost; \`quirks.keep\` keeps one. A preset that rewrites replies gives clients one id, one \`usage\` chunk at the end and
\`reasoning_content\` for thoughts.

Rules named LiteLLM are those of LiteLLM 1.110.2 for the vendor; \`sluice doctor UPSTREAM\` tries what a live upstream
accepts. "Shipped prices" is the number of models whose price with this vendor the package has
(\`config/prices-by-preset.json\`); those under \`prices\` of the upstream come first, those of the catalogue last. Most
have a context window and a longest reply there too, which hold where the catalogue and \`models\` have none.
`

/** The number of models of each maker in the shipped catalogue, and of those with each kind of price. */
function catalogueFigures(): string[] {
  const { models } = objectOf(parse(readFileSync('config/models.yaml', 'utf8')))
  const byFamily = new Map<string, number[]>()
  for (const model of arrayOf(models).filter(isObject)) {
    const { price } = model
    const held = objectOf(Array.isArray(price) ? price.at(-1) : price)
    const tiers = objectOf(held['service_tiers'])
    const has = [
      ...[price !== undefined, 'cache_read' in held, 'batch' in tiers, 'flex' in tiers, 'priority' in tiers],
      ...['long_context' in held, 'input_audio' in held || 'output_audio' in held, 'calls' in held],
    ]
    const family = stringOf(model['family']) ?? ''
    const counts = byFamily.get(family) ?? [0, ...has.map(() => 0)]
    byFamily.set(
      family,
      [true, ...has].map((each, at) => (counts[at] ?? 0) + Number(each)),
    )
  }
  const rows = [...byFamily].sort(([one], [other]) => (one < other ? -1 : 1))
  const all = rows.reduce<number[]>((sum, [, row]) => row.map((each, at) => each + (sum[at] ?? 0)), [])
  return [
    'Models of the shipped catalogue, and how many of them have each kind of price:',
    '',
    '| maker | models | price | cache | batch | flex | priority | long prompts | sound | calls of tools |',
    `|${' --- |'.repeat(10)}`,
    ...[...rows, ['all', all] as const].map(([family, counts]) => `| ${family} | ${counts.join(' | ')} |`),
    '',
  ]
}

/** Presets whose tests read replies recorded from the vendor; those of others have documented bytes. */
const RECORDED: ReadonlySet<PresetName> = new Set([
  ...(['azure', 'openrouter', 'groq', 'mistral', 'deepseek'] as const),
  ...(['openai', 'anthropic', 'gemini'] as const),
])
/** Presets of vendors that make their models, whose prices are in the catalogue. */
const MAKERS: ReadonlySet<PresetName> = new Set([
  ...(['azure', 'mistral', 'deepseek', 'xai', 'openai', 'anthropic', 'gemini', 'cohere'] as const),
  ...(['moonshot', 'zai', 'minimax', 'dashscope'] as const),
])

/** The vendors and their presets. */
function presets(): string[] {
  const rows = PRESET_NAMES.map((name) => {
    const { title, baseUrl, variables, keyHeader, quirks, embeddings, completions, dialect, rules } =
      PRESETS[name]
    const { messages } = quirks
    const does = [
      ...(dialect === undefined ? [] : [`dialect \`${dialect}\``]),
      ...setValues(quirks.set),
      ...quoted('drops', quirks.drop),
      ...arrows('renames', quirks.rename),
      ...quoted('drops in messages', messages.drop),
      ...arrows('renames in messages', messages.rename),
      ...arrows('sends the role', messages.roles),
      ...(quirks.replies === 'rewrite' ? ['rewrites replies'] : []),
      ...quoted('drops in embeddings', embeddings?.drop ?? []),
      ...arrows('renames in embeddings', embeddings?.rename ?? {}),
      ...(completions === true ? ['has `/completions`'] : []),
    ]
    const address = baseUrl === null ? 'your own' : `\`${baseUrl}\``
    const named = variables.map((variable) => `\`${variable}\``).join(' or ')
    const key = keyHeader === null ? named : `${named} in \`${keyHeader}\``
    const replies = RECORDED.has(name) ? 'recorded' : 'documented'
    const priced = Object.keys(shippedPrices(name)).length
    const prices = MAKERS.has(name) ? 'catalogue' : priced === 0 ? '' : String(priced)
    return `| \`${name}\` | ${title} | ${address} | ${key} | ${does.join('; ')} | ${rules} | ${replies} | ${prices} |`
  })
  return [
    '## Presets',
    PRESETS_INTRODUCTION,
    '| preset | vendor | `base_url` | variable of the key | differs by | where the rules are from | tested with replies | shipped prices |',
    '| --- | --- | --- | --- | --- | --- | --- | --- |',
    ...rows,
    '',
  ]
}

function setValues(values: Readonly<Record<string, unknown>>): string[] {
  const texts = Object.entries(values).map(([key, value]) => `\`${key}: ${JSON.stringify(value)}\``)
  return texts.length === 0 ? [] : [`sets ${texts.join(', ')}`]
}

function quoted(verb: string, keys: readonly string[]): string[] {
  return keys.length === 0 ? [] : [`${verb} ${keys.map((key) => `\`${key}\``).join(', ')}`]
}

function arrows(verb: string, pairs: Readonly<Record<string, string>>): string[] {
  const texts = Object.entries(pairs).map(([from, to]) => `\`${from}\` as \`${to}\``)
  return texts.length === 0 ? [] : [`${verb} ${texts.join(', ')}`]
}

/** One table for a map of keys, then one for each map below it. */
function section(title: string, path: string, schema: JsonObject): string[] {
  const required = new Set(arrayOf(schema['required']))
  const lines = [`## ${title}`, '', '| key | type | default | meaning |', '| --- | --- | --- | --- |']
  const below: string[] = []
  for (const [key, value] of Object.entries(objectOf(schema['properties']))) {
    const property = objectOf(value)
    const fallback = property['default']
    const shownDefault = required.has(key)
      ? 'required'
      : fallback === undefined || (isObject(fallback) && Object.keys(fallback).length === 0)
        ? ''
        : `\`${JSON.stringify(fallback).replaceAll('"', '')}\``
    const meaning = stringOf(property['description']) ?? ''
    lines.push(`| \`${key}\` | ${typeText(property)} | ${shownDefault} | ${meaning} |`)
    const [inner, suffix] = innerOf(property)
    if (inner === null) continue
    const innerPath = `${path}${key}${suffix}`
    below.push(...section(`\`${innerPath}\``, `${innerPath}.`, inner))
  }
  return [...lines, '', ...below]
}

/** The map of keys inside a property, and the rest of its path. */
function innerOf(property: JsonObject): [JsonObject | null, string] {
  const own = usualForm(property)
  if (isObject(own['properties'])) return [own, '']
  const items = objectOf(property['items'])
  if (isObject(items['properties'])) return [items, '[]']
  const each = usualForm(objectOf(property['additionalProperties']))
  return isObject(each['properties']) ? [each, '.NAME'] : [null, '']
}

/** The first of several forms of a value. */
function usualForm(property: JsonObject): JsonObject {
  const [first] = arrayOf(property['anyOf'])
  return first === undefined ? property : objectOf(first)
}

function typeText(property: JsonObject): string {
  const options = arrayOf(property['anyOf'])
  if (options.length > 0) return options.map((option) => typeText(objectOf(option))).join(' or ')
  const fixed = property['const']
  if (typeof fixed === 'string' || typeof fixed === 'number') return `\`${fixed}\``
  const values = arrayOf(property['enum'])
  if (values.length > 0)
    return values.map((value) => `\`${JSON.stringify(value).replaceAll('"', '')}\``).join(', ')
  const { type, minimum, maximum } = property
  if (type === 'array') return `list of ${typeText(objectOf(property['items']))}`
  if (type === 'object') return isObject(property['propertyNames']) ? 'map of names' : 'map of keys'
  if (type === 'integer' || type === 'number') {
    const noun = type === 'integer' ? 'whole number' : 'number'
    if (typeof minimum !== 'number' || typeof maximum !== 'number') return noun
    return `${noun}, ${grouped(minimum)} to ${grouped(maximum)}`
  }
  if (type === 'boolean') return 'true or false'
  return type === 'string' ? 'text' : 'any value'
}

function grouped(value: number): string {
  return value.toLocaleString('en-US')
}
