/**
 * Goal: an invalid HTTP/1.1 request gets a 4xx in JSON and a closed connection, reaches no
 * handler, and does not affect later requests.
 * Method: a real listener and raw sockets, one per corrupted request; after each, a good one.
 */
import t from 'tap'
import type { Test } from 'tap'
import { sendReply } from '../../../src/http/respond.js'
import { openServer, type GatewayServer, type ServerOptions } from '../../../src/http/server.js'
import { bodyOf } from '../../helpers/requests.js'
import { send } from './raw-client.js'
import type { RawOutcome } from './raw-client.js'

interface Seen {
  /** Requests whose headers reached the handler. */
  begun: number
  /** Bodies that reached the handler completely. */
  whole: string[]
  refused: string[]
}

const GOOD = 'POST /v1/chat/completions HTTP/1.1\r\nHost: gateway\r\nContent-Length: 2\r\n\r\n{}'

async function open(
  t: Test,
  options: Partial<ServerOptions> = {},
): Promise<{ door: GatewayServer; seen: Seen }> {
  const seen: Seen = { begun: 0, whole: [], refused: [] }
  const door = await openServer({
    host: '127.0.0.1',
    port: 0,
    onRefused: (kind) => seen.refused.push(kind),
    handler: (req, res) => {
      seen.begun += 1
      bodyOf(req, (body) => {
        seen.whole.push(`${req.method ?? ''} ${req.url ?? ''} ${body.toString('latin1')}`)
        if (res.headersSent) return
        sendReply(res, {
          status: 200,
          headers: ['content-type', 'application/json'],
          body: JSON.stringify({ ok: true }),
        })
      })
    },
    ...options,
  })
  t.teardown(() => door.drain(0))
  return { door, seen }
}

function isRefused(
  t: Test,
  outcome: RawOutcome,
  { name, statuses }: { name: string; statuses: number[] },
): void {
  const last = outcome.answers.at(-1)
  const label = `${name} → ${outcome.text.slice(0, 30).replace(/\r\n/g, ' ')}`
  t.ok(last !== undefined && statuses.includes(last.status), `${label}: status`)
  t.ok(outcome.closed, `${label}: closed`)
  if (last === undefined) return
  t.equal(last.headers['connection'], 'close', `${name}: announces the close`)
  t.match(last.headers['content-type'], 'application/json', `${name}: JSON`)
  t.match(
    JSON.parse(last.body),
    { error: { message: String, type: 'invalid_request_error', code: null, kind: String } },
    `${name}: the error's shape`,
  )
  t.notMatch(last.body, /node:|\.js|at Server/, `${name}: no stack`)
}

async function isStillGood(
  t: Test,
  { door, seen }: { door: GatewayServer; seen: Seen },
  name: string,
): Promise<void> {
  const before = seen.whole.length
  const outcome = await send(door.port, GOOD.replace('Host:', 'Connection: close\r\nHost:'))
  t.equal(outcome.answers[0]?.status, 200, `${name}: a good request works after it`)
  t.equal(seen.whole.length, before + 1)
}

/** A request line and headers; `lines` are added after Host. */
function post(lines: string[], body = '', line = 'POST /v1/chat/completions HTTP/1.1'): string {
  return [line, 'Host: gateway', ...lines, '', body].join('\r\n')
}

const get = (target: string, version = 'HTTP/1.1'): string =>
  `GET ${target} ${version}\r\nHost: gateway\r\n\r\n`

