/**
 * Goal: over TLS, clients get the same service by HTTP/1.1 and HTTP/2, with the same limits; certificates change
 * without a restart, and client certificates are required if the configuration says so.
 * Method: a real listener with certificates that openssl makes for the test; node:https and node:http2 as clients.
 */
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { connect as connectHttp2, constants, type ClientHttp2Session } from 'node:http2'
import { request, type RequestOptions } from 'node:https'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import t, { type Test } from 'tap'
import type { HttpRequest, HttpResponse } from '../../src/http/message.js'
import { beginReply, breakOff, hasLeft, sendReply } from '../../src/http/respond.js'
import type { GatewayServer, ServerOptions } from '../../src/http/server-options.js'
import { openServer } from '../../src/http/server.js'
import { newAuthority, newPair, type Pair } from '../helpers/certificates.js'
import { bodyOf } from '../helpers/requests.js'

interface Stage {
  readonly server: GatewayServer
  readonly ca: Buffer
  readonly folder: string
  readonly authority: Pair
  readonly problems: string[]
  readonly left: string[]
  readonly refused: string[]
}

const MIB = 1024 * 1024

function serve(stage: Pick<Stage, 'left'>, req: HttpRequest, res: HttpResponse): void {
  res.once('close', () => stage.left.push(`${req.url ?? ''} ${hasLeft(res)}`))
  switch (req.url) {
    case '/stream':
      beginReply(res, 200, ['content-type', 'text/event-stream'])
      res.write('one,')
      setTimeout(() => res.end('two'), 20)
      return
    case '/broken':
      beginReply(res, 200, [])
      breakOff(res, 'half')
      return
    case '/large':
      sendReply(res, 200, [], 'x'.repeat(32 * MIB))
      return
    case '/early':
      sendReply(res, 413, [], 'no')
      return
    case '/hang':
      return
    default:
      bodyOf(req, (body) => {
        if (res.headersSent) return
        sendReply(
          res,
          200,
          ['set-cookie', 'a=1', 'set-cookie', 'b=2'],
          `${req.httpVersion} ${body.toString()}`,
        )
      })
  }
}

async function open(t: Test, options: Partial<ServerOptions> = {}, asks = false): Promise<Stage> {
  const folder = t.testdir()
  const authority = newAuthority(folder, 'authority')
  const { cert, key } = newPair(folder, 'server', authority)
  const records = { problems: [] as string[], left: [] as string[], refused: [] as string[] }
  const server = await openServer({
    host: '127.0.0.1',
    port: 0,
    handler: (req, res) => serve(records, req, res),
    onRefused: (kind) => records.refused.push(kind),
    onTlsProblem: (problem) => records.problems.push(problem),
    tls: { cert, key, clientCa: asks ? authority.cert : null },
    ...options,
  })
  t.teardown(() => server.drain(0))
  return { server, ca: readFileSync(authority.cert), folder, authority, ...records }
}

interface Got {
  readonly status: number
  readonly headers: Record<string, unknown>
  readonly body: string
  readonly code: number
}

function session(t: Test, { server, ca }: Stage, options: object = {}): ClientHttp2Session {
  const client = connectHttp2(`https://127.0.0.1:${server.port}`, { ca, ...options })
  client.on('error', () => undefined)
  t.teardown(() => client.destroy())
  return client
}

function get(client: ClientHttp2Session, headers: object, body?: string): Promise<Got> {
  return new Promise((resolve) => {
    const stream = client.request({ ...headers }, { endStream: body === undefined })
    let got = { status: 0, headers: {}, body: '', code: 0 }
    stream.on('response', (head) => (got = { ...got, status: head[':status'] ?? 0, headers: head }))
    stream.on('data', (piece: Buffer) => (got.body += piece.toString()))
    stream.on('error', () => undefined)
    stream.on('close', () => resolve({ ...got, code: stream.rstCode }))
    if (body !== undefined) stream.end(body)
  })
}

function getHttp1(stage: Stage, options: RequestOptions = {}): Promise<string> {
  return new Promise((resolve, reject) => {
    const { port } = stage.server
    const call = request(
      { host: '127.0.0.1', port, ca: stage.ca, agent: false, ...options },
      (res) => {
        let text = ''
        res.on('data', (piece: Buffer) => (text += piece.toString()))
        res.on('error', reject)
        res.on('end', () => resolve(`${res.statusCode ?? 0} ${text}`))
      },
    )
    call.on('error', reject).end()
  })
}

