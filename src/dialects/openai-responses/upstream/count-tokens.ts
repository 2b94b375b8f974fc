/**
 * OpenAI's endpoint that counts the tokens of a prompt.
 *
 * Source: OpenAI API reference, "Get input token counts", read 2026-11-22.
 */
import { membersOf } from '../../../chat/json.js'
import { tokenCount } from '../../../chat/usage.js'
import type { TokenCounter } from '../../dialect.js'

/** The members of a request that the endpoint accepts. */
const COUNTED = [
  'model',
  'input',
  'instructions',
  'parallel_tool_calls',
  'reasoning',
  'text',
  'tool_choice',
  'tools',
  'truncation',
]

/** `POST /responses/input_tokens`. */
export const tokenCounter: TokenCounter = {
  path: () => '/responses/input_tokens',
  body: (chat) => membersOf(chat, COUNTED),
  read: (reply) => tokenCount(reply['input_tokens']) ?? null,
}
