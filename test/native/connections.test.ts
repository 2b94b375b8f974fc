/**
 * Goal: native access connects to its upstream as configured (TLS, proxy), within the limits of the key and
 * of the listener. Method: a gateway in front of providers on real sockets, a proxy that opens tunnels, and
 * generated certificates.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { readFileSync } from 'node:fs'
import type { Server } from 'node:net'
import t, { type Test } from 'tap'
import { WebSocket, WebSocketServer } from 'ws'
import { createKey } from '../helpers/keys.js'
import { loadConfig } from '../../src/config/load-config.js'
import { openStore } from '../../src/store/open-store.js'
import { eventually } from '../faults/scene.js'
import { newAuthority, newPair, type Pair } from '../helpers/certificates.js'
import { startGateway, type TestGateway } from '../helpers/gateway.js'
import { rowsOf } from '../helpers/ledger.js'
import { openStage } from './stage.js'

const OPEN = `native: ['GET /v1/files', 'GET /v1/realtime']`

async function listen(t: Test, server: Server): Promise<number> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => sockets.add(socket))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return (server.address() as AddressInfo).port
}

async function startProxy(t: Test): Promise<{ url: string; requests: string[]; fail: () => void }> {
  const requests: string[] = []
  let isFailing = false
  const server = createServer()
  server.on('connect', (req, socket: Socket) => {
    requests.push(`${req.url ?? ''} ${req.headers['proxy-authorization'] ?? ''}`)
    socket.on('error', () => undefined)
    if (isFailing) {
      socket.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n')
      return
    }
    const [host = '', port = ''] = (req.url ?? '').split(':')
    const upstream = connect(Number(port), host, () => {
      socket.write('HTTP/1.1 200 Connection Established\r\n\r\n')
      upstream.pipe(socket).pipe(upstream)
    })
    upstream.on('error', () => socket.destroy())
    socket.on('close', () => upstream.destroy())
  })
  const port = await listen(t, server)
  return { url: `http://user:p%40ss@127.0.0.1:${port}`, requests, fail: () => (isFailing = true) }
}

interface Secured {
  readonly baseUrl: string
  readonly ca: string
  readonly client: Pair
  readonly names: (string | false)[]
}

/** A provider that requires a client certificate and has a certificate for `api.internal`. */
async function startSecured(t: Test): Promise<Secured> {
  const folder = t.testdir()
  const authority = newAuthority(folder, 'ca')
  const own = newPair(folder, 'server', { authority, subject: 'DNS:api.internal' })
  const client = newPair(folder, 'client', { authority })
  const names: (string | false)[] = []
  const files = { ca: readFileSync(authority.cert), cert: readFileSync(own.cert) }
  const server = createTlsServer(
    { ...files, key: readFileSync(own.key), requestCert: true, rejectUnauthorized: true },
    (_req, res) => res.setHeader('content-type', 'application/json').end('{"data":[]}'),
  )
  server.on('secureConnection', ({ servername }) => names.push(servername ?? false))
  const sockets = new WebSocketServer({ server })
  sockets.on('connection', (socket) => socket.send('hello'))
  t.teardown(() => sockets.clients.forEach((socket) => socket.terminate()))
  const port = await listen(t, server)
  return { baseUrl: `https://127.0.0.1:${port}/v1`, ca: authority.cert, client, names }
}

async function files(gateway: TestGateway, secret = gateway.secret): Promise<Response> {
  return fetch(`${gateway.origin}/native/openai/v1/files`, {
    headers: { authorization: `Bearer ${secret}` },
  })
}

function openSocket({ port, secret }: TestGateway): WebSocket {
  const url = `ws://127.0.0.1:${port}/native/openai/v1/realtime`
  return new WebSocket(url, { headers: { authorization: `Bearer ${secret}` } })
}

/** The first message of a new WebSocket. */
async function greeting(gateway: TestGateway): Promise<string> {
  const socket = openSocket(gateway)
  const [message] = (await once(socket, 'message')) as [Buffer]
  socket.terminate()
  return message.toString()
}

/** The HTTP status with which a WebSocket is refused. */
async function refusal(gateway: TestGateway): Promise<number> {
  const [, reply] = (await once(openSocket(gateway), 'unexpected-response')) as [
    unknown,
    { statusCode: number },
  ]
  return reply.statusCode
}

