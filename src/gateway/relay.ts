/**
 * The reply on its way to the client: head first, then one of two bodies. From here on nothing is
 * retried. Knows no upstream socket and no dialect beyond the client's.
 */
import type { ServerResponse } from 'node:http'
import type { Ingress } from '../dialects/dialect.js'
import { GatewayError } from '../errors.js'
import type { Answer } from './attempt.js'
import type { Deadlines, Timed } from './deadlines.js'
import type { Exchange } from './exchange.js'
import type { ReplyStream } from './reply-stream.js'

/** Proxies drop silent connections after 30–60 s; vLLM and OpenRouter send comments every 10–15 s. */
const HEARTBEAT_MS = 15_000
/** A comment is legal for every SSE client and invisible to the SDKs. */
const HEARTBEAT = ': keep-alive\n\n'
/** A client that takes nothing for this long has hung; nginx's send_timeout is 60 s. */
const WRITE_STALL_MS = 30_000

/** Sends the answer; resolves when the client has it all, or is gone. */
export function relay(
  x: Exchange,
  answer: Answer,
  ingress: Ingress,
  deadlines: Deadlines,
): Promise<void> | undefined {
  x.cancellation.check()
  if (answer.kind === 'stream') return new StreamRelay(x, answer.stream, ingress, deadlines).run()
  const { body } = answer
  const length = typeof body === 'string' ? Buffer.byteLength(body) : body.length
  x.facts.sentBytes = length
  const type = answer.stream ? 'text/event-stream; charset=utf-8' : 'application/json'
  const headers = headOf(x, type)
  if (answer.stream) headers.push(...STREAM_HEADERS)
  headers.push('content-length', String(length))
  x.res.writeHead(200, headers)
  // A string leaves with the head in one write; a Buffer would need a gathered one.
  x.res.end(body)
  return undefined
}

const STREAM_HEADERS = ['cache-control', 'no-cache, no-transform', 'x-accel-buffering', 'no']

/** Name, value, …: what every answer of an upstream carries. */
function headOf(x: Exchange, contentType: string): string[] {
  const { facts, generation } = x
  const headers = [
    'content-type',
    contentType,
    'x-request-id',
    x.id,
    'x-sluice-upstream',
    facts.target?.upstream.config.name ?? '',
    'x-sluice-generation',
    String(generation.snapshot.generation),
    'server-timing',
    serverTiming(x),
  ]
  if (facts.losses.length > 0) headers.push('x-sluice-lost', facts.losses.join(', '))
  return headers
}

/** In ms; `upstream` is the time until its first byte. */
function serverTiming(x: Exchange): string {
  const { authenticateMs, routeMs, connectMs, firstByteMs } = x.facts
  const upstreamMs = (connectMs ?? 0) + (firstByteMs ?? 0)
  return (
    `auth;dur=${short(authenticateMs ?? 0)}, route;dur=${short(routeMs ?? 0)}, ` +
    `limit;dur=0, upstream;dur=${short(upstreamMs)}`
  )
}

/** Three decimals, without the cost of toFixed. */
function short(ms: number): number {
  return Math.round(ms * 1000) / 1000
}

/** One streamed reply: pumps, keeps alive, and ends it honestly. */
class StreamRelay implements Timed {
  private readonly x: Exchange
  private readonly res: ServerResponse
  private readonly stream: ReplyStream
  private readonly ingress: Ingress
  private readonly deadlines: Deadlines
  private readonly beganMs = performance.now()
  private wroteMs = this.beganMs
  private stalledMs: number | null = null
  private resolve: () => void = () => undefined

  constructor(x: Exchange, stream: ReplyStream, ingress: Ingress, deadlines: Deadlines) {
    this.x = x
    this.res = x.res
    this.stream = stream
    this.ingress = ingress
    this.deadlines = deadlines
  }

  run(): Promise<void> {
    const { res, stream, x } = this
    x.facts.firstContentMs = this.beganMs - x.startedMs
    const headers = headOf(x, 'text/event-stream; charset=utf-8')
    headers.push(...STREAM_HEADERS)
    res.writeHead(200, headers)
    const closed = new Promise<void>((resolve) => {
      this.resolve = resolve
    })
    this.deadlines.add(this)
    res.once('close', () => this.over())
    res.on('drain', () => this.drained())
    stream.on('data', (chunk: Buffer) => this.pass(chunk))
    stream.once('end', () => this.finish())
    return closed
  }

  tick(nowMs: number): void {
    if (this.stalledMs !== null && nowMs - this.stalledMs > WRITE_STALL_MS) {
      this.res.destroy()
      return
    }
    if (this.stalledMs === null && nowMs - this.wroteMs > HEARTBEAT_MS) {
      this.wroteMs = nowMs
      this.res.write(HEARTBEAT)
    }
  }

  private pass(chunk: Buffer): void {
    this.wroteMs = performance.now()
    this.x.facts.sentBytes += chunk.length
    if (this.res.write(chunk)) return
    this.stalledMs = this.wroteMs
    this.stream.pause()
  }

  private drained(): void {
    if (this.stalledMs === null) return
    this.x.facts.clientWaitMs += performance.now() - this.stalledMs
    this.stalledMs = null
    this.stream.resume()
  }

  /**
   * A whole stream ends as HTTP ends. One that failed gets its error event and then a cut connection:
   * without the last chunk, even a client that only counts bytes sees that it is not complete.
   */
  private finish(): void {
    const { translation } = this.stream
    if (translation.outcome === 'complete') {
      this.res.end(() => this.over())
      return
    }
    const error = translation.error ?? new GatewayError('bug', 'The stream ended unfinished.').wire
    this.res.write(this.ingress.encodeStreamError(error), () => this.res.destroy())
  }

  private over(): void {
    this.deadlines.remove(this)
    this.x.facts.relayMs = performance.now() - this.beganMs
    this.stream.destroy()
    this.resolve()
  }
}
