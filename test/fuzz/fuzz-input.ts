/**
 * The inputs of the fuzzer, and their form in a file.
 */
import { isObject, numberOf, objectOf, stringOf, arrayOf } from '../../src/base/json.js'
import type { DialectName } from '../../src/formats/dialect.js'

/** A stream of an upstream in chunks. */
export interface StreamInput {
  readonly kind: 'stream'
  readonly dialect: DialectName
  /** The request of the client, as JSON. */
  readonly request: string
  /** The bytes, as latin1. */
  readonly text: string
  /** Offsets of chunk boundaries. */
  readonly cuts: readonly number[]
}

/** A whole reply of an upstream, or the body of a refusal. */
export interface ReplyInput {
  readonly kind: 'reply' | 'refusal'
  readonly dialect: DialectName
  readonly request: string
  readonly text: string
}

/** A client's request, encoded for every upstream. */
export interface RequestInput {
  readonly kind: 'request'
  readonly text: string
}

/** A reply as its provider writes it whole and streamed: both must decode to the same reply. */
export interface PairInput {
  readonly kind: 'pair'
  readonly dialect: DialectName
  readonly request: string
  /** The whole reply. */
  readonly whole: string
  /** The stream, as latin1. */
  readonly text: string
  readonly cuts: readonly number[]
}

/** An input of any kind. */
export type Input = StreamInput | ReplyInput | RequestInput | PairInput

const DIALECTS: readonly DialectName[] = [
  'openai-chat',
  'openai-responses',
  'anthropic',
  'gemini',
  'converse',
]

/** The text of a file with the input. */
export function toFile(input: Input, why: string): string {
  return `${JSON.stringify({ why, ...input }, null, 2)}\n`
}

/** The input in the text of a file. Throws if there is none. */
export function fromFile(file: string): Input {
  const value: unknown = JSON.parse(file)
  if (!isObject(value)) throw new Error('an input is an object')
  const text = stringOf(value['text'])
  const { kind } = value
  if (text === undefined) throw new Error('an input has a text')
  if (kind === 'request') return { kind, text }
  const dialect = DIALECTS.find((name) => name === value['dialect'])
  const request = stringOf(value['request'])
  if (dialect === undefined || request === undefined) {
    throw new Error('this input has a dialect and a request')
  }
  const cuts = arrayOf(value['cuts']).flatMap((cut) => numberOf(cut) ?? [])
  if (kind === 'reply' || kind === 'refusal') return { kind, dialect, request, text }
  if (kind === 'stream') return { kind, dialect, request, text, cuts }
  const whole = stringOf(objectOf(value)['whole'])
  if (kind === 'pair' && whole !== undefined) return { kind, dialect, request, whole, text, cuts }
  throw new Error('an input of no known kind')
}
