/**
 * Encodes canonical events as the events of a streamed response. The events must be in the order that
 * `formats/chat/grammar.ts` enforces. The output in the last event equals the items of the events before it.
 *
 * Source: OpenAI API reference, "Responses: streaming events", and recordings, read 2026-11-20.
 */
import type { WireError } from '../../../errors.js'
import type { ChatEvent, Citation, TokenLogprob } from '../../chat/event.js'
import type { ChatRequest } from '../../chat/request.js'
import { mergeUsage, type Usage } from '../../chat/usage.js'
import type { Seed, StreamEncoder } from '../../dialect.js'
import { quote } from '../../wire/json/write-json.js'
import { writeReasoningToken } from '../../wire/reasoning-token.js'
import { ORIGIN } from '../reasoning-state.js'
import { clientCallItem } from './client-tools.js'
import { withFieldNames } from './encode-error.js'
import { argumentsOf, stateToken, encodeCitation, encodeLogprobs } from './encode-reply.js'
import {
  callItem,
  imageItem,
  namedCall,
  reasoningItem,
  summaryPart,
  encodeStatus,
  ResponseObject,
  itemId,
  messageItem,
  refusalPart,
  textPart,
  type ItemPrefix,
} from './response-object.js'

type Finish = Extract<ChatEvent, { type: 'finish' }>
type ToolStart = Extract<ChatEvent, { type: 'tool-start' }>

