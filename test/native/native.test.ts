/**
 * Goal: native access serves only listed paths, replaces credentials, enforces limits, bounds its memory, and
 * ends promptly when the client or the upstream closes. Method: a gateway, a provider on a real socket, and
 * clients that misbehave.
 */
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { Readable } from 'node:stream'
import t from 'tap'
import { WebSocket } from 'ws'
import { revokeKey } from '../helpers/keys.js'
import { openStore } from '../../src/store/open-store.js'
import { eventually } from '../faults/scene.js'
import { rowsOf } from '../helpers/ledger.js'
import { allKeys } from '../helpers/lists.js'
import { BIG_BYTES } from './provider.js'
import { openStage, type Stage } from './stage.js'
import { stopwatch } from '../helpers/stopwatch.js'

/** Sends bytes on a new connection and returns everything until its end. */
async function raw(port: number, text: string): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  socket.write(text)
  let reply = ''
  socket.on('data', (chunk: Buffer) => (reply += chunk.toString()))
  await once(socket, 'close')
  return reply
}

function openSocket({ gateway }: Stage, path = '/v1/realtime'): WebSocket {
  const url = `ws://127.0.0.1:${gateway.port}/native/openai${path}`
  const headers = { authorization: `Bearer ${gateway.secret}`, cookie: 'secret=1' }
  return new WebSocket(url, ['realtime'], { headers })
}

void t.test('a path that is not listed gets 404 in any spelling', async (t) => {
  const { gateway, provider, get } = await openStage(t)
  for (const path of ['/v1/models', '/v1/files/', '/v1', '', '/v1/files%2f..%2fadmin']) {
    const { status } = await get(path)
    t.ok(status === 404 || status === 400, `${path}: ${status}`)
  }
  t.equal((await get('/v1/files', { method: 'PUT' })).status, 404)
  const other = `${gateway.origin}/native/unknown/v1/files`
  t.equal((await fetch(other, { headers: { 'x-api-key': gateway.secret } })).status, 404)
  t.equal((await fetch(other)).status, 401, 'the key is checked first')
  const head = `authorization: Bearer ${gateway.secret}\r\nhost: a\r\nconnection: close\r\n\r\n`
  for (const target of [
    '/native/openai/v1/files/../admin',
    '/native/openai/v1/files/%2e%2e/admin',
    'http://evil.com/native/openai/v1/files',
    '/native/openai//evil.com/x',
    '/native/openai/v1/files/models/a%2fb',
  ]) {
    t.match(await raw(gateway.port, `GET ${target} HTTP/1.1\r\n${head}`), /^HTTP\/1\.1 40[04] /, target)
  }
  t.equal(provider.seen.length, 0)
})

void t.test('the credential is replaced, and no secret is forwarded', async (t) => {
  const { gateway, provider, get } = await openStage(t)
  for (const header of ['x-api-key', 'x-goog-api-key']) {
    const url = `${gateway.origin}/native/openai/v1/files?limit=2&key=${gateway.secret}`
    const reply = await fetch(url, {
      headers: { [header]: gateway.secret, cookie: 'a=b', 'x-mine': '1' },
    })
    t.equal(reply.status, 200)
    t.equal(reply.headers.get('set-cookie'), null)
    t.equal(reply.headers.get('x-api-key'), null)
    t.equal(reply.headers.get('x-kept'), null, 'an unlisted header')
    t.equal(reply.headers.get('x-sluice-upstream'), 'openai')
    t.match(reply.headers.get('x-request-id'), /^(?!req_upstream)/)
    const seen = provider.seen.at(-1)
    t.equal(seen?.url, '/v1/files?limit=2')
    t.match(seen?.headers, { authorization: 'Bearer emulated', 'x-own': 'one' })
    t.equal(seen?.headers['x-mine'], undefined, 'an unlisted header')
    t.notMatch(JSON.stringify(seen), gateway.secret)
    t.equal(seen?.headers.cookie, undefined)
    t.match(seen?.headers.host, /^127\.0\.0\.1:/)
  }
  const denied = await get('/v1/denied')
  t.equal(denied.status, 502)
  t.notMatch(await denied.text(), /sk-of/)
  const rows = await rowsOf(gateway)
  t.equal(rows[0]?.upstreamRequestId, 'req_upstream')
  t.match(gateway.lines[0], {
    dialect: 'native',
    route: 'native:openai',
    path: '/native/openai/v1/files',
  })
  t.match(
    await gateway.metrics.text(),
    /sluice_requests_total\{ingress="native",route="native:openai",upstream="openai",status="200",outcome="ok"\} 2/,
  )
})

