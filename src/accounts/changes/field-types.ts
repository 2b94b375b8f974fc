/**
 * The types of fields in objects and query parameters: zod schemas, whose messages are the sentence and the
 * advice of a refusal, and from which the OpenAPI document of the admin API is made. Objects are read
 * strictly: an unknown field is an error that names the nearest one, and all wrong fields are reported
 * together. Pure.
 */
import * as z from 'zod'
import { nearest } from '../../config/config-problem.js'
import { isObject, membersOf, objectOf, type JsonObject, type JsonValue } from '../../base/json.js'
import { GatewayError } from '../../errors.js'
import { faulty, type FieldFault } from './refusal.js'

/** Checks a value and returns its normal form. Its messages are made by `rule`. */
export type FieldType<Value extends JsonValue = JsonValue> = z.ZodType<Value>

/**
 * The types that are maps, whose members a merge patch merges each by itself; other values are replaced as a
 * whole. The values: the members of an object with a fixed set of them, else null.
 */
export const MAPS = new WeakMap<z.ZodType, Fields | null>()

/** A field of an object. */
interface Field {
  readonly type: FieldType
  readonly means: string
  /** The value of an absent field; without one the field is required, unless it is `optional`. */
  readonly default?: JsonValue
  /** Absent and null are the same. */
  readonly optional?: true
  /** May be sent back unchanged. */
  readonly readOnly?: true
  /** A time that changes by itself: an earlier one, or null, may be sent back, too. */
  readonly isVolatile?: true
  /** Never in a reply. */
  readonly writeOnly?: true
}

/** The fields of an object by name, in the order of replies. */
export type Fields = Readonly<Record<string, Field>>

/** Collects the wrong fields of an object. */
export class Faults {
  readonly all: FieldFault[] = []

  /** A wrong value: the path of the field, what is wrong, what to do. */
  report(field: string, detail: string, fix: string): void {
    this.all.push({ kind: 'invalid_field', field, detail, fix })
  }

  /** A field that does not exist; `known` has the names that do. */
  unknown(path: string, name: string, known: readonly string[], what = 'field'): void {
    const fix = nearestAdvice(
      name,
      known,
      known.length === 0 ? 'Remove it.' : `Use one of ${known.join(', ')}.`,
    )
    const detail = `There is no ${what} "${path}".`
    this.all.push({ kind: 'unknown_field', field: path, detail, fix })
  }

  /** What zod found wrong in the value at `path`, unknown fields first. */
  take(type: FieldType, { issues }: z.ZodError, path: string): void {
    const at = ({ path: parts }: z.core.$ZodIssue) => path + parts.map(stepOf).join('')
    for (const issue of issues) {
      if (issue.code !== 'unrecognized_keys') continue
      const known = Object.keys(fieldsAt(type, issue.path) ?? {})
      for (const name of issue.keys) this.unknown(`${at(issue)}.${name}`, name, known)
    }
    for (const issue of issues) {
      if (issue.code !== 'unrecognized_keys') this.report(at(issue), ...faultOf(issue, at(issue)))
    }
  }

  /** Throws a `Refusal` if a field is wrong. */
  refuse(): void {
    if (this.all.length > 0) throw faulty(this.all)
  }

  readOnly(path: string): void {
    const detail = `The field "${path}" is read-only, and its value differs from the current one.`
    const fix = 'Remove it, or send back the value that was read.'
    this.all.push({ kind: 'read_only_field', field: path, detail, fix })
  }
}

/** What to do about a name that is none of the known ones: the nearest one, or other advice. */
export function nearestAdvice(name: string, known: readonly string[], otherwise: string): string {
  const best = nearest(name, known)
  return best === null ? otherwise : `Use "${best}".`
}

function stepOf(part: PropertyKey): string {
  return typeof part === 'number' ? `[${part}]` : `.${String(part).slice(0, 64)}`
}

function fieldsAt(type: FieldType, path: readonly PropertyKey[]): Fields | undefined {
  const [first, ...rest] = path
  const fields = MAPS.get(type) ?? undefined
  const inner = first === undefined ? undefined : fields?.[String(first)]?.type
  return inner === undefined ? fields : fieldsAt(inner, rest)
}

/** Is replaced by the quoted path in the sentence of a rule. */
const PATH = '$PATH'

/** The message of a type for a wrong value: what to do, and what is wrong. */
export function rule(fix: string, wrong = `The value of ${PATH} is not valid.`): { readonly error: string } {
  return { error: `${wrong}\n${fix}` }
}

