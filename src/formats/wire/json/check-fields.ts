/**
 * Checks of request fields. Each throws `malformed_request` with the path and the rule if the value breaks
 * it. `refused` is the error of a valid field that an upstream cannot express.
 */
import { GatewayError, malformed } from '../../../errors.js'
import { isObject, type JsonObject, type JsonValue } from '../../../base/json.js'

/** Throws `GatewayError(malformed_request)`: the path is its `param` and begins the message. */
export function refuse(path: string, rule: string): never {
  throw malformed(`${path} ${rule}`, path)
}

/**
 * `untranslatable`: the reply would be wrong without the field, and the upstream cannot express it. The path
 * begins the message, and is its `param` unless another one is given.
 */
export function refused(path: string, why: string, param = path): GatewayError {
  return new GatewayError('untranslatable', `${path}: ${why}`, { param })
}

/** Whether a nullable field is present: `null` means absent. */
export function given<T>(value: T | null | undefined): value is T {
  return value !== null && value !== undefined
}

export function string(value: unknown, path: string): string {
  return typeof value === 'string' ? value : refuse(path, 'must be a string')
}

/** A string of 1 to `max` UTF-16 units. */
export function text(value: unknown, path: string, max: number): string {
  if (typeof value !== 'string' || value === '') refuse(path, 'must be a non-empty string')
  return value.length <= max ? value : refuse(path, `must be at most ${max} characters`)
}

/** `true` or `false`; neither strings nor numbers. */
export function boolean(value: unknown, path: string): boolean {
  return typeof value === 'boolean' ? value : refuse(path, 'must be true or false')
}

/** The limits of a number, both included. */
export interface NumberRange {
  readonly min: number
  /** Absent for no limit. */
  readonly max?: number
}

/** A finite number within the range. */
export function number(value: unknown, path: string, range: Required<NumberRange>): number {
  const { min, max } = range
  if (typeof value === 'number' && value >= min && value <= max) return value
  return refuse(path, `must be a number between ${min} and ${max}`)
}

/** An integer within the range. */
export function integer(value: unknown, path: string, { min, max }: NumberRange): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= min) {
    if (max === undefined || value <= max) return value
  }
  // BigInt writes large limits with all digits.
  const range = max === undefined ? `of at least ${min}` : `between ${BigInt(min)} and ${BigInt(max)}`
  return refuse(path, `must be an integer ${range}`)
}

/** One of a closed set of words. */
export function oneOf<T extends string>(value: unknown, path: string, words: readonly T[]): T {
  const word = words.find((candidate) => candidate === value)
  return word ?? refuse(path, `must be one of ${words.join(', ')}`)
}

export function object(value: unknown, path: string): JsonObject {
  return isObject(value) ? value : refuse(path, 'must be an object')
}

/** An array of at most `max` items. */
export function array(value: JsonValue | undefined, path: string, max: number): JsonValue[] {
  if (!Array.isArray(value)) return refuse(path, 'must be an array')
  return value.length <= max ? value : refuse(path, `must have at most ${max} items`)
}

/**
 * An object of any members, such as a JSON Schema, without numbers beyond the range of a double: `1e400` is
 * parsed as infinity and would be forwarded as `null`.
 */
export function finiteObject(value: unknown, path: string): JsonObject {
  const root = object(value, path)
  const pending: JsonValue[] = [root]
  for (let item = pending.pop(); item !== undefined; item = pending.pop()) {
    if (typeof item === 'number') {
      if (!Number.isFinite(item)) refuse(path, 'must not contain a number beyond the range of a double')
    } else if (typeof item === 'object' && item !== null) {
      for (const member of Object.values(item)) {
        if (typeof member === 'number' || typeof member === 'object') pending.push(member)
      }
    }
  }
  return root
}
