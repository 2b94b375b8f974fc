/**
 * The guarantee behind a tool choice that demands a call, for models that cannot be forced to call: a reply
 * has a call, is requested a second time, or fails. Until the first call the events are held back, because
 * text that the client has received cannot be replaced.
 */
import type { WireError } from '../../errors.js'
import type { ChatEvent, EventSink } from './event.js'
import type { ToolChoice } from './request.js'

export function demandsCall(choice: ToolChoice | undefined): boolean {
  if (choice?.mode === 'allowed') return choice.required
  return choice?.mode === 'required' || choice?.mode === 'named'
}

const NO_CALL: WireError = {
  kind: 'untranslatable',
  message:
    'tool_choice demands a call, the model cannot be forced to make one, and it replied without a call twice. Do not demand a call, or use a model that can be forced.',
  param: 'tool_choice',
}

/** Forwards the events of a reply with a call, and of replies that end for another reason than their end. */
export class MustCall implements EventSink {
  private readonly next: EventSink
  private waiting: ChatEvent[] = []
  private called = false
  private replies = 0

  constructor(next: EventSink) {
    this.next = next
  }

  event(event: ChatEvent): void {
    if (this.called) return this.next.event(event)
    switch (event.type) {
      case 'start':
      case 'usage':
      case 'error':
        return this.next.event(event)
      case 'finish':
        if (event.reason === 'stop' && event.resume === undefined) return this.refuse(event)
        return this.release(event)
      case 'tool-start':
        this.called = true
        return this.release(event)
      default:
        this.waiting.push(event)
    }
  }

  /** A complete reply without a call: the first one is repeated, the second one is an error. */
  private refuse(event: Extract<ChatEvent, { type: 'finish' }>): void {
    this.waiting = []
    this.replies += 1
    if (this.replies === 1) this.next.event({ ...event, retrySame: true })
    else this.next.event({ type: 'error', error: NO_CALL, reason: event.reason })
  }

  private release(event: ChatEvent): void {
    const { waiting } = this
    this.waiting = []
    for (const each of waiting) this.next.event(each)
    this.next.event(event)
  }
}
