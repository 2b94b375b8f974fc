/**
 * The reply on its way to the client: head first, then one of two bodies. From here on nothing is
 * retried. Knows no upstream socket and no dialect beyond the client's.
 */
import type { Ingress } from '../dialects/dialect.js'
import { GatewayError } from '../errors.js'
import type { HttpResponse } from '../http/message.js'
import { beginReply, breakOff, hasLeft, sendReply } from '../http/respond.js'
import { decimal } from '../wire/decimal.js'
import { withoutSecrets } from '../wire/error-body.js'
import type { Answer } from './answer.js'
import type { Deadlines, Timed } from './deadlines.js'
import type { Exchange, Facts } from './exchange.js'
import { LANDED } from './in-flight.js'
import type { ReplyTransform } from './streams/reply-transform.js'
import { EVENT_STREAM } from './streams/stream-form.js'

/** Proxies drop silent connections after 30–60 s; vLLM and OpenRouter send comments every 10–15 s. */
const HEARTBEAT_MS = 15_000

/** Sends the answer; resolves when the client has it all, or is gone. */
export function relay(
  x: Exchange,
  answer: Answer,
  ingress: Ingress,
  deadlines: Deadlines,
): Promise<void> | undefined {
  x.cancellation.check()
  if (answer.kind === 'stream') return new StreamRelay(x, answer.stream, ingress, deadlines).run()
  const { res } = x
  x.facts.sentBytes = answer.bytes
  const headers = headersOf(
    x,
    answer.stream ? EVENT_STREAM.type : JSON_TYPE,
    lostOf(x.facts),
    ingress,
  )
  if (answer.stream) headers.push(...streamHeaders(res))
  sendReply(res, 200, headers, answer.body)
  // The operating system takes most replies at once.
  if (hasLeft(res)) return undefined
  return new Promise((resolve) => res.once('close', resolve))
}

/** Proxies must neither hold nor change a stream. What the dashboard has set for the reply is kept. */
function streamHeaders(res: HttpResponse): string[] {
  const set = res.getHeader('cache-control')
  const cacheControl = `no-cache, no-transform${typeof set === 'string' ? `, ${set}` : ''}`
  return ['cache-control', cacheControl, 'x-accel-buffering', 'no']
}

const JSON_TYPE = 'application/json'

/** Name, value, …: what every reply of an upstream carries. Times are in ms; `upstream` is until its first byte. */
function headersOf(
  x: Exchange,
  type: string,
  lost: readonly string[],
  { envelope }: Ingress,
): string[] {
  const { target, authenticateMs, routeMs, admitMs, connectMs, firstByteMs } = x.facts
  const auth = decimal(authenticateMs ?? 0)
  const route = decimal(routeMs ?? 0)
  const limit = decimal(admitMs ?? 0)
  const upstream = decimal((connectMs ?? 0) + (firstByteMs ?? 0))
  const timing = `auth;dur=${auth}, route;dur=${route}, limit;dur=${limit}, upstream;dur=${upstream}`
  const headers = ['content-type', type, 'x-request-id', x.id, 'server-timing', timing]
  if (envelope.idHeader !== null) headers.push(envelope.idHeader, x.id)
  if (target !== null) headers.push(...target.replyHeaders)
  if (lost.length > 0) headers.push('x-sluice-lost', lost.join(', '))
  if (x.rateHeaders.length > 0) headers.push(...x.rateHeaders)
  return headers
}

/** Of a whole reply it is known what is lost either way; of a stream the head says only the one. */
function lostOf({ losses, verdict }: Facts): readonly string[] {
  const said = verdict?.lost ?? []
  return said.length === 0 ? losses : [...losses, ...said]
}

/** One streamed reply: piped to the client, kept alive, and ended honestly. */
class StreamRelay implements Timed {
  place = LANDED
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

  constructor(x: Exchange, stream: ReplyTransform, ingress: Ingress, deadlines: Deadlines) {
    this.x = x
    this.res = x.res
    this.stream = stream
    this.ingress = ingress
    this.deadlines = deadlines
  }

  run(): Promise<void> {
    const { res, stream, x } = this
    x.facts.firstContentMs = this.beganMs - x.startedMs
    const headers = headersOf(x, stream.form.type, x.facts.losses, this.ingress)
    beginReply(res, 200, [...headers, ...streamHeaders(res)])
    // The head goes out with the first piece; if there is none yet, it must not wait for it.
    if (stream.readableLength === 0) res.flushHeaders?.()
    const closed = new Promise<void>((resolve) => {
      this.resolve = resolve
    })
    this.deadlines.add(this)
    stream.pipe(res, { end: false })
    // After the pipe's own listener: by now the piece is written.
    stream.on('data', (piece: Buffer) => this.wrote(piece))
    stream.once('end', () => this.finish()).once('failed', () => this.finish())
    res.on('drain', () => this.noteStall()).once('close', () => this.closed())
    if (stream.hasFailed) this.finish()
    return closed
  }

  tick(nowMs: number): void {
    if (this.stalledMs === null && !this.isEnding && nowMs - this.wroteMs > HEARTBEAT_MS) {
      this.wroteMs = nowMs
      this.res.write(this.stream.form.heartbeat ?? this.ingress.envelope.heartbeat)
    }
  }

  private wrote(piece: Buffer): void {
    this.wroteMs = performance.now()
    this.x.facts.sentBytes += piece.length
    // The pipe waits for the client.
    if (this.stream.readableFlowing === false) this.stalledMs ??= this.wroteMs
  }

  private noteStall(): void {
    if (this.stalledMs === null) return
    this.x.facts.clientWaitMs += performance.now() - this.stalledMs
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
      x.facts.sentBytes += rest.length
      res.write(rest)
    }
    const error = translation.error ?? new GatewayError('bug', 'The stream ended unfinished.').wire
    x.isBrokenOff = true
    breakOff(res, stream.form.events(this.ingress.encodeStreamError(withoutSecrets(error), x.id)))
  }

  private closed(): void {
    this.deadlines.remove(this)
    this.isEnding = true
    this.noteStall()
    this.x.facts.relayMs = performance.now() - this.beganMs
    this.stream.leave()
    this.resolve()
  }
}
