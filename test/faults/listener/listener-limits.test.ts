/**
 * Goal: slow clients, early replies and shutdowns end within their time limits.
 * Method: a real listener with short time limits, and raw sockets whose durations are measured.
 */
import { once } from 'node:events'
import { connect } from 'node:net'
import t from 'tap'
import type { Test } from 'tap'
import { GatewayError } from '../../../src/errors.js'
import { guardTrailers } from '../../../src/http/request-guard.js'
import type { HttpRequest, HttpResponse } from '../../../src/http/message.js'
import { beginReply, isSent, sendReply } from '../../../src/http/respond.js'
import { openServer, type GatewayServer, type ServerOptions } from '../../../src/http/server.js'
import { bodyOf } from '../../helpers/requests.js'
import { stopwatch } from '../../helpers/stopwatch.js'
import { send } from './raw-client.js'

function head(...lines: string[]): string {
  return ['POST /v1/chat/completions HTTP/1.1', 'Host: gateway', ...lines, '', ''].join('\r\n')
}

/** Replies with the body of the request. */
function echo(req: HttpRequest, res: HttpResponse): void {
  bodyOf(req, (body) => sendReply(res, { status: 200, headers: [], body }))
}

/** Replies 401 without reading the body. */
function deny(_req: HttpRequest, res: HttpResponse): void {
  sendReply(res, { status: 401, headers: [], body: 'no' })
}

async function open(t: Test, options: Partial<ServerOptions>): Promise<GatewayServer> {
  const door = await openServer({ host: '127.0.0.1', port: 0, handler: echo, ...options })
  t.teardown(() => door.drain(0))
  return door
}

void t.test('F-93, F-94, F-95: a request that does not arrive in time gets a 408', async (t) => {
  const refused: string[] = []
  const door = await open(t, {
    headersTimeoutMs: 300,
    requestTimeoutMs: 600,
    checkingIntervalMs: 50,
    onRefused: (kind) => refused.push(kind),
  })
  const drip = (text: string): string[] => [...text.matchAll(/[^]/g)].map(([chunk]) => chunk)
  const cases: Record<string, [string[], number]> = {
    'nothing at all': [[], 300],
    'half a request line': [['POST /v1'], 300],
    'one byte of a header at a time': [drip(head(`X: ${'a'.repeat(1000)}`)), 300],
    'a body that stops': [[head('Content-Length: 10'), 'abc'], 600],
    'one byte of a body at a time': [[head('Content-Length: 1000'), ...drip('a'.repeat(1000))], 600],
  }
  for (const [name, [chunks, timeoutMs]] of Object.entries(cases)) {
    const outcome = await send(door.port, chunks, { chunkEveryMs: 10 })
    t.equal(outcome.answers[0]?.status, 408, name)
    t.match(outcome.answers[0]?.body ?? '', '"kind":"request_timeout"', name)
    t.ok(outcome.closed, `${name}: closed`)
    t.ok(outcome.tookMs > timeoutMs - 100, `${name}: not before its time (${outcome.tookMs})`)
    // The margin for a busy machine is far below Node's own check interval of thirty seconds.
    t.ok(outcome.ownMs < timeoutMs + 2000, `${name}: not long after (${outcome.tookMs})`)
  }
  t.same(new Set(refused), new Set(['request_timeout']))
})

void t.test('an early reply arrives, and the rest of the body is never parsed as a request', async (t) => {
  let begun = 0
  const door = await open(t, {
    handler: (req, res) => {
      begun += 1
      deny(req, res)
    },
  })
  const inner = 'GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n'
  const all = await send(door.port, [
    head(`Content-Length: ${inner.length}`),
    inner,
    head('Connection: close', 'Content-Length: 0'),
  ])
  t.same(
    all.answers.map((answer) => answer.status),
    [401, 401],
    'a body that arrives is discarded',
  )
  t.equal(begun, 2)
  begun = 0
  const half = await send(door.port, [head('Content-Length: 1000'), inner])
  t.same(
    half.answers.map((answer) => answer.status),
    [401],
    'the server does not wait for a body that does not arrive',
  )
  t.ok(half.closed)
  t.ok(half.ownMs < 2500, `${half.tookMs} ms`)
  const refused = await send(door.port, [head('Content-Length: 1000', 'Host: b'), inner, inner])
  t.same(
    refused.answers.map((answer) => answer.status),
    [400],
  )
  t.ok(refused.closed)
  t.equal(begun, 1, 'only the admitted request')
})

void t.test('100 Continue is sent only by a handler that reads the body', async (t) => {
  const reading = await open(t, {})
  const lines = ['Expect: 100-continue', 'Content-Length: 2']
  const next = head('Connection: close', 'Content-Length: 0')
  const outcome = await send(reading.port, [head(...lines), '{}', next], { chunkEveryMs: 100 })
  t.same(
    outcome.answers.map((answer) => answer.status),
    [100, 200, 200],
    'and the connection stays open',
  )
  const denying = await open(t, { handler: deny })
  const denied = await send(denying.port, head(...lines))
  t.same(
    denied.answers.map((answer) => answer.status),
    [401],
  )
  t.equal(denied.answers[0]?.headers['connection'], 'close')
  t.ok(denied.closed, 'since the body may arrive or not')
  const refused = await send(denying.port, head(...lines, 'Content-Type: a', 'Content-Type: b'))
  t.same(
    refused.answers.map((answer) => answer.status),
    [400],
  )
})

