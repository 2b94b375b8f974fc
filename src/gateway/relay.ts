/**
 * The reply on its way to the client: head first, then one of two bodies. From here on nothing is
 * retried. Knows no upstream socket and no dialect beyond the client's.
 */
import type { Ingress } from '../dialects/dialect.js'
import { GatewayError } from '../errors.js'
import type { Response, ResponseWatcher } from '../http/response.js'
import { decimal } from '../wire/decimal.js'
import { withoutSecrets } from '../wire/error-body.js'
import type { Answer } from './answer.js'
import type { Deadlines, Timed } from './deadlines.js'
import type { Exchange, Facts } from './exchange.js'
import { LANDED } from './in-flight.js'
import type { ReplySink, ReplyStream } from './reply-stream.js'

/** Proxies drop silent connections after 30–60 s; vLLM and OpenRouter send comments every 10–15 s. */
const HEARTBEAT_MS = 15_000
/** A comment is legal for every SSE client and invisible to the SDKs. */
const HEARTBEAT = ': keep-alive\n\n'
/** A client that takes nothing for this long has hung; nginx's send_timeout is 60 s. */
const WRITE_STALL_MS = 30_000
/** A whole body leaves in pieces of this, so that one that moves can be told from one that does not. */
const SLICE_BYTES = 65_536

/** Sends the answer; resolves when the client has it all, or is gone. */
export function relay(
  x: Exchange,
  answer: Answer,
  ingress: Ingress,
  deadlines: Deadlines,
): Promise<void> | undefined {
  x.cancellation.check()
  if (answer.kind === 'stream') return new StreamRelay(x, answer.stream, ingress, deadlines).run()
  const { body, bytes: length } = answer
  const { res } = x
  x.facts.sentBytes = length
  const lines = linesOf(x, answer.stream ? EVENTS_LINE : JSON_LINE)
  const fields = fieldsOf(x, lostOf(x.facts))
  const headers = answer.stream ? [...fields, ...STREAM_HEADERS] : fields
  if (length > SLICE_BYTES) {
    res.writeHead(200, [...headers, 'content-length', String(length)], lines)
    return new WholeRelay(res, bytesOf(body), deadlines).run()
  }
  res.send(200, headers, body, length, lines)
  // Nothing is left to wait for where the system took it all, as it does for most replies.
  if (res.writableFinished) return undefined
  return new WholeRelay(res, null, deadlines).run()
}

function bytesOf(body: string | Buffer): Buffer {
  return typeof body === 'string' ? Buffer.from(body) : body
}

const STREAM_HEADERS = ['cache-control', 'no-cache, no-transform', 'x-accel-buffering', 'no']

/** The type's line, and the beginning of the id's. */
const JSON_LINE = 'content-type: application/json\r\nx-request-id: '
const EVENTS_LINE = 'content-type: text/event-stream; charset=utf-8\r\nx-request-id: '
const NO_LIMIT = ', limit;dur=0, upstream;dur='

/**
 * What every answer of an upstream carries: ids and numbers of the gateway's own, and the target's lines. Times are
 * in ms; `upstream` is the time until its first byte.
 */
function linesOf(x: Exchange, typeLine: string): string {
  const { target, authenticateMs, routeMs, admitMs, connectMs, firstByteMs } = x.facts
  const lines = target?.answerLines ?? ''
  const auth = decimal(authenticateMs ?? 0)
  const route = decimal(routeMs ?? 0)
  // Most are not limited; the constant is one part instead of three.
  const limit = admitMs === null ? NO_LIMIT : `, limit;dur=${decimal(admitMs)}, upstream;dur=`
  const upstream = decimal((connectMs ?? 0) + (firstByteMs ?? 0))
  return `${typeLine}${x.id}\r\n${lines}server-timing: auth;dur=${auth}, route;dur=${route}${limit}${upstream}\r\n`
}

/** Name, value, …: what an answer says of losses and of limits. */
function fieldsOf({ rateHeaders }: Exchange, lost: readonly string[]): readonly string[] {
  return lost.length === 0 ? rateHeaders : ['x-sluice-lost', lost.join(', '), ...rateHeaders]
}

/** Of a whole reply it is known what is lost either way; of a stream the head says only the one. */
function lostOf({ losses, verdict }: Facts): readonly string[] {
  const said = verdict?.lost ?? []
  return said.length === 0 ? losses : [...losses, ...said]
}

