/**
 * One request on one upstream connection, as the handler of its reply.
 * Knows no client socket. Its callbacks feed the translation directly: a response body as a Readable
 * costs 60 µs per request that this does not.
 */
import type { IncomingHttpHeaders } from 'node:http'
import type { JsonObject } from '../chat/json.js'
import type { ReplyController, ReplyHandler } from '../upstreams/connection.js'
import { gatewayError, GatewayError, type WireError } from '../errors.js'
import type { Timed, Deadlines } from './deadlines.js'
import type { Exchange } from './exchange.js'
import { transportError, UNFORESEEN } from './fault.js'
import type { Target } from './generation.js'
import type { Call } from './receive.js'
import { ReplyStream } from './reply-stream.js'
import { openTranslation, readReply } from './replies.js'

/** What goes upstream: made once, however many attempts are made with it. */
export interface Outgoing {
  readonly path: string
  readonly headers: readonly string[]
  readonly body: Buffer | string
  /** What the body says, where it was said anew; null for the client's own bytes. */
  readonly said: JsonObject | null
}

/** What the client gets: a whole body, or a stream that has begun. */
export type Answer =
  | { readonly kind: 'whole'; readonly body: string | Buffer; readonly stream: boolean }
  | { readonly kind: 'stream'; readonly stream: ReplyStream }

/** A whole reply above this is refused; the largest recorded one is 2 MB of image. */
const MAX_REPLY_BYTES = 64 * 1024 * 1024
/** As much of an error body as is read. */
const MAX_ERROR_BYTES = 64 * 1024
/** How long the head may be held for first content; then proxies want to see a status. */
const COMMIT_WAIT_MS = 1000
/** How long an upstream may take to end its body after its own terminator, to reuse the socket. */
const LINGER_MS = 1000

type Phase = 'connecting' | 'waiting' | 'error' | 'whole' | 'stream' | 'lingering' | 'over'

/** Settles its promise exactly once: with an answer that has content, or with the error that came first. */
export class Attempt implements ReplyHandler, Timed {
  private readonly x: Exchange
  private readonly call: Call
  private readonly target: Target
  private readonly deadlines: Deadlines
  private readonly resolve: (answer: Answer) => void
  private readonly reject: (error: GatewayError) => void
  private phase: Phase = 'connecting'
  private committed = false
  /** The upstream's body has ended, well or badly; what is left of it waits for the client to read. */
  private heardAll = false
  private controller: ReplyController | null = null
  private stream: ReplyStream | null = null
  private chunks: Buffer[] = []
  private bytes = 0
  private headers: IncomingHttpHeaders = {}
  private dispatchedMs = 0
  private sentMs = 0
  private headMs = 0
  /** When the upstream was last heard; moves on while we are the ones who do not listen. */
  private heardMs = 0
  private pausedMs: number | null = null
  private lingerMs = 0

  constructor(
    x: Exchange,
    call: Call,
    target: Target,
    deadlines: Deadlines,
    resolve: (answer: Answer) => void,
    reject: (error: GatewayError) => void,
  ) {
    this.x = x
    this.call = call
    this.target = target
    this.deadlines = deadlines
    this.resolve = resolve
    this.reject = reject
  }

  send(outgoing: Outgoing): void {
    this.dispatchedMs = performance.now()
    this.target.series.inflight(1)
    this.deadlines.add(this)
    this.x.cancellation.onCancel((reason) => this.cancel(reason))
    if (this.phase === 'over') return
    const { pool } = this.target.upstream
    const { path, body } = outgoing
    pool.dispatch({ path, method: 'POST', headers: outgoing.headers, body }, this)
  }

  onRequestStart(controller: ReplyController): void {
    this.controller = controller
    if (this.phase === 'over') {
      controller.abort(new GatewayError('client_gone', 'The exchange ended before it was sent.'))
      return
    }
    this.phase = 'waiting'
    this.sentMs = performance.now()
    this.x.facts.connectMs = this.sentMs - this.dispatchedMs
  }

