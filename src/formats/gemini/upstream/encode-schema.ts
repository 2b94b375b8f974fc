/**
 * Encodes JSON Schemas within the subset that Gemini accepts. Only relaxes a schema.
 *
 * The API rejects a request with an unlisted keyword, so only listed keywords are copied.
 */
import { pointerName, SchemaBudget } from '../../chat/json-schema.js'
import { GEMINI_KEYWORDS } from '../../vendors.js'
import { arrayOf, isObject, objectOf, type JsonObject, type JsonValue } from '../../../base/json.js'

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
  /** Called for each part of the schema that is dropped, or allows more values. */
  readonly lost: () => void
  /** Set to cyclic if a reference leads back to `definition`; null if no property is in between. */
  readonly property: { cyclic: boolean } | null
}

/**
 * The schema, relaxed to what `responseJsonSchema` and `parametersJsonSchema` accept. Throws
 * `GatewayError(malformed_request)` if the result exceeds the budget, which all schemas of a request share.
 */
export function relaxSchema(
  schema: JsonObject,
  budget = new SchemaBudget(),
  lost: () => void = () => undefined,
): JsonObject {
  // Each definition is searched for references.
  for (const group of [schema.definitions, schema.$defs]) {
    budget.spend(PARTS_PER_DEFINITION * Object.keys(objectOf(group)).length)
  }
  const refs = new SchemaRefs(schema)
  const position: Position = {
    refs,
    budget,
    copied: { count: 0 },
    lost,
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
  if (!isObject(node) || position.depth > MAX_DEPTH) {
    if (node === false || isObject(node)) position.lost()
    return {}
  }
  position.budget.spend(1)
  if (typeof node.$ref === 'string') return relaxRef(node.$ref, node, position)
  const merged = Array.isArray(node.allOf) ? mergeAllOf(node, position) : node
  if (typeof merged.$ref === 'string') return relaxRef(merged.$ref, merged, position)
  if (dropsKeyword(merged)) position.lost()
  const out: JsonObject = {}
  copyPlain(merged, out)
  copyBounds(merged, out)
  copyObject(merged, out, position)
  copyArray(merged, out, position)
  const choices = arrayOf(merged.anyOf ?? merged.oneOf)
  if (choices.length > 0) out.anyOf = choices.map((choice) => relax(choice, deeper(position)))
  position.budget.spendList(merged.enum)
  return copyEnum(merged, out, position)
}

/** Keywords without influence on the values that a schema allows, and on the model. */
const SILENT_KEYWORDS: ReadonlySet<string> = new Set(['$schema', '$id', '$comment', '$anchor'])

/** Whether the node has a keyword that is not copied, or is copied to one that allows more. */
function dropsKeyword(node: JsonObject): boolean {
  for (const key in node) if (!GEMINI_KEYWORDS.has(key) && !SILENT_KEYWORDS.has(key)) return true
  const isWhole = node.type === 'integer'
  return !isWhole && [node.exclusiveMinimum, node.exclusiveMaximum].some((bound) => bound !== undefined)
}

/** Members of a node with `$ref` whose loss changes nothing. */
const BESIDE_REF: ReadonlySet<string> = new Set([...SILENT_KEYWORDS, '$ref', '$defs', 'definitions', 'title'])

/** A node with `$ref` must have no other keyword, and a cycle must include an optional property. */
function relaxRef(ref: string, node: JsonObject, position: Position): JsonObject {
  const name = position.refs.nameOf(ref)
  if (name === null || Object.keys(node).some((key) => !BESIDE_REF.has(key))) position.lost()
  if (name === null) return {}
  if (position.refs.leadsBack(position.definition, name)) {
    if (position.property === null) {
      position.lost()
      return {}
    }
    position.property.cyclic = true
  }
  return { $ref: name === '' ? '#' : `#/$defs/${pointerToken(name)}` }
}

function copyPlain(node: JsonObject, out: JsonObject): void {
  const types = (Array.isArray(node.type) ? node.type : [node.type]).filter(isType)
  if (node.nullable === true && types.length > 0 && !types.includes('null')) types.push('null')
  if (types.length > 0) out.type = types.length === 1 ? types[0] : types
  for (const key of STRINGS) if (typeof node[key] === 'string') out[key] = node[key]
  const description = typeof node.description === 'string' ? node.description : ''
  const pattern = typeof node.pattern === 'string' ? `Must match the pattern ${node.pattern}` : ''
  if (description !== '' || pattern !== '') {
    out.description =
      description === '' || pattern === '' ? description + pattern : `${description}\n${pattern}`
  }
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
  position.budget.spendList(node.required)
  if (isObject(node.properties)) copyProperties(node.properties, arrayOf(node.required), { out, position })
  const rest = node.additionalProperties
  if (isObject(rest)) out.additionalProperties = relax(rest, deeper(position))
  // `patternProperties` is dropped, so `false` would forbid the properties that it allows.
  else if (rest === true || (rest === false && node.patternProperties === undefined)) {
    out.additionalProperties = rest
  }
}

/** Copies the properties, and the names of those that are required. */
function copyProperties(
  properties: JsonObject,
  required: readonly JsonValue[],
  { out, position }: { readonly out: JsonObject; readonly position: Position },
): void {
  const cyclic = new Set<JsonValue>()
  const entries = Object.entries(properties).map(([name, value]): [string, JsonValue] => {
    const property = { cyclic: false }
    const schema = relax(value, { ...position, depth: position.depth + 1, property })
    if (property.cyclic) cyclic.add(name)
    return [name, schema]
  })
  out.properties = Object.fromEntries(entries)
  const names = required.filter((name) => {
    return typeof name === 'string' && Object.hasOwn(properties, name) && !cyclic.has(name)
  })
  if (names.length < required.length) position.lost()
  if (names.length > 0) out.required = names
}

function copyArray(node: JsonObject, out: JsonObject, position: Position): void {
  const tuple = Array.isArray(node.items) ? node.items : node.prefixItems
  if (Array.isArray(tuple)) out.prefixItems = tuple.map((item) => relax(item, deeper(position)))
  if (isObject(node.items)) out.items = relax(node.items, deeper(position))
  // `false` allows no items after those of the tuple.
  if (node.items !== false) return
  const length = arrayOf(tuple).length
  out.maxItems = typeof out.maxItems === 'number' ? Math.min(out.maxItems, length) : length
}

/** Gemini's `enum` allows only strings and numbers; `const` is not supported and becomes an `enum`. */
function copyEnum(node: JsonObject, out: JsonObject, { lost }: Position): JsonObject {
  const values = node.const === undefined ? arrayOf(node.enum) : [node.const]
  if (values.length === 0) return out
  const plain = values.filter((value) => typeof value === 'string' || typeof value === 'number')
  const others = values.filter((value) => typeof value !== 'string' && typeof value !== 'number')
  if (others.length === 0) return { ...out, enum: plain }
  if (others.every((value) => typeof value === 'boolean') && plain.length === 0) {
    if (others.length < 2) lost()
    return { ...out, type: 'boolean' }
  }
  if (others.some((value) => value !== null) || out.anyOf !== undefined) {
    lost()
    return out
  }
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
  if (branches.length === 1 && isObject(only) && typeof only.$ref === 'string' && isBare) return only
  const merged = new Merged(own, position)
  addBranches(branches, merged, { ...position, depth: 0 })
  return merged.schema()
}

/** Merges the branches. `position.depth` counts nested `allOf` here. */
function addBranches(branches: JsonValue[], merged: Merged, position: Position): void {
  if (position.depth > MAX_DEPTH) {
    position.lost()
    return
  }
  for (const branch of branches) {
    position.budget.spend(1)
    const known = isObject(branch) ? inlined(branch, position) : null
    if (known === null || known.$ref !== undefined) position.lost()
    if (known === null) continue
    const { allOf, ...flat } = known
    if (flat.$ref === undefined) merged.add(flat)
    if (Array.isArray(allOf)) addBranches(allOf, merged, deeper(position))
  }
}

function inlined(branch: JsonObject, position: Position): JsonObject | null {
  if (typeof branch.$ref !== 'string') return branch
  const name = position.refs.nameOf(branch.$ref)
  if (name === null || name === position.definition || position.copied.count === MAX_COPIES) return null
  const copy = position.refs.copyOf(name)
  if (copy !== null) position.copied.count += 1
  return copy
}

/** Keywords of which the members of all schemas are kept, or which say nothing about values. */
const UNITED: ReadonlySet<string> = new Set([
  'properties',
  'required',
  'title',
  'description',
  ...SILENT_KEYWORDS,
])

/** Merges schemas that all apply. If a keyword occurs twice, the first one is kept. */
class Merged {
  private readonly members: Map<string, JsonValue | undefined>
  private readonly budget: SchemaBudget
  private readonly lost: () => void
  private readonly properties = new Map<string, JsonValue | undefined>()
  private readonly required = new Set<JsonValue>()
  private isMerged = false

  constructor(own: JsonObject, { budget, lost }: Position) {
    this.members = new Map(Object.entries(own))
    this.budget = budget
    this.lost = lost
    this.addMembers(own)
  }

  add(schema: JsonObject): void {
    this.isMerged = true
    for (const [key, value] of Object.entries(schema)) {
      if (!this.members.has(key)) this.members.set(key, value)
      else if (!UNITED.has(key) && this.members.get(key) !== value) this.lost()
    }
    this.addMembers(schema)
  }

  schema(): JsonObject {
    const members: JsonObject = Object.fromEntries(this.members)
    if (!this.isMerged) return members
    if (isObject(members.properties)) members.properties = Object.fromEntries(this.properties)
    if (this.required.size > 0) members.required = [...this.required]
    // `false` of one branch would forbid the properties of the others.
    if (members.additionalProperties === false) {
      this.lost()
      delete members.additionalProperties
    }
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
      else if (this.properties.get(name) !== value) this.lost()
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

/** How references to definitions begin. */
const REF_PREFIXES = ['#/$defs/', '#/definitions/']
/** Maximum depth of the search for references; deeper than real schemas. */
const MAX_REF_DEPTH = 64

/**
 * The definitions of one JSON Schema (`$defs` or the older `definitions`) and the graph of references between
 * them; '' is the root. Linear in the size of the schema: every definition is searched once.
 */
class SchemaRefs {
  private readonly definitions = new Map<string, JsonObject>()
  private readonly edges = new Map<string, Set<string>>()
  /** The number of each definition's cycle; unique for a definition without one. */
  private readonly cycles: ReadonlyMap<string, number>

  constructor(root: JsonObject) {
    for (const group of [root.definitions, root.$defs]) {
      if (!isObject(group)) continue
      for (const [name, schema] of Object.entries(group)) {
        if (isObject(schema)) this.definitions.set(name, schema)
      }
    }
    this.edges.set('', this.refsIn({ ...root, $defs: null, definitions: null }))
    for (const [name, schema] of this.definitions) this.edges.set(name, this.refsIn(schema))
    this.cycles = cyclesOf(this.edges)
  }

  /** The definitions' names in the order of the schema. */
  names(): string[] {
    return [...this.definitions.keys()]
  }

  /** The definition, or an empty schema. */
  definition(name: string): JsonObject {
    return this.definitions.get(name) ?? {}
  }

  /**
   * The name of the definition that a `$ref` refers to; '' for the root, null for anything outside this
   * schema.
   */
  nameOf(ref: string): string | null {
    if (ref === '#') return ''
    const prefix = REF_PREFIXES.find((each) => ref.startsWith(each))
    const token = prefix === undefined ? '' : ref.slice(prefix.length)
    if (token === '' || token.includes('/')) return null
    const name = pointerName(token)
    return this.definitions.has(name) ? name : null
  }

  /** True if the definition `to`, which `from` refers to, leads back to `from`. */
  leadsBack(from: string, to: string): boolean {
    return this.cycles.get(from) === this.cycles.get(to)
  }

  /** The definition to copy into another schema; null if it contains itself. */
  copyOf(name: string): JsonObject | null {
    for (const next of this.edges.get(name) ?? []) if (this.leadsBack(name, next)) return null
    return this.definition(name)
  }

  private refsIn(schema: JsonValue, found = new Set<string>(), depth = 0): Set<string> {
    if (depth > MAX_REF_DEPTH) return found
    if (Array.isArray(schema)) {
      for (const item of schema) this.refsIn(item, found, depth + 1)
    } else if (isObject(schema)) {
      for (const key in schema) {
        const value = schema[key]
        if (key === '$ref' && typeof value === 'string') {
          const name = this.nameOf(value)
          if (name !== null) found.add(name)
        } else if (typeof value === 'object') this.refsIn(value, found, depth + 1)
      }
    }
    return found
  }
}

/** A node on the path from the start, and its remaining edges. */
interface Step {
  readonly node: string
  readonly next: Iterator<string, undefined>
}

/**
 * Numbers the nodes of a directed graph: two have the same number exactly if each is reachable from the other
 * (Tarjan's algorithm for strongly connected components). Linear in nodes and edges, and iterative: a chain
 * of thousands of nodes does not overflow the stack.
 */
function cyclesOf(edges: ReadonlyMap<string, ReadonlySet<string>>): Map<string, number> {
  const search = new Search(edges)
  for (const node of edges.keys()) search.from(node)
  return search.cycles
}

class Search {
  readonly cycles = new Map<string, number>()
  private readonly edges: ReadonlyMap<string, ReadonlySet<string>>
  /** The visiting order of each node, and the earliest node known to be reachable from it. */
  private readonly visited = new Map<string, number>()
  private readonly earliest = new Map<string, number>()
  /** Nodes without a number, in visiting order. */
  private readonly open: string[] = []

  constructor(edges: ReadonlyMap<string, ReadonlySet<string>>) {
    this.edges = edges
  }

  from(start: string): void {
    if (this.visited.has(start)) return
    const path: Step[] = [this.enter(start)]
    for (let step = path.at(-1); step !== undefined; step = path.at(-1)) {
      const next: IteratorResult<string, undefined> = step.next.next()
      const to = next.value
      if (to === undefined) {
        path.pop()
        this.leave(step.node, path.at(-1)?.node)
      } else if (!this.visited.has(to)) path.push(this.enter(to))
      else if (!this.cycles.has(to)) this.lower(step.node, this.visited.get(to) ?? 0)
    }
  }

  private enter(node: string): Step {
    const at = this.visited.size
    this.visited.set(node, at)
    this.earliest.set(node, at)
    this.open.push(node)
    return { node, next: (this.edges.get(node) ?? new Set<string>()).values() }
  }

  private leave(node: string, before: string | undefined): void {
    const earliest = this.earliest.get(node) ?? 0
    if (before !== undefined) this.lower(before, earliest)
    const at = this.visited.get(node)
    if (at === undefined || earliest !== at) return
    for (let each = this.open.pop(); each !== undefined; each = this.open.pop()) {
      this.cycles.set(each, at)
      if (each === node) return
    }
  }

  private lower(node: string, to: number): void {
    if (to < (this.earliest.get(node) ?? 0)) this.earliest.set(node, to)
  }
}
