/**
 * Encodes canonical events, in the order that the grammar guarantees, as the server-sent events of a Gemini
 * stream. Calls are held until they are complete. `gateway/streams/sse-or-json-array.ts` converts the events
 * to the JSON array form.
 */
import type { ChatEvent } from '../../chat/event.js'
import type { ChatRequest } from '../../chat/request.js'
import { mergeUsage, type Usage } from '../../chat/usage.js'
import { isPlain, quote } from '../../wire/json/write-json.js'
import type { ChoicePosition, Seed, StreamEncoder } from '../../dialect.js'
import { encodeStreamError } from './encode-error.js'
import { Sources, PartWriter } from './encode-content.js'
import { encodeLogprobs, encodeUsage, encodeBlockReason, encodeFinishReason } from './encode-reply.js'

/** The position of the only reply to a request. */
const ALONE: ChoicePosition = { index: 0, isLast: true }

/** The call that is being received. */
interface OpenCall {
  readonly id: string
  readonly name: string
  readonly custom: boolean | undefined
  /** Fragments of the arguments' JSON text. */
  readonly fragments: string[]
}

/** Encodes one stream. The constant text of its events is built once, in the constructor. */
export class GeminiEncoder implements StreamEncoder {
  private out = ''
  private readonly seed: Seed
  private readonly position: ChoicePosition
  private readonly writer: PartWriter
  private readonly sources = new Sources()
  /** The text of an event before its first part and after its last one, and the same around a plain text. */
  private readonly before: string
  private readonly after: string
  private readonly beforeText: string
  private readonly afterText: string
  private readonly tail: string
  private usage: Usage = {}
  private call: OpenCall | null = null
  /**
   * The newest fragment of the open thought, held until the next one: the last is sent with the signature.
   */
  private thought = ''
  private redacted: string | undefined
  private refusal = ''
  private isEmpty = true
  /** Log probabilities of the next text, as a member of the candidate. */
  private logprobs = ''

  /** `position`: that of the reply among several. */
  constructor(request: ChatRequest, seed: Seed, position: ChoicePosition = ALONE) {
    this.seed = seed
    this.position = position
    this.writer = new PartWriter(seed.origin, request.hidesThoughts === true)
    this.tail = `"modelVersion":${quote(seed.model)},"responseId":${quote(seed.id)}}\n\n`
    this.before = 'data: {"candidates":[{"content":{"parts":['
    this.after = `],"role":"model"},"index":${position.index}}],${this.tail}`
    this.beforeText = `${this.before}{"text":"`
    this.afterText = `"}${this.after}`
  }

  take(): string {
    const { out } = this
    this.out = ''
    return out
  }

  event(event: ChatEvent): void {
    switch (event.type) {
      case 'text-start':
        return this.sources.begin(event.index)
      case 'text-delta':
        this.sources.text(event.index, event.text)
        return this.text(event.text)
      case 'text-end':
        if (event.signature !== undefined) this.part(this.writer.text('', event.signature))
        else if (this.logprobs !== '') this.part(this.writer.text(''))
        return
      case 'refusal-delta':
        this.refusal += event.text
        return
      case 'thinking-start':
        this.thought = ''
        this.redacted = event.redacted
        return
      case 'thinking-delta':
        return this.thoughtFragment(event.text)
      case 'thinking-end':
        return this.thinkingEnd(event.signature)
      case 'tool-start': {
        const { id, name, custom } = event
        this.call = { id, name, custom, fragments: [] }
        return
      }
      case 'tool-delta':
        this.call?.fragments.push(event.json)
        return
      case 'tool-end':
        return this.toolEnd(event.signature)
      case 'image':
        return this.part(this.writer.image(event.url))
      case 'opaque':
        return this.part(this.writer.opaque(event.provider, event.block))
      case 'citation':
        return this.sources.cite(event.index, event.citation)
      case 'logprobs':
        this.logprobs = `,"logprobsResult":${JSON.stringify(encodeLogprobs(event.tokens))}`
        return
      case 'usage':
        this.usage = mergeUsage(this.usage, event.usage)
        return
      case 'finish':
        return this.finish(event)
      case 'error':
        this.out += encodeStreamError(event.error)
        return
      case 'start':
      case 'refusal-start':
      case 'refusal-end':
        return
      default:
        event satisfies never
    }
  }

  /** Sends a text unless it is empty. */
  private text(text: string): void {
    if (text === '') return
    this.isEmpty = false
    const members = this.writer.textMembers()
    const inside = isPlain(text) ? text : JSON.stringify(text).slice(1, -1)
    if (members === '' && this.logprobs === '') this.out += this.beforeText + inside + this.afterText
    else this.part(`{"text":"${inside}"${members}}`)
  }

  /** Sends the previous fragment and keeps this one, because the last fragment is sent with the signature. */
  private thoughtFragment(text: string): void {
    if (text === '') return
    if (!this.writer.showsThoughts) {
      this.thought += text
      return
    }
    if (this.thought !== '') this.part(this.writer.thoughtFragment(this.thought))
    this.thought = text
  }

  private thinkingEnd(signature: string | undefined): void {
    const { thought, redacted } = this
    this.thought = ''
    this.part(this.writer.thought({ text: thought, signature, redacted }))
  }

  private toolEnd(signature: string | undefined): void {
    const { call } = this
    this.call = null
    if (call === null) return
    const { id, name, custom, fragments } = call
    this.part(this.writer.call({ id, name, custom, json: fragments.join(''), signature }))
  }

  private part(part: string | null): void {
    if (part === null) return
    this.isEmpty = false
    if (this.logprobs === '') this.out += this.before + part + this.after
    else {
      const { index } = this.position
      const members = `],"role":"model"},"index":${index}${this.logprobs}}],${this.tail}`
      this.out += this.before + part + members
      this.logprobs = ''
    }
  }

  private finish(event: Extract<ChatEvent, { type: 'finish' }>): void {
    const { seed, position } = this
    const refusal = event.blocked ?? this.refusal
    const counts = position.isLast
      ? `"usageMetadata":${encodeUsage(this.usage, event.serviceTier)},${this.tail}`
      : this.tail
    const isFiltered = event.reason === 'filter'
    const blocked = position.index === 0 ? encodeBlockReason(event, seed.origin, this.isEmpty) : null
    if (blocked !== null) {
      const message = refusal === '' ? '' : `,"blockReasonMessage":${quote(refusal)}`
      this.out += `data: {"promptFeedback":{"blockReason":"${blocked}"${message}},${counts}`
      return
    }
    if (refusal !== '' && !isFiltered) this.text(refusal)
    // Google's SDK keeps a turn only if each of its events has a part.
    let members = `"finishReason":"${encodeFinishReason({ ...event, isRefusal: refusal !== '' }, seed.origin)}","index":${position.index}`
    if (refusal !== '' && isFiltered) members += `,"finishMessage":${quote(refusal)}`
    const metadata = this.sources.metadata()
    if (metadata !== null) members += `,"groundingMetadata":${JSON.stringify(metadata)}`
    const part = this.writer.rest() ?? '{"text":""}'
    this.out += `${this.before}${part}],"role":"model"},${members}}],${counts}`
  }
}
