/**
 * Encodes JSON Schemas within the subset that Anthropic's Messages API and Bedrock's Converse enforce.
 * Only relaxes a schema: keywords outside the subset are described in its description instead.
 */
import { referenced, SchemaBudget } from '../chat/json-schema.js'
import { arrayOf, isObject, objectOf, stringOf, type JsonObject, type JsonValue } from '../../base/json.js'
import { stringifyExact } from './json/exact-numbers.js'

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

/** Keywords without influence on the values that a schema allows. */
const ANNOTATIONS: ReadonlySet<string> = new Set([
  '$anchor',
  '$comment',
  'deprecated',
  'readOnly',
  'writeOnly',
])

const OPEN = 'additionalProperties must be false'

/**
 * The schema within the subset that Anthropic enforces: closed objects, `oneOf` as `anyOf`, and other
 * keywords described in the description. A recursive `$ref` or an open map cannot be expressed; the problem
 * names the keyword and its path. Does not change its argument. `lost` is called for each keyword that is
 * only described, or allows more values. Throws `GatewayError(malformed_request)` if the result exceeds the
 * budget, which all schemas of a request share.
 */
export function strictSchema(
  schema: JsonObject,
  budget = new SchemaBudget(),
  lost: () => void = () => undefined,
): StrictSchema {
  if (!hasObjectRoot(schema)) return { problem: 'the root must be an object' }
  const problem = findRecursion(schema)
  if (problem !== null) return { problem }
  const problems: string[] = []
  const root = rootObject(sanitize(schema, { path: '', depth: 0 }, { problems, budget, lost }), budget)
  // An empty schema, or the merge of variants, may have no named property.
  if (openMap(root)) problems.push(OPEN)
  const first = problems[0]
  return first === undefined ? { schema: { ...root, additionalProperties: false } } : { problem: first }
}

/** The problems found so far, and the remaining budget. */
interface SchemaState {
  readonly problems: string[]
  readonly budget: SchemaBudget
  readonly lost: () => void
}

/** The position of a schema within the root. */
interface SchemaPosition {
  readonly path: string
  readonly depth: number
}

function sanitize(schema: JsonObject, { path, depth }: SchemaPosition, state: SchemaState): JsonObject {
  const { problems, budget, lost } = state
  budget.spend(1)
  if (depth > MAX_DEPTH) {
    problems.push(`${path || 'the schema'} is nested too deeply`)
    return {}
  }
  const result: JsonObject = {}
  const notes: string[] = []
  const clean = (value: JsonValue | undefined, at: string): JsonValue =>
    isObject(value) ? sanitize(value, { path: at, depth: depth + 1 }, state) : (value ?? null)
  for (const [key, value] of Object.entries(schema)) {
    if (value === undefined || key === 'additionalProperties') continue
    const at = path === '' ? key : `${path}.${key}`
    const list = key === 'oneOf' ? 'anyOf' : key
    if (list !== key) lost()
    if (KEPT.has(key)) result[key] = value
    else if (LISTS.has(list)) result[list] = arrayOf(value).map((one, i) => clean(one, `${at}[${i}]`))
    else if (MAPS.has(key)) {
      const members = Object.entries(objectOf(value))
      result[key] = Object.fromEntries(members.map(([n, v]) => [n, clean(v, `${at}.${n}`)]))
    } else if (key === 'items' && isObject(value)) result[key] = clean(value, at)
    else if (key === 'format' && FORMATS.has(stringOf(value) ?? '')) result[key] = value
    else {
      notes.push(`${key}: ${stringifyExact(value)}`)
      if (!ANNOTATIONS.has(key)) lost()
    }
  }
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

/** Characters of JSON text that take about as long to serialize as one node of a schema to rewrite. */
const CHARS_PER_PART = 64

/**
 * A schema whose root is an object without combinators, as tools require. Variants at the root are merged:
 * all their properties, of which those are required that every variant requires. Returns a schema that
 * already complies unchanged. Throws like `strictSchema`.
 */
export function rootObject(schema: JsonObject, budget = new SchemaBudget()): JsonObject {
  return merged(schema, { root: schema, seen: new Set(), budget }, 0)
}

/** References that are followed to find out whether the root is an object; no useful schema has more. */
const MAX_ROOT_REFS = 1_000

/** True if the schema allows no value other than an object or null, as far as its types state. */
export function hasObjectRoot(schema: JsonObject): boolean {
  const seen = new Set<string>()
  const pending = [schema]
  // A loop, not recursion: a chain of thousands of references would overflow the stack.
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const { type, $ref, anyOf, oneOf } = next
    if (type !== undefined && type !== 'object' && !arrayOf(type).includes('object')) return false
    for (const list of [anyOf, oneOf]) {
      for (const one of arrayOf(list).map(objectOf)) if (one.type !== 'null') pending.push(one)
    }
    if (typeof $ref !== 'string' || seen.has($ref)) continue
    if (seen.size === MAX_ROOT_REFS) return false
    seen.add($ref)
    const target = resolveRef(schema, $ref)
    if (target.type !== 'null') pending.push(target)
  }
  return true
}

/** The root of the references, and those already followed: each is followed once, so cycles end. */
interface RefContext {
  readonly root: JsonObject
  readonly seen: Set<string>
  readonly budget: SchemaBudget
}

