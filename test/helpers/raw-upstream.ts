/**
 * An upstream that records the exact bytes of requests and sends the replies that a test chooses.
 */
import { createServer, type IncomingHttpHeaders } from 'node:http'
import { buffer } from 'node:stream/consumers'
import type { Test } from 'tap'
import { listen } from './listen.js'

/** A request as it arrived. */
export interface Arrived {
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

/** A reply of the upstream: a status, a content type, and chunks that are written in sequence. */
export interface Canned {
  readonly status?: number
  readonly type: string
  readonly headers?: Readonly<Record<string, string>>
  readonly chunks: readonly (string | Buffer)[]
  /** Closes the connection after the last chunk. */
  readonly cut?: true
}

/** A running upstream; `requests` has the newest last. */
export interface RawUpstream {
  readonly origin: string
  readonly requests: Arrived[]
  /** The replies from now on. */
  answer: (request: Arrived) => Canned
}

/** Starts it on a free port; it ends with the test. */
export async function startRawUpstream(t: Test, answer: RawUpstream['answer']): Promise<RawUpstream> {
  const requests: Arrived[] = []
  const server = createServer((req, res) => {
    void buffer(req).then(async (body) => {
      const arrived = { url: req.url ?? '', headers: req.headers, body }
      requests.push(arrived)
      const { status = 200, type, headers = {}, chunks, cut } = upstream.answer(arrived)
      res.writeHead(status, { 'content-type': type, ...headers })
      for (const chunk of chunks) {
        await new Promise((resolve) => res.write(chunk, resolve))
        if (chunks.length > 1 || cut === true) await new Promise((resolve) => setTimeout(resolve, 5))
      }
      if (cut === true) res.destroy()
      else res.end()
    })
  })
  const port = await listen(t, server)
  const upstream: RawUpstream = { origin: `http://127.0.0.1:${port}`, requests, answer }
  return upstream
}
