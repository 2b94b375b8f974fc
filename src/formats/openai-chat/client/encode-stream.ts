/**
 * Encodes canonical events as chat-completions chunks. The events must be in the order that
 * `formats/chat/grammar.ts` enforces.
 *
 * Source: OpenAI API reference, "Chat completion chunk", read 2026-11-20.
 */
import type { ChatEvent } from '../../chat/event.js'
import type { ReplyBlock, ThinkingBlock } from '../../chat/fold.js'
import type { ChatRequest } from '../../chat/request.js'
import { mergeUsage, type Usage } from '../../chat/usage.js'
import { TextFrames } from '../../wire/frames/text-frames.js'
import type { ChoicePosition, Seed, StreamEncoder } from '../../dialect.js'
import { Details, signatureOut } from '../reasoning-state.js'
import { encodeStreamError } from './encode-error.js'
import { imageOut, encodeCitation, encodeLogprobs, encodeUsage, encodeFinishReason } from './encode-reply.js'

/** The end of a chunk after its text. */
const AFTER = '"},"finish_reason":null}]}\n\n'
const AFTER_WITH_USAGE = '"},"finish_reason":null}],"usage":null}\n\n'

/** A member of the delta that holds text. */
type TextMember = 'content' | 'refusal' | 'reasoning_content'

const ONLY_CHOICE: ChoicePosition = { index: 0, isLast: true }

/** Encodes one stream. The unchanging parts of chunks are built once. */
export class ChunkEncoder implements StreamEncoder {
  private readonly frames = new TextFrames()
  /** A chunk up to its choices, and a chunk up to the delta of its choice. */
  private readonly head: string
  private readonly start: string
  private readonly tail: string
  /** The end of a chunk whose delta is one text, as in nearly all chunks. */
  private readonly after: string
  /** The member of the latest text. */
  private member: TextMember | null = null
  private readonly legacy: boolean
  private readonly includeUsage: boolean
  private readonly isLast: boolean
  private usage: Usage = {}
  private tools = 0
  private images = 0
  /** Whether the open call is omitted: the legacy form has at most one call. */
  private skipsCall = false
  private custom = false
  private argumentsSent = false
  /** The signature of the open call was sent with its name. */
  private signed = false
  /** UTF-16 units of text before each text block, for the offsets of annotations. */
  private readonly starts = new Map<number, number>()
  private textLength = 0
  /** Null if the reasoning state of the upstream's dialect has no `reasoning_details`. */
  private readonly details: Details | null
  /** The text of the open thinking block, whose detail is sent when the block ends. */
  private thought = ''
  private redacted: string | undefined
  private callId = ''
  /** The `logprobs` member for the next text; empty if there is none. */
  private logprobs = ''

  /** `position`: the position among several choices; the end of the stream follows the last one. */
  constructor(request: ChatRequest, seed: Seed, position: ChoicePosition = ONLY_CHOICE) {
    this.isLast = position.isLast
    this.legacy = request.legacyFunctions === true
    this.includeUsage = request.includeUsage
    this.details = Details.of(seed.origin)
    this.head =
      `data: {"id":"${seed.id}","object":"chat.completion.chunk",` +
      `"created":${seed.createdAtSeconds},"model":${JSON.stringify(seed.model)},"choices":[`
    this.start = `${this.head}{"index":${position.index},"delta":`
    this.tail = request.includeUsage ? '],"usage":null}\n\n' : ']}\n\n'
    this.after = request.includeUsage ? AFTER_WITH_USAGE : AFTER
  }

  take(): string {
    return this.frames.take()
  }

  event(event: ChatEvent): void {
    switch (event.type) {
      case 'start':
        return this.delta('{"role":"assistant","content":""}')
      case 'text-start':
        this.starts.set(event.index, this.textLength)
        return
      case 'text-delta':
        this.textLength += event.text.length
        if (this.logprobs !== '' && event.text !== '') return this.textWithLogprobs(event.text)
        return this.text('content', event.text)
      case 'refusal-delta':
        return this.text('refusal', event.text)
      case 'thinking-start':
        this.thought = ''
        this.redacted = event.redacted
        return
      case 'thinking-delta':
        if (this.details !== null) this.thought += event.text
        return this.text('reasoning_content', event.text)
      case 'citation':
        for (const note of encodeCitation(event.citation, this.starts.get(event.index) ?? 0)) {
          this.delta(`{"annotations":[${JSON.stringify(note)}]}`)
        }
        return
      case 'logprobs':
        this.logprobs = `,"logprobs":${JSON.stringify(encodeLogprobs(event.tokens))}`
        return
      case 'tool-start':
        return this.toolStart(event)
      case 'tool-delta':
        return this.toolDelta(event.json)
      case 'tool-end':
        return this.toolEnd(event.signature)
      case 'image':
        return this.delta(`{"images":[${JSON.stringify(imageOut(event.url, this.images++))}]}`)
      case 'usage':
        if (this.includeUsage) this.usage = mergeUsage(this.usage, event.usage)
        return
      case 'finish':
        return this.finish(event)
      case 'error':
        return this.put(encodeStreamError(event.error))
      case 'thinking-end':
        return this.thinkingEnd(event.signature)
      case 'text-end':
        return this.textEnd(event.signature)
      case 'refusal-start':
      case 'refusal-end':
      case 'opaque':
        return
      default:
        event satisfies never
    }
  }

