/**
 * The token that carries the reasoning state of another format's upstream in a client's field for such state:
 * `encrypted_content` (Responses), `signature` and `data` (Messages), `thoughtSignature` (Gemini). The client
 * returns it on the next turn, and the gateway sends the state to upstreams of its origin only. The checksum
 * detects tokens that a client changed. Nothing is encrypted: providers encrypt state that must stay secret
 * (decision 0054).
 */
import { crc32 } from 'node:zlib'
import { arrayOf, isObject, objectOf, stringOf, type JsonObject } from '../../base/json.js'
import type { NestedJson } from './json/nested-json.js'

/** One block of reasoning, or the signature of a call or a text. */
export interface Thought {
  /** Absent if the client has the text in another field. */
  readonly text?: string | undefined
  readonly signature?: string | undefined
  readonly redacted?: string | undefined
}

interface ReasoningState {
  /** The dialect of the upstream that issued the state. */
  readonly origin: string
  readonly thoughts: readonly Thought[]
  /** The call that the state belongs to, or `text` for the text before it. Absent: reasoning alone. */
  readonly of?: { readonly call: string } | 'text' | undefined
}

/** The state in a token: its thoughts have no members that are undefined. */
export interface FoundState extends ReasoningState {
  readonly thoughts: readonly Partial<Record<keyof Thought, string>>[]
}

// A token is base64, as `thoughtSignature` requires, of a line `sluice:VERSION:CHECKSUM`, a line of JSON, and
// the signatures and encrypted forms, for which the JSON has their lengths. So only a short text is parsed,
// although a state can have megabytes.
//
// Tokens of all versions begin with the same word. The word, the first line and the rest are multiples of
// three bytes: their base64 can be joined, and has no padding, which clients could drop.

const WORD = 'sluice'
const PREFIX = Buffer.from(WORD).toString('base64')
/** How tokens of the first builds begin, which a conversation may still contain. They count as damaged. */
const FORMER = /^sluice(?:1|\.1)\./
const VERSION = '1'
const HEADER_BYTES = `${WORD}:${VERSION}:01234567\n`.length

export function writeReasoningToken({ origin, thoughts, of }: ReasoningState): string {
  let states = ''
  const lengthOf = (state: string | undefined): number | undefined => {
    states += state ?? ''
    return state?.length
  }
  const lengths = thoughts.map(({ text, signature, redacted }) => ({
    text,
    signature: lengthOf(signature),
    redacted: lengthOf(redacted),
  }))
  const text = `${JSON.stringify({ origin, of, thoughts: lengths })}\n${states}`
  const padding = ' '.repeat(2 - ((Buffer.byteLength(text) + 2) % 3))
  const body = Buffer.from(text + padding)
  return Buffer.from(headerOf(body)).toString('base64') + body.toString('base64')
}

/** Whether the text is a token of any version. It may be damaged. No provider accepts it. */
export function isReasoningToken(text: string): boolean {
  return text.startsWith(PREFIX) || FORMER.test(text)
}

/**
 * The state in a token; null if it is damaged, of another version, or exceeds the limits of nested JSON in a
 * request. Some clients convert base64 to the alphabet for addresses, which is accepted.
 */
export function readReasoningToken(token: string, nested: NestedJson): FoundState | null {
  const bytes = Buffer.from(token, 'base64')
  const body = bytes.subarray(HEADER_BYTES)
  if (bytes.toString('latin1', 0, HEADER_BYTES) !== headerOf(body)) return null
  const text = body.toString()
  const end = text.indexOf('\n')
  const content = objectOf(nested.parse(text.slice(0, end)))
  const origin = stringOf(content['origin'])
  if (origin === undefined) return null
  let at = end + 1
  const stateOf = (length: unknown): string | undefined => {
    if (!Number.isSafeInteger(length) || Number(length) < 0) return undefined
    at += Number(length)
    return text.slice(at - Number(length), at)
  }
  const thoughts = arrayOf(content['thoughts'])
    .filter(isObject)
    .map(({ text: own, signature, redacted }) => ({
      ...member('text', stringOf(own)),
      ...member('signature', stateOf(signature)),
      ...member('redacted', stateOf(redacted)),
    }))
  return { origin, thoughts, of: ownerOf(content['of']) }
}

function headerOf(body: Buffer): string {
  return `${WORD}:${VERSION}:${crc32(body).toString(16).padStart(8, '0')}\n`
}

function ownerOf(of: JsonObject[string]): ReasoningState['of'] {
  if (of === 'text') return of
  const call = stringOf(objectOf(of)['call']) ?? ''
  return call === '' ? undefined : { call }
}

function member<K extends string>(name: K, value: string | undefined): Partial<Record<K, string>> {
  const out: Partial<Record<K, string>> = {}
  if (value !== undefined) out[name] = value
  return out
}
