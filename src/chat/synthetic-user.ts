/**
 * A conversation that begins with the model's own words, for formats whose conversations may not.
 * Knows no dialect; whether it may be done is the operator's decision (`allow_synthetic_user`).
 */
import type { Message } from './request.js'

/** Always the same words: caches and signed thoughts hold only for an unchanged beginning. */
const WORDS = 'Begin.'

/** The messages, with a user's before an assistant's that no user's precedes; else themselves. */
export function beginWithUser(messages: Message[]): Message[] {
  const at = messages.findIndex(({ role }) => role !== 'system' && role !== 'developer')
  const first = messages[at]
  if (first?.role !== 'assistant') return messages
  const user: Message = {
    role: 'user',
    index: first.index,
    parts: [{ type: 'text', text: WORDS }],
  }
  return [...messages.slice(0, at), user, ...messages.slice(at)]
}
