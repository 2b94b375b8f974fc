/**
 * Scalar fields of requests: numbers, words and flags. Each format has one table of them, `fields.ts`: its
 * decoder and encoder, the names in its errors and losses, and the reference of dialects read the rows.
 */
import { addHosted, tierOption } from '../chat/hosted-tools.js'
import type { JsonObject, JsonValue } from '../../base/json.js'
import type { ChatRequest } from '../chat/request.js'
import { boolean, integer, number, oneOf, refused, string, text } from './json/check-fields.js'

/** The scalar members of a request, and the names by which errors and losses call them. */
const NAMES = {
  temperature: 'temperature',
  topP: 'top_p',
  topK: 'top_k',
  maxOutputTokens: 'max_completion_tokens',
  stop: 'stop',
  frequencyPenalty: 'frequency_penalty',
  presencePenalty: 'presence_penalty',
  seed: 'seed',
  candidates: 'n',
  logprobs: 'logprobs',
  topLogprobs: 'top_logprobs',
  reasoningEffort: 'reasoning_effort',
  verbosity: 'verbosity',
  userId: 'user',
  serviceTier: 'service_tier',
  parallelToolCalls: 'parallel_tool_calls',
} as const satisfies Partial<Record<keyof ChatRequest, string>>

/** The scalar members of a request. */
export type Scalars = Required<Pick<ChatRequest, keyof typeof NAMES>>

/** The name of a scalar member. */
type ScalarName = keyof Scalars

/** All scalar members with their names in errors and losses. */
export const SCALAR_NAMES: Readonly<Record<ScalarName, string>> = NAMES

/** What a client may send. */
export interface FieldCheck<T> {
  /** For the documentation. */
  readonly rule: string
  /** The canonical value; undefined if it is the same as none. Throws `malformed_request` naming the path. */
  readonly read: (value: JsonValue, path: string) => T | undefined
}

/** One row of a format's table. */
interface Row<K extends ScalarName> {
  /** The path of the field in the format; null: the format does not have it. */
  readonly wire: string | null
  readonly canonical: K
  /** Null for a field that the decoder reads together with others, or that the format does not have. */
  readonly check: FieldCheck<Scalars[K]> | null
  /** The value that models assume for an absent field, so that leaving it out loses nothing. */
  readonly default?: Scalars[K]
  /**
   * What becomes of a value that the upstream does not accept: it is reported as lost, it does not affect the
   * reply, or the request is refused. The text of a refusal follows the name of the field.
   */
  readonly loss: 'reported' | 'none' | { readonly refused: string }
  /** Another field of the same meaning takes precedence. */
  readonly yields?: true
  /** Upstreams get another field of the same meaning. */
  readonly readOnly?: true
}

export type ScalarField = { readonly [K in ScalarName]: Row<K> }[ScalarName]

/** A number between two limits, both included. */
export function numberIn(min: number, max: number): FieldCheck<number> {
  return { rule: `${min} to ${max}`, read: (value, path) => number(value, path, { min, max }) }
}

/** An integer between two limits, both included. `written` converts other notations of numbers. */
export function integerIn(
  min: number,
  max?: number,
  written: (value: JsonValue) => JsonValue = (value) => value,
): FieldCheck<number> {
  return {
    rule: max === undefined ? `integer from ${min}` : `${shown(min)} to ${shown(max)}, an integer`,
    read: (value, path) => integer(written(value), path, max === undefined ? { min } : { min, max }),
  }
}

/** Large limits as powers of two. */
function shown(limit: number): string {
  const bits = Math.ceil(Math.log2(Math.abs(limit)))
  if (bits < 16) return String(limit)
  const power = `${limit < 0 ? '-' : ''}2^${bits}`
  return Number.isInteger(Math.log2(Math.abs(limit))) ? power : `${power} - 1`
}

/** `true` or `false`. */
export const FLAG: FieldCheck<boolean> = { rule: 'true, false', read: boolean }

