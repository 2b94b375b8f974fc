/**
 * Writes the events of messages in a streamed response. A message stays open while texts and refusals follow
 * each other, because each is a part of it.
 *
 * Source: OpenAI API reference, "Responses: streaming events", and recordings, read 2026-11-20.
 */
import type { Citation } from '../../../../chat/event.js'
import type { TokenLogprob } from '../../../../chat/reply/logprobs.js'
import { quote } from '../../../../wire/json/quote.js'
import { encodeCitation } from './encode-citations.js'
import { encodeLogprobs } from './encode-logprobs.js'
import type { OutputWriter } from './write-numbered-events.js'
import { MessagePart, StreamedMessage } from './streamed-message.js'

const NO_LOGPROBS = ',"logprobs":[]}\n\n'

/** The messages of one response. */
export class MessageWriter {
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
