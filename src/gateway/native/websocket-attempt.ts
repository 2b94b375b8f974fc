/**
 * Serves one WebSocket, from its request to the end of both connections. An open WebSocket has no idle
 * timeout.
 */
import type { Agent, IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { GatewayError, gatewayError } from '../../errors.js'
import type { Upgrade } from '../../http/message.js'
import { sendWebSocket } from '../../http/native-proxy.js'
import { beginReply } from '../../http/respond.js'
import { AttemptClock, type Timeouts, type Timed } from '../timeouts.js'
import type { Exchange } from '../client-exchange.js'
import { timeoutErrorOf, transportError, UNEXPECTED_FAILURE } from '../transport-errors.js'
import { ATTEMPT_STATES, stateAfter, type AttemptState } from '../attempts/attempt-states.js'
import { requestIdIn } from '../attempts/read-reply.js'
import { NOT_LISTED } from '../in-flight-list.js'
import { ClientMessages, type MessageCheck } from './client-messages.js'
import { headList, nativeError, statusErrorOf } from './native-attempt.js'
import { nativeReplyResult, type NativeCall, type NativeRun } from './admit-native.js'
import { headersForClient } from './native-headers.js'

/** Maximum time for one side to close after the other side has closed. */
const CLOSING_MS = 1000

/** The record of a WebSocket, and the client's connection. */
interface WebSocketRun {
  readonly run: NativeRun
  readonly client: Upgrade
}

/**
 * Resolves when the WebSocket is closed, with the reason if the gateway closed it; rejects with
 * `GatewayError` before it is open.
 */
export class WebSocketAttempt implements Timed {
  listIndex = NOT_LISTED
  private readonly x: Exchange
  private readonly call: NativeCall
  private readonly run: NativeRun
  private readonly timeouts: Timeouts
  private readonly client: Upgrade
  private readonly clock: AttemptClock
  /** `stream` while the WebSocket is open, or the body of a refusal is passed on. */
  private state: AttemptState = 'connecting'
  private abort: () => void = () => undefined
  private upstream: Socket | null = null
  private resolve: (reason: GatewayError | null) => void = () => undefined
  private reject: (error: GatewayError) => void = () => undefined
  /** Why the gateway closed it; null if it did not. */
  private reason: GatewayError | null = null
  private readonly initialBytes: { readonly read: number; readonly written: number }

  constructor(x: Exchange, call: NativeCall, { run, client }: WebSocketRun) {
    this.x = x
    this.call = call
    this.run = run
    this.client = client
    this.timeouts = run.timeouts
    const { connectMs, firstByteMs, idleMs, totalMs } = call.target.upstream.config.timeouts
    const { startedMs } = x
    this.clock = new AttemptClock({ connectMs, firstByteMs, idleMs, totalMs, startedMs })
    const { bytesRead: read, bytesWritten: written } = client.socket
    this.initialBytes = { read: read - client.head.length, written }
  }

  send(agent: Agent): Promise<GatewayError | null> {
    const { x, call, client } = this
    this.clock.begin(performance.now())
    this.timeouts.add(this)
    call.target.series.inflight(1)
    return new Promise((resolve, reject) => {
      this.resolve = resolve
      this.reject = reject
      client.socket.once('close', () => this.closed())
      x.cancellation.onCancel((reason) => this.fail(reason))
      if (this.state === 'over') return
      const headers = { ...call.headers, connection: 'Upgrade', upgrade: 'websocket' }
      this.abort = sendWebSocket({ ...call, headers, agent, socket: client.socket }, client, {
        connected: () => this.connected(),
        opening: (reply) => this.opening(reply),
        opened: (upstream) => this.opened(upstream),
        replied: (reply) => this.refusedByUpstream(reply),
        failed: (error) => this.failedInTransit(error),
      })
    })
  }

  private connected(): void {
    if (this.state !== 'connecting') return
    this.state = stateAfter(this.state, 'sent')
    const nowMs = performance.now()
    const { result } = this.run
    result.wasSent = true
    result.connectMs = nowMs - this.x.startedMs
    this.clock.begin(nowMs)
  }

  private opening(reply: IncomingMessage): void {
    const { id, res } = this.x
    const { result } = this.run
    result.requestId = requestIdIn(reply.headers)
    result.status = 101
    result.replyResult = nativeReplyResult(101, {})
    res.statusCode = 101
    const headers = headersForClient(reply.headers)
    replaceHeaders(reply, {
      ...headers,
      connection: 'Upgrade',
      upgrade: 'websocket',
      'x-request-id': id,
    })
  }

  private opened(upstream: Socket): void {
    this.upstream = upstream
    if (this.state === 'over') {
      this.destroy()
      return
    }
    this.state = stateAfter(this.state, 'events')
    const { session, checkMessage } = this.run
    if (checkMessage !== null) this.checkMessages(upstream, checkMessage)
    // Beside the pipe to the client, which pauses both.
    if (session !== null) upstream.on('data', (chunk: Buffer) => session.read(chunk))
    this.timeouts.remove(this)
    // From now on the close of the client's connection ends the WebSocket and does not count as a client that
    // left early.
    this.x.res.removeAllListeners('close')
    upstream.once('close', () => this.destroySoon())
    this.client.socket.once('end', () => this.destroySoon())
  }

  /** The session ends before a message that is refused has left. */
  private checkMessages(upstream: Socket, check: MessageCheck): void {
    const { held } = this.x
    const { maxBodyBytes: maxBytes } = this.x.generation.snapshot.config.server
    const messages = new ClientMessages({ check, held, maxBytes })
    messages.once('error', (error) => {
      this.fail(error instanceof GatewayError ? error : gatewayError(UNEXPECTED_FAILURE, error))
    })
    const { socket } = this.client
    socket.unpipe(upstream)
    socket.pipe(messages).pipe(upstream)
    socket.once('close', () => messages.destroy())
  }

  /** The client gets the upstream's refusal, and its connection closes. */
  private refusedByUpstream(reply: IncomingMessage): void {
    const { x, call, run } = this
    const status = reply.statusCode ?? 0
    reply.once('error', () => this.destroy())
    run.result.status = status
    call.replied(status, reply.headers)
    const statusError = statusErrorOf(status)
    if (statusError !== null) {
      this.fail(statusError)
      return
    }
    run.result.replyResult = nativeReplyResult(status, {})
    this.state = stateAfter(this.state, 'events')
    this.timeouts.remove(this)
    x.endedWithError = true
    beginReply(x.res, status, headList(x, run, reply.headers))
    reply.pipe(x.res)
    reply.once('close', () => this.destroySoon())
  }

  tick(nowMs: number): void {
    if (this.state === 'stream' || this.state === 'over') return
    const passedTimeout = this.clock.passedTimeout(this.state, nowMs, false)
    if (passedTimeout !== null && passedTimeout !== 'linger')
      this.fail(gatewayError(timeoutErrorOf(passedTimeout)))
  }

  private failedInTransit(error: Error): void {
    if (this.state === 'stream') this.destroy()
    else if (this.state !== 'over') {
      this.fail(gatewayError(transportError(error, ATTEMPT_STATES[this.state].progress), error))
    }
  }

  /** Before the WebSocket is open the client gets an error; afterwards its connection ends. */
  private fail(reason: GatewayError): void {
    if (this.state === 'over') return
    this.reason ??= nativeError(reason, this.run.result)
    if (this.state === 'stream') {
      this.destroy()
      return
    }
    this.reject(this.reason)
    this.end()
  }

  private closed(): void {
    this.upstream?.destroy()
    if (this.state !== 'over') this.end()
  }

  private destroySoon(): void {
    setTimeout(() => this.destroy(), CLOSING_MS).unref()
  }

  private destroy(): void {
    this.client.socket.destroy()
    this.upstream?.destroy()
  }

  private end(): void {
    const { x, call, run, client, initialBytes } = this
    this.state = stateAfter(this.state, 'end')
    this.timeouts.remove(this)
    x.cancellation.onCancel(null)
    const { delivery, result } = run
    if (x.intake !== null) x.intake.bytes = client.socket.bytesRead - initialBytes.read
    delivery.sentBytes = client.socket.bytesWritten - initialBytes.written
    call.target.series.inflight(-1)
    result.endedAtMs = performance.now()
    result.outcome = this.reason?.kind ?? result.replyResult?.error?.kind ?? 'ok'
    this.abort()
    this.resolve(this.reason)
  }
}

function replaceHeaders(reply: IncomingMessage, headers: Readonly<Record<string, string | string[]>>): void {
  reply.headers = { ...headers }
}