async function until(isSo: () => boolean, what: string): Promise<void> {
  for (let i = 0; i < 1000 && !isSo(); i += 1) await new Promise((next) => setTimeout(next, 10))
  if (!isSo()) throw new Error(`still not so: ${what}`)
}

void t.test('both protocols are served by the same handlers', async (t) => {
  const stage = await open(t)
  t.equal(await getHttp1(stage), '200 1.1 ')
  const client = session(t, stage)
  const posted = await get(client, { ':path': '/', ':method': 'POST' }, 'body')
  t.match(posted, { status: 200, body: '2.0 body', headers: { 'set-cookie': ['a=1', 'b=2'] } })
  t.equal((await get(client, { ':path': '/stream' })).body, 'one,two')
  t.same(await get(client, { ':path': '/stream', ':method': 'HEAD' }).then(({ body }) => body), '')
  const all = await Promise.all([1, 2, 3].map((i) => get(client, { ':path': `/${i}` })))
  t.same(
    all.map(({ status }) => status),
    [200, 200, 200],
  )
})

void t.test('a broken-off reply ends with an error, not as a complete one', async (t) => {
  const stage = await open(t)
  const got = await get(session(t, stage), { ':path': '/broken' })
  t.match(got, { status: 200, body: 'half', code: constants.NGHTTP2_INTERNAL_ERROR })
  await t.rejects(getHttp1(stage, { path: '/broken' }), /aborted|ECONNRESET|hang up/)
})

void t.test('an early reply does not wait for the body', async (t) => {
  const stage = await open(t)
  const got = await get(
    session(t, stage),
    { ':path': '/early', ':method': 'POST' },
    'x'.repeat(MIB),
  )
  t.match(got, { status: 413, body: 'no' })
})

void t.test('the guard holds for HTTP/2', async (t) => {
  const stage = await open(t)
  const client = session(t, stage)
  const cases: Record<string, [object, number]> = {
    'a method that no route has': [{ ':path': '/', ':method': 'BREW' }, 405],
    'two slashes': [{ ':path': '//v1' }, 400],
    'a parent segment': [{ ':path': '/a/../b' }, 400],
    'an authority that is none': [{ ':path': '/', ':authority': 'a:123456' }, 400],
    'another host beside the authority': [{ ':path': '/', ':authority': 'a', host: 'other' }, 400],
    'two keys': [{ ':path': '/', 'x-api-key': ['a', 'b'] }, 400],
  }
  for (const [name, [headers, status]] of Object.entries(cases)) {
    const got = await get(client, headers)
    t.equal(got.status, status, name)
    t.match(got.body, '"kind":', name)
  }
  t.equal(stage.refused.length, Object.keys(cases).length)
  t.equal((await get(client, { ':path': '/' })).status, 200)
  const many = Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`x-${i}`, 'v']))
  const flooded = await get(session(t, stage), { ':path': '/', ...many })
  t.ok(flooded.status === 431 || flooded.code !== 0, 'two hundred headers')
  const large = await get(session(t, stage), { ':path': '/', 'x-a': 'v'.repeat(40_000) })
  t.ok(large.status === 431 || large.code !== 0 || large.status === 0, '40 KB of headers')
})

void t.test('a client that opens streams only to reset them loses its session', async (t) => {
  const stage = await open(t)
  const client = session(t, stage)
  const isOver = (): boolean => client.closed || client.destroyed
  const turn = (): Promise<void> => new Promise((next) => setTimeout(next, 5))
  for (let rounds = 0; rounds < 2000 && !isOver(); rounds += 1) {
    const streams = Array.from({ length: 50 }, () => client.request({ ':path': '/hang' }))
    for (const stream of streams) stream.on('error', () => undefined)
    // Streams are sent in a later turn; one that is closed before is never seen by the server.
    await turn()
    for (const stream of streams) stream.close(constants.NGHTTP2_CANCEL)
    await turn()
  }
  t.ok(isOver(), 'the session is closed')
  t.equal((await get(session(t, stage), { ':path': '/' })).status, 200, 'others are served')
})

