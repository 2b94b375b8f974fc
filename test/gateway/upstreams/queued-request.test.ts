/**
 * Goal: a request that is cancelled while it waits for a connection neither opens nor closes one, and is
 * removed completely.
 * Method: an upstream that replies only when the test signals it, two connections, two hundred requests.
 */
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { createServer as createTcpServer } from 'node:net'
import t, { type Test } from 'tap'
import { eventually } from '../../faults/scene.js'
import { replyTo, openPool, send } from './fixtures.js'
import { listen } from '../../helpers/listen.js'

interface Slow {
  readonly baseUrl: string
  /** Replies that have not been sent. */
  readonly pendingReplies: ServerResponse[]
  opened: number
  closed: number
}

async function slowUpstream(t: Test): Promise<Slow> {
  const pendingReplies: ServerResponse[] = []
  const server = createServer((req, res) => {
    req.resume()
    pendingReplies.push(res)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  const slow: Slow = { baseUrl: `http://127.0.0.1:${port}`, pendingReplies, opened: 0, closed: 0 }
  server.on('connection', (socket) => {
    slow.opened += 1
    socket.once('close', () => (slow.closed += 1))
  })
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  return slow
}

void t.test('two hundred queued requests are cancelled', async (t) => {
  const slow = await slowUpstream(t)
  const pool = openPool({ baseUrl: slow.baseUrl, maxConnections: 2 })
  t.teardown(() => pool.destroy())
  const running = [send(pool, 'a'), send(pool, 'b')]
  await eventually(() => slow.pendingReplies.length === 2, 'both connections are in use')
  const body = Buffer.alloc(100_000, 'x')
  const queued = Array.from({ length: 200 }, () => send(pool, 'queued', body))
  await new Promise((resolve) => setTimeout(resolve, 20))
  for (const { call } of queued) call.abort()
  for (const res of slow.pendingReplies.splice(0)) res.end('hello')
  t.same(await Promise.all(running.map(({ reply }) => reply)), ['200 hello', '200 hello'])
  const after = replyTo(pool, 'after')
  await eventually(() => slow.pendingReplies.length === 1, 'the next request succeeds')
  slow.pendingReplies[0]?.end('hello')
  t.equal(await after, '200 hello')
  t.equal(slow.opened, 2, 'no connection was opened for the cancelled')
  t.equal(slow.closed, 0, 'none was closed for them')
})

void t.test('cancelled requests make room for the others in order of arrival', async (t) => {
  const slow = await slowUpstream(t)
  const pool = openPool({ baseUrl: slow.baseUrl, maxConnections: 1 })
  t.teardown(() => pool.destroy())
  const seen: string[] = []
  const first = send(pool, 'first')
  const [second, third, fourth] = ['second', 'third', 'fourth'].map((path) => send(pool, path))
  second?.call.abort()
  for (const request of [first, third, fourth]) {
    await eventually(() => slow.pendingReplies.length === 1, 'one request is upstream')
    const res = slow.pendingReplies.pop()
    seen.push(res?.req.url ?? '')
    res?.end('hello')
    await request?.reply
  }
  t.same(seen, ['/first', '/third', '/fourth'])
  t.equal(slow.opened, 1)
})

void t.test(
  'a request that is cancelled before its connection is open leaves it to the next request',
  async (t) => {
    const slow = await slowUpstream(t)
    const pool = openPool({ baseUrl: slow.baseUrl, maxConnections: 1 })
    t.teardown(() => pool.destroy())
    const cancelled = send(pool, 'cancelled')
    // undici has the request and is connecting.
    await new Promise<void>((resolve) => queueMicrotask(resolve))
    cancelled.call.abort()
    const next = replyTo(pool, 'next')
    await eventually(() => slow.pendingReplies.length === 1, 'the next is upstream')
    t.equal(slow.pendingReplies[0]?.req.url, '/next', 'the cancelled one was never sent')
    slow.pendingReplies[0]?.end('hello')
    t.equal(await next, '200 hello')
    t.equal(slow.opened, 1, 'over the connection that was opened for the other')
    t.equal(slow.closed, 0)
  },
)

void t.test('closing waits for those in the queue, and destroying ends them', async (t) => {
  const slow = await slowUpstream(t)
  const pool = openPool({ baseUrl: slow.baseUrl, maxConnections: 1 })
  const requests = [send(pool, 'a'), send(pool, 'b')]
  let isClosed = false
  const closed = pool.close().then(() => (isClosed = true))
  for (const { reply } of requests) {
    await eventually(() => slow.pendingReplies.length === 1, 'one request is upstream')
    t.notOk(isClosed)
    slow.pendingReplies.pop()?.end('hello')
    t.equal(await reply, '200 hello')
  }
  await closed
  const other = openPool({ baseUrl: slow.baseUrl, maxConnections: 1 })
  const ended = [send(other, 'a'), send(other, 'b')]
  await eventually(() => slow.pendingReplies.length === 1, 'one request is upstream')
  await other.destroy()
  t.same(await Promise.all(ended.map(({ reply }) => reply)), ['UND_ERR_DESTROYED', 'DESTROYED'])
  t.equal(await replyTo(other, 'late'), 'DESTROYED', 'nothing is sent after it')
})

void t.test('a TLS handshake that hangs ends after connect_ms, and delays no other request', async (t) => {
  const server = createTcpServer((socket) => socket.on('error', () => undefined))
  const port = await listen(t, server)
  const pool = openPool({
    baseUrl: `https://127.0.0.1:${port}`,
    maxConnections: 1,
    timeouts: { connectMs: 200 },
  })
  t.teardown(() => pool.destroy())
  const began = performance.now()
  t.same(await Promise.all([replyTo(pool, 'a'), replyTo(pool, 'b')]), [
    'UND_ERR_CONNECT_TIMEOUT',
    'UND_ERR_CONNECT_TIMEOUT',
  ])
  t.ok(performance.now() - began > 300, 'in sequence')
})

void t.test('a connection that ends while its reply is paused', async (t) => {
  const half = 'x'.repeat(70_000)
  for (const ending of ['fin', 'length', 'reset', 'abort'] as const) {
    const length = ending === 'length' ? `content-length: ${2 * half.length}\r\n` : ''
    const server = createTcpServer((socket) => {
      socket.on('error', () => undefined)
      socket.once('data', () => {
        socket.write(`HTTP/1.1 200 OK\r\nconnection: close\r\n${length}\r\n${half}`)
        setTimeout(() => {
          if (ending === 'reset') socket.resetAndDestroy()
          else socket.end(half)
        }, 50)
      })
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.teardown(() => server.close())
    const address = server.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    const pool = openPool({ baseUrl: `http://127.0.0.1:${port}` })
    t.teardown(() => pool.destroy())
    let bytes = 0
    let isPaused = false
    const outcome = await new Promise<string>((resolve) => {
      const call = pool.send(
        { path: '/slow', headers: [], body: '{}' },
        {
          onRequestStart: () => undefined,
          onResponseStart: () => undefined,
          onResponseData: (chunk) => {
            t.notOk(isPaused, `${ending}: no part of a paused reply`)
            bytes += chunk.length
            isPaused = true
            call.pause()
            setTimeout(() => {
              isPaused = false
              if (ending === 'abort') call.abort()
              else call.resume()
              if (ending === 'abort') resolve('aborted')
            }, 200)
          },
          onResponseEnd: () => resolve(isPaused ? 'ended while paused' : 'ended'),
          onResponseError: () => resolve('failed'),
        },
      )
    })
    const whole = bytes === 2 * half.length ? 'whole' : 'part'
    const expected = {
      fin: 'ended, whole',
      length: 'ended, whole',
      reset: 'failed, part',
      abort: 'aborted, part',
    }
    t.equal(`${outcome}, ${whole}`, expected[ending], ending)
  }
})