const framing: Record<string, string> = {
  'TE ,chunked': post(['Transfer-Encoding: ,chunked'], '2\r\n{}\r\n0\r\n\r\n'),
  'TE identity, chunked': post(['Transfer-Encoding: identity, chunked'], '2\r\n{}\r\n0\r\n\r\n'),
  'TE gzip, chunked': post(['Transfer-Encoding: gzip, chunked'], '2\r\n{}\r\n0\r\n\r\n'),
  'TE chunked, identity': post(['Transfer-Encoding: chunked, identity'], '0\r\n\r\n'),
  'TE on two lines': post(['Transfer-Encoding: identity', 'Transfer-Encoding: chunked'], '0\r\n\r\n'),
  'TE chunked twice': post(['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'], '0\r\n\r\n'),
  'TE chunked, chunked': post(['Transfer-Encoding: chunked, chunked'], '0\r\n\r\n'),
  'TE xchunked': post(['Transfer-Encoding: xchunked'], '0\r\n\r\n'),
  'TE empty': post(['Transfer-Encoding:'], '0\r\n\r\n'),
  'TE with CL': post(['Transfer-Encoding: chunked', 'Content-Length: 2'], '0\r\n\r\n'),
  'CL with TE': post(['Content-Length: 6', 'Transfer-Encoding: chunked'], '0\r\n\r\nX'),
  'TE before a colon with a space': post(['Transfer-Encoding : chunked'], '0\r\n\r\n'),
  'TE on a folded line': post(['Transfer-Encoding:', ' chunked'], '0\r\n\r\n'),
  'CL 05': post(['Content-Length: 05'], 'hello'),
  'CL +5': post(['Content-Length: +5'], 'hello'),
  'CL -1': post(['Content-Length: -1'], 'hello'),
  'CL 5, 5': post(['Content-Length: 5, 5'], 'hello'),
  'CL 0x5': post(['Content-Length: 0x5'], 'hello'),
  'CL 5e0': post(['Content-Length: 5e0'], 'hello'),
  'CL empty': post(['Content-Length:'], 'hello'),
  'CL twice, the same': post(['Content-Length: 5', 'Content-Length: 5'], 'hello'),
  'CL twice, differing': post(['Content-Length: 5', 'content-length: 6'], 'hello'),
  'CL beyond eleven digits': post(['Content-Length: 999999999999'], 'hello'),
  'CL beyond any integer': post(['Content-Length: 99999999999999999999999'], 'hello'),
  'HTTP/1.0 with TE': post(['Transfer-Encoding: chunked'], '0\r\n\r\n', 'POST /v1 HTTP/1.0'),
  'HTTP/1.0 POST without CL': post([], 'hello', 'POST /v1 HTTP/1.0'),
}

const lines: Record<string, string> = {
  'HTTP/0.9': 'GET /\r\n\r\n',
  'HTTP/0.9 with a version': get('/v1/models', 'HTTP/0.9'),
  'HTTP/1.2': get('/v1/models', 'HTTP/1.2'),
  'HTTP/2.0 on HTTP/1': get('/v1/models', 'HTTP/2.0'),
  'HTTP/11': get('/v1/models', 'HTTP/11'),
  'another protocol': get('/v1/models', 'ICE/1.0'),
  'the preface of HTTP/2': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  TRACE: get('/v1/models').replace('GET', 'TRACE'),
  PROPFIND: get('/v1/models').replace('GET', 'PROPFIND'),
  'an unknown method': get('/v1/models').replace('GET', 'BREW'),
  'a method in small letters': get('/v1/models').replace('GET', 'get'),
  'a space before the line': ` ${get('/')}`,
  'a tab in the line': 'GET\t/v1/models HTTP/1.1\r\nHost: a\r\n\r\n',
  'a space in the target': get('/v1/mod els'),
  'no target': 'GET  HTTP/1.1\r\nHost: a\r\n\r\n',
  'absolute form': get('http://gateway/v1/models'),
  'absolute form elsewhere': get('http://169.254.169.254/latest'),
  asterisk: get('*').replace('GET', 'OPTIONS'),
  'authority form': get('gateway:80'),
  'two slashes': get('//v1/models'),
  'two slashes inside': get('/v1//models'),
  'a dot segment': get('/v1/./models'),
  'a parent segment': get('/dashboard/../v1/models'),
  'a parent segment last': get('/v1/..'),
  'escaped dots': get('/v1/%2e%2E/models'),
  'an escaped slash': get('/v1%2fmodels'),
  'an escaped slash before the models': get('/%2f/v1/models/x'),
  'a backslash': get('/v1\\models'),
  'an escaped backslash': get('/v1/models/%5C..'),
  'an escaped NUL': get('/v1/models/%00'),
  'an escaped NUL in the query': get('/v1/models?a=%00'),
  'an escaped line end': get('/v1/models/a%0d%0aX:1'),
  'an invalid escape': get('/v1/%zz'),
  'an escape cut short': get('/v1/models/%2'),
  'an escape of half a character': get('/v1/models/%c3'),
  'a fragment': get('/v1/models#x'),
  'bytes beyond ASCII': get('/v1/models/\u00e9'),
}

