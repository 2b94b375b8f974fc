/** Decodes `tool_use` blocks to tool calls. `decode-blocks.ts` puts their events in order. */
import type { ChatEvent } from '../../../../chat/event.js'
import { isObject, objectOf, stringOf, type JsonObject } from '../../../../chat/json.js'
import { stringifyExact } from '../../../../wire/json/exact-numbers.js'
import { CUSTOM_INPUT, parseJson } from '../../shared/constants.js'

/** Tools of the request whose calls are decoded specially. */
export interface ToolNames {
  /** Names of function tools that replace custom (free text) tools. */
  readonly custom: ReadonlySet<string>
  /** The name of the synthetic tool whose arguments are the reply's text; null if there is none. */
  readonly json: string | null
}

/** `custom` for a free text tool, `json` for the synthetic tool of JSON replies, else `tool`. */
export function toolCallKind(start: JsonObject, names: ToolNames): 'tool' | 'custom' | 'json' {
  const name = stringOf(start.name) ?? ''
  if (name === names.json) return 'json'
  return names.custom.has(name) ? 'custom' : 'tool'
}

/** The first event of a call. A call without an id gets one that derives from its index. */
export function toolCallStart(
  start: JsonObject,
  index: number,
  isCustom: boolean,
): Extract<ChatEvent, { type: 'tool-start' }> {
  const id = stringOf(start.id) ?? ''
  const call = {
    type: 'tool-start' as const,
    index,
    id: id === '' ? `toolu_${index}` : id,
    name: stringOf(start.name) ?? '',
  }
  return isCustom ? { ...call, custom: true } : call
}

/** A custom tool's input is its only string property; other input is passed unchanged. */
export function customToolInput(json: string): string {
  const input = stringOf(objectOf(parseJson(json))[CUSTOM_INPUT])
  return input ?? (json === '{}' ? '' : json)
}

/** The input of a call that sends no fragments; null if it is nested too deeply to serialize. */
export function toolCallInput(start: JsonObject): string | null {
  if (!isObject(start.input)) return '{}'
  try {
    return stringifyExact(start.input)
  } catch {
    return null
  }
}