void t.test('a running reply is not affected by later bytes', async (t) => {
  let finish = (): void => undefined
  const door = await open(t, {
    handler: (_req, res) => {
      beginReply(res, 200, ['content-length', '4'])
      res.write('ab')
      finish = () => res.end('cd')
    },
  })
  const sent = send(door.port, [head('Content-Length: 0'), 'garbage\r\n\r\n', 'GET / HTTP/1.1'], {
    chunkEveryMs: 50,
  })
  setTimeout(() => finish(), 300)
  const garbage = await sent
  t.equal(garbage.answers[0]?.body, 'abcd', 'the reply arrives complete')
  t.equal(garbage.answers.length, 1, 'no second reply inside or after the first')
  t.ok(garbage.closed)
  const last = send(door.port, [head('Connection: close', 'Content-Length: 0'), '\r\nmore\r\n'])
  setTimeout(() => finish(), 100)
  t.equal((await last).answers[0]?.body, 'abcd', 'bytes after the last request do not truncate its reply')
})

void t.test('a content-length that is too low, or missing, gets a reply', async (t) => {
  const door = await open(t, {
    handler: (req, res) => {
      bodyOf(req, (body) =>
        setTimeout(() => sendReply(res, { status: 400, headers: [], body: `read ${body.length}` }), 50),
      )
    },
  })
  for (const [lines, read] of [
    [['Content-Length: 3'], 'read 3'],
    [[], 'read 0'],
  ] as const) {
    const outcome = await send(door.port, `${head(...lines)}{"a":1}`)
    t.equal(outcome.answers[0]?.body, read)
    t.equal(outcome.answers[0]?.headers['connection'], 'close')
    t.equal(outcome.answers.length, 1, 'the rest is not parsed as a request and gets no reply')
    t.ok(outcome.closed)
  }
})

void t.test('trailers are accepted or refused as a whole', async (t) => {
  const refusals: (string | undefined)[] = []
  const door = await open(t, {
    handler: (req, res) => {
      bodyOf(req, () => {
        refusals.push(guardTrailers(req)?.kind)
        sendReply(res, { status: 200, headers: [], body: '' })
      })
    },
  })
  for (const [count, kind] of [
    [0, undefined],
    [100, undefined],
    [101, 'headers_too_large'],
  ] as const) {
    const trailers = Array.from({ length: count }, (_, i) => `T${i}: v\r\n`).join('')
    const body = `2\r\n{}\r\n0\r\n${trailers}\r\n`
    await send(door.port, head('Connection: close', 'Transfer-Encoding: chunked') + body)
    t.equal(refusals.pop(), kind, `${count} trailers`)
  }
  const flood = '2\r\n{}\r\n0\r\n' + 'T: v\r\n'.repeat(5000) + '\r\n'
  const outcome = await send(door.port, head('Connection: close', 'Transfer-Encoding: chunked') + flood)
  t.ok(outcome.answers[0]?.status === 431 || refusals.at(-1) === 'headers_too_large', 'five thousand')
})

void t.test('a port that is in use is refused with a clear error', async (t) => {
  const door = await open(t, {})
  const second = openServer({ host: '127.0.0.1', port: door.port, handler: echo })
  await t.rejects(second, { message: /cannot listen on 127\.0\.0\.1:\d+ \(EADDRINUSE\)/ })
  await t.rejects(second, GatewayError)
})

void t.test('a server that drains finishes open requests and accepts no new ones', async (t) => {
  const waiting: HttpResponse[] = []
  const door = await open(t, { handler: (_req, res) => waiting.push(res) })
  const silent = connect(door.port, '127.0.0.1')
  await once(silent, 'connect')
  const idle = send(door.port, head('Content-Length: 0'))
  const busy = send(door.port, head('Content-Length: 0'))
  while (waiting.length < 2) await new Promise((resolve) => setTimeout(resolve, 5))
  const [finished] = waiting.splice(0, 1)
  if (finished !== undefined) sendReply(finished, { status: 200, headers: [], body: '' })
  const half = send(door.port, [head('Content-Length: 2') + '{', '}'], { chunkEveryMs: 400 })
  while (waiting.length < 2) await new Promise((resolve) => setTimeout(resolve, 5))
  const silentGone = once(silent, 'close')
  const drained = door.drain(5000)
  t.ok(door.draining)
  t.equal(door.drain(0), drained, 'a second call is the first')
  await silentGone
  t.ok((await idle).closed, 'an idle connection is closed')
  const late = await send(door.port, head('Content-Length: 0'))
  t.equal(late.text, '', 'a new one is not taken')
  for (const res of waiting) sendReply(res, { status: 200, headers: [], body: 'ok' })
  for (const outcome of [await busy, await half]) {
    t.equal(outcome.answers[0]?.body, 'ok')
    t.equal(outcome.answers[0]?.headers['connection'], 'close')
    t.ok(outcome.closed)
  }
  await drained
})

