/**
 * Tools that Anthropic defines and the client runs: a shell, an editor and a memory. Their schemas are part
 * of Claude, so other models get each as a function; calls and results have the same form as a function's.
 *
 * Sources: Claude documentation, "Bash tool", "Text editor tool" and "Memory tool", read 2026-11-29.
 */
import type { JsonObject } from '../../../base/json.js'
import type { Tool } from '../../chat/request.js'

/** A function instead of a tool of these types. */
interface DefinedTool {
  readonly types: RegExp
  readonly description: string
  readonly commands?: readonly string[]
  readonly properties: JsonObject
}

const TEXT: JsonObject = { type: 'string' }
const EDITS: JsonObject = {
  path: { type: 'string', description: 'Path of the file or directory.' },
  view_range: {
    type: 'array',
    items: { type: 'integer' },
    description:
      'The first and the last line to view, counted from 1; -1 as the last line is the end of the file.',
  },
  file_text: { type: 'string', description: 'The text of the file, for create.' },
  old_str: {
    type: 'string',
    description: 'The text to replace, which must occur exactly once, for str_replace.',
  },
  new_str: { type: 'string', description: 'The text instead of it, for str_replace.' },
  insert_line: {
    type: 'integer',
    description: 'The line after which text is inserted, 0 for the start; for insert.',
  },
  insert_text: { type: 'string', description: 'The text to insert, for insert.' },
}
const EDIT_COMMANDS = ['view', 'create', 'str_replace', 'insert']
const EDITOR = 'Views, creates and edits text files on the computer of the user.'

const TOOLS: readonly DefinedTool[] = [
  {
    types: /^bash_\d+$/,
    description:
      'Runs a command in a shell on the computer of the user, which keeps its state between calls.',
    properties: {
      command: { type: 'string', description: 'The command; not needed for a restart.' },
      restart: { type: 'boolean', description: 'True to restart the shell.' },
    },
  },
  {
    types: /^text_editor_(?:20241022|20250124)$/,
    description: EDITOR,
    commands: [...EDIT_COMMANDS, 'undo_edit'],
    // These versions insert `new_str`.
    properties: {
      ...Object.fromEntries(Object.entries(EDITS).filter(([name]) => name !== 'insert_text')),
      new_str: { type: 'string', description: 'The text instead of it, for str_replace, or to insert.' },
    },
  },
  { types: /^text_editor_\d+$/, description: EDITOR, commands: EDIT_COMMANDS, properties: EDITS },
  {
    types: /^memory_\d+$/,
    description:
      'Stores files under /memories between conversations. View that directory before you begin, and note there what a later conversation needs.',
    commands: [...EDIT_COMMANDS, 'delete', 'rename'],
    properties: { ...EDITS, old_path: TEXT, new_path: TEXT },
  },
]

/** The function instead of a tool of the type; null if another one runs it. */
export function definedTool(type: string, name: string): Tool | null {
  const found = TOOLS.find(({ types }) => types.test(type))
  if (found === undefined) return null
  const { description, commands, properties } = found
  const all =
    commands === undefined ? properties : { command: { ...TEXT, enum: [...commands] }, ...properties }
  const required = commands === undefined ? {} : { required: ['command'] }
  return { name, description, parameters: { type: 'object', properties: all, ...required } }
}
