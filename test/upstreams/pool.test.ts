/**
 * Goal: requests share connections, one at a time, and no reply is ever taken for that to another.
 * Method: a raw server on a real socket that answers as the request's path says, in whatever pieces.
 */
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { createServer as createTlsServer } from 'node:tls'
import t from 'tap'
import type { Test } from 'tap'
import type { Destination, ReplyController } from '../../src/upstreams/connection.js'
import { Pool } from '../../src/upstreams/pool.js'

const HELLO = 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello'
const CHUNKED =
  'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nx: y\r\n\r\n'

/** What the server does for each path. */
const ANSWERS: Readonly<Record<string, (socket: Socket) => void>> = {
  plain: (socket) => socket.write(HELLO),
  chunked: (socket) => socket.write(CHUNKED),
  interim: (socket) => socket.write(`HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n${HELLO}`),
  drip: (socket) => drip(socket, `HTTP/1.1 100 Continue\r\n\r\n${CHUNKED}`),
  'no-body': (socket) => socket.write('HTTP/1.1 204 No Content\r\n\r\n'),
  last: (socket) => socket.write(HELLO.replace('OK\r\n', 'OK\r\nConnection: close\r\n')),
  'to-the-end': (socket) => socket.end('HTTP/1.1 200 OK\r\n\r\nhello'),
  'old-version': (socket) => socket.write(HELLO.replace('HTTP/1.1', 'HTTP/1.0')),
  cut: (socket) => socket.end(HELLO.slice(0, -1)),
  'cut-chunk': (socket) => socket.end(CHUNKED.slice(0, -12)),
  silent: (socket) => socket.end(),
  reset: (socket) => socket.resetAndDestroy(),
  'more-than-said': (socket) => socket.write(`${HELLO}${HELLO.replace('hello', 'wrong')}`),
  'said-later': (socket) => {
    socket.write(HELLO)
    setImmediate(() => socket.write(HELLO.replace('hello', 'wrong')))
  },
  'two-lengths': (socket) =>
    socket.write(HELLO.replace('\r\n\r\n', '\r\nContent-Length: 6\r\n\r\n')),
  'length-and-chunks': (socket) =>
    socket.write(CHUNKED.replace('\r\n\r\n', '\r\ncontent-length: 5\r\n\r\n')),
  gzipped: (socket) => socket.write(CHUNKED.replace('chunked', 'gzip, chunked')),
  folded: (socket) => socket.write(HELLO.replace('OK\r\n', 'OK\r\nx: a\r\n b\r\n')),
  'bare-line-feed': (socket) => socket.write(HELLO.replace('OK\r\n', 'OK\r\nx: a\nb: c\r\n')),
  'not-http': (socket) => socket.write('220 mail ready\r\n\r\n'),
  'bad-chunk': (socket) => socket.write(CHUNKED.replace('5;a=b', '5 ')),
  'long-head': (socket) => socket.write(`HTTP/1.1 200 OK\r\nx: ${'a'.repeat(20_000)}\r\n\r\n`),
  'endless-head': (socket) => socket.write(`HTTP/1.1 200 OK\r\nx: ${'a'.repeat(20_000)}`),
  upgraded: (socket) => socket.write('HTTP/1.1 101 Switching Protocols\r\n\r\n'),
  patient: (socket) => socket.write(HELLO.replace('OK\r\n', 'OK\r\nkeep-alive: timeout=1\r\n')),
}

const WHOLE = ['plain', 'chunked', 'interim', 'drip', 'last', 'to-the-end', 'old-version']
const BROKEN: Readonly<Record<string, string>> = {
  cut: 'CLOSED',
  'cut-chunk': 'CLOSED',
  silent: 'CLOSED',
  reset: 'ECONNRESET',
  'two-lengths': 'BAD_HEAD',
  'length-and-chunks': 'BAD_HEAD',
  gzipped: 'BAD_HEAD',
  folded: 'BAD_HEAD',
  'bare-line-feed': 'BAD_HEAD',
  'not-http': 'BAD_HEAD',
  'bad-chunk': 'BAD_BODY',
  'long-head': 'HEAD_TOO_LARGE',
  'endless-head': 'HEAD_TOO_LARGE',
  upgraded: 'CLOSED',
}

function drip(socket: Socket, text: string): void {
  if (text === '' || socket.destroyed) return
  socket.write(text.slice(0, 1))
  setImmediate(() => drip(socket, text.slice(1)))
}

interface Scene {
  readonly pool: Pool
  /** Requests as they came, by connection. */
  readonly received: string[][]
  readonly open: Set<Socket>
}

