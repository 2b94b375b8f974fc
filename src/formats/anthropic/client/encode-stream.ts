/**
 * Encodes canonical events, in the order that the grammar guarantees, as the events of a Messages stream.
 *
 * A text block stays open until the next block starts, because some upstreams send its sources after its end.
 * An empty block is never opened: the API rejects empty text in the history that a client sends back.
 *
 * Source: Claude API reference, "Streaming messages", and recorded streams, read 2026-11-22.
 */
import type { ChatEvent, Citation } from '../../chat/event.js'
import { type JsonObject, isObject, stringOf } from '../../../base/json.js'
import type { ChatRequest } from '../../chat/request.js'
import { mergeUsage, type Usage } from '../../chat/usage.js'
import { stringifyExact } from '../../wire/json/exact-numbers.js'
import { TextFrames } from '../../wire/frames/text-frames.js'
import type { Seed, StreamEncoder } from '../../dialect.js'
import { PROVIDER } from '../constants.js'
import { encodeStreamError } from './encode-error.js'
import {
  encodeCitation,
  encodeState,
  encodeToolInput,
  messageUsage,
  usageMembers,
  stopMembers,
} from './encode-reply.js'

/** Written while the stream is silent; clients ignore it. */
export const PING = 'event: ping\ndata: {"type":"ping"}\n\n'

/** The end of a delta frame, after its text. */
const AFTER = '"}}\n\n'

/** Kinds of deltas that carry text, and the member with the text. */
const MEMBERS = { text: 'text', thinking: 'thinking', input_json: 'partial_json' } as const

/** Encodes one stream. */
export class MessageEncoder implements StreamEncoder {
  private readonly frames = new TextFrames()
  private readonly seed: Seed
  private hasStarted = false
  private hasPinged = false
  private usage: Usage = {}
  /** Index of the next block. */
  private next = 0
  /** The block that is open on the wire; null if none is. */
  private open: keyof typeof MEMBERS | null = null
  /** The canonical index of the text block that is open on the wire. */
  private textIndex = -1
  private redacted: string | undefined
  private hasTool = false
  /** True once the open call has sent arguments. */
  private hasInput = false
  /** Input of the open call of a custom (free text) tool, which is sent whole; null for other calls. */
  private custom: string | null = null
  private refusal = ''
  /** Whether to omit the text of other models' thoughts; Anthropic upstreams omit it themselves. */
  private readonly hidesThoughts: boolean

  constructor({ hidesThoughts: hidesThoughts }: ChatRequest, seed: Seed) {
    this.seed = seed
    this.hidesThoughts = hidesThoughts === true && seed.origin !== PROVIDER
  }

  take(): string {
    return this.frames.take()
  }

  event(event: ChatEvent): void {
    switch (event.type) {
      case 'start':
        return
      case 'usage':
        this.usage = mergeUsage(this.usage, event.usage)
        return
      case 'text-delta':
        return this.text(event.index, event.text)
      case 'thinking-start':
        this.close()
        this.redacted = event.redacted
        return
      case 'thinking-delta':
        return this.thinking(event.text)
      case 'thinking-end':
        return this.thinkingEnd(event.signature)
      case 'tool-start':
        return this.toolStart(event)
      case 'tool-delta':
        return this.toolDelta(event.json)
      case 'tool-end':
        return this.toolEnd()
      case 'citation':
        return this.citation(event.index, event.citation)
      case 'opaque':
        if (event.provider === PROVIDER) this.opaque(event.block)
        return
      case 'refusal-delta':
        this.refusal += event.text
        return
      case 'finish':
        return this.finish(event)
      case 'error':
        return this.frames.put(encodeStreamError(event.error))
      case 'text-start':
      case 'text-end':
      case 'refusal-start':
      case 'refusal-end':
      case 'logprobs':
      case 'image':
        return
      default:
        event satisfies never
    }
  }

  private text(index: number, text: string): void {
    if (text === '') return
    if (this.textIndex !== index) {
      this.openBlock('text', '{"type":"text","text":""}')
      this.textIndex = index
    }
    this.frames.add(text)
  }

  private thinking(text: string): void {
    if (text === '' || this.hidesThoughts) return
    if (this.open !== 'thinking') this.openThinking()
    this.frames.add(text)
  }

  private openThinking(): void {
    this.openBlock('thinking', '{"type":"thinking","thinking":"","signature":""}')
  }

  /**
   * The signature lets the client return the thinking to its provider. Without a signature and text it is
   * omitted.
   */
  private thinkingEnd(signature: string | undefined): void {
    const { redacted, seed } = this
    if (redacted !== undefined && this.open === null) {
      const data = encodeState(seed.origin, { redacted })
      this.whole(`{"type":"redacted_thinking","data":${JSON.stringify(data)}}`)
      return
    }
    if (this.open === null) {
      if (signature === undefined) return
      this.openThinking()
    }
    const state = JSON.stringify(encodeState(seed.origin, { signature, redacted }))
    this.frames.put(this.deltaOf(`{"type":"signature_delta","signature":${state}}`))
    this.close()
  }

