/**
 * Encodes JSON Schemas within the subset that Gemini accepts. Only relaxes a schema.
 *
 * The API rejects a request with an unlisted keyword, so only listed keywords are copied.
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

/** Maximum depth; deeper subschemas become `{}`. OpenAI allows 10 levels, Google documents no limit. */
const MAX_DEPTH = 48
/**
 * Maximum number of copied definitions, since copies double with every level of `allOf`; known schemas need
 * under 20.
 */
const MAX_COPIES = 256
/** The cost of a definition in addition to that of copying it. */
const PARTS_PER_DEFINITION = 2

const TYPES = new Set(['string', 'number', 'integer', 'boolean', 'array', 'object', 'null'])

/** Keywords that are copied unchanged if they have the right type. */
const STRINGS = ['title', 'format'] as const
const NUMBERS = ['minimum', 'maximum', 'minItems', 'maxItems'] as const

/** The position of the walk in a schema. */
interface Position {
  readonly refs: SchemaRefs
  readonly budget: SchemaBudget
  /** The number of definitions that have been copied into other schemas. */
  readonly copied: { count: number }
  readonly depth: number
  /** The definition being walked; '' is the root. */
  readonly definition: string
  /** Set to cyclic if a reference leads back to `definition`; null if no property is in between. */
  readonly property: { cyclic: boolean } | null
}

/**
 * The schema, relaxed to what `responseJsonSchema` and `parametersJsonSchema` accept. Throws
 * `GatewayError(malformed_request)` if the result exceeds the budget, which all schemas of a request share.
 */
export function relaxSchema(schema: JsonObject, budget = new SchemaBudget()): JsonObject {
  // Each definition is searched for references.
  for (const group of [schema.definitions, schema.$defs]) {
    budget.spend(PARTS_PER_DEFINITION * Object.keys(objectOf(group)).length)
  }
  const refs = new SchemaRefs(schema)
  const position: Position = {
    refs,
    budget,
    copied: { count: 0 },
    depth: 0,
    definition: '',
    property: null,
  }
  const root = relax(schema, position)
  const defs = refs.names().map((name): [string, JsonValue] => {
    return [name, relax(refs.definition(name), { ...position, definition: name })]
  })
  return defs.length === 0 ? root : { ...root, $defs: Object.fromEntries(defs) }
}

function relax(node: JsonValue | undefined, position: Position): JsonObject {
  if (!isObject(node) || position.depth > MAX_DEPTH) return {}
  position.budget.spend(1)
  if (typeof node.$ref === 'string') return relaxRef(node.$ref, position)
  const merged = Array.isArray(node.allOf) ? mergeAllOf(node, position) : node
  if (typeof merged.$ref === 'string') return relaxRef(merged.$ref, position)
  const out: JsonObject = {}
  copyPlain(merged, out)
  copyBounds(merged, out)
  copyObject(merged, out, position)
  copyArray(merged, out, position)
  const choices = arrayOf(merged.anyOf ?? merged.oneOf)
  if (choices.length > 0) out.anyOf = choices.map((choice) => relax(choice, deeper(position)))
  position.budget.spendList(merged.enum)
  return copyEnum(merged, out)
}

/** A node with `$ref` must have no other keyword, and a cycle must include an optional property. */
function relaxRef(ref: string, position: Position): JsonObject {
  const name = position.refs.nameOf(ref)
  if (name === null) return {}
  if (position.refs.leadsBack(position.definition, name)) {
    if (position.property === null) return {}
    position.property.cyclic = true
  }
  return { $ref: name === '' ? '#' : `#/$defs/${pointerToken(name)}` }
}

