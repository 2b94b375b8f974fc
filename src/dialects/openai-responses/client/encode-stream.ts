/**
 * Writes canonical events as the events of a streamed response.
 * Assumes order: the grammar stands before it. Each event has the next `sequence_number`, and the output of the last
 * event is what the events before it told. A message stays open while texts follow each other, since each is a part of it.
 *
 * Source: OpenAI API reference, "Responses: streaming events", and recordings, read 2026-11-20.
 */
import type { ChatEvent } from '../../../chat/event.js'
import type { TokenLogprob } from '../../../chat/reply/logprobs.js'
import type { ChatRequest } from '../../../chat/request.js'
import { mergeUsage, type Usage } from '../../../chat/usage.js'
import type { WireError } from '../../../errors.js'
import { quote } from '../../../wire/json/quote.js'
import { writeReasoningToken } from '../../../wire/reasoning-token.js'
import type { Seed, StreamEncoder } from '../../dialect.js'
import { ORIGIN } from '../shared/reasoning-state.js'
import { spelled } from './encode-error.js'
import {
  annotationOf,
  callItem,
  imageItem,
  itemId,
  logprobsOut,
  namedCall,
  reasoningItem,
  summaryPart,
  type ItemPrefix,
} from './reply/encode-content.js'
import { argumentsOf, stateToken } from './encode-reply.js'
import { MessagePart, StreamedMessage } from './reply/streamed-message.js'
import { ResponseObject, statusOf } from './reply/response-object.js'

type Finish = Extract<ChatEvent, { type: 'finish' }>
type ToolStart = Extract<ChatEvent, { type: 'tool-start' }>

/** A call or a thought that is being told. */
interface Open {
  readonly id: string
  readonly pieces: string[]
  /** What begins each of its events with a piece, up to the sequence number. */
  readonly delta: string
  readonly tool: ToolStart | null
  readonly redacted: string | undefined
}

/** Writes one stream. */
export class EventEncoder implements StreamEncoder {
  /** The response object of the last event, as JSON text; null before it. */
  response: string | null = null
  private out = ''
  private sequence = 0
  private readonly request: ChatRequest
  private readonly seed: Seed
  private readonly object: ResponseObject
  /** The items that are complete, as JSON texts or as messages, which may still be cited from. */
  private readonly items: (string | StreamedMessage)[] = []
  private message: StreamedMessage | null = null
  /** The part that is being told, and what begins each of its events with a piece. */
  private part: MessagePart | null = null
  private delta = ''
  private tokens = ''
  private open: Open | null = null
  /** Texts by the index of their block, for citations. */
  private readonly texts = new Map<number, { message: StreamedMessage; part: MessagePart }>()
  private usage: Usage = {}

  constructor(request: ChatRequest, seed: Seed) {
    this.request = request
    this.seed = seed
    this.object = new ResponseObject(request, seed)
  }

  take(): string {
    const { out } = this
    this.out = ''
    return out
  }

  event(event: ChatEvent): void {
    switch (event.type) {
      case 'start':
        this.put('response.created', `"response":${this.object.begun()}`)
        this.put('response.in_progress', `"response":${this.object.begun()}`)
        return
      case 'text-start':
        return this.startPart('text', event.index)
      case 'refusal-start':
        return this.startPart('refusal', event.index)
      case 'text-delta':
      case 'refusal-delta':
        return this.say(event.text)
      case 'text-end':
        return this.endText(event.signature)
      case 'refusal-end':
        return
      case 'thinking-start':
        return this.startThinking(event.redacted)
      case 'thinking-delta':
        return this.think(event.text)
      case 'thinking-end':
        return this.endThinking(event.signature)
      case 'tool-start':
        return this.startCall(event)
      case 'tool-delta':
        return this.callOn(event.json)
      case 'tool-end':
        return this.endCall(event.signature)
      case 'citation':
        return this.cite(event)
      case 'logprobs':
        return this.weigh(event.tokens)
      case 'image':
        return this.show(event.url)
      case 'opaque':
        if (event.provider === ORIGIN) this.whole(JSON.stringify(event.block))
        return
      case 'usage':
        this.usage = mergeUsage(this.usage, event.usage)
        return
      case 'finish':
        return this.finish(event)
      case 'error':
        this.out += this.failed(event.error)
        return
      default:
        event satisfies never
    }
  }