/** Whether a `rule` made the message. */
export function isRule({ message }: z.core.$ZodIssue): boolean {
  return message.includes('\n')
}

/** What is wrong with the value at `path` by a `rule`, and what to do. */
export function faultOf(issue: z.core.$ZodIssue, path: string): [detail: string, fix: string] {
  const [inner = issue] = issue.code === 'invalid_key' ? issue.issues : []
  const at = inner.message.lastIndexOf('\n')
  return [inner.message.slice(0, at).replace(PATH, () => `"${path}"`), inner.message.slice(at + 1)]
}

/** The value of a field in its normal form, or undefined after a report. */
export function readValue<Value extends JsonValue>(
  type: FieldType<Value>,
  value: unknown,
  { path, faults }: { readonly path: string; readonly faults: Faults },
): Value | undefined {
  const { data, error } = type.safeParse(value)
  if (error !== undefined) faults.take(type, error, path)
  return data
}

/** The same; throws a `Refusal` of the value. */
export function checkedValue<Value extends JsonValue>(
  type: FieldType<Value>,
  value: unknown,
  path: string,
): Value {
  const faults = new Faults()
  const read = readValue(type, value, { path, faults })
  faults.refuse()
  if (read === undefined) throw new GatewayError('bug', `a wrong value of ${path} has no fault`)
  return read
}

/** The current values of an object, of which read-only fields may be sent back; null for a new one. */
type Current = JsonObject | null

/** How a body is read: as a whole object or as a merge patch, of an object that exists or of a new one. */
interface Reading {
  readonly current?: Current
  readonly isPatch?: boolean
}

/** The writable values of a body. Throws a `Refusal` with every wrong field. */
export function readFields(
  fields: Fields,
  body: JsonObject,
  { current = null, isPatch = false }: Reading = {},
): JsonObject {
  const faults = new Faults()
  const read = (isPatch ? readPatch : readObject)(fields, body, { current, faults })
  faults.refuse()
  return read
}

/** The values of the writable fields of a whole object, defaults included. */
export function readObject(
  fields: Fields,
  value: JsonObject,
  { current, faults }: { current: Current; faults: Faults },
): JsonObject {
  const read: JsonObject = {}
  checkNames(fields, value, { current, faults })
  for (const [name, field] of Object.entries(fields)) {
    if (field.readOnly === true) continue
    const given = value[name]
    if (given === undefined || (given === null && field.optional === true)) {
      if (field.default !== undefined) read[name] = field.default
      else if (field.optional !== true) {
        faults.report(name, `The field "${name}" is required.`, `Add "${name}".`)
      }
      continue
    }
    const own = readValue(field.type, given, { path: name, faults })
    if (own !== undefined) read[name] = own
  }
  return read
}

/**
 * The values of the fields that a merge patch (RFC 7396) names: null is the default, or removes a member of a
 * map. `patchedObject` applies them.
 */
function readPatch(
  fields: Fields,
  patch: JsonObject,
  { current, faults }: { current: Current; faults: Faults },
): JsonObject {
  const read: JsonObject = {}
  checkNames(fields, patch, { current, faults })
  for (const [name, given] of Object.entries(patch)) {
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined
    if (field === undefined || field.readOnly === true || given === undefined) continue
    const { type } = field
    if (given === null) {
      if (field.default === undefined && field.optional !== true) {
        faults.report(name, `The field "${name}" has no default.`, 'Send a value.')
      } else read[name] = null
    } else if (MAPS.has(type) && isObject(given)) {
      const own = readMapPatch(type, given, name, faults)
      if (own !== undefined) read[name] = own
    } else {
      const own = readValue(type, given, { path: name, faults })
      if (own !== undefined) read[name] = own
    }
  }
  return read
}

/** The members of a map that a merge patch names; null removes a member. */
function readMapPatch(
  type: FieldType,
  patch: JsonObject,
  path: string,
  faults: Faults,
): JsonObject | undefined {
  const set: JsonObject = {}
  const others: JsonObject = {}
  const fields = MAPS.get(type) ?? null
  for (const [name, value] of Object.entries(patch)) {
    const inner = fields?.[name]?.type
    const place = `${path}.${name}`
    if (value === null) {
      // A name that does not exist is an error also when it is removed.
      const known = fields === null ? null : Object.keys(fields)
      if (known !== null && !known.includes(name)) faults.unknown(place, name, known)
      others[name] = null
    } else if (inner !== undefined && MAPS.has(inner) && isObject(value)) {
      others[name] = readMapPatch(inner, value, place, faults) ?? {}
    } else if (value !== undefined) set[name] = value
  }
  const own = readValue(type, set, { path, faults })
  return isObject(own) ? { ...own, ...others } : undefined
}

