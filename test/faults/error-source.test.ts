// Goal: an error, and the end of a stream, name the side that caused it.
// Method: each cause on a real gateway; the client's reply, the metrics and the log line are compared.
import t from 'tap'
import { startGateway, type TestGateway } from '../helpers/gateway.js'
import {
  ask,
  checkAfter,
  checkFailed,
  eventually,
  fastClock,
  lastLine,
  openClient,
  question,
  series,
  watchProcess,
} from './scene.js'
import { CONTENT_EVENT, STREAM_HEAD, startSocketUpstream } from './socket-upstream.js'

function ends(gateway: TestGateway, end: string): Promise<number> {
  return series(gateway, `sluice_stream_ends_total{upstream="openai",end="${end}"}`)
}

function attempts(gateway: TestGateway, kind: string): Promise<number> {
  return series(gateway, `sluice_attempts_total{upstream="openai",kind="${kind}"}`)
}

void t.test('a client that does not read until total_ms is reported as stalled', async (t) => {
  watchProcess(t)
  let sent = 0
  const upstream = await startSocketUpstream(t, ({ socket }) => {
    socket.write(STREAM_HEAD)
    const blast = (): void => {
      while (!socket.destroyed && socket.write(CONTENT_EVENT.repeat(50))) sent += 1
    }
    socket.on('drain', blast)
    blast()
  })
  const gateway = await startGateway(t, { upstreams: { openai: upstream.url } })
  const forward = fastClock(t)
  const client = openClient(t, gateway, { body: question('gpt-4o', true) })
  client.socket.pause()
  let last = -1
  await eventually(async () => {
    const isStill = sent > 0 && sent === last
    last = sent
    await new Promise((resolve) => setTimeout(resolve, 200))
    return isStill
  }, 'the upstream has to wait')
  forward(901_000)
  await eventually(async () => (await attempts(gateway, 'client_stalled')) === 1, 'the attempt ends')
  t.equal(await attempts(gateway, 'upstream_timeout'), 0, 'the upstream is not blamed')
  await eventually(() => upstream.connections[0]?.closedMs !== null, 'the upstream connection is closed')
  client.socket.resume()
  await eventually(() => client.text().includes('"kind":"client_stalled"'), 'the client receives the error')
  t.notMatch(client.text(), /\[DONE\]/)
  await eventually(() => lastLine(gateway)['outcome'] === 'client_stalled', 'the line')
  t.equal(lastLine(gateway)['end'], 'client_stalled')
  t.equal(await ends(gateway, 'client_stalled'), 1)
})

void t.test('total_ms is attributed to the upstream if the client reads', async (t) => {
  watchProcess(t)
  const gateway = await startGateway(t, { upstreamOptions: 'timeouts: { total_ms: 700 }' })
  const seen = await ask(gateway, question('gpt-4o', true, { text: '[[words: 200]] [[pace: 30]]' }))
  checkFailed(t, seen, { name: 'too long', kinds: ['upstream_timeout'] })
  t.equal(await attempts(gateway, 'upstream_timeout'), 1)
  t.equal(await ends(gateway, 'upstream_timeout'), 1)
  await checkAfter(t, gateway)
})

void t.test('a request without a free connection is attributed to the gateway', async (t) => {
  watchProcess(t)
  const gateway = await startGateway(t, {
    upstreamOptions: 'max_connections: 1, timeouts: { connect_ms: 300 }',
  })
  gateway.emulator.script({ times: 1, fault: { kind: 'stall', event: 5 } })
  const busy = openClient(t, gateway, { body: question('gpt-4o', true) })
  await eventually(() => busy.text().includes('"content":"'), 'the connection is in use')
  const seen = await ask(gateway, question('gpt-4o', true))
  t.equal(seen.status, 503)
  t.equal(seen.headers['retry-after'], '1')
  checkFailed(t, seen, { name: 'no free connection', kinds: ['overloaded'] })
  busy.socket.destroy()
  await checkAfter(t, gateway)
  t.equal(await ends(gateway, 'client_gone'), 1)
})

void t.test("a stream that the gateway ends as it stops is not the upstream's failure", async (t) => {
  watchProcess(t)
  const gateway = await startGateway(t)
  const stream = ask(gateway, question('gpt-4o', true, { text: '[[words: 500]] [[pace: 30]]' }))
  await eventually(() => gateway.emulator.open() === 1, 'it runs')
  await new Promise((resolve) => setTimeout(resolve, 200))
  await gateway.plane.drain()
  checkFailed(t, await stream, { name: 'the drain', kinds: ['draining'] })
  t.equal(await ends(gateway, 'draining'), 1)
  t.equal(await ends(gateway, 'upstream_error'), 0)
})

void t.test('a stream that the upstream breaks is attributed to the upstream', async (t) => {
  watchProcess(t)
  const gateway = await startGateway(t)
  gateway.emulator.script({ times: 1, fault: { kind: 'error', event: 3 } })
  checkFailed(t, await ask(gateway, question('gpt-4o', true)), {
    name: 'an error event',
    kinds: ['upstream_failed', 'upstream_busy'],
  })
  t.equal(await ends(gateway, 'upstream_error'), 1)
  await checkAfter(t, gateway)
})