  failed(error: WireError): string {
    const before = this.out.length
    const response = this.object.failed(this.output(), this.usage, spelled(error))
    this.put('response.failed', `"response":${response}`)
    const event = this.out.slice(before)
    this.out = this.out.slice(0, before)
    return event
  }

  /** An event; `members` is what it has beside its type and number. */
  private put(type: string, members: string): void {
    const number = this.sequence++
    this.out += `event: ${type}\ndata: {"type":"${type}","sequence_number":${number},${members}}\n\n`
  }

  private id(prefix: ItemPrefix): string {
    return itemId(prefix, this.seed.id, this.items.length)
  }

  private output(): string[] {
    return this.items.map((item) => (typeof item === 'string' ? item : item.json()))
  }

  private startPart(kind: 'text' | 'refusal', index: number): void {
    this.endPart()
    if (this.message === null) {
      this.message = new StreamedMessage(this.id('msg'), this.items.length)
      this.put('response.output_item.added', this.item(this.message.json()))
    }
    const { message } = this
    const part = new MessagePart(kind, message.parts.length)
    message.parts.push(part)
    this.part = part
    if (kind === 'text') this.texts.set(index, { message, part })
    this.put('response.content_part.added', `${placeOf(message, part)},"part":${part.json()}`)
    const type = kind === 'text' ? 'response.output_text.delta' : 'response.refusal.delta'
    this.delta = `event: ${type}\ndata: {"type":"${type}",${placeOf(message, part)},"sequence_number":`
    this.tokens = kind === 'text' ? ',"logprobs":[]}\n\n' : '}\n\n'
  }

  /** Empty strings say nothing and are not sent. */
  private say(text: string): void {
    if (text === '' || this.part === null) return
    this.part.say(text)
    this.out += `${this.delta}${this.sequence++},"delta":${quote(text)}${this.tokens}`
    if (this.part.tokens.length > 0) this.tokens = ',"logprobs":[]}\n\n'
  }

  /** The tokens go out with the text that comes next. */
  private weigh(tokens: readonly TokenLogprob[]): void {
    if (this.part === null) return
    this.part.tokens.push(...tokens)
    this.tokens = `,"logprobs":${logprobsOut(tokens)}}\n\n`
  }

  private cite({ index, citation }: Extract<ChatEvent, { type: 'citation' }>): void {
    const note = annotationOf(citation)
    const text = this.texts.get(index)
    if (note === null || text === undefined) return
    const { message, part } = text
    const at = `${placeOf(message, part)},"annotation_index":${part.notes.length}`
    part.notes.push(note)
    this.put('response.output_text.annotation.added', `${at},"annotation":${note}`)
  }

  private endText(signature: string | undefined): void {
    const { origin } = this.seed
    if (signature === undefined || origin === undefined) return
    if (this.request.includeReasoningState !== true) return
    this.endMessage('completed')
    this.carry(writeReasoningToken({ origin, signature, of: 'text' }))
  }

  private endPart(): void {
    const { message, part } = this
    if (message === null || part === null) return
    this.part = null
    const place = placeOf(message, part)
    const said = quote(part.text)
    if (part.kind === 'refusal') this.put('response.refusal.done', `${place},"refusal":${said}`)
    else {
      const members = `${place},"logprobs":${part.logprobs()},"text":${said}`
      this.put('response.output_text.done', members)
    }
    this.put('response.content_part.done', `${place},"part":${part.json()}`)
  }

  private endMessage(status: string): void {
    this.endPart()
    const { message } = this
    if (message === null) return
    this.message = null
    message.status = status
    this.put('response.output_item.done', this.item(message.json()))
    this.items.push(message)
  }

  private startThinking(redacted: string | undefined): void {
    this.endMessage('completed')
    const id = this.id('rs')
    this.put('response.output_item.added', this.item(reasoningItem(id, '', undefined)))
    const type = 'response.reasoning_summary_text.delta'
    const delta = `event: ${type}\ndata: {"type":"${type}",${this.summaryPlace(id)},"sequence_number":`
    this.open = { id, pieces: [], delta, tool: null, redacted }
  }

