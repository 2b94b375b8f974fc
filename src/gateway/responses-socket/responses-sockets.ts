/** The open WebSockets of Responses in this process. Loaded when a client opens the first one. */
import { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { WebSocketServer } from 'ws'
import type { Identity } from '../../accounts/account.js'
import { GatewayError } from '../../errors.js'
import { headerOf, type HttpRequest, type HttpResponse, type Upgrade } from '../../http/message.js'
import { SlowClients } from '../../http/slow-clients.js'
import type { BodyMemory } from '../body-memory.js'
import type { SocketPlaces } from '../socket-places.js'
import type { Exchange, SocketTurn } from '../client-exchange.js'
import { ConnectionResponses } from '../stored-responses/connection-responses.js'
import type { StoredResponses } from '../stored-responses/stored-responses.js'
import type { Timeouts } from '../timeouts.js'
import { ClientSocket, CLOSE, ResponsesSocket } from './responses-socket.js'

/** What the connections need from the gateway. */
export interface ResponsesSocketsOptions {
  readonly bodies: BodyMemory
  readonly places: SocketPlaces
  readonly timeouts: Timeouts
  readonly responses: Pick<StoredResponses, 'connectionBytes'>
  /** Serves a turn with the current configuration. */
  readonly run: (req: HttpRequest, res: HttpResponse, turn: SocketTurn) => void
}

/** A key as the handshake of RFC 6455 has it. */
const HANDSHAKE_KEY = /^[+/0-9A-Za-z]{22}==$/

/** All connections, which end with their keys and with the process. */
export class ResponsesSockets {
  private readonly options: ResponsesSocketsOptions
  private readonly sockets = new Set<ResponsesSocket>()
  private isDraining = false

  constructor(options: ResponsesSocketsOptions) {
    this.options = options
  }

  /**
   * Opens the WebSocket of an authenticated request. Throws `GatewayError` before anything is sent if it
   * cannot.
   */
  open(x: Exchange, identity: Identity, upgrade: Upgrade): void {
    const { req } = x
    if (!(req instanceof IncomingMessage)) throw new GatewayError('no_websocket', 'Use HTTP/1.1.')
    assertHandshake(req)
    if (this.isDraining) {
      const message = 'The gateway is shutting down; please try again.'
      throw new GatewayError('draining', message, { retryAfterSeconds: 1 })
    }
    const { server } = x.generation.snapshot.config
    const { places } = this.options
    places.assertRoom(identity, server.maxConnections)
    const acceptor = new WebSocketServer({
      noServer: true,
      clientTracking: false,
      // Compressed messages could be a thousand times as large as what has arrived of them.
      perMessageDeflate: false,
      maxPayload: server.maxBodyBytes,
      handleProtocols: () => false,
      WebSocket: ClientSocket,
    })
    acceptor.on('headers', (headers) => headers.push(`x-request-id: ${x.id}`))
    const { socket: connection, head } = upgrade
    x.res.statusCode = 101
    acceptor.handleUpgrade(req, connection, head, (socket) => {
      watchStalls(x, connection, server.clientStallMs)
      const release = places.take(identity, server.maxConnections)
      this.add(socket, { x, identity, connection, release })
    })
  }

  /** Adds the digests of the keys that have connections. */
  addDigests(digests: Set<string>): void {
    for (const { keyDigest } of this.sockets) if (keyDigest !== null) digests.add(keyDigest)
  }

  /** Closes the connections of a key. */
  endAllOf(digest: string, why: GatewayError): void {
    for (const socket of this.sockets) if (socket.keyDigest === digest) socket.end(CLOSE.policy, why)
  }

  /** Closes each connection after its turn, and opens no more. */
  drain(): void {
    this.isDraining = true
    for (const socket of this.sockets) socket.end(CLOSE.away)
  }

  private add(
    socket: ClientSocket,
    {
      x,
      identity,
      connection,
      release,
    }: { x: Exchange; identity: Identity; connection: Socket; release: () => void },
  ): void {
    const { bodies, timeouts, responses, run } = this.options
    const { accountId } = identity
    const { url = '', headers, rawHeaders } = x.req
    const opened = new ResponsesSocket(socket, {
      identity,
      handshake: { url, headers, rawHeaders, socket: connection },
      kept: new ConnectionResponses(bodies.open(accountId), responses.connectionBytes),
      held: bodies.open(accountId),
      run,
      onClosed: () => {
        this.sockets.delete(opened)
        timeouts.remove(opened)
        release()
      },
    })
    this.sockets.add(opened)
    timeouts.add(opened)
  }
}

/** Ends the connection of a client that does not read, as the listener does over HTTP. */
function watchStalls({ res }: Exchange, connection: Socket, clientStallMs: number): void {
  const slowClients = new SlowClients(clientStallMs)
  const { everyMs } = slowClients
  connection.setTimeout(everyMs)
  connection.on('timeout', () => {
    if (slowClients.stalled(res, connection.writableLength)) connection.setTimeout(everyMs)
  })
}

/** Throws `malformed_request` for a request that is no handshake of the protocol. */
function assertHandshake(req: HttpRequest): void {
  const version = headerOf(req, 'sec-websocket-version')
  const name = version === '13' ? 'sec-websocket-key' : 'sec-websocket-version'
  if (version === '13' && HANDSHAKE_KEY.test(headerOf(req, 'sec-websocket-key') ?? '')) return
  const message = `The header ${name} is missing or not one of RFC 6455, version 13.`
  throw new GatewayError('malformed_request', message, { param: name })
}
