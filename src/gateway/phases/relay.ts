/**
 * Sends the reply to the client: the head, then a whole body or a stream. No further attempt is possible from
 * here on.
 */
import type { ClientCodec } from '../../formats/dialect.js'
import { GatewayError } from '../../errors.js'
import type { HttpResponse } from '../../http/message.js'
import { beginReply, isClosed, truncateReply, isSent, sendReply } from '../../http/respond.js'
import { withoutSecrets } from '../../formats/wire/openai/error-body.js'
import type { StartedReply } from '../attempts/attempt.js'
import type { Timeouts, Timed } from '../timeouts.js'
import type { Exchange } from '../client-exchange.js'
import { NOT_LISTED } from '../in-flight-list.js'
import type { Delivery } from './phase-results.js'
import type { ReplyTransform } from '../streams/reply-transform.js'
import { EVENT_STREAM } from '../streams/sse-or-json-array.js'

/** Proxies drop silent connections after 30–60 s; vLLM and OpenRouter send comments every 10–15 s. */
const HEARTBEAT_MS = 15_000

/** The format, headers and services for sending a reply. */
interface RelayOptions {
  readonly clientCodec: ClientCodec
  /** Name, value, …: all headers except those of the body. */
  readonly headers: readonly string[]
  readonly timeouts: Timeouts
}

/** Sends the reply. Throws if the exchange is cancelled. */
export function relay(x: Exchange, reply: StartedReply, options: RelayOptions): Delivery {
  x.cancellation.check()
  if (reply.kind === 'stream') return new StreamRelay(x, reply.stream, options)
  const { res } = x
  const type = ['content-type', reply.type ?? (reply.stream ? EVENT_STREAM.type : JSON_TYPE)]
  const headers = [...type, ...options.headers, ...(reply.stream ? streamHeaders(res) : [])]
  sendReply(res, { status: 200, headers, body: reply.body })
  return sent(
    reply.bytes,
    // The operating system usually accepts the whole reply at once.
    isSent(res) ? null : new Promise((resolve) => res.once('close', resolve)),
    performance.now() - x.startedMs,
  )
}

/** The delivery of a whole reply. */
export function sent(
  sentBytes: number,
  closed: Promise<void> | null = null,
  wholeMs: number | null = null,
): Delivery {
  return { sentBytes, chunks: 0, headMs: null, wholeMs, relayMs: null, clientWaitMs: 0, closed }
}

/** Sends an object that needs no upstream, as JSON text; `more`: name, value, … of further headers. */
export function sendObject(x: Exchange, json: string, more: readonly string[] = []): Delivery {
  x.cancellation.check()
  const generation = String(x.generation.snapshot.generation)
  const own = ['content-type', JSON_TYPE, 'x-request-id', x.id, 'x-sluice-generation', generation]
  sendReply(x.res, { status: 200, headers: [...own, ...more], body: json })
  return sent(Buffer.byteLength(json))
}

/**
 * Headers that stop proxies from buffering or changing a stream. A `cache-control` that the dashboard has set
 * is kept.
 */
function streamHeaders(res: HttpResponse): string[] {
  const set = res.getHeader('cache-control')
  const cacheControl = `no-cache, no-transform${typeof set === 'string' ? `, ${set}` : ''}`
  return ['cache-control', cacheControl, 'x-accel-buffering', 'no']
}

const JSON_TYPE = 'application/json'

/** A longer last chunk is not kept for the end of the reply: the client may need time to take it. */
const MAX_LAST_BYTES = 16_384

/**
 * One streamed reply: writes it to the client, sends heartbeats, and ends it with its terminator or an error.
 * Writes the chunks itself, because `pipe` adds eight listeners, and a second listener of `data` makes Node
 * copy the list at each event.
 */
class StreamRelay implements Timed, Delivery {
  listIndex = NOT_LISTED
  sentBytes = 0
  chunks = 0
  relayMs: number | null = null
  readonly wholeMs = null
  clientWaitMs = 0
  readonly headMs: number
  readonly closed: Promise<void>
  private readonly x: Exchange
  private readonly res: HttpResponse
  private readonly stream: ReplyTransform
  private readonly clientCodec: ClientCodec
  private readonly timeouts: Timeouts
  private readonly beganMs = performance.now()
  private wroteMs = this.beganMs
  /** When the stream started to wait for the client; null if it does not wait. */
  private stalledMs: number | null = null
  private isEnding = false
  /** The head waits for the first chunk. */
  private headWaits: boolean
  /** The last chunk of a complete reply, which is sent with its end. */
  private last: Buffer | null = null
  private resolve: () => void = () => undefined