  private think(text: string): void {
    const { open } = this
    if (text === '' || open === null) return
    if (open.pieces.length === 0) {
      const members = `${this.summaryPlace(open.id)},"part":${summaryPart('')}`
      this.put('response.reasoning_summary_part.added', members)
    }
    open.pieces.push(text)
    this.out += `${open.delta}${this.sequence++},"delta":${quote(text)}}\n\n`
  }

  private endThinking(signature: string | undefined): void {
    const { open } = this
    if (open === null) return
    this.open = null
    const said = open.pieces.join('')
    if (said !== '') {
      const place = this.summaryPlace(open.id)
      this.put('response.reasoning_summary_text.done', `${place},"text":${quote(said)}`)
      this.put('response.reasoning_summary_part.done', `${place},"part":${summaryPart(said)}`)
    }
    const state = { signature, redacted: open.redacted }
    const token = stateToken(this.request, this.seed.origin, state)
    this.done(reasoningItem(open.id, said, token))
  }

  private startCall(tool: ToolStart): void {
    this.endMessage('completed')
    const custom = tool.custom === true
    const id = this.id(custom ? 'ctc' : 'fc')
    const call = namedCall(this.request, { callId: tool.id, name: tool.name, json: '', custom })
    this.put('response.output_item.added', this.item(callItem(id, call, 'in_progress')))
    const type = custom
      ? 'response.custom_tool_call_input.delta'
      : 'response.function_call_arguments.delta'
    const delta = `event: ${type}\ndata: {"type":"${type}",${this.itemPlace(id)},"sequence_number":`
    this.open = { id, pieces: [], delta, tool, redacted: undefined }
  }

  private callOn(json: string): void {
    const { open } = this
    if (json === '' || open === null) return
    open.pieces.push(json)
    this.out += `${open.delta}${this.sequence++},"delta":${quote(json)}}\n\n`
  }

  private endCall(signature: string | undefined): void {
    const { open } = this
    const tool = open?.tool ?? null
    if (open === null || tool === null) return
    const custom = tool.custom === true
    const said = open.pieces.join('')
    // White space is no argument; `{}` after it still makes valid JSON.
    if (!custom && said.trim() === '') this.callOn('{}')
    const json = custom ? said : argumentsOf(said)
    this.open = null
    const [type, key] = custom
      ? ['response.custom_tool_call_input.done', 'input']
      : ['response.function_call_arguments.done', 'arguments']
    const call = namedCall(this.request, { callId: tool.id, name: tool.name, json, custom })
    const name = custom ? '' : `,"name":${quote(call.name)}`
    this.put(type, `${this.itemPlace(open.id)},"${key}":${quote(json)}${name}`)
    this.done(callItem(open.id, call, 'completed'))
    const { origin } = this.seed
    if (signature === undefined || origin === undefined) return
    if (this.request.includeReasoningState !== true) return
    this.carry(writeReasoningToken({ origin, signature, of: { call: tool.id } }))
  }

  private show(url: string): void {
    this.endMessage('completed')
    const item = imageItem(this.id('ig'), url)
    if (item !== null) this.whole(item)
  }

  /** The state of a call or of a text is an item of its own. */
  private carry(token: string): void {
    this.whole(reasoningItem(this.id('rs'), '', token))
  }

  /** An item that comes all at once. */
  private whole(item: string): void {
    this.endMessage('completed')
    this.put('response.output_item.added', this.item(item))
    this.done(item)
  }

  private done(item: string): void {
    this.put('response.output_item.done', this.item(item))
    this.items.push(item)
  }

  private finish({ reason, serviceTier }: Finish): void {
    const status = statusOf(reason)
    this.endMessage(status)
    this.response = this.object.ended(this.output(), { reason, usage: this.usage, serviceTier })
    this.put(`response.${status}`, `"response":${this.response}`)
  }

  private item(json: string): string {
    return `"output_index":${this.items.length},"item":${json}`
  }

  private itemPlace(id: string): string {
    return `"item_id":"${id}","output_index":${this.items.length}`
  }

  private summaryPlace(id: string): string {
    return `${this.itemPlace(id)},"summary_index":0`
  }
}

function placeOf({ id, place }: StreamedMessage, part: MessagePart): string {
  return `"item_id":"${id}","output_index":${place},"content_index":${part.place}`
}
