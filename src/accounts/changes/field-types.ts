/**
 * The types of fields in objects and query parameters: each checks a value and describes itself for the
 * OpenAPI document of the admin API. Objects are read strictly: an unknown field is an error that names the
 * nearest one, and all wrong fields are reported together. Pure.
 */
import { nearest } from '../../config/config-problem.js'
import { isObject, type JsonObject, type JsonValue } from '../../base/json.js'
import type { FieldFault } from './refusal.js'

export interface FieldType<Value extends JsonValue = JsonValue> {
  /** Its JSON Schema. */
  readonly schema: JsonObject
  /** The value in its normal form, or undefined after a report. */
  read(value: unknown, path: string, faults: Faults): Value | undefined
  /**
   * The members of a map, each merged by itself in a merge patch; absent: the value is replaced as a whole.
   */
  readonly isMap?: true
  /** The members of an object with a fixed set of them. */
  readonly fields?: Fields
}

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
    const best = nearest(name, known)
    const advice = known.length === 0 ? 'Remove it.' : `Use one of ${known.join(', ')}.`
    const fix = best === null ? advice : `Use "${best}".`
    const detail = `There is no ${what} "${path}".`
    this.all.push({ kind: 'unknown_field', field: path, detail, fix })
  }

  readOnly(path: string): void {
    const detail = `The field "${path}" is read-only, and its value differs from the current one.`
    const fix = 'Remove it, or send back the value that was read.'
    this.all.push({ kind: 'read_only_field', field: path, detail, fix })
  }
}

/** The current values of an object, of which read-only fields may be sent back; null for a new one. */
type Current = JsonObject | null

/**
 * The values of the writable fields of a whole object, defaults included. `path` is that of the object, with
 * a dot at its end, or empty.
 */
export function readObject(
  fields: Fields,
  value: JsonObject,
  { current, faults, path = '' }: { current: Current; faults: Faults; path?: string },
): JsonObject {
  const read: JsonObject = {}
  checkNames(fields, value, { current, faults, path })
  for (const [name, field] of Object.entries(fields)) {
    if (field.readOnly === true) continue
    const given = value[name]
    if (given === undefined || (given === null && field.optional === true)) {
      if (field.default !== undefined) read[name] = field.default
      else if (field.optional !== true) {
        faults.report(path + name, `The field "${path}${name}" is required.`, `Add "${name}".`)
      }
      continue
    }
    const own = field.type.read(given, path + name, faults)
    if (own !== undefined) read[name] = own
  }
  return read
}

/**
 * The values of the fields that a merge patch (RFC 7396) names: null is the default, or removes a member of a
 * map. `patchedObject` applies them.
 */
