/**
 * JSON Schemas as the Messages API takes them.
 * Only relaxes: what the API cannot enforce becomes words in the description, never a stricter rule.
 */
import {
  arrayOf,
  isObject,
  objectOf,
  stringOf,
  type JsonObject,
  type JsonValue,
} from '../../chat/json.js'

/** A schema for `output_config.format` or a strict tool, or what keeps it from being one. */
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

/** Deeper than any schema a person writes; also what keeps recursion off the stack's limit. */
const DEPTH_MAX = 200

/**
 * The schema within what Anthropic can enforce: closed objects, `oneOf` as `anyOf`, and every other
 * keyword as words in the description. A recursive `$ref` or an open map cannot be expressed; the
 * problem names the keyword and where it stands. Never changes its argument.
 */
export function strictSchema(schema: JsonObject): StrictSchema {
  if (!hasObjectRoot(schema)) return { problem: 'the root must be an object' }
  const problem = recursion(schema)
  if (problem !== null) return { problem }
  const problems: string[] = []
  const root = rootObject(sanitised(schema, '', 0, problems))
  // Variants that were merged, or nothing at all, may have left no member with a name.
  if (openMap(root)) problems.push(OPEN)
  const first = problems[0]
  return first === undefined
    ? { schema: { ...root, additionalProperties: false } }
    : { problem: first }
}

/**
 * A schema whose root is an object without combinators, as tools need. Variants at the root are
 * merged: all their properties, and only what every variant requires. A schema that already fits
 * is handed back as it is.
 */
export function rootObject(schema: JsonObject): JsonObject {
  return merged(schema, { root: schema, seen: new Set() }, 0)
}

/** True unless the schema says that its value is, or may be, something else than an object (or null). */
export function hasObjectRoot(schema: JsonObject): boolean {
  return isObjectOnly(schema, { root: schema, seen: new Set() })
}

function isObjectOnly(schema: JsonObject, following: Following): boolean {
  const { type, $ref, anyOf, oneOf } = schema
  if (type !== undefined && type !== 'object' && !arrayOf(type).includes('object')) return false
  const variants = [...arrayOf(anyOf), ...arrayOf(oneOf)].map(objectOf)
  if (typeof $ref === 'string' && !following.seen.has($ref)) {
    following.seen.add($ref)
    variants.push(referenced(following.root, $ref))
  }
  return variants.every((one) => one.type === 'null' || isObjectOnly(one, following))
}

/** Where references lead, and which have been followed: each is followed once, so cycles end. */
interface Following {
  readonly root: JsonObject
  readonly seen: Set<string>
}

function merged(schema: JsonObject, following: Following, depth: number): JsonObject {
  const { anyOf, oneOf, allOf, $ref, ...rest } = schema
  const combined = [anyOf, oneOf, allOf, $ref].some((one) => one !== undefined)
  if (!combined) return schema.type === 'object' ? schema : { ...rest, type: 'object' }
  const result: JsonObject = { ...rest, type: 'object' }
  if (depth > DEPTH_MAX) return result
  const { root, seen } = following
  const variants = (list: JsonValue | undefined): JsonObject[] =>
    arrayOf(list).map((one) => merged(objectOf(one), following, depth + 1))
  if (typeof $ref === 'string' && !seen.has($ref)) {
    seen.add($ref)
    include(result, [merged(referenced(root, $ref), following, depth + 1)], true)
  }
  include(result, variants(allOf), true)
  include(result, variants(anyOf), false)
  include(result, variants(oneOf), false)
  return result
}

/** Adds the variants' properties; `all` says that every one of them holds, not just one. */
function include(into: JsonObject, variants: JsonObject[], all: boolean): void {
  if (variants.length === 0) return
  const properties = new Map(Object.entries(objectOf(into.properties)))
  for (const variant of variants) {
    for (const [name, schema] of Object.entries(objectOf(variant.properties))) {
      const known = properties.get(name)
      const same = known === undefined || JSON.stringify(known) === JSON.stringify(schema)
      properties.set(name, same ? schema : { anyOf: [...alternatives(known), schema ?? {}] })
    }
  }
  const required = variants.map((variant) => arrayOf(variant.required))
  const [first = []] = required
  const added = all
    ? required.flat()
    : first.filter((name) => required.every((names) => names.includes(name)))
  into.properties = Object.fromEntries(properties)
  into.required = [...new Set([...arrayOf(into.required), ...added])]
}

/** A schema as the list of its variants. */
function alternatives(schema: JsonValue | undefined): JsonValue[] {
  const { anyOf, ...rest } = objectOf(schema)
  return Array.isArray(anyOf) && Object.keys(rest).length === 0 ? anyOf : [schema ?? {}]
}

/** What a local `$ref` points at; an empty schema where it points nowhere. */
function referenced(root: JsonObject, ref: string): JsonObject {
  if (!ref.startsWith('#/')) return {}
  let at: JsonValue | undefined = root
  for (const step of ref.slice(2).split('/')) {
    const name = step.replaceAll('~1', '/').replaceAll('~0', '~')
    at = isObject(at) && Object.hasOwn(at, name) ? at[name] : undefined
  }
  return objectOf(at)
}

function sanitised(
  schema: JsonObject,
  path: string,
  depth: number,
  problems: string[],
): JsonObject {
  if (depth > DEPTH_MAX) {
    problems.push(`${path || 'the schema'} is nested too deeply`)
    return {}
  }
  const entries: [string, JsonValue][] = []
  const notes: string[] = []
  const clean = (value: JsonValue | undefined, at: string): JsonValue =>
    isObject(value) ? sanitised(value, at, depth + 1, problems) : (value ?? null)
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
    else notes.push(`${key}: ${JSON.stringify(value)}`)
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

/** An object that is a map: its members are not named, so a closed object could only be empty. */
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

/**
 * The first `$ref` that leads back to itself, or null. Each reference is followed once, so a schema
 * with many paths to one definition costs no more than its size.
 */
function recursion(root: JsonObject): string | null {
  const settled = new Map<string, boolean>()
  const visit = (value: JsonValue | undefined, depth: number): string | null => {
    if (depth > DEPTH_MAX * 4) return 'the schema is nested too deeply'
    if (Array.isArray(value)) return firstOf(value, (one) => visit(one, depth + 1))
    if (!isObject(value)) return null
    const ref = stringOf(value.$ref)
    if (ref !== undefined) {
      if (settled.get(ref) === false) return `$ref ${ref} is recursive`
      if (settled.get(ref) === undefined) {
        settled.set(ref, false)
        const target = ref === '#' ? root : referenced(root, ref)
        const found = visit(target, depth + 1)
        if (found !== null) return found
        settled.set(ref, true)
      }
    }
    const members = Object.entries(value).filter(
      ([key]) => key !== '$defs' && key !== 'definitions',
    )
    return firstOf(members, ([, member]) => visit(member, depth + 1))
  }
  return visit(root, 0)
}

function firstOf<T>(items: readonly T[], find: (item: T) => string | null): string | null {
  for (const item of items) {
    const found = find(item)
    if (found !== null) return found
  }
  return null
}