/** The open call or reasoning item. */
interface OpenItem {
  readonly id: string
  readonly fragments: string[]
  /** The start of its delta events, up to the sequence number; null for an item without such events. */
  readonly deltaStart: string | null
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
    if (open.deltaStart !== null) this.output.putDelta(open.deltaStart, text)
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
    if (this.request.clientTools?.has(tool.name) === true) {
      // The item has the arguments as members of its own, so it begins when they are complete.
      this.open = { id: '', fragments: [], deltaStart: null, tool, redacted: undefined }
      return
    }
    this.beginCall(tool)
  }

  private beginCall(tool: ToolStart): void {
    const custom = tool.custom === true
    const id = this.output.id(custom ? 'ctc' : 'fc')
    const call = namedCall(this.request, { callId: tool.id, name: tool.name, json: '', custom })
    this.output.addItem(callItem(id, call, 'in_progress'))
    const type = custom ? 'response.custom_tool_call_input.delta' : 'response.function_call_arguments.delta'
    const deltaStart = this.output.deltaStart(type, this.output.itemPosition(id))
    this.open = { id, fragments: [], deltaStart, tool, redacted: undefined }
  }

  private appendArguments(json: string): void {
    const { open } = this
    if (json === '' || open === null) return
    open.fragments.push(json)
    if (open.deltaStart !== null) this.output.putDelta(open.deltaStart, json)
  }

  private endCall(signature: string | undefined): void {
    const tool = this.open?.tool ?? null
    if (this.open === null || tool === null) return
    if (this.open.deltaStart === null && this.endClientCall(tool, this.open.fragments.join(''), signature))
      return
    const { open } = this
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

  /** Writes the item of a tool that the client runs; false if the call must be one of a function. */
  private endClientCall(tool: ToolStart, json: string, signature: string | undefined): boolean {
    const item = clientCallItem(this.request, { callId: tool.id, name: tool.name, json })
    if (item === null) {
      this.beginCall(tool)
      this.appendArguments(json)
      return false
    }
    this.open = null
    const id = this.output.id(item.prefix)
    this.output.addItem(item.json(id, 'in_progress'))
    this.output.endItem(item.json(id, 'completed'))
    this.addState({ call: tool.id }, signature)
    return true
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
    const token = writeReasoningToken({ origin, thoughts: [{ signature }], of })
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

/**
 * Writes the events of one streamed response and keeps the output items for the last event, which repeats
 * them. Each event has the next `sequence_number`.
 */
class OutputWriter {
  private out = ''
  private sequence = 0
  private readonly responseId: string
  /** Complete items as JSON text, or as messages, which may still get citations. */
  private readonly items: (string | StreamedMessage)[] = []

  constructor(responseId: string) {
    this.responseId = responseId
  }

  /** The events since the last call. */
  take(): string {
    const { out } = this
    this.out = ''
    return out
  }

  /** Adds an event; `members` follow its type and number. */
  put(type: string, members: string): void {
    this.out += this.event(type, members)
  }

  /** An event as text. It takes the next sequence number and is not added to the output. */
  event(type: string, members: string): string {
    const number = this.sequence++
    return `event: ${type}\ndata: {"type":"${type}","sequence_number":${number},${members}}\n\n`
  }

  /** The start of the delta events of one text, up to the sequence number. */
  deltaStart(type: string, members: string): string {
    return `event: ${type}\ndata: {"type":"${type}",${members},"sequence_number":`
  }

  /** Adds a delta event; `end` follows its text. */
  putDelta(start: string, text: string, end = '}\n\n'): void {
    this.out += `${start}${this.sequence++},"delta":${quote(text)}${end}`
  }

  /** The index of the next item in the output. */
  get index(): number {
    return this.items.length
  }

  /** The id of the next item. */
  id(prefix: ItemPrefix): string {
    return itemId(prefix, this.responseId, this.items.length)
  }

  /** The complete items as JSON texts. */
  texts(): string[] {
    return this.items.map((item) => (typeof item === 'string' ? item : item.json()))
  }

  /** The next item begins. */
  addItem(json: string): void {
    this.put('response.output_item.added', this.itemMember(json))
  }

  /**
   * The next item is complete. `message` is kept in place of its text, so that later citations are included.
   */
  endItem(json: string, message?: StreamedMessage): void {
    this.put('response.output_item.done', this.itemMember(json))
    this.items.push(message ?? json)
  }

  /** An item that is complete at once. */
  wholeItem(json: string): void {
    this.addItem(json)
    this.endItem(json)
  }

  /** The members that identify the next item in its events. */
  itemPosition(id: string): string {
    return `"item_id":"${id}","output_index":${this.items.length}`
  }

  private itemMember(json: string): string {
    return `"output_index":${this.items.length},"item":${json}`
  }
}

const NO_LOGPROBS = ',"logprobs":[]}\n\n'

/**
 * Writes the events of messages in one streamed response. A message stays open while texts and refusals
 * follow each other, because each is a part of it.
 */
class MessageWriter {
  private readonly output: OutputWriter
  private message: StreamedMessage | null = null
  private part: MessagePart | null = null
  /** Start and end of the delta events of the open part. */
  private deltaStart = ''
  private deltaEnd = ''
  /** Texts by the index of their block, for citations. */
  private readonly texts = new Map<number, { message: StreamedMessage; part: MessagePart }>()

  constructor(output: OutputWriter) {
    this.output = output
  }

  /** Begins a part, and the message if none is open. `index` is that of the block. */
  startPart(kind: 'text' | 'refusal', index: number): void {
    this.endPart()
    if (this.message === null) {
      this.message = new StreamedMessage(this.output.id('msg'), this.output.index)
      this.output.addItem(this.message.json())
    }
    const { message } = this
    const part = new MessagePart(kind, message.parts.length)
    message.parts.push(part)
    this.part = part
    if (kind === 'text') this.texts.set(index, { message, part })
    const position = positionOf(message, part)
    this.output.put('response.content_part.added', `${position},"part":${part.json()}`)
    const type = kind === 'text' ? 'response.output_text.delta' : 'response.refusal.delta'
    this.deltaStart = this.output.deltaStart(type, position)
    this.deltaEnd = kind === 'text' ? NO_LOGPROBS : '}\n\n'
  }

  /** Adds text to the open part. Empty texts are not sent. */
  append(text: string): void {
    if (text === '' || this.part === null) return
    this.part.append(text)
    this.output.putDelta(this.deltaStart, text, this.deltaEnd)
    if (this.part.tokens.length > 0) this.deltaEnd = NO_LOGPROBS
  }

  /** The tokens are sent with the next text. */
  addLogprobs(tokens: readonly TokenLogprob[]): void {
    if (this.part === null) return
    this.part.tokens.push(...tokens)
    this.deltaEnd = `,"logprobs":${encodeLogprobs(tokens)}}\n\n`
  }

  /** Adds a citation of a text, which may have ended. */
  cite(index: number, citation: Citation): void {
    const annotation = encodeCitation(citation)
    const text = this.texts.get(index)
    if (annotation === null || text === undefined) return
    const { message, part } = text
    const position = `${positionOf(message, part)},"annotation_index":${part.annotations.length}`
    part.annotations.push(annotation)
    const members = `${position},"annotation":${annotation}`
    this.output.put('response.output_text.annotation.added', members)
  }

  /** Ends the open message, if there is one. */
  end(status: string): void {
    this.endPart()
    const { message } = this
    if (message === null) return
    this.message = null
    message.status = status
    this.output.endItem(message.json(), message)
  }

  private endPart(): void {
    const { message, part } = this
    if (message === null || part === null) return
    this.part = null
    const position = positionOf(message, part)
    const text = quote(part.text)
    if (part.kind === 'refusal') {
      this.output.put('response.refusal.done', `${position},"refusal":${text}`)
    } else {
      const members = `${position},"logprobs":${part.logprobs()},"text":${text}`
      this.output.put('response.output_text.done', members)
    }
    this.output.put('response.content_part.done', `${position},"part":${part.json()}`)
  }
}

function positionOf({ id, index }: StreamedMessage, part: MessagePart): string {
  return `"item_id":"${id}","output_index":${index},"content_index":${part.index}`
}

/** A text or a refusal of the message. */
class MessagePart {
  readonly kind: 'text' | 'refusal'
  /** The index of the part in the message. */
  readonly index: number
  /** The citations so far, as JSON texts. */
  readonly annotations: string[] = []
  readonly tokens: TokenLogprob[] = []
  private readonly fragments: string[] = []

  constructor(kind: 'text' | 'refusal', index: number) {
    this.kind = kind
    this.index = index
  }

  append(text: string): void {
    this.fragments.push(text)
  }

  get text(): string {
    if (this.fragments.length > 1) {
      this.fragments.splice(0, this.fragments.length, this.fragments.join(''))
    }
    return this.fragments[0] ?? ''
  }

  /** The part as JSON text. */
  json(): string {
    if (this.kind === 'refusal') return refusalPart(this.text)
    return textPart(this.text, `[${this.annotations.join(',')}]`, this.logprobs())
  }

  /** The tokens as JSON text. */
  logprobs(): string {
    return this.tokens.length === 0 ? '[]' : encodeLogprobs(this.tokens)
  }
}

class StreamedMessage {
  readonly id: string
  /** The index of the message in the output. */
  readonly index: number
  readonly parts: MessagePart[] = []
  status = 'in_progress'

  constructor(id: string, index: number) {
    this.id = id
    this.index = index
  }

  /** The message as JSON text. */
  json(): string {
    return messageItem(
      this.id,
      this.parts.map((part) => part.json()),
      this.status,
    )
  }
}