void t.test('a reply with an error status passes unchanged', async (t) => {
  const { gateway, get } = await openStage(t)
  const reply = await get('/v1/nothing')
  t.equal(reply.status, 404)
  t.equal(await reply.text(), '{"error":"not here"}')
  await eventually(() => gateway.lines.length > 0, 'the line')
  t.match(await rowsOf(gateway), [{ status: 404, outcome: 'upstream_rejected', costNanoUsd: 0 }])
})

/** A body of `BIG_BYTES`, and a count of the bytes that have been read from it. */
function counted(): { body: Readable; readBytes: () => number } {
  const chunk = Buffer.alloc(65_536, 'y')
  let chunks = 0
  const body = new Readable({
    read() {
      if (chunks * chunk.length >= BIG_BYTES) {
        this.push(null)
        return
      }
      chunks += 1
      this.push(chunk)
    },
  })
  return { body, readBytes: () => chunks * chunk.length }
}

void t.test('large bodies stream in both directions', async (t) => {
  const { provider, get } = await openStage(t, { server: `max_body_bytes: ${BIG_BYTES + 1}` })
  const body = Readable.toWeb(counted().body)
  const sent = await get('/v1/sink', { method: 'POST', body, duplex: 'half' })
  t.equal(sent.status, 200)
  t.equal(provider.receivedBytes(), BIG_BYTES)
  let bytes = 0
  const reply = await get('/v1/big')
  for await (const chunk of reply.body ?? []) bytes += Buffer.from(chunk as Uint8Array).length
  t.equal(bytes, BIG_BYTES)
})

void t.test('an upstream that does not read pauses the client', async (t) => {
  const { provider, get } = await openStage(t, {
    server: `max_body_bytes: ${BIG_BYTES + 1}`,
  })
  const { body, readBytes } = counted()
  const leave = new AbortController()
  const { signal } = leave
  const request = { method: 'POST', body: Readable.toWeb(body), duplex: 'half', signal } as const
  const reply = get('/v1/unread', request)
  let last = -1
  await eventually(() => {
    const isPaused = provider.seen.length > 0 && readBytes() > 0 && readBytes() === last
    last = readBytes()
    return isPaused
  }, 'the client is paused')
  t.ok(last < BIG_BYTES / 2, `${last} bytes`)
  leave.abort()
  await t.rejects(reply)
})

void t.test('a body above max_body_bytes gets 413, with and without content-length', async (t) => {
  const { provider, get } = await openStage(t, { server: 'max_body_bytes: 100000' })
  t.equal((await get('/v1/sink', { method: 'POST', body: Buffer.alloc(100_001) })).status, 413)
  t.equal(provider.seen.length, 0, 'refused before it is sent')
  const body = Readable.toWeb(Readable.from([Buffer.alloc(60_000), Buffer.alloc(60_000)]))
  const reply = await get('/v1/sink', { method: 'POST', body, duplex: 'half' })
  t.equal(reply.status, 413)
  t.ok(provider.receivedBytes() <= 100_000)
  t.equal((await get('/v1/sink', { method: 'POST', body: Buffer.alloc(100_000) })).status, 200)
})

void t.test('the body of a GET or DELETE is refused and does not reach the upstream', async (t) => {
  const { gateway, provider, get } = await openStage(t)
  const { id } = (await (await get('/v1/files', { method: 'POST', body: 'a' })).json()) as {
    id: string
  }
  const smuggled = 'GET /v1/denied HTTP/1.1\r\nhost: a\r\n\r\n'
  for (const method of ['GET', 'DELETE']) {
    const reply = await raw(
      gateway.port,
      `${method} /native/openai/v1/files/${id} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${gateway.secret}\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n${smuggled.length.toString(16)}\r\n${smuggled}\r\n0\r\n\r\n`,
    )
    t.match(reply, /^HTTP\/1\.1 400 /, method)
  }
  t.notOk(provider.seen.some(({ url }) => url === '/v1/denied'))
})

