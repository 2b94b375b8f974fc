/**
 * Decodes the frames of a Messages stream to canonical events.
 * Tolerates pings, padding, unknown events, interleaved blocks and missing stops.
 */
import type { EventSink } from '../../../chat/event.js'
import {
  isObject,
  numberOf,
  objectOf,
  stringOf,
  type JsonObject,
  type JsonValue,
} from '../../../chat/json.js'
import type { ChatRequest } from '../../../chat/request.js'
import { parseExact } from '../../../wire/json/exact-numbers.js'
import { FrameShapes } from '../../../wire/frames/frame-shapes.js'
import type { StreamDecoder } from '../../dialect.js'
import { MessageDecoder } from './reply/decode-message.js'
import { RawContent } from './continue-paused-turn.js'
import { parseJson } from '../shared/constants.js'

/** A decoder for one stream. Never throws, except errors of the sink. */
export function newDecoder(request: ChatRequest, sink: EventSink, mayPause = false): StreamDecoder {
  const raw = mayPause ? new RawContent() : null
  return new MessageStream(new MessageDecoder(request, sink, raw), raw)
}

/** The variable parts of a delta frame: its text and the index of the block. */
export const SLOT = /"(?:(?:text|thinking|partial_json)"\s*:\s*"|index"\s*:\s*(?=[-\d]))/g

/** Deltas whose only content is a string. */
const PLAIN: ReadonlySet<unknown> = new Set(['text_delta', 'thinking_delta', 'input_json_delta'])

class MessageStream implements StreamDecoder {
  private readonly message: MessageDecoder
  private readonly raw: RawContent | null
  private readonly shapes = new FrameShapes<true>(SLOT)

  constructor(message: MessageDecoder, raw: RawContent | null) {
    this.message = message
    this.raw = raw
  }

  frame(name: string, data: string): void {
    if (this.message.done) return
    const known = this.shapes.read(data)
    if (known !== null) return this.delta(known)
    const payload = parseJson(data)
    if (isObject(payload)) {
      if (payload.type === 'content_block_start') return this.start(payload, data)
      if (payload.type !== 'content_block_delta') return this.other(name, payload)
      this.delta(payload)
      if (this.raw === null && isPlain(payload.delta)) this.shapes.add(data, true)
    } else if (name === 'error') {
      this.message.error({})
    } else if (payload !== undefined || !skippable(data)) {
      this.message.malformed('a frame is not a JSON object')
    }
  }

  end(): void {
    this.message.eof()
  }

  private delta(payload: JsonObject): void {
    const { delta, index } = payload
    if (this.raw !== null && isObject(delta)) this.raw.delta(indexOf(payload), delta)
    if (isObject(delta) && delta.type === 'text_delta') {
      if (this.message.blocks.text(index, delta.text)) return
    }
    this.message.blockDelta(indexOf(payload), delta)
  }

  /** A call whose whole input is in its first frame may have numbers that a double cannot hold. */
  private start(payload: JsonObject, data: string): void {
    const { content_block: block } = payload
    const hasInput = isObject(block) && isObject(block.input)
    const exact = hasInput ? objectOf(parseExact(data)).content_block : block
    this.message.blockStart(indexOf(payload), exact)
  }

  private other(name: string, payload: JsonObject): void {
    switch (stringOf(payload.type) ?? name) {
      case 'message_start':
        this.message.begin(objectOf(payload.message))
        return
      case 'content_block_start':
        this.message.blockStart(indexOf(payload), payload.content_block)
        return
      case 'content_block_delta':
        this.message.blockDelta(indexOf(payload), payload.delta)
        return
      case 'content_block_stop':
        this.message.blockStop(indexOf(payload))
        return
      case 'message_delta':
        this.message.messageDelta(objectOf(payload.delta), payload.usage)
        return
      case 'message_stop':
        this.message.finish()
        return
      case 'error':
        this.message.error(payload)
        return
      default:
        if (isObject(payload.error)) this.message.error(payload)
    }
  }
}

function isPlain(delta: JsonValue | undefined): boolean {
  return isObject(delta) && PLAIN.has(delta.type)
}

/** The block's index; -1 for the blocks of proxies that send none, which arrive in sequence. */
function indexOf(payload: JsonObject): number {
  return numberOf(payload.index) ?? -1
}

/** True for empty data and for OpenAI's terminator, which some proxies append. */
function skippable(data: string): boolean {
  const text = data.trim()
  return text === '' || text === '[DONE]'
}
