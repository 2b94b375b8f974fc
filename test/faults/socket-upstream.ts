/** An upstream that writes any bytes to its sockets, and the frames of a stream for it. */
import { once } from 'node:events'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import type { Test } from 'tap'

/** A connection to an upstream of raw bytes, with the requests received on it so far. */
export interface UpstreamConnection {
  readonly socket: Socket
  /** Heads and bodies, unparsed. */
  readonly requests: string[]
  closedMs: number | null
}

/** An upstream that replies to each whole request with the bytes that `answer` writes. */
export interface SocketUpstream {
  readonly port: number
  readonly url: string
  readonly connections: UpstreamConnection[]
}

/** Starts it on a free port; it ends with the test. */
export async function startSocketUpstream(
  t: Test,
  answer: (connection: UpstreamConnection, request: string) => void,
): Promise<SocketUpstream> {
  const connections: UpstreamConnection[] = []
  const server = createServer((socket) => {
    const connection: UpstreamConnection = { socket, requests: [], closedMs: null }
    connections.push(connection)
    let text = ''
    socket.on('error', () => undefined)
    socket.once('close', () => (connection.closedMs = performance.now()))
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1')
      const end = text.indexOf('\r\n\r\n')
      const length = Number(/\r\ncontent-length: (\d+)/i.exec(text)?.[1] ?? 0)
      if (end < 0 || text.length < end + 4 + length) return
      const request = text.slice(0, end + 4 + length)
      text = text.slice(request.length)
      connection.requests.push(request)
      answer(connection, request)
    })
  })
  const port = await listen(t, server)
  return { port, url: `http://127.0.0.1:${port}/v1`, connections }
}

async function listen(t: Test, server: Server): Promise<number> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(async () => {
    for (const socket of sockets) socket.destroy()
    server.close()
    await once(server, 'close')
  })
  const address = server.address()
  if (!isAddress(address)) throw new Error('no address')
  return address.port
}

function isAddress(address: ReturnType<Server['address']>): address is AddressInfo {
  return typeof address === 'object' && address !== null
}

/** An HTTP head and body with a length; `lines` are header lines. */
export function httpReply(status: number, lines: readonly string[], body: string): string {
  const head = [`HTTP/1.1 ${status} Status`, ...lines, `content-length: ${Buffer.byteLength(body)}`]
  return `${head.join('\r\n')}\r\n\r\n${body}`
}

/** The head of a streamed reply whose body ends with the connection. */
export const STREAM_HEAD = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n'

/** One event of chat completions with 1,000 characters of content. */
export const CONTENT_EVENT = `data: ${JSON.stringify({
  id: 'chatcmpl-1',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'gpt-4o',
  choices: [{ index: 0, delta: { content: 'x'.repeat(1000) }, finish_reason: null }],
})}\n\n`
