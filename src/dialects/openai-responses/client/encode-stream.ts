/**
 * Encodes canonical events as the events of a streamed response. The events must be in the order that
 * `chat/grammar.ts` enforces. The output in the last event equals the items of the events before it.
 *
 * Source: OpenAI API reference, "Responses: streaming events", and recordings, read 2026-11-20.
 */
import type { ChatEvent } from '../../../chat/event.js'
import type { ChatRequest } from '../../../chat/request.js'
import { mergeUsage, type Usage } from '../../../chat/usage.js'
import type { WireError } from '../../../errors.js'
import { quote } from '../../../wire/json/quote.js'
import { writeReasoningToken } from '../../../wire/reasoning-token.js'
import type { Seed, StreamEncoder } from '../../dialect.js'
import { ORIGIN } from '../shared/reasoning-state.js'
import { withFieldNames } from './encode-error.js'
import { argumentsOf, stateToken } from './encode-reply.js'
import {
  callItem,
  imageItem,
  namedCall,
  reasoningItem,
  summaryPart,
} from './reply/encode-content.js'
import { encodeStatus } from './reply/map-stop-reason.js'
import { MessageWriter } from './reply/write-message-events.js'
import { OutputWriter } from './reply/write-numbered-events.js'
import { ResponseObject } from './reply/response-object.js'

type Finish = Extract<ChatEvent, { type: 'finish' }>
type ToolStart = Extract<ChatEvent, { type: 'tool-start' }>

/** The open call or reasoning item. */
interface OpenItem {
  readonly id: string
  readonly fragments: string[]
  /** The start of its delta events, up to the sequence number. */
  readonly deltaStart: string
  readonly tool: ToolStart | null
  readonly redacted: string | undefined
}

/** Encodes one stream. */
export class EventEncoder implements StreamEncoder {
  /** The response object of the last event as JSON text; null before it. */
  response: string | null = null
  private readonly request: ChatRequest
  private readonly seed: Seed
  private readonly object: ResponseObject
  private readonly output: OutputWriter
  private readonly messages: MessageWriter
  private open: OpenItem | null = null
  private usage: Usage = {}

  constructor(request: ChatRequest, seed: Seed) {
    this.request = request
    this.seed = seed
    this.object = new ResponseObject(request, seed)
    this.output = new OutputWriter(seed.id)
    this.messages = new MessageWriter(this.output)
  }

  take(): string {
    return this.output.take()
  }

  event(event: ChatEvent): void {
    switch (event.type) {
      case 'start':
        this.output.put('response.created', `"response":${this.object.inProgress()}`)
        this.output.put('response.in_progress', `"response":${this.object.inProgress()}`)
        return
      case 'text-start':
        return this.messages.startPart('text', event.index)
      case 'refusal-start':
        return this.messages.startPart('refusal', event.index)
      case 'text-delta':
      case 'refusal-delta':
        return this.messages.append(event.text)
      case 'text-end':
        return this.addState('text', event.signature)
      case 'refusal-end':
        return
      case 'thinking-start':
        return this.startThinking(event.redacted)
      case 'thinking-delta':
        return this.appendThinking(event.text)
      case 'thinking-end':
        return this.endThinking(event.signature)
      case 'tool-start':
        return this.startCall(event)
      case 'tool-delta':
        return this.appendArguments(event.json)
      case 'tool-end':
        return this.endCall(event.signature)
      case 'citation':
        return this.messages.cite(event.index, event.citation)
      case 'logprobs':
        return this.messages.addLogprobs(event.tokens)
      case 'image':
        return this.addImage(event.url)
      case 'opaque':
        if (event.provider === ORIGIN) this.wholeItem(JSON.stringify(event.block))
        return
      case 'usage':
        this.usage = mergeUsage(this.usage, event.usage)
        return
      case 'finish':
        return this.finish(event)
      case 'error':
        return this.output.put('response.failed', this.failedMembers(event.error))
      default:
        event satisfies never
    }
  }

  failed(error: WireError): string {
    return this.output.event('response.failed', this.failedMembers(error))
  }

  private failedMembers(error: WireError): string {
    const response = this.object.failed(this.output.texts(), this.usage, withFieldNames(error))
    return `"response":${response}`
  }

