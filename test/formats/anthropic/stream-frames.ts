/** Builders for the frames of a Messages stream. */
import type { JsonObject, JsonValue } from '../../../src/base/json.js'
import type { Decoded } from '../collect-events.js'
import type { Frame } from '../sse-frames.js'
import { decodeStream, frame } from './driver.js'

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

export function messageDelta(stop_reason: string | null, more: JsonObject = {}, usage?: JsonValue): Frame {
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

export function eventTypes({ events }: Decoded): string[] {
  return events.map((event) => event.type)
}

/** Decodes a stream of `message_start` and these frames. */
export function run(...frames: Frame[]): Decoded {
  return decodeStream([BEGIN, ...frames])
}
