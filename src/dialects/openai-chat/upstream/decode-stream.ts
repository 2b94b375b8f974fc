/**
 * Decodes the chunks of a stream, and a whole reply as one chunk. Emits a grammatical event stream for any
 * input, also if its chunks are disordered. Only the first choice is decoded.
 *
 * The `finish` event waits for `[DONE]` or the end of the stream, because usage follows `finish_reason`. The
 * end of the stream after `finish_reason` completes a reply without `[DONE]`, and so does `[DONE]` after
 * content without a `finish_reason` (OpenRouter's streams from Novita). An end with neither is a truncated
 * reply.
 */
import type { EventSink, FinishReason } from '../../../chat/event.js'
import {
  arrayOf,
  isObject,
  type JsonObject,
  type JsonValue,
  numberOf,
  objectOf,
  stringOf,
} from '../../../chat/json.js'
import type { ChatRequest } from '../../../chat/request.js'
import type { WireError } from '../../../errors.js'
import { clientNames } from '../../../wire/openai/tool-names.js'
import { MALFORMED_REPLY, TRUNCATED_REPLY } from '../../../wire/reply-faults.js'
import { FrameShapes } from '../../../wire/frames/frame-shapes.js'
import type { StreamDecoder } from '../../dialect.js'
import { Blocks } from './reply/emit-blocks.js'
import { FRAME_SLOTS } from '../shared/constants.js'
import { errorIn, STOPPED_WITH_ERROR } from './decode-error.js'
import { citationOf } from './reply/decode-citations.js'
import { decodeToolCall, toolCallIndex } from './reply/decode-tool-calls.js'
import { citesPages, ONE_SEARCH, usageOf } from './reply/decode-usage.js'
import { finishReason } from './reply/map-stop-reason.js'

/** Members of a delta or message that are decoded here or have no meaning for clients (Groq's `channel`). */
const KNOWN_MEMBERS = new Set([
  'annotations',
  'channel',
  'content',
  'function_call',
  'images',
  'prefix',
  'reasoning',
  'reasoning_content',
  'refusal',
  'role',
  'tool_calls',
])

/** Limit for the names of unknown members that are reported; no vendor has that many. */
const MAX_UNKNOWN_MEMBERS = 16

/** Decodes one stream. */
export class ChunkDecoder implements StreamDecoder {
  wasCut = false
  private readonly sink: EventSink
  private readonly blocks: Blocks
  private id = ''
  private model = ''
  private started = false
  private ended = false
  private raw: string | null = null
  /** The stream ended without a finish reason. */
  private lacksReason = false
  private usage: JsonValue | undefined
  private tier: string | undefined
  private hasSearched = false
  /** Names of non-empty members that have no canonical event. */
  private unknownMembers: Set<string> | null = null
  private readonly shapes = new FrameShapes<true>(FRAME_SLOTS)

  constructor(request: ChatRequest, sink: EventSink) {
    this.sink = sink
    this.blocks = new Blocks(sink, clientNames(request.tools), () => this.id)
  }

  frame(_name: string, data: string): void {
    if (this.ended) return
    const known = this.shapes.read(data)
    if (known !== null) return this.chunk(known)
    if (data === '[DONE]' || data.trim() === '[DONE]') return this.terminator()
    let chunk: unknown
    try {
      chunk = JSON.parse(data)
    } catch {
      return this.fail(MALFORMED_REPLY)
    }
    if (!isObject(chunk)) return this.fail(MALFORMED_REPLY)
    this.chunk(chunk)
    // Chunks before the first choice set id and model, which must not be read from a known shape.
    if (this.started) this.shapes.add(data, true)
  }

  end(): void {
    if (this.ended) return
    this.wasCut = true
    this.finish()
  }

  /** A whole reply is one chunk whose choice has a `message` and a reason. */
  whole(body: JsonObject): void {
    if (errorIn(body) === null && choiceOf(body) === null) {
      return this.fail(MALFORMED_REPLY)
    }
    this.chunk(body)
    // Valid JSON is never truncated, so a whole reply without a finish reason is complete.
    if (this.raw === null) this.raw = ''
    if (!this.ended) this.finish()
  }

  private chunk(chunk: JsonObject): void {
    if (this.id === '') this.id = stringOf(chunk['id']) ?? ''
    if (this.model === '') this.model = stringOf(chunk['model']) ?? ''
    if (this.tier === undefined) this.tier = stringOf(chunk['service_tier'])
    this.count(chunk)
    const error = errorIn(chunk)
    if (error !== null) return this.fail(error)
    const choice = choiceOf(chunk)
    if (choice === null) return
    this.start()
    // Content after the finish reason is not part of the reply.
    if (this.raw !== null) return
    const whole = !isObject(choice['delta'])
    if (!this.delta(objectOf(choice[whole ? 'message' : 'delta']), whole)) {
      return this.fail(MALFORMED_REPLY)
    }
    const reason = choice['finish_reason']
    if (typeof reason === 'string' && reason !== '') this.raw = reason
  }

