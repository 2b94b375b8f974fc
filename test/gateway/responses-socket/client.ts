/** A client of Responses over WebSocket, as Codex is one, for tests. */
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import type { Test } from 'tap'
import { WebSocket } from 'ws'
import { objectOf, stringOf, type JsonObject } from '../../../src/base/json.js'

/** An event of the gateway. */
export type SocketEvent = JsonObject

/** Options of a connection. */
export interface ConnectOptions {
  readonly path?: string
  readonly headers?: Record<string, string>
}

/** Events that end a turn. */
const LAST = ['response.completed', 'response.incomplete', 'response.failed', 'error']

/** An open connection and all that it received. */
export class SocketClient {
  readonly socket: WebSocket
  readonly events: SocketEvent[] = []
  readonly closed: Promise<number>
  private readonly waiting: (() => void)[] = []

  constructor(socket: WebSocket) {
    this.socket = socket
    socket.on('message', (data: Buffer) => {
      this.events.push(objectOf(JSON.parse(data.toString())))
      for (const wake of this.waiting.splice(0)) wake()
    })
    this.closed = once(socket, 'close').then(([code]) => {
      for (const wake of this.waiting.splice(0)) wake()
      return Number(code)
    })
    socket.on('error', () => undefined)
  }

  send(message: unknown): void {
    this.socket.send(typeof message === 'string' ? message : JSON.stringify(message))
  }

  /** Starts a turn, and returns its events up to the last one. */
  async turn(message: JsonObject): Promise<SocketEvent[]> {
    const from = this.events.length
    this.send({ type: 'response.create', ...message })
    return this.rest(from)
  }

  /** The events from an index on, up to the last one of the turn. */
  async rest(from: number): Promise<SocketEvent[]> {
    for (;;) {
      const end = this.events.findIndex((event, at) => at >= from && LAST.includes(typeOf(event)))
      if (end !== -1) return this.events.slice(from, end + 1)
      if (this.socket.readyState === WebSocket.CLOSED) return this.events.slice(from)
      await new Promise<void>((resolve) => this.waiting.push(resolve))
    }
  }

  async close(): Promise<void> {
    this.socket.close()
    await this.closed
  }
}

export function typeOf(event: SocketEvent | undefined): string {
  return stringOf(event?.['type']) ?? ''
}

/** The response of the last event of a turn. */
export function responseOf(events: readonly SocketEvent[]): JsonObject {
  return objectOf(events.at(-1)?.['response'])
}

/** The text of a turn. */
export function textOf(events: readonly SocketEvent[]): string {
  return events
    .filter((event) => typeOf(event) === 'response.output_text.delta')
    .map(({ delta }) => stringOf(delta) ?? '')
    .join('')
}

/** The gateway and the key of a connection. */
interface Address {
  readonly port: number
  readonly secret: string
}

/** Opens a connection, which ends with the test. */
export async function connectSocket(
  t: Test,
  { port, secret }: Address,
  { path = '/v1/responses', headers = {} }: ConnectOptions = {},
): Promise<SocketClient> {
  const authorization = `Bearer ${secret}`
  const socket = new WebSocket(`ws://127.0.0.1:${port}${path}`, { headers: { authorization, ...headers } })
  t.teardown(() => socket.terminate())
  const client = new SocketClient(socket)
  await once(socket, 'open')
  return client
}

/** The status and the body of a handshake that is refused. */
export async function refusedHandshake(
  { port, secret }: Address,
  { path = '/v1/responses', headers = {} }: ConnectOptions = {},
): Promise<{ readonly status: number; readonly body: JsonObject; readonly reply: IncomingMessage }> {
  const authorization = `Bearer ${secret}`
  const socket = new WebSocket(`ws://127.0.0.1:${port}${path}`, { headers: { authorization, ...headers } })
  socket.on('error', () => undefined)
  const replied = new Promise<IncomingMessage>((resolve, reject) => {
    socket.once('unexpected-response', (_req, reply: IncomingMessage) => resolve(reply))
    socket.once('open', () => reject(new Error('the handshake was accepted')))
  })
  const reply = await replied
  let text = ''
  for await (const chunk of reply) text += String(chunk)
  return { status: reply.statusCode ?? 0, body: objectOf(JSON.parse(text)), reply }
}