void t.test(
  'a client that does not read pauses the upstream; one that disconnects ends the request',
  async (t) => {
    const { gateway, provider } = await openStage(t)
    const socket = connect(gateway.port, '127.0.0.1')
    socket.write(
      `GET /native/openai/v1/big HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${gateway.secret}\r\n\r\n`,
    )
    socket.pause()
    let last = -1
    await eventually(() => {
      const isPaused = provider.writtenBytes() > 0 && provider.writtenBytes() === last
      last = provider.writtenBytes()
      return isPaused
    }, 'the upstream is paused')
    t.ok(last < BIG_BYTES / 2, `${last} bytes`)
    socket.destroy()
    await eventually(() => provider.aborted() === 1, 'the upstream request ends')
    await eventually(() => gateway.lines.length > 0, 'the line')
    t.match(gateway.lines[0], { outcome: 'client_gone', status: 499 })
  },
)

void t.test('with a failing upstream the client gets 502, 504 or a truncated reply', async (t) => {
  const { gateway, get } = await openStage(t, {
    options: ', timeouts: { connect_ms: 500, first_byte_ms: 300 }',
  })
  t.equal((await get('/v1/silent')).status, 504)
  const half = await get('/v1/half')
  t.equal(half.status, 200)
  await t.rejects(half.text(), 'truncated')
  await eventually(() => gateway.lines.length > 1, 'the lines')
  t.match(gateway.lines[1], { outcome: 'upstream_truncated' })
  const other = await openStage(t, { options: ', timeouts: { connect_ms: 500 }' })
  t.equal((await other.get('/v1/files')).status, 200)
})

void t.test('limits apply, and native_usd_per_request counts toward budgets', async (t) => {
  const limited = await openStage(t, {
    options: ', native_usd_per_request: 0.4',
    more: 'limits: [{ for: key, usd_per_day: 1 }]'.replace('for: key', 'scope: key'),
  })
  t.equal((await limited.get('/v1/files')).status, 200)
  t.equal((await limited.get('/v1/files')).status, 200)
  const third = await limited.get('/v1/files')
  t.equal(third.status, 402)
  const rows = await rowsOf(limited.gateway)
  t.strictSame(
    rows.map(({ costNanoUsd }) => costNanoUsd),
    [4e8, 4e8, 0],
  )
  const unpriced = await openStage(t, { more: 'limits: [{ scope: key, usd_per_day: 1 }]' })
  t.equal((await unpriced.get('/v1/files')).status, 403)
})

void t.test('a WebSocket uses a slot of a concurrency limit until it closes', async (t) => {
  const stage = await openStage(t, { more: 'limits: [{ scope: key, concurrent: 1 }]' })
  const socket = openSocket(stage)
  await once(socket, 'message')
  t.equal((await stage.get('/v1/files')).status, 429)
  socket.close()
  await eventually(() => stage.gateway.lines.length > 1, 'closed')
  t.equal((await stage.get('/v1/files')).status, 200)
})

void t.test('a WebSocket passes no credential and is not subject to the stall timeout', async (t) => {
  const stage = await openStage(t, { server: 'client_stall_ms: 1000' })
  const socket = openSocket(stage)
  const greeted = once(socket, 'message')
  const [upgraded] = (await once(socket, 'upgrade')) as [{ headers: Record<string, string> }]
  t.match(upgraded.headers['x-request-id'], /./)
  await greeted
  const seen = stage.provider.seen[0]
  t.equal(seen?.headers.authorization, 'Bearer emulated')
  t.equal(seen?.headers.cookie, undefined)
  await new Promise((resolve) => setTimeout(resolve, 2500))
  const big = Buffer.alloc(1_000_000, 7)
  socket.send(big)
  const [echo] = (await once(socket, 'message')) as [Buffer]
  t.ok(echo.equals(big), 'the idle WebSocket is open')
  for (const client of stage.provider.sockets) client.terminate()
  await once(socket, 'close')
  await eventually(() => stage.gateway.lines.length > 0, 'the line')
  t.match(await rowsOf(stage.gateway), [{ status: 101 }])
})