function merged(schema: JsonObject, context: RefContext, depth: number): JsonObject {
  const { anyOf, oneOf, allOf, $ref, ...rest } = schema
  context.budget.spend(1)
  const combined = [anyOf, oneOf, allOf, $ref].some((one) => one !== undefined)
  if (!combined) return schema.type === 'object' ? schema : { ...rest, type: 'object' }
  if (depth > MAX_DEPTH) return { ...rest, type: 'object' }
  const { root, seen, budget } = context
  const variants = (list: JsonValue | undefined): JsonObject[] =>
    arrayOf(list).map((one) => merged(objectOf(one), context, depth + 1))
  const union = new Union(rest, budget)
  if (typeof $ref === 'string' && !seen.has($ref)) {
    seen.add($ref)
    union.include([merged(resolveRef(root, $ref), context, depth + 1)], true)
  }
  union.include(variants(allOf), true)
  union.include(variants(anyOf), false)
  union.include(variants(oneOf), false)
  return { ...rest, type: 'object', ...union.members() }
}

/**
 * Merges the properties of an object and its variants. A property that differs among them has alternatives.
 */
class Union {
  private readonly budget: SchemaBudget
  private readonly required: Set<JsonValue>
  private readonly properties = new Map<string, Alternatives>()
  private isUsed = false

  constructor(own: JsonObject, budget: SchemaBudget) {
    this.budget = budget
    this.required = new Set(arrayOf(own.required))
    this.addProperties(own)
  }

  /** Adds the variants' properties. `all`: all variants apply (`allOf`), not only one of them. */
  include(variants: readonly JsonObject[], all: boolean): void {
    const [first, ...others] = variants
    if (first === undefined) return
    this.isUsed = true
    for (const variant of variants) {
      this.addProperties(variant)
      this.budget.spendList(variant.required)
    }
    const lists = all ? variants : [first]
    const rest = all ? [] : others.map((variant) => new Set(arrayOf(variant.required)))
    for (const name of lists.flatMap((variant) => arrayOf(variant.required))) {
      if (rest.every((names) => names.has(name))) this.required.add(name)
    }
  }

  members(): JsonObject {
    if (!this.isUsed) return {}
    const properties = Object.fromEntries([...this.properties].map(([name, known]) => [name, known.schema()]))
    return { properties, required: [...this.required] }
  }

  private addProperties(variant: JsonObject): void {
    const entries = Object.entries(objectOf(variant.properties))
    this.budget.spend(entries.length)
    for (const [name, schema = {}] of entries) {
      const known = this.properties.get(name)
      if (known === undefined) this.properties.set(name, new Alternatives(schema))
      else known.add(schema, this.budget)
    }
  }
}

/**
 * Distinct schemas, one of which applies. They are compared by their JSON texts once there is a second one.
 */
class Alternatives {
  private readonly first: JsonValue
  private all: Map<string, JsonValue> | null = null

  constructor(first: JsonValue) {
    this.first = first
  }

  add(schema: JsonValue, budget: SchemaBudget): void {
    this.all ??= texts(alternatives(this.first), budget)
    for (const [text, one] of texts(alternatives(schema), budget)) this.all.set(text, one)
  }

  schema(): JsonValue {
    const { all, first } = this
    if (all === null) return first
    const [only = first, ...others] = all.values()
    return others.length === 0 ? only : { anyOf: [...all.values()] }
  }
}

function texts(schemas: readonly JsonValue[], budget: SchemaBudget): Map<string, JsonValue> {
  const found = new Map<string, JsonValue>()
  for (const schema of schemas) {
    const text = JSON.stringify(schema)
    budget.spend(1 + Math.floor(text.length / CHARS_PER_PART))
    found.set(text, schema)
  }
  return found
}

/** A schema as the list of its variants. */
function alternatives(schema: JsonValue): JsonValue[] {
  const { anyOf, ...rest } = objectOf(schema)
  return Array.isArray(anyOf) && Object.keys(rest).length === 0 ? anyOf : [schema]
}

/** Maximum depth of a schema: deeper than real ones, and within the limit of the call stack. */
const MAX_DEPTH = 200

/** The schema that a local `$ref` refers to; an empty schema if it does not exist. */
function resolveRef(root: JsonObject, ref: string): JsonObject {
  return objectOf(referenced(root, ref))
}

/**
 * Describes the first `$ref` that leads back to itself; null if there is none. Follows each reference once,
 * so the cost is linear in the schema's size.
 */
function findRecursion(root: JsonObject): string | null {
  const settled = new Map<string, boolean>()
  const visit = (value: JsonValue | undefined, depth: number): string | null => {
    if (depth > MAX_DEPTH * 4) return 'the schema is nested too deeply'
    if (Array.isArray(value)) {
      for (const one of value) {
        const found = visit(one, depth + 1)
        if (found !== null) return found
      }
      return null
    }
    if (!isObject(value)) return null
    const ref = stringOf(value.$ref)
    if (ref !== undefined) {
      if (settled.get(ref) === false) return `$ref ${ref} is recursive`
      if (settled.get(ref) === undefined) {
        settled.set(ref, false)
        const found = visit(resolveRef(root, ref), depth + 1)
        if (found !== null) return found
        settled.set(ref, true)
      }
    }
    for (const key in value) {
      if (key === '$defs' || key === 'definitions') continue
      const found = visit(value[key], depth + 1)
      if (found !== null) return found
    }
    return null
  }
  return visit(root, 0)
}
