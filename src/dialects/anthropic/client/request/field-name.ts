/**
 * Renames the fields of canonical requests to those of the Messages format, in errors and in lists of losses.
 */

/** Names of fields. The rest of a path after the name is dropped. */
const NAMES: ReadonlyMap<string, string> = new Map([
  ['max_completion_tokens', 'max_tokens'],
  ['parallel_tool_calls', 'tool_choice.disable_parallel_tool_use'],
  ['reasoning_effort', 'thinking'],
  ['response_format', 'output_config.format'],
  ['safety_identifier', 'metadata.user_id'],
  ['stop', 'stop_sequences'],
  ['user', 'metadata.user_id'],
])

/** Paths of losses in messages that encoders report without an index. */
const PARTS: ReadonlyMap<string, string> = new Map([
  ['messages.file', 'messages.document'],
  ['messages.opaque', 'messages.server_tool_use'],
  ['messages.reasoning', 'messages.thinking'],
  ['messages.tool_content', 'messages.tool_result'],
])

/** A canonical request has only the client's own tools, so their indices differ. */
const TOOL = /^tools\[\d+\]\.(?:function|custom)(\.parameters)?/

/** The path of a field in this format. A path that is already in this format is returned unchanged. */
export function fieldName(path: string): string {
  const part = PARTS.get(path)
  if (part !== undefined) return part
  const tool = TOOL.exec(path)
  if (tool !== null) return tool[1] === undefined ? 'tools' : 'tools.input_schema'
  const [name = ''] = path.split(/[.[]/, 1)
  return NAMES.get(name) ?? path
}
