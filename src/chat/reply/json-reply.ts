/**
 * Whole replies to requests for JSON. If a format has no JSON mode, the model is instructed in the prompt
 * instead.
 */
import type { Reply } from './fold.js'
import type { JsonValue } from '../json.js'
import { satisfies } from '../json-schema/validate.js'
import type { ChatRequest } from '../request.js'

/** Whether the request requires JSON without a schema. An empty schema counts as none. */
export function requestsFreeformJson({ responseFormat: format }: ChatRequest): boolean {
  if (format?.type === 'json-schema') return Object.keys(format.schema).length === 0
  return format?.type === 'json-object'
}

/**
 * The reply without the Markdown code fence that models often put around JSON. Replies to other requests are
 * unchanged.
 */
export function withoutCodeFence(reply: Reply, request: ChatRequest): Reply {
  if (!requestsFreeformJson(request)) return reply
  const blocks = reply.blocks.map((block) =>
    block.type === 'text' ? { ...block, text: unfenced(block.text) } : block,
  )
  return { ...reply, blocks }
}

/**
 * Whether the reply violates the schema of a strict request. Some providers enforce a looser schema than the
 * client's, and the gateway reports that to the client.
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