function copyPlain(node: JsonObject, out: JsonObject): void {
  const types = (Array.isArray(node.type) ? node.type : [node.type]).filter(isType)
  if (node.nullable === true && types.length > 0 && !types.includes('null')) types.push('null')
  if (types.length > 0) out.type = types.length === 1 ? types[0] : types
  for (const key of STRINGS) if (typeof node[key] === 'string') out[key] = node[key]
  const own = typeof node.description === 'string' ? node.description : ''
  const pattern = typeof node.pattern === 'string' ? `Must match the pattern ${node.pattern}` : ''
  const description = [own, pattern].filter((text) => text !== '').join('\n')
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

function copyObject(node: JsonObject, out: JsonObject, position: Position): void {
  const cyclic = new Set<string>()
  position.budget.spendList(node.required)
  if (isObject(node.properties)) {
    const entries = Object.entries(node.properties).map(([name, value]): [string, JsonValue] => {
      const property = { cyclic: false }
      const schema = relax(value, { ...deeper(position), property })
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
  if (isObject(rest)) out.additionalProperties = relax(rest, deeper(position))
  // `patternProperties` is dropped, so `false` would forbid the properties that it allows.
  else if (rest === true || (rest === false && node.patternProperties === undefined)) {
    out.additionalProperties = rest
  }
}

function copyArray(node: JsonObject, out: JsonObject, position: Position): void {
  const tuple = Array.isArray(node.items) ? node.items : node.prefixItems
  if (Array.isArray(tuple)) out.prefixItems = tuple.map((item) => relax(item, deeper(position)))
  if (isObject(node.items)) out.items = relax(node.items, deeper(position))
}

/** Gemini's `enum` allows only strings and numbers; `const` is not supported and becomes an `enum`. */
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

/** Merges the branches of `allOf` into one node. Branches that cannot be merged are omitted. */
function mergeAllOf(node: JsonObject, position: Position): JsonObject {
  const { allOf, ...own } = node
  const branches = arrayOf(allOf)
  const [only] = branches
  const isBare = Object.keys(own).every((key) => key === 'description' || key === 'title')
  if (branches.length === 1 && isObject(only) && typeof only.$ref === 'string' && isBare)
    return only
  const merged = new Merged(own, position.budget)
  addBranches(branches, merged, { ...position, depth: 0 })
  return merged.schema()
}

/** Merges the branches. `position.depth` counts nested `allOf` here. */
function addBranches(branches: JsonValue[], merged: Merged, position: Position): void {
  if (position.depth > MAX_DEPTH) return
  for (const branch of branches) {
    position.budget.spend(1)
    const known = isObject(branch) ? inlined(branch, position) : null
    if (known === null) continue
    const { allOf, ...flat } = known
    if (flat.$ref === undefined) merged.add(flat)
    if (Array.isArray(allOf)) addBranches(allOf, merged, deeper(position))
  }
}

function inlined(branch: JsonObject, position: Position): JsonObject | null {
  if (typeof branch.$ref !== 'string') return branch
  const name = position.refs.nameOf(branch.$ref)
  if (name === null || name === position.definition || position.copied.count === MAX_COPIES)
    return null
  const copy = position.refs.copyOf(name)
  if (copy !== null) position.copied.count += 1
  return copy
}

/** Merges schemas that all apply. If a keyword occurs twice, the first one is kept. */
class Merged {
  private readonly members: Map<string, JsonValue | undefined>
  private readonly budget: SchemaBudget
  private readonly properties = new Map<string, JsonValue | undefined>()
  private readonly required = new Set<JsonValue>()
  private isMerged = false

  constructor(own: JsonObject, budget: SchemaBudget) {
    this.members = new Map(Object.entries(own))
    this.budget = budget
    this.addMembers(own)
  }

  add(schema: JsonObject): void {
    this.isMerged = true
    for (const [key, value] of Object.entries(schema)) {
      if (!this.members.has(key)) this.members.set(key, value)
    }
    this.addMembers(schema)
  }

  schema(): JsonObject {
    const members: JsonObject = Object.fromEntries(this.members)
    if (!this.isMerged) return members
    if (isObject(members.properties)) members.properties = Object.fromEntries(this.properties)
    if (this.required.size > 0) members.required = [...this.required]
    // `false` of one branch would forbid the properties of the others.
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

function deeper(position: Position): Position {
  return { ...position, depth: position.depth + 1 }
}

function isType(value: JsonValue | undefined): value is string {
  return typeof value === 'string' && TYPES.has(value)
}

function pointerToken(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1')
}
