/**
 * Decodes the `usage` object of responses.
 *
 * Source: OpenAI API reference, "The response object", read 2026-11-20.
 */
import { hostedToolName, withCalls, type CallCounts } from '../../../../chat/hosted-tools.js'
import {
  arrayOf,
  isObject,
  type JsonObject,
  type JsonValue,
  objectOf,
  stringOf,
} from '../../../../chat/json.js'
import { tokenCount, type TokenKind, type Usage } from '../../../../chat/usage.js'

/** Counts that are absent or not numbers stay absent. */
export function usageOf(value: unknown): Usage {
  const usage: Usage = {}
  if (!isObject(value)) return usage
  const input = objectOf(value['input_tokens_details'])
  put(usage, 'input', value['input_tokens'])
  put(usage, 'output', value['output_tokens'])
  put(usage, 'cacheRead', input['cached_tokens'])
  put(usage, 'cacheWrite', input['cache_write_tokens'])
  put(usage, 'reasoning', objectOf(value['output_tokens_details'])['reasoning_tokens'])
  return usage
}

const CALL = '_call'
/** Actions of a search that open a page which a search found. */
const FREE_ACTIONS: ReadonlySet<unknown> = new Set(['find_in_page', 'open_page'])

/** The counts with the call that an output item is, if the provider ran a tool. */
export function withItem(calls: CallCounts | undefined, item: JsonObject): CallCounts | undefined {
  const type = stringOf(item['type']) ?? ''
  if (!type.endsWith(CALL) || OWN_CALLS.has(type)) return calls
  if (FREE_ACTIONS.has(objectOf(item['action'])['type'])) return calls
  return withCalls(calls, hostedToolName(type.slice(0, -CALL.length)), 1)
}

/** Calls that the client runs. `withCalls` leaves out those of harmless tools too. */
const OWN_CALLS: ReadonlySet<string> = new Set(['custom_tool_call', 'function_call', 'shell_call'])

/** The calls in the output of a response; undefined if there are none. */
export function callsOf(output: JsonValue | undefined): CallCounts | undefined {
  let calls: CallCounts | undefined
  for (const item of arrayOf(output)) calls = withItem(calls, objectOf(item))
  return calls
}

function put(usage: Usage, key: TokenKind, value: unknown): void {
  const count = tokenCount(value)
  if (count !== undefined) usage[key] = count
}
