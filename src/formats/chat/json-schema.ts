/**
 * Validates a JSON value against a JSON Schema. The result is only reported to clients, so a rule that is not
 * checked counts as fulfilled: `pattern` (a client's regular expression could run for hours), `format` and
 * references to other documents.
 */
import { GatewayError } from '../../errors.js'
import type { Reply } from './fold.js'
import { arrayOf, isObject, stringOf, type JsonObject, type JsonValue } from '../../base/json.js'
import type { ChatRequest } from './request.js'
import { MAPS } from './schema-keywords.js'

/** More than a reply of 128,000 tokens needs. Nested unions could need any number. */
const MAX_STEPS = 100_000
/** Characters compared or counted in the time of one step. */
const CHARS_PER_STEP = 64
/** Deeper than any reply. Bounds the stack for recursive references. */
const MAX_DEPTH = 256

/** False if the value breaks a checked rule of the schema. */
export function satisfies(value: JsonValue, schema: JsonObject): boolean {
  return new Validation(schema).check(value, schema)
}

type Rule = (value: JsonValue, schema: JsonObject, validation: Validation) => boolean

class Validation {
  readonly root: JsonObject
  private steps = 0
  private depth = 0
  /** JSON texts of compared values: one list of the schema is compared with many values. */
  private readonly texts = new WeakMap<object, string>()

  constructor(root: JsonObject) {
    this.root = root
  }

  check(value: JsonValue, schema: JsonValue | undefined): boolean {
    if (schema === false) return false
    this.steps += 1
    if (!isObject(schema) || this.steps > MAX_STEPS || this.depth === MAX_DEPTH) return true
    this.depth += 1
    const isFulfilled = RULES.every((rule) => rule(value, schema, this))
    this.depth -= 1
    return isFulfilled
  }

  /** Counts work within a step. False if the limit is exceeded. */
  spend(steps: number): boolean {
    this.steps += steps
    return this.steps <= MAX_STEPS
  }

  /** Compares JSON texts, so objects with their members in another order count as different. */
  isSame(one: JsonValue, other: JsonValue): boolean {
    if (typeof one !== 'object' || typeof other !== 'object') return one === other
    if (one === null || other === null) return one === other
    return this.textOf(one) === this.textOf(other)
  }

  private textOf(value: object): string {
    let text = this.texts.get(value)
    if (text === undefined) {
      text = JSON.stringify(value)
      this.texts.set(value, text)
    }
    this.steps += text.length / CHARS_PER_STEP
    return text
  }
}

/** The schema or value that a local `$ref` refers to; undefined if there is none. */
export function referenced(root: JsonObject, ref: string): JsonValue | undefined {
  if (ref !== '#' && !ref.startsWith('#/')) return undefined
  let at: JsonValue | undefined = root
  for (const token of ref.split('/').slice(1)) {
    if (!isObject(at)) return undefined
    const name = pointerName(token)
    // In this order: `hasOwn` is slow for a name of thousands that was not looked up before.
    const next: JsonValue | undefined = at[name]
    at = next !== undefined && Object.hasOwn(at, name) ? next : undefined
  }
  return at
}

/** The name in a token of a JSON pointer, without its escapes. */
export function pointerName(token: string): string {
  return token.includes('~') ? token.replaceAll('~1', '/').replaceAll('~0', '~') : token
}

const RULES: readonly Rule[] = [
  (value, { $ref }, validation) =>
    $ref === undefined || validation.check(value, referenced(validation.root, textOf($ref))),
  (value, { type }) => {
    const types = typeof type === 'string' ? [type] : arrayOf(type)
    return types.length === 0 || types.some((one) => isOfType(value, one))
  },
  (value, { enum: list }, validation) => {
    return (
      !Array.isArray(list) || list.some((one) => !validation.spend(1 / 8) || validation.isSame(value, one))
    )
  },
  (value, { const: only }, validation) => only === undefined || validation.isSame(value, only),
  (value, { allOf }, validation) => arrayOf(allOf).every((one) => validation.check(value, one)),
  (value, { anyOf }, validation) => isOneOf(value, anyOf, validation),
  (value, { oneOf }, validation) => isOneOf(value, oneOf, validation),
  (value, { not }, validation) => !isObject(not) || !validation.check(value, not),
  (value, schema) => typeof value !== 'number' || isWithin(value, schema),
  (value, schema, validation) => typeof value !== 'string' || isTextLong(value, schema, validation),
  (value, schema, validation) => !Array.isArray(value) || isList(value, schema, validation),
  (value, schema, validation) => !isObject(value) || isRecord(value, schema, validation),
]