void t.test('a client that reads nothing is given up in both protocols', async (t) => {
  const stage = await open(t, { clientStallMs: 400 })
  const stream = session(t, stage).request({ ':path': '/large' })
  stream.on('error', () => undefined).pause()
  const socket = connectTls({ host: '127.0.0.1', port: stage.server.port, ca: stage.ca })
  socket.on('error', () => undefined).pause()
  t.teardown(() => socket.destroy())
  socket.write('GET /large HTTP/1.1\r\nHost: a\r\n\r\n')
  await until(() => stage.left.length === 2, 'both are given up')
  t.same(stage.left, ['/large false', '/large false'])
})

void t.test('a body that stops is refused with a 408', async (t) => {
  const stage = await open(t, { headersTimeoutMs: 300, checkingIntervalMs: 50 })
  const client = session(t, stage)
  const got = new Promise<number>((resolve) => {
    const stream = client.request({ ':path': '/', ':method': 'POST' }, { endStream: false })
    stream.on('error', () => undefined)
    stream.on('response', (head) => resolve(head[':status'] ?? 0))
    stream.write('half')
  })
  t.equal(await got, 408)
})

void t.test('idle sessions end, and connections beyond the most are refused', async (t) => {
  const stage = await open(t, { keepAliveTimeoutMs: 300, maxConnections: 1 })
  const client = session(t, stage)
  t.equal((await get(client, { ':path': '/' })).status, 200)
  t.equal((await get(session(t, stage), { ':path': '/' })).status, 503)
  t.match(await getHttp1(stage), /^503 .*"kind":"overloaded"/)
  await until(() => client.closed, 'the idle session is closed')
  await until(() => client.destroyed, 'and gone')
  t.equal((await get(session(t, stage), { ':path': '/' })).status, 200)
})

void t.test('a drain finishes open streams and refuses new ones', async (t) => {
  const stage = await open(t)
  const client = session(t, stage)
  let goaway = false
  client.on('goaway', () => (goaway = true))
  await get(client, { ':path': '/' })
  const stream = get(client, { ':path': '/stream' })
  const stuck = get(session(t, stage), { ':path': '/hang' })
  await new Promise((next) => setTimeout(next, 10))
  const drained = stage.server.drain(300)
  t.equal((await stream).body, 'one,two')
  await drained
  await stuck
  t.ok(goaway)
})

void t.test('changed certificates are used at once, and bad ones are not', async (t) => {
  const stage = await open(t)
  const names = (): Promise<string> =>
    new Promise((resolve, reject) => {
      const socket = connectTls({ host: '127.0.0.1', port: stage.server.port, ca: stage.ca })
      socket.on('error', reject).on('secureConnect', () => {
        resolve(String(socket.getPeerCertificate().subject.CN))
        socket.destroy()
      })
    })
  t.equal(await names(), 'server')
  const other = newPair(stage.folder, 'other', stage.authority)
  writeFileSync(join(stage.folder, 'server.key'), 'no key')
  await until(() => stage.problems.length > 0, 'the bad file is reported')
  t.match(stage.problems[0], /server\.key" is not a PEM private key/)
  t.equal(await names(), 'server', 'the old one stays')
  copyFileSync(other.key, join(stage.folder, 'server.key'))
  copyFileSync(other.cert, join(stage.folder, 'server.pem'))
  let current = ''
  for (let i = 0; i < 500 && current !== 'other'; i += 1) {
    current = await names()
    await new Promise((next) => setTimeout(next, 10))
  }
  t.equal(current, 'other')
})

void t.test('client certificates are required if a CA is named', async (t) => {
  const stage = await open(t, {}, true)
  const mine = newPair(stage.folder, 'client', stage.authority)
  const files = { cert: readFileSync(mine.cert), key: readFileSync(mine.key) }
  t.equal(await getHttp1(stage, files), '200 1.1 ')
  t.equal((await get(session(t, stage, files), { ':path': '/' })).status, 200)
  await t.rejects(getHttp1(stage))
  const stranger = newPair(stage.folder, 'stranger', newAuthority(stage.folder, 'strangers'))
  const theirs = { cert: readFileSync(stranger.cert), key: readFileSync(stranger.key) }
  await t.rejects(getHttp1(stage, theirs))
  t.same(
    stage.left.filter((each) => !each.endsWith('true')),
    [],
  )
})
