/**
 * A whole answer of a client that asked for JSON.
 * Knows no dialect: where a format has no JSON mode the model is asked in words, and answers like a model.
 */
import type { Reply } from './fold.js'
import type { ChatRequest } from './request.js'

/** The answer, its JSON without the Markdown fence that models like to put around it. */
export function jsonAnswer(reply: Reply, request: ChatRequest): Reply {
  if (request.responseFormat?.type !== 'json-object') return reply
  const blocks = reply.blocks.map((block) =>
    block.type === 'text' ? { ...block, text: unfenced(block.text) } : block,
  )
  return { ...reply, blocks }
}

function unfenced(text: string): string {
  const inner = /^```(?:json|JSON)?[ \t]*\r?\n([\s\S]*?)\r?\n?```$/.exec(text.trim())?.[1]
  return inner ?? text
}
