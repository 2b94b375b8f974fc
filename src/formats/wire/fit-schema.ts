/**
 * Makes the JSON Schema of a tool or of a reply fit for the vendor that gets it. A schema that the vendor
 * takes is not changed; a changed one allows the same values unless the change is reported.
 */
import { referenced, SchemaBudget } from '../chat/json-schema.js'
import { arrayOf, isObject, objectOf, type JsonObject, type JsonValue } from '../../base/json.js'
import { LISTS, MAPS, MAX_DEPTH, SINGLE } from '../chat/schema-keywords.js'
import { withDefinitions } from './schema-references.js'
import { hasObjectRoot, rootObject, strictSchema, type StrictSchema } from './strict-schema.js'
import { ANY_VALUE, withBareUnion, withOneMapOfDefinitions, withType } from './typed-schema.js'

/** What a vendor requires of a schema, beside draft 2020-12. */
export interface SchemaRules {
  /** Every array has `items`. */
  readonly arrayItems: boolean
  /** Keywords that the vendor refuses at the root, which is then an object with all their properties. */
  readonly notAtRoot: readonly string[]
  /** The only keywords that it takes at the root; absent: all others. */
  readonly onlyAtRoot?: readonly string[]
  /** It takes no definitions: references are replaced by what they refer to. */
  readonly withoutReferences?: true
  /** Every schema states its type, and unions and references have no keywords beside them. */
  readonly typed?: true
}

/** Receives the path of a schema that allows more values than before. */
interface SchemaLosses {
  drop(path: string, why: 'approximated'): void
}

interface SchemaContext {
  readonly losses: SchemaLosses
  readonly budget?: SchemaBudget
  /** The path of what is lost. */
  readonly path?: string
}

/** Keywords without influence on the values that a schema allows, or that are no longer needed. */
const NO_CONSTRAINTS: ReadonlySet<string> = new Set([
  '$schema',
  '$id',
  '$comment',
  '$defs',
  'definitions',
  'title',
])

/** The paths of every loss in the schema of a tool, and of a reply. */
export const TOOL_SCHEMA = 'tools.parameters'
export const REPLY_SCHEMA = 'response_format'

/**
 * The schema of a tool's parameters, or of a reply, for a vendor with these rules. Throws
 * `GatewayError(malformed_request)` if it exceeds the budget, which all schemas of a request share.
 */
export function fitSchema(
  schema: JsonObject,
  rules: SchemaRules,
  { losses, budget = new SchemaBudget(), path = TOOL_SCHEMA }: SchemaContext,
): JsonObject {
  const report = (): void => losses.drop(path, 'approximated')
  // The arguments of a call are an object.
  if (path === TOOL_SCHEMA && !hasObjectRoot(schema)) report()
  // OpenAI and Gemini take references to definitions only; others could lose their targets below.
  const plain = withDefinitions(schema, { budget, report })
  const whole = rules.withoutReferences === true ? inlined(plain, { root: plain, budget, report }) : plain
  const inner = fit(whole, { rules, report, budget, depth: 0 })
  const fitted = rules.typed === true ? withOneMapOfDefinitions(inner) : inner
  if (rules.notAtRoot.length === 0) return fitted
  const isRefused = rules.notAtRoot.some((key) => fitted[key] !== undefined)
  if (isRefused) report()
  const root = rootObject(fitted, budget)
  if (!isRefused && rules.onlyAtRoot === undefined) return root
  return withKeywords(root, rules, report)
}

/**
 * The schema of a reply for a vendor with these rules. One whose root is no object stays: the vendor judges
 * it, since an object instead would be another reply.
 */
export function fitReplySchema(schema: JsonObject, rules: SchemaRules, losses: SchemaLosses): JsonObject {
  if (!hasObjectRoot(schema)) return schema
  const budget = new SchemaBudget('response_format.json_schema.schema')
  return fitSchema(schema, rules, { losses, budget, path: REPLY_SCHEMA })
}

/** `lost`: the schema allows more values than the given one. */
type EnforcedSchema = StrictSchema & { readonly lost: boolean }