void t.test('a revoked key closes its WebSocket within a second', async (t) => {
  const stage = await openStage(t)
  const { gateway } = stage
  const socket = openSocket(stage)
  await once(socket, 'message')
  const store = await openStore(`sqlite:${gateway.folder}/data/sluice.db`)
  const account = await store.accountByEmail('test@example.com')
  const [key] = await allKeys(store, account?.id ?? '')
  const closed = once(socket, 'close')
  const watch = stopwatch()
  await revokeKey(store, { accountId: account?.id ?? '', id: key?.id ?? '' })
  await closed
  const tookMs = watch()
  t.ok(tookMs < 1000, `${Math.round(tookMs)} ms`)
  await store.close()
  await eventually(() => stage.provider.sockets.size === 0, 'the upstream WebSocket is closed')
  await eventually(() => gateway.lines.length > 0, 'the line')
  t.match(gateway.lines.at(-1), { outcome: 'unauthenticated', status: 101 })
})

void t.test('a drain closes WebSockets at its deadline', async (t) => {
  const stage = await openStage(t)
  const socket = openSocket(stage)
  await once(socket, 'message')
  const closed = once(socket, 'close')
  const beganMs = performance.now()
  const watch = stopwatch()
  await stage.gateway.plane.drain()
  await closed
  const ownMs = watch()
  const tookMs = performance.now() - beganMs
  t.ok(tookMs > 300 && ownMs < 3000, `${Math.round(tookMs)} ms`)
})

void t.test('refused upgrades get one error and a closed connection', async (t) => {
  const stage = await openStage(t)
  const { gateway } = stage
  const ask = (line: string, key: string, more = ''): Promise<string> =>
    raw(
      gateway.port,
      `${line} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${key}\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n${more}\r\n`,
    )
  const refused = async (reply: Promise<string>, status: number, what: string): Promise<void> => {
    const text = await reply
    t.match(text, new RegExp(`^HTTP/1\\.1 ${status} `), what)
    t.match(text, /connection: close/i, what)
    t.equal(text.split('HTTP/1.1').length, 2, `${what}: one reply`)
  }
  await refused(ask('GET /native/openai/v1/realtime', 'wrong'), 401, 'a wrong key')
  await refused(ask('GET /native/openai/v1/unlisted', gateway.secret), 404, 'an unlisted path')
  await refused(ask('GET /v1/models', gateway.secret), 400, 'another endpoint')
  await refused(ask('POST /native/openai/v1/files', gateway.secret), 400, 'another method')
  await refused(ask('GET /dashboard/', gateway.secret), 400, 'the dashboard')
  await refused(ask('GET /native/openai/v1/realtime', gateway.secret, 'content-length: 3\r\n'), 400, 'a body')
  const other = await ask('GET /native/openai/v1/other', gateway.secret)
  t.match(other, /^HTTP\/1\.1 404 /, 'the upstream refuses')
  t.match(other, /\r\n\r\nno$/, 'with its body')
  t.match(other, /connection: close/i)
  t.notMatch(other, /set-cookie/i)
  const denied = ask('GET /native/openai/v1/denied', gateway.secret)
  await refused(denied, 502, "the upstream refuses the gateway's key")
  t.match(await denied, /upstream_denied/)
  t.notMatch(await denied, /sk-of/)
  await eventually(() => gateway.lines.length >= 8, 'a line for each')
  t.match(gateway.lines.at(-1), { status: 502, outcome: 'upstream_denied', upstream_status: 401 })
})

void t.test('several API keys are rotated, and a rejected key cools down', async (t) => {
  const { gateway, provider, get } = await openStage(t)
  const text = readFileSync(gateway.configFile, 'utf8')
  writeFileSync(gateway.configFile, text.replace('api_key: emulated', 'api_keys: [k-one, k-two]'))
  gateway.reload()
  const keys = (): (string | undefined)[] => provider.seen.map(({ headers }) => headers.authorization)
  await get('/v1/files')
  await get('/v1/files')
  t.same(new Set(keys()), new Set(['Bearer k-one', 'Bearer k-two']))
  await get('/v1/denied')
  const refused = keys().at(-1)
  for (let at = 0; at < 4; at += 1) await get('/v1/files')
  t.notOk(keys().slice(-4).includes(refused))
})
