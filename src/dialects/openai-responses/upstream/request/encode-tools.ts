/**
 * Writes tools, the choice among them, and the form of the answer. All of them are flat here, where
 * chat completions nests them.
 *
 * Source: OpenAI API reference, "Create a model response", `tools` and `text`, read 2026-11-20.
 */
import { type JsonObject, objectOf } from '../../../../chat/json.js'
import type { ResponseFormat, Tool, ToolChoice } from '../../../../chat/request.js'
import { wireName } from '../../../../wire/openai/names.js'

const NO_PARAMETERS: JsonObject = { type: 'object', properties: {} }

/** One tool. A function that does not say so is not strict; here the default would be that it is. */
export function encodeTool(tool: Tool): JsonObject {
  const name = wireName(tool.name)
  const described = tool.description === undefined ? {} : { description: tool.description }
  if (tool.custom !== undefined) {
    const { format } = tool.custom
    const formatted = format === undefined ? {} : { format: customFormat(format) }
    return { type: 'custom', name, ...described, ...formatted }
  }
  return {
    type: 'function',
    name,
    ...described,
    parameters: tool.parameters ?? NO_PARAMETERS,
    strict: tool.strict ?? false,
  }
}

/** `{type:"grammar",grammar:{syntax,definition}}` without the nesting. */
function customFormat(format: JsonObject): JsonObject {
  const { grammar, ...rest } = format
  return { ...rest, ...objectOf(grammar) }
}

/** `tool_choice`; `tools` tells which of the names are custom tools. */
export function encodeToolChoice(choice: ToolChoice, tools: readonly Tool[]): string | JsonObject {
  const customs = new Set(tools.filter((tool) => tool.custom !== undefined).map(({ name }) => name))
  const named = (name: string): JsonObject => {
    const custom = customs.has(name)
    return { type: custom ? 'custom' : 'function', name: wireName(name) }
  }
  switch (choice.mode) {
    case 'auto':
    case 'none':
    case 'required':
      return choice.mode
    case 'named':
      return named(choice.name)
    case 'allowed': {
      const mode = choice.required ? 'required' : 'auto'
      return { type: 'allowed_tools', mode, tools: choice.names.map(named) }
    }
    default:
      return choice satisfies never
  }
}

/** `text.format`. */
export function encodeFormat(format: ResponseFormat): JsonObject {
  if (format.type === 'text') return { type: 'text' }
  if (format.type === 'json-object') return { type: 'json_object' }
  const described = format.description === undefined ? {} : { description: format.description }
  return {
    type: 'json_schema',
    name: wireName(format.name),
    ...described,
    schema: format.schema,
    strict: format.strict ?? false,
  }
}

/** The tool that chat completions asks for with `web_search_options`. */
export function encodeWebSearch(options: JsonObject): JsonObject {
  const { search_context_size: size, user_location: location } = options
  const place = objectOf(location)
  const near = { type: 'approximate', ...objectOf(place['approximate']) }
  return {
    type: 'web_search',
    ...(size === undefined || size === null ? {} : { search_context_size: size }),
    ...(Object.keys(place).length === 0 ? {} : { user_location: near }),
  }
}