  private toolStart(event: Extract<ChatEvent, { type: 'tool-start' }>): void {
    const id = JSON.stringify(event.id)
    const name = JSON.stringify(event.name)
    this.hasTool = true
    this.hasInput = false
    this.custom = event.custom === true ? '' : null
    const block = `{"type":"tool_use","id":${id},"name":${name},"input":{},"caller":{"type":"direct"}}`
    this.openBlock('input_json', block)
  }

  private toolDelta(json: string): void {
    if (this.custom !== null) this.custom += json
    else {
      this.hasInput ||= json.trim() !== ''
      this.frames.add(json)
    }
  }

  /** Sends `{}` for a call without arguments: clients parse the joined deltas. */
  private toolEnd(): void {
    if (this.custom !== null) this.frames.add(encodeToolInput(this.custom, true))
    else if (!this.hasInput) this.frames.add('{}')
    this.close()
  }

  /** Omits a citation of a block that has already ended on the wire. */
  private citation(index: number, citation: Citation): void {
    const out = index === this.textIndex ? encodeCitation(citation) : null
    if (out === null) return
    this.frames.put(this.deltaOf(`{"type":"citations_delta","citation":${JSON.stringify(out)}}`))
  }

  /** Streams the input of calls of Anthropic's server tools; sends every other block whole. */
  private opaque(block: JsonObject): void {
    const { input } = block
    if (!isObject(input) || !/_tool_use$/.test(stringOf(block.type) ?? '')) {
      return this.whole(stringifyExact(block))
    }
    this.openBlock('input_json', stringifyExact({ ...block, input: {} }))
    this.frames.add(stringifyExact(input))
    this.close()
  }

  private whole(block: string): void {
    this.close()
    this.start(block)
    this.frames.put(eventOf('content_block_stop', `{"type":"content_block_stop","index":${this.next}}`))
    this.next += 1
  }

  /** Opens a block whose content is sent in deltas. */
  private openBlock(kind: keyof typeof MEMBERS, block: string): void {
    this.close()
    this.start(block)
    this.open = kind
    const before = `{"type":"content_block_delta","index":${this.next},"delta":{"type":"${kind}_delta","${MEMBERS[kind]}":"`
    this.frames.around(`event: content_block_delta\ndata: ${before}`, AFTER)
  }

  private start(block: string): void {
    this.startMessage()
    this.frames.put(
      eventOf(
        'content_block_start',
        `{"type":"content_block_start","index":${this.next},"content_block":${block}}`,
      ),
    )
    if (!this.hasPinged) this.ping()
  }

  /** Ends the block that is open on the wire. */
  private close(): void {
    if (this.open === null) return
    this.open = null
    this.textIndex = -1
    this.frames.put(eventOf('content_block_stop', `{"type":"content_block_stop","index":${this.next}}`))
    this.next += 1
  }

  /** Sent with the first block, so that it includes the usage of upstreams that report it at the start. */
  private startMessage(): void {
    if (this.hasStarted) return
    this.hasStarted = true
    const { id, model } = this.seed
    this.frames.put(
      eventOf(
        'message_start',
        `{"type":"message_start","message":{"id":${JSON.stringify(id)},"type":"message","role":"assistant",` +
          `"model":${JSON.stringify(model)},"content":[],"stop_reason":null,"stop_sequence":null,` +
          `"stop_details":null,"usage":${messageUsage(this.usage, undefined)}}}`,
      ),
    )
  }

  private ping(): void {
    this.hasPinged = true
    this.frames.put(PING)
  }

  private deltaOf(delta: string): string {
    return eventOf(
      'content_block_delta',
      `{"type":"content_block_delta","index":${this.next},"delta":${delta}}`,
    )
  }

  private finish(event: Extract<ChatEvent, { type: 'finish' }>): void {
    this.startMessage()
    this.close()
    if (!this.hasPinged) this.ping()
    const { hasTool, seed } = this
    const refusal = event.blocked ?? this.refusal
    const stop = stopMembers({ ...event, origin: seed.origin, hasTool, refusal })
    this.frames.put(
      eventOf(
        'message_delta',
        `{"type":"message_delta","delta":{${stop}},"usage":{${usageMembers(this.usage)}}}`,
      ),
    )
    this.frames.put(eventOf('message_stop', '{"type":"message_stop"}'))
  }
}

function eventOf(name: string, data: string): string {
  return `event: ${name}\ndata: ${data}\n\n`
}
