/**
 * The process of the upstream and of the client for `replies.test.ts`: serves each costly reply, requests it
 * through the gateway, and sends what the client got to its parent.
 */
import { createHash } from 'node:crypto'
import { createServer, request } from 'node:http'
import { CLIENTS, COSTLY_REPLIES, requestFor, type CostlyReply } from '../../bench/hostile/costly-replies.js'

/** A reply as the client got it. */
export interface ClientReply {
  readonly status: number
  readonly bytes: number
  /** The size of the upstream's body. */
  readonly sourceBytes: number
  /** It is the upstream's own body. */
  readonly isSame: boolean
  /** The first and last characters. */
  readonly head: string
  readonly tail: string
}

/** A request of the parent. */
export interface ReplyOrder {
  readonly name: string
  readonly port: number
  readonly secret: string
}

let current = Buffer.from('')
let headers: CostlyReply['headers'] = {}
const upstream = createServer((req, res) => {
  req.resume().once('end', () => res.writeHead(200, headers).end(current))
})
upstream.listen(0, '127.0.0.1', () => {
  const address = upstream.address()
  process.send?.({ port: typeof address === 'object' ? address?.port : null })
})

function ask({ name, port, secret }: ReplyOrder): void {
  const reply = COSTLY_REPLIES.find((each) => each.name === name)
  if (reply === undefined) throw new Error(`no reply ${name}`)
  current = Buffer.from(reply.body())
  headers = { ...reply.headers, 'content-length': current.length }
  const { path } = CLIENTS[reply.client]
  const body = requestFor(reply)
  const sent = { 'content-type': 'application/json', authorization: `Bearer ${secret}` }
  const req = request({ host: '127.0.0.1', port, method: 'POST', path, headers: sent }, (res) => {
    const chunks: Buffer[] = []
    res.on('data', (chunk: Buffer) => chunks.push(chunk))
    res.once('close', () => {
      const received = Buffer.concat(chunks)
      const answer: ClientReply = {
        status: res.statusCode ?? 0,
        bytes: received.length,
        sourceBytes: current.length,
        isSame: digest(received) === digest(current),
        head: received.toString('utf8', 0, 2_000),
        tail: received.toString('utf8', Math.max(0, received.length - 2_000)),
      }
      process.send?.(answer)
    })
    res.once('error', () => undefined)
  })
  req.once('error', (error) => process.send?.({ status: 0, head: String(error) }))
  req.end(body)
}

function digest(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}

process.on('message', (order: ReplyOrder) => ask(order))
process.once('disconnect', () => process.exit(0))
