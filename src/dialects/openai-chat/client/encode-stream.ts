/**
 * Writes canonical events as chat-completions chunks.
 * Assumes order: the grammar stands before it. Knows no upstream.
 *
 * Source: OpenAI API reference, "Chat completion chunk", read 2026-11-20.
 */
import type { ChatEvent } from '../../../chat/event.js'
import type { ReplyBlock, ThinkingBlock } from '../../../chat/reply/fold.js'
import type { ChatRequest } from '../../../chat/request.js'
import { mergeUsage, type Usage } from '../../../chat/usage.js'
import { TextFrames } from '../../../wire/frames/text-frames.js'
import type { ChoicePosition, Seed, StreamEncoder } from '../../dialect.js'
import { encodeStreamError } from '../shared/errors.js'
import { Details, signatureOut } from '../shared/reasoning.js'
import { annotation, imageOut } from './encode-reply.js'
import { finishReasonOut, logprobsOut, usageText } from '../shared/names.js'

/** What stands after a text; as constants, they are in one piece. */
const AFTER = '"},"finish_reason":null}]}\n\n'
const AFTER_WITH_USAGE = '"},"finish_reason":null}],"usage":null}\n\n'

/** A member of the delta that holds words. */
type Words = 'content' | 'refusal' | 'reasoning_content'

/** The place of an only answer. */
const ALONE: ChoicePosition = { index: 0, isLast: true }

/** The chunks of one stream: everything that stays the same is written once, at the start. */
export class ChunkEncoder implements StreamEncoder {
  private readonly frames = new TextFrames()
  /** A chunk up to its choices, and up to its choice's delta. */
  private readonly head: string
  private readonly start: string
  private readonly tail: string
  /** What stands after the text of a chunk that has one, as nearly all have; its text is that of `member`. */
  private readonly after: string
  private member: Words | null = null
  private readonly legacy: boolean
  private readonly includeUsage: boolean
  private readonly isLast: boolean
  private usage: Usage = {}
  private tools = 0
  private images = 0
  /** The open call is one of several in the legacy form, which has room for one. */
  private muted = false
  private custom = false
  private argumentsSent = false
  /** The open call's signature went out with its name. */
  private signed = false
  /** UTF-16 units of text before each text block, for the offsets of annotations. */
  private readonly starts = new Map<number, number>()
  private textLength = 0
  /** Null where the upstream's reasoning state has no form of its own. */
  private readonly details: Details | null
  /** The open thought: its detail goes out whole, once it is over. */
  private thought = ''
  private redacted: string | undefined
  private callId = ''
  /** Tokens whose text is about to come, as a member of the choice. */
  private likely = ''

  /** `place`: where the answer stands among several; what ends the stream comes after the last. */
  constructor(request: ChatRequest, seed: Seed, place: ChoicePosition = ALONE) {
    this.isLast = place.isLast
    this.legacy = request.legacyFunctions === true
    this.includeUsage = request.includeUsage
    this.details = Details.of(seed.origin)
    this.head =
      `data: {"id":"${seed.id}","object":"chat.completion.chunk",` +
      `"created":${seed.createdAtSeconds},"model":${JSON.stringify(seed.model)},"choices":[`
    this.start = `${this.head}{"index":${place.index},"delta":`
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
        if (this.likely !== '' && event.text !== '') return this.likelyText(event.text)
        return this.words('content', event.text)
      case 'refusal-delta':
        return this.words('refusal', event.text)
      case 'thinking-start':
        this.thought = ''
        this.redacted = event.redacted
        return
      case 'thinking-delta':
        if (this.details !== null) this.thought += event.text
        return this.words('reasoning_content', event.text)
      case 'citation':
        for (const note of annotation(event.citation, this.starts.get(event.index) ?? 0)) {
          this.delta(`{"annotations":[${JSON.stringify(note)}]}`)
        }
        return
      case 'logprobs':
        this.likely = `,"logprobs":${JSON.stringify(logprobsOut(event.tokens))}`
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

  private delta(delta: string): void {
    this.piece(delta, '')
  }

  /** A text with the tokens it is made of. */
  private likelyText(text: string): void {
    this.piece(text === '' ? '{}' : `{"content":${JSON.stringify(text)}}`, this.likely)
    this.likely = ''
  }

  private piece(delta: string, beside: string): void {
    this.put(`${this.start}${delta}${beside},"finish_reason":null}${this.tail}`)
  }

  /** Empty strings say nothing and are not sent. */
  private words(member: Words, text: string): void {
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
    this.muted = this.legacy && this.tools > 0
    this.custom = event.custom === true
    this.callId = event.id
    this.argumentsSent = false
    this.tools += 1
    if (this.muted) return
    const name = JSON.stringify(event.name)
    if (this.legacy) return this.delta(`{"function_call":{"name":${name},"arguments":""}}`)
    const inner = this.custom
      ? `"type":"custom","custom":{"name":${name},"input":""}`
      : `"type":"function","function":{"name":${name},"arguments":""}`
    // Clients of Google's own compatible endpoint look for the signature beside the name, and only there.
    this.signed = event.signature !== undefined
    const state = event.signature === undefined ? '' : `,${extraContent(event.signature)}`
    this.call(`"id":${JSON.stringify(event.id)},${inner}${state}`)
  }

  private toolDelta(json: string): void {
    if (json === '' || this.muted) return
    // White space is no argument; `{}` after it still makes valid JSON.
    this.argumentsSent ||= json.trim() !== ''
    const fragment = JSON.stringify(json)
    if (this.legacy) return this.delta(`{"function_call":{"arguments":${fragment}}}`)
    this.call(
      this.custom ? `"custom":{"input":${fragment}}` : `"function":{"arguments":${fragment}}`,
    )
  }

  private toolEnd(signature: string | undefined): void {
    if (!this.argumentsSent && !this.custom) this.toolDelta('{}')
    if (signature === undefined || this.legacy) return
    const state = this.stateOf({ type: 'tool', id: this.callId, name: '', json: '', signature })
    if (this.signed) {
      if (state !== '') this.delta(`{${state}}`)
      return
    }
    // Strict clients refuse a call's chunk without its member.
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
    if (this.likely !== '') this.likelyText('')
    if (signature === undefined) return
    const state = this.stateOf({ type: 'text', text: '', citations: [], signature })
    this.delta(`{${extraContent(signature)}${state === '' ? '' : `,${state}`}}`)
  }

  /** The member that holds a block's reasoning state; empty where it has none. */
  private stateOf(block: ReplyBlock): string {
    const details = this.details?.take(block) ?? []
    return details.length === 0 ? '' : `"reasoning_details":${JSON.stringify(details)}`
  }

  /** The index counts the calls of the stream, never the blocks of the upstream. */
  private call(members: string): void {
    this.delta(`{"tool_calls":[{"index":${this.tools - 1},${members}}]}`)
  }

  private finish({ reason, serviceTier }: Extract<ChatEvent, { type: 'finish' }>): void {
    const word = finishReasonOut(reason, this.tools > 0, this.legacy)
    // Known at the end only: most upstreams say it there.
    const tier = serviceTier === undefined ? '' : `,"service_tier":${JSON.stringify(serviceTier)}`
    this.put(`${this.start}{},"finish_reason":"${word}"}]${tier}${this.tail.slice(1)}`)
    if (!this.isLast) return
    if (this.includeUsage) {
      this.put(`${this.head}]${tier},"usage":${usageText(this.usage)}}\n\n`)
    }
    this.put('data: [DONE]\n\n')
  }
}

function extraContent(signature: string): string {
  return `"extra_content":${JSON.stringify(signatureOut(signature))}`
}
