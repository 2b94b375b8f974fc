/** A message of a streamed response, with its parts so far. */
import type { TokenLogprob } from '../../../../chat/reply/logprobs.js'
import { messageItem, refusalPart, textPart } from './encode-content.js'
import { encodeLogprobs } from './encode-logprobs.js'

/** A text or a refusal of the message. */
export class MessagePart {
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

/** The message. */
export class StreamedMessage {
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
