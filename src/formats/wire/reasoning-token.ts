/**
 * Encodes reasoning state as one opaque token, for client formats with a single field for it. The token has
 * the dialect of the state, so that it is sent back to upstreams of that dialect only. It is not secret:
 * providers sign or encrypt the state inside.
 */
import { isObject, stringOf, type JsonObject } from '../chat/json.js'

/** Reasoning state of a thinking block, a call or a text. */
interface ReasoningState {
  /** The dialect whose state it is. */
  readonly origin: string
  readonly signature?: string
  readonly redacted?: string
  /** The call that the state belongs to, or `text` for the text before it. Absent: a thinking block. */
  readonly of?: { readonly call: string } | 'text'
}

const PREFIX = 'sluice.1.'

/** The token: letters, digits, dots, dashes and underscores. */
export function writeReasoningToken({ origin, signature, redacted, of }: ReasoningState): string {
  const state: JsonObject = { o: origin }
  if (signature !== undefined) state['s'] = signature
  if (redacted !== undefined) state['r'] = redacted
  if (of === 'text') state['t'] = true
  else if (of !== undefined) state['c'] = of.call
  return PREFIX + Buffer.from(JSON.stringify(state)).toString('base64url')
}

/** Whether the text has the prefix of a token. It may still be damaged. */
export function isReasoningToken(text: string): boolean {
  return text.startsWith(PREFIX)
}

/** The state in a token; null for any other text. */
export function readReasoningToken(text: string): ReasoningState | null {
  if (!isReasoningToken(text)) return null
  let state: unknown
  try {
    state = JSON.parse(Buffer.from(text.slice(PREFIX.length), 'base64url').toString('utf8'))
  } catch {
    return null
  }
  if (!isObject(state)) return null
  const origin = stringOf(state['o'])
  if (origin === undefined) return null
  const signature = stringOf(state['s'])
  const redacted = stringOf(state['r'])
  const call = stringOf(state['c'])
  return {
    origin,
    ...(signature === undefined ? {} : { signature }),
    ...(redacted === undefined ? {} : { redacted }),
    ...(call === undefined ? {} : { of: { call } }),
    ...(state['t'] === true ? { of: 'text' as const } : {}),
  }
}
