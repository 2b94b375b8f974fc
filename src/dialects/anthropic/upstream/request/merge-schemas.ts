/** Merges the variants at the root of a schema into one object schema, as tools require. */
import { arrayOf, objectOf, type JsonObject, type JsonValue } from '../../../../chat/json.js'
import { SchemaBudget } from '../../../../chat/json-schema/schema-budget.js'
import { MAX_DEPTH, resolveRef } from './schema-refs.js'

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
    const properties = Object.fromEntries(
      [...this.properties].map(([name, known]) => [name, known.schema()]),
    )
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

/** The schemas by their JSON texts. */
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