/** A fitted schema for a vendor that enforces it, or the reason why it cannot. Throws like `fitSchema`. */
export function enforcedSchema(schema: JsonObject, budget: SchemaBudget): EnforcedSchema {
  const report = { lost: false }
  const lost = (): void => void (report.lost = true)
  const strict = strictSchema(withDefinitions(schema, { budget, report: lost }), budget, lost)
  return { ...strict, ...report }
}

/** The same for the schema of a reply as the client sent it. */
export function enforcedReplySchema(schema: JsonObject, rules: SchemaRules): EnforcedSchema {
  if (!hasObjectRoot(schema)) return { problem: 'the root must be an object', lost: false }
  const report = { lost: false }
  const losses = { drop: () => void (report.lost = true) }
  const budget = new SchemaBudget('response_format.json_schema.schema')
  const enforced = enforcedSchema(fitSchema(schema, rules, { losses, budget }), budget)
  return { ...enforced, lost: enforced.lost || report.lost }
}

/** The root without the keywords that the vendor refuses there. */
function withKeywords(
  root: JsonObject,
  { notAtRoot, onlyAtRoot }: SchemaRules,
  report: () => void,
): JsonObject {
  const isTaken = (key: string): boolean => !notAtRoot.includes(key) && onlyAtRoot?.includes(key) !== false
  if (Object.keys(root).every(isTaken)) return root
  // A closed root changes nothing for the model, which gets the declared properties only.
  const isSilent = (key: string): boolean =>
    NO_CONSTRAINTS.has(key) || (key === 'additionalProperties' && root[key] === false)
  const lost = Object.keys(root).some((key) => !isTaken(key) && !notAtRoot.includes(key) && !isSilent(key))
  if (lost) report()
  return Object.fromEntries(Object.entries(root).filter(([key]) => isTaken(key)))
}

/** The schema that references are followed in. */
interface Inlining {
  readonly root: JsonObject
  readonly budget: SchemaBudget
  readonly report: () => void
  /** The references that lead to this schema. */
  readonly path?: readonly string[]
}

/** The schema with the schemas that its references name. One that contains itself allows any value. */
function inlined(schema: JsonObject, context: Inlining): JsonObject {
  const { root, budget, report, path = [] } = context
  budget.spend(1)
  const { $ref, ...rest } = schema
  if (typeof $ref === 'string') {
    const target = referenced(root, $ref)
    if (!isObject(target) || path.includes($ref) || path.length > MAX_DEPTH) {
      report()
      return rest
    }
    return inlined({ ...target, ...rest }, { ...context, path: [...path, $ref] })
  }
  const one = (value: JsonValue): JsonValue => (isObject(value) ? inlined(value, context) : value)
  const members = Object.entries(schema).flatMap(([key, value = null]): [string, JsonValue][] => {
    if (key === '$defs' || key === 'definitions') return []
    if (Array.isArray(value) && LISTS.has(key)) return [[key, value.map(one)]]
    if (!isObject(value)) return [[key, value]]
    if (SINGLE.has(key)) return [[key, one(value)]]
    if (!MAPS.has(key)) return [[key, value]]
    const entries = Object.entries(value).map(([name, each = null]) => [name, one(each)])
    return [[key, Object.fromEntries(entries) as JsonObject]]
  })
  return Object.fromEntries(members)
}

/** The position of a schema within the root. */
interface FitContext {
  readonly rules: SchemaRules
  readonly report: () => void
  readonly budget: SchemaBudget
  readonly depth: number
}

function fit(given: JsonObject, context: FitContext): JsonObject {
  const { rules, report, depth } = context
  if (depth > MAX_DEPTH) return given
  // The keywords at the root are those of the object that `rootObject` makes of it.
  const isTyped = rules.typed === true && depth > 0
  const schema = isTyped ? withBareUnion(given, context) : given
  let out: JsonObject | null = null
  for (const [key, value] of Object.entries(schema)) {
    const changed = fitMember(key, value, { ...context, depth: depth + 1 })
    if (changed === value) continue
    out ??= { ...schema }
    out[key] = changed
  }
  const current = withItems(withCurrentKeywords(withKnownValues(out ?? schema, report)), rules)
  return isTyped ? withType(current) : current
}

