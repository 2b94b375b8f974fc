/**
 * JSON Schema as Gemini's JSON-Schema fields take it: a schema that allows at least what the
 * original allowed. Knows no tool and no request; every change only relaxes.
 *
 * A keyword that the API does not list makes it refuse the whole request, so this copies what is on
 * the list and nothing else. Bounded by depth; references are never followed without end.
 */
import {
  arrayOf,
  isObject,
  objectOf,
  type JsonObject,
  type JsonValue,
} from '../../../../chat/json.js'
import { SchemaBudget } from '../../../../chat/json-schema/schema-budget.js'
import { SchemaRefs } from './schema-refs.js'

/** Deeper schemas are cut to "anything" there; OpenAI stops at 10 levels, Google names no number. */
const MAX_DEPTH = 48
/** Copies double with every level of `allOf`; generated schemas that were seen need under twenty. */
const MAX_COPIES = 256
/** What a definition costs beside being written. */
const PARTS_PER_DEFINITION = 2

const TYPES = new Set(['string', 'number', 'integer', 'boolean', 'array', 'object', 'null'])

/** Copied as they are when they have the right type. */
const STRINGS = ['title', 'format'] as const
const NUMBERS = ['minimum', 'maximum', 'minItems', 'maxItems'] as const

/** Where in a schema the walk is. */
interface Place {
  readonly refs: SchemaRefs
  readonly budget: SchemaBudget
  /** Definitions that have been copied into other schemas so far. */
  readonly copied: { count: number }
  readonly depth: number
  /** The definition being walked; '' is the root. */
  readonly inside: string
  /** Told when a reference leads back to `inside`; null where no property stands in between. */
  readonly property: { cyclic: boolean } | null
}

/**
 * The schema, relaxed to what `responseJsonSchema` and `parametersJsonSchema` accept. Throws
 * `GatewayError(malformed_request)` where it grows beyond the budget, which all schemas of a request share.
 */
export function relaxSchema(schema: JsonObject, budget = new SchemaBudget()): JsonObject {
  // Each is searched for references, and its place among them found.
  for (const group of [schema.definitions, schema.$defs]) {
    budget.spend(PARTS_PER_DEFINITION * Object.keys(objectOf(group)).length)
  }
  const refs = new SchemaRefs(schema)
  const place: Place = {
    refs,
    budget,
    copied: { count: 0 },
    depth: 0,
    inside: '',
    property: null,
  }
  const root = relax(schema, place)
  const defs = refs.names().map((name): [string, JsonValue] => {
    return [name, relax(refs.definition(name), { ...place, inside: name })]
  })
  return defs.length === 0 ? root : { ...root, $defs: Object.fromEntries(defs) }
}

function relax(node: JsonValue | undefined, place: Place): JsonObject {
  if (!isObject(node) || place.depth > MAX_DEPTH) return {}
  place.budget.spend(1)
  if (typeof node.$ref === 'string') return relaxRef(node.$ref, place)
  const merged = Array.isArray(node.allOf) ? mergeAllOf(node, place) : node
  if (typeof merged.$ref === 'string') return relaxRef(merged.$ref, place)
  const out: JsonObject = {}
  copyPlain(merged, out)
  copyBounds(merged, out)
  copyObject(merged, out, place)
  copyArray(merged, out, place)
  const choices = arrayOf(merged.anyOf ?? merged.oneOf)
  if (choices.length > 0) out.anyOf = choices.map((choice) => relax(choice, deeper(place)))
  place.budget.spendList(merged.enum)
  return copyEnum(merged, out)
}

/** A node with `$ref` may have no other keyword, and a cycle must pass an optional property. */
function relaxRef(ref: string, place: Place): JsonObject {
  const name = place.refs.nameOf(ref)
  if (name === null) return {}
  if (place.refs.leadsBack(place.inside, name)) {
    if (place.property === null) return {}
    place.property.cyclic = true
  }
  return { $ref: name === '' ? '#' : `#/$defs/${pointerToken(name)}` }
}

function copyPlain(node: JsonObject, out: JsonObject): void {
  const types = (Array.isArray(node.type) ? node.type : [node.type]).filter(isType)
  if (node.nullable === true && types.length > 0 && !types.includes('null')) types.push('null')
  if (types.length > 0) out.type = types.length === 1 ? types[0] : types
  for (const key of STRINGS) if (typeof node[key] === 'string') out[key] = node[key]
  const words = typeof node.description === 'string' ? node.description : ''
  const pattern = typeof node.pattern === 'string' ? `Must match the pattern ${node.pattern}` : ''
  const description = [words, pattern].filter((text) => text !== '').join('\n')
  if (description !== '') out.description = description
}

function copyBounds(node: JsonObject, out: JsonObject): void {
  for (const key of NUMBERS) if (typeof node[key] === 'number') out[key] = node[key]
  const step = node.type === 'integer' ? 1 : 0
  if (typeof node.exclusiveMinimum === 'number') {
    const bound = step === 0 ? node.exclusiveMinimum : Math.floor(node.exclusiveMinimum) + step
    out.minimum = typeof out.minimum === 'number' ? Math.max(out.minimum, bound) : bound
  }
  if (typeof node.exclusiveMaximum === 'number') {
    const bound = step === 0 ? node.exclusiveMaximum : Math.ceil(node.exclusiveMaximum) - step
    out.maximum = typeof out.maximum === 'number' ? Math.min(out.maximum, bound) : bound
  }
}

