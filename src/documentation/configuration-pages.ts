/**
 * The pages made from the schemas: the editors' JSON Schema and `docs/reference/configuration.md`.
 * Writes no file; `generate.ts` does.
 */
import { z } from 'zod'
import { arrayOf, isObject, objectOf, stringOf, type JsonObject } from '../chat/json.js'
import { catalogueSchema } from '../config/schema/catalogue-schema.js'
import { PRESET_NAMES, PRESETS } from '../config/upstreams/presets.js'
import { fileSchema } from '../config/schema/schema.js'

const NOTICE = 'Generated from src/config by `npm run generate`; do not edit.'

/** `config/schema.json`: JSON Schema 2020-12 for editors. */
export function editorSchema(): string {
  const schema = z.toJSONSchema(fileSchema, {
    io: 'input',
    override: ({ jsonSchema }) => {
      const { type } = jsonSchema
      if (type !== 'integer' && type !== 'number' && type !== 'boolean') return
      // The loader also takes a placeholder that stands for a number or a truth value.
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
    ...section('`models.yaml`', '', catalogue),
  ].join('\n')
}

const INTRODUCTION = `
The gateway reads one YAML file: \`node dist/main.js serve --config config/gateway.yaml\`. \`config/gateway.example.yaml\`
has every key with a comment, \`config/schema.json\` lets an editor complete and check them, and
\`node dist/main.js check --config FILE\` gives the verdict that loading would, with file, line and column.

**Secrets.** A value may hold \`\${NAME}\`, an environment variable (or one of the file \`.env\` beside the configuration, if the process does not have it), or \`\${file:/path}\`, a file's content without
the white space around it; \`$\${\` is a plain \`\${\`. A variable that is not set, or is empty, is an error, except
in \`api_key\` and \`api_keys\`: an upstream without any of its keys is unconfigured, and a request that has no
other target is answered 503 with the name of the variable. A file that is missing or empty is an error everywhere. A number may come from a placeholder. Placeholders
are filled in after the YAML is parsed, so that no value can change the file's structure.

**Reload.** A change of the file, of its catalogue, of \`.env\` beside it or of a \`\${file:…}\` is in force within a second, as is a
SIGHUP. A change is a new generation, with the next number, or it is refused with its line and the one in
force stays. Requests keep the generation that they began with. Addresses, ports, \`workers\`,
\`log.level\`, \`telemetry.otlp\` and \`store\` are taken at the start only: a change of them is listed in \`waiting_for_restart\` of
\`/config\` and waits for a restart. \`sluice generations\` lists, compares and rolls back (how-to/change-configuration-live.md).

**Strictness.** At most 4 MiB, YAML 1.2, each key once, at most 100 aliases. An unknown key is an error, and so is a
key that this version knows but does not support: it says so rather than ignoring it.

Numbers have the unit that their key ends with: \`_ms\` milliseconds, \`_seconds\` seconds, \`_bytes\` bytes, \`_usd\` US
dollars.
`

const CATALOGUE_INTRODUCTION = `
What \`GET /v1/models\` lists, with the facts that translation and prices need. A fact that is left out is
"not known", and the gateway then does what is right for the newest models of the family. An id that is not
listed takes the facts of the longest id that it extends with \`-\` (a dated variant of it).

A change of the file is in force within a second, for requests that begin afterwards; ledger entries name the prices of
their cost (\`price_version\`). After an upgrade, \`sluice models diff\` shows what your own file has other than the shipped
one: added and removed models, prices, limits and other facts.
`

const PRESETS_INTRODUCTION = `
Any upstream that speaks the chat-completions format is six lines of YAML and no code. For these vendors
\`preset: NAME\` fills in what the file leaves out: the address, the form of the key and the quirks. Keys that
are dropped are reported as lost where a client sends them; \`quirks.keep\` leaves one alone. A preset whose
replies are rewritten gives clients one id, one \`usage\` chunk at the end and \`reasoning_content\` for thoughts.
`

/** The vendors and what their presets say. */
function presets(): string[] {
  const rows = PRESET_NAMES.map((name) => {
    const { title, baseUrl, keyHeader, quirks, embeddings, completions } = PRESETS[name]
    const { messages } = quirks
    const does = [
      ...quoted('drops', quirks.drop),
      ...arrows('renames', quirks.rename),
      ...quoted('drops in messages', messages.drop),
      ...arrows('renames in messages', messages.rename),
      ...arrows('says the role', messages.roles),
      ...(quirks.replies === 'rewrite' ? ['rewrites replies'] : []),
      ...quoted('drops in embeddings', embeddings?.drop ?? []),
      ...arrows('renames in embeddings', embeddings?.rename ?? {}),
      ...(completions === true ? ['has `/completions`'] : []),
    ]
    const address = baseUrl === null ? 'your own' : `\`${baseUrl}\``
    const key = keyHeader === null ? '' : `\`${keyHeader}\``
    return `| \`${name}\` | ${title} | ${address} | ${key} | ${does.join('; ')} |`
  })
  return [
    '## Presets',
    PRESETS_INTRODUCTION,
    '| preset | vendor | `base_url` | `key_header` | quirks |',
    '| --- | --- | --- | --- | --- |',
    ...rows,
    '',
  ]
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
  const lines = [
    `## ${title}`,
    '',
    '| key | type | default | meaning |',
    '| --- | --- | --- | --- |',
  ]
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

/** The map of keys inside a property, and how its path goes on. */
function innerOf(property: JsonObject): [JsonObject | null, string] {
  if (isObject(property['properties'])) return [property, '']
  const items = objectOf(property['items'])
  if (isObject(items['properties'])) return [items, '[]']
  const each = objectOf(property['additionalProperties'])
  return isObject(each['properties']) ? [each, '.NAME'] : [null, '']
}

function typeText(property: JsonObject): string {
  const options = arrayOf(property['anyOf'])
  if (options.length > 0) return options.map((option) => typeText(objectOf(option))).join(' or ')
  if (typeof property['const'] === 'string') return `\`${property['const']}\``
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
