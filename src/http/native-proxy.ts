/**
 * Sends requests untranslated through http-proxy-3. It receives a request object that the gateway creates, so
 * that only the given headers and body reach the upstream.
 */
import {
  type Agent,
  type ClientRequest,
  IncomingMessage,
  request as httpRequest,
  ServerResponse,
} from 'node:http'
import { request as httpsRequest } from 'node:https'
import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { createProxyServer, type ProxyServer, type ServerOptions } from 'http-proxy-3'
import type { Upgrade } from './message.js'

/** Maximum silence of an upstream while a body is read. */
const READ_IDLE_MS = 60_000

/** A request for an upstream. */
interface NativeRequest {
  readonly method: string
  readonly url: URL
  /** All headers, names in lower case. */
  readonly headers: Readonly<Record<string, string | string[]>>
  /** The client's connection. */
  readonly socket: Socket
  /** Connections to the upstream. */
  readonly agent: Agent
}

/** Callbacks of a request. They must not throw. */
interface NativeEvents {
  /** The upstream's connection is open, and the request is being sent. */
  readonly connected: () => void
  /** The head of the reply. Its body must be read or destroyed. */
  readonly replied: (reply: IncomingMessage) => void
  readonly failed: (error: Error) => void
}

/** Callbacks of a WebSocket. Before `opening` no byte is written to the client. */
interface WebSocketEvents extends NativeEvents {
  /**
   * The head of the reply that opens it; changes to its headers reach the client. `replied` receives any
   * other head.
   */
  readonly opening: (reply: IncomingMessage) => void
  /** Bytes flow. `upstream` is the upstream's connection. */
  readonly opened: (upstream: Socket) => void
}

/** Sends the request with a body; the returned function cancels it and closes its connection. */
export function sendNative(request: NativeRequest, body: Readable, events: NativeEvents): () => void {
  const message = messageOf(request)
  // Never written to: http-proxy-3 observes it for the end of the exchange.
  const exchange = new ServerResponse(message)
  const proxy = proxyFor(request, { selfHandleResponse: true, buffer: body }, events)
  proxy.on('proxyReq', ({ socket }) => {
    if (socket !== null) whenConnected(socket, events.connected)
  })
  proxy.on('proxyRes', (reply) => events.replied(reply))
  proxy.web(message, exchange)
  return () => void exchange.emit('close')
}

/** Reads the body of a `GET` request; false if its status is not 200, or it fails. */
export function readNative(
  { url, headers, agent }: Pick<NativeRequest, 'url' | 'headers' | 'agent'>,
  onChunk: (chunk: Buffer) => void,
): Promise<boolean> {
  return new Promise((resolve) => {
    const send = url.protocol === 'https:' ? httpsRequest : httpRequest
    const request = send(url, { agent, headers, timeout: READ_IDLE_MS }, (reply) => {
      const isResult = reply.statusCode === 200
      if (isResult) reply.on('data', onChunk)
      else reply.resume()
      reply.once('end', () => resolve(isResult && reply.complete))
      reply.once('error', () => resolve(false))
    })
    request.once('timeout', () => request.destroy())
    request.once('error', () => resolve(false))
    request.once('close', () => resolve(false))
    request.end()
  })
}

/** Opens a WebSocket and connects both sockets. The returned function cancels the attempt. */
export function sendWebSocket(
  request: NativeRequest,
  { socket, head }: Upgrade,
  events: WebSocketEvents,
): () => void {
  const message = messageOf(request)
  const proxy = proxyFor(request, {}, events)
  const requests: ClientRequest[] = []
  proxy.on('proxyReqWs', (proxyReq) => {
    requests.push(proxyReq)
    // Runs before the listener of http-proxy-3, which writes this head to the client.
    proxyReq.on('upgrade', events.opening)
  })
  proxy.on('open', events.opened)
  proxy.ws(message, socket, head)
  for (const request of requests) {
    // The listeners of http-proxy-3 would pass any reply through unchanged, and close the client's
    // connection.
    request
      .removeAllListeners('response')
      .removeAllListeners('error')
      .on('response', events.replied)
      .on('error', events.failed)
      .on('socket', (upstream: Socket) => whenConnected(upstream, events.connected))
  }
  return () => requests.forEach((request) => request.destroy())
}

function messageOf({ method, headers, socket }: NativeRequest): IncomingMessage {
  const message = new IncomingMessage(socket)
  message.method = method
  message.url = '/'
  message.httpVersion = '1.1'
  message.headers = { ...headers }
  return message
}

function proxyFor({ url, agent }: NativeRequest, more: ServerOptions, { failed }: NativeEvents): ProxyServer {
  const target = url.href
  const proxy = createProxyServer({ target, agent, ignorePath: true, changeOrigin: true, ...more })
  proxy.on('error', failed)
  proxy.on('econnreset', failed)
  return proxy
}

function whenConnected(socket: Socket, connected: () => void): void {
  if (!socket.connecting) connected()
  else socket.once('encrypted' in socket ? 'secureConnect' : 'connect', connected)
}
