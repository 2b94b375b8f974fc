/**
 * Goal: the HTTP/1 server handles heads, framing, keep-alive, pipelining, back-pressure and disconnects
 * correctly.
 * Method: a real listener with different handlers, and raw sockets.
 */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import type { HttpRequest, HttpResponse } from '../../src/http/message.js'
import { abortReply, beginReply, truncateReply, isSent, sendReply } from '../../src/http/respond.js'
import { openServer, type ServerOptions } from '../../src/http/server.js'
import { send } from '../faults/listener/raw-client.js'
import { bodyOf } from '../helpers/requests.js'

type Handler = (req: HttpRequest, res: HttpResponse) => void

async function open(t: Test, handler: Handler, options: Partial<ServerOptions> = {}): Promise<number> {
  const door = await openServer({ host: '127.0.0.1', port: 0, handler, ...options })
  t.teardown(() => door.drain(0))
  return door.port
}

function head(line: string, ...lines: string[]): string {
  return [line, 'Host: a', ...lines, '', ''].join('\r\n')
}

const LAST = head('GET /last HTTP/1.1', 'Connection: close')

async function until(isSo: () => boolean): Promise<void> {
  for (let i = 0; i < 3_000 && !isSo(); i += 1) await new Promise((resolve) => setTimeout(resolve, 10))
}

void t.test('a reply has its status line and headers', async (t) => {
  const port = await open(t, (_req, res) =>
    sendReply(res, { status: 200, headers: ['x-a', 'b'], body: '{"é":1}' }),
  )
  const { text } = await send(port, head('GET / HTTP/1.1') + LAST)
  const lines = [
    ...['HTTP/1.1 200 OK', 'x-a: b', 'content-length: 8', 'Date: [A-Z][a-z]{2}, .* GMT'],
    ...['Connection: keep-alive', 'Keep-Alive: timeout=65, max=1000', '', ''],
  ]
  const kept = `${lines.join('\r\n')}\\{"Ã©":1\\}`
  const closed = kept.replace('keep-alive\r\nKeep-Alive: timeout=65, max=1000', 'close')
  t.match(text, new RegExp(`^${kept}${closed}$`))
})

void t.test('a stream is chunked in HTTP/1.1 and ends with the connection in HTTP/1.0', async (t) => {
  const port = await open(t, (_req, res) => {
    beginReply(res, 200, ['x-a', 'b'])
    res.write('é!')
    res.write(Buffer.from('abc'))
    res.write(Buffer.alloc(10_000, 'x'))
    res.end('end')
  })
  const chunked = await send(port, LAST)
  const big = `2710\r\n${'x'.repeat(10_000)}\r\n`
  const body = `\r\n\r\n3\r\nÃ©!\r\n3\r\nabc\r\n${big}3\r\nend\r\n0\r\n\r\n`
  t.ok(chunked.text.endsWith(`Connection: close\r\nTransfer-Encoding: chunked${body}`))
  const old = await send(port, head('GET / HTTP/1.0', 'Connection: keep-alive'))
  t.ok(old.closed)
  t.ok(old.text.endsWith(`Connection: close\r\n\r\nÃ©!abc${'x'.repeat(10_000)}end`))
  const nothing = await send(port, head('HEAD / HTTP/1.1', 'Connection: close'))
  t.match(nothing.text, /Connection: close\r\n\r\n$/, 'a reply to HEAD has no body and no chunks')
})

void t.test('HEAD has content-length, and HTTP/1.0 connections are kept on request', async (t) => {
  const port = await open(t, (_req, res) => sendReply(res, { status: 200, headers: [], body: 'body' }))
  const headed = await send(port, head('HEAD / HTTP/1.1') + LAST)
  t.match(headed.text, /^[^]*content-length: 4\r\n[^]*\r\n\r\nHTTP\/1\.1 200 [^]*body$/)
  const kept = await send(port, [head('GET / HTTP/1.0', 'Connection: keep-alive'), LAST])
  t.equal(kept.answers.length, 2)
  const both = await send(port, head('GET / HTTP/1.1', 'Connection: a, Keep-Alive , CLOSE') + LAST)
  t.equal(both.answers.length, 1)
})

void t.test('F-102: pipelined requests are handled in sequence', async (t) => {
  let running = 0
  const seen: string[] = []
  const port = await open(t, (req, res) => {
    running += 1
    t.equal(running, 1, 'one at a time')
    bodyOf(req, (body) => {
      seen.push(`${req.url ?? ''} ${body.toString()}`)
      setTimeout(() => {
        running -= 1
        sendReply(res, { status: 200, headers: [], body: req.url ?? '' })
      }, 5)
    })
  })
  const posts = [1, 2, 3].map((i) => `${head(`POST /${i} HTTP/1.1`, 'Content-Length: 2')}b${i}`)
  const chunked = `${head('POST /4 HTTP/1.1', 'Transfer-Encoding: chunked')}2\r\nb4\r\n0\r\n\r\n`
  const all = `${posts.join('')}${chunked}\r\n\r\n${LAST}`
  for (const chunks of [[all], all.split(/(?<=[^]{7})/), [all.slice(0, 100), all.slice(100)]]) {
    const { answers } = await send(port, chunks)
    t.same(
      answers.map(({ body }) => body),
      ['/1', '/2', '/3', '/4', '/last'],
    )
    t.same(seen.splice(0), ['/1 b1', '/2 b2', '/3 b3', '/4 b4', '/last '])
  }
})

void t.test('a connection closes after 1,000 pipelined requests', async (t) => {
  let count = 0
  const port = await open(t, (_req, res) => {
    count += 1
    sendReply(res, { status: 200, headers: [], body: '' })
  })
  const { answers, closed } = await send(port, head('GET / HTTP/1.1').repeat(1500))
  t.same([answers.length, count, closed], [1000, 1000, true])
  t.equal(answers[998]?.headers['connection'], 'keep-alive')
  t.equal(answers[999]?.headers['connection'], 'close')
})

