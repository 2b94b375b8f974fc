/** JSON values and checked access to them. Bodies are parsed by `formats/wire/json/parse-body.ts`. */
export type JsonValue = null | boolean | number | string | JsonValue[] | JsonObject

/** A JSON object. A missing key reads as `undefined`. */
export interface JsonObject {
  [key: string]: JsonValue | undefined
}

/** True for an object that is neither null nor an array. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** `value` if it is an object, else an empty object. */
export function objectOf(value: unknown): JsonObject {
  return isObject(value) ? value : {}
}

/** The value of a text that is JSON, else `undefined`. */
export function parsedJson(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue
  } catch {
    return undefined
  }
}

/** `value` if it is an array, else an empty array. */
export function arrayOf(value: unknown): JsonValue[] {
  return Array.isArray(value) ? (value as JsonValue[]) : []
}

/** `value` if it is a string, else `undefined`. */
export function stringOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

/** `value` if it is a finite number, else `undefined`. */
export function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined
}

/** The members of the object with these names, without absent ones. */
export function membersOf(object: JsonObject, names: readonly string[]): JsonObject {
  const members: JsonObject = {}
  for (const name of names) if (object[name] !== undefined) members[name] = object[name]
  return members
}

/** What is written as JSON: sums of money may be bigints. */
export type WrittenJson = JsonValue | bigint | readonly WrittenJson[] | WrittenObject

/** An object of it. */
export interface WrittenObject {
  readonly [key: string]: WrittenJson | undefined
}

/** A NUL marks the digits of a bigint; `JSON.stringify` escapes it. */
const BIGINT = /"\\u0000(-?\d+)"/g

/** The text of a value; a bigint becomes a number with all of its digits. */
export function jsonText(value: unknown, space?: number): string {
  const written = (_: string, each: unknown): unknown => (typeof each === 'bigint' ? `\0${each}` : each)
  return JSON.stringify(value, written, space).replace(BIGINT, '$1')
}
