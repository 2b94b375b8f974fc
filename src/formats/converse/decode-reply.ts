/**
 * Decodes a reply of Converse to canonical events, whole and as a stream. `decode-blocks.ts` puts the events
 * of its blocks in order.
 */
import type { WireError } from '../../errors.js'
import type { ChatEvent, EventSink, FinishReason } from '../chat/event.js'
import { isObject, numberOf, objectOf, stringOf, type JsonObject, parsedJson } from '../../base/json.js'
import type { ChatRequest } from '../chat/request.js'
import type { StreamDecoder } from '../dialect.js'
import { decodeAwsException, proxyErrorIn } from '../wire/aws/decode-error.js'
import { EXCEPTION } from '../wire/aws/event-stream.js'
import { FrameShapes } from '../wire/frames/frame-shapes.js'
import { stopReasonOf } from '../wire/stop-reasons.js'
import { MALFORMED_REPLY, TRUNCATED_REPLY } from '../wire/upstream-errors.js'
import { UsageMeter } from '../wire/usage-meter.js'
import { Blocks } from './decode-blocks.js'

/** Emits a grammatical stream for any body. Never throws, except errors of the sink. */
export function decodeReply(body: JsonObject, request: ChatRequest, sink: EventSink): void {
  const message = new MessageDecoder(request, sink)
  const { content } = objectOf(objectOf(body.output).message)
  if (!Array.isArray(content)) {
    const error = proxyErrorIn(body)
    return error === null ? message.malformed('the reply has no content') : message.fail(error)
  }
  message.begin()
  for (const [at, block] of content.entries()) message.whole(at, block)
  message.stop(body)
  message.metadata(body)
  message.eof()
}

/** A decoder for one stream. Never throws, except errors of the sink. */
export function newDecoder(request: ChatRequest, sink: EventSink): StreamDecoder {
  return new ConverseStream(new MessageDecoder(request, sink))
}

/** The variable parts of a delta: its text, the padding and the index of the block. */
const SLOT = /"(?:(?:text|input|p)"\s*:\s*"|contentBlockIndex"\s*:\s*(?=\d))/g

class ConverseStream implements StreamDecoder {
  wasCut = false
  private readonly message: MessageDecoder
  private readonly shapes = new FrameShapes<true>(SLOT)

  constructor(message: MessageDecoder) {
    this.message = message
  }

  frame(name: string, data: string): void {
    const { message } = this
    if (message.done) return
    const isDelta = name === 'contentBlockDelta'
    const known = isDelta ? this.shapes.read(data) : null
    const payload = known ?? parsedJson(data)
    if (!isObject(payload)) return message.malformed('an event is not a JSON object')
    switch (name) {
      case 'messageStart':
        return message.begin()
      case 'contentBlockStart':
        return message.start(indexOf(payload), objectOf(payload.start))
      case 'contentBlockDelta':
        message.delta(indexOf(payload), objectOf(payload.delta))
        if (known === null && isPlain(objectOf(payload.delta))) this.shapes.add(data, true)
        return
      case 'contentBlockStop':
        return message.blockStop(indexOf(payload))
      case 'messageStop':
        return message.stop(payload)
      case 'metadata':
        return message.metadata(payload)
      case EXCEPTION:
        return message.fail(decodeAwsException(payload))
      default: {
        const error = name === '' ? proxyErrorIn(payload) : null
        if (error !== null) message.fail(error)
      }
    }
  }

  /** Without `metadata` the counts are unknown, and the reply is complete. */
  end(): void {
    this.wasCut = !this.message.done && this.message.hasStopped
    this.message.eof()
  }
}

function indexOf(payload: JsonObject): number {
  return numberOf(payload.contentBlockIndex) ?? 0
}

/** True for a delta whose only content is a string. */
function isPlain({ text, toolUse, reasoningContent }: JsonObject): boolean {
  return (
    typeof text === 'string' ||
    typeof objectOf(toolUse).input === 'string' ||
    typeof objectOf(reasoningContent).text === 'string'
  )
}

