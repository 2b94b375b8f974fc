/**
 * JSON Schema as Gemini's JSON-Schema fields take it: a schema that allows at least what the
 * original allowed. Knows no tool and no request; every change only relaxes.
 *
 * A keyword that the API does not list makes it refuse the whole request, so this copies what is on
 * the list and nothing else. Bounded by depth; references are never followed without end.
 */
import { arrayOf, isObject, type JsonObject, type JsonValue } from '../../chat/json.js'
import { SchemaRefs } from './schema-refs.js'

/** Deeper schemas are cut to "anything" there; OpenAI stops at 10 levels, Google names no number. */
const MAX_DEPTH = 48

const TYPES = new Set(['string', 'number', 'integer', 'boolean', 'array', 'object', 'null'])

/** Copied as they are when they have the right type. */
const STRINGS = ['title', 'format'] as const
const NUMBERS = ['minimum', 'maximum', 'minItems', 'maxItems'] as const

/** Where in a schema the walk is. */
interface Place {
  readonly refs: SchemaRefs
  readonly depth: number
  /** The definition being walked; '' is the root. */
  readonly inside: string
  /** Told when a reference leads back to `inside`; null where no property stands in between. */
  readonly property: { cyclic: boolean } | null
}

/** The schema, relaxed to what `responseJsonSchema` and `parametersJsonSchema` accept. */
export function relaxSchema(schema: JsonObject): JsonObject {
  const refs = new SchemaRefs(schema)
  const place: Place = { refs, depth: 0, inside: '', property: null }
  const root = relax(schema, place)
  const defs = refs.names().map((name): [string, JsonValue] => {
    return [name, relax(refs.definition(name), { ...place, inside: name })]
  })
  return defs.length === 0 ? root : { ...root, $defs: Object.fromEntries(defs) }
}

function relax(node: JsonValue | undefined, place: Place): JsonObject {
  if (!isObject(node) || place.depth > MAX_DEPTH) return {}
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
  return copyEnum(merged, out)
}

/** A node with `$ref` may have no other keyword, and a cycle must pass an optional property. */
function relaxRef(ref: string, place: Place): JsonObject {
  const name = place.refs.nameOf(ref)
  if (name === null) return {}
  if (place.refs.reaches(name, place.inside)) {
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
function mergeAllOf(node: JsonObject, place: Place, depth = 0): JsonObject {
  const { allOf, ...own } = node
  let merged: JsonObject = own
  for (const branch of arrayOf(allOf)) {
    if (!isObject(branch) || depth > MAX_DEPTH) continue
    const bare = Object.keys(merged).every((key) => key === 'description' || key === 'title')
    if (typeof branch.$ref === 'string' && bare && arrayOf(allOf).length === 1) return branch
    const known = inlined(branch, place)
    if (known === null) continue
    const flat = Array.isArray(known.allOf) ? mergeAllOf(known, place, depth + 1) : known
    if (flat.$ref === undefined) merged = mergeTwo(merged, flat)
  }
  return merged
}

function inlined(branch: JsonObject, place: Place): JsonObject | null {
  if (typeof branch.$ref !== 'string') return branch
  const name = place.refs.nameOf(branch.$ref)
  return name === null || name === place.inside ? null : place.refs.copyOf(name)
}

function mergeTwo(first: JsonObject, second: JsonObject): JsonObject {
  const merged: JsonObject = { ...second, ...first }
  if (isObject(first.properties) && isObject(second.properties)) {
    merged.properties = { ...second.properties, ...first.properties }
  }
  const required = [...arrayOf(first.required), ...arrayOf(second.required)]
  if (required.length > 0) merged.required = [...new Set(required)]
  // One branch's `false` speaks of its own properties only.
  if (merged.additionalProperties === false) delete merged.additionalProperties
  return merged
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
