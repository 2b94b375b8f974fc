// Goal: an upstream that is unreachable or forbidden causes a prompt 502, and one that
//   drops its connections never hangs a request (E-79 to E-84).
// Method: closed ports, names that do not exist or are private, and upstreams that close idle
//   connections, drop requests, or reply before they have read them.
import { createServer } from 'node:net'
import t from 'tap'
import { startGateway } from '../helpers/gateway.js'
import { ask, checkAfter, checkFailed, question, UPSTREAMS, watchProcess } from './scene.js'
import { httpReply, startSocketUpstream } from './socket-upstream.js'
import { listen } from '../helpers/listen.js'

const REPLY =
  '{"id":"1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}]}'
const GOOD = httpReply(200, ['content-type: application/json'], REPLY)

async function closedPort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  return typeof address === 'object' && address !== null ? address.port : 1
}

void t.test('E-79: refused connections', async (t) => {
  watchProcess(t)
  const url = `http://127.0.0.1:${await closedPort()}/v1`
  const gateway = await startGateway(t, { upstreams: { openai: url, anthropic: url, gemini: url } })
  for (const { model } of UPSTREAMS) {
    for (const stream of [true, false]) {
      const seen = await ask(gateway, question(model, stream))
      t.equal(seen.status, 502, model)
      t.ok(seen.ownMs < 500, `${seen.tookMs} ms`)
      checkFailed(t, seen, { name: model, kinds: ['upstream_unreachable'] })
      t.notMatch(seen.body, '127.0.0.1', 'no address is revealed')
    }
  }
})

void t.test('E-79: a name that does not exist', async (t) => {
  watchProcess(t)
  const gateway = await startGateway(t, { upstreams: { openai: 'http://no-such-host.invalid/v1' } })
  const seen = await ask(gateway, question('gpt-4o', true))
  t.equal(seen.status, 502)
  checkFailed(t, seen, { name: 'NXDOMAIN', kinds: ['upstream_unreachable'] })
  t.notMatch(seen.body, 'no-such-host.invalid')
})

void t.test('E-79: addresses that are not public', async (t) => {
  watchProcess(t)
  const upstream = await startSocketUpstream(t, ({ socket }) => socket.write(GOOD))
  for (const host of [
    '127.0.0.1',
    'localhost',
    '[::1]',
    '[::ffff:127.0.0.1]',
    '2130706433',
    '0x7f.1',
    '0.0.0.0',
  ]) {
    const gateway = await startGateway(t, {
      upstreams: { openai: `"http://${host}:${upstream.port}/v1"` },
      upstreamOptions: 'allow_private_address: false',
    })
    const seen = await ask(gateway, question('gpt-4o', false))
    t.equal(seen.status, 502, host)
    checkFailed(t, seen, { name: host, kinds: ['upstream_unreachable'] })
  }
  t.equal(upstream.connections.length, 0, 'no connection was made')
})

void t.test('an upstream that closes idle connections', async (t) => {
  watchProcess(t)
  const upstream = await startSocketUpstream(t, ({ socket }) => {
    socket.write(GOOD)
    setTimeout(() => socket.end(), 15)
  })
  const gateway = await startGateway(t, { upstreams: { openai: upstream.url } })
  let failed = 0
  for (let i = 0; i < 60; i += 1) {
    await new Promise((resolve) => setTimeout(resolve, 10 + (i % 10)))
    const seen = await ask(gateway, question('gpt-4o', false))
    if (seen.status === 200) continue
    failed += 1
    checkFailed(t, seen, { name: 'the race is lost', kinds: ['upstream_failed'] })
    t.ok(seen.ownMs < 1000)
  }
  t.ok(failed < 30, `${failed} of 60 met a closing connection`)
})

void t.test('dropped requests', async (t) => {
  watchProcess(t)
  const gateway = await startGateway(t)
  for (const { model } of UPSTREAMS) {
    for (const stream of [true, false]) {
      gateway.emulator.script({ times: 1, fault: { kind: 'drop' } })
      const seen = await ask(gateway, question(model, stream))
      t.equal(seen.status, 502)
      checkFailed(t, seen, { name: model, kinds: ['upstream_failed'] })
    }
  }
  await checkAfter(t, gateway)
})

void t.test('a reply before the request has been read', async (t) => {
  watchProcess(t)
  const early = httpReply(
    429,
    ['content-type: application/json', 'connection: close'],
    '{"error":{"message":"slow down"}}',
  )
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.once('data', () => {
      socket.pause()
      socket.end(early)
    })
  })
  const port = await listen(t, server)
  const gateway = await startGateway(t, { upstreams: { openai: `http://127.0.0.1:${port}/v1` } })
  const seen = await ask(gateway, question('gpt-4o', true, { text: 'x'.repeat(8_000_000) }), 8000)
  t.ok([429, 502].includes(seen.status), String(seen.status))
  checkFailed(t, seen, { name: 'early answer', kinds: ['upstream_busy', 'upstream_failed'] })
})
