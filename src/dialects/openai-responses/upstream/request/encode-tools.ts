/**
 * Encodes tools, the tool choice and the response format. Their members are flat, while chat completions
 * nests them under the type.
 *
 * Source: OpenAI API reference, "Create a model response", `tools` and `text`, read 2026-11-20.
 */
import { type JsonObject, objectOf } from '../../../../chat/json.js'
import type { ResponseFormat, Tool, ToolChoice } from '../../../../chat/request.js'
import { wireName } from '../../../../wire/openai/tool-names.js'
import { encodeChoice } from '../../../../wire/openai/tool-fields.js'

const NO_PARAMETERS: JsonObject = { type: 'object', properties: {} }

/**
 * One tool. `strict` is always sent, because the API's default is true and that of other formats is false.
 */
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

/** `tool_choice`. */
export function encodeToolChoice(choice: ToolChoice, tools: readonly Tool[]): string | JsonObject {
  return encodeChoice(choice, tools, {
    named: (type, name) => ({ type, name }),
    allowed: (mode, named) => ({ type: 'allowed_tools', mode, tools: named }),
  })
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

/** The web search tool, from the `web_search_options` of chat completions. */
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
