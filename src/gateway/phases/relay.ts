/**
 * The reply on its way to the client: the head first, then a whole body or a stream. From here on no attempt follows.
 */
import type { Ingress } from '../../dialects/dialect.js'
import { GatewayError } from '../../errors.js'
import type { HttpResponse } from '../../http/message.js'
import { beginReply, breakOff, hasLeft, sendReply } from '../../http/respond.js'
import { withoutSecrets } from '../../wire/openai/error-body.js'
import type { StartedReply } from '../attempts/reply/started-reply.js'
import type { Deadlines, Timed } from '../in-flight/deadlines.js'
import type { Exchange } from '../exchange.js'
import { NOT_LISTED } from '../in-flight/in-flight-list.js'
import type { ReplyTransform } from '../streams/reply-transform.js'
import { EVENT_STREAM } from '../streams/sse-or-json-array.js'

/** Proxies drop silent connections after 30–60 s; vLLM and OpenRouter send comments every 10–15 s. */
const HEARTBEAT_MS = 15_000

/** How a reply reaches its client. */
export interface Delivery {
  readonly sentBytes: number
  /** Of a stream: the number of chunks that were written. */
  readonly chunks: number
  /** From the arrival of the request to the head of a streamed reply, in ms; null for a whole reply. */
  readonly headMs: number | null
  /** The same of a whole reply; null for a stream, and if the client gets an error. */
  readonly wholeMs: number | null
  /** From the head to the end; null until then, and for a whole reply. */
  readonly relayMs: number | null
  /** For how long the stream waited for a client that read slowly. */
  readonly clientWaitMs: number
  /** Resolves when the client has the whole reply, or is gone; null if it has it already. */
  readonly closed: Promise<void> | null
}

/** What the reply is sent with. */
export interface RelayOptions {
  readonly ingress: Ingress
  /** Name, value, …: every header but those of the body. */
  readonly headers: readonly string[]
  readonly deadlines: Deadlines
}

/** Sends the reply. Throws if the exchange is cancelled. */
export function relay(x: Exchange, reply: StartedReply, options: RelayOptions): Delivery {
  x.cancellation.check()
  if (reply.kind === 'stream') return new StreamRelay(x, reply.stream, options)
  const { res } = x
  const type = ['content-type', reply.stream ? EVENT_STREAM.type : JSON_TYPE]
  const headers = [...type, ...options.headers, ...(reply.stream ? streamHeaders(res) : [])]
  sendReply(res, 200, headers, reply.body)
  return sent(
    reply.bytes,
    // The operating system takes most replies at once.
    hasLeft(res) ? null : new Promise((resolve) => res.once('close', resolve)),
    performance.now() - x.startedMs,
  )
}

/** A reply that was handed over whole. */
export function sent(
  sentBytes: number,
  closed: Promise<void> | null = null,
  wholeMs: number | null = null,
): Delivery {
  return { sentBytes, chunks: 0, headMs: null, wholeMs, relayMs: null, clientWaitMs: 0, closed }
}

/** Proxies must neither hold nor change a stream. What the dashboard has set for the reply is kept. */
function streamHeaders(res: HttpResponse): string[] {
  const set = res.getHeader('cache-control')
  const cacheControl = `no-cache, no-transform${typeof set === 'string' ? `, ${set}` : ''}`
  return ['cache-control', cacheControl, 'x-accel-buffering', 'no']
}

const JSON_TYPE = 'application/json'

/** One streamed reply: pipes it to the client, sends heartbeats, and ends it with its terminator or an error. */
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
  private readonly ingress: Ingress
  private readonly deadlines: Deadlines
  private readonly beganMs = performance.now()
  private wroteMs = this.beganMs
  /** Since when the client is behind; null if it is not. */
  private stalledMs: number | null = null
  private isEnding = false
  private resolve: () => void = () => undefined

  constructor(x: Exchange, stream: ReplyTransform, { ingress, headers, deadlines }: RelayOptions) {
    const { res } = x
    this.x = x
    this.res = res
    this.stream = stream
    this.ingress = ingress
    this.deadlines = deadlines
    this.headMs = this.beganMs - x.startedMs
    beginReply(res, 200, ['content-type', stream.form.type, ...headers, ...streamHeaders(res)])
    // The head goes out with the first chunk; if there is none yet, it must not wait for it.
    if (stream.readableLength === 0) res.flushHeaders?.()
    this.closed = new Promise<void>((resolve) => {
      this.resolve = resolve
    })
    this.deadlines.add(this)
    stream.pipe(res, { end: false })
    // After the pipe's own listener: by now the chunk is written.
    stream.on('data', (chunk: Buffer) => this.wrote(chunk))
    stream.once('end', () => this.finish()).once('failed', () => this.finish())
    res.on('drain', () => this.noteStall()).once('close', () => this.left())
    if (stream.hasFailed) this.finish()
  }

  tick(nowMs: number): void {
    if (this.stalledMs === null && !this.isEnding && nowMs - this.wroteMs > HEARTBEAT_MS) {
      this.wroteMs = nowMs
      this.res.write(this.stream.form.heartbeat ?? this.ingress.envelope.heartbeat)
    }
  }

  private wrote(chunk: Buffer): void {
    this.wroteMs = performance.now()
    this.sentBytes += chunk.length
    this.chunks += 1
    // The pipe waits for the client.
    if (this.stream.readableFlowing === false) this.stalledMs ??= this.wroteMs
  }

  private noteStall(): void {
    if (this.stalledMs === null) return
    this.clientWaitMs += performance.now() - this.stalledMs
    this.stalledMs = null
  }

  /**
   * A complete stream ends as HTTP ends. One that failed gets its error event and then a cut connection: without the
   * last chunk, even a client that only counts bytes sees that it is not complete.
   */
  private finish(): void {
    if (this.isEnding) return
    const { stream, res, x } = this
    const { translation } = stream
    this.noteStall()
    this.isEnding = true
    if (translation.outcome === 'complete') {
      res.end()
      return
    }
    // The client may be behind: what has been translated goes before the error.
    stream.unpipe(res)
    const rest: unknown = stream.read()
    if (Buffer.isBuffer(rest)) {
      this.sentBytes += rest.length
      this.chunks += 1
      res.write(rest)
    }
    const error = translation.error ?? new GatewayError('bug', 'The stream ended unfinished.').wire
    x.endedWithError = true
    const shown = withoutSecrets(error)
    const frame = translation.errorFrame(shown) ?? this.ingress.encodeStreamError(shown, x.id)
    breakOff(res, stream.form.events(frame))
  }

  private left(): void {
    this.deadlines.remove(this)
    this.isEnding = true
    this.noteStall()
    this.relayMs = performance.now() - this.beganMs
    this.stream.leave()
    this.resolve()
  }
}
