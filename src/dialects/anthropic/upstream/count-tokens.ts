/**
 * Anthropic's endpoint for counting the tokens of a prompt.
 *
 * Source: Claude API reference, "Count tokens in a Message", read 2026-11-22.
 */
import { membersOf } from '../../../chat/json.js'
import { tokenCount } from '../../../chat/usage.js'
import type { TokenCounter } from '../../dialect.js'

/** Members of a Messages body that the endpoint accepts. */
const COUNTED = [
  'model',
  'messages',
  'cache_control',
  'output_config',
  'speed',
  'system',
  'thinking',
  'tool_choice',
  'tools',
]

/** `POST /messages/count_tokens`. */
export const tokenCounter: TokenCounter = {
  path: () => '/messages/count_tokens',
  body: (chat) => membersOf(chat, COUNTED),
  read: (reply) => tokenCount(reply.input_tokens) ?? null,
}