  /** A chunk; `choiceMembers` are the members of the choice beside its delta. */
  private delta(delta: string, choiceMembers = ''): void {
    this.put(`${this.start}${delta}${choiceMembers},"finish_reason":null}${this.tail}`)
  }

  private textWithLogprobs(text: string): void {
    this.delta(text === '' ? '{}' : `{"content":${JSON.stringify(text)}}`, this.logprobs)
    this.logprobs = ''
  }

  /** A chunk with a text. Empty texts are not sent. */
  private text(member: TextMember, text: string): void {
    if (text === '') return
    if (member !== this.member) {
      this.member = member
      this.frames.around(`${this.start}{"${member}":"`, this.after)
    }
    this.frames.add(text)
  }

  private put(chunks: string): void {
    this.frames.put(chunks)
  }

  private toolStart(event: Extract<ChatEvent, { type: 'tool-start' }>): void {
    this.skipsCall = this.legacy && this.tools > 0
    this.custom = event.custom === true
    this.callId = event.id
    this.argumentsSent = false
    this.tools += 1
    if (this.skipsCall) return
    const name = JSON.stringify(event.name)
    if (this.legacy) return this.delta(`{"function_call":{"name":${name},"arguments":""}}`)
    const inner = this.custom
      ? `"type":"custom","custom":{"name":${name},"input":""}`
      : `"type":"function","function":{"name":${name},"arguments":""}`
    // Clients of Google's OpenAI-compatible endpoint read the signature beside the name only.
    this.signed = event.signature !== undefined
    const state = event.signature === undefined ? '' : `,${extraContent(event.signature)}`
    this.call(`"id":${JSON.stringify(event.id)},${inner}${state}`)
  }

  private toolDelta(json: string): void {
    if (json === '' || this.skipsCall) return
    // Arguments of white space alone count as empty: `{}` is sent after them, which is valid JSON.
    this.argumentsSent ||= json.trim() !== ''
    const fragment = JSON.stringify(json)
    if (this.legacy) return this.delta(`{"function_call":{"arguments":${fragment}}}`)
    this.call(this.custom ? `"custom":{"input":${fragment}}` : `"function":{"arguments":${fragment}}`)
  }

  private toolEnd(signature: string | undefined): void {
    if (!this.argumentsSent && !this.custom) this.toolDelta('{}')
    if (signature === undefined || this.legacy) return
    const state = this.stateOf({ type: 'tool', id: this.callId, name: '', json: '', signature })
    if (this.signed) {
      if (state !== '') this.delta(`{${state}}`)
      return
    }
    // Strict clients refuse a chunk of a call that lacks the member of the call's type.
    const empty = `"${this.custom ? 'custom' : 'function'}":{}`
    const call = `{"index":${this.tools - 1},${empty},${extraContent(signature)}}`
    this.delta(`{"tool_calls":[${call}]${state === '' ? '' : `,${state}`}}`)
  }

  private thinkingEnd(signature: string | undefined): void {
    const block: ThinkingBlock = { type: 'thinking', text: this.thought }
    if (signature !== undefined) block.signature = signature
    if (this.redacted !== undefined) block.redacted = this.redacted
    const state = this.stateOf(block)
    if (state !== '') this.delta(`{${state}}`)
  }

  private textEnd(signature: string | undefined): void {
    if (this.logprobs !== '') this.textWithLogprobs('')
    if (signature === undefined) return
    const state = this.stateOf({ type: 'text', text: '', citations: [], signature })
    this.delta(`{${extraContent(signature)}${state === '' ? '' : `,${state}`}}`)
  }

  /** The member with a block's reasoning state; empty if the block has none. */
  private stateOf(block: ReplyBlock): string {
    const details = this.details?.take(block) ?? []
    return details.length === 0 ? '' : `"reasoning_details":${JSON.stringify(details)}`
  }

  /** A chunk of the open call. Its index counts the calls of the stream, not the blocks. */
  private call(members: string): void {
    this.delta(`{"tool_calls":[{"index":${this.tools - 1},${members}}]}`)
  }

  private finish({ reason, serviceTier, blocked }: Extract<ChatEvent, { type: 'finish' }>): void {
    if (blocked !== undefined) this.delta(`{"refusal":${JSON.stringify(blocked)}}`)
    const word = encodeFinishReason(reason, this.tools > 0, this.legacy)
    // Most upstreams report the tier at the end of the stream.
    const tier = serviceTier === undefined ? '' : `,"service_tier":${JSON.stringify(serviceTier)}`
    this.put(`${this.start}{},"finish_reason":"${word}"}]${tier}${this.tail.slice(1)}`)
    if (!this.isLast) return
    if (this.includeUsage) {
      this.put(`${this.head}]${tier},"usage":${encodeUsage(this.usage)}}\n\n`)
    }
    this.put('data: [DONE]\n\n')
  }
}

function extraContent(signature: string): string {
  return `"extra_content":${JSON.stringify(signatureOut(signature))}`
}