/** The writable values of an object after a patch that `readPatch` has read. */
export function patchedObject(fields: Fields, values: JsonObject, patch: JsonObject): JsonObject {
  const patched = { ...values }
  for (const [name, given] of Object.entries(patch)) {
    const field = fields[name]
    if (field === undefined) continue
    const before = patched[name]
    if (given === null || given === undefined) patched[name] = field.default ?? null
    else if (MAPS.has(field.type) && isObject(given)) patched[name] = mergedMap(field.type, before, given)
    else patched[name] = given
  }
  return patched
}

function mergedMap(type: FieldType, before: JsonValue | undefined, patch: JsonObject): JsonObject {
  const merged: JsonObject = isObject(before) ? { ...before } : {}
  for (const [name, value] of Object.entries(patch)) {
    const inner = MAPS.get(type)?.[name]?.type
    if (value === null) Reflect.deleteProperty(merged, name)
    else if (inner !== undefined && MAPS.has(inner) && isObject(value))
      merged[name] = mergedMap(inner, merged[name], value)
    else merged[name] = value
  }
  return merged
}

function checkNames(
  fields: Fields,
  value: JsonObject,
  { current, faults }: { current: Current; faults: Faults },
): void {
  for (const [name, given] of Object.entries(value)) {
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined
    if (field === undefined) faults.unknown(name, name, Object.keys(fields))
    else if (field.readOnly === true && !mayBeSentBack(field, given, current?.[name])) faults.readOnly(name)
  }
}

function mayBeSentBack(
  { isVolatile }: Field,
  given: JsonValue | undefined,
  current: JsonValue | undefined,
): boolean {
  if (isSame(given, current)) return true
  if (isVolatile !== true || typeof current !== 'string') return false
  const givenMs = typeof given === 'string' ? timeOf(given) : null
  return given === null || (givenMs !== null && givenMs <= Date.parse(current))
}

/** Whether two JSON values are equal; the order of members is ignored. */
export function isSame(a: JsonValue | undefined, b: JsonValue | undefined): boolean {
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((item, at) => isSame(item, b[at]))
  }
  if (isObject(a) && isObject(b)) {
    const names = Object.keys(a)
    return names.length === Object.keys(b).length && names.every((name) => isSame(a[name], b[name]))
  }
  return a === b
}

/** The object without these members. */
export function without<Whole extends object, Name extends keyof Whole>(
  whole: Whole,
  ...names: readonly Name[]
): Omit<Whole, Name> {
  const rest = { ...whole }
  for (const name of names) Reflect.deleteProperty(rest, name)
  return rest
}

/** The value if it is a text, else an empty one. */
export function textIn(value: JsonValue | undefined): string {
  return typeof value === 'string' ? value : ''
}

/** A text. `fix` describes the right ones, `schema` what JSON Schema can say of them. */
export function textType(
  fits: (text: string) => boolean,
  { fix, wrong, schema = {} }: { fix: string; wrong?: string; schema?: z.core.JSONSchemaMeta },
): FieldType<string> {
  return z.string(rule(fix, wrong)).refine(fits, rule(fix, wrong)).meta(schema)
}

/** One of these texts. */
export function choiceType<Choice extends string>(choices: readonly Choice[]): FieldType<Choice> {
  const list = `Use one of ${choices.join(', ')}.`
  return z.enum(choices, {
    error: ({ input }) => {
      const best = typeof input === 'string' ? nearest(input, choices) : null
      return rule(best === null ? list : `Use "${best}". ${list}`).error
    },
  })
}

/** True or false. */
export const FLAG: FieldType<boolean> = z.boolean(rule('Send true or false.'))

/** A number between two bounds. */
export function numberType(
  least: number,
  most: number,
  { isWhole = true }: { isWhole?: boolean } = {},
): FieldType<number> {
  const wrong = rule(`Send ${isWhole ? 'a whole number' : 'a number'} from ${least} to ${most}.`)
  return (isWhole ? z.int(wrong) : z.number(wrong)).min(least, wrong).max(most, wrong)
}

const NO_TIME = rule('Send a time such as 2027-01-31T00:00:00Z.', `The value of ${PATH} is not a time.`)

