/**
 * Goal: requests share connections, one at a time, and no reply is assigned to another request.
 * Method: a raw server on a real socket whose reply depends on the request's path.
 */
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { createServer as createTlsServer } from 'node:tls'
import t from 'tap'
import type { Test } from 'tap'
import type { ConnectionSettings } from '../../../src/gateway/upstreams/connection-pool.js'
import type { RequestQueue } from '../../../src/gateway/upstreams/request-queue.js'
import type { UpstreamCall } from '../../../src/gateway/upstreams/upstream-call.js'
import { replyTo, openPool } from './fixtures.js'
import { ofToday } from '../../helpers/long-suite.js'

const HELLO = 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello'
const CHUNKED = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nx: y\r\n\r\n'

/** The reply of the server for each path. */
const ANSWERS: Readonly<Record<string, (socket: Socket) => void>> = {
  plain: (socket) => socket.write(HELLO),
  chunked: (socket) => socket.write(CHUNKED),
  interim: (socket) => socket.write(`HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n${HELLO}`),
  drip: (socket) => drip(socket, `HTTP/1.1 103 Early Hints\r\n\r\n${CHUNKED}`),
  'no-body': (socket) => socket.write('HTTP/1.1 204 No Content\r\n\r\n'),
  last: (socket) => socket.write(HELLO.replace('OK\r\n', 'OK\r\nConnection: close\r\n')),
  'to-the-end': (socket) => socket.end('HTTP/1.1 200 OK\r\n\r\nhello'),
  'old-version': (socket) => socket.write(HELLO.replace('HTTP/1.1', 'HTTP/1.0')),
  cut: (socket) => socket.end(HELLO.slice(0, -1)),
  'cut-chunk': (socket) => socket.end(CHUNKED.slice(0, -12)),
  silent: (socket) => socket.end(),
  reset: (socket) => socket.resetAndDestroy(),
  'more-than-announced': (socket) => socket.write(`${HELLO}${HELLO.replace('hello', 'wrong')}`),
  'sent-later': (socket) => {
    socket.write(HELLO)
    setImmediate(() => socket.write(HELLO.replace('hello', 'wrong')))
  },
  'two-lengths': (socket) => socket.write(HELLO.replace('\r\n\r\n', '\r\nContent-Length: 6\r\n\r\n')),
  'length-and-chunks': (socket) => socket.write(CHUNKED.replace('\r\n\r\n', '\r\ncontent-length: 5\r\n\r\n')),
  folded: (socket) => socket.write(HELLO.replace('OK\r\n', 'OK\r\nx: a\r\n b\r\n')),
  'bare-line-feed': (socket) => socket.write(HELLO.replace('OK\r\n', 'OK\r\nx: a\nb: c\r\n')),
  'not-http': (socket) => socket.write('220 mail ready\r\n\r\n'),
  'bad-chunk': (socket) => socket.write(CHUNKED.replace('5;a=b', '5 ')),
  'long-head': (socket) => socket.write(`HTTP/1.1 200 OK\r\nx: ${'a'.repeat(20_000)}\r\n\r\n`),
  'endless-head': (socket) => socket.write(`HTTP/1.1 200 OK\r\nx: ${'a'.repeat(20_000)}`),
  upgraded: (socket) => socket.write('HTTP/1.1 101 Switching Protocols\r\n\r\n'),
  patient: (socket) => socket.write(HELLO.replace('OK\r\n', 'OK\r\nkeep-alive: timeout=2\r\n')),
}

const WHOLE = ['plain', 'chunked', 'interim', 'drip', 'last', 'to-the-end', 'old-version']
const BROKEN: Readonly<Record<string, string>> = {
  cut: 'UND_ERR_SOCKET',
  'cut-chunk': 'UND_ERR_SOCKET',
  silent: 'UND_ERR_SOCKET',
  reset: 'ECONNRESET',
  'two-lengths': 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH',
  'length-and-chunks': 'HTTPParserError',
  folded: 'HTTPParserError',
  'bare-line-feed': 'HTTPParserError',
  'not-http': 'HTTPParserError',
  'bad-chunk': 'HTTPParserError',
  'long-head': 'UND_ERR_HEADERS_OVERFLOW',
  'endless-head': 'UND_ERR_HEADERS_OVERFLOW',
  upgraded: 'ERR_ASSERTION',
}

