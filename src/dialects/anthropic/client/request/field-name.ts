/** What the fields of the canon are called in the Messages format, for errors and for what a translation loses. */

/** Names of fields; what follows a name in a path is left out. */
const NAMES: ReadonlyMap<string, string> = new Map([
  ['max_completion_tokens', 'max_tokens'],
  ['parallel_tool_calls', 'tool_choice.disable_parallel_tool_use'],
  ['reasoning_effort', 'thinking'],
  ['response_format', 'output_config.format'],
  ['safety_identifier', 'metadata.user_id'],
  ['stop', 'stop_sequences'],
  ['user', 'metadata.user_id'],
])

/** What encoders say of messages without naming one. */
const PARTS: ReadonlyMap<string, string> = new Map([
  ['messages.file', 'messages.document'],
  ['messages.opaque', 'messages.server_tool_use'],
  ['messages.reasoning', 'messages.thinking'],
  ['messages.tool_content', 'messages.tool_result'],
])

/** The canon has the client's own tools alone, so that their indices are others. */
const TOOL = /^tools\[\d+\]\.(?:function|custom)(\.parameters)?/

/** The path of a field as this format has it. A path that is in its words stays. */
export function fieldName(path: string): string {
  const part = PARTS.get(path)
  if (part !== undefined) return part
  const tool = TOOL.exec(path)
  if (tool !== null) return tool[1] === undefined ? 'tools' : 'tools.input_schema'
  const [name = ''] = path.split(/[.[]/, 1)
  return NAMES.get(name) ?? path
}
