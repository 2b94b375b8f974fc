/**
 * Whether a JSON value is what a JSON Schema describes.
 * For telling a client that an answer missed its schema, never for refusing one: what is not judged
 * counts as fulfilled. `pattern` and `format` are not judged, since a client's expression could run for
 * hours; nor is what is behind a reference outside the schema.
 */
import { arrayOf, isObject, stringOf, type JsonObject, type JsonValue } from '../json.js'

/** More than an answer of 128,000 tokens needs; a schema of unions in unions could need any number. */
const MAX_STEPS = 100_000
/** Characters that are compared or counted in the time of one step. */
const CHARS_PER_STEP = 64
/** Deeper than any answer; also what keeps references to themselves off the stack's limit. */
const MAX_DEPTH = 256

/** True unless the value breaks a rule of the schema that is judged here. */
export function satisfies(value: JsonValue, schema: JsonObject): boolean {
  return new Validation(schema).check(value, schema)
}

type Rule = (value: JsonValue, schema: JsonObject, judge: Validation) => boolean

class Validation {
  private readonly root: JsonObject
  private steps = 0
  private depth = 0
  /** The JSON texts of values that have been compared: a list of the schema meets many values. */
  private readonly texts = new WeakMap<object, string>()

  constructor(root: JsonObject) {
    this.root = root
  }

  check(value: JsonValue, schema: JsonValue | undefined): boolean {
    if (schema === false) return false
    this.steps += 1
    if (!isObject(schema) || this.steps > MAX_STEPS || this.depth === MAX_DEPTH) return true
    this.depth += 1
    const fulfilled = RULES.every((rule) => rule(value, schema, this))
    this.depth -= 1
    return fulfilled
  }

  /** Counts work that is not a step of its own; false once there has been too much of it. */
  spend(steps: number): boolean {
    this.steps += steps
    return this.steps <= MAX_STEPS
  }

  /** Members in another order make another text; an answer that says them so is rare, and only reported. */
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

  /** What a local `$ref` points at; undefined where it points nowhere. */
  referenced(ref: string): JsonValue | undefined {
    if (ref !== '#' && !ref.startsWith('#/')) return undefined
    let at: JsonValue | undefined = this.root
    for (const step of ref.split('/').slice(1)) {
      const name = step.replaceAll('~1', '/').replaceAll('~0', '~')
      at = isObject(at) && Object.hasOwn(at, name) ? at[name] : undefined
    }
    return at
  }
}

const RULES: readonly Rule[] = [
  (value, { $ref }, judge) =>
    $ref === undefined || judge.check(value, judge.referenced(textOf($ref))),
  (value, { type }) => {
    const types = typeof type === 'string' ? [type] : arrayOf(type)
    return types.length === 0 || types.some((one) => isOfType(value, one))
  },
  (value, { enum: list }, judge) => {
    return (
      !Array.isArray(list) || list.some((one) => !judge.spend(1 / 8) || judge.isSame(value, one))
    )
  },
  (value, { const: only }, judge) => only === undefined || judge.isSame(value, only),
  (value, { allOf }, judge) => arrayOf(allOf).every((one) => judge.check(value, one)),
  (value, { anyOf }, judge) => isOneOf(value, anyOf, judge),
  (value, { oneOf }, judge) => isOneOf(value, oneOf, judge),
  (value, { not }, judge) => !isObject(not) || !judge.check(value, not),
  (value, schema) => typeof value !== 'number' || isWithin(value, schema),
  (value, schema, judge) => typeof value !== 'string' || isTextLong(value, schema, judge),
  (value, schema, judge) => !Array.isArray(value) || isList(value, schema, judge),
  (value, schema, judge) => !isObject(value) || isRecord(value, schema, judge),
]

function textOf(ref: JsonValue): string {
  return stringOf(ref) ?? ''
}

function isOneOf(value: JsonValue, list: JsonValue | undefined, judge: Validation): boolean {
  return !Array.isArray(list) || list.some((one) => judge.check(value, one))
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

function isTextLong(text: string, schema: JsonObject, judge: Validation): boolean {
  if (schema['minLength'] === undefined && schema['maxLength'] === undefined) return true
  return !judge.spend(text.length / CHARS_PER_STEP) || isLong(lengthOf(text), schema, 'Length')
}

/** JSON Schema counts code points. */
function lengthOf(text: string): number {
  let count = 0
  for (const { length } of text) count += length > 0 ? 1 : 0
  return count
}

function isLong(count: number, schema: JsonObject, of: 'Length' | 'Items' | 'Properties'): boolean {
  const [least, most] = [schema[`min${of}`], schema[`max${of}`]]
  if (typeof least === 'number' && count < least) return false
  return typeof most !== 'number' || count <= most
}

function isList(value: JsonValue[], schema: JsonObject, judge: Validation): boolean {
  if (!isLong(value.length, schema, 'Items')) return false
  const first = arrayOf(schema['prefixItems'])
  return value.every((item, at) =>
    judge.check(item, at < first.length ? first[at] : schema['items']),
  )
}

function isRecord(value: JsonObject, schema: JsonObject, judge: Validation): boolean {
  const keys = Object.keys(value)
  if (!isLong(keys.length, schema, 'Properties')) return false
  const required = arrayOf(schema['required'])
  if (!judge.spend((keys.length + required.length) / 8)) return true
  if (!required.every((key) => typeof key !== 'string' || Object.hasOwn(value, key))) return false
  const properties = isObject(schema['properties']) ? schema['properties'] : {}
  // With patterns it is not known here which keys are additional.
  const rest = schema['patternProperties'] === undefined ? schema['additionalProperties'] : true
  return keys.every((key) => {
    return judge.check(value[key] ?? null, Object.hasOwn(properties, key) ? properties[key] : rest)
  })
}
