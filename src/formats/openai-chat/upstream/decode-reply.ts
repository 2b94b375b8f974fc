/**
 * Decodes the chunks of a stream, and a whole reply as one chunk. Emits a grammatical event stream for any
 * input, also if its chunks are disordered. Only the first choice is decoded.
 *
 * The `finish` event waits for `[DONE]` or the end of the stream, because usage follows `finish_reason`, and
 * so do fragments of calls from some gateways. The end of the stream after `finish_reason` completes a reply
 * without `[DONE]`, and so does `[DONE]` after content without a `finish_reason` (OpenRouter's streams from
 * Novita), if every frame was a chunk. An end with neither is a truncated reply. The last chunk of some
 * vendors has the whole reply again, as a `message` (MiniMax, "Text Generation").
 */
import type { WireError } from '../../../errors.js'
import type { EventSink, FinishReason, Citation } from '../../chat/event.js'
import type { CallCounts } from '../../chat/hosted-tools.js'
import {
  arrayOf,
  isObject,
  numberOf,
  objectOf,
  stringOf,
  type JsonObject,
  type JsonValue,
} from '../../../base/json.js'
import type { ChatRequest } from '../../chat/request.js'
import type { StreamDecoder, ChoicesDecoder } from '../../dialect.js'
import { FrameShapes } from '../../wire/frames/frame-shapes.js'
import { baseError, errorIn as vendorError } from '../../wire/error-text.js'
import { decodeErrorPayload } from '../../wire/openai/decode-error.js'
import { stopReasonOf } from '../../wire/stop-reasons.js'
import { MALFORMED_REPLY, strayFrame, TRUNCATED_REPLY } from '../../wire/upstream-errors.js'
import { UsageMeter } from '../../wire/usage-meter.js'
import { FRAME_SLOTS } from '../constants.js'
import { Blocks, decodeToolCall, toolCallIndex } from './decode-blocks.js'

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
  /** A delta was decoded, so that a `message` after the content is the whole reply again. */
  private hasDelta = false
  private raw: string | null = null
  /** The stream ended without a finish reason. */
  private lacksReason = false
  /** A frame was neither a chunk nor an error, so `[DONE]` alone proves nothing. */
  private hasOther = false
  private readonly meter = new UsageMeter()
  private hasUsage = false
  private tier: string | undefined
  private hasSearched = false
  /** Names of non-empty members that have no canonical event. */
  private unknownMembers: Set<string> | null = null
  /** The shapes of earlier frames, and whether those have usage. */
  private readonly shapes = new FrameShapes<boolean>(FRAME_SLOTS)

  constructor(sink: EventSink) {
    this.sink = sink
    this.blocks = new Blocks(sink, () => this.id)
  }

  frame(name: string, data: string): void {
    if (this.ended) return
    if (name === 'error') return this.fail(errorOfEvent(data))
    const hasUsage = this.shapes.find(data)
    const known = hasUsage === null ? null : this.shapes.value(data)
    if (known !== null) {
      if (hasUsage === true) this.count(known)
      return this.chunk(known)
    }
    if (data === '[DONE]' || data.trim() === '[DONE]') return this.terminator()
    const chunk = parsed(data)
    if (!isObject(chunk)) return this.fail(errorOfOther(data))
    const counts = this.count(chunk)
    this.chunk(chunk)
    // Chunks before the first choice set id and model, which must not be read from a known shape.
    if (this.started) this.shapes.add(data, counts)
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
    this.count(body)
    this.chunk(body)
    // Valid JSON is never truncated, so a whole reply without a finish reason is complete.
    if (this.raw === null) this.raw = ''
    if (!this.ended) this.finish()
  }

  private chunk(chunk: JsonObject): void {
    if (this.id === '') this.id = stringOf(chunk['id']) ?? ''
    if (this.model === '') this.model = stringOf(chunk['model']) ?? ''
    if (this.tier === undefined) this.tier = stringOf(chunk['service_tier'])
    const error = errorIn(chunk)
    if (error !== null) return this.fail(error)
    const choice = choiceOf(chunk)
    if (choice === null) {
      this.hasOther ||= !isChunk(chunk)
      return
    }
    this.start()
    const whole = !isObject(choice['delta'])
    const isRepeated = whole && this.hasDelta && this.blocks.hasBlocks
    this.hasDelta ||= !whole
    if (!isRepeated && !this.delta(objectOf(choice[whole ? 'message' : 'delta']), whole)) {
      return this.fail(MALFORMED_REPLY)
    }
    this.raw = laterReason(this.raw, choice['finish_reason'])
  }

  /**
   * Emits usage as soon as it arrives, so that a truncated stream is still priced. Returns whether the chunk
   * has any.
   */
  private count(chunk: JsonObject): boolean {
    if (!this.meter.takeFrame(chunk)) return false
    this.hasUsage = true
    if (this.started) this.emitUsage()
    return true
  }

  private emitUsage(): void {
    this.sink.event({ type: 'usage', usage: this.meter.usage() })
  }

  private start(): void {
    if (this.started) return
    this.started = true
    this.sink.event({ type: 'start', id: this.id, model: this.model })
    if (this.hasUsage) this.emitUsage()
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
    if (this.raw === null && this.blocks.hasBlocks && !this.hasOther) {
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
    if (this.hasSearched && this.meter.usage().calls === undefined) {
      this.sink.event({ type: 'usage', usage: { calls: ONE_SEARCH } })
    }
    let reason: FinishReason = this.lacksReason ? 'stop' : stopReasonOf('openai-chat', this.raw)
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

/** Emits the events that a stream of the same reply would. Never throws. */
export function decodeReply(body: JsonObject, _request: ChatRequest, sink: EventSink): void {
  new ChunkDecoder(sink).whole(body)
}

/**
 * Decodes several choices of one reply, each with a decoder and a sink of its own, for clients of other
 * formats. Every sink gets the usage, which counts all choices together. Chat clients get the upstream's own
 * bytes.
 */
export class ChoicesOfReply implements ChoicesDecoder {
  private readonly decoders: readonly ChunkDecoder[]

  constructor(sinks: readonly EventSink[]) {
    this.decoders = sinks.map((sink) => new ChunkDecoder(sink))
  }

  take(body: JsonValue): void {
    if (Array.isArray(body)) for (const chunk of body) this.frame('', JSON.stringify(chunk))
    else for (const [at, each] of this.decoders.entries()) each.whole(onlyChoice(objectOf(body), at))
  }

  frame(name: string, data: string): void {
    const chunk = parsed(data)
    for (const [at, each] of this.decoders.entries()) {
      each.frame(name, !isObject(chunk) ? data : JSON.stringify(onlyChoice(chunk, at)))
    }
  }

  end(): void {
    for (const each of this.decoders) each.end()
  }
}

/** The chunk with one of its choices, which gets the index 0. */
function onlyChoice(chunk: JsonObject, position: number): JsonObject {
  const choices = arrayOf(chunk['choices'])
    .map(objectOf)
    .filter(({ index }) => (index ?? 0) === position)
  return { ...chunk, choices: choices.map((choice) => ({ ...choice, index: 0 })) }
}

/** Undefined for `[DONE]` and malformed frames. */
function parsed(data: string): unknown {
  try {
    return JSON.parse(data)
  } catch {
    return undefined
  }
}

/** `finish_reason: "error"` without an error object (OpenRouter). */
export const STOPPED_WITH_ERROR: Readonly<WireError> = {
  kind: 'upstream_failed',
  message: 'The upstream stopped the reply with finish_reason "error" and gave no reason.',
  upstreamCode: 'error',
}

/**
 * The error of a body or chunk, alone or beside its choices; null if there is none.
 *
 * Failures inside a reply with status 200. Errors with another status are decoded by
 * `formats/wire/openai/decode-error.ts`.
 *
 * Source: OpenAI API reference, "Error codes", and recorded error bodies, read 2026-11-20.
 */
export function errorIn(chunk: JsonObject): WireError | null {
  const error = chunk['error'] ?? objectOf(arrayOf(chunk['choices'])[0])['error']
  if (isObject(error) || Array.isArray(error)) return decodeErrorPayload(error)
  // A text or a mark has its words beside it.
  if (!EMPTY.has(error)) return decodeErrorPayload(vendorError({ ...chunk, error }) ?? error)
  const failure = isChunk(chunk) ? baseError(objectOf(chunk['base_resp'])) : vendorError(chunk)
  return failure === null ? null : decodeErrorPayload(failure)
}

const EMPTY: ReadonlySet<unknown> = new Set([undefined, null, false, ''])

/** Whether an object has the form of a chunk or a reply; others are errors, or words that mean nothing. */
export function isChunk(chunk: JsonObject): boolean {
  const choices = arrayOf(chunk['choices'])
  if (choices.length > 0 || (stringOf(chunk['object']) ?? '').startsWith('chat.completion')) return true
  return (chunk['choices'] === choices || isObject(chunk['usage'])) && vendorError(chunk) === null
}

/** The error of a frame that is no object. Google's OpenAI endpoint wraps its errors in an array. */
export function errorOfOther(data: string): WireError {
  const [first] = arrayOf(parsed(data))
  return (isObject(first) ? errorIn(first) : null) ?? strayFrame(data)
}

/** The error of an event that is named `error`, in any form. */
export function errorOfEvent(data: string): WireError {
  const value = parsed(data) ?? data
  return decodeErrorPayload(isObject(value) ? (vendorError(value) ?? value) : value)
}

/**
 * The finish reason so far. Some gateways send one with each chunk of a call; the last one counts, unless it
 * is an ordinary end after a reason that means more.
 */
function laterReason(earlier: string | null, reason: JsonValue | undefined): string | null {
  if (typeof reason !== 'string' || reason === '') return earlier
  return earlier !== null && reason === 'stop' ? earlier : reason
}

/** A source by its URL; null for other annotations. */
function citationOf(item: JsonValue): Citation | null {
  const inner = objectOf(objectOf(item)['url_citation'])
  const url = stringOf(inner['url'])
  if (url === undefined) return null
  const citation: Citation = { url }
  const title = stringOf(inner['title'])
  const start = numberOf(inner['start_index'])
  const end = numberOf(inner['end_index'])
  if (title !== undefined) citation.title = title
  if (start !== undefined) citation.start = start
  if (end !== undefined) citation.end = end
  return citation
}

/** Whether the reply cites pages: a search of the web, of which a reply has one. */
export function citesPages(delta: JsonObject): boolean {
  const { annotations } = delta
  if (!Array.isArray(annotations)) return false
  return annotations.some((item) => isObject(item) && item['type'] === 'url_citation')
}

/** The search of a reply that cites pages and whose usage has no calls. */
export const ONE_SEARCH: CallCounts = { web_search: 1 }
