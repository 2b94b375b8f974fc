/**
 * Writes the events of a streamed response and keeps the output items for the last event, which repeats them.
 * Each event has the next `sequence_number`.
 *
 * Source: OpenAI API reference, "Responses: streaming events", and recordings, read 2026-11-20.
 */
import { quote } from '../../../../wire/json/quote.js'
import { itemId, type ItemPrefix } from './encode-content.js'
import type { StreamedMessage } from './streamed-message.js'

/** The events and items of one response. */
export class OutputWriter {
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