void t.test('a draining server still replies, and closes each connection', async (t) => {
  const door = await open(t, {})
  const drained = door.drain(1000, { lameDuckMs: 300 })
  const outcome = await send(door.port, head('Content-Length: 2') + '{}')
  t.equal(outcome.answers[0]?.body, '{}')
  t.equal(outcome.answers[0]?.headers['connection'], 'close')
  t.ok(outcome.closed)
  await drained
})

void t.test('open streams are notified at the deadline, then closed', async (t) => {
  const streams: HttpResponse[] = []
  const door = await open(t, {
    handler: (_req, res) => {
      beginReply(res, 200, ['content-type', 'text/event-stream'])
      res.write('data: 1\n\n')
      streams.push(res)
    },
  })
  const polite = send(door.port, head('Content-Length: 0'))
  const stuck = send(door.port, head('Content-Length: 0'))
  while (streams.length < 2) await new Promise((resolve) => setTimeout(resolve, 5))
  let deadlines = 0
  const start = performance.now()
  const watch = stopwatch()
  await door.drain(300, {
    onDeadline: () => {
      deadlines += 1
      streams[0]?.end('data: {"error":{}}\n\n')
    },
  })
  const tookMs = performance.now() - start
  t.equal(deadlines, 1)
  t.ok(tookMs > 290 && watch() < 2500, `${tookMs} ms`)
  const texts = [(await polite).text, (await stuck).text]
  t.equal(texts.filter((text) => text.includes('error')).length, 1)
  t.equal(texts.filter((text) => text.endsWith('0\r\n\r\n')).length, 1, 'the other reply is truncated')
})

void t.test('F-100: a connection above the maximum gets 503 and is closed', async (t) => {
  const refused: string[] = []
  const door = await open(t, { maxConnections: 2, onRefused: (kind) => refused.push(kind) })
  const sockets = [connect(door.port, '127.0.0.1'), connect(door.port, '127.0.0.1')]
  t.teardown(() => sockets.forEach((socket) => socket.destroy()))
  await Promise.all(sockets.map((socket) => once(socket, 'connect')))
  const outcome = await send(door.port, head('Content-Length: 2') + '{}')
  t.equal(outcome.answers[0]?.status, 503)
  t.match(outcome.answers[0]?.body, '"kind":"overloaded"')
  t.equal(outcome.answers[0]?.headers['retry-after'], '1')
  t.ok(outcome.closed)
  t.equal(outcome.answers.length, 1)
  t.same(refused, ['overloaded'])
  sockets[0]?.destroy()
  await new Promise((resolve) => setTimeout(resolve, 100))
  const next = await send(door.port, head('Connection: close', 'Content-Length: 2') + '{}')
  t.equal(next.answers[0]?.status, 200, 'a slot is free again')
})

void t.test('a client that reads nothing is disconnected, one that reads slowly is not', async (t) => {
  const hasClosed: boolean[] = []
  const door = await open(t, {
    clientStallMs: 2_000,
    handler: (_req, res) => {
      res.once('close', () => hasClosed.push(isSent(res)))
      sendReply(res, { status: 200, headers: [], body: Buffer.alloc(32e6) })
    },
  })
  const stuck = connect(door.port, '127.0.0.1').pause()
  const slow = connect(door.port, '127.0.0.1')
  t.teardown(() => [stuck, slow].forEach((socket) => socket.destroy()))
  const beganMs = performance.now()
  const watch = stopwatch()
  stuck.write(head('Content-Length: 0'))
  while (hasClosed.length === 0) await new Promise((resolve) => setTimeout(resolve, 10))
  t.same(hasClosed, [false])
  const [tookMs, ownMs] = [performance.now() - beganMs, watch()]
  t.ok(tookMs >= 2_000 && ownMs < 4_000, `cut after ${Math.round(tookMs)} ms`)
  let bytes = 0
  slow.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    slow.pause()
    setTimeout(() => slow.resume(), 2)
  })
  slow.write(head('Content-Length: 0'))
  while (hasClosed.length === 1) await new Promise((resolve) => setTimeout(resolve, 10))
  t.same(hasClosed, [false, true])
  while (bytes < 32e6) await new Promise((resolve) => setTimeout(resolve, 10))
  t.ok(bytes > 32e6)
})

void t.test('F-94: a long upload at the required rate is not closed', async (t) => {
  const door = await open(t, { headersTimeoutMs: 200, checkingIntervalMs: 50 })
  const chunks = Array.from({ length: 30 }, () => 'x'.repeat(1000))
  const length = head('Connection: close', 'Content-Length: 30000')
  const outcome = await send(door.port, [length, ...chunks], { chunkEveryMs: 40 })
  t.equal(outcome.answers[0]?.status, 200, `${outcome.tookMs} ms`)
})