async function scene(
  t: Test,
  settings: Partial<Destination> & { connections?: number; keepAliveMs?: number } = {},
  server: Server = createServer(),
): Promise<Scene> {
  const received: string[][] = []
  const open = new Set<Socket>()
  server.on(settings.isTls === true ? 'secureConnection' : 'connection', (socket: Socket) => {
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
  const port = typeof address === 'object' && address !== null ? address.port : 0
  const { connections = 8, keepAliveMs = 4000, ...place } = settings
  const destination = { isTls: false, host: '127.0.0.1', port, authority: 'up', connectMs: 2000 }
  const pool = new Pool({ destination: { ...destination, ...place }, connections, keepAliveMs })
  t.teardown(async () => {
    await pool.destroy()
    for (const socket of open) socket.destroy()
    server.close()
  })
  return { pool, received, open }
}

/** `200 hello`, or the code of the failure. */
function ask(pool: Pool, path: string, body: string | Buffer = '{}'): Promise<string> {
  return new Promise((resolve) => {
    let text = ''
    pool.dispatch(
      {
        method: 'POST',
        path: `/${path}`,
        headers: ['x-a', 'b'],
        body,
        bytes: Buffer.byteLength(body),
      },
      {
        onRequestStart: () => undefined,
        onResponseStart: (_controller, status) => (text = `${status} `),
        onResponseData: (_controller, chunk) => (text += chunk.toString()),
        onResponseEnd: () => resolve(text),
        onResponseError: (_controller, cause) =>
          resolve('code' in cause && typeof cause.code === 'string' ? cause.code : cause.message),
      },
    )
  })
}

void t.test('what is told to be the last of a body is there until its end is told', async (t) => {
  const { pool } = await scene(t)
  const heard = (path: string): Promise<string[]> =>
    new Promise((resolve) => {
      const pieces: string[] = []
      let last: Buffer | null = null
      const request = { method: 'POST', path: `/${path}`, headers: [], body: '', bytes: 0 }
      pool.dispatch(request, {
        onRequestStart: () => undefined,
        onResponseStart: () => undefined,
        onResponseData: (_controller, chunk, isLast) => {
          if (isLast) last = chunk
          else pieces.push(chunk.toString())
        },
        onResponseEnd: () => resolve([...pieces, `last: ${last?.toString() ?? 'came before'}`]),
        onResponseError: (_controller, cause) => resolve([cause.message]),
      })
    })
  t.same(await heard('plain'), ['last: hello'])
  t.same(await heard('chunked'), ['last: hello'])
  t.same(await heard('to-the-end'), ['hello', 'last: came before'])
  const dripped = await heard('drip')
  t.equal(dripped.pop(), 'last: came before', 'its end came on its own')
  t.equal(dripped.join(''), 'hello')
})

void t.test('every form of a whole reply is read, and the next one too', async (t) => {
  const { pool } = await scene(t)
  for (const path of WHOLE) {
    t.equal(await ask(pool, path), '200 hello', path)
    t.equal(await ask(pool, 'plain'), '200 hello', `after ${path}`)
  }
  t.equal(await ask(pool, 'no-body'), '204 ')
})

void t.test('every broken reply ends in an error, and the next one is whole', async (t) => {
  const { pool } = await scene(t)
  for (const [path, code] of Object.entries(BROKEN)) {
    t.equal(await ask(pool, path), code, path)
    t.equal(await ask(pool, 'plain'), '200 hello', `after ${path}`)
  }
})

void t.test('bytes behind a reply are nobody’s answer', async (t) => {
  const { pool } = await scene(t)
  for (const path of ['more-than-said', 'said-later']) {
    t.equal(await ask(pool, path), '200 hello', path)
    await new Promise((resolve) => setTimeout(resolve, 20))
    for (let i = 0; i < 3; i += 1) t.equal(await ask(pool, 'plain'), '200 hello', `after ${path}`)
  }
})

void t.test('what goes out is one request, whatever is in it', async (t) => {
  const { pool, received } = await scene(t)
  const bodies = ['{"a":"é – 你"}', Buffer.from('{"a":"é – 你"}'), 'x'.repeat(100_000)]
  for (const body of bodies) await ask(pool, 'plain', body)
  const sent = received.flat().join('')
  const head = (bytes: number): string =>
    `POST /plain HTTP/1.1\r\nhost: up\r\nconnection: keep-alive\r\nx-a: b\r\ncontent-length: ${bytes}\r\n\r\n`
  const text = Buffer.from('{"a":"é – 你"}').toString('latin1')
  t.ok(sent.startsWith(head(text.length) + text + head(text.length) + text + head(100_000)))
  t.ok(sent.endsWith('x'.repeat(100_000)))
  t.equal(await ask(pool, 'plain\r\nx: y'), 'BAD_REQUEST', 'no line end gets into a head')
})

void t.test('connections are reused, and never more than allowed', async (t) => {
  const { pool, received } = await scene(t, { connections: 3 })
  const replies = await Promise.all(Array.from({ length: 20 }, () => ask(pool, 'drip')))
  t.same(new Set(replies), new Set(['200 hello']))
  t.equal(received.length, 3)
  await ask(pool, 'plain')
  t.equal(received.length, 3, 'an idle one is taken first')
})

void t.test('an idle connection goes, sooner where the upstream says so', async (t) => {
  const { pool, open } = await scene(t, { keepAliveMs: 200 })
  await ask(pool, 'plain')
  t.equal(open.size, 1)
  while (open.size > 0) await new Promise((resolve) => setTimeout(resolve, 20))
  const patient = await scene(t, { keepAliveMs: 60_000 })
  await ask(patient.pool, 'patient')
  while (patient.open.size > 0) await new Promise((resolve) => setTimeout(resolve, 20))
  t.pass('both are gone')
})

void t.test('an abort ends the connection, at every moment', async (t) => {
  const { pool, open } = await scene(t)
  for (const moment of ['start', 'head', 'data'] as const) {
    const heard: string[] = []
    const stop = (controller: ReplyController, now: string): void => {
      heard.push(now)
      if (now === moment) controller.abort(new Error('enough'))
    }
    pool.dispatch(
      { method: 'POST', path: '/drip', headers: [], body: '', bytes: 0 },
      {
        onRequestStart: (controller) => stop(controller, 'start'),
        onResponseStart: (controller) => stop(controller, 'head'),
        onResponseData: (controller) => stop(controller, 'data'),
        onResponseEnd: () => heard.push('end'),
        onResponseError: () => heard.push('error'),
      },
    )
    while (heard.at(-1) !== moment) await new Promise((resolve) => setImmediate(resolve))
    while (open.size > 0) await new Promise((resolve) => setImmediate(resolve))
    t.equal(heard.at(-1), moment, `${moment}: nothing is heard after it`)
  }
  t.equal(await ask(pool, 'plain'), '200 hello')
})

void t.test('a paused reply waits, and goes on', async (t) => {
  const { pool } = await scene(t)
  const heard: string[] = []
  const held: ReplyController[] = []
  const ended = new Promise<void>((resolve) => {
    pool.dispatch(
      { method: 'POST', path: '/drip', headers: [], body: '', bytes: 0 },
      {
        onRequestStart: () => undefined,
        onResponseStart: (controller) => {
          held.push(controller)
          controller.pause()
        },
        onResponseData: (_controller, chunk) => heard.push(chunk.toString()),
        onResponseEnd: resolve,
        onResponseError: (_controller, cause) => heard.push(cause.message),
      },
    )
  })
  while (held.length === 0) await new Promise((resolve) => setImmediate(resolve))
  await new Promise((resolve) => setTimeout(resolve, 50))
  t.same(heard, [])
  held[0]?.resume()
  await ended
  t.equal(heard.join(''), 'hello')
})

void t.test('an upstream that is not there is told to each that waits', async (t) => {
  const { pool } = await scene(t, { port: 1 })
  t.same(await Promise.all([ask(pool, 'plain'), ask(pool, 'plain')]), [
    'ECONNREFUSED',
    'ECONNREFUSED',
  ])
  const refusal = Object.assign(new Error('no'), { code: 'EPRIVATE' })
  const forbidden = await scene(t, { refusal })
  t.equal(await ask(forbidden.pool, 'plain'), 'EPRIVATE')
})

void t.test('closing lets what runs finish', async (t) => {
  const { pool, open } = await scene(t)
  await ask(pool, 'plain')
  const running = [ask(pool, 'drip'), ask(pool, 'drip')]
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
  const { pool, received } = await scene(t, { isTls: true, host: 'localhost' }, server)
  t.equal(await ask(pool, 'plain'), 'DEPTH_ZERO_SELF_SIGNED_CERT', 'a name nobody vouches for')
  t.same(received.flat(), [], 'and nothing was said to it')
  process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0'
  t.teardown(() => delete process.env['NODE_TLS_REJECT_UNAUTHORIZED'])
  for (const path of WHOLE) t.equal(await ask(pool, path), '200 hello', path)
  for (const path of ['cut', 'two-lengths', 'bad-chunk']) {
    t.equal(await ask(pool, path), BROKEN[path], path)
  }
})
