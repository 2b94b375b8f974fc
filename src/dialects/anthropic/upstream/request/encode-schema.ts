/**
 * Encodes JSON Schemas within the subset that the Messages API enforces.
 * Only relaxes a schema: keywords outside the subset are described in its description instead.
 */
import {
  arrayOf,
  isObject,
  objectOf,
  stringOf,
  type JsonObject,
  type JsonValue,
} from '../../../../chat/json.js'
import { SchemaBudget } from '../../../../chat/json-schema/schema-budget.js'
import { stringifyExact } from '../../../../wire/json/exact-numbers.js'
import { hasObjectRoot, rootObject } from './merge-schemas.js'
import { MAX_DEPTH, findRecursion } from './schema-refs.js'

/** A schema for `output_config.format` or a strict tool, or the reason why it cannot be one. */
export type StrictSchema = { schema: JsonObject } | { problem: string }

const FORMATS: ReadonlySet<string> = new Set([
  'date-time',
  'time',
  'date',
  'duration',
  'email',
  'hostname',
  'uri',
  'ipv4',
  'ipv6',
  'uuid',
])

const KEPT: ReadonlySet<string> = new Set([
  '$schema',
  '$id',
  '$ref',
  'type',
  'title',
  'description',
  'default',
  'examples',
  'enum',
  'const',
  'required',
])

/** Keywords whose value is a schema, a list of schemas, or a map of schemas. */
const LISTS: ReadonlySet<string> = new Set(['anyOf', 'allOf', 'prefixItems'])
const MAPS: ReadonlySet<string> = new Set(['properties', '$defs', 'definitions'])

const OPEN = 'additionalProperties must be false'

/**
 * The schema within the subset that Anthropic enforces: closed objects, `oneOf` as `anyOf`, and other
 * keywords described in the description. A recursive `$ref` or an open map cannot be expressed; the problem
 * names the keyword and its path. Does not change its argument. Throws `GatewayError(malformed_request)` if
 * the result exceeds the budget, which all schemas of a request share.
 */
export function strictSchema(schema: JsonObject, budget = new SchemaBudget()): StrictSchema {
  if (!hasObjectRoot(schema)) return { problem: 'the root must be an object' }
  const problem = findRecursion(schema)
  if (problem !== null) return { problem }
  const problems: string[] = []
  const root = rootObject(sanitize(schema, { path: '', depth: 0 }, { problems, budget }), budget)
  // An empty schema, or the merge of variants, may have no named property.
  if (openMap(root)) problems.push(OPEN)
  const first = problems[0]
  return first === undefined
    ? { schema: { ...root, additionalProperties: false } }
    : { problem: first }
}

/** The problems found so far, and the remaining budget. */
interface SchemaState {
  readonly problems: string[]
  readonly budget: SchemaBudget
}

/** The position of a schema within the root. */
interface SchemaPosition {
  readonly path: string
  readonly depth: number
}

function sanitize(
  schema: JsonObject,
  { path, depth }: SchemaPosition,
  state: SchemaState,
): JsonObject {
  const { problems, budget } = state
  budget.spend(1)
  if (depth > MAX_DEPTH) {
    problems.push(`${path || 'the schema'} is nested too deeply`)
    return {}
  }
  const entries: [string, JsonValue][] = []
  const notes: string[] = []
  const clean = (value: JsonValue | undefined, at: string): JsonValue =>
    isObject(value) ? sanitize(value, { path: at, depth: depth + 1 }, state) : (value ?? null)
  for (const [key, value] of Object.entries(schema)) {
    if (value === undefined || key === 'additionalProperties') continue
    const at = path === '' ? key : `${path}.${key}`
    const list = key === 'oneOf' ? 'anyOf' : key
    if (KEPT.has(key)) entries.push([key, value])
    else if (LISTS.has(list)) {
      entries.push([list, arrayOf(value).map((one, i) => clean(one, `${at}[${i}]`))])
    } else if (MAPS.has(key)) {
      const members = Object.entries(objectOf(value))
      entries.push([key, Object.fromEntries(members.map(([n, v]) => [n, clean(v, `${at}.${n}`)]))])
    } else if (key === 'items' && isObject(value)) entries.push([key, clean(value, at)])
    else if (key === 'format' && FORMATS.has(stringOf(value) ?? '')) entries.push([key, value])
    else notes.push(`${key}: ${stringifyExact(value)}`)
  }
  const result: JsonObject = Object.fromEntries(entries)
  if (isObjectSchema(schema)) {
    const open = openMap(schema)
    if (open) problems.push(path === '' ? OPEN : `${path}.${OPEN}`)
    result.additionalProperties = false
  }
  if (notes.length > 0) result.description = described(stringOf(schema.description), notes)
  return result
}

function isObjectSchema(schema: JsonObject): boolean {
  if (schema.type === 'object' || isObject(schema.properties)) return true
  return arrayOf(schema.type).includes('object')
}

/** True for an object without named properties (a map): closed, it could only be empty. */
function openMap(schema: JsonObject): boolean {
  const named = Object.keys(objectOf(schema.properties)).length > 0
  if (isObject(schema.additionalProperties)) return true
  if (isObject(schema.patternProperties) && !named) return true
  return !named && schema.additionalProperties !== false && schema.$ref === undefined
}

function described(description: string | undefined, notes: string[]): string {
  const words = `Must satisfy ${notes.join(', ')}.`
  return description === undefined || description === '' ? words : `${description}\n${words}`
}
