/**
 * Decodes one message of the Messages API to canonical events, for streams and whole replies.
 */
import type { WireError } from '../../../errors.js'
import type { EventSink, ChatEvent, FinishReason } from '../../chat/event.js'
import {
  isObject,
  numberOf,
  objectOf,
  parsedJson,
  stringOf,
  type JsonObject,
  type JsonValue,
} from '../../../base/json.js'
import type { ChatRequest } from '../../chat/request.js'
import type { StreamDecoder } from '../../dialect.js'
import { errorIn } from '../../wire/error-text.js'
import { FrameShapes } from '../../wire/frames/frame-shapes.js'
import { parseExact } from '../../wire/json/exact-numbers.js'
import { stopReasonOf } from '../../wire/stop-reasons.js'
import { MALFORMED_REPLY, strayFrame, TRUNCATED_REPLY } from '../../wire/upstream-errors.js'
import { ClientProperties } from '../../wire/property-names.js'
import { RawContent, resumeOf } from './continue-paused-turn.js'
import { Blocks } from './decode-blocks.js'
import { decodeErrorPayload } from './decode-error.js'
import { MessageUsage } from './decode-usage.js'
import { jsonToolName } from './encode-tools.js'

/** A decoder for one stream. Never throws, except errors of the sink. */
export function newDecoder(request: ChatRequest, sink: EventSink, mayPause = false): StreamDecoder {
  const raw = mayPause ? new RawContent() : null
  return new MessageStream(new MessageDecoder(request, sink, raw), raw)
}

/** The variable parts of a delta frame: its text and the index of the block. */
export const SLOT = /"(?:(?:text|thinking|partial_json)"\s*:\s*"|index"\s*:\s*(?=[-\d]))/g

/** Deltas whose only content is a string. */
export const TEXT_DELTAS: ReadonlySet<unknown> = new Set(['text_delta', 'thinking_delta', 'input_json_delta'])

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
    const payload = parsedJson(data)
    if (isObject(payload)) {
      if (payload.type === 'content_block_start') return this.start(payload, data)
      if (payload.type !== 'content_block_delta') return this.other(name, payload)
      this.delta(payload)
      if (this.raw === null && isPlain(payload.delta)) this.shapes.add(data, true)
    } else if (name === 'error') {
      this.message.error({ message: data })
    } else if (payload !== undefined || !skippable(data)) {
      this.message.stray(data)
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
    const type = stringOf(payload.type) ?? name
    if (type !== 'message_start') this.message.usage(payload)
    switch (type) {
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
        this.message.messageDelta(objectOf(payload.delta))
        return
      case 'message_stop':
        this.message.finish()
        return
      default:
        if (name === 'error' || errorIn(payload) !== null) this.message.error(payload)
    }
  }
}