void t.test('a WebSocket to an unreachable upstream gets 502', async (t) => {
  const port = await listen(
    t,
    createServer().on('connection', (socket: Socket) => socket.destroy()),
  )
  for (const at of [port, 1]) {
    const openai = `http://127.0.0.1:${at}/v1, ${OPEN}, proxy: none`
    const gateway = await startGateway(t, { upstreams: { openai } })
    t.equal(await refusal(gateway), 502)
    await eventually(() => gateway.lines.length > 0, 'the line')
    t.match(gateway.lines[0], { status: 502 })
  }
})

void t.test('the TLS options of the upstream apply without and with a proxy', async (t) => {
  const { baseUrl, ca, client, names } = await startSecured(t)
  const proxy = await startProxy(t)
  const tls = `tls: { ca: ${ca}, cert: ${client.cert}, key: ${client.key}, server_name: api.internal }`
  for (const through of ['none', proxy.url]) {
    const openai = `${baseUrl}, ${OPEN}, proxy: '${through}', ${tls}`
    const gateway = await startGateway(t, { upstreams: { openai } })
    names.length = 0
    t.equal(await (await files(gateway)).text(), '{"data":[]}')
    t.equal(await greeting(gateway), 'hello')
    t.strictSame(new Set(names), new Set(['api.internal']))
    const wrong = `${baseUrl}, ${OPEN}, proxy: '${through}', tls: { ca: ${ca} }`
    const strict = await startGateway(t, { upstreams: { openai: wrong } })
    t.equal((await files(strict)).status, 502, "the certificate's name is checked")
  }
  const basic = Buffer.from('user:p@ss').toString('base64')
  t.equal(proxy.requests[0], `${new URL(baseUrl).host} Basic ${basic}`)
})

void t.test('requests and WebSockets use the proxy and do not bypass it', async (t) => {
  const proxy = await startProxy(t)
  const { gateway, provider, get } = await openStage(t, { proxy: proxy.url })
  t.equal((await get('/v1/files')).status, 200)
  t.equal((await get('/v1/files')).status, 200)
  t.equal(proxy.requests.length, 1, 'the connection is reused')
  t.match(await greeting(gateway), /session.created/)
  t.notMatch(JSON.stringify(provider.seen), 'proxy-authorization')
  const failing = await startProxy(t)
  failing.fail()
  const second = await openStage(t, { proxy: failing.url })
  const refused = await second.get('/v1/files')
  t.equal(refused.status, 502)
  t.match(await refused.text(), /upstream_unreachable/)
  t.equal(await refusal(second.gateway), 502)
  t.equal(failing.requests.length, 2)
  t.equal(second.provider.seen.length, 0)
})

void t.test('proxy: env uses the proxy of the environment', async (t) => {
  const { baseUrl, ca, client } = await startSecured(t)
  const proxy = await startProxy(t)
  const tls = `tls: { ca: ${ca}, cert: ${client.cert}, key: ${client.key}, server_name: api.internal }`
  const openai = `${baseUrl}, ${OPEN}, ${tls}`
  t.teardown(() => {
    for (const name of ['http_proxy', 'no_proxy']) Reflect.deleteProperty(process.env, name)
  })
  process.env['http_proxy'] = proxy.url
  const through = await startGateway(t, { upstreams: { openai } })
  t.equal((await files(through)).status, 200)
  t.equal(proxy.requests.length, 1, 'also for https, if there is no HTTPS_PROXY')
  const { host } = new URL(baseUrl)
  for (const exceptions of ['127.0.0.1', host, '*']) {
    process.env['no_proxy'] = exceptions
    const around = await startGateway(t, { upstreams: { openai } })
    t.equal((await files(around)).status, 200)
    t.equal(proxy.requests.length, 1, `NO_PROXY=${exceptions}`)
  }
  process.env['no_proxy'] = `127.0.0.1:1`
  process.env['http_proxy'] = 'no url'
  const wrong = await startGateway(t, { upstreams: { openai } })
  t.equal((await files(wrong)).status, 502, 'a proxy with a wrong address is not bypassed')
})