function textOf(ref: JsonValue): string {
  return stringOf(ref) ?? ''
}

function isOneOf(value: JsonValue, list: JsonValue | undefined, validation: Validation): boolean {
  return !Array.isArray(list) || list.some((one) => validation.check(value, one))
}

function isOfType(value: JsonValue, type: JsonValue): boolean {
  switch (type) {
    case 'null':
      return value === null
    case 'array':
      return Array.isArray(value)
    case 'object':
      return isObject(value)
    case 'integer':
      return Number.isInteger(value)
    case 'string':
    case 'number':
    case 'boolean':
      return typeof value === type
    default:
      return true
  }
}

function isWithin(value: number, schema: JsonObject): boolean {
  const { minimum, maximum, exclusiveMinimum: above, exclusiveMaximum: below, multipleOf } = schema
  if (typeof minimum === 'number' && value < minimum) return false
  if (typeof maximum === 'number' && value > maximum) return false
  if (typeof above === 'number' && value <= above) return false
  if (typeof below === 'number' && value >= below) return false
  if (typeof multipleOf !== 'number' || multipleOf <= 0) return true
  const times = value / multipleOf
  return Math.abs(times - Math.round(times)) < 1e-9
}

function isTextLong(text: string, schema: JsonObject, validation: Validation): boolean {
  if (schema['minLength'] === undefined && schema['maxLength'] === undefined) return true
  return !validation.spend(text.length / CHARS_PER_STEP) || isLong(lengthOf(text), schema, 'Length')
}

/** JSON Schema counts code points. */
function lengthOf(text: string): number {
  let count = 0
  for (const { length } of text) count += length > 0 ? 1 : 0
  return count
}

function isLong(count: number, schema: JsonObject, of: 'Length' | 'Items' | 'Properties'): boolean {
  const [min, max] = [schema[`min${of}`], schema[`max${of}`]]
  if (typeof min === 'number' && count < min) return false
  return typeof max !== 'number' || count <= max
}

function isList(value: JsonValue[], schema: JsonObject, validation: Validation): boolean {
  if (!isLong(value.length, schema, 'Items')) return false
  const first = arrayOf(schema['prefixItems'])
  return value.every((item, at) => validation.check(item, at < first.length ? first[at] : schema['items']))
}

function isRecord(value: JsonObject, schema: JsonObject, validation: Validation): boolean {
  const keys = Object.keys(value)
  if (!isLong(keys.length, schema, 'Properties')) return false
  const required = arrayOf(schema['required'])
  if (!validation.spend((keys.length + required.length) / 8)) return true
  if (!required.every((key) => typeof key !== 'string' || Object.hasOwn(value, key))) return false
  const properties = isObject(schema['properties']) ? schema['properties'] : {}
  // Additional keys are unknown if the schema has patterns.
  const rest = schema['patternProperties'] === undefined ? schema['additionalProperties'] : true
  return keys.every((key) => {
    return validation.check(value[key] ?? null, Object.hasOwn(properties, key) ? properties[key] : rest)
  })
}

/**
 * Whether every object of the schema is closed and requires all of its properties, as OpenAI's strict mode
 * demands. Anthropic and Google enforce other schemas too.
 *
 * Decides whether a JSON Schema can be enforced strictly. Linear in the size of the schema.
 */
