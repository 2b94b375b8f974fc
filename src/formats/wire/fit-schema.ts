/**
 * Makes the JSON Schema of a tool fit for the vendor that gets it. A schema that the vendor takes is not
 * changed; a changed one allows the same values unless the change is reported.
 */
import { arrayOf, isObject, type JsonObject, type JsonValue } from '../chat/json.js'
import { SchemaBudget } from '../chat/json-schema.js'
import { rootObject } from './strict-schema.js'

/** What a vendor requires of the schema of a tool's parameters, beside draft 2020-12. */
export interface SchemaRules {
  /** Every array has `items`. */
  readonly arrayItems: boolean
  /** The root is an object without combinators. */
  readonly objectRoot: boolean
}

/** Receives the path of a schema that allows more values than before. */
interface SchemaLosses {
  drop(path: string, why: 'approximated'): void
}

/** Deeper than real schemas, and within the limit of the call stack. */
const MAX_DEPTH = 200

const MAPS: ReadonlySet<string> = new Set([
  'properties',
  'patternProperties',
  '$defs',
  'definitions',
  'dependentSchemas',
])
const LISTS: ReadonlySet<string> = new Set(['anyOf', 'oneOf', 'allOf', 'prefixItems', 'items'])
const SINGLE: ReadonlySet<string> = new Set([
  'items',
  'additionalItems',
  'additionalProperties',
  'not',
  'if',
  'then',
  'else',
  'contains',
  'propertyNames',
])

/** Keywords that OpenAI refuses at the root. */
const COMBINED = ['anyOf', 'oneOf', 'allOf', '$ref', 'enum', 'not'] as const

/** The schema of a tool's parameters for a vendor with these rules. */
export function fitSchema(schema: JsonObject, rules: SchemaRules, losses: SchemaLosses): JsonObject {
  const fitted = fit(schema, rules, 0)
  if (!rules.objectRoot) return fitted
  const { enum: values, not, ...rest } = rootObject(fitted, new SchemaBudget())
  if (COMBINED.some((key) => fitted[key] !== undefined)) losses.drop('tools.parameters', 'approximated')
  else if (values === undefined && not === undefined && fitted.type === 'object') return fitted
  for (const key of COMBINED) Reflect.deleteProperty(rest, key)
  return rest
}

function fit(schema: JsonObject, rules: SchemaRules, depth: number): JsonObject {
  if (depth > MAX_DEPTH) return schema
  let out: JsonObject | null = null
  for (const [key, value] of Object.entries(schema)) {
    const changed = fitMember(key, value, { rules, depth: depth + 1 })
    if (changed === value) continue
    out ??= { ...schema }
    out[key] = changed
  }
  return withItems(withCurrentKeywords(out ?? schema), rules)
}

function fitMember(
  key: string,
  value: JsonValue | undefined,
  { rules, depth }: { readonly rules: SchemaRules; readonly depth: number },
): JsonValue | undefined {
  const one = (each: JsonValue): JsonValue => (isObject(each) ? fit(each, rules, depth) : each)
  if (Array.isArray(value) && LISTS.has(key)) {
    const list = value.map(one)
    return list.some((each, at) => each !== value[at]) ? list : value
  }
  if (!isObject(value)) return value
  if (SINGLE.has(key)) return one(value)
  if (!MAPS.has(key)) return value
  const entries = Object.entries(value).map(([name, each]): [string, JsonValue] => [name, one(each ?? null)])
  return entries.some(([name, each]) => each !== value[name]) ? Object.fromEntries(entries) : value
}

/** The keywords of earlier drafts as those of draft 2020-12, with the same meaning. */
function withCurrentKeywords(schema: JsonObject): JsonObject {
  let out = schema
  for (const [bound, limit] of [
    ['exclusiveMinimum', 'minimum'],
    ['exclusiveMaximum', 'maximum'],
  ] as const) {
    const value = out[bound]
    if (typeof value !== 'boolean') continue
    const number = out[limit]
    const rest: JsonObject = Object.fromEntries(
      Object.entries(out).filter(([key]) => key !== bound && key !== limit),
    )
    const key = value ? bound : limit
    out = number === undefined ? rest : { ...rest, [key]: number }
  }
  const { items, additionalItems, ...rest } = out
  if (!Array.isArray(items)) return additionalItems === undefined ? out : withoutAdditional(out)
  const tuple: JsonObject = { ...rest, prefixItems: items }
  if (isObject(additionalItems)) return { ...tuple, items: additionalItems }
  if (additionalItems !== false) return tuple
  const maximum = typeof rest.maxItems === 'number' ? Math.min(rest.maxItems, items.length) : items.length
  return { ...tuple, maxItems: maximum }
}

/** `additionalItems` has no meaning without a list of items. */
function withoutAdditional(schema: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(schema).filter(([key]) => key !== 'additionalItems'))
}

function withItems(schema: JsonObject, { arrayItems }: SchemaRules): JsonObject {
  if (!arrayItems || schema.items !== undefined) return schema
  const isArray = schema.type === 'array' || arrayOf(schema.type).includes('array')
  return isArray ? { ...schema, items: {} } : schema
}
