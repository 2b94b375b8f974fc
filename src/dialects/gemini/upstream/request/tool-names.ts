/**
 * Tool names on the wire and back: Gemini wants a letter or underscore first, OpenAI does not.
 * Knows only the tools of one request; the same tools always give the same names.
 */
import type { ChatRequest, Tool } from '../../../../chat/request.js'

/** The names of one request's tools, both ways. */
export interface ToolNames {
  /** The name as Gemini may see it; also for tools that only the history knows. */
  toWire(name: string): string
  /** The client's own name for what Gemini called. */
  toClient(name: string): string
}

/** The names of these tools; a prefixed name that is taken gets one underscore more. */
export function toolNames(tools: readonly Tool[]): ToolNames {
  const wire = new Map<string, string>()
  const client = new Map<string, string>()
  const own = new Set(tools.map((tool) => tool.name))
  for (const { name } of tools) {
    if (isLegal(name)) continue
    let candidate = prefixed(name)
    while (own.has(candidate) || client.has(candidate)) candidate = `_${candidate}`
    wire.set(name, candidate)
    client.set(candidate, name)
  }
  return {
    toWire: (name) => wire.get(name) ?? (isLegal(name) ? name : prefixed(name)),
    toClient: (name) => client.get(name) ?? name,
  }
}

/**
 * The name of the synthetic tool that carries a JSON answer where the model cannot have both a
 * response schema and tools; null where this request never needs one.
 */
export function jsonToolName(request: ChatRequest): string | null {
  if (request.responseFormat?.type !== 'json-schema' || request.tools.length === 0) return null
  const taken = new Set(request.tools.map((tool) => tool.name))
  let name = 'json_response'
  while (taken.has(name)) name += '_'
  return name
}

function isLegal(name: string): boolean {
  return /^[A-Za-z_]/.test(name)
}

function prefixed(name: string): string {
  return `_${name}`
}
