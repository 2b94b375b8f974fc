/**
 * Frames of a Messages stream, to build streams from in any order.
 * Says nothing of what a decoder should make of them.
 */
import type { JsonObject, JsonValue } from '../../../src/chat/json.js'
import { frame, hearStream, type Frame, type Heard } from './driver.js'

export const BEGIN = frame({
  type: 'message_start',
  message: { id: 'msg_1', model: 'claude-x', usage: { input_tokens: 10, output_tokens: 1 } },
})
export const END = frame({ type: 'message_stop' })

export function start(index: number, content_block: JsonObject): Frame {
  return frame({ type: 'content_block_start', index, content_block })
}

export function delta(index: number, delta: JsonObject): Frame {
  return frame({ type: 'content_block_delta', index, delta })
}

export function text(index: number, text: string): Frame {
  return delta(index, { type: 'text_delta', text })
}

export function input(index: number, partial_json: string): Frame {
  return delta(index, { type: 'input_json_delta', partial_json })
}

export function stop(index: number): Frame {
  return frame({ type: 'content_block_stop', index })
}

export function because(
  stop_reason: string | null,
  more: JsonObject = {},
  usage?: JsonValue,
): Frame {
  return frame({
    type: 'message_delta',
    delta: { stop_reason, stop_sequence: null, ...more },
    usage: usage ?? { output_tokens: 5 },
  })
}

export const TEXT = { type: 'text', text: '' }
export const tool = (id: string, name = 'look', input: JsonObject = {}): JsonObject => ({
  type: 'tool_use',
  id,
  name,
  input,
})

export function kinds(heard: Heard): string[] {
  return heard.events.map((event) => event.type)
}

export function run(...frames: Frame[]): Heard {
  return hearStream([BEGIN, ...frames])
}