/** Emits a grammatical stream for any sequence of calls; after `finish` or `error` it emits nothing. */
class MessageDecoder {
  /** True once `finish` or `error` has been emitted. */
  done = false
  private readonly blocks: Blocks
  private readonly sink: EventSink
  private readonly request: ChatRequest
  private readonly meter = new UsageMeter()
  private hasStarted = false
  private hasMetadata = false
  private stopReason: string | null = null
  private stopSequence: string | undefined
  private tier: string | undefined

  constructor(request: ChatRequest, sink: EventSink) {
    this.request = request
    this.sink = sink
    this.blocks = new Blocks(sink, request)
  }

  /** The reply has its stop reason. */
  get hasStopped(): boolean {
    return this.stopReason !== null
  }

  begin(): void {
    if (this.done || this.hasStarted) return
    this.hasStarted = true
    // Replies of Converse have no id and no model.
    this.sink.event({ type: 'start', id: '', model: this.request.model })
  }

  whole(at: number, block: unknown): void {
    if (!isObject(block)) return this.malformed('a content block is not an object')
    this.check(() => this.blocks.whole(at, block))
  }

  start(at: number, start: JsonObject): void {
    this.check(() => this.blocks.start(at, start))
  }

  delta(at: number, delta: JsonObject): void {
    this.check(() => this.blocks.delta(at, delta))
  }

  blockStop(at: number): void {
    this.check(() => {
      this.blocks.stop(at)
      return null
    })
  }

  /** Records the stop reason; most models send the counts after it, some before. */
  stop({ stopReason, additionalModelResponseFields: fields }: JsonObject): void {
    if (this.done) return
    this.stopReason = stringOf(stopReason) ?? 'unknown'
    this.stopSequence = stringOf(objectOf(fields).stop_sequence)
    if (this.hasMetadata) this.eof()
  }

  metadata(metadata: JsonObject): void {
    if (this.done) return
    if (!this.hasStarted) return this.malformed('counts before the message')
    this.tier = stringOf(objectOf(metadata.serviceTier).type)
    if (this.meter.takeFrame(metadata)) this.emitUsage()
    this.hasMetadata = true
    if (this.hasStopped) this.eof()
  }

  private emitUsage(): void {
    const usage = this.meter.usage()
    if (Object.keys(usage).length > 0) this.sink.event({ type: 'usage', usage })
  }

  /** No more events follow: the message is complete if it has a stop reason, else truncated. */
  eof(): void {
    if (this.done) return
    const { stopReason: raw } = this
    if (!this.hasStarted || raw === null) return this.fail({ ...TRUNCATED_REPLY })
    this.blocks.closeAll()
    if (raw === 'malformed_model_output' || raw === 'malformed_tool_use') {
      return this.fail({ ...MALFORMED_OUTPUT, upstreamCode: raw }, 'other')
    }
    this.done = true
    const meant = stopReasonOf('converse', raw)
    const reason = meant === 'stop' && this.blocks.hasToolCall ? 'tool-use' : meant
    const finish: Extract<ChatEvent, { type: 'finish' }> = { type: 'finish', reason, raw }
    if (this.stopSequence !== undefined) finish.stopSequence = this.stopSequence
    if (this.tier !== undefined) finish.serviceTier = this.tier
    this.sink.event(finish)
  }

  /** Ends the message with `upstream_malformed`. `fault` describes the fault without any content. */
  malformed(fault: string): void {
    const message = MALFORMED_REPLY.message.replace(/\.$/, `: ${fault}.`)
    this.fail({ ...MALFORMED_REPLY, message })
  }

  fail(error: WireError, reason?: FinishReason): void {
    if (this.done) return
    this.done = true
    this.sink.event(reason === undefined ? { type: 'error', error } : { type: 'error', error, reason })
  }

  private check(step: () => string | null): void {
    if (this.done) return
    // The recordings of some models begin with content.
    this.begin()
    const fault = step()
    if (fault !== null) this.malformed(fault)
  }
}

const MALFORMED_OUTPUT: WireError = {
  kind: 'upstream_failed',
  message: 'The model wrote a reply or a tool call that Bedrock could not read.',
}
