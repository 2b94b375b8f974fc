/**
 * An upstream that keeps the very bytes it got and answers what a test says.
 * Knows no format.
 */
import { createServer, type IncomingHttpHeaders } from 'node:http'
import { buffer } from 'node:stream/consumers'
import type { Test } from 'tap'

/** A request as it arrived. */
export interface Arrived {
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

/** What the upstream answers: a status, a content type, and pieces that are written one after the other. */
export interface Canned {
  readonly status?: number
  readonly type: string
  readonly pieces: readonly (string | Buffer)[]
  /** The connection is cut after the last piece. */
  readonly cut?: true
}

/** A running upstream; `requests` has the newest last. */
export interface RawUpstream {
  readonly origin: string
  readonly requests: Arrived[]
  /** What is answered from now on. */
  answer: (request: Arrived) => Canned
}

/** Starts it on a free port; it ends with the test. */
export async function startRawUpstream(
  t: Test,
  answer: RawUpstream['answer'],
): Promise<RawUpstream> {
  const requests: Arrived[] = []
  const server = createServer((req, res) => {
    void buffer(req).then(async (body) => {
      const arrived = { url: req.url ?? '', headers: req.headers, body }
      requests.push(arrived)
      const { status = 200, type, pieces, cut } = upstream.answer(arrived)
      res.writeHead(status, { 'content-type': type })
      for (const piece of pieces) {
        await new Promise((resolve) => res.write(piece, resolve))
        if (pieces.length > 1 || cut === true)
          await new Promise((resolve) => setTimeout(resolve, 5))
      }
      if (cut === true) res.destroy()
      else res.end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(
    () =>
      new Promise<void>((resolve) => {
        server.closeAllConnections()
        server.close(() => resolve())
      }),
  )
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  const upstream: RawUpstream = { origin: `http://127.0.0.1:${port}`, requests, answer }
  return upstream
}
