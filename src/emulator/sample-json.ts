/**
 * Generates a value that fits a JSON Schema: arguments of tool calls, structured output. Type names may be in
 * capitals, as Gemini writes them.
 */
import { arrayOf, numberOf, objectOf, stringOf } from '../chat/json.js'
import type { JsonObject, JsonValue } from '../chat/json.js'
import type { RandomSource } from './seeded-random.js'

/** Sources of sample values. */
export interface SampleContext {
  readonly random: RandomSource
  /** Used for the first free string: a place name from the prompt. */
  readonly hint: string | undefined
}

const DEPTH = 6

/** A value that fits `schema`; an empty object for an empty schema. */
export function sampleOf(schema: JsonValue | undefined, context: SampleContext): JsonValue {
  const root = objectOf(schema)
  return valueOf(root, { name: 'value', depth: 0 }, { ...context, root })
}

/** Like `sampleOf`, for schemas that must describe an object. */
export function sampleObject(schema: JsonValue | undefined, context: SampleContext): JsonObject {
  return objectOf(sampleOf(schema, context))
}

interface SchemaContext extends SampleContext {
  /** The whole schema, which references point into. */
  readonly root: JsonObject
}

/** The position of a value. */
interface Position {
  /** The name of the property; an array's items have that of the array. */
  readonly name: string
  readonly depth: number
}

function valueOf(given: JsonObject, position: Position, context: SchemaContext): JsonValue {
  const schema = resolve(context.root, given)
  if (schema.const !== undefined) {
    return schema.const
  }
  const choices = arrayOf(schema.enum)
  if (choices.length > 0) {
    return choices[context.random() % choices.length] ?? null
  }
  switch (typeOf(schema)) {
    case 'object':
      return objectFor(schema, position.depth, context)
    case 'array':
      return arrayFor(schema, position, context)
    case 'integer':
      return numberFor(schema, 1, context)
    case 'number':
      return numberFor(schema, 0.5, context)
    case 'boolean':
      return context.random() % 2 === 0
    case 'null':
      return null
    default:
      return textFor(schema, position.name, context)
  }
}

function resolve(root: JsonObject, given: JsonObject): JsonObject {
  let schema = given
  for (let hops = 0; hops < 8; hops += 1) {
    const ref = stringOf(schema.$ref)
    const branch = [...arrayOf(schema.anyOf), ...arrayOf(schema.oneOf)].find(
      (option) => objectOf(option).type !== 'null',
    )
    if (ref !== undefined) {
      schema = followed(root, ref)
    } else if (branch !== undefined) {
      schema = objectOf(branch)
    } else if (arrayOf(schema.allOf).length > 0) {
      const { allOf, ...rest } = schema
      schema = arrayOf(allOf).reduce<JsonObject>(
        (all, part) => merged(all, resolve(root, objectOf(part))),
        rest,
      )
    } else {
      return schema
    }
  }
  return {}
}

function merged(left: JsonObject, right: JsonObject): JsonObject {
  return {
    ...left,
    ...right,
    properties: { ...objectOf(left.properties), ...objectOf(right.properties) },
    required: [...arrayOf(left.required), ...arrayOf(right.required)],
  }
}

function followed(root: JsonObject, ref: string): JsonObject {
  let node: JsonValue | undefined = root
  for (const step of ref.replace(/^#\/?/, '').split('/')) {
    if (step !== '') {
      node = objectOf(node)[decodeURIComponent(step).replace(/~1/g, '/').replace(/~0/g, '~')]
    }
  }
  return objectOf(node)
}

function typeOf(schema: JsonObject): string {
  const types = isArrayOrOne(schema.type).map((type) => type.toLowerCase())
  const found = types.find((type) => type !== 'null') ?? types[0]
  if (found !== undefined) {
    return found
  }
  if (schema.items !== undefined || schema.prefixItems !== undefined) {
    return 'array'
  }
  const textual = ['format', 'pattern', 'minLength', 'maxLength'].some((key) => key in schema)
  return textual ? 'string' : 'object'
}

function isArrayOrOne(value: JsonValue | undefined): string[] {
  const list = Array.isArray(value) ? value : [value]
  return list.filter((item) => typeof item === 'string')
}

function objectFor(schema: JsonObject, depth: number, context: SchemaContext): JsonObject {
  const required = new Set(arrayOf(schema.required))
  const result: JsonObject = {}
  for (const [name, property] of Object.entries(objectOf(schema.properties))) {
    // A recursive schema ends where only optional properties are left.
    if (depth < DEPTH / 2 || (required.has(name) && depth < DEPTH * 4)) {
      result[name] = valueOf(objectOf(property), { name, depth: depth + 1 }, context)
    }
  }
  return result
}

function arrayFor(
  schema: JsonObject,
  { name, depth }: Position,
  context: SchemaContext,
): JsonValue[] {
  const least = numberOf(schema.minItems) ?? 0
  const most = numberOf(schema.maxItems) ?? Math.max(least, 2)
  const count = depth > DEPTH ? least : Math.max(least, Math.min(most, 2))
  const prefix = arrayOf(schema.prefixItems)
  return Array.from({ length: Math.max(count, prefix.length) }, (_unused, index) =>
    valueOf(objectOf(prefix[index] ?? schema.items), { name, depth: depth + 1 }, context),
  )
}

function numberFor(schema: JsonObject, grain: number, context: SampleContext): number {
  const step = numberOf(schema.multipleOf) ?? grain
  const above = numberOf(schema.exclusiveMinimum)
  const below = numberOf(schema.exclusiveMaximum)
  const low = numberOf(schema.minimum) ?? (above === undefined ? undefined : above + step)
  const high = numberOf(schema.maximum) ?? (below === undefined ? undefined : below - step)
  const from = low ?? Math.min(0, high ?? 0)
  const first = Math.ceil(from / step)
  const last = high === undefined ? first + 20 : Math.floor(high / step)
  return Number(((first + (context.random() % Math.max(1, last - first + 1))) * step).toFixed(6))
}

const FORMATS: Record<string, string> = {
  date: '2026-01-15',
  'date-time': '2026-01-15T09:30:00Z',
  time: '09:30:00Z',
  duration: 'PT30M',
  email: 'someone@example.com',
  hostname: 'example.com',
  ipv4: '192.0.2.1',
  ipv6: '2001:db8::1',
  uri: 'https://example.com/',
  url: 'https://example.com/',
  uuid: '123e4567-e89b-42d3-a456-426614174000',
}

function textFor(schema: JsonObject, name: string, context: SampleContext): string {
  const known = FORMATS[stringOf(schema.format) ?? '']
  if (known !== undefined) {
    return known
  }
  const least = numberOf(schema.minLength) ?? 0
  const most = numberOf(schema.maxLength) ?? Math.max(least, 200)
  const examples = arrayOf(schema.examples).filter((value) => typeof value === 'string')
  const text = examples[0] ?? context.hint ?? `emulated ${name.replace(/_/g, ' ')}`
  return text.padEnd(least, '.').slice(0, most)
}
