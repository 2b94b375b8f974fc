/**
 * Sends one native request to its upstream: passes the body up and the reply down, and applies the upstream's
 * timeouts.
 */
import type { Agent, IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { Transform, type Readable, type TransformCallback } from 'node:stream'
import { GatewayError, gatewayError, type ErrorKind, bodyTooLarge } from '../../errors.js'
import type { ReplyResult } from '../../formats/translated-stream.js'
import type { Usage } from '../../formats/chat/usage.js'
import { parseReply } from '../../formats/wire/json/parse-body.js'
import { usageIn as usageOfReply } from '../../formats/wire/usage-meter.js'
import { headerOf } from '../../http/message.js'
import { sendNative } from '../../http/native-proxy.js'
import { beginReply } from '../../http/respond.js'
import type { AttemptResult } from '../attempts/attempt-result.js'
import { ATTEMPT_STATES, stateAfter, type AttemptState } from '../attempts/attempt-states.js'
import { requestIdIn } from '../attempts/read-reply.js'
import type { Exchange } from '../client-exchange.js'
import { uploadAddress } from '../upload-ticket.js'
import { AttemptClock, type Timeouts, type Timed } from '../timeouts.js'
import type { DrainedReply } from '../drained-replies.js'
import { NOT_LISTED } from '../in-flight-list.js'
import { timeoutErrorOf, transportError, UNEXPECTED_FAILURE, withUpstream } from '../transport-errors.js'
import { nativeReplyResult, type NativeCall, type NativeRun } from './admit-native.js'
import { headersForClient } from './native-headers.js'
import type { Call } from '../phases/call.js'
import { sendJudged } from './judge-native.js'
import type { ObjectReplies } from './object-replies.js'

/** The body of a request: the client's, and the stream that is sent. */
interface NativeBody {
  readonly source: RequestLimit | null
  readonly body: Readable
}

/**
 * One native HTTP request. `send` resolves when the client has the whole reply, and rejects with
 * `GatewayError` if the reply fails.
 */
export class NativeAttempt implements Timed {
  listIndex = NOT_LISTED
  private readonly x: Exchange
  private readonly call: NativeCall
  private readonly run: NativeRun
  private readonly timeouts: Timeouts
  private readonly clock: AttemptClock
  private state: AttemptState = 'connecting'
  private beganMs = 0
  private abort: () => void = () => undefined
  private watcher: ReplyWatcher | null = null
  /** Set if a guardrail refused the reply and the rest of it is read for its usage. */
  private drainedReply: DrainedReply | null = null
  private resolve: () => void = () => undefined
  private reject: (error: GatewayError) => void = () => undefined

  constructor(x: Exchange, call: NativeCall, run: NativeRun) {
    this.x = x
    this.call = call
    this.run = run
    this.timeouts = run.timeouts
    const { connectMs, firstByteWholeMs, idleMs, totalMs } = call.target.upstream.config.timeouts
    const { startedMs } = x
    this.clock = new AttemptClock({
      ...{ connectMs, firstByteMs: firstByteWholeMs, idleMs, totalMs, startedMs },
    })
  }

  /** Sends the body; `source` is the client's, of which it is made. */
  send(agent: Agent, { source, body }: NativeBody): Promise<void> {
    const { x, call } = this
    if (source !== null) {
      const { onBytes } = source
      source.onBytes = (bytes) => {
        onBytes(bytes)
        // The timeout for the first byte begins when the whole request is sent.
        this.clock.begin(performance.now())
      }
    }
    this.beganMs = performance.now()
    this.clock.begin(this.beganMs)
    call.target.series.inflight(1)
    this.timeouts.add(this)
    return new Promise((resolve, reject) => {
      this.resolve = resolve
      this.reject = reject
      body.once('error', (error) => this.fail(error))
      if (body.errored !== null) this.fail(body.errored)
      x.cancellation.onCancel((reason) => this.fail(reason))
      if (this.state === 'over') return
      this.abort = sendNative({ ...call, agent, socket: x.req.socket }, body, {
        connected: () => this.connected(),
        replied: (reply) => this.guard(() => this.begin(reply)),
        failed: (error) => this.failedInTransit(error),
      })
    })
  }

  private connected(): void {
    if (this.state !== 'connecting') return
    const nowMs = performance.now()
    const { result } = this.run
    result.wasSent = true
    result.connectMs = nowMs - this.beganMs
    this.state = stateAfter(this.state, 'sent')
    this.clock.begin(nowMs)
  }

  private begin(reply: IncomingMessage): void {
    if (this.state === 'over') {
      reply.destroy()
      return
    }
    this.connected()
    const { x, call, run } = this
    const { result, delivery } = run
    const nowMs = performance.now()
    const status = reply.statusCode ?? 0
    reply.once('error', (error) => this.failedInTransit(error))
    this.state = stateAfter(this.state, 'events')
    this.clock.head(nowMs)
    result.status = status
    result.requestId = requestIdIn(reply.headers)
    call.replied(status, reply.headers)
    result.firstByteMs = nowMs - this.beganMs - (result.connectMs ?? 0)
    delivery.headMs = nowMs - x.startedMs
    const statusError = statusErrorOf(status)
    if (statusError !== null) throw statusError
    result.replyResult = nativeReplyResult(status, {})
    if (run.judged !== null && status === 200) {
      this.judge(reply, run.judged)
      return
    }
    run.replies?.head(status, reply.headers)
    if (run.replies?.plan(status, reply.headers) === 'collect') {
      void this.collect(reply, run.replies)
      return
    }
    const watcher = this.watcherOf(reply, status)
    this.stream(reply, watcher)
  }

  /** Sends the reply after guardrails have judged it. */
  private judge(reply: IncomingMessage, call: Call): void {
    const { x, run } = this
    const { result, delivery } = run
    const owner = {
      ending: () => {
        delivery.relayMs = performance.now() - x.startedMs - (delivery.headMs ?? 0)
        // The entry of a refused reply that is read on is written when that ends.
        if (this.drains()) return null
        this.clock.ended()
        return x.ending()
      },
      head: () => headList(x, run, reply.headers),
      received: () => void this.clock.received(performance.now()),
      result: (read: ReplyResult) => (result.replyResult = read),
      sent: (bytes: number) => (delivery.sentBytes += bytes),
      finished: () => this.finished(),
      failed: (error: unknown) => this.fail(error),
      drains: () => this.drains(),
      refused: (error: GatewayError) => this.reject(nativeError(error, result)),
      drained: () => this.end('ok'),
    }
    sendJudged(x, reply, { call, owner })
  }

  private drains(): boolean {
    const { result, drain } = this.run
    if (result.replyResult?.blocked !== 'cut' || this.state === 'over') return false
    this.drainedReply ??= drain()
    return this.drainedReply !== null
  }

  /** Passes the reply on as it arrives, after what the watcher has already. */
  private stream(reply: IncomingMessage, watcher: ReplyWatcher): void {
    const { x, run } = this
    const { res } = x
    const status = reply.statusCode ?? 0
    beginReply(res, status, headList(x, run, reply.headers))
    res.once('finish', () => this.finished())
    reply.pipe(watcher).pipe(res)
    // Sends the head at once, because the body may be empty or slow.
    res.flushHeaders?.()
  }

  /** Sends the reply when its objects have been read. */
  private async collect(reply: IncomingMessage, replies: ObjectReplies): Promise<void> {
    try {
      const status = reply.statusCode ?? 0
      const chunks: Buffer[] = []
      let bytes = 0
      for await (const chunk of reply as AsyncIterable<Buffer>) {
        chunks.push(chunk)
        bytes += chunk.length
        this.x.held.takeReply(chunk.length)
        this.clock.received(performance.now())
        if (bytes > replies.maxBytes) throw tooLong(replies)
      }
      if (this.state === 'over') return
      const body = await replies.read(Buffer.concat(chunks))
      await replies.ended(status)
      if (this.state !== 'stream') return
      const { x, run } = this
      this.clock.ended()
      run.result.replyResult = nativeReplyResult(status, usageIn(body.toString()))
      run.delivery.sentBytes += body.length
      run.delivery.relayMs = performance.now() - x.startedMs - (run.delivery.headMs ?? 0)
      await x.ending()
      const headers = { ...reply.headers, 'content-length': String(body.length) }
      beginReply(x.res, status, headList(x, run, headers))
      x.res.once('finish', () => this.finished())
      x.res.end(body)
    } catch (error) {
      if (error instanceof GatewayError || !(error instanceof Error)) this.fail(error)
      else this.failedInTransit(error)
    }
  }

  private watcherOf(reply: IncomingMessage, status: number): ReplyWatcher {
    const { x, run } = this
    const { result, delivery, replies } = run
    const encoding = reply.headers['content-encoding'] ?? 'identity'
    this.watcher = new ReplyWatcher({
      isJson: encoding === 'identity' && (reply.headers['content-type'] ?? '').includes('json'),
      onBytes: (bytes) => {
        delivery.sentBytes += bytes
        this.clock.received(performance.now())
      },
      ...(replies?.plan(status, reply.headers) === 'events'
        ? { onChunk: (chunk: Buffer) => replies.event(chunk) }
        : {}),
      ending: (usage) => {
        this.clock.ended()
        result.replyResult = nativeReplyResult(status, usage)
        delivery.relayMs = performance.now() - x.startedMs - (delivery.headMs ?? 0)
        const recorded = x.ending()
        return replies === null ? recorded : replies.ended(status).then(() => recorded ?? undefined)
      },
    })
    return this.watcher
  }

  private finished(): void {
    if (this.drainedReply === null) this.end(this.run.result.replyResult?.error?.kind ?? 'ok')
    this.resolve()
  }

  tick(nowMs: number): void {
    // Bytes in the watcher's buffer wait for the client.
    if ((this.watcher?.readableLength ?? 0) > 0) this.clock.pause(nowMs)
    else this.clock.resume(nowMs)
    const passedTimeout = this.clock.passedTimeout(this.state, nowMs, this.x.res.headersSent)
    if (passedTimeout !== null && passedTimeout !== 'linger')
      this.fail(gatewayError(timeoutErrorOf(passedTimeout)))
    else if (this.drainedReply?.isLate(nowMs) === true) this.end('ok')
  }

  private failedInTransit(error: Error): void {
    if (this.state !== 'over') {
      this.fail(gatewayError(transportError(error, ATTEMPT_STATES[this.state].progress), error))
    }
  }

  private guard(step: () => void): void {
    try {
      step()
    } catch (error) {
      this.fail(error)
    }
  }

  private fail(cause: unknown): void {
    if (this.state === 'over') return
    if (this.drainedReply !== null) {
      // The client has its end, or is gone.
      this.resolve()
      if (!(cause instanceof GatewayError && cause.kind === 'client_gone')) this.end('ok')
      return
    }
    const error = nativeError(cause, this.run.result)
    if (this.x.res.headersSent) this.x.endedWithError = true
    this.end(error.kind)
    this.reject(error)
  }

  private end(kind: ErrorKind | 'ok'): void {
    if (this.state === 'over') return
    const { x, call } = this
    this.state = stateAfter(this.state, 'end')
    this.timeouts.remove(this)
    x.cancellation.onCancel(null)
    call.target.series.inflight(-1)
    this.run.result.outcome = kind
    this.run.result.endedAtMs = performance.now()
    this.watcher?.unpipe()
    this.abort()
    this.drainedReply?.end()
  }
}

/** The error for the client of a native attempt that failed with `cause`. */
export function nativeError(
  cause: unknown,
  { candidate, status }: Pick<AttemptResult, 'candidate' | 'status'>,
): GatewayError {
  if (!(cause instanceof GatewayError)) return gatewayError(UNEXPECTED_FAILURE, cause)
  const { name } = candidate.target.upstream.config
  return gatewayError(withUpstream(cause.wire, name, status), cause.cause)
}

function tooLong(replies: ObjectReplies): GatewayError {
  const what = replies.isList ? 'list: request fewer items at once' : 'reply'
  return new GatewayError(
    'upstream_malformed',
    `The upstream sent more than ${replies.maxBytes} bytes, which cannot be checked for objects of other accounts (native_sharing: account), as its ${what}.`,
  )
}

/**
 * The error of a status that cannot be passed on: the upstream refused the gateway's credential, or the
 * status is invalid. Null for every other status.
 */
export function statusErrorOf(status: number): GatewayError | null {
  if (status === 401 || status === 407) {
    return new GatewayError('upstream_denied', "The upstream refused the gateway's own credentials.")
  }
  if (status >= 200 && status <= 599) return null
  return new GatewayError('upstream_malformed', 'The reply of the upstream has no valid status.')
}

/**
 * The headers of the reply to the client: the gateway's own, and those of the upstream's reply that the
 * client gets.
 */
export function headList(x: Exchange, { result }: NativeRun, headers: IncomingHttpHeaders): string[] {
  const { guard, admitted } = x
  const { replyHeaders } = result.candidate.target
  const list = ['x-request-id', x.id, ...replyHeaders, ...(admitted?.rateHeaders ?? [])]
  if (guard !== null && guard.list.length > 0) {
    list.push('x-sluice-guardrails', guard.list.join(', '))
  }
  const upload = ownUploadUrl(x, headers)
  if (upload !== null) list.push('x-goog-upload-url', upload)
  for (const [name, value] of Object.entries(headersForClient(headers))) {
    for (const item of Array.isArray(value) ? value : [value]) list.push(name, item)
  }
  return list
}

/** The address for the bytes of a file: sent to Google's own, the file would belong to no account. */
function ownUploadUrl(x: Exchange, headers: IncomingHttpHeaders): string | null {
  const url = headers['x-goog-upload-url']
  if (typeof url !== 'string' || !URL.canParse(url)) return null
  const { searchParams } = new URL(url)
  searchParams.delete('key')
  return uploadAddress(x, searchParams)
}

/** A longer reply is not searched for `usage`. */
const MAX_SEARCHED_BYTES = 1024 * 1024

/** Passes a request body. Fails with `GatewayError` at the first byte above the maximum. */
class RequestLimit extends Transform {
  /** Called with the size of each chunk. */
  onBytes: (bytes: number) => void
  private readonly maxBytes: number
  private readonly declaredBytes: number | null
  private bytes = 0

  /** `declaredBytes`: the request's `content-length`; null if it has none. */
  constructor(maxBytes: number, declaredBytes: number | null, onBytes: (bytes: number) => void) {
    super()
    this.maxBytes = maxBytes
    this.declaredBytes = declaredBytes
    this.onBytes = onBytes
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, callback: TransformCallback): void {
    this.bytes += chunk.length
    if (this.bytes > this.maxBytes) {
      callback(tooLargeOrUnsized(this.maxBytes))
      return
    }
    this.onBytes(chunk.length)
    callback(null, chunk)
  }

  override _flush(callback: TransformCallback): void {
    const { bytes, declaredBytes } = this
    const isShort = declaredBytes !== null && bytes !== declaredBytes
    callback(isShort ? new GatewayError('malformed_request', 'The body is shorter than announced.') : null)
  }
}

/** Methods whose requests have a body only if `content-length` announces one. */
const BODILESS = new Set(['GET', 'HEAD', 'DELETE', 'OPTIONS'])

/** The client's body within its limit. Throws `body_too_large` if the announced length is above it. */
export function openBody(
  { req }: Exchange,
  { method, maxBytes: most }: Pick<NativeCall, 'method' | 'maxBytes'>,
  intake: { bytes: number },
): RequestLimit {
  const length = headerOf(req, 'content-length')
  const isBodiless = length === undefined && BODILESS.has(method)
  const maxBytes = isBodiless ? 0 : most
  const declared = length === undefined ? null : Number(length)
  if (declared !== null && declared > maxBytes) throw tooLargeOrUnsized(maxBytes)
  const body = new RequestLimit(maxBytes, declared, (bytes) => (intake.bytes += bytes))
  return req.pipe(body)
}

/**
 * The error of a body above `max_body_bytes`; with a maximum of 0, the error of a body without a length on a
 * method that usually has none.
 */
function tooLargeOrUnsized(maxBytes: number): GatewayError {
  return maxBytes === 0
    ? new GatewayError('malformed_request', 'A body with this method needs the header content-length.')
    : bodyTooLarge(maxBytes)
}

/** The options of a `ReplyWatcher`. */
interface ReplyWatcherOptions {
  /** The body is JSON and may contain `usage`. */
  readonly isJson: boolean
  /** Called with the size of each chunk before the chunk is passed on. */
  readonly onBytes: (bytes: number) => void
  /** Called with each chunk of a stream of events; absent if nothing reads them. */
  readonly onChunk?: (chunk: Buffer) => void
  /** Called when the whole body has arrived; the end of the reply waits for the promise. */
  readonly ending: (usage: Usage) => Promise<void> | null
}

/** Passes a reply body, and reads its token counts. */
class ReplyWatcher extends Transform {
  private readonly options: ReplyWatcherOptions
  private chunks: Buffer[] | null
  private bytes = 0

  constructor(options: ReplyWatcherOptions) {
    super()
    this.options = options
    this.chunks = options.isJson ? [] : null
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, callback: TransformCallback): void {
    this.bytes += chunk.length
    if (this.bytes > MAX_SEARCHED_BYTES) this.chunks = null
    this.chunks?.push(chunk)
    this.options.onChunk?.(chunk)
    this.options.onBytes(chunk.length)
    callback(null, chunk)
  }

  override _flush(callback: TransformCallback): void {
    const usage = this.chunks === null ? {} : usageIn(Buffer.concat(this.chunks).toString())
    this.chunks = null
    const ending = this.options.ending(usage)
    if (ending === null) callback()
    else void ending.then(() => callback())
  }
}

/** The token counts of a JSON reply of any provider; empty if there are none. */
export function usageIn(text: string): Usage {
  const usage = usageOfReply(parseReply(text) ?? {})
  // Replies to embeddings count only the prompt.
  return usage.input === undefined ? usage : { output: 0, ...usage }
}
