/**
 * How a stream's events are written to the client: as server-sent events, or as the elements of one JSON array, which
 * is what Gemini clients get that do not ask for `alt=sse`. Pure and synchronous.
 */
import type { FrameSink } from '../../wire/frames/framer.js'
import { SseFramer } from '../../wire/frames/sse.js'

/** The form of one stream. */
export interface StreamForm {
  readonly type: string
  /** Written while the stream is silent; null for the heartbeat of the client's format. */
  readonly heartbeat: string | null
  /** Whole events as the client gets them. */
  events(events: string | Buffer): string | Buffer
  /** What follows the last event of a complete stream. */
  end(): string
}

/** Server-sent events, as the encoders write them and upstreams send them. */
export const EVENT_STREAM: StreamForm = {
  type: 'text/event-stream; charset=utf-8',
  heartbeat: null,
  events: (events) => events,
  end: () => '',
}

/** One JSON array: `[{…}`, `,\n{…}` for each further event, `]`. The data of an event are its element, byte for byte. */
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

/** A whole stream, as a body. */
export function arrayOfEvents(events: string | Buffer): Buffer {
  const form = new ArrayForm()
  return Buffer.concat([form.events(events), Buffer.from(form.end())])
}