  private startThinking(redacted: string | undefined): void {
    this.messages.end('completed')
    const id = this.output.id('rs')
    this.output.addItem(reasoningItem(id, '', undefined))
    const type = 'response.reasoning_summary_text.delta'
    const deltaStart = this.output.deltaStart(type, this.summaryPosition(id))
    this.open = { id, fragments: [], deltaStart, tool: null, redacted }
  }

  private appendThinking(text: string): void {
    const { open } = this
    if (text === '' || open === null) return
    if (open.fragments.length === 0) {
      const members = `${this.summaryPosition(open.id)},"part":${summaryPart('')}`
      this.output.put('response.reasoning_summary_part.added', members)
    }
    open.fragments.push(text)
    this.output.putDelta(open.deltaStart, text)
  }

  private endThinking(signature: string | undefined): void {
    const { open } = this
    if (open === null) return
    this.open = null
    const text = open.fragments.join('')
    if (text !== '') {
      const position = this.summaryPosition(open.id)
      const done = `${position},"text":${quote(text)}`
      this.output.put('response.reasoning_summary_text.done', done)
      const part = `${position},"part":${summaryPart(text)}`
      this.output.put('response.reasoning_summary_part.done', part)
    }
    const state = { signature, redacted: open.redacted }
    const token = stateToken(this.request, this.seed.origin, state)
    this.output.endItem(reasoningItem(open.id, text, token))
  }

  private startCall(tool: ToolStart): void {
    this.messages.end('completed')
    const custom = tool.custom === true
    const id = this.output.id(custom ? 'ctc' : 'fc')
    const call = namedCall(this.request, { callId: tool.id, name: tool.name, json: '', custom })
    this.output.addItem(callItem(id, call, 'in_progress'))
    const type = custom
      ? 'response.custom_tool_call_input.delta'
      : 'response.function_call_arguments.delta'
    const deltaStart = this.output.deltaStart(type, this.output.itemPosition(id))
    this.open = { id, fragments: [], deltaStart, tool, redacted: undefined }
  }

  private appendArguments(json: string): void {
    const { open } = this
    if (json === '' || open === null) return
    open.fragments.push(json)
    this.output.putDelta(open.deltaStart, json)
  }

  private endCall(signature: string | undefined): void {
    const { open } = this
    const tool = open?.tool ?? null
    if (open === null || tool === null) return
    const custom = tool.custom === true
    const text = open.fragments.join('')
    // Arguments of white space alone count as empty: `{}` is sent after them, which is valid JSON.
    if (!custom && text.trim() === '') this.appendArguments('{}')
    const json = custom ? text : argumentsOf(text)
    this.open = null
    const [type, key] = custom
      ? ['response.custom_tool_call_input.done', 'input']
      : ['response.function_call_arguments.done', 'arguments']
    const call = namedCall(this.request, { callId: tool.id, name: tool.name, json, custom })
    const name = custom ? '' : `,"name":${quote(call.name)}`
    this.output.put(type, `${this.output.itemPosition(open.id)},"${key}":${quote(json)}${name}`)
    this.output.endItem(callItem(open.id, call, 'completed'))
    this.addState({ call: tool.id }, signature)
  }

  private addImage(url: string): void {
    this.messages.end('completed')
    const item = imageItem(this.output.id('ig'), url)
    if (item !== null) this.wholeItem(item)
  }

  /** Adds the signature of a call or a text, if the client requests it, as a reasoning item of its own. */
  private addState(of: 'text' | { call: string }, signature: string | undefined): void {
    const { origin } = this.seed
    if (signature === undefined || origin === undefined) return
    if (this.request.includeReasoningState !== true) return
    this.messages.end('completed')
    const token = writeReasoningToken({ origin, signature, of })
    this.wholeItem(reasoningItem(this.output.id('rs'), '', token))
  }

  private wholeItem(json: string): void {
    this.messages.end('completed')
    this.output.wholeItem(json)
  }

  private finish({ reason, serviceTier }: Finish): void {
    const status = encodeStatus(reason)
    this.messages.end(status)
    const ending = { reason, usage: this.usage, serviceTier }
    this.response = this.object.ended(this.output.texts(), ending)
    this.output.put(`response.${status}`, `"response":${this.response}`)
  }

  private summaryPosition(id: string): string {
    return `${this.output.itemPosition(id)},"summary_index":0`
  }
}
