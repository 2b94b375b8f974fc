/**
 * Google's endpoint for counting the tokens of a prompt.
 *
 * Source: Gemini API reference, "Counting tokens", read 2026-11-22.
 */
import { tokenCount } from '../../../chat/usage.js'
import type { TokenCounter } from '../../dialect.js'
import { target } from './request-path.js'

/**
 * `POST /models/{model}:countTokens`. Sends a whole request, because only that counts system instruction and
 * tools.
 */
export const tokenCounter: TokenCounter = {
  path: (model) => target(model, false).path.replace(/:generateContent$/, ':countTokens'),
  body: (chat, model) => ({ generateContentRequest: { model: `models/${model}`, ...chat } }),
  read: (reply) => tokenCount(reply.totalTokens) ?? null,
}
