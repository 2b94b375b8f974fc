/**
 * Maps tool names to Gemini's and back: Gemini requires a letter or underscore first, OpenAI does not.
 * Equal tools always give equal names.
 */
import type { ChatRequest, Tool } from '../../../../chat/request.js'

/** The names of one request's tools. */
export interface ToolNames {
  /** Gemini's name for a tool; also for tools that are only in the history. */
  toWire(name: string): string
  /** The client's name for a tool that Gemini called. */
  toClient(name: string): string
}

/** Maps these tools. A prefixed name that is in use gets another underscore. */
export function toolNames(tools: readonly Tool[]): ToolNames {
  const wire = new Map<string, string>()
  const client = new Map<string, string>()
  const own = new Set(tools.map((tool) => tool.name))
  for (const { name } of tools) {
    if (isValid(name)) continue
    let candidate = prefixed(name)
    while (own.has(candidate) || client.has(candidate)) candidate = `_${candidate}`
    wire.set(name, candidate)
    client.set(candidate, name)
  }
  return {
    toWire: (name) => wire.get(name) ?? (isValid(name) ? name : prefixed(name)),
    toClient: (name) => client.get(name) ?? name,
  }
}

/**
 * The name of the synthetic tool for a JSON reply, for models that do not accept both a response schema and
 * tools; null if the request has no schema or no tools.
 */
export function jsonToolName(request: ChatRequest): string | null {
  if (request.responseFormat?.type !== 'json-schema' || request.tools.length === 0) return null
  const names = new Set(request.tools.map((tool) => tool.name))
  let name = 'json_response'
  while (names.has(name)) name += '_'
  return name
}

function isValid(name: string): boolean {
  return /^[A-Za-z_]/.test(name)
}

function prefixed(name: string): string {
  return `_${name}`
}
