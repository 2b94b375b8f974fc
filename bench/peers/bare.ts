/**
 * The minimal proxy in Node: node:http in front, undici's `dispatch` behind, nothing parsed. It runs as a
 * separate process; the difference to the gateway is the cost of the gateway's own work.
 */
import { createServer, type ServerResponse } from 'node:http'
import type { IncomingHttpHeaders } from 'node:http'
import { Pool, type Dispatcher } from 'undici'
import { numberField } from '../load/raw-http.js'

/** Forwards one reply: a stream chunk by chunk, others whole. */
class PassOn implements Dispatcher.DispatchHandler {
  private readonly res: ServerResponse
  private readonly chunks: Buffer[] = []
  private isStream = false

  constructor(res: ServerResponse) {
    this.res = res
  }

  onRequestStart(): void {
    return
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
  ): void {
    const type = headers['content-type'] ?? ''
    this.isStream = type.startsWith('text/event-stream')
    this.res.writeHead(status, { 'content-type': type })
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (!this.isStream) {
      this.chunks.push(chunk)
      return
    }
    if (this.res.write(chunk)) return
    controller.pause()
    this.res.once('drain', () => controller.resume())
  }

  onResponseEnd(): void {
    if (this.isStream) this.res.end()
    else this.res.end(this.chunks.length === 1 ? this.chunks[0] : Buffer.concat(this.chunks))
  }

  onResponseError(): void {
    this.res.destroy()
  }
}

const given = process.argv[2] ?? ''
const pool = new Pool(`http://127.0.0.1:${numberField(given, 'upstreamPort')}`, {
  connections: 1024,
  pipelining: 1,
  headersTimeout: 0,
  bodyTimeout: 0,
})
createServer((req, res) => {
  const chunks: Buffer[] = []
  req.on('data', (chunk: Buffer) => chunks.push(chunk))
  req.once('end', () => {
    const body = Buffer.concat(chunks)
    const headers = ['content-type', 'application/json']
    pool.dispatch({ path: req.url ?? '/', method: 'POST', headers, body }, new PassOn(res))
  })
}).listen(numberField(given, 'port'), '127.0.0.1')
process.once('disconnect', () => process.exit(0))