function drip(socket: Socket, text: string): void {
  if (text === '' || socket.destroyed) return
  socket.write(text.slice(0, 1))
  setImmediate(() => drip(socket, text.slice(1)))
}

interface Scene {
  readonly pool: RequestQueue
  /** Requests in the order of arrival, by connection. */
  readonly received: string[][]
  readonly open: Set<Socket>
}

async function scene(
  t: Test,
  settings: Partial<ConnectionSettings> & { host?: string; port?: number } = {},
  server: Server = createServer(),
): Promise<Scene> {
  const received: string[][] = []
  const open = new Set<Socket>()
  const isTls = settings.host === 'localhost'
  server.on(isTls ? 'secureConnection' : 'connection', (socket: Socket) => {
    const mine: string[] = []
    received.push(mine)
    open.add(socket)
    socket.setNoDelay()
    socket.on('close', () => open.delete(socket)).on('error', () => undefined)
    socket.on('data', (bytes) => {
      const text = bytes.toString('latin1')
      mine.push(text)
      ANSWERS[/^POST \/([\w-]+)/.exec(text)?.[1] ?? '']?.(socket)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const { port = typeof address === 'object' && address !== null ? address.port : 0 } = settings
  const origin = `${isTls ? 'https' : 'http'}://${settings.host ?? '127.0.0.1'}:${port}`
  const pool = openPool({ baseUrl: origin, ...settings })
  t.teardown(async () => {
    await pool.destroy()
    for (const socket of open) socket.destroy()
    server.close()
  })
  return { pool, received, open }
}

void t.test('every form of a whole reply is read, and the next one too', async (t) => {
  const { pool } = await scene(t)
  for (const path of WHOLE) {
    t.equal(await replyTo(pool, path), '200 hello', path)
    t.equal(await replyTo(pool, 'plain'), '200 hello', `after ${path}`)
  }
  t.equal(await replyTo(pool, 'no-body'), '204 ')
})

void t.test('every invalid reply ends in an error, and the next one is complete', async (t) => {
  const { pool } = await scene(t)
  // Each day has a third of them.
  for (const [path, code] of ofToday(Object.entries(BROKEN), 3)) {
    t.equal(await replyTo(pool, path), code, path)
    t.equal(await replyTo(pool, 'plain'), '200 hello', `after ${path}`)
  }
})

void t.test('bytes after a reply are not assigned to another reply', async (t) => {
  const { pool } = await scene(t)
  for (const path of ['more-than-announced', 'sent-later']) {
    t.equal(await replyTo(pool, path), '200 hello', path)
    await new Promise((resolve) => setTimeout(resolve, 20))
    for (let i = 0; i < 3; i += 1) t.equal(await replyTo(pool, 'plain'), '200 hello', `after ${path}`)
  }
})

void t.test('one request is sent, for any content', async (t) => {
  const { pool, received } = await scene(t)
  const bodies = ['{"a":"é – 你"}', Buffer.from('{"a":"é – 你"}'), 'x'.repeat(100_000)]
  for (const body of bodies) await replyTo(pool, 'plain', body)
  const sent = received
    .flat()
    .join('')
    .replaceAll(/host: 127\.0\.0\.1:\d+/g, 'HOST')
  const head = (bytes: number): string =>
    `POST /plain HTTP/1.1\r\nHOST\r\nconnection: keep-alive\r\nx-a: b\r\ncontent-length: ${bytes}\r\n\r\n`
  const text = Buffer.from('{"a":"é – 你"}').toString('latin1')
  t.equal(sent.split(head(text.length) + text).length - 1, 2, 'a text and its bytes are the same')
  t.ok(sent.includes(head(100_000) + 'x'.repeat(100_000)), 'a large body arrives complete')
  t.equal(await replyTo(pool, 'plain\r\nx: y'), 'BAD_REQUEST', 'a head contains no line end')
})

void t.test('connections are reused, and never more than allowed', async (t) => {
  const { pool, received } = await scene(t, { maxConnections: 3 })
  const replies = await Promise.all(Array.from({ length: 20 }, () => replyTo(pool, 'drip')))
  t.same(new Set(replies), new Set(['200 hello']))
  t.equal(received.length, 3)
  await replyTo(pool, 'plain')
  t.equal(received.length, 3, 'an idle connection is used first')
})

void t.test('an idle connection is closed, earlier if the upstream sends a keep-alive time', async (t) => {
  const { pool, open } = await scene(t)
  const idleMs = async (path: string): Promise<number> => {
    await replyTo(pool, path)
    const before = performance.now()
    while (open.size > 0) await new Promise((resolve) => setTimeout(resolve, 20))
    return performance.now() - before
  }
  t.ok((await idleMs('plain')) > 3500, 'after 4 s')
  t.ok((await idleMs('patient')) < 3500, 'a second before the time that the upstream named')
})

void t.test('an abort ends the connection in every phase', async (t) => {
  const { pool, open } = await scene(t)
  for (const moment of ['start', 'head', 'data'] as const) {
    const received: string[] = []
    const calls: UpstreamCall[] = []
    const stop = (now: string): void => {
      received.push(now)
      if (now === moment) calls[0]?.abort()
    }
    const call = pool.send(
      { path: '/drip', headers: [], body: '' },
      {
        onRequestStart: () => stop('start'),
        onResponseStart: () => stop('head'),
        onResponseData: () => stop('data'),
        onResponseEnd: () => received.push('end'),
        onResponseError: () => received.push('error'),
      },
    )
    calls.push(call)
    while (received.at(-1) !== moment) await new Promise((resolve) => setImmediate(resolve))
    const [socket] = open
    while (socket !== undefined && open.has(socket)) {
      await new Promise((resolve) => setImmediate(resolve))
    }
    t.equal(received.at(-1), moment, `${moment}: no callback follows`)
  }
  t.equal(await replyTo(pool, 'plain'), '200 hello')
})

void t.test('a paused reply waits and continues', async (t) => {
  const { pool } = await scene(t)
  const received: string[] = []
  const calls: UpstreamCall[] = []
  const ended = new Promise<void>((resolve) => {
    const call = pool.send(
      { path: '/drip', headers: [], body: '' },
      {
        onRequestStart: () => undefined,
        onResponseStart: () => {
          calls.push(call)
          call.pause()
        },
        onResponseData: (chunk) => received.push(chunk.toString()),
        onResponseEnd: resolve,
        onResponseError: (cause) => received.push(cause.message),
      },
    )
  })
  while (calls.length === 0) await new Promise((resolve) => setImmediate(resolve))
  await new Promise((resolve) => setTimeout(resolve, 50))
  t.same(received, [])
  calls[0]?.resume()
  await ended
  t.equal(received.join(''), 'hello')
})

void t.test('each waiting request gets the error of an unreachable upstream', async (t) => {
  const { pool } = await scene(t, { port: 1 })
  t.same(await Promise.all([replyTo(pool, 'plain'), replyTo(pool, 'plain')]), [
    'ECONNREFUSED',
    'ECONNREFUSED',
  ])
  const forbidden = await scene(t, { allowPrivateAddress: false })
  t.equal(await replyTo(forbidden.pool, 'plain'), 'EPRIVATE')
})

void t.test('closing lets running requests finish', async (t) => {
  const { pool, open } = await scene(t)
  await replyTo(pool, 'plain')
  const running = [replyTo(pool, 'drip'), replyTo(pool, 'drip')]
  const closed = pool.close()
  t.same(await Promise.all(running), ['200 hello', '200 hello'])
  await closed
  while (open.size > 0) await new Promise((resolve) => setImmediate(resolve))
  t.pass('nothing is open')
})

void t.test('the same over TLS', async (t) => {
  const folder = t.testdir()
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  execFileSync(
    'openssl',
    ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'].concat([
      '-subj',
      '/CN=localhost',
      '-days',
      '1',
      '-keyout',
      key,
      '-out',
      cert,
    ]),
    { stdio: 'ignore' },
  )
  const server = createTlsServer({ key: readFileSync(key), cert: readFileSync(cert) })
  const { pool, received } = await scene(t, { host: 'localhost' }, server)
  t.equal(await replyTo(pool, 'plain'), 'DEPTH_ZERO_SELF_SIGNED_CERT', 'an untrusted certificate')
  t.same(received.flat(), [], 'and no request was sent')
  process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0'
  t.teardown(() => delete process.env['NODE_TLS_REJECT_UNAUTHORIZED'])
  for (const path of WHOLE) t.equal(await replyTo(pool, path), '200 hello', path)
  for (const path of ['cut', 'two-lengths', 'bad-chunk']) {
    t.equal(await replyTo(pool, path), BROKEN[path], path)
  }
})