const headers: Record<string, string> = {
  'no Host': 'GET /v1/models HTTP/1.1\r\n\r\n',
  'no Host in HTTP/1.0': 'GET /v1/models HTTP/1.0\r\n\r\n',
  'two Hosts': post(['Host: other', 'Content-Length: 0']),
  'two Hosts, the same': post(['HOST: gateway', 'Content-Length: 0']),
  'Host empty': 'GET /v1/models HTTP/1.1\r\nHost:\r\n\r\n',
  ...Object.fromEntries(
    ['a/admin?', 'a#b', 'a b', 'a@b', 'a:b', 'a:123456', '[::1', 'a,b', 'a\\b', '[::1]x', 'é'].map((host) => [
      `Host ${host}`,
      `GET /v1/models HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
    ]),
  ),
  'a Host of 256 characters': `GET / HTTP/1.1\r\nHost: ${'a'.repeat(256)}\r\n\r\n`,
  'a Host of 10 KB': `GET / HTTP/1.1\r\nHost: ${'a'.repeat(10_000)}\r\n\r\n`,
  'two Expects, the same': post(['Expect: 100-continue', 'Expect: 100-continue', 'Content-Length: 2']),
  'Expect x 100-continue': post(['Expect: x 100-continue', 'Content-Length: 2'], '{}'),
  'Expect 200-ok': post(['Expect: 200-ok', 'Content-Length: 2'], '{}'),
  'two Authorizations': post(['Authorization: Bearer a', 'authorization: Bearer b', 'Content-Length: 0']),
  'two x-api-keys': post(['x-api-key: a', 'X-API-Key: b', 'Content-Length: 0']),
  'two x-goog-api-keys': post(['x-goog-api-key: a', 'x-goog-api-key: a', 'Content-Length: 0']),
  'two Content-Types': post(['Content-Type: a/b', 'Content-Type: a/b', 'Content-Length: 0']),
  'two Cookies': post(['Cookie: a=1', 'Cookie: b=2', 'Content-Length: 0']),
  'an empty header name': post([': x', 'Content-Length: 0']),
  'a name with a space': post(['X Y: x', 'Content-Length: 0']),
  'a name with a NUL': post(['X\u0000Y: x', 'Content-Length: 0']),
  'a name with 0xFF': post(['X\u00ffY: x', 'Content-Length: 0']),
  'a header without a colon': post(['Nonsense', 'Content-Length: 0']),
  'a NUL in a value': post(['X: a\u0000b', 'Content-Length: 0']),
  'a bare CR in a value': post(['X: a\rb: c', 'Content-Length: 0']),
  'a CR at a line end': 'GET /v1/models HTTP/1.1\rHost: a\r\r',
  'a folded line': post(['X: a', ' b', 'Content-Length: 0']),
  'a space before the first header': 'GET /v1/models HTTP/1.1\r\n Host: a\r\n\r\n',
}

for (const [group, cases] of Object.entries({ framing, lines, headers })) {
  void t.test(`requests with wrong ${group} reach no handler`, async (t) => {
    const { door, seen } = await open(t)
    for (const [name, bytes] of Object.entries(cases)) {
      const { begun } = seen
      // The bytes after it must never be parsed as a request.
      const outcome = await send(door.port, bytes + GOOD.replace('/v1/chat', '/smuggled'))
      isRefused(t, outcome, { name, statuses: [400, 405, 413, 431] })
      t.equal(outcome.answers.length, 1, `${name}: one reply`)
      t.equal(seen.begun, begun, `${name}: the handler saw nothing`)
      t.ok(seen.refused.length > 0, `${name}: was counted`)
      seen.refused.length = 0
      await isStillGood(t, { door, seen }, name)
    }
  })
}

void t.test('a bare line feed never makes a second header or request', async (t) => {
  const { door, seen } = await open(t)
  const value = await send(door.port, post(['X: a\nTransfer-Encoding: chunked', 'Content-Length: 2'], '{}'))
  isRefused(t, value, { name: 'a bare LF in a value', statuses: [400] })
  t.equal(seen.begun, 0)
  await isStillGood(t, { door, seen }, 'a bare LF')
})

void t.test('a body with invalid chunks never becomes a complete request', async (t) => {
  const { door, seen } = await open(t)
  const bodies: Record<string, string> = {
    'a size in hexadecimal notation': '0x5\r\nhello\r\n0\r\n\r\n',
    'a size with a sign': '+5\r\nhello\r\n0\r\n\r\n',
    'a size with a space': '5 \r\nhello\r\n0\r\n\r\n',
    'a size beyond any integer': 'FFFFFFFFFFFFFFFFF\r\nhello\r\n0\r\n\r\n',
    'no size': '\r\nhello\r\n0\r\n\r\n',
    'an extension of 20 KB': `5;${'x'.repeat(20_000)}\r\nhello\r\n0\r\n\r\n`,
    'a size that ends in a bare LF': '5\nhello\r\n0\r\n\r\n',
    'data that end in a bare LF': '5\r\nhello\n0\r\n\r\n',
    'no line end after the data': '5\r\nhello0\r\n\r\n',
    'more data than the size': '3\r\nhello\r\n0\r\n\r\n',
    'a negative size': '-1\r\nhello\r\n0\r\n\r\n',
    'words for a size': 'five\r\nhello\r\n0\r\n\r\n',
  }
  for (const [name, body] of Object.entries(bodies)) {
    const outcome = await send(door.port, post(['Transfer-Encoding: chunked'], body))
    isRefused(t, outcome, { name, statuses: [400, 413] })
    t.same(seen.whole, [], `${name}: no whole request`)
    await isStillGood(t, { door, seen }, name)
    seen.whole.length = 0
  }
})

void t.test('bytes after a complete body are parsed as another request or refused', async (t) => {
  const { door, seen } = await open(t)
  const early = post(['Transfer-Encoding: chunked'], '0\r\n\r\nGET /smuggled')
  const outcome = await send(door.port, [early, ' HTTP/1.1\r\n\r\n'])
  t.equal(outcome.answers.length, 2)
  isRefused(t, outcome, { name: 'an early terminator', statuses: [400] })
  t.same(seen.whole, ['POST /v1/chat/completions '])
  const short = await send(door.port, post(['Content-Length: 2'], '{}garbage\r\n\r\n'))
  t.equal(short.answers.at(-1)?.status ?? 400, 400)
  t.notMatch(seen.whole.join(), /garbage/)
  await isStillGood(t, { door, seen }, 'an early terminator')
})

void t.test('a flood of headers is refused, never shortened', async (t) => {
  const { door, seen } = await open(t)
  const flood = (n: number, size = 1): string =>
    post([...Array.from({ length: n }, (_, i) => `X${i}: ${'v'.repeat(size)}`), 'Content-Length: 2'], '{}')
  const names = {
    '101 headers': flood(99),
    '1,023 headers': flood(1021),
    '2,500 headers': flood(2498).replaceAll(': v', ':'),
  }
  for (const [name, bytes] of Object.entries(names)) {
    isRefused(t, await send(door.port, bytes), { name, statuses: [431] })
    t.equal(seen.begun, 0, name)
  }
  isRefused(t, await send(door.port, flood(1, 17_000)), {
    name: '17 KB in one header',
    statuses: [431],
  })
  isRefused(t, await send(door.port, get(`/${'a'.repeat(17_000)}`)), {
    name: '17 KB of target',
    statuses: [431],
  })
  isRefused(t, await send(door.port, [Buffer.alloc(1_000_000, 'A')]), {
    name: 'a megabyte without an end',
    statuses: [400, 431],
  })
  t.equal(seen.begun, 0)
  const hundred = await send(
    door.port,
    flood(98).replace('Host:', 'Connection: close\r\nHost:').replace('X0: v\r\n', ''),
  )
  t.equal(hundred.answers[0]?.status, 200, 'a hundred are fine')
  await isStillGood(t, { door, seen }, 'floods')
})

void t.test('names of Object.prototype are header names like any other', async (t) => {
  const { door } = await open(t)
  for (const name of ['__proto__', 'constructor', 'toString', 'hasOwnProperty', '__defineGetter__']) {
    const outcome = await send(
      door.port,
      post([`${name}: x`, 'Connection: close', 'Content-Length: 2'], '{}'),
    )
    t.equal(outcome.answers[0]?.status, 200, name)
  }
})

void t.test('hop-by-hop headers change neither the framing nor the client address', async (t) => {
  const { door, seen } = await open(t)
  const lines = [
    'Connection: close, content-length, authorization, transfer-encoding',
    'Authorization: Bearer a',
    'Content-Length: 2',
    'TE: trailers',
    'Trailer: Content-Length',
    'Keep-Alive: timeout=1',
    'Proxy-Connection: keep-alive',
    'Proxy-Authorization: Basic x',
  ]
  const outcome = await send(door.port, post(lines, '{}'))
  t.equal(outcome.answers[0]?.status, 200)
  t.same(seen.whole, ['POST /v1/chat/completions {}'])
})

void t.test('other protocols on the port are refused and closed', async (t) => {
  const { door, seen } = await open(t)
  const hello = Buffer.from('16030100c8010000c40303' + '5a'.repeat(190), 'hex')
  isRefused(t, await send(door.port, hello), { name: 'a TLS hello', statuses: [400] })
  isRefused(t, await send(door.port, Buffer.alloc(4096, 0)), { name: 'zeros', statuses: [400] })
  isRefused(t, await send(door.port, Buffer.from('EHLO x\r\nMAIL FROM:<a>\r\n')), {
    name: 'SMTP',
    statuses: [400],
  })
  const connected = await send(door.port, 'CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n')
  t.same([connected.closed, connected.text], [true, ''], 'CONNECT gets no reply')
  t.equal(seen.begun, 0)
  await isStillGood(t, { door, seen }, 'other protocols')
})

void t.test('an Upgrade is served as a plain request, and nothing follows it', async (t) => {
  const { door, seen } = await open(t)
  for (const protocol of ['websocket', 'h2c', 'TLS/1.0']) {
    const lines = ['Connection: Upgrade', `Upgrade: ${protocol}`, 'Content-Length: 2']
    const outcome = await send(door.port, post(lines, '{}') + GOOD)
    t.same([outcome.answers.length, outcome.answers[0]?.status, outcome.closed], [1, 200, true])
    t.equal(outcome.answers[0]?.headers['connection'], 'close')
    t.same(seen.whole.splice(0), ['POST /v1/chat/completions {}'], protocol)
  }
})

void t.test('an unusual body is read, and the next request is not affected', async (t) => {
  const { door, seen } = await open(t)
  const last = GOOD.replace('Host:', 'Connection: close\r\nHost:')
  const bodies = [
    'GET /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello',
    'POST /a HTTP/1.1\r\nHost: a\r\n\r\n',
    'DELETE /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n',
    'GET /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n',
  ]
  for (const first of bodies) {
    const outcome = await send(door.port, first + last)
    t.same(
      outcome.answers.map((answer) => answer.status),
      [200, 200],
      first.slice(0, 8),
    )
    t.equal(seen.whole.at(-1), 'POST /v1/chat/completions {}')
  }
})

void t.test('accepted paths reach the handler unchanged', async (t) => {
  const { door, seen } = await open(t)
  const targets = [
    '/v1/models/openai%2Fgpt-4o',
    '/v1beta/models/gemini-2.5-pro:generateContent?alt=sse&u=http://x/y',
    '/v1/models/gpt-4.1-mini...x',
    '/V1/Chat/Completions/',
    '/v1/%63hat/completions',
    '/?q=%2e%2f',
    '/v1/models/.hidden',
  ]
  for (const target of targets) {
    const outcome = await send(door.port, get(target).replace('Host:', 'Connection: close\r\nHost:'))
    t.equal(outcome.answers[0]?.status, 200, target)
    t.equal(seen.whole.at(-1), `GET ${target} `)
  }
  for (const host of [
    'localhost',
    'a.b-c.d:8080',
    '[::1]:80',
    '[fe80::1]',
    'my_gateway:8080',
    '127.0.0.1:1',
  ]) {
    const bytes = `GET / HTTP/1.1\r\nConnection: close\r\nHost: ${host}\r\n\r\n`
    t.equal((await send(door.port, bytes)).answers[0]?.status, 200, host)
  }
  const old = await send(door.port, 'GET / HTTP/1.0\r\nHost: a\r\n\r\n')
  t.same([old.answers[0]?.status, old.closed], [200, true], 'HTTP/1.0 is answered and closed')
})