  onResponseStart(
    _controller: ReplyController,
    status: number,
    headers: IncomingHttpHeaders,
  ): void {
    if (this.phase !== 'waiting' || status < 200) return
    const { facts } = this.x
    this.headMs = performance.now()
    this.heardMs = this.headMs
    this.headers = headers
    facts.firstByteMs = this.headMs - this.sentMs
    facts.upstreamStatus = status
    facts.upstreamRequestId = headerText(headers['x-request-id'] ?? headers['request-id'])
    if (status !== 200) {
      this.phase = 'error'
      return
    }
    const wrong = unreadable(headers)
    if (wrong !== null) this.fail(wrong)
    else if (this.call.request.stream && isEventStream(headers)) this.guard(() => this.openStream())
    else this.phase = 'whole'
  }

  onResponseData(controller: ReplyController, chunk: Buffer): void {
    if (this.phase === 'stream') {
      this.feed(controller, chunk)
      return
    }
    this.heardMs = performance.now()
    const room = this.phase === 'whole' ? MAX_REPLY_BYTES : MAX_ERROR_BYTES
    if (this.phase !== 'whole' && this.phase !== 'error') return
    this.bytes += chunk.length
    if (this.bytes <= room) this.chunks.push(Buffer.from(chunk))
    else if (this.phase === 'error') this.refusedByUpstream()
    else this.fail({ kind: 'upstream_malformed', message: 'The upstream’s reply is too large.' })
  }

  onResponseEnd(): void {
    switch (this.phase) {
      case 'stream':
        this.heardAll = true
        this.stream?.end()
        return
      case 'error':
        this.guard(() => this.refusedByUpstream())
        return
      case 'whole':
        this.guard(() => this.finishWhole())
        return
      case 'lingering':
        this.over()
        return
      default:
    }
  }

  onResponseError(_controller: ReplyController, cause: Error): void {
    switch (this.phase) {
      case 'stream':
        // A failing source is data: the translation hears an end of file and says what is missing.
        this.heardAll = true
        this.stream?.end()
        return
      case 'lingering':
        this.over()
        return
      case 'error':
        this.refusedByUpstream()
        return
      case 'over':
        return
      default:
        this.fail(transportError(cause, this.phase === 'whole'), cause)
    }
  }

  tick(nowMs: number): void {
    const { timeouts } = this.target.upstream.config
    const silentMs = nowMs - this.heardMs
    switch (this.phase) {
      case 'connecting':
        if (nowMs - this.dispatchedMs > timeouts.connectMs) this.late('did not accept a connection')
        return
      case 'waiting':
        if (nowMs - this.sentMs > timeouts.firstByteMs) this.late('did not begin to answer')
        break
      case 'lingering':
        if (nowMs - this.lingerMs > LINGER_MS) this.abandon()
        return
      case 'over':
        return
      default:
        if (this.isListening() && silentMs > timeouts.idleMs) this.late('fell silent')
    }
    if (nowMs - this.x.startedMs > timeouts.totalMs) this.late('took too long')
    if (this.phase === 'stream' && nowMs - this.headMs > COMMIT_WAIT_MS) this.commit()
  }

  /** A codec that throws must not leave the exchange without an end. */
  private guard(step: () => void): void {
    try {
      step()
    } catch (cause) {
      this.fail(UNFORESEEN, cause)
    }
  }

  private openStream(): void {
    const stream = new ReplyStream(openTranslation(this.x, this.call, this.target), this.x)
    this.stream = stream
    this.x.facts.verdict = stream.translation
    stream.onStep = () => this.step(stream)
    stream.onDrain = () => this.resume()
    this.phase = 'stream'
  }

  private feed(controller: ReplyController, chunk: Buffer): void {
    const { stream } = this
    if (stream === null) return
    const nowMs = performance.now()
    if (this.committed) this.target.series.chunkGap((nowMs - this.heardMs) / 1000)
    this.heardMs = nowMs
    const takesMore = stream.write(chunk, nowMs)
    // Where this chunk ended the stream nobody would resume, and the socket could not be used again.
    if (takesMore || this.phase !== 'stream' || this.pausedMs !== null) return
    this.pausedMs = nowMs
    controller.pause()
  }

  /** False while silence is not the upstream's: it is paused, or has said all. */
  private isListening(): boolean {
    return this.pausedMs === null && !this.heardAll
  }

  private resume(): void {
    if (this.pausedMs === null) return
    const nowMs = performance.now()
    this.target.series.backpressure('client', (nowMs - this.pausedMs) / 1000)
    this.pausedMs = null
    this.heardMs = nowMs
    this.controller?.resume()
  }

