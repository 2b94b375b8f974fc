/**
 * Passes a stream of pictures, sound or a transcript to the client, translated if the formats differ. The end
 * of the upstream's body completes a stream of bytes; events have an end of their own.
 */
import type { WireError } from '../errors.js'
import { isObject } from '../base/json.js'
import type { MediaEvent, MediaReader, MediaWriter } from './chat/media-event.js'
import { NO_OUTPUT } from './chat/output-size.js'
import type { Usage } from './chat/usage.js'
import { overflowError, TRUNCATED, type ReplyResult, type Translation } from './translated-stream.js'
import { SseFramer, type FrameSink } from './wire/frames/sse-framer.js'
import { MALFORMED_REPLY } from './wire/upstream-errors.js'

/** The two sides of a stream. */
interface MediaSides {
  /** Null: the upstream sends the bytes of the sound. */
  readonly reader: MediaReader | null
  readonly writer: MediaWriter
}

/** A stream from an upstream to a client. */
export class MediaStream implements Translation, FrameSink {
  outcome: ReplyResult['outcome'] = 'open'
  error: WireError | null = null
  usage: Usage = {}
  content = false
  readonly breach = null
  readonly reason = null
  readonly tier = null
  readonly lost = []
  readonly resume = null
  readonly repeatCause = null
  readonly isPending = false
  readonly outputSize = NO_OUTPUT
  private readonly reader: MediaReader | null
  private readonly framer: SseFramer | null
  private readonly writer: MediaWriter
  private ready: (string | Buffer)[] = []

  constructor({ reader, writer }: MediaSides) {
    this.reader = reader
    this.writer = writer
    this.framer = reader === null ? null : new SseFramer(this)
  }

  get model(): string | null {
    return this.reader?.model ?? null
  }

  /** Whether the end of the upstream's body is the only sign that the reply is complete. */
  get endsWithBody(): boolean {
    return this.reader === null
  }

  /** Media are not continued. */
  proceed(): void {
    this.fail(TRUNCATED)
  }

  write(chunk: Buffer): string | Buffer {
    if (this.outcome !== 'open') return ''
    if (this.framer === null) this.take({ type: 'sound', data: chunk })
    else {
      this.framer.write(chunk)
      if (this.framer.overflow) this.fail(overflowError(this.framer))
    }
    return this.output()
  }

  more(): string | Buffer {
    return ''
  }

  end(): string | Buffer {
    if (this.outcome !== 'open') return ''
    if (this.framer === null) this.take({ type: 'done', usage: {} })
    else {
      this.framer.end()
      this.takeAll(this.reader?.end() ?? [])
    }
    this.fail(TRUNCATED)
    return this.output()
  }

  fail(error: WireError): void {
    if (this.outcome !== 'open') return
    this.outcome = 'failed'
    this.error = error
  }

  errorFrame(): string | null {
    return this.writer.isBytes ? '' : null
  }

  frame(_name: string, data: string): void {
    if (this.outcome !== 'open' || data === '[DONE]') return
    let body: unknown
    try {
      body = JSON.parse(data)
    } catch {
      this.fail(MALFORMED_REPLY)
      return
    }
    if (isObject(body)) this.takeAll(this.reader?.frame(body) ?? [])
    else this.fail(MALFORMED_REPLY)
  }

  private takeAll(events: readonly MediaEvent[]): void {
    for (const event of events) this.take(event)
  }

  private take(event: MediaEvent): void {
    if (this.outcome !== 'open') return
    if (event.type === 'error') {
      this.fail(event.error)
      return
    }
    this.ready.push(this.writer.event(event))
    if (event.type === 'done') {
      this.usage = event.usage
      this.outcome = 'complete'
      return
    }
    this.content = true
  }

  private output(): string | Buffer {
    const { ready } = this
    this.ready = []
    const [first = ''] = ready
    if (ready.length <= 1) return first
    return Buffer.concat(ready.map((part) => (typeof part === 'string' ? Buffer.from(part) : part)))
  }
}