export function isClosed(schema: JsonValue | undefined): boolean {
  const pending: (JsonValue | undefined)[] = [schema]
  while (pending.length > 0) {
    const item = pending.pop()
    if (Array.isArray(item)) {
      for (const each of item) pending.push(each)
      continue
    }
    if (!isObject(item)) continue
    if (isOpenObject(item)) return false
    for (const [key, each] of Object.entries(item)) {
      if (VALUES.has(key)) continue
      // The names in a map of schemas are no keywords.
      if (MAPS.has(key) && isObject(each)) for (const one of Object.values(each)) pending.push(one)
      else pending.push(each)
    }
  }
  return true
}

/** Keywords whose value may look like a schema. */
const VALUES: ReadonlySet<string> = new Set(['const', 'default', 'enum', 'examples', 'example'])

function isOpenObject(schema: JsonObject): boolean {
  const { type } = schema
  const isTyped = type === 'object' || arrayOf(type).includes('object')
  // Variants and references have the properties of a schema without a type.
  if (!isTyped && !(type === undefined && isObject(schema.properties))) return false
  if (schema.additionalProperties !== false) return true
  const required = new Set(arrayOf(schema.required).map(stringOf))
  const { properties } = schema
  return isObject(properties) && Object.keys(properties).some((name) => !required.has(name))
}

/**
 * Limit for the schemas, properties and list items of all rewritten schemas of one request: about 40 ms of
 * work. A thousand tools of twenty properties each are within it.
 */
const MAX_PARTS = 25_000

/**
 * Limits the growth of the JSON Schemas of one request that are rewritten for an upstream. Inlined references
 * and merged branches make a schema larger than the client's text: a few hundred kilobytes could become
 * gigabytes.
 */
export class SchemaBudget {
  /** The field whose schema is being rewritten, for errors. */
  path: string
  private parts = 0

  constructor(path = 'the schema') {
    this.path = path
  }

  /** Throws `GatewayError(malformed_request)` naming the field if the limit is exceeded. */
  spend(parts: number): void {
    this.parts += parts
    if (this.parts <= MAX_PARTS) return
    throw new GatewayError(
      'malformed_request',
      `${this.path}: the request's JSON Schemas have more than ${MAX_PARTS} parts after their references and ` +
        'allOf branches are expanded for this upstream: send smaller schemas or fewer tools',
      { param: this.path },
    )
  }

  /** Counts the items of a list; any other value counts as 0. */
  spendList(list: JsonValue | undefined): void {
    if (Array.isArray(list)) this.spend(list.length)
  }
}

/**
 * Whether the request requires JSON without a schema; an empty schema counts as none. If a format has no JSON
 * mode, the model is instructed in the prompt instead.
 */
export function requestsFreeformJson({ responseFormat: format }: ChatRequest): boolean {
  if (format?.type === 'json-schema') return Object.keys(format.schema).length === 0
  return format?.type === 'json-object'
}

/**
 * The reply without the Markdown code fence that models often put around JSON. Replies to other requests are
 * unchanged.
 */
export function withoutCodeFence(reply: Reply, request: ChatRequest): Reply {
  if (!requestsFreeformJson(request)) return reply
  const blocks = reply.blocks.map((block) =>
    block.type === 'text' ? { ...block, text: unfenced(block.text) } : block,
  )
  return { ...reply, blocks }
}

/**
 * Whether the reply violates the schema of a strict request. Some providers enforce a looser schema than the
 * client's, and the gateway reports that to the client.
 */
export function violatesSchema(reply: Reply, request: ChatRequest): boolean {
  const format = request.responseFormat
  if (format?.type !== 'json-schema' || format.strict !== true || reply.reason !== 'stop') return false
  const text = reply.blocks.map((block) => (block.type === 'text' ? block.text : '')).join('')
  try {
    return !satisfies(JSON.parse(text) as JsonValue, format.schema)
  } catch {
    return true
  }
}

/** The text without the Markdown code fence around all of it. */
export function unfenced(text: string): string {
  const inner = /^```(?:json|JSON)?[ \t]*\r?\n([\s\S]*?)\r?\n?```$/.exec(text.trim())?.[1]
  return inner ?? text
}
