/**
 * Tools of types that OpenAI defines and the client runs: Codex's shell, patches and search of tools. Other
 * formats get each as a function; its calls and results are items of its own type for the client.
 *
 * Source: OpenAI API reference, "Create a model response", and the types of its SDK 6.49, read 2026-11-29.
 */
import { isLocalShell } from '../../chat/hosted-tools.js'
import { arrayOf, isObject, objectOf, stringOf, type JsonObject, type JsonValue } from '../../../base/json.js'
import type { ChatRequest, ClientToolType, Tool } from '../../chat/request.js'
import { finiteObject, given } from '../../wire/json/check-fields.js'
import { stringifyExact } from '../../wire/json/exact-numbers.js'
import { NestedJson } from '../../wire/json/nested-json.js'

/** Prefixes of the ids of calls. */
export type ClientItemPrefix = 'apc' | 'lsh' | 'sh' | 'tsc'

interface ClientTool {
  readonly prefix: ClientItemPrefix
  /** The type of the items of its calls. */
  readonly callType: string
  readonly description: string
  /** The schema of the function's arguments. */
  readonly parameters: JsonObject
  /** The arguments of the call in an item; undefined if it has none. */
  readonly argumentsIn: (item: JsonObject) => JsonValue | undefined
  /** The members of an item with these arguments; null if they do not fit the schema. */
  readonly membersOf: (args: JsonObject) => JsonObject | null
}

const TIMEOUT: JsonObject = { type: 'integer', description: 'Maximum duration in milliseconds.' }
const OPERATIONS = ['create_file', 'update_file', 'delete_file']

const TOOLS: Readonly<Record<ClientToolType, ClientTool>> = {
  apply_patch: {
    prefix: 'apc',
    callType: 'apply_patch_call',
    description: 'Creates, updates or deletes one file in the working directory of the user.',
    parameters: {
      type: 'object',
      properties: {
        type: { type: 'string', enum: OPERATIONS },
        path: { type: 'string', description: 'Path of the file, relative to the working directory.' },
        diff: {
          type: 'string',
          description:
            'The change as a V4A diff without the lines *** Begin Patch and *** End Patch: context lines begin with a space, removed lines with -, added lines with +, and @@ begins each section. Each line of a created file begins with +. Leave it out to delete the file.',
        },
      },
      required: ['type', 'path'],
    },
    argumentsIn: ({ operation }) => operation,
    membersOf: (args) => {
      const { type, path, diff } = isObject(args['operation']) ? args['operation'] : args
      const operation = OPERATIONS.find((each) => each === type)
      if (operation === undefined || typeof path !== 'string') return null
      if (operation === 'delete_file') return { operation: { type: operation, path } }
      return typeof diff === 'string' ? { operation: { type: operation, path, diff } } : null
    },
  },
  local_shell: {
    prefix: 'lsh',
    callType: 'local_shell_call',
    description: 'Runs a command on the computer of the user and returns its output.',
    parameters: {
      type: 'object',
      properties: {
        command: {
          type: 'array',
          items: { type: 'string' },
          description: 'The program and its arguments, for instance ["bash", "-lc", "ls"].',
        },
        working_directory: { type: 'string', description: 'The directory to run the command in.' },
        timeout_ms: TIMEOUT,
      },
      required: ['command'],
    },
    argumentsIn: ({ action }) => {
      const { env } = objectOf(action)
      const members = Object.entries(objectOf(action)).filter(([key]) => key !== 'type' && key !== 'env')
      if (Object.keys(objectOf(env)).length > 0) members.push(['env', env])
      return Object.fromEntries(members)
    },
    membersOf: (args) => {
      const { command, env, ...options } = isObject(args['action']) ? args['action'] : args
      // Models that know another shell send one text.
      const words = typeof command === 'string' ? ['bash', '-lc', command] : textsOf(command)
      if (words === null) return null
      return { action: { ...options, type: 'exec', command: words, env: objectOf(env) } }
    },
  },
  shell: {
    prefix: 'sh',
    callType: 'shell_call',
    description: 'Runs commands of the shell on the computer of the user and returns their output.',
    parameters: {
      type: 'object',
      properties: {
        commands: {
          type: 'array',
          items: { type: 'string' },
          description: 'Command lines, which may run at the same time.',
        },
        timeout_ms: TIMEOUT,
        max_output_length: { type: 'integer', description: 'Maximum characters of output.' },
      },
      required: ['commands'],
    },
    argumentsIn: ({ action }) =>
      Object.fromEntries(Object.entries(objectOf(action)).filter(([, value]) => given(value))),
    membersOf: (args) => {
      const action = isObject(args['action']) ? args['action'] : args
      const { commands, timeout_ms: timeout = null, max_output_length: length = null } = action
      const lines = typeof commands === 'string' ? [commands] : textsOf(commands)
      if (lines === null) return null
      return {
        action: { commands: lines, timeout_ms: timeout, max_output_length: length },
        environment: { type: 'local' },
      }
    },
  },
  tool_search: {
    prefix: 'tsc',
    callType: 'tool_search_call',
    description: 'Searches for more tools. Tools that are found can be called afterwards.',
    parameters: {
      type: 'object',
      properties: { query: { type: 'string', description: 'What the tool has to do.' } },
      required: ['query'],
    },
    argumentsIn: (item) => item['arguments'],
    membersOf: (args) => ({ execution: 'client', arguments: args }),
  },
}

