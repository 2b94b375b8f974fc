/**
 * Decodes `tools`, `tool_choice` and the schema of a structured reply.
 * Tools that Anthropic defines have no schema in the request: those that the client runs become functions for
 * other upstreams, and only Anthropic upstreams can offer the rest.
 *
 * Source: Claude API reference, "Messages" and "Tools", read 2026-11-22.
 */
import { isClosed } from '../../chat/json-schema.js'
import { hostedTool } from '../../chat/hosted-tools.js'
import type { JsonObject, JsonValue } from '../../../base/json.js'
import type { ResponseFormat, Tool, ToolChoice } from '../../chat/request.js'
import { cacheMark } from '../../wire/prompt-cache-markers.js'
import {
  array,
  boolean,
  finiteObject,
  given,
  object,
  oneOf,
  refuse,
  string,
  text,
} from '../../wire/json/check-fields.js'
import { toolName } from '../../wire/tool-names.js'
import { definedTool } from './defined-tools.js'
import type { NativeFields } from './native-fields.js'

const MAX_TOOLS = 1_024

/** Members of a tool that affect the model and that other upstreams do not have. */
const UNTRANSLATED = ['allowed_callers', 'defer_loading', 'input_examples', 'max_characters'] as const

/** The tools of a request. */
export interface Tools {
  /** Tools that the client runs. */
  readonly custom: Tool[]
  /** Names of tools that only Anthropic offers. A toolset has no name. */
  readonly defined: ReadonlySet<string>
  /** The number of tools of both kinds. */
  readonly count: number
}

/** Decodes `tools`. */
export function decodeTools(value: JsonValue, native: NativeFields): Tools {
  const items = array(value, 'tools', MAX_TOOLS)
  const custom: Tool[] = []
  const defined = new Set<string>()
  for (const [at, entry] of items.entries()) {
    const path = `tools[${at}]`
    const item = object(entry, path)
    const type = given(item.type) ? string(item.type, `${path}.type`) : 'custom'
    if (type === 'custom') custom.push(decodeTool(item, path, native))
    else {
      const name = given(item.name) ? text(item.name, `${path}.name`, 128) : null
      const own = name === null ? null : definedTool(type, name)
      if (own === null) native.lost(`tools.${type}`)
      else custom.push(withMembers(own, item, { path, native }))
      native.host(hostedTool(item, path))
      if (own === null && name !== null) defined.add(name)
    }
  }
  return { custom, defined, count: items.length }
}

function decodeTool(item: JsonObject, path: string, native: NativeFields): Tool {
  const tool: Tool = {
    name: toolName(item.name, `${path}.name`),
    parameters: finiteObject(item.input_schema, `${path}.input_schema`),
  }
  if (given(item.description)) tool.description = string(item.description, `${path}.description`)
  if (given(item.strict) && boolean(item.strict, `${path}.strict`)) {
    if (isClosed(tool.parameters)) tool.strict = true
    else native.lost('tools.strict')
  }
  return withMembers(tool, item, { path, native })
}

/** The tool with its cache marker; members that other upstreams do not have are reported. */
function withMembers(
  tool: Tool,
  item: JsonObject,
  { path, native }: { readonly path: string; readonly native: NativeFields },
): Tool {
  for (const key of UNTRANSLATED) {
    const value = item[key]
    if (given(value) && value !== false) native.lost(`tools.${key}`)
  }
  const cache = cacheMark(item, path)
  return cache === undefined ? tool : { ...tool, cache }
}

/** The members of `tool_choice`. */
interface Choice {
  readonly choice: ToolChoice
  /** True if the model may make several calls at once; undefined if the client does not state it. */
  readonly parallel: boolean | undefined
}

/** Decodes `tool_choice`. Throws `malformed_request` if it forces a call of a tool that is not in `tools`. */
export function decodeToolChoice(value: JsonValue, tools: Tools, native: NativeFields): Choice {
  const item = object(value, 'tool_choice')
  const type = oneOf(item.type, 'tool_choice.type', ['auto', 'any', 'tool', 'none'])
  const single = item.disable_parallel_tool_use
  const parallel = given(single) ? !boolean(single, 'tool_choice.disable_parallel_tool_use') : undefined
  if (type === 'auto' || type === 'none') return { choice: { mode: type }, parallel }
  if (tools.count === 0) refuse('tool_choice', 'needs at least one tool in tools')
  if (type === 'any') {
    if (tools.custom.length === 0) forcedNative(native)
    return { choice: { mode: 'required' }, parallel }
  }
  const name = toolName(item.name, 'tool_choice.name')
  if (tools.defined.has(name)) forcedNative(native)
  else if (!tools.custom.some((tool) => tool.name === name)) {
    refuse('tool_choice', `names ${JSON.stringify(name)}, which is not in tools`)
  }
  return { choice: { mode: 'named', name }, parallel }
}

function forcedNative(native: NativeFields): void {
  native.refused('tool_choice', 'it forces a call of a tool that only Anthropic upstreams have')
}

/** Decodes the schema of the reply: `output_config.format`, or `output_format` of earlier betas. */
export function decodeFormat(value: JsonValue, path: string): ResponseFormat {
  const item = object(value, path)
  oneOf(item.type, `${path}.type`, ['json_schema'])
  const schema = finiteObject(item.schema, `${path}.schema`)
  const format: ResponseFormat = { type: 'json-schema', name: 'output', schema }
  if (isClosed(schema)) format.strict = true
  return format
}
