/**
 * The process of the upstream and of the clients for `unread.test.ts`: an upstream that sends a stream as
 * fast as the gateway takes it, and clients that read none of their streams.
 */
import { createServer, type ServerResponse } from 'node:http'
import { connect } from 'node:net'

/** The clients that the parent requests. */
export interface UnreadOrder {
  readonly port: number
  readonly secret: string
  readonly count: number
}

const EVENT =
  'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"gpt-4o","choices":[{"index":0,"delta":{"content":" word"},"finish_reason":null}]}\n\n'
const EVENTS = Buffer.from(EVENT.repeat(400))
/** Clients that are opened in one go, and the time between. */
const BATCH = 25
const EVERY_MS = 25

function blast(res: ServerResponse): void {
  for (let writes = 0; writes < 4; writes += 1) if (res.destroyed || !res.write(EVENTS)) return
  setImmediate(() => blast(res))
}

const upstream = createServer((req, res) => {
  req.resume().once('end', () => {
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    res.on('drain', () => blast(res))
    blast(res)
  })
})
upstream.listen(0, '127.0.0.1', () => {
  const address = upstream.address()
  process.send?.({ port: typeof address === 'object' ? address?.port : null })
})

function open({ port, secret, count }: UnreadOrder, opened = 0): void {
  const messages = [{ role: 'user', content: 'Hi.' }]
  const body = JSON.stringify({ model: 'gpt-4o', max_tokens: 1000, stream: true, messages })
  const head = [
    'POST /v1/messages HTTP/1.1',
    'host: gateway',
    'content-type: application/json',
    `authorization: Bearer ${secret}`,
    `content-length: ${body.length}`,
  ]
  for (let at = opened; at < Math.min(count, opened + BATCH); at += 1) {
    const socket = connect(port, '127.0.0.1').pause()
    socket.on('error', () => undefined)
    socket.write(`${head.join('\r\n')}\r\n\r\n${body}`)
  }
  if (opened + BATCH < count) {
    setTimeout(() => open({ port, secret, count }, opened + BATCH), EVERY_MS)
  } else process.send?.({ isOpened: true })
}

process.on('message', (order: UnreadOrder) => open(order))
process.once('disconnect', () => process.exit(0))