void t.test('a proxy that does not reply is limited by connect_ms', async (t) => {
  const port = await listen(
    t,
    createServer().on('connect', () => undefined),
  )
  const { get } = await openStage(t, {
    proxy: `http://127.0.0.1:${port}`,
    options: ', timeouts: { connect_ms: 200 }',
  })
  const { status } = await get('/v1/files')
  t.ok(status === 502 || status === 504, String(status))
})

void t.test('requests_per_minute limits requests and WebSockets', async (t) => {
  const { gateway, get } = await openStage(t, {
    more: 'limits: [{ scope: key, requests_per_minute: 2 }]',
  })
  t.equal((await get('/v1/files')).status, 200)
  t.match(await greeting(gateway), /session.created/, 'a WebSocket is a request')
  const refused = await get('/v1/files')
  t.equal(refused.status, 429)
  t.ok(Number(refused.headers.get('retry-after')) > 0)
  t.match(await rowsOf(gateway), [{ status: 200 }, { status: 101 }, { status: 429 }])
  t.equal((await files(gateway, 'wrong')).status, 401)
  const text = await gateway.metrics.text()
  for (const status of ['200', '101', '429', '401']) {
    t.match(text, new RegExp(`sluice_requests_total\\{ingress="native"[^}]*status="${status}"`), status)
  }
})

void t.test("a key's models must include native:UPSTREAM; entries have its labels", async (t) => {
  const { gateway, provider } = await openStage(t)
  const loaded = loadConfig(gateway.configFile, process.env)
  if (!loaded.ok) throw new Error('the configuration is not good')
  const store = await openStore(loaded.config.store)
  const account = await store.accountByEmail('test@example.com')
  if (account === null) throw new Error('there is no account')
  const keyFor = async (models: string[]): Promise<string> => {
    const more = { models, labels: { team: 'search' } }
    return (await createKey(store, { plans: loaded.config.plans, account, name: 'narrow', ...more })).secret
  }
  const without = await keyFor(['gpt-4o', 'native:other'])
  const having = await keyFor(['native:openai'])
  await store.close()
  const refused = await files(gateway, without)
  t.equal(refused.status, 403)
  t.match(await refused.text(), /native:openai/)
  t.equal(provider.seen.length, 0)
  t.equal((await files(gateway, having)).status, 200)
  const rows = await rowsOf(gateway)
  t.match(rows, [
    { status: 403, labels: 'team=search' },
    { status: 200, labels: 'team=search' },
  ])
})

void t.test('open WebSockets count in server.max_connections', async (t) => {
  const { gateway, provider } = await openStage(t, { server: 'max_connections: 2' })
  const openSockets = [openSocket(gateway), openSocket(gateway)]
  await Promise.all(openSockets.map((socket) => once(socket, 'message')))
  const statusLine = async (): Promise<string> => {
    const socket = connect(gateway.port, '127.0.0.1')
    socket.on('error', () => undefined)
    socket.end('GET /healthz HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n')
    let text = ''
    socket.on('data', (chunk: Buffer) => (text += chunk.toString()))
    await once(socket, 'close')
    return text.split('\r\n')[0] ?? ''
  }
  t.equal(await statusLine(), 'HTTP/1.1 503 Service Unavailable')
  openSockets[0]?.close()
  await eventually(() => provider.sockets.size === 1 && gateway.lines.length > 0, 'one is closed')
  t.match(await statusLine(), /^HTTP\/1\.1 (?!503)/)
  openSockets[1]?.terminate()
})

void t.test('one key opens a quarter of the connections as WebSockets', async (t) => {
  const { gateway, provider } = await openStage(t, { server: 'max_connections: 40' })
  const sockets: WebSocket[] = []
  const open = async (): Promise<boolean> => {
    const socket = openSocket(gateway)
    sockets.push(socket)
    return Promise.race([once(socket, 'message').then(() => true), once(socket, 'error').then(() => false)])
  }
  for (let at = 0; at < 10; at += 1) t.ok(await open(), `WebSocket ${at}`)
  t.equal(await refusal(gateway), 429)
  for (const socket of sockets) socket.terminate()
  await eventually(() => provider.sockets.size === 0, 'they are closed')
  t.ok(await open(), 'places are given back')
  sockets.at(-1)?.terminate()
})
