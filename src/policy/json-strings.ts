/**
 * Judges the strings of a JSON value: each key and each text alone, decoded, and numbers by their digits.
 */
import type { JsonObject, JsonValue } from '../base/json.js'
import { parseExact, stringifyExact } from '../formats/wire/json/exact-numbers.js'
import type { Steps } from '../base/steps.js'

/** The mark of a number that a double cannot hold, as `exact-numbers.ts` sets it. */
const MARK = '\uFDD0'

/** Judges one text; returns what replaces it. */
type JudgeText = (text: string) => Steps<string>

/** The value of arguments; undefined if they are not JSON. */
export function argumentsIn(json: string): JsonValue | undefined {
  try {
    return parseExact(json)
  } catch {
    return undefined
  }
}

/** The arguments as JSON text without escapes that JSON does not require; unchanged if they are not JSON. */
export function plainArguments(json: string): string {
  const value = argumentsIn(json)
  return value === undefined ? json : stringifyExact(value)
}

/** The arguments with what `judge` replaces; the same text if it replaces nothing. */
export function* judgedArguments(json: string, judge: JudgeText): Steps<string> {
  const value = argumentsIn(json)
  if (value === undefined) return yield* judge(json)
  const judged = yield* judgedValue(value, judge)
  return judged === value ? json : stringifyExact(judged)
}

/** The value with what `judge` replaces; the same value if it replaces nothing. */
function* judgedValue(value: JsonValue, judge: JudgeText): Steps<JsonValue> {
  if (typeof value === 'string') {
    if (!value.startsWith(MARK)) return yield* judge(value)
    const digits = value.slice(MARK.length)
    const judged = yield* judge(digits)
    return judged === digits ? value : judged
  }
  if (typeof value === 'number') {
    const digits = String(value)
    const judged = yield* judge(digits)
    return judged === digits ? value : judged
  }
  if (typeof value !== 'object' || value === null) return value
  return Array.isArray(value) ? yield* judgedItems(value, judge) : yield* judgedMembers(value, judge)
}

function* judgedItems(items: JsonValue[], judge: JudgeText): Steps<JsonValue[]> {
  let isSame = true
  const judged: JsonValue[] = []
  for (const item of items) {
    const next = yield* judgedValue(item, judge)
    isSame &&= next === item
    judged.push(next)
  }
  return isSame ? items : judged
}

function* judgedMembers(object: JsonObject, judge: JudgeText): Steps<JsonObject> {
  let isSame = true
  const judged: [string, JsonValue][] = []
  const keys = new Set<string>()
  for (const [key, value] of Object.entries(object)) {
    const name = unused(yield* judge(key), keys)
    const next = yield* judgedValue(value ?? null, judge)
    isSame &&= name === key && next === value
    judged.push([name, next])
  }
  return isSame ? object : Object.fromEntries(judged)
}

/** Two masked keys may be equal: a number keeps both members. */
function unused(key: string, keys: Set<string>): string {
  let name = key
  for (let number = 2; keys.has(name); number += 1) name = `${key} ${number}`
  keys.add(name)
  return name
}
