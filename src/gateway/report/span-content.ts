/**
 * Prompts and replies as attributes of spans, if `telemetry.capture_content` is on: JSON by the conventions
 * for generative AI, up to a maximum size. Images, files and audio appear without their data.
 */
import type { Attributes } from '@opentelemetry/api'
import type { ChatEvent, EventSink, FinishReason } from '../../formats/chat/event.js'
import { Grammar } from '../../formats/chat/grammar.js'
import type { ChatRequest, Message } from '../../formats/chat/request.js'
import type { UpstreamCodec } from '../../formats/dialect.js'
import { newFramer } from '../../formats/wire/aws/event-stream.js'
import { stringifyExact } from '../../formats/wire/json/exact-numbers.js'
import { parseReply } from '../../formats/wire/json/parse-body.js'
import { joinChunks } from '../streams/join-chunks.js'

/** Maximum number of text characters in one attribute. */
const MAX_CHARS = 65_536
/** Maximum number of reply bytes that are kept; events have more bytes than text. */
const MAX_BYTES = 524_288
const MAX_PARTS = 1_000

interface Part {
  readonly type: string
  content?: string
  readonly id?: string
  readonly name?: string
  arguments?: string
  readonly result?: string
}

/** Limits the total number of characters in one attribute. */
class CharacterBudget {
  private left = MAX_CHARS

  /** The beginning of the text that fits; a truncated text ends with `…`. */
  take(text: string): string {
    const { left } = this
    this.left = Math.max(0, left - text.length)
    return text.length <= left ? text : `${text.slice(0, left)}…`
  }

  get isSpent(): boolean {
    return this.left === 0
  }
}

/** The conversation in its order. If it does not fit, the oldest messages are left out. */
export function inputAttributes({ messages }: ChatRequest): Attributes {
  const budget = new CharacterBudget()
  const system: Part[] = []
  const history: object[] = []
  for (const message of [...messages].reverse()) {
    if (budget.isSpent || history.length + system.length >= MAX_PARTS) break
    if (message.role === 'system' || message.role === 'developer') {
      system.unshift(...partsOf(message, budget))
    } else history.unshift({ role: message.role, parts: partsOf(message, budget) })
  }
  return {
    'gen_ai.input.messages': stringifyExact(history),
    ...(system.length === 0 ? {} : { 'gen_ai.system_instructions': JSON.stringify(system) }),
  }
}

function partsOf(message: Message, budget: CharacterBudget): Part[] {
  const parts = message.parts.slice(0, MAX_PARTS).map((part): Part => {
    if (part.type === 'text') return { type: 'text', content: budget.take(part.text) }
    if (part.type === 'thinking') return { type: 'reasoning', content: budget.take(part.text) }
    return { type: part.type }
  })
  if (message.role === 'tool') {
    const result = parts.map(({ content = '' }) => content).join('')
    return [{ type: 'tool_call_response', id: message.callId, result }]
  }
  if (message.role !== 'assistant') return parts
  const calls = message.toolCalls.slice(0, MAX_PARTS).map(({ id, name, arguments: json }) => {
    return { type: 'tool_call', id, name, arguments: budget.take(json) }
  })
  return [...parts, ...calls]
}

/** Collects the bytes of one reply of an upstream. */
export class CapturedReply {
  private chunks: Buffer[] = []
  private bytes = 0

  take(chunk: Buffer): void {
    if (this.bytes >= MAX_BYTES) return
    this.bytes += chunk.length
    this.chunks.push(chunk)
  }

  /** The received part of the model's reply as attributes; empty if it has no content that can be decoded. */
  attributes(upstreamCodec: UpstreamCodec, request: ChatRequest): Attributes {
    const bytes = joinChunks(this.chunks)
    this.chunks = []
    const text = new ReplyText()
    const sink = new Grammar(text)
    const first = bytes.toString('latin1', 0, 64).trimStart()
    if (first.startsWith('{')) {
      const body = parseReply(bytes.toString('utf8'))
      if (body !== null) upstreamCodec.decodeReply(body, request, sink)
    } else {
      const decoder = upstreamCodec.newDecoder(request, sink)
      const framer = newFramer(upstreamCodec.framing, decoder)
      framer.write(bytes)
      while (framer.isPending) framer.more()
      decoder.end()
    }
    return text.attributes()
  }
}

/** Collects the text of a reply. */
class ReplyText implements EventSink {
  private readonly budget = new CharacterBudget()
  private readonly parts: Part[] = []
  private reason: FinishReason | null = null

  event(event: ChatEvent): void {
    switch (event.type) {
      case 'text-start':
      case 'refusal-start':
        this.open({ type: 'text', content: '' })
        return
      case 'thinking-start':
        this.open({ type: 'reasoning', content: '' })
        return
      case 'tool-start':
        this.open({ type: 'tool_call', id: event.id, name: event.name, arguments: '' })
        return
      case 'text-delta':
      case 'refusal-delta':
      case 'thinking-delta':
        this.add('content', event.text)
        return
      case 'tool-delta':
        this.add('arguments', event.json)
        return
      case 'finish':
        this.reason = event.reason
        return
      default:
    }
  }

  attributes(): Attributes {
    const { parts, reason } = this
    if (parts.length === 0) return {}
    const finish = reason === null ? {} : { finish_reason: finishReason(reason) }
    const message = { role: 'assistant', parts, ...finish }
    return { 'gen_ai.output.messages': JSON.stringify([message]) }
  }

  private open(part: Part): void {
    if (this.parts.length < MAX_PARTS) this.parts.push(part)
  }

  private add(member: 'content' | 'arguments', text: string): void {
    const part = this.parts.at(-1)
    if (part !== undefined && !this.budget.isSpent) {
      part[member] = (part[member] ?? '') + this.budget.take(text)
    }
  }
}

function finishReason(reason: FinishReason): string {
  switch (reason) {
    case 'tool-use':
      return 'tool_call'
    case 'filter':
      return 'content_filter'
    default:
      return reason
  }
}