void t.test('F-102: reading pauses if a client pipelines without reading replies', async (t) => {
  let asked = false
  let reply = (): void => undefined
  const port = await open(t, (_req, res) => {
    asked = true
    reply = () => sendReply(res, { status: 200, headers: ['connection', 'close'], body: 'x' })
  })
  const socket = connect(port, '127.0.0.1').on('error', () => undefined)
  t.teardown(() => socket.destroy())
  const requests = head('GET / HTTP/1.1', `X: ${'v'.repeat(1000)}`).repeat(60)
  for (let i = 0; i < 400; i += 1) socket.write(requests)
  await new Promise((resolve) => setTimeout(resolve, 300))
  t.ok(socket.writableLength > 10e6, `${socket.writableLength} bytes wait at the client`)
  let isClosed = false
  socket.resume().once('close', () => (isClosed = true))
  await until(() => asked)
  reply()
  await until(() => isClosed)
  t.ok(isClosed)
})

void t.test('a body that is not read waits at the client and arrives complete later', async (t) => {
  let asked = false
  let read = (): void => undefined
  let length = 0
  const port = await open(t, (req, res) => {
    asked = true
    read = () => {
      bodyOf(req, (body) => {
        length = body.length
        sendReply(res, { status: 200, headers: ['connection', 'close'], body: '' })
      })
    }
  })
  const socket = connect(port, '127.0.0.1')
  socket.write(head('POST / HTTP/1.1', 'Content-Length: 20000000'))
  socket.write(Buffer.alloc(20e6))
  await new Promise((resolve) => setTimeout(resolve, 200))
  t.ok(socket.writableLength > 0, 'the socket is not fully read')
  const closed = once(socket.resume(), 'close')
  await until(() => asked)
  read()
  await closed
  t.equal(length, 20e6)
})

void t.test('a slow client causes back-pressure and one drain event', async (t) => {
  const events: string[] = []
  const port = await open(t, (_req, res) => {
    res.once('close', () => events.push(`closed ${isSent(res)}`))
    res.on('drain', () => {
      events.push('drained')
      res.end()
    })
    beginReply(res, 200, [])
    t.equal(res.write('x'), true)
    while (res.write('x'.repeat(6_000_000)));
    t.ok(res.writableLength >= 16_384)
  })
  const socket = connect(port, '127.0.0.1').pause()
  socket.write(head('GET / HTTP/1.1'))
  await new Promise((resolve) => setTimeout(resolve, 100))
  t.same(events, [])
  let text = ''
  socket.on('data', (chunk: Buffer) => (text += chunk.toString())).resume()
  await until(() => events.length === 2)
  t.same(events, ['drained', 'closed true'])
  await until(() => text.endsWith('0\r\n\r\n'))
  t.ok(text.endsWith('\r\n0\r\n\r\n'))
  socket.destroy()
})

void t.test('a disconnect closes the reply in every phase', async (t) => {
  const disconnects: Record<string, (socket: Socket) => void> = {
    fin: (socket) => socket.end(),
    reset: (socket) => socket.resetAndDestroy(),
  }
  const events: string[] = []
  const port = await open(t, (req, res) => {
    res.once('close', () => events.push(`${req.url ?? ''} ${isSent(res)}`))
    if (req.url !== '/streaming') return
    beginReply(res, 200, [])
    res.write('x')
  })
  for (const [name, leave] of Object.entries(disconnects)) {
    for (const line of ['GET /waiting', 'GET /streaming', 'POST /body']) {
      const socket = connect(port, '127.0.0.1').on('error', () => undefined)
      const lines = line === 'POST /body' ? ['Content-Length: 9'] : []
      socket.resume().write(head(`${line} HTTP/1.1`, ...lines))
      await new Promise((resolve) => setTimeout(resolve, 30))
      t.same(events, [], `${name}, ${line}: waiting`)
      leave(socket)
      await until(() => events.length > 0)
      // A half-closed client can still read the error about its incomplete body.
      const isReplySent = name === 'fin' && line === 'POST /body'
      t.same(events.splice(0), [`${line.split(' ')[1] ?? ''} ${isReplySent}`], `${name}, ${line}`)
    }
  }
})

void t.test('an idle connection times out, and one with a running request does not', async (t) => {
  const options = { keepAliveTimeoutMs: 200, checkingIntervalMs: 50 }
  const port = await open(
    t,
    (_req, res) => {
      setTimeout(() => sendReply(res, { status: 200, headers: [], body: '' }), 600)
    },
    options,
  )
  const { answers, closed, tookMs, ownMs } = await send(port, head('GET / HTTP/1.1'))
  t.same([answers[0]?.status, closed], [200, true])
  t.ok(tookMs > 780 && ownMs < 2500, `${tookMs} ms`)
})

void t.test('a truncated reply has no last chunk', async (t) => {
  const port = await open(t, (_req, res) => {
    beginReply(res, 200, [])
    res.write('a')
    truncateReply(res, 'why')
  })
  const { text, closed } = await send(port, head('GET / HTTP/1.1'))
  t.ok(closed && text.endsWith('1\r\na\r\n3\r\nwhy\r\n'))
})

void t.test('a header value with a line break is never written', async (t) => {
  const errors: unknown[] = []
  const port = await open(t, (_req, res) => {
    try {
      beginReply(res, 200, ['x', 'a\r\nb: c'])
    } catch (error) {
      errors.push(error)
      abortReply(res)
    }
  })
  const { text } = await send(port, LAST)
  t.equal(text, '')
  t.match(errors, [/Invalid character/])
})
