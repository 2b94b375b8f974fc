/**
 * Goal: a drain loses no request that a client has sent. Connections that are new or idle when it starts
 * get a reply, and HTTP/2 clients get a GOAWAY early enough to use another connection.
 * Method: a real listener, raw sockets and node:http2, with requests sent while the drain runs.
 */
import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { readFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import { sendReply } from '../../src/http/respond.js'
import { openServer, type GatewayServer, type ServerOptions } from '../../src/http/server.js'
import { newAuthority, newPair } from '../helpers/certificates.js'

const REQUEST = 'GET /v1/models HTTP/1.1\r\nhost: gateway\r\n\r\n'

async function open(t: Test, options: Partial<ServerOptions> = {}): Promise<GatewayServer> {
  const server = await openServer({
    host: '127.0.0.1',
    port: 0,
    handler: (_req, res) => sendReply(res, { status: 200, headers: [], body: 'ok' }),
    ...options,
  })
  t.teardown(() => server.drain(0))
  return server
}

interface Client {
  readonly socket: Socket
  text(): string
}

async function client(t: Test, port: number): Promise<Client> {
  const socket = connect(port, '127.0.0.1')
  t.teardown(() => socket.destroy())
  let text = ''
  socket.on('data', (chunk: Buffer) => (text += chunk.toString()))
  await once(socket, 'connect')
  return { socket, text: () => text }
}

async function until(isDone: () => boolean): Promise<void> {
  const limitMs = performance.now() + 20_000
  while (!isDone()) {
    if (performance.now() > limitMs) throw new Error(`timed out: ${isDone.toString()}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

for (const isReplaced of [false, true]) {
  const name = isReplaced ? 'another process listens' : 'no other process listens'
  void t.test(`idle connections get a last reply while the drain begins; ${name}`, async (t) => {
    const server = await open(t)
    const idle = await client(t, server.port)
    idle.socket.write(REQUEST)
    await until(() => idle.text().endsWith('ok'))
    t.notMatch(idle.text(), /connection: close/i)
    const closed = once(idle.socket, 'close')
    const drained = server.drain(10_000, { lameDuckMs: 3000, isReplaced })
    idle.socket.write(REQUEST)
    await until(() => idle.text().split('HTTP/1.1 200 OK').length === 3)
    t.match(idle.text(), /connection: close/i)
    await closed
    await new Promise((resolve) => setTimeout(resolve, 50))
    const late = connect(server.port, '127.0.0.1')
    t.teardown(() => late.destroy())
    const result = await once(late, 'connect').then(
      () => 'accepted',
      () => 'refused',
    )
    t.equal(result, isReplaced ? 'refused' : 'accepted', 'a new connection')
    late.destroy()
    await drained
  })
}

void t.test('a new connection has a second for its request', async (t) => {
  const server = await open(t)
  const fresh = await client(t, server.port)
  const silent = await client(t, server.port)
  // Time for the listener to accept both.
  await new Promise((resolve) => setTimeout(resolve, 50))
  const closed = once(silent.socket, 'close')
  const drained = server.drain(10_000)
  setTimeout(() => fresh.socket.write(REQUEST), 300)
  await until(() => fresh.text().endsWith('ok'))
  await closed
  t.equal(silent.text(), '')
  await drained
})

void t.test('an HTTP/2 client gets a GOAWAY first, and all its streams are served', async (t) => {
  const folder = t.testdir()
  const authority = newAuthority(folder, 'authority')
  const pair = newPair(folder, 'server', { authority })
  const server = await open(t, { tls: { cert: pair.cert, key: pair.key, clientCa: null } })
  const session = connectHttp2(`https://127.0.0.1:${server.port}`, {
    ca: readFileSync(authority.cert),
  })
  t.teardown(() => session.destroy())
  const last: (number | undefined)[] = []
  session.on('goaway', (_code, lastStreamId?: number) => last.push(lastStreamId))
  const stream = session.request({ ':path': '/' })
  stream.resume()
  await once(stream, 'end')
  const drained = server.drain(5000, { lameDuckMs: 300 })
  await until(() => last.length > 0)
  t.equal(last[0], 2 ** 31 - 1, 'no stream is refused by the first GOAWAY')
  await drained
  await until(() => session.destroyed)
})