export function readPatch(
  fields: Fields,
  patch: JsonObject,
  { current, faults }: { current: Current; faults: Faults },
): JsonObject {
  const read: JsonObject = {}
  checkNames(fields, patch, { current, faults, path: '' })
  for (const [name, given] of Object.entries(patch)) {
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined
    if (field === undefined || field.readOnly === true || given === undefined) continue
    const { type } = field
    if (given === null) {
      if (field.default === undefined && field.optional !== true) {
        faults.report(name, `The field "${name}" has no default.`, 'Send a value.')
      } else read[name] = null
    } else if (type.isMap === true && isObject(given)) {
      const own = readMapPatch(type, given, name, faults)
      if (own !== undefined) read[name] = own
    } else {
      const own = type.read(given, name, faults)
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
  for (const [name, value] of Object.entries(patch)) {
    const inner = type.fields?.[name]?.type
    const place = `${path}.${name}`
    if (value === null) {
      // A name that does not exist is an error also when it is removed.
      const known = type.fields === undefined ? null : Object.keys(type.fields)
      if (known !== null && !known.includes(name)) faults.unknown(place, name, known)
      others[name] = null
    } else if (inner?.isMap === true && isObject(value)) {
      others[name] = readMapPatch(inner, value, place, faults) ?? {}
    } else if (value !== undefined) set[name] = value
  }
  const own = type.read(set, path, faults)
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
    else if (field.type.isMap === true && isObject(given))
      patched[name] = mergedMap(field.type, before, given)
    else patched[name] = given
  }
  return patched
}

function mergedMap(type: FieldType, before: JsonValue | undefined, patch: JsonObject): JsonObject {
  const merged: JsonObject = isObject(before) ? { ...before } : {}
  for (const [name, value] of Object.entries(patch)) {
    const inner = type.fields?.[name]?.type
    if (value === null) Reflect.deleteProperty(merged, name)
    else if (inner?.isMap === true && isObject(value)) merged[name] = mergedMap(inner, merged[name], value)
    else merged[name] = value
  }
  return merged
}

function checkNames(
  fields: Fields,
  value: JsonObject,
  { current, faults, path }: { current: Current; faults: Faults; path: string },
): void {
  for (const [name, given] of Object.entries(value)) {
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined
    if (field === undefined) faults.unknown(path + name, name, Object.keys(fields))
    else if (field.readOnly === true && !mayBeSentBack(field, given, current?.[name]))
      faults.readOnly(path + name)
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

/** A text. `fix` describes the right ones. */
export function textType(
  fits: (text: string) => boolean,
  { fix, schema = {} }: { fix: string; schema?: JsonObject },
): FieldType<string> {
  return {
    schema: { type: 'string', ...schema },
    read(value, path, faults) {
      if (typeof value === 'string' && fits(value)) return value
      faults.report(path, `${quoted(path)} is not valid.`, fix)
      return undefined
    },
  }
}

/** One of these texts. */
export function choiceType<Choice extends string>(choices: readonly Choice[]): FieldType<Choice> {
  return {
    schema: { type: 'string', enum: [...choices] },
    read(value, path, faults) {
      const found = choices.find((choice) => choice === value)
      if (found !== undefined) return found
      const best = typeof value === 'string' ? nearest(value, choices) : null
      const list = `Use one of ${choices.join(', ')}.`
      faults.report(path, `${quoted(path)} is not valid.`, best === null ? list : `Use "${best}". ${list}`)
      return undefined
    },
  }
}

/** True or false. */
export const FLAG: FieldType<boolean> = {
  schema: { type: 'boolean' },
  read(value, path, faults) {
    if (typeof value === 'boolean') return value
    faults.report(path, `${quoted(path)} is not valid.`, 'Send true or false.')
    return undefined
  },
}

/** A number between two bounds. */
export function numberType(
  least: number,
  most: number,
  { isWhole = true }: { isWhole?: boolean } = {},
): FieldType<number> {
  return {
    schema: { type: isWhole ? 'integer' : 'number', minimum: least, maximum: most },
    read(value, path, faults) {
      const isKind = typeof value === 'number' && (!isWhole || Number.isInteger(value))
      if (isKind && value >= least && value <= most) return value
      const kind = isWhole ? 'a whole number' : 'a number'
      faults.report(path, `${quoted(path)} is not valid.`, `Send ${kind} from ${least} to ${most}.`)
      return undefined
    },
  }
}

/** A time: RFC 3339 with a zone; its normal form is UTC. */
export const TIME: FieldType<string> = {
  schema: { type: 'string', format: 'date-time' },
  read(value, path, faults) {
    const atMs = typeof value === 'string' ? timeOf(value) : null
    if (atMs !== null) return new Date(atMs).toISOString()
    faults.report(path, `${quoted(path)} is not a time.`, 'Send a time such as 2027-01-31T00:00:00Z.')
    return undefined
  },
}

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

/** The type or null. */
export function orNull<Value extends JsonValue>(type: FieldType<Value>): FieldType<Value | null> {
  const kind = type.schema['type'] ?? 'object'
  return {
    schema: { ...type.schema, type: [kind, 'null'] },
    read: (value, path, faults) => (value === null ? null : type.read(value, path, faults)),
  }
}

/** A list with `least` to `most` items of a type. */
export function listType(
  item: FieldType,
  { most, least = 0 }: { most: number; least?: number },
): FieldType<JsonValue[]> {
  return {
    schema: { type: 'array', items: item.schema, minItems: least, maxItems: most },
    read(value, path, faults) {
      if (!Array.isArray(value) || value.length < least || value.length > most) {
        faults.report(path, `${quoted(path)} is not valid.`, `Send a list of ${least} to ${most} items.`)
        return undefined
      }
      const read = value.map((each, at) => item.read(each, `${path}[${at}]`, faults))
      return read.every((each) => each !== undefined) ? read : undefined
    },
  }
}

export function objectType(fields: Fields): FieldType<JsonObject> {
  return {
    schema: schemaOf(fields),
    isMap: true,
    fields,
    read(value, path, faults) {
      if (!isObject(value)) {
        faults.report(path, `${quoted(path)} is not an object.`, 'Send a JSON object.')
        return undefined
      }
      const before = faults.all.length
      const read = readObject(fields, value, { current: null, faults, path: `${path}.` })
      return faults.all.length === before ? read : undefined
    },
  }
}

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
          ...field.type.schema,
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

function quoted(path: string): string {
  return `The value of "${path}"`
}