/** The array if it has texts alone, and at least one; else null. */
function textsOf(value: JsonValue | undefined): string[] | null {
  const texts = arrayOf(value).flatMap((each) => stringOf(each) ?? [])
  return texts.length > 0 && texts.length === arrayOf(value).length ? texts : null
}

/** The type of a tool in `tools` that the client runs; null for functions, custom and hosted tools. */
export function clientToolType(item: JsonObject): ClientToolType | null {
  const { type } = item
  switch (type) {
    case 'apply_patch':
    case 'local_shell':
      return type
    case 'shell':
      return isLocalShell(type, item) ? type : null
    case 'tool_search':
      // By default the provider searches among the tools of the request.
      return item['execution'] === 'client' ? type : null
    default:
      return null
  }
}

/** The tool as a function. Only a search has a description and a schema of its own. */
export function clientFunction(
  type: ClientToolType,
  name: string,
  { item, path }: { readonly item: JsonObject; readonly path: string },
): Tool {
  const { description, parameters } = item
  const own = TOOLS[type]
  return {
    name,
    description: stringOf(description) ?? own.description,
    parameters: isObject(parameters) ? finiteObject(parameters, `${path}.parameters`) : own.parameters,
  }
}

/** The name of the function for tools of the type in this request; null if there is none. */
export function clientFunctionName(
  { clientTools }: { readonly clientTools?: ChatRequest['clientTools'] | undefined },
  type: string,
): string | null {
  for (const [name, known] of clientTools ?? []) if (known === type) return name
  return null
}

/** A call in an item of the client. */
export interface ClientCall {
  readonly type: ClientToolType
  /** The arguments as JSON text. */
  readonly json: string
}

/** The call of a tool that the client runs; null for other items, and for tools that the provider has run. */
export function clientCallIn(item: JsonObject): ClientCall | null {
  const type = CALLS.get(stringOf(item['type']) ?? '')
  if (type === undefined) return null
  if (type === 'shell' && !isLocalShell('shell', item)) return null
  if (type === 'tool_search' && (item['execution'] !== 'client' || !given(item['call_id']))) return null
  const args = TOOLS[type].argumentsIn(item) ?? {}
  return { type, json: typeof args === 'string' ? args : stringifyExact(args) }
}

const CALLS: ReadonlyMap<string, ClientToolType> = new Map(
  (['apply_patch', 'local_shell', 'shell', 'tool_search'] as const).map((type) => [
    TOOLS[type].callType,
    type,
  ]),
)

/** The item of a call of the model. */
interface CalledItem {
  readonly prefix: ClientItemPrefix
  /** The item as JSON text. */
  json(id: string, status: string): string
}

/**
 * The item of a call; null for an ordinary function, and for arguments that do not fit the type: the client
 * reports such a call of an unknown function to the model.
 */
export function clientCallItem(
  { clientTools }: ChatRequest,
  call: { readonly callId: string; readonly name: string; readonly json: string },
): CalledItem | null {
  const type = clientTools?.get(call.name)
  if (type === undefined) return null
  const args = new NestedJson().parse(call.json.trim() === '' ? '{}' : call.json)
  const members = isObject(args) ? TOOLS[type].membersOf(args) : null
  if (members === null) return null
  const { prefix, callType } = TOOLS[type]
  const item = { type: callType, call_id: call.callId, ...members }
  return { prefix, json: (id, status) => stringifyExact({ id, status, ...item }) }
}

/** The result in an item of the client as text for the model; null for other items. */
export function clientResultIn(item: JsonObject): string | null {
  const { output, status } = item
  switch (item['type']) {
    case 'local_shell_call_output':
      return textOf(output)
    case 'shell_call_output':
      return Array.isArray(output) ? output.map(commandOutput).join('\n') : textOf(output)
    case 'apply_patch_call_output': {
      const state = stringOf(status) ?? 'completed'
      const text = textOf(output)
      return text === '' ? state : `${state}: ${text}`
    }
    case 'tool_search_output':
      return foundText(item)
    default:
      return null
  }
}

function textOf(value: JsonValue | undefined): string {
  if (typeof value === 'string') return value
  return given(value) ? stringifyExact(value) : ''
}

/** The output of one command of a shell, and how it ended. */
function commandOutput(value: JsonValue): string {
  const { stdout, stderr, outcome } = objectOf(value)
  const { type, exit_code: code } = objectOf(outcome)
  const lines = [textOf(stdout)]
  if (given(stderr) && stderr !== '') lines.push(`stderr: ${textOf(stderr)}`)
  if (type === 'timeout') lines.push('[timed out]')
  else if (given(code)) lines.push(`[exit code ${textOf(code)}]`)
  return lines.filter((line) => line !== '').join('\n')
}

/** The names of the tools that a search has found, which are in the request's tools. */
function foundText({ tools }: JsonObject): string {
  const names = arrayOf(tools).flatMap((tool) => namesIn(objectOf(tool)))
  return names.length === 0 ? 'No tools were found.' : `Tools found: ${names.join(', ')}`
}

function namesIn({ type, name, tools }: JsonObject): string[] {
  const own = stringOf(name) ?? ''
  if (type !== 'namespace') return own === '' ? [] : [own]
  return arrayOf(tools).flatMap((tool) => {
    const inner = stringOf(objectOf(tool)['name']) ?? ''
    return inner === '' ? [] : [joinedName(own, inner)]
  })
}

/** The name of a tool in a namespace, for formats without namespaces. */
export function joinedName(namespace: string, name: string): string {
  return `${namespace}__${name}`
}
