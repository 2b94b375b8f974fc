/** Reads the JSON that the user types: tool definitions in the form of any client format, a schema. Pure. */
import type { Tool } from './request-body.js'

/** A value, or what is wrong with the text. */
type Parsed<T> = { readonly value: T } | { readonly error: string }

const NAME = /^[\w-]{1,64}$/

/** The tools; an empty text has none. */
export function toolsIn(text: string): Parsed<readonly Tool[]> {
  if (text.trim() === '') return { value: [] }
  const json = jsonIn(text)
  if ('error' in json) return json
  const items = Array.isArray(json.value) ? (json.value as unknown[]) : [json.value]
  const tools: Tool[] = []
  for (const [at, item] of items.entries()) {
    const tool = toolIn(item)
    if (tool === null) {
      return {
        error: `Tool ${at + 1} needs a "name" of letters, digits, _ and -, and its "parameters", a JSON schema.`,
      }
    }
    if (tools.some(({ name }) => name === tool.name)) {
      return { error: `Two tools have the name "${tool.name}".` }
    }
    tools.push(tool)
  }
  return { value: tools }
}

/** The schema of the reply; an empty text is null. */
export function schemaIn(text: string): Parsed<object | null> {
  if (text.trim() === '') return { value: null }
  const json = jsonIn(text)
  if ('error' in json) return json
  return isObject(json.value) ? { value: json.value } : { error: 'A JSON schema is an object.' }
}

function jsonIn(text: string): Parsed<unknown> {
  try {
    return { value: JSON.parse(text) as unknown }
  } catch (error) {
    return { error: `This is not JSON: ${error instanceof Error ? error.message : String(error)}` }
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A tool as chat completions (`function`), Messages (`input_schema`) or Responses write it. */
function toolIn(item: unknown): Tool | null {
  if (!isObject(item)) return null
  const tool = isObject(item['function']) ? item['function'] : item
  const { name, description } = tool
  const parameters = tool['parameters'] ?? tool['input_schema'] ?? { type: 'object', properties: {} }
  if (typeof name !== 'string' || !NAME.test(name) || !isObject(parameters)) return null
  return { name, ...(typeof description === 'string' ? { description } : {}), parameters }
}