  /** Emits usage as soon as it arrives, so that a truncated stream is still priced. */
  private count(chunk: JsonObject): void {
    const usage = chunk['usage'] ?? objectOf(chunk['x_groq'])['usage']
    if (!isObject(usage)) return
    this.usage = usage
    if (this.started) this.sink.event({ type: 'usage', usage: usageOf(usage) })
  }

  private start(): void {
    if (this.started) return
    this.started = true
    this.sink.event({ type: 'start', id: this.id, model: this.model })
    if (this.usage !== undefined) this.sink.event({ type: 'usage', usage: usageOf(this.usage) })
  }

  /** False if the delta is malformed. */
  private delta(delta: JsonObject, whole: boolean): boolean {
    const { blocks } = this
    const { content } = delta
    // Most deltas have `content` only.
    for (const key in delta) {
      if (key !== 'content' && !KNOWN_MEMBERS.has(key)) this.noteUnknown(key, delta[key])
    }
    const thought = stringOf(delta['reasoning_content']) ?? stringOf(delta['reasoning']) ?? ''
    let ok = blocks.text('thinking', thought)
    ok &&= this.content(content)
    this.hasSearched ||= citesPages(delta)
    for (const item of arrayOf(delta['annotations'])) {
      const citation = citationOf(item)
      if (citation !== null) blocks.cite(citation)
    }
    for (const item of arrayOf(delta['images'])) ok &&= this.image(item)
    ok &&= blocks.text('refusal', stringOf(delta['refusal']) ?? '')
    const calls = arrayOf(delta['tool_calls'])
    for (const [at, item] of calls.entries()) {
      if (!isObject(item)) return false
      const index = whole ? at : toolCallIndex(item, calls, blocks.calls)
      ok &&= blocks.call(decodeToolCall(item, index))
    }
    const legacy = delta['function_call']
    return ok && (isObject(legacy) ? blocks.call(decodeToolCall({ function: legacy }, 0)) : true)
  }

  /** A string, or Mistral's list of text and thinking parts (recorded). */
  private content(value: JsonValue | undefined): boolean {
    if (typeof value === 'string') return this.blocks.text('text', value)
    return arrayOf(value).every((item) => {
      const part = objectOf(item)
      if (part['type'] === 'text') return this.blocks.text('text', stringOf(part['text']) ?? '')
      if (part['type'] !== 'thinking') {
        this.noteUnknown(stringOf(part['type']) ?? 'content', part)
        return true
      }
      const thinking = part['thinking']
      const thought =
        stringOf(thinking) ??
        arrayOf(thinking)
          .map((part) => stringOf(objectOf(part)['text']) ?? '')
          .join('')
      return this.blocks.text('thinking', thought)
    })
  }

  /** An image beside the content (OpenRouter). */
  private image(item: JsonValue): boolean {
    const url = stringOf(objectOf(objectOf(item)['image_url'])['url']) ?? ''
    return url === '' || this.blocks.image(url)
  }

  private noteUnknown(name: string, value: JsonValue | undefined): void {
    if (value === undefined || value === null || value === '') return
    if (typeof value === 'object' && Object.keys(value).length === 0) return
    this.unknownMembers ??= new Set()
    if (this.unknownMembers.size < MAX_UNKNOWN_MEMBERS) this.unknownMembers.add(name)
  }

  /** `[DONE]`. After content it completes the reply even without a finish reason. */
  private terminator(): void {
    if (this.raw === null && this.blocks.hasBlocks) {
      this.raw = ''
      this.lacksReason = true
    }
    this.finish()
  }

  private finish(): void {
    if (this.raw === null) return this.fail(TRUNCATED_REPLY)
    if (this.raw === 'error') return this.fail(STOPPED_WITH_ERROR)
    if (!this.blocks.finish()) return this.fail(MALFORMED_REPLY)
    this.ended = true
    // An event with the name alone, so that encoders report the loss.
    for (const type of this.unknownMembers ?? []) {
      const index = this.blocks.next()
      this.sink.event({ type: 'opaque', index, provider: 'openai-chat', block: { type } })
    }
    if (this.hasSearched && usageOf(this.usage).calls === undefined) {
      this.sink.event({ type: 'usage', usage: { calls: ONE_SEARCH } })
    }
    let reason: FinishReason = this.lacksReason ? 'stop' : finishReason(this.raw)
    if (reason === 'stop' && this.blocks.calls > 0) reason = 'tool-use'
    const raw = this.raw === '' ? null : this.raw
    const { tier } = this
    this.sink.event(
      tier === undefined
        ? { type: 'finish', reason, raw }
        : { type: 'finish', reason, raw, serviceTier: tier },
    )
  }

  private fail(error: WireError): void {
    if (this.ended) return
    this.ended = true
    this.sink.event({ type: 'error', error: { ...error } })
  }
}

/** The first choice: the one with index 0, or without a valid index. */
export function choiceOf(chunk: JsonObject): JsonObject | null {
  for (const item of arrayOf(chunk['choices'])) {
    if (!isObject(item)) continue
    const index = numberOf(item['index'])
    if (index === undefined || index <= 0) return item
  }
  return null
}
