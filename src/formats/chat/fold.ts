/**
 * Folds the events of a stream into a whole reply. A whole reply and a stream of the same content give the
 * same value.
 */
import type { ChatEvent, Citation, EventSink, FinishReason, TokenLogprob } from './event.js'
import type { JsonObject } from '../../base/json.js'
import { mergeUsage, type Usage } from './usage.js'
import type { WireError } from '../../errors.js'

/** Text with its citations. */
interface TextBlock {
  type: 'text'
  text: string
  citations: Citation[]
  /** The tokens of the text, if the request needs them. */
  logprobs?: TokenLogprob[]
  signature?: string
}

/** The text of a refusal. */
interface RefusalBlock {
  type: 'refusal'
  text: string
}

/** The model's reasoning. `redacted` is the provider's encrypted form of it. */
export interface ThinkingBlock {
  type: 'thinking'
  text: string
  signature?: string
  redacted?: string
}

/** A tool call; `json` is the text of the arguments as the upstream wrote it. */
export interface ToolBlock {
  type: 'tool'
  id: string
  name: string
  json: string
  custom?: boolean
  signature?: string
}

/** A generated image: a `data:` URL or a web address. */
interface ImageBlock {
  type: 'image'
  url: string
}

/** A whole block of one provider that has no canonical kind. */
interface OpaqueBlock {
  type: 'opaque'
  provider: string
  block: JsonObject
}

export type ReplyBlock = TextBlock | RefusalBlock | ThinkingBlock | ToolBlock | ImageBlock | OpaqueBlock

/** A finished reply. */
export interface Reply {
  id: string
  model: string
  /** In the order in which they start. */
  blocks: ReplyBlock[]
  usage: Usage
  reason: FinishReason
  /** The upstream's own word for the reason. */
  raw: string | null
  stopSequence?: string
  /** The tier that served the reply, in OpenAI's names. */
  serviceTier?: string
}

/**
 * Fragments of text that are joined at a time. A fragment that was cut from a chunk keeps the whole chunk in
 * memory, and takes 40 bytes itself.
 */
const JOINED_AT_ONCE = 64

/** Collects grammatical events into a `Reply`. The events must come from a `Grammar`. */
export class Fold implements EventSink {
  /** The error that ended the stream, if one did. */
  error: WireError | null = null
  /** Why the model stopped, if the upstream had completed the reply before the error. */
  endReason: FinishReason | null = null
  private readonly blocks: ReplyBlock[] = []
  /** Text or arguments of the open block: its begin, and the fragments after it. */
  private joined: string[] = []
  private fragments: string[] = []
  private id = ''
  private model = ''
  private usage: Usage = {}
  private finish: Extract<ChatEvent, { type: 'finish' }> | null = null

  /** The reply; null before the `finish` event and after an error. */
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

  /** The usage so far, for a reply that did not finish. */
  partialUsage(): Usage {
    return this.usage
  }

  /** The blocks so far, for a reply that did not finish; ends the open block. */
  partialBlocks(): readonly ReplyBlock[] {
    if (this.joined.length + this.fragments.length > 0) this.close(undefined)
    return this.blocks
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
        this.add(event.text)
        return
      case 'tool-delta':
        this.add(event.json)
        return
      case 'text-end':
      case 'refusal-end':
      case 'thinking-end':
      case 'tool-end':
        this.close('signature' in event ? event.signature : undefined)
        return
      case 'citation':
      case 'logprobs':
        this.annotate(event)
        return
      case 'usage':
        this.usage = mergeUsage(this.usage, event.usage)
        return
      case 'finish':
        this.finish = event
        return
      case 'error':
        this.error = event.error
        this.endReason = event.reason ?? null
        return
      default:
        event satisfies never
    }
  }

  /** Adds a citation or tokens to a text block. */
  private annotate(event: Extract<ChatEvent, { type: 'citation' | 'logprobs' }>): void {
    const block = this.blocks[event.index]
    if (block?.type !== 'text') return
    if (event.type === 'citation') block.citations.push(event.citation)
    else {
      block.logprobs ??= []
      for (const token of event.tokens) block.logprobs.push(token)
    }
  }

  private add(fragment: string): void {
    this.fragments.push(fragment)
    if (this.fragments.length >= JOINED_AT_ONCE) this.join()
  }

  private join(): void {
    this.joined.push(this.fragments.join(''))
    this.fragments = []
  }

  private close(signature: string | undefined): void {
    const block = this.blocks.at(-1)
    if (this.fragments.length > 0) this.join()
    const { joined } = this
    const whole = joined.length === 1 ? (joined.pop() ?? '') : joined.join('')
    if (joined.length > 0) this.joined = []
    if (block === undefined || block.type === 'opaque' || block.type === 'image') return
    if (block.type === 'tool') block.json = whole
    else block.text = whole
    if (signature !== undefined && block.type !== 'refusal') block.signature = signature
  }
}