  /** After each piece of the stream: commit, refuse or finish. */
  private step(stream: ReplyStream): void {
    const { translation } = stream
    if (this.phase !== 'stream') return
    if (translation.outcome === 'failed') {
      const error = translation.error ?? { kind: 'bug', message: 'failed without a reason' }
      if (this.committed) this.breakOff(error)
      else this.fail(error)
      return
    }
    if (translation.content) this.commit()
    if (translation.outcome === 'complete') this.linger(stream)
  }

  /** The reply is whole. Its socket can be used again if the upstream now ends the body as well. */
  private linger(stream: ReplyStream): void {
    this.target.series.attempt('ok')
    if (this.heardAll) {
      this.over()
    } else {
      this.phase = 'lingering'
      this.lingerMs = performance.now()
      this.controller?.resume()
    }
    stream.end()
  }

  /** Ends a stream that the client has the beginning of; the relay tells it why. */
  private breakOff(error: WireError): void {
    const { stream } = this
    this.target.series.attempt(error.kind)
    this.abandon()
    stream?.translation.fail(error)
    stream?.end()
  }

  private commit(): void {
    if (this.committed || this.stream === null) return
    this.committed = true
    this.resolve({ kind: 'stream', stream: this.stream })
  }

  private finishWhole(): void {
    const text = Buffer.concat(this.chunks)
    const before = performance.now()
    this.x.facts.replyMs = before - this.headMs
    const read = readReply(text, this.x, this.call, this.target, isEventStream(this.headers))
    this.over()
    this.x.facts.translateMs += performance.now() - before
    this.x.facts.verdict = read.verdict
    if (read.verdict.error !== null) {
      this.target.series.attempt(read.verdict.error.kind)
      this.reject(gatewayError(read.verdict.error))
      return
    }
    this.target.series.attempt('ok')
    this.resolve({ kind: 'whole', body: read.body, stream: this.call.request.stream })
  }

  private refusedByUpstream(): void {
    const status = this.x.facts.upstreamStatus ?? 0
    const text = Buffer.concat(this.chunks).toString('utf8')
    this.fail(this.target.egress.decodeError(status, this.headers, text))
  }

  private late(what: string): void {
    const error: WireError = { kind: 'upstream_timeout', message: `The upstream ${what} in time.` }
    if (this.phase === 'stream' && this.committed) this.breakOff(error)
    // Its status says more than that the rest of its words did not come.
    else if (this.phase === 'error') this.refusedByUpstream()
    else this.fail(error)
  }

  private cancel(reason: GatewayError): void {
    if (this.phase === 'over') return
    if (this.phase === 'lingering') {
      this.abandon()
    } else if (this.committed && reason.kind !== 'client_gone') {
      this.breakOff(reason.wire)
    } else {
      this.fail(reason.wire)
    }
  }

  private fail(error: WireError, cause?: unknown): void {
    if (this.phase === 'over') return
    this.target.series.attempt(error.kind)
    this.stream?.destroy()
    this.abandon()
    this.reject(gatewayError(error, cause))
  }

  /** Ends the upstream side; its socket is destroyed, never reused. */
  private abandon(): void {
    if (this.phase === 'over') return
    this.over()
    this.controller?.abort(new GatewayError('client_gone', 'The exchange has ended.'))
  }

  private over(): void {
    if (this.phase === 'over') return
    this.phase = 'over'
    this.chunks = []
    this.deadlines.remove(this)
    this.target.series.inflight(-1)
  }
}

function headerText(value: string | string[] | undefined): string | null {
  if (value === undefined) return null
  return (typeof value === 'string' ? value : value.join(', ')).slice(0, 128)
}

function isEventStream(headers: IncomingHttpHeaders): boolean {
  return (headers['content-type'] ?? '').toLowerCase().startsWith('text/event-stream')
}

/** A 200 that is not what was asked for: compressed though identity was asked, or not of this API. */
function unreadable(headers: IncomingHttpHeaders): WireError | null {
  const encoding = headers['content-encoding']
  if (encoding !== undefined && encoding !== 'identity') {
    return { kind: 'upstream_malformed', message: 'The upstream compressed its reply unasked.' }
  }
  const type = (headers['content-type'] ?? '').toLowerCase()
  if (type === '' || type.includes('json') || isEventStream(headers)) return null
  return { kind: 'upstream_malformed', message: 'The upstream’s reply is of another content type.' }
}
