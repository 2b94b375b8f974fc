/**
 * Tools and tool choices as chat completions and Responses share them. Chat completions nests the
 * members under the tool's type; Responses has them in the tool itself.
 */
import type { JsonObject } from '../../chat/json.js'
import type { Tool, ToolChoice } from '../../chat/request.js'
import { boolean, finiteObject, given, string } from '../json/check-fields.js'
import { toolName, wireName } from './tool-names.js'

/** OpenAI accepts at most 128; other upstreams of the formats accept more. */
export const MAX_TOOLS = 1_024

/** Name and description of a tool. */
export function decodeNamedTool(members: JsonObject, path: string): Tool {
  const tool: Tool = { name: toolName(members['name'], `${path}.name`) }
  if (given(members['description'])) {
    tool.description = string(members['description'], `${path}.description`)
  }
  return tool
}

/** A function tool, from the object that holds its name. */
export function decodeFunctionTool(members: JsonObject, path: string): Tool {
  const tool = decodeNamedTool(members, path)
  if (given(members['parameters'])) {
    tool.parameters = finiteObject(members['parameters'], `${path}.parameters`)
  }
  if (given(members['strict'])) tool.strict = boolean(members['strict'], `${path}.strict`)
  return tool
}

/** The names of the tools that a choice requires or allows; empty for a mode alone. */
export function namesInChoice(choice: ToolChoice): readonly string[] {
  if (choice.mode === 'named') return [choice.name]
  return choice.mode === 'allowed' ? choice.names : []
}

/** A tool choice; the two formats differ in how they name a tool and list allowed ones. */
export function encodeChoice(
  choice: ToolChoice,
  tools: readonly Tool[],
  format: {
    /** `type` is `function` or `custom`, `name` fits the limits of the format. */
    readonly named: (type: 'function' | 'custom', name: string) => JsonObject
    readonly allowed: (mode: 'required' | 'auto', named: JsonObject[]) => JsonObject
  },
): string | JsonObject {
  const customs = new Set(tools.filter((tool) => tool.custom !== undefined).map(({ name }) => name))
  const named = (name: string): JsonObject =>
    format.named(customs.has(name) ? 'custom' : 'function', wireName(name))
  switch (choice.mode) {
    case 'auto':
    case 'none':
    case 'required':
      return choice.mode
    case 'named':
      return named(choice.name)
    case 'allowed':
      return format.allowed(choice.required ? 'required' : 'auto', choice.names.map(named))
    default:
      return choice satisfies never
  }
}
