/**
 * Passes a stream if both sides use the same dialect: the upstream's own bytes, which the dialect's watcher
 * reads for usage, errors and the end. Only the frames that the watcher needs are parsed.
 */
import type { FinishReason } from '../../formats/chat/event.js'
import type { CapturedStream } from '../../policy/capture-and-replay.js'
import type { OutputSize } from '../../formats/chat/output-size.js'
import type { Usage } from '../../formats/chat/usage.js'
import type { StreamWatcher } from '../../formats/dialect.js'
import type { WireError } from '../../errors.js'
import { newFramer } from '../../formats/wire/aws/event-stream.js'
import type { Framing, FrameSink, SseFramer } from '../../formats/wire/frames/sse-framer.js'
import {
  overflowError,
  TRUNCATED,
  type Translation,
  type ReplyResult,
} from '../../formats/translated-stream.js'

/** Larger events are not kept while they arrive, and only an outline of them is read. */
const KEPT_BYTES = 256 * 1024

const NONE: readonly CapturedStream[] = []

/** The bytes without the frames that are not for the client. Pure and synchronous. */
export class PassthroughStream implements Translation, FrameSink {
  outcome: ReplyResult['outcome'] = 'open'
  error: WireError | null = null
  wasCut = false
  readonly breach = null
  readonly lost = []
  readonly resume = null
  readonly repeatCause = null
  private readonly framer: SseFramer
  private readonly watcher: StreamWatcher
  private ready = ''
  /** A frame was left out or added, so that the chunk cannot pass unchanged. */
  private isChanged = false
  /** Characters of text in the parts of events that were not read. */
  private omittedText = 0
  /** Read the same bytes for the events of the reply. */
  private readonly captured: readonly CapturedStream[]

  /** Of an event above `maxKeptBytes`, only an outline is read. */
  constructor(
    watcher: StreamWatcher,
    maxKeptBytes = KEPT_BYTES,
    framing: Framing = 'sse',
    captured: readonly CapturedStream[] = NONE,
  ) {
    this.watcher = watcher
    this.captured = captured
    this.framer = newFramer(framing, this, { bytes: true, maxKeptBytes })
  }

  /** Whether the watcher reads an outline at the moment instead of the whole event. */
  get readsOutline(): boolean {
    return this.framer.isOutline
  }

  get usage(): Usage {
    return this.watcher.usage
  }
  get reason(): FinishReason | null {
    return this.watcher.reason
  }
  get model(): string | null {
    return this.watcher.model
  }
  get tier(): string | null {
    return this.watcher.tier
  }
  get outputSize(): OutputSize {
    const { outputSize } = this.watcher
    if (this.omittedText === 0) return outputSize
    return { bytes: outputSize.bytes + this.omittedText, calls: outputSize.calls }
  }
  get content(): boolean {
    return this.watcher.hasContent || this.outcome === 'complete' || this.framer.passesEvent
  }

  /** A stream that passes through cannot pause. */
  proceed(): void {
    this.fail(TRUNCATED)
  }

  write(chunk: Buffer): string | Buffer {
    if (this.outcome !== 'open') return ''
    const startsBetweenEvents = this.framer.isBetweenEvents
    for (const each of this.captured) each.write(chunk)
    this.framer.write(chunk)
    this.takeUnframed()
    if (this.framer.overflow) this.overflow()
    // Latin-1 text is as long as its bytes, so an equal length means that the chunk passes unchanged.
    const isSame = startsBetweenEvents && !this.isChanged && !this.framer.isRewritten
    if (isSame && this.ready.length === chunk.length) {
      this.ready = ''
      return chunk
    }
    return this.take()
  }

  get isPending(): boolean {
    return this.outcome === 'open' && this.framer.isPending
  }

  more(): string | Buffer {
    this.framer.more()
    this.takeUnframed()
    if (this.framer.overflow) this.overflow()
    return this.take()
  }

  end(): string | Buffer {
    if (this.outcome !== 'open') return ''
    this.framer.end()
    if (this.framer.passesEvent) this.takeUnframed()
    this.settle()
    if (this.framer.overflow) this.overflow()
    else if (this.watcher.isFinished) this.terminate()
    // Without a blank line after the last event, the error event that follows would become a part of it.
    else if (this.framer.passesEvent || (this.ready !== '' && !this.ready.endsWith('\n\n'))) {
      this.ready += '\n\n'
    }
    this.fail(TRUNCATED)
    return this.take()
  }

  fail(error: WireError): void {
    if (this.outcome !== 'open') return
    this.outcome = 'failed'
    this.error = error
  }

  errorFrame(error: WireError): string | null {
    return this.watcher.failed?.(error) ?? null
  }

  frame(name: string, data: string): void {
    if (this.outcome !== 'open') return
    const { largeEvent } = this.framer
    if (largeEvent !== null) {
      // The part of the event that has just arrived, unless the event is kept.
      this.ready += this.framer.takeUnframed()
      if (this.framer.isOutline) this.omittedText += largeEvent.omittedText
    }
    if (this.watcher.frame(name, data)) {
      this.pass(this.framer.raw, this.watcher)
    } else {
      this.ready += this.framer.lead
      this.isChanged = true
    }
    this.settle()
  }

  private pass(raw: string, { excess, missingFrame }: StreamWatcher): void {
    const index = excess === '' ? -1 : raw.lastIndexOf(excess)
    const forwarded = index < 0 ? raw : raw.slice(0, index) + raw.slice(index + excess.length)
    if (missingFrame === '') {
      this.ready += forwarded
      return
    }
    // Comments and blank lines before the frame stay before the inserted frame.
    const { lead } = this.framer
    this.ready += lead + missingFrame + forwarded.slice(lead.length)
    this.isChanged = true
  }

  /**
   * Comments are passed too, up to the end of the reply; later bytes are dropped, regardless of chunk
   * boundaries.
   */
  private takeUnframed(): void {
    const unframed = this.framer.takeUnframed()
    if (this.outcome === 'open') this.ready += unframed
  }

  /** An event that is forwarded in part ends here, so that the error event is one of its own. */
  private overflow(): void {
    if (this.framer.passesEvent) this.ready += '\n\n'
    this.fail(overflowError(this.framer))
  }

  private settle(): void {
    if (this.watcher.error !== null) this.fail(this.watcher.error)
    else if (this.watcher.isComplete) this.complete()
  }

  /**
   * A finish reason and then the end of the connection: the content is complete, and clients wait for the
   * terminator.
   */
  private terminate(): void {
    if (this.outcome !== 'open') return
    if (this.ready !== '' && !this.ready.endsWith('\n\n')) this.ready += '\n\n'
    this.ready += this.watcher.terminator
    this.wasCut = this.watcher.terminator !== ''
    this.complete()
  }

  private complete(): void {
    if (this.outcome !== 'open') return
    this.outcome = 'complete'
    for (const each of this.captured) each.end()
  }

  private take(): string | Buffer {
    this.isChanged = false
    if (this.ready === '') return ''
    const bytes = Buffer.from(this.ready, 'latin1')
    this.ready = ''
    return bytes
  }
}
