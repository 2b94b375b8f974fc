/**
 * A whole answer of a client that asked for JSON.
 * Knows no dialect: where a format has no JSON mode the model is asked in words, and answers like a model.
 */
import type { Reply } from './fold.js'
import type { JsonValue } from '../json.js'
import { satisfies } from '../json-schema/validate.js'
import type { ChatRequest } from '../request.js'

/** Whether the client wants JSON and does not say of what form: a schema without a word in it is none. */
export function requestsFreeformJson({ responseFormat: format }: ChatRequest): boolean {
  if (format?.type === 'json-schema') return Object.keys(format.schema).length === 0
  return format?.type === 'json-object'
}

/** The answer, its JSON without the Markdown fence that models like to put around it. */
export function withoutCodeFence(reply: Reply, request: ChatRequest): Reply {
  if (!requestsFreeformJson(request)) return reply
  const blocks = reply.blocks.map((block) =>
    block.type === 'text' ? { ...block, text: unfenced(block.text) } : block,
  )
  return { ...reply, blocks }
}

/**
 * Whether the answer misses the schema that it was strictly to follow. Some providers hold a model to
 * a looser one than the client's, and the client should know.
 */
export function violatesSchema(reply: Reply, request: ChatRequest): boolean {
  const format = request.responseFormat
  if (format?.type !== 'json-schema' || format.strict !== true || reply.reason !== 'stop')
    return false
  const text = reply.blocks.map((block) => (block.type === 'text' ? block.text : '')).join('')
  try {
    return !satisfies(JSON.parse(text) as JsonValue, format.schema)
  } catch {
    return true
  }
}

function unfenced(text: string): string {
  const inner = /^```(?:json|JSON)?[ \t]*\r?\n([\s\S]*?)\r?\n?```$/.exec(text.trim())?.[1]
  return inner ?? text
}
