/**
 * A whole reply is a fold of the same events that a stream is made of.
 * Knows no dialect; a whole reply and a stream of the same answer fold to the same value.
 */
import type { ChatEvent, Citation, EventSink, FinishReason } from '../event.js'
import type { JsonObject } from '../json.js'
import type { TokenLogprob } from './logprobs.js'
import { mergeUsage, type Usage } from '../usage.js'
import type { WireError } from '../../errors.js'

/** Text that the model said, with the sources it cites. */
export interface TextBlock {
  type: 'text'
  text: string
  citations: Citation[]
  /** Its tokens, where they were asked for. */
  logprobs?: TokenLogprob[]
  signature?: string
}

/** What the model said instead of answering. */
export interface RefusalBlock {
  type: 'refusal'
  text: string
}

/** The model’s reasoning, or the opaque form in which the provider shows it. */
export interface ThinkingBlock {
  type: 'thinking'
  text: string
  signature?: string
  redacted?: string
}

/** A call the model makes; `json` is the arguments' text as the upstream wrote it. */
export interface ToolBlock {
  type: 'tool'
  id: string
  name: string
  json: string
  custom?: boolean
  signature?: string
}

/** A picture that the model made: a `data:` URL, or an address. */
export interface ImageBlock {
  type: 'image'
  url: string
}

/** A block of one provider that has no canonical kind, kept whole. */
export interface OpaqueBlock {
  type: 'opaque'
  provider: string
  block: JsonObject
}

/** One block of a whole answer, in the order in which they started. */
export type ReplyBlock =
  TextBlock | RefusalBlock | ThinkingBlock | ToolBlock | ImageBlock | OpaqueBlock

/** A finished answer. */
export interface Reply {
  id: string
  model: string
  blocks: ReplyBlock[]
  usage: Usage
  reason: FinishReason
  /** The upstream's own word for the reason. */
  raw: string | null
  stopSequence?: string
  /** The tier that served it, as OpenAI names them. */
  serviceTier?: string
}

/** Collects grammatical events into a `Reply`; put a `Grammar` before it. */
export class Fold implements EventSink {
  /** The error that ended the stream, if one did. */
  error: WireError | null = null
  private readonly blocks: ReplyBlock[] = []
  private pieces: string[] = []
  private id = ''
  private model = ''
  private usage: Usage = {}
  private finish: Extract<ChatEvent, { type: 'finish' }> | null = null

  /** The answer; null while unfinished or where it ended in an error. */
  reply(): Reply | null {
    if (this.finish === null) return null
    const { reason, raw, stopSequence, serviceTier } = this.finish
    const reply: Reply = {
      id: this.id,
      model: this.model,
      blocks: this.blocks,
      usage: this.usage,
      reason,
      raw,
    }
    if (stopSequence !== undefined) reply.stopSequence = stopSequence
    if (serviceTier !== undefined) reply.serviceTier = serviceTier
    return reply
  }

  /** What has been reported so far, for a reply that did not finish. */
  partialUsage(): Usage {
    return this.usage
  }

  event(event: ChatEvent): void {
    switch (event.type) {
      case 'start':
        this.id = event.id
        this.model = event.model
        return
      case 'text-start':
        this.blocks.push({ type: 'text', text: '', citations: [] })
        return
      case 'refusal-start':
        this.blocks.push({ type: 'refusal', text: '' })
        return
      case 'thinking-start':
        this.blocks.push(
          event.redacted === undefined
            ? { type: 'thinking', text: '' }
            : { type: 'thinking', text: '', redacted: event.redacted },
        )
        return
      case 'tool-start':
        this.blocks.push({
          type: 'tool',
          id: event.id,
          name: event.name,
          json: '',
          ...(event.custom === true ? { custom: true } : {}),
        })
        return
      case 'image':
        this.blocks.push({ type: 'image', url: event.url })
        return
      case 'opaque':
        this.blocks.push({ type: 'opaque', provider: event.provider, block: event.block })
        return
      case 'text-delta':
      case 'refusal-delta':
      case 'thinking-delta':
        this.pieces.push(event.text)
        return
      case 'tool-delta':
        this.pieces.push(event.json)
        return
      case 'text-end':
      case 'refusal-end':
      case 'thinking-end':
      case 'tool-end':
        this.close('signature' in event ? event.signature : undefined)
        return
      case 'citation':
      case 'logprobs':
        this.beside(event)
        return
      case 'usage':
        this.usage = mergeUsage(this.usage, event.usage)
        return
      case 'finish':
        this.finish = event
        return
      case 'error':
        this.error = event.error
        return
      default:
        event satisfies never
    }
  }

  /** What is said of a text rather than in it. */
  private beside(event: Extract<ChatEvent, { type: 'citation' | 'logprobs' }>): void {
    const block = this.blocks[event.index]
    if (block?.type !== 'text') return
    if (event.type === 'citation') block.citations.push(event.citation)
    else {
      block.logprobs ??= []
      for (const token of event.tokens) block.logprobs.push(token)
    }
  }

  private close(signature: string | undefined): void {
    const block = this.blocks.at(-1)
    const whole = this.pieces.length === 1 ? (this.pieces.pop() ?? '') : this.pieces.join('')
    if (this.pieces.length > 0) this.pieces = []
    if (block === undefined || block.type === 'opaque' || block.type === 'image') return
    if (block.type === 'tool') block.json = whole
    else block.text = whole
    if (signature !== undefined && block.type !== 'refusal') block.signature = signature
  }
}
