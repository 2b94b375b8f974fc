/**
 * Goal (I-136): blank, null, NaN, infinite, negative, huge and wrong-typed values in every field are
 * accepted or refused with a position; loading never throws, and a value of a wrong type is never
 * accepted.
 * Method: a file with every key is generated from the schema; each path in turn gets each value. Each day has
 * a twentieth of these pairs, the long suite all.
 */
import t from 'tap'
import * as z from 'zod'
import { fileSchema } from '../../src/config/schema/config-file-schema.js'
import { catalogueSchema } from '../../src/config/schema/catalogue-schema.js'
import { isObject, objectOf, type JsonObject, type JsonValue } from '../../src/base/json.js'
import { isToday, ofToday, SHARE } from '../helpers/long-suite.js'
import { GOOD, loadText } from './sample.js'

/** Returns a JSON value with every key of a schema. */
function everything(schema: JsonObject): JsonValue {
  const options = schema['anyOf']
  if (Array.isArray(options)) return everything(objectOf(options.at(-1)))
  if (Array.isArray(schema['enum'])) return schema['enum'][0] ?? null
  switch (schema['type']) {
    case 'object': {
      const own = Object.entries(objectOf(schema['properties'])).map(([key, value]) => {
        return [key, everything(objectOf(value))] as const
      })
      const each = schema['additionalProperties']
      return Object.fromEntries(isObject(each) ? [...own, ['a', everything(each)]] : own)
    }
    case 'array':
      return [everything(objectOf(schema['items']))]
    case 'integer':
    case 'number':
      return typeof schema['minimum'] === 'number' ? schema['minimum'] : 1
    case 'boolean':
      return true
    default:
      return 'a'
  }
}

type Path = readonly (string | number)[]

/** Returns every path of a value, including those of its maps and lists. */
function pathsOf(value: JsonValue | undefined, path: Path = []): Path[] {
  if (Array.isArray(value)) {
    return [path, ...value.flatMap((item, index) => pathsOf(item, [...path, index]))]
  }
  if (!isObject(value)) return [path]
  return [path, ...Object.entries(value).flatMap(([key, item]) => pathsOf(item, [...path, key]))]
}

/** Returns JSON (which is also YAML) of a value, with a text in place of the value at one path. */
function textWith(value: JsonValue | undefined, path: Path, replacement: string): string {
  if (path.length === 0) return replacement
  const [step, ...rest] = path
  if (Array.isArray(value)) {
    const items = value.map((item, index) =>
      index === step ? textWith(item, rest, replacement) : JSON.stringify(item),
    )
    return `[${items.join(', ')}]`
  }
  const entries = Object.entries(objectOf(value)).map(([key, item]) => {
    const text = key === step ? textWith(item, rest, replacement) : JSON.stringify(item)
    return `${JSON.stringify(key)}: ${text}`
  })
  return `{${entries.join(', ')}}`
}

/** The part of the file that has the path: loading the rest again for each value would take minutes. */
function sectionOf(whole: JsonValue, [key]: Path): JsonValue {
  return typeof key === 'string' ? { [key]: objectOf(whole)[key] ?? null } : whole
}

const ODD = [
  ...['', 'null', '~', '""', '" "', '.nan', '.inf', '-.inf', '-1', '0', '-0', '1e308', '-1e308'],
  ...['1.5', '9007199254740993', 'true', '[]', '{}', '[null]', '{a: null}', '[[]]', '"\\0"'],
  ...['"${"', '"${X}"', '"${file:/x}"', '0x10', '0o7', '2026-01-01', '!!binary aGk=', '"\\uD800"'],
]

const file = objectOf(z.toJSONSchema(fileSchema, { io: 'input' }))
const catalogue = objectOf(z.toJSONSchema(catalogueSchema, { io: 'input' }))

void t.test('I-136: no value in a field of the file causes an exception', (t) => {
  const whole = everything(file)
  const paths = pathsOf(whole)
  t.ok(paths.length > 80, `${paths.length} paths`)
  const pairs = paths.flatMap((path) => ODD.map((odd) => ({ path, odd })))
  const chosen = [...ofToday(pairs)]
  for (const { path, odd } of chosen) {
    const loaded = loadText(textWith(sectionOf(whole, path), path, odd))
    if (loaded.ok) throw new Error(`${path.join('.')} = ${odd} was accepted`)
    for (const problem of loaded.errors) {
      if (problem.line < 1 || problem.column < 1 || problem.message === '') {
        throw new Error(`${path.join('.')} = ${odd}: ${JSON.stringify(problem)}`)
      }
    }
  }
  t.ok(chosen.length > 200, 'the file has keys of later versions, so each is refused')
  t.end()
})

/** Members of requests, and settings of Claude Code, have any type. */
const ANY_TYPE = new Set(['set', 'params', 'claude_code_settings'])

/** Values of another type that are right: settings of ClickHouse, and parameters of requests. */
const ALSO_RIGHT =
  /^archive\.settings\.a = (?:-1|true|"x")$|\.defaults\.(?:(?:seed|presence_penalty|frequency_penalty) = -1|stop = "x")$/

void t.test('I-136: a wrong type in a field is always reported', (t) => {
  const whole = everything(file)
  const kinds = new Map<string, string[]>([
    ['string', ['null', '.nan', '-1', 'true', '[]', '{}']],
    ['number', ['null', '.nan', '.inf', '-1', '1e308', '"x"', 'true', '[]', '{}']],
    ['boolean', ['null', '.nan', '-1', '"x"', '[]', '{}']],
    ['object', ['null', '.nan', '-1', '"x"', 'true']],
  ])
  const missed: string[] = []
  let tried = 0
  for (const path of pathsOf(whole)) {
    const names = path.map(String)
    if (names.some((name) => ANY_TYPE.has(name))) continue
    const at = path.reduce<JsonValue | undefined>(
      (value, step) => (Array.isArray(value) ? value[Number(step)] : objectOf(value)[String(step)]),
      whole,
    )
    for (const odd of kinds.get(typeof at) ?? []) {
      if (!isToday(tried++)) continue
      // An entry is a map or an id.
      if (path.at(-2) === 'models' && odd === '"x"') continue
      const loaded = loadText(textWith(sectionOf(whole, path), path, odd))
      const name = path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${step}`))
      const expected = name.join('').replace(/^\./, '')
      const found = loaded.ok ? [] : loaded.errors.map((problem) => problem.path)
      // A map in place of a text may be the other form of the setting, whose keys are then missing.
      const isFound = found.some((path) => path === expected || path.startsWith(`${expected}.`))
      if (!isFound && !ALSO_RIGHT.test(`${expected} = ${odd}`))
        missed.push(`${expected} = ${odd}: only ${found.join(', ')}`)
    }
  }
  t.strictSame(missed, [])
  t.end()
})

void t.test('I-136: no value in a field of the catalogue causes an exception', (t) => {
  const whole = everything(catalogue)
  let tried = 0
  let refused = 0
  for (const path of pathsOf(whole)) {
    for (const odd of ODD) {
      if (!isToday(tried++)) continue
      const models = textWith(whole, path, odd)
      const loaded = loadText(GOOD, {}, { '/etc/sluice/models.yaml': models })
      if (!loaded.ok) refused += 1
    }
  }
  t.ok(refused > 500 * SHARE, `${refused} refused`)
  t.end()
})
