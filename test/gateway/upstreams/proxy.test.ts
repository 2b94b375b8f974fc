/**
 * Goal: requests use the configured proxy, and fail if it fails.
 * Method: a proxy that opens tunnels, counts them and fails as the test sets.
 */
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { connect, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { replyTo, openPool } from './fixtures.js'

interface Proxy {
  readonly url: string
  /** Targets of requested tunnels, with the credentials sent. */
  readonly requested: string[]
  mode: 'open' | 'refuse' | 'close' | 'silent'
}

async function listen(t: Test, server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const sockets = new Set<Socket>()
  server.on('connection', (socket) => sockets.add(socket))
  t.teardown(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  const address = server.address()
  return typeof address === 'object' && address !== null ? address.port : 0
}

async function startProxy(t: Test): Promise<Proxy> {
  const server = createServer()
  const proxy = { url: '', requested: [] as string[], mode: 'open' as Proxy['mode'] }
  server.on('connect', (req, socket: Socket) => {
    proxy.requested.push(`${req.url ?? ''} ${req.headers['proxy-authorization'] ?? ''}`.trim())
    socket.on('error', () => undefined)
    if (proxy.mode === 'close') socket.destroy()
    if (proxy.mode === 'refuse') socket.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n')
    if (proxy.mode !== 'open') return
    const [host = '', port = ''] = (req.url ?? '').split(':')
    const upstream = connect(Number(port), host, () => {
      socket.write('HTTP/1.1 200 Connection Established\r\n\r\n')
      upstream.pipe(socket).pipe(upstream)
    })
    upstream.on('error', () => socket.destroy())
    socket.on('close', () => upstream.destroy())
  })
  proxy.url = `http://127.0.0.1:${await listen(t, server)}`
  return proxy
}

async function startUpstream(t: Test): Promise<{ baseUrl: string; requested: () => number }> {
  let requested = 0
  const server = createServer((req, res) => {
    requested += 1
    req.resume().on('end', () => res.end('hello'))
  })
  return { baseUrl: `http://127.0.0.1:${await listen(t, server)}`, requested: () => requested }
}

/** Sets environment variables for the duration of a test. */
function setEnv(t: Test, values: Record<string, string>): void {
  for (const [name, value] of Object.entries(values)) {
    const before = process.env[name]
    process.env[name] = value
    t.teardown(() => {
      if (before === undefined) Reflect.deleteProperty(process.env, name)
      else process.env[name] = before
    })
  }
}

void t.test('a proxy by its URL', async (t) => {
  const proxy = await startProxy(t)
  const upstream = await startUpstream(t)
  const target = new URL(upstream.baseUrl).host
  const withUser = proxy.url.replace('//', '//user:pass@')
  const pool = openPool({ baseUrl: upstream.baseUrl, proxy: withUser })
  t.teardown(() => pool.destroy())
  t.equal(await replyTo(pool, 'a'), '200 hello')
  t.equal(await replyTo(pool, 'b'), '200 hello')
  const basic = Buffer.from('user:pass').toString('base64')
  t.equal(proxy.requested[0], `${target} Basic ${basic}`)
  t.equal(upstream.requested(), 2)
})

void t.test('a proxy that fails is never bypassed', async (t) => {
  const proxy = await startProxy(t)
  const upstream = await startUpstream(t)
  const settings = { baseUrl: upstream.baseUrl, maxConnections: 2, timeouts: { connectMs: 300 } }
  const pool = openPool({ ...settings, proxy: proxy.url })
  t.teardown(() => pool.destroy())
  const codes = { refuse: 'UND_ERR_ABORTED', close: 'PROXY_FAILED', silent: 'PROXY_FAILED' }
  for (const mode of ['refuse', 'close', 'silent'] as const) {
    proxy.mode = mode
    const before = proxy.requested.length
    t.equal(await replyTo(pool, 'a'), codes[mode], mode)
    t.equal(proxy.requested.length, before + 1, `${mode}: it gets one request`)
  }
  const unreachable = openPool({ ...settings, proxy: 'http://127.0.0.1:1' })
  t.teardown(() => unreachable.destroy())
  t.match(await replyTo(unreachable, 'a'), /PROXY_FAILED|ECONNREFUSED/)
  t.equal(upstream.requested(), 0, 'nothing reached the upstream')
  proxy.mode = 'open'
  t.equal(await replyTo(pool, 'a'), '200 hello', 'it works once the proxy does')
})

void t.test('the proxy of the environment', async (t) => {
  const proxy = await startProxy(t)
  const upstream = await startUpstream(t)
  setEnv(t, { http_proxy: proxy.url, no_proxy: '' })
  const through = openPool({ baseUrl: upstream.baseUrl, proxy: 'env' })
  t.equal(await replyTo(through, 'a'), '200 hello')
  t.equal(proxy.requested.length, 1)
  const none = openPool({ baseUrl: upstream.baseUrl, proxy: 'none' })
  t.equal(await replyTo(none, 'a'), '200 hello')
  t.equal(proxy.requested.length, 1, '`none` bypasses it')
  setEnv(t, { no_proxy: '127.0.0.1' })
  const excepted = openPool({ baseUrl: upstream.baseUrl, proxy: 'env' })
  t.equal(await replyTo(excepted, 'a'), '200 hello')
  t.equal(proxy.requested.length, 1, 'NO_PROXY bypasses it')
  setEnv(t, { http_proxy: 'no url', no_proxy: '' })
  const wrong = openPool({ baseUrl: upstream.baseUrl, proxy: 'env' })
  t.equal(await replyTo(wrong, 'a'), 'PROXY_FAILED', 'a proxy with an invalid address is not bypassed')
  for (const pool of [through, none, excepted, wrong]) await pool.destroy()
})

void t.test('no proxy gets a request for a private address', async (t) => {
  const proxy = await startProxy(t)
  const upstream = await startUpstream(t)
  const settings = { baseUrl: upstream.baseUrl, allowPrivateAddress: false, proxy: proxy.url }
  const pool = openPool(settings)
  t.teardown(() => pool.destroy())
  t.equal(await replyTo(pool, 'a'), 'EPRIVATE')
  t.same(proxy.requested, [])
})
