/**
 * Decodes one message of the Messages API to canonical events, for streams and whole replies.
 */
import type { ChatEvent, EventSink } from '../../../../chat/event.js'
import {
  isObject,
  objectOf,
  stringOf,
  type JsonObject,
  type JsonValue,
} from '../../../../chat/json.js'
import type { ChatRequest } from '../../../../chat/request.js'
import type { WireError } from '../../../../errors.js'
import { MALFORMED_REPLY, TRUNCATED_REPLY } from '../../../../wire/reply-faults.js'
import { Blocks } from './decode-blocks.js'
import { resumeOf, type RawContent } from '../continue-paused-turn.js'
import { decodeErrorPayload } from '../decode-error.js'
import { jsonToolName } from '../request/encode-tools.js'
import { UsageMeter } from './decode-usage.js'
import { finishReason } from './map-stop-reason.js'

/** Emits a grammatical stream for any sequence of calls; after `finish` or `error` it emits nothing. */
export class MessageDecoder {
  /** True once `finish` or `error` has been emitted. */
  done = false
  readonly blocks: Blocks
  private readonly sink: EventSink
  private readonly request: ChatRequest
  private readonly meter = new UsageMeter()
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
    this.usage(message.usage)
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

  /** Records stop reason and usage. `finish` is emitted by `finish()` or `eof()`, since more may follow. */
  messageDelta(delta: JsonObject, usage: JsonValue | undefined): void {
    if (this.done) return
    if (!this.started) return this.malformed('a message_delta before message_start')
    this.stopReason = stringOf(delta.stop_reason) ?? this.stopReason
    this.stopSequence = stringOf(delta.stop_sequence) ?? this.stopSequence
    this.container = delta.container ?? this.container
    this.explanation = stringOf(objectOf(delta.stop_details).explanation) ?? this.explanation
    this.usage(usage)
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

  private usage(usage: JsonValue | undefined): void {
    if (!isObject(usage)) return
    this.meter.take(usage)
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