/** Any string, or one of 1 to `max` characters. */
export function textUpTo(max?: number): FieldCheck<string> {
  if (max === undefined) return { rule: 'string', read: string }
  return { rule: `1 to ${max} characters`, read: (value, path) => text(value, path, max) }
}

/** One of a closed set of words. */
export function wordOf<T extends string>(words: readonly T[]): FieldCheck<T> {
  return { rule: words.join(', '), read: (value, path) => oneOf(value, path, words) }
}

/** Checks a client's value and stores it in the request. Throws `malformed_request` naming the path. */
export function readField(
  { canonical, check, yields }: ScalarField,
  value: JsonValue,
  request: ChatRequest,
  path: string,
): void {
  const read = check?.read(value, path)
  if (read === undefined || (yields === true && request[canonical] !== undefined)) return
  store(request, canonical, read)
  // A tier may cost more, which keys can forbid.
  if (canonical === 'serviceTier') addHosted(request, tierOption(request.serviceTier, path))
}

function store<K extends ScalarName>(
  request: { -readonly [P in ScalarName]?: Scalars[P] },
  canonical: K,
  value: Scalars[K],
): void {
  request[canonical] = value
}

/** The rows of these members, in the order of the table. */
export function fieldsFor(fields: readonly ScalarField[], ...names: readonly ScalarName[]): ScalarField[] {
  return fields.filter(({ canonical }) => names.includes(canonical))
}

/** Receives the names of fields that the upstream does not get. */
interface FieldLosses {
  drop(name: string, why: 'no-equivalent'): void
}

/**
 * Writes the fields that the request has, in the order of the rows. Throws `untranslatable` for a field
 * whose loss is a refusal.
 */
export function writeFields(
  request: ChatRequest,
  fields: readonly ScalarField[],
  { body, losses, encode }: FieldWriting,
): void {
  for (const field of fields) {
    const value = request[field.canonical]
    if (value === undefined || field.readOnly === true) continue
    const encoded = field.wire === null ? undefined : encode(field, value)
    if (encoded === undefined) loseField(field, value, losses)
    else if (encoded !== null && field.wire !== null) body[lastName(field.wire)] = encoded
  }
}

/** The target of fields. */
interface FieldWriting {
  /** The object that has the fields. */
  readonly body: JsonObject
  readonly losses: FieldLosses
  /**
   * The value for the upstream; undefined if it does not accept the value, null to leave the field out
   * without a loss.
   */
  readonly encode: (field: ScalarField, value: JsonValue) => JsonValue | undefined
}

/** Reports the fields that the format does not have. Throws `untranslatable` if one of them is refused. */
export function loseFields(request: ChatRequest, fields: readonly ScalarField[], losses: FieldLosses): void {
  for (const field of fields) {
    const value = request[field.canonical]
    if (field.wire === null && value !== undefined) loseField(field, value, losses)
  }
}

/** Reports a field that the upstream does not get, unless the value is the default or has no effect. */
function loseField(field: ScalarField, value: JsonValue, losses: FieldLosses): void {
  const { loss } = field
  if (loss === 'none' || isDefault(field, value)) return
  const name = NAMES[field.canonical]
  if (loss !== 'reported') throw refused(name, loss.refused)
  losses.drop(name, 'no-equivalent')
}

/** Whether the value changes nothing. An empty stop sequence stops nothing. */
export function isDefault(field: ScalarField, value: JsonValue): boolean {
  if (field.canonical !== 'stop') return value === field.default
  return Array.isArray(value) && value.every((text) => text === '')
}

/** The field's paths in the format by the names of errors and losses, unless the format has the same name. */
export function fieldNames(fields: readonly ScalarField[]): [name: string, wire: string][] {
  const own = new Set(fields.map(({ wire }) => wire))
  return fields.flatMap(({ canonical, wire, readOnly }): [string, string][] => {
    const name = NAMES[canonical]
    return wire === null || readOnly === true || own.has(name) ? [] : [[name, wire]]
  })
}

function lastName(path: string): string {
  return path.slice(path.lastIndexOf('.') + 1)
}