/** A whole reply that the client does not take at once; given up where it takes nothing at all. */
class WholeRelay implements Timed, ResponseWatcher {
  place = LANDED
  private readonly res: Response
  private readonly deadlines: Deadlines
  private rest: Buffer | null
  private movedMs = 0
  private resolve: () => void = () => undefined

  /** `rest` is what has to be written; null where all is and only has to leave. */
  constructor(res: Response, rest: Buffer | null, deadlines: Deadlines) {
    this.res = res
    this.rest = rest
    this.deadlines = deadlines
  }

  run(): Promise<void> {
    const closed = new Promise<void>((resolve) => {
      this.resolve = resolve
    })
    this.deadlines.add(this)
    this.res.watcher = this
    this.drained()
    return closed
  }

  closed(): void {
    this.deadlines.remove(this)
    this.resolve()
  }

  tick(nowMs: number): void {
    if (nowMs - this.movedMs > WRITE_STALL_MS) this.res.destroy()
  }

  drained(): void {
    this.movedMs = performance.now()
    while (this.rest !== null) {
      const slice = this.rest.subarray(0, SLICE_BYTES)
      this.rest = this.rest.length > SLICE_BYTES ? this.rest.subarray(SLICE_BYTES) : null
      if (this.rest === null) this.res.end(slice)
      else if (!this.res.write(slice)) return
    }
  }
}

/** One streamed reply: pumps, keeps alive, and ends it honestly. */
class StreamRelay implements Timed, ReplySink, ResponseWatcher {
  place = LANDED
  private readonly x: Exchange
  private readonly res: Response
  private readonly stream: ReplyStream
  private readonly ingress: Ingress
  private readonly deadlines: Deadlines
  private readonly beganMs = performance.now()
  private wroteMs = this.beganMs
  /** Since when the client has taken nothing of what waits for it; null while nothing waits. */
  private stalledMs: number | null = null
  private isEnding = false
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
    const headers = [...fieldsOf(x, x.facts.losses), ...STREAM_HEADERS]
    res.writeHead(200, headers, linesOf(x, EVENTS_LINE))
    // The head goes out with the first piece; where there is none yet, it must not wait for it.
    if (!stream.isWaiting) res.flushHeaders()
    const closed = new Promise<void>((resolve) => {
      this.resolve = resolve
    })
    this.deadlines.add(this)
    res.watcher = this
    stream.open(this)
    return closed
  }

  tick(nowMs: number): void {
    if (this.stalledMs !== null) {
      if (nowMs - this.stalledMs > WRITE_STALL_MS) this.res.destroy()
      return
    }
    if (nowMs - this.wroteMs > HEARTBEAT_MS) {
      this.wroteMs = nowMs
      this.res.write(HEARTBEAT)
    }
  }

  take(piece: string | Buffer): boolean {
    this.wroteMs = performance.now()
    const length = Buffer.byteLength(piece)
    this.x.facts.sentBytes += length
    if (this.res.write(piece, length)) return true
    this.stalledMs ??= this.wroteMs
    return false
  }

  drained(): void {
    if (this.isEnding) this.stalledMs = performance.now()
    if (this.stalledMs === null || this.isEnding) return
    this.noteStall()
    this.stream.drained()
  }

  private noteStall(): void {
    if (this.stalledMs === null) return
    this.x.facts.clientWaitMs += performance.now() - this.stalledMs
    this.stalledMs = null
  }

  /**
   * A whole stream ends as HTTP ends. One that failed gets its error event and then a cut connection:
   * without the last chunk, even a client that only counts bytes sees that it is not complete.
   */
  finish(): void {
    const { translation } = this.stream
    // Nothing more may be written but this, and a client that does not take it is given up.
    this.noteStall()
    this.isEnding = true
    this.stalledMs = performance.now()
    if (translation.outcome === 'complete') {
      this.res.end()
      return
    }
    const error = translation.error ?? new GatewayError('bug', 'The stream ended unfinished.').wire
    this.res.breakOff(this.ingress.encodeStreamError(withoutSecrets(error)))
  }

  closed(): void {
    this.deadlines.remove(this)
    // How long the last bytes take is no standing still.
    if (!this.isEnding) this.noteStall()
    this.x.facts.relayMs = performance.now() - this.beganMs
    this.stream.destroy()
    this.resolve()
  }
}
