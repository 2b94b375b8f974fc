/**
 * References within a JSON Schema. A vendor's encoder moves, renames and removes parts of a schema; a
 * reference to the root or to a definition of the root stays right, one to any other place may not.
 */
import { pointerName, type SchemaBudget } from '../chat/json-schema.js'
import { isObject, objectOf, stringOf, type JsonObject, type JsonValue } from '../../base/json.js'
import { LISTS, MAPS, MAX_DEPTH, SINGLE } from '../chat/schema-keywords.js'

/** A reference that needs no other form; a name with `%` or `~` is written in several ways. */
const DEFINITION = /^#(?:\/(\$defs|definitions)\/([^/%~]+))?$/

/** What a value and a reference to another place than a definition cost, in parts of the budget. */
const PARTS_PER_VALUE = 2
const PARTS_PER_REFERENCE = 4

/** How references are rewritten. */
interface ReferenceContext {
  readonly budget: SchemaBudget
  /** Called for each reference that leads nowhere, which is left out; without it such ones stay. */
  readonly report?: () => void
}

/**
 * The schema with references to its root and to definitions of its root only: the target of any other one
 * becomes a definition. The same schema if all its references are so. Throws
 * `GatewayError(malformed_request)` if it exceeds the budget.
 */
export function withDefinitions(schema: JsonObject, context: ReferenceContext): JsonObject {
  const definitions = { $defs: objectOf(schema['$defs']), definitions: objectOf(schema['definitions']) }
  // Vendors' encoders follow the references of each definition, which costs more than other parts.
  context.budget.spend(Object.keys(definitions.$defs).length + Object.keys(definitions.definitions).length)
  const survey = { values: 0, others: 0 }
  count(schema, definitions, survey, 0)
  if (survey.others === 0) return schema
  context.budget.spend(PARTS_PER_VALUE * survey.values + PARTS_PER_REFERENCE * survey.others)
  const references = new References(schema, context)
  const changed = references.rewritten(schema, 0)
  return references.withTargets(isObject(changed) ? changed : schema)
}

type Definitions = Readonly<Record<'$defs' | 'definitions', JsonObject>>

/** What a schema has to rewrite. */
interface Survey {
  values: number
  /** References to other places than the root and its definitions; few schemas have one. */
  others: number
}

/** Counts all members, also those of values that are no schema. */
function count(value: JsonValue | undefined, definitions: Definitions, survey: Survey, depth: number): void {
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return
  survey.values += 1
  if (Array.isArray(value)) {
    for (const each of value) count(each, definitions, survey, depth + 1)
    return
  }
  for (const key in value) {
    const member = value[key]
    if (key !== '$ref' || typeof member !== 'string') count(member, definitions, survey, depth + 1)
    else if (!isToDefinition(member, definitions)) survey.others += 1
  }
}

function isToDefinition(ref: string, { $defs, definitions }: Definitions): boolean {
  const [, group, name] = DEFINITION.exec(ref) ?? []
  if (name === undefined) return ref === '#'
  return Object.hasOwn(group === '$defs' ? $defs : definitions, name)
}

class References {
  private readonly root: JsonObject
  private readonly context: ReferenceContext
  /** The schemas that have a name of their own: `$id` and, after `#`, `$anchor`. */
  private named: Map<string, JsonObject> | null = null
  /** The names of the targets that become definitions, and these in the order in which they are found. */
  private readonly names = new Map<JsonValue, string>()
  private readonly targets = new Map<string, JsonValue>()

  constructor(root: JsonObject, context: ReferenceContext) {
    this.root = root
    this.context = context
  }

  /** The schema with changed references; the same schema if none changes. */
  rewritten(schema: JsonValue, depth: number): JsonValue {
    if (!isObject(schema) || depth > MAX_DEPTH) return schema
    const members = Object.entries(schema).map(([key, value]) => {
      return [key, this.member(key, value, depth + 1)] as const
    })
    if (members.every(([key, value]) => value === schema[key])) return schema
    return Object.fromEntries(members.filter(([, value]) => value !== undefined))
  }

