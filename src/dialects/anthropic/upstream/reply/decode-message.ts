/**
 * One message of the Messages API as canonical events: what a stream and a whole reply share.
 * Knows no frames; `decode-stream.ts` and `decode-reply.ts` say what happened, in whatever order it did.
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
import { Blocks } from './decode-blocks.js'
import { resumeOf, type RawContent } from '../continue-paused-turn.js'
import { decodeErrorPayload } from '../decode-error.js'
import { jsonToolName } from '../request/encode-tools.js'
import { UsageMeter } from '../../shared/usage.js'
import { finishReason } from './map-stop-reason.js'

/** Emits a grammatical stream whatever it is told; after `finish` or `error` it emits nothing. */
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
  /** What was said so far in the wire's own words, where the turn may pause. */
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
   * The message begins. A second beginning (a proxy that replays the stream) starts the counts over
   * where nothing else has been sent yet, and is an error where something has.
   */
  begin(message: JsonObject): void {
    if (this.done) return
    if (this.started) {
      if (this.blocks.begun) return this.malformed('a second message_start')
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
    if (!isObject(block)) return this.malformed('a content block is no object')
    this.raw?.start(at, block)
    this.check(() => this.blocks.start(at, block))
  }

  blockDelta(at: number, delta: JsonValue | undefined): void {
    if (!isObject(delta)) return this.malformed('a delta is no object')
    this.check(() => this.blocks.delta(at, delta))
  }

  blockStop(at: number): void {
    this.check(() => {
      this.blocks.stop(at)
      return null
    })
  }

  /** Stop reason and usage. The finish waits for `end()`, since more may follow. */
  messageDelta(delta: JsonObject, usage: JsonValue | undefined): void {
    if (this.done) return
    if (!this.started) return this.malformed('a message_delta before message_start')
    this.stopReason = stringOf(delta.stop_reason) ?? this.stopReason
    this.stopSequence = stringOf(delta.stop_sequence) ?? this.stopSequence
    this.container = delta.container ?? this.container
    this.explanation = stringOf(objectOf(delta.stop_details).explanation) ?? this.explanation
    this.usage(usage)
  }

  /** The message is complete; `content` is all of it, where it came as a whole. */
  finish(content: JsonValue[] | undefined = this.raw?.content()): void {
    if (this.done) return
    if (!this.started) return this.malformed('a message_stop before message_start')
    this.blocks.closeAll()
    if (this.stopReason === 'refusal' && this.explanation) this.refusal(this.explanation)
    this.done = true
    const reason = finishReason(this.stopReason, this.blocks.sawTool, this.blocks.sawJson)
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

  /** Nothing more will come: complete if the model said why it stopped, otherwise cut short. */
  eof(): void {
    if (this.done) return
    if (this.started && this.stopReason !== null) return this.finish()
    this.fail({
      kind: 'upstream_truncated',
      message: 'The upstream’s reply ended before it was complete.',
    })
  }

  /** The upstream reported a failure. */
  error(payload: JsonObject): void {
    this.fail(decodeErrorPayload(payload))
  }

  /** What came breaks the format. `what` names the rule and holds nothing of the content. */
  malformed(what: string): void {
    this.fail({
      kind: 'upstream_malformed',
      message: `The upstream’s reply broke its own format: ${what}.`,
    })
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
    // Told where there is anything to tell.
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
