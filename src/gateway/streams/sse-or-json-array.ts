/**
 * The form of a stream to the client: server-sent events, or the elements of one JSON array for Gemini
 * clients without `alt=sse`. Pure and synchronous.
 */
import { SseFramer, type FrameSink } from '../../formats/wire/frames/sse-framer.js'

export interface StreamForm {
  readonly type: string
  /** Written while the stream is silent; null for the heartbeat of the client's format. */
  readonly heartbeat: string | null
  /** Complete events in the form of the client. */
  events(events: string | Buffer): string | Buffer
  /** The text after the last event of a complete stream. */
  end(): string
}

/** Server-sent events, as the encoders write them and upstreams send them. */
export const EVENT_STREAM: StreamForm = {
  type: 'text/event-stream; charset=utf-8',
  heartbeat: null,
  events: (events) => events,
  end: () => '',
}

/**
 * One JSON array: `[{…}`, `,\n{…}` for each further event, `]`. The data of an event are its element, byte
 * for byte.
 */
export class ArrayForm implements StreamForm, FrameSink {
  readonly type = 'application/json; charset=utf-8'
  /** White space between two elements. */
  readonly heartbeat = '\n'
  private readonly framer = new SseFramer(this, { bytes: true })
  private hasBegun = false
  private ready = ''

  events(events: string | Buffer): Buffer {
    this.framer.write(typeof events === 'string' ? Buffer.from(events) : events)
    const { ready } = this
    this.ready = ''
    // The framer reads bytes as Latin-1.
    return Buffer.from(ready, 'latin1')
  }

  end(): string {
    return this.hasBegun ? ']' : '[]'
  }

  frame(_name: string, data: string): void {
    this.ready += (this.hasBegun ? ',\n' : '[') + data
    this.hasBegun = true
  }
}

/** A complete stream as one body. */
export function arrayOfEvents(events: string | Buffer): Buffer {
  const form = new ArrayForm()
  return Buffer.concat([form.events(events), Buffer.from(form.end())])
}
