/**
 * Makes schemas state their types, for vendors that refuse one without: `type is not defined`. A union and a
 * reference have no keywords beside them then: `type should be defined in anyOf items instead of the parent
 * schema`.
 *
 * Source: Moonshot, "Moonshot Flavored JSON Schema" (MoonshotAI/walle), read 2026-11-30.
 */
import { arrayOf, isObject, objectOf, type JsonObject, type JsonValue } from '../../base/json.js'
import type { SchemaBudget } from '../chat/json-schema.js'

/** Keywords that may stand beside a union or a reference. */
const BESIDE: ReadonlySet<string> = new Set([
  'anyOf',
  '$ref',
  '$defs',
  'definitions',
  '$id',
  'description',
  'title',
])
/** Keywords without influence on the values that a schema allows. */
const ANNOTATIONS: ReadonlySet<string> = new Set(['$schema', '$comment', 'default', 'examples', 'deprecated'])
/** What a schema allows that states nothing. */
const ANY: readonly string[] = ['string', 'number', 'boolean', 'object', 'array', 'null']

/** Keywords that only values of one type have. */
const KEYWORDS: readonly (readonly [type: string, ...keywords: string[]])[] = [
  ['object', 'properties', 'required', 'additionalProperties', 'patternProperties', 'propertyNames'],
  ['array', 'items', 'prefixItems', 'minItems', 'maxItems', 'uniqueItems', 'contains'],
  ['string', 'pattern', 'format', 'minLength', 'maxLength'],
  ['number', 'minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
]

interface UnionContext {
  readonly budget: SchemaBudget
  /** Called if the result allows more values than the schema. */
  readonly report: () => void
}

/** A schema that allows every value. */
export const ANY_VALUE: JsonObject = { type: [...ANY] }

/** The schema with `$defs` instead of `definitions`, which references name, too. */
export function withOneMapOfDefinitions(schema: JsonObject): JsonObject {
  const { definitions, ...rest } = schema
  return isObject(definitions) ? { ...rest, $defs: { ...definitions, ...objectOf(rest['$defs']) } } : schema
}

/** The schema whose unions and references have no keyword beside them; its own schemas are not changed. */
export function withBareUnion(schema: JsonObject, context: UnionContext): JsonObject {
  const one = withOneUnion(schema, context)
  const { $ref, anyOf } = one
  if (typeof $ref === 'string') return bareReference(one, $ref, context)
  if (!Array.isArray(anyOf)) return one
  const shared = Object.fromEntries(
    Object.entries(one).filter(([key]) => !BESIDE.has(key) && !ANNOTATIONS.has(key)),
  )
  if (Object.keys(shared).length === 0) return one
  context.budget.spend(anyOf.length * (1 + Object.keys(objectOf(shared['properties'])).length))
  const kept = Object.entries(one).filter(([key]) => BESIDE.has(key))
  return {
    ...Object.fromEntries(kept),
    anyOf: anyOf.map((branch) => (isObject(branch) ? joined(shared, branch, context) : branch)),
  }
}

/** `oneOf` as `anyOf`, and a list of one schema that all values fulfil as its keywords. */
function withOneUnion(schema: JsonObject, { report }: UnionContext): JsonObject {
  const { oneOf, allOf, ...rest } = schema
  if (Array.isArray(oneOf) && schema['anyOf'] === undefined) {
    report()
    return { ...rest, ...(allOf !== undefined && { allOf }), anyOf: oneOf }
  }
  const [only] = arrayOf(allOf)
  if (arrayOf(allOf).length !== 1 || !isObject(only)) return schema
  const isApart = Object.keys(only).every((key) => rest[key] === undefined)
  return isApart && oneOf === undefined ? { ...rest, ...only } : schema
}

function bareReference(schema: JsonObject, $ref: string, { report }: UnionContext): JsonObject {
  const others = Object.keys(schema).filter((key) => !BESIDE.has(key) || key === 'anyOf')
  const wire = $ref.replace(/^#\/definitions\//, '#/$defs/')
  if (others.length === 0 && wire === $ref) return schema
  if (others.some((key) => !ANNOTATIONS.has(key))) report()
  const kept = Object.entries(schema).filter(([key]) => !others.includes(key))
  return { ...Object.fromEntries(kept), $ref: wire }
}

/** A branch of a union with the keywords that all of its branches share. */
function joined(shared: JsonObject, branch: JsonObject, { report }: UnionContext): JsonObject {
  if (branch['$ref'] !== undefined) {
    if (Object.keys(shared).some((key) => key !== 'type')) report()
    return branch
  }
  const out: JsonObject = { ...shared, ...branch }
  const [own, others] = [objectOf(branch['properties']), objectOf(shared['properties'])]
  const isApart = (key: string): boolean =>
    key === 'required' || key === 'type' || key === 'properties' || branch[key] === undefined
  if (!Object.keys(shared).every(isApart) || Object.keys(own).some((name) => others[name] !== undefined))
    report()
  if (shared['properties'] !== undefined) out['properties'] = { ...others, ...own }
  const required = [...arrayOf(shared['required']), ...arrayOf(branch['required'])]
  if (required.length > 0) out['required'] = [...new Set(required)]
  return out
}

/** The schema with its type, and without the null that its type excludes among its values. */
export function withType(schema: JsonObject): JsonObject {
  const { type, enum: values, nullable } = schema
  if (schema['$ref'] !== undefined || schema['anyOf'] !== undefined) return schema
  if (type === undefined) {
    const types = typesOf(schema)
    return { type: types.length === 1 ? (types[0] ?? null) : [...types], ...schema }
  }
  if (typeof type !== 'string') return schema
  if (nullable === true && type !== 'null') return { ...schema, type: [type, 'null'] }
  if (type === 'null' || !arrayOf(values).includes(null)) return schema
  return { ...schema, enum: arrayOf(values).filter((value) => value !== null) }
}

/** The types of the values that a schema without a type allows. */
function typesOf(schema: JsonObject): readonly string[] {
  const values = schema['const'] === undefined ? arrayOf(schema['enum']) : [schema['const']]
  if (values.length > 0) return [...new Set(values.map(typeOf))]
  for (const [type, ...keywords] of KEYWORDS)
    if (keywords.some((key) => schema[key] !== undefined)) return [type]
  const parts = arrayOf(schema['allOf']).map((part) => objectOf(part)['type'])
  const [first] = parts
  return typeof first === 'string' && parts.every((type) => type === first) ? [first] : ANY
}

function typeOf(value: JsonValue): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  return typeof value === 'number' && Number.isInteger(value) ? 'integer' : typeof value
}
