/**
 * Inserts a user message before an assistant message that begins a conversation, for formats that require a
 * user message first. The operator enables this with `allow_synthetic_user`.
 */
import type { Message } from './request.js'

/** Constant, because prompt caches and signed thinking require an unchanged prefix. */
const TEXT = 'Begin.'

/** The messages, with a user message before a leading assistant message; else the same array. */
export function beginWithUser(messages: Message[]): Message[] {
  const at = messages.findIndex(({ role }) => role !== 'system' && role !== 'developer')
  const first = messages[at]
  if (first?.role !== 'assistant') return messages
  const user: Message = {
    role: 'user',
    index: first.index,
    parts: [{ type: 'text', text: TEXT }],
  }
  return [...messages.slice(0, at), user, ...messages.slice(at)]
}