/** A time: RFC 3339 with a zone; its normal form is UTC. */
export const TIME: FieldType<string> = z
  .string(NO_TIME)
  .refine((text) => timeOf(text) !== null, { ...NO_TIME, abort: true })
  .overwrite((text) => new Date(timeOf(text) ?? 0).toISOString())
  .meta({ format: 'date-time' })

/** Ms since 1970 of a time of RFC 3339; null for another text, and for a date that does not exist. */
function timeOf(text: string): number | null {
  const [, day, hour] =
    /^(\d{4}-\d\d-\d\d)[Tt]((?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d))$/.exec(
      text,
    ) ?? []
  if (day === undefined || hour === undefined) return null
  const dayMs = Date.parse(`${day}T00:00:00Z`)
  // `Date.parse` moves a 30 February into March.
  if (Number.isNaN(dayMs) || new Date(dayMs).toISOString().slice(0, 10) !== day) return null
  const atMs = Date.parse(`${day}T${hour.toUpperCase()}`)
  return Number.isNaN(atMs) ? null : atMs
}

/** A list with `least` to `most` items of a type. The items of a list of another length are not read. */
export function listType<Item extends JsonValue>(
  item: FieldType<Item>,
  { most, least = 0 }: { most: number; least?: number },
) {
  const wrong = rule(`Send a list of ${least} to ${most} items.`)
  const length = z.array(z.unknown(), wrong).min(least, wrong).max(most, wrong)
  return length.pipe(z.array(item).min(least).max(most))
}

/** An object in a field; all of its fields are optional, and null is the same as absent. */
export function objectType(fields: Fields): FieldType<JsonObject> {
  const shape = Object.entries(fields).map(([name, { type, means }]) => {
    const member = z.preprocess((value) => value ?? undefined, type.optional())
    return [name, member.meta({ description: means })] as const
  })
  const type = z
    .strictObject(
      Object.fromEntries(shape),
      rule('Send a JSON object.', `The value of ${PATH} is not an object.`),
    )
    .transform((read): JsonObject => {
      return Object.fromEntries(Object.entries(read).filter(([, value]) => value !== undefined))
    })
  MAPS.set(type, fields)
  return type
}

/** An object with any members. */
export const ANY_OBJECT: FieldType<JsonObject> = z
  .looseObject({}, rule('Send a JSON object.'))
  .transform((value): JsonObject => objectOf(value))

/** The JSON schema of an object with these fields, for OpenAPI. */
export function schemaOf(fields: Fields): JsonObject {
  const entries = Object.entries(fields)
  const required = entries.filter(([, { default: usual, optional, readOnly }]) => {
    return usual === undefined && optional !== true && readOnly !== true
  })
  return {
    type: 'object',
    properties: Object.fromEntries(
      entries.map(([name, field]) => [
        name,
        {
          ...schemaOfType(field.type),
          description: field.means,
          ...(field.default === undefined ? {} : { default: field.default }),
          ...(field.readOnly === true ? { readOnly: true } : {}),
          ...(field.writeOnly === true ? { writeOnly: true } : {}),
        },
      ]),
    ),
    ...(required.length === 0 ? {} : { required: required.map(([name]) => name) }),
    additionalProperties: false,
  }
}

/** The order of members in a JSON Schema. */
const ORDER = [
  ...['type', 'format', 'pattern', 'enum', 'minLength', 'maxLength', 'minimum', 'maximum', 'properties'],
  ...['items', 'minItems', 'maxItems', 'required', 'additionalProperties', 'maxProperties', 'description'],
  ...['default', 'readOnly'],
]

/** How zod writes a JSON Schema for OpenAPI. */
export const JSON_SCHEMA = {
  unrepresentable: 'any',
  override({ jsonSchema }) {
    const [one, none] = jsonSchema.anyOf ?? []
    const kinds = none?.type === 'null' ? { ...one, type: [one?.type ?? 'object', 'null'] } : {}
    const all = objectOf({ ...jsonSchema, ...kinds })
    for (const name of Object.keys(jsonSchema)) Reflect.deleteProperty(jsonSchema, name)
    Object.assign(jsonSchema, membersOf(all, ORDER))
  },
} as const satisfies z.core.ToJSONSchemaParams

/** The JSON Schema of a type. */
export function schemaOfType(type: z.ZodType): JsonObject {
  const schema: unknown = z.toJSONSchema(type, JSON_SCHEMA)
  return without(objectOf(schema), '$schema')
}