  constructor(x: Exchange, stream: ReplyTransform, { clientCodec, headers, timeouts }: RelayOptions) {
    const { res } = x
    this.x = x
    this.res = res
    this.stream = stream
    this.clientCodec = clientCodec
    this.timeouts = timeouts
    this.headMs = this.beganMs - x.startedMs
    beginReply(res, 200, ['content-type', stream.form.type, ...headers, ...streamHeaders(res)])
    // The head is sent with the first chunk, if there is one or the reply is complete and waits for its
    // ledger entry only; else the head is sent at once.
    this.headWaits = stream.readableLength > 0 || stream.translation.outcome === 'complete'
    if (!this.headWaits) res.flushHeaders?.()
    this.closed = new Promise<void>((resolve) => {
      this.resolve = resolve
    })
    this.timeouts.add(this)
    stream.on('data', (chunk: Buffer) => this.take(chunk))
    stream.once('end', () => this.finish()).once('failed', () => this.finish())
    res.on('drain', () => this.drained()).once('close', () => this.clientClosed())
    if (stream.hasFailed) this.finish()
  }

  tick(nowMs: number): void {
    if (this.isEnding) return
    // The first chunk follows a waiting head at once, and the end a waiting chunk, unless the store is slow
    // to take the ledger entry: then the client gets what there is.
    if (this.headWaits && this.chunks === 0) this.res.flushHeaders?.()
    this.headWaits = false
    if (this.last !== null) this.writeLast()
    if (this.stalledMs === null && nowMs - this.wroteMs > HEARTBEAT_MS) {
      this.wroteMs = nowMs
      const heartbeat = this.stream.form.heartbeat ?? this.clientCodec.envelope.heartbeat
      if (heartbeat !== '') this.res.write(heartbeat)
    }
  }

  private take(chunk: Buffer): void {
    const { stream, res } = this
    if (isClosed(res)) return
    this.wroteMs = performance.now()
    this.sentBytes += chunk.length
    this.chunks += 1
    if (this.last !== null) this.writeLast()
    // The end of a complete reply follows in this turn of the event loop.
    if (stream.translation.outcome === 'complete' && chunk.length <= MAX_LAST_BYTES) {
      this.last = chunk
    } else this.write(chunk)
  }

  private writeLast(): void {
    const { last } = this
    this.last = null
    if (last !== null) this.write(last)
  }

  private write(chunk: Buffer): void {
    if (this.res.write(chunk)) return
    this.stalledMs ??= this.wroteMs
    this.stream.pause()
  }

  private drained(): void {
    this.noteStall()
    this.stream.resume()
  }

  private noteStall(): void {
    if (this.stalledMs === null) return
    this.clientWaitMs += performance.now() - this.stalledMs
    this.stalledMs = null
  }

  /**
   * Ends the reply. A complete stream ends with the last HTTP chunk. A failed one gets its error event, and
   * then its connection is closed without the last chunk, so that every HTTP client detects the incomplete
   * reply.
   */
  private finish(): void {
    if (this.isEnding) return
    const { stream, res, x } = this
    const { translation } = stream
    this.noteStall()
    this.isEnding = true
    if (translation.outcome === 'complete') {
      if (this.last === null) res.end()
      else res.end(this.last)
      return
    }
    // The translated output that a slow client has not read yet is sent before the error.
    stream.removeAllListeners('data').pause()
    const rest: unknown = stream.read()
    if (Buffer.isBuffer(rest)) {
      this.sentBytes += rest.length
      this.chunks += 1
      res.write(rest)
    }
    const error = translation.error ?? new GatewayError('bug', 'The stream ended unfinished.').wire
    x.endedWithError = true
    const shown = withoutSecrets(error)
    const frame = translation.errorFrame(shown) ?? this.clientCodec.encodeStreamError(shown, x.id)
    // Sound has no error event: only the missing end tells the client.
    truncateReply(res, stream.form.events(frame))
  }

  private clientClosed(): void {
    this.timeouts.remove(this)
    this.isEnding = true
    this.noteStall()
    this.relayMs = performance.now() - this.beganMs
    this.stream.leave()
    this.resolve()
  }
}