  /** The schema with the targets as definitions, whose own references may lead to more of them. */
  withTargets(schema: JsonObject): JsonObject {
    if (this.targets.size === 0) return schema
    const definitions: JsonObject = {}
    // The map grows while it is read.
    for (const [name, target] of this.targets) definitions[name] = this.rewritten(target, 1)
    return { ...schema, $defs: { ...objectOf(schema['$defs']), ...definitions } }
  }

  private member(key: string, value: JsonValue | undefined, depth: number): JsonValue | undefined {
    if (key === '$ref') return typeof value === 'string' ? this.reference(value) : value
    if (typeof value !== 'object' || value === null) return value
    if (Array.isArray(value)) {
      if (!LISTS.has(key)) return value
      const list = value.map((each) => this.rewritten(each, depth))
      return list.some((each, at) => each !== value[at]) ? list : value
    }
    if (SINGLE.has(key)) return this.rewritten(value, depth)
    if (!MAPS.has(key)) return value
    const entries = Object.entries(value).map(([name, each = null]): [string, JsonValue] => [
      name,
      this.rewritten(each, depth),
    ])
    return entries.some(([name, each]) => each !== value[name]) ? Object.fromEntries(entries) : value
  }

  private reference(ref: string): string | undefined {
    const name = DEFINITION.exec(ref)
    const target = this.target(ref)
    if (target === undefined) {
      if (this.context.report === undefined) return ref
      this.context.report()
      return undefined
    }
    if (name !== null) return ref
    return target === this.root ? '#' : `#/$defs/${this.nameOf(target, ref)}`
  }

  /** The name of the target as a definition, from the end of the reference. */
  private nameOf(target: JsonValue, ref: string): string {
    const known = this.names.get(target)
    if (known !== undefined) return known
    const words = ref.split(/[^A-Za-z0-9]+/).filter((word) => word !== '' && word !== 'properties')
    const plain = words.slice(-3).join('_').slice(0, 48) || 'schema'
    const taken = (name: string): boolean =>
      this.targets.has(name) ||
      [this.root['$defs'], this.root['definitions']].some((group) => Object.hasOwn(objectOf(group), name))
    let name = plain
    for (let at = 2; taken(name); at += 1) name = `${plain}_${at}`
    // Boolean schemas are equal to each other.
    if (typeof target === 'object') this.names.set(target, name)
    this.targets.set(name, target)
    return name
  }

  /** What the reference leads to; undefined if that is not in this schema. */
  private target(ref: string): JsonValue | undefined {
    const at = ref.indexOf('#')
    const base = at === -1 ? ref : ref.slice(0, at)
    const fragment = at === -1 ? '' : ref.slice(at + 1)
    const start = base === '' || base === this.root['$id'] ? this.root : this.schemaNamed(base)
    if (start === undefined || fragment === '') return start
    return fragment.startsWith('/') ? pointed(start, fragment) : this.schemaNamed(`#${fragment}`)
  }

  private schemaNamed(name: string): JsonObject | undefined {
    if (this.named === null) collect(this.root, (this.named = new Map<string, JsonObject>()), 0)
    return this.named.get(name)
  }
}

/** Adds the schemas with a name of their own. */
function collect(value: JsonValue | undefined, named: Map<string, JsonObject>, depth: number): void {
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return
  if (Array.isArray(value)) {
    for (const each of value) collect(each, named, depth + 1)
    return
  }
  const id = stringOf(value['$id'])
  const anchor = stringOf(value['$anchor'])
  if (id !== undefined) named.set(id, value)
  if (anchor !== undefined) named.set(`#${anchor}`, value)
  for (const key in value) collect(value[key], named, depth + 1)
}

/** The value at a JSON pointer in a URI; undefined if there is none. */
function pointed(start: JsonObject, pointer: string): JsonValue | undefined {
  let at: JsonValue | undefined = start
  for (const token of pointer.split('/').slice(1)) {
    if (typeof at !== 'object' || at === null) return undefined
    const name = pointerName(decoded(token))
    if (Array.isArray(at)) at = /^\d{1,6}$/.test(name) ? at[Number(name)] : undefined
    else at = Object.hasOwn(at, name) ? at[name] : undefined
  }
  return isObject(at) || typeof at === 'boolean' ? at : undefined
}

function decoded(token: string): string {
  if (!token.includes('%')) return token
  try {
    return decodeURIComponent(token)
  } catch {
    return token
  }
}
