/**
 * The state of a model's reasoning as one opaque text, for client formats that have a single field for it.
 * It names the dialect whose state it is, so that it goes back to upstreams of that dialect only. Nothing here is
 * secret: what a provider signs or seals stays signed or sealed inside.
 */
import { isObject, stringOf, type JsonObject } from '../chat/json.js'

/** State of a thought, of a call, or of a text. */
export interface ReasoningState {
  /** The dialect whose state it is. */
  readonly origin: string
  readonly signature?: string
  readonly redacted?: string
  /** The call that the state belongs to; `text` is the text before it. Absent: a thought. */
  readonly of?: { readonly call: string } | 'text'
}

const PREFIX = 'sluice.1.'

/** The state as text: letters, digits, dots, dashes and underscores. */
export function writeReasoningToken({ origin, signature, redacted, of }: ReasoningState): string {
  const state: JsonObject = { o: origin }
  if (signature !== undefined) state['s'] = signature
  if (redacted !== undefined) state['r'] = redacted
  if (of === 'text') state['t'] = true
  else if (of !== undefined) state['c'] = of.call
  return PREFIX + Buffer.from(JSON.stringify(state)).toString('base64url')
}

/** Whether a gateway wrote the text; what else it is decides `readReasoningToken`. */
export function isReasoningToken(text: string): boolean {
  return text.startsWith(PREFIX)
}

/** The state in a text that a gateway wrote; null for any other text. */
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