function fitMember(key: string, value: JsonValue | undefined, context: FitContext): JsonValue | undefined {
  const isTyped = context.rules.typed === true
  // Additional properties without a rule may be of any type.
  if (isTyped && key === 'additionalProperties' && Object.keys(objectOf(value)).length === 0) return value
  const one = (each: JsonValue): JsonValue => {
    if (isObject(each)) return fit(each, context)
    return each === true && isTyped ? ANY_VALUE : each
  }
  if (isTyped && key === 'items' && value === true) return ANY_VALUE
  if (Array.isArray(value) && LISTS.has(key)) {
    const list = value.map(one)
    return list.some((each, at) => each !== value[at]) ? list : value
  }
  if (!isObject(value)) return value
  if (SINGLE.has(key)) return one(value)
  if (!MAPS.has(key)) return value
  const entries = Object.entries(value).map(([name, each]): [string, JsonValue] => [name, one(each ?? null)])
  return entries.some(([name, each]) => each !== value[name]) ? Object.fromEntries(entries) : value
}

/** Keywords whose value may be null. */
const NULLABLE: ReadonlySet<string> = new Set(['const', 'default'])

/** The types of values. */
const TYPES: ReadonlySet<unknown> = new Set([
  ...['object', 'array', 'string', 'number', 'integer', 'boolean', 'null'],
])

/**
 * The schema with types in lower case, and without keywords whose value is of no type that they have, which
 * vendors refuse: null means absence, `required: true` is of draft 3, and no model has the type `any`.
 */
function withKnownValues(schema: JsonObject, report: () => void): JsonObject {
  const members = Object.entries(schema).map(
    ([key, value = null]) => [key, value, knownValue(key, value)] as const,
  )
  if (members.every(([, value, known]) => known === value)) return schema
  const isLost = members.some(([, value, known]) => known === undefined && value !== null && value !== 'any')
  if (isLost) report()
  return Object.fromEntries(members.flatMap(([key, , known]) => (known === undefined ? [] : [[key, known]])))
}

/** The value as the keyword has it; the same if nothing changes, undefined if it has no such value. */
function knownValue(key: string, value: JsonValue): JsonValue | undefined {
  if (value === null) return NULLABLE.has(key) ? value : undefined
  if (key === 'required') return Array.isArray(value) ? value : undefined
  if (key !== 'type') return value
  const types = (Array.isArray(value) ? value : [value]).map((type) => {
    return typeof type === 'string' ? type.toLowerCase() : type
  })
  if (!types.every((type) => TYPES.has(type))) return undefined
  if (types.every((type) => arrayOf(value).includes(type))) return value
  return Array.isArray(value) ? types : types[0]
}

/** The keywords of earlier drafts as those of draft 2020-12, with the same meaning. */
function withCurrentKeywords(schema: JsonObject): JsonObject {
  let out = schema
  for (const [bound, limit] of [
    ['exclusiveMinimum', 'minimum'],
    ['exclusiveMaximum', 'maximum'],
  ] as const) {
    const value = out[bound]
    if (typeof value !== 'boolean') continue
    const number = out[limit]
    const rest: JsonObject = Object.fromEntries(
      Object.entries(out).filter(([key]) => key !== bound && key !== limit),
    )
    const key = value ? bound : limit
    out = number === undefined ? rest : { ...rest, [key]: number }
  }
  // Most schemas have neither: they are not copied.
  if (out.items === undefined && out.additionalItems === undefined) return out
  const { items, additionalItems, ...rest } = out
  if (!Array.isArray(items)) return additionalItems === undefined ? out : withoutAdditional(out)
  const tuple: JsonObject = { ...rest, prefixItems: items }
  if (isObject(additionalItems)) return { ...tuple, items: additionalItems }
  if (additionalItems !== false) return tuple
  const maximum = typeof rest.maxItems === 'number' ? Math.min(rest.maxItems, items.length) : items.length
  return { ...tuple, maxItems: maximum }
}

/** `additionalItems` has no meaning without a list of items. */
function withoutAdditional(schema: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(schema).filter(([key]) => key !== 'additionalItems'))
}

function withItems(schema: JsonObject, { arrayItems }: SchemaRules): JsonObject {
  if (!arrayItems || schema.items !== undefined) return schema
  const isArray = schema.type === 'array' || arrayOf(schema.type).includes('array')
  return isArray ? { ...schema, items: {} } : schema
}
