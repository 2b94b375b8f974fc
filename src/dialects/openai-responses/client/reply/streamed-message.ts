/**
 * A message of the model while it is streamed: its parts, and what each says.
 */
import type { TokenLogprob } from '../../../../chat/reply/logprobs.js'
import { logprobsOut, messageItem, refusalPart, textPart } from './encode-content.js'

/** A text or a refusal of the message. */
export class MessagePart {
  readonly kind: 'text' | 'refusal'
  /** Its place in the message. */
  readonly place: number
  /** The citations so far, as JSON texts. */
  readonly notes: string[] = []
  readonly tokens: TokenLogprob[] = []
  private readonly pieces: string[] = []

  constructor(kind: 'text' | 'refusal', place: number) {
    this.kind = kind
    this.place = place
  }

  say(piece: string): void {
    this.pieces.push(piece)
  }

  get text(): string {
    if (this.pieces.length > 1) this.pieces.splice(0, this.pieces.length, this.pieces.join(''))
    return this.pieces[0] ?? ''
  }

  /** The part as JSON text. */
  json(): string {
    if (this.kind === 'refusal') return refusalPart(this.text)
    return textPart(this.text, `[${this.notes.join(',')}]`, this.logprobs())
  }

  /** Its tokens as JSON text. */
  logprobs(): string {
    return this.tokens.length === 0 ? '[]' : logprobsOut(this.tokens)
  }
}

/** The message. */
export class StreamedMessage {
  readonly id: string
  /** Its place in the output. */
  readonly place: number
  readonly parts: MessagePart[] = []
  status = 'in_progress'

  constructor(id: string, place: number) {
    this.id = id
    this.place = place
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
