/**
 * Removes from messages and tools of a client's own body the members that OpenAI refuses with 400: cache
 * markers, reasoning and long call ids of a conversation that began with another provider.
 */
import { arrayOf, isObject, type JsonObject, type JsonValue, stringOf } from '../../../chat/json.js'
import { longTextOf } from '../../../chat/long-text.js'
import { wireCallId } from '../../../wire/openai/tool-names.js'
import { MAX_CALL_ID } from '../shared/constants.js'

/** Members of messages, parts, calls and tools that other providers accept and OpenAI refuses. */
const FOREIGN: readonly string[] = [
  'cache_control',
  'extra_content',
  'reasoning',
  'reasoning_content',
  'reasoning_details',
  'thinking_blocks',
]

/** The same for models without explicit cache breakpoints. */
const FOREIGN_AND_MARKS: readonly string[] = [...FOREIGN, 'prompt_cache_breakpoint']

/**
 * The messages without foreign members; null if there are none. `marks`: the model accepts OpenAI's cache
 * breakpoints.
 */
export function forwardedMessages(
  value: JsonValue | undefined,
  marks: boolean,
): JsonValue[] | null {
  const foreign = marks ? FOREIGN : FOREIGN_AND_MARKS
  return changed(arrayOf(value), (item) => message(item, foreign))
}

/** Members with reasoning, or with the reasoning state that a provider signed. */
const REASONING = [
  'extra_content',
  'reasoning',
  'reasoning_content',
  'reasoning_details',
  'thinking_blocks',
]

/** Whether a message has reasoning, which `forwardedMessages` removes. */
export function hasReasoning(value: JsonValue | undefined): boolean {
  const holds = (item: JsonValue): boolean =>
    isObject(item) && REASONING.some((key) => !isNothing(item[key]))
  return arrayOf(value).some(
    (item) => isObject(item) && (holds(item) || arrayOf(item['tool_calls']).some(holds)),
  )
}

function isNothing(value: JsonValue | undefined): boolean {
  return (
    value === undefined ||
    value === null ||
    value === '' ||
    (Array.isArray(value) && value.length === 0)
  )
}

/**
 * The tools without foreign members; null if there are none. Changed tools are serialised again: an integer
 * beyond 2^53 in the schema of such a tool loses its last digits.
 */
export function forwardedTools(value: JsonValue | undefined): JsonValue[] | null {
  return changed(arrayOf(value), (tool) => {
    const inner = isObject(tool['function']) ? own(tool['function']) : null
    return inner === null ? own(tool) : { ...(own(tool) ?? tool), function: inner }
  })
}

function message(item: JsonObject, foreign: readonly string[]): JsonObject | null {
  const set: JsonObject = {}
  const id = stringOf(item['tool_call_id'])
  if (id !== undefined && wireCallId(id, MAX_CALL_ID) !== id)
    set['tool_call_id'] = wireCallId(id, MAX_CALL_ID)
  const calls = changed(arrayOf(item['tool_calls']), call)
  if (calls !== null) set['tool_calls'] = calls
  const isText = longTextOf(item, 'content') !== null
  const content = isText ? null : contentOf(item['content'], foreign)
  if (content !== null) set['content'] = content.length === 0 ? '' : content
  const rest = own(item, foreign)
  return rest === null && Object.keys(set).length === 0 ? null : { ...(rest ?? item), ...set }
}

function call(item: JsonObject): JsonObject | null {
  const rest = own(item)
  const id = stringOf(item['id']) ?? ''
  return wireCallId(id, MAX_CALL_ID) === id
    ? rest
    : { ...(rest ?? item), id: wireCallId(id, MAX_CALL_ID) }
}

/** The parts without foreign members and without Mistral's thinking parts; null if nothing changes. */
function contentOf(value: JsonValue | undefined, foreign: readonly string[]): JsonValue[] | null {
  const parts = arrayOf(value)
  const clean = (part: JsonObject): JsonObject | null => own(part, foreign)
  if (!parts.some(isThinking)) return changed(parts, clean)
  const withoutThinking = parts.filter((part) => !isThinking(part))
  return changed(withoutThinking, clean) ?? withoutThinking
}

function isThinking(part: JsonValue): boolean {
  return isObject(part) && part['type'] === 'thinking'
}

/** The object without foreign members; null if it has none. */
function own(item: JsonObject, foreign = FOREIGN): JsonObject | null {
  if (!foreign.some((key) => item[key] !== undefined)) return null
  return Object.fromEntries(Object.entries(item).filter(([key]) => !foreign.includes(key)))
}

/** The list with the changed items; null if no item changes. */
function changed(
  list: readonly JsonValue[],
  change: (item: JsonObject) => JsonObject | null,
): JsonValue[] | null {
  let out: JsonValue[] | null = null
  for (const [at, item] of list.entries()) {
    const other = isObject(item) ? change(item) : null
    if (other === null) continue
    out ??= [...list]
    out[at] = other
  }
  return out
}