function copyObject(node: JsonObject, out: JsonObject, place: Place): void {
  const cyclic = new Set<string>()
  place.budget.spendList(node.required)
  if (isObject(node.properties)) {
    const entries = Object.entries(node.properties).map(([name, value]): [string, JsonValue] => {
      const property = { cyclic: false }
      const schema = relax(value, { ...deeper(place), property })
      if (property.cyclic) cyclic.add(name)
      return [name, schema]
    })
    out.properties = Object.fromEntries(entries)
  }
  const names = new Set(isObject(out.properties) ? Object.keys(out.properties) : [])
  const required = arrayOf(node.required).filter((name) => {
    return typeof name === 'string' && names.has(name) && !cyclic.has(name)
  })
  if (required.length > 0) out.required = required
  const rest = node.additionalProperties
  if (isObject(rest)) out.additionalProperties = relax(rest, deeper(place))
  // `false` beside patterns that are dropped would forbid what the patterns allowed.
  else if (rest === true || (rest === false && node.patternProperties === undefined)) {
    out.additionalProperties = rest
  }
}

function copyArray(node: JsonObject, out: JsonObject, place: Place): void {
  const tuple = Array.isArray(node.items) ? node.items : node.prefixItems
  if (Array.isArray(tuple)) out.prefixItems = tuple.map((item) => relax(item, deeper(place)))
  if (isObject(node.items)) out.items = relax(node.items, deeper(place))
}

/** `enum` holds strings and numbers only; `const` is not known at all. */
function copyEnum(node: JsonObject, out: JsonObject): JsonObject {
  const values = node.const === undefined ? arrayOf(node.enum) : [node.const]
  if (values.length === 0) return out
  const plain = values.filter((value) => typeof value === 'string' || typeof value === 'number')
  const others = values.filter((value) => typeof value !== 'string' && typeof value !== 'number')
  if (others.length === 0) return { ...out, enum: plain }
  if (others.every((value) => typeof value === 'boolean') && plain.length === 0) {
    return { ...out, type: 'boolean' }
  }
  if (others.some((value) => value !== null) || out.anyOf !== undefined) return out
  if (plain.length === 0) return { ...out, type: 'null' }
  const { description, title, type, ...rest } = out
  const kinds = arrayOf(type).filter((kind) => kind !== 'null')
  const kind = kinds.length === 1 ? kinds[0] : kinds.length > 1 ? kinds : type
  const choice: JsonObject = { ...rest, enum: plain }
  if (kind !== undefined) choice.type = kind
  const whole: JsonObject = { anyOf: [choice, { type: 'null' }] }
  if (description !== undefined) whole.description = description
  if (title !== undefined) whole.title = title
  return whole
}

/** All of the branches in one node, as far as they can be joined; what cannot be is left out. */
function mergeAllOf(node: JsonObject, place: Place): JsonObject {
  const { allOf, ...own } = node
  const branches = arrayOf(allOf)
  const [only] = branches
  const isBare = Object.keys(own).every((key) => key === 'description' || key === 'title')
  if (branches.length === 1 && isObject(only) && typeof only.$ref === 'string' && isBare)
    return only
  const merged = new Merged(own, place.budget)
  addBranches(branches, merged, place, 0)
  return merged.schema()
}

function addBranches(branches: JsonValue[], merged: Merged, place: Place, depth: number): void {
  if (depth > MAX_DEPTH) return
  for (const branch of branches) {
    place.budget.spend(1)
    const known = isObject(branch) ? inlined(branch, place) : null
    if (known === null) continue
    const { allOf, ...flat } = known
    if (flat.$ref === undefined) merged.add(flat)
    if (Array.isArray(allOf)) addBranches(allOf, merged, place, depth + 1)
  }
}

function inlined(branch: JsonObject, place: Place): JsonObject | null {
  if (typeof branch.$ref !== 'string') return branch
  const name = place.refs.nameOf(branch.$ref)
  if (name === null || name === place.inside || place.copied.count === MAX_COPIES) return null
  const copy = place.refs.copyOf(name)
  if (copy !== null) place.copied.count += 1
  return copy
}

/** Schemas that all hold, as one; of two keywords of one name the earlier counts. */
class Merged {
  private readonly members: Map<string, JsonValue | undefined>
  private readonly budget: SchemaBudget
  private readonly properties = new Map<string, JsonValue | undefined>()
  private readonly required = new Set<JsonValue>()
  private isJoined = false

  constructor(own: JsonObject, budget: SchemaBudget) {
    this.members = new Map(Object.entries(own))
    this.budget = budget
    this.addMembers(own)
  }

  add(schema: JsonObject): void {
    this.isJoined = true
    for (const [key, value] of Object.entries(schema)) {
      if (!this.members.has(key)) this.members.set(key, value)
    }
    this.addMembers(schema)
  }

  schema(): JsonObject {
    const members: JsonObject = Object.fromEntries(this.members)
    if (!this.isJoined) return members
    if (isObject(members.properties)) members.properties = Object.fromEntries(this.properties)
    if (this.required.size > 0) members.required = [...this.required]
    // One branch's `false` speaks of its own properties only.
    if (members.additionalProperties === false) delete members.additionalProperties
    return members
  }

  private addMembers({ properties, required }: JsonObject): void {
    this.budget.spendList(required)
    for (const name of arrayOf(required)) this.required.add(name)
    if (!isObject(properties)) return
    const entries = Object.entries(properties)
    this.budget.spend(entries.length)
    for (const [name, value] of entries) {
      if (!this.properties.has(name)) this.properties.set(name, value)
    }
  }
}

function deeper(place: Place): Place {
  return { ...place, depth: place.depth + 1 }
}

function isType(value: JsonValue | undefined): value is string {
  return typeof value === 'string' && TYPES.has(value)
}

function pointerToken(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1')
}