function isPlain(delta: JsonValue | undefined): boolean {
  return isObject(delta) && TEXT_DELTAS.has(delta.type)
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

/** Emits a grammatical stream for any body. Never throws, except errors of the sink. */
export function decodeReply(body: JsonObject, request: ChatRequest, sink: EventSink): void {
  const message = new MessageDecoder(request, sink)
  if (isObject(body.error)) return message.error(body)
  if (!Array.isArray(body.content) && errorIn(body) !== null) return message.error(body)
  if (!Array.isArray(body.content)) return message.malformed('the reply has no content')
  message.begin(body)
  body.content.forEach((block, at) => {
    message.blockStart(at, block)
    message.blockStop(at)
  })
  message.messageDelta(body)
  message.finish(body.content)
}

/** Emits a grammatical stream for any sequence of calls; after `finish` or `error` it emits nothing. */
class MessageDecoder {
  /** True once `finish` or `error` has been emitted. */
  done = false
  readonly blocks: Blocks
  private readonly sink: EventSink
  private readonly request: ChatRequest
  private readonly meter = new MessageUsage()
  private started = false
  private stopReason: string | null = null
  private stopSequence: string | undefined
  private explanation: string | undefined
  private container: JsonValue | undefined
  /** The content so far in wire format, kept if the turn may pause. */
  private readonly raw: RawContent | null

  constructor(request: ChatRequest, sink: EventSink, raw: RawContent | null = null) {
    this.raw = raw
    this.sink = sink
    this.request = request
    this.blocks = new Blocks(sink, {
      custom: customTools(request),
      properties: new ClientProperties(request),
      json: request.responseFormat?.type === 'json-schema' ? jsonToolName(request) : null,
    })
  }

  /**
   * Starts the message. A second start (a proxy that replays the stream) resets the counts if no content has
   * been emitted; otherwise it is an error.
   */
  begin(message: JsonObject): void {
    if (this.done) return
    if (this.started) {
      if (this.blocks.hasStarted) return this.malformed('a second message_start')
      this.meter.reset()
      this.stopReason = null
    } else {
      this.started = true
      const model = stringOf(message.model) ?? this.request.model
      this.sink.event({ type: 'start', id: stringOf(message.id) ?? '', model })
    }
    this.usage(message)
  }

  blockStart(at: number, block: JsonValue | undefined): void {
    if (!isObject(block)) return this.malformed('a content block is not an object')
    this.raw?.start(at, block)
    this.check(() => this.blocks.start(at, block))
  }

  blockDelta(at: number, delta: JsonValue | undefined): void {
    if (!isObject(delta)) return this.malformed('a delta is not an object')
    this.check(() => this.blocks.delta(at, delta))
  }

  blockStop(at: number): void {
    this.check(() => {
      this.blocks.stop(at)
      return null
    })
  }

  /** Records the stop reason. `finish` is emitted by `finish()` or `eof()`, since more may follow. */
  messageDelta(delta: JsonObject): void {
    if (this.done) return
    if (!this.started) return this.malformed('a message_delta before message_start')
    this.stopReason = stringOf(delta.stop_reason) ?? this.stopReason
    this.stopSequence = stringOf(delta.stop_sequence) ?? this.stopSequence
    this.container = delta.container ?? this.container
    this.explanation = stringOf(objectOf(delta.stop_details).explanation) ?? this.explanation
  }

  /** Ends the message; `content` is its whole content in wire format, if it is known. */
  finish(content: JsonValue[] | undefined = this.raw?.content()): void {
    if (this.done) return
    if (!this.started) return this.malformed('a message_stop before message_start')
    this.blocks.closeAll()
    if (this.stopReason === 'refusal' && this.explanation) this.refusal(this.explanation)
    this.done = true
    const reason = finishReason(this.stopReason, this.blocks.hasToolCall, this.blocks.hasJsonCall)
    const finish: Extract<ChatEvent, { type: 'finish' }> = {
      type: 'finish',
      reason,
      raw: this.stopReason,
    }
    if (this.stopSequence !== undefined) finish.stopSequence = this.stopSequence
    const { serviceTier } = this.meter
    if (serviceTier !== undefined) finish.serviceTier = serviceTier
    if (reason === 'pause' && content !== undefined) {
      finish.resume = resumeOf(content, this.container)
    }
    this.sink.event(finish)
  }

  /** Handles the end of the connection: the message is complete if it has a stop reason, else truncated. */
  eof(): void {
    if (this.done) return
    if (this.started && this.stopReason !== null) return this.finish()
    this.fail({ ...TRUNCATED_REPLY })
  }

  /** Handles an error that the upstream reported. */
  error(payload: JsonObject): void {
    this.fail(decodeErrorPayload(payload))
  }

  /** Handles a frame that is not a JSON object. */
  stray(data: string): void {
    this.fail(strayFrame(data))
  }

  /** Ends the message with `upstream_malformed`. `fault` describes the fault without any content. */
  malformed(fault: string): void {
    const message = MALFORMED_REPLY.message.replace(/\.$/, `: ${fault}.`)
    this.fail({ ...MALFORMED_REPLY, message })
  }

  private fail(error: WireError): void {
    if (this.done) return
    this.done = true
    this.sink.event({ type: 'error', error })
  }

  private check(step: () => string | null): void {
    if (this.done) return
    if (!this.started) return this.malformed('content before message_start')
    const fault = step()
    if (fault !== null) this.malformed(fault)
  }

  /** Takes the counts of an event, which some upstreams put into other events than Anthropic. */
  usage(event: JsonObject): void {
    if (this.done || !this.meter.take(event) || !this.started) return
    const known = this.meter.usage()
    // Emitted only if there is at least one count.
    for (const _name in known) return this.sink.event({ type: 'usage', usage: known })
  }

  private refusal(text: string): void {
    const index = this.blocks.count++
    this.sink.event({ type: 'refusal-start', index })
    this.sink.event({ type: 'refusal-delta', index, text })
    this.sink.event({ type: 'refusal-end', index })
  }
}

const NO_TOOLS: ReadonlySet<string> = new Set()

function customTools({ tools }: ChatRequest): ReadonlySet<string> {
  if (tools.length === 0) return NO_TOOLS
  const custom = tools.filter((tool) => tool.custom !== undefined)
  return new Set(custom.map((tool) => tool.name))
}

/**
 * The canonical reason. `hasToolCall`: the model called one of the client's tools. `hasJsonCall`: it called
 * the synthetic tool that carries the reply's text, which is not visible to the client.
 */
export function finishReason(
  stopReason: string | null,
  hasToolCall: boolean,
  hasJsonCall: boolean,
): FinishReason {
  const reason = stopReason === null ? 'other' : stopReasonOf('anthropic', stopReason)
  if (reason === 'stop' && hasToolCall) return 'tool-use'
  return reason === 'tool-use' && hasJsonCall && !hasToolCall ? 'stop' : reason
}
