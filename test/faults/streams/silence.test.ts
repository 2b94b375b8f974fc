// Goal: a client receives bytes at regular intervals, and one that reads nothing is disconnected (G2, G8).
// Method: upstreams that stop sending, clients that do not read, and a clock that the test moves forward; the
// raw bytes and the sockets of both sides are checked. Stalled clients have seconds instead of a minute.
import { Socket } from 'node:net'
import t, { type Test } from 'tap'
import { startGateway, type TestGateway } from '../../helpers/gateway.js'
import { stopwatch } from '../../helpers/stopwatch.js'
import {
  checkAfter,
  eventually,
  fastClock,
  lastLine,
  openClient,
  question,
  series,
  watchProcess,
} from '../scene.js'
import { CONTENT_EVENT, STREAM_HEAD, startSocketUpstream } from '../socket-upstream.js'

const CLIENT_SECONDS = 'sluice_backpressure_seconds_total{side="client"}'
const STALL_MS = 3_000
const LAST = CONTENT_EVENT.replace('"finish_reason":null', '"finish_reason":"stop"')

/**
 * Makes the gateway's sockets buffer writes without sending them, as if the client did not read; calls `seen`
 * with each socket.
 */
function clogServerSockets(t: Test, gateway: TestGateway, seen: (socket: Socket) => void): void {
  for (const name of ['_write', '_writev'] as const) {
    const own = Object.getOwnPropertyDescriptor(Socket.prototype, name)
    const write = own?.value as (this: Socket, ...given: unknown[]) => void
    Object.defineProperty(Socket.prototype, name, {
      ...own,
      value(this: Socket, ...given: unknown[]) {
        if (this.localPort !== gateway.port) return Reflect.apply(write, this, given)
        // Node's own write does so too: the timeout may have passed before the reply began.
        this.setTimeout(this.timeout ?? 0)
        seen(this)
      },
    })
    t.teardown(() => Object.defineProperty(Socket.prototype, name, { ...own }))
  }
}

async function idle(gateway: TestGateway): Promise<void> {
  const gauge = 'sluice_inflight{upstream="openai"}'
  await eventually(async () => (await series(gateway, gauge)) === 0, gauge)
}

void t.test("the head is sent within about a second of the upstream's", async (t) => {
  watchProcess(t)
  const gateway = await startGateway(t)
  gateway.emulator.script({ times: 1, fault: { kind: 'stall', event: 0 } })
  const client = openClient(t, gateway, { body: question('gpt-4o', true) })
  const tookMs = await eventually(() => client.text().includes('\r\n\r\n'), 'a head')
  t.ok(tookMs < 1500, `${tookMs} ms`)
  t.match(client.text(), /^HTTP\/1\.1 200 /)
  client.socket.destroy()
  await checkAfter(t, gateway)
})

void t.test('silence in a stream is filled with comments', async (t) => {
  watchProcess(t)
  const gateway = await startGateway(t)
  const forward = fastClock(t)
  gateway.emulator.script({ times: 1, fault: { kind: 'stall', event: 3 } })
  const client = openClient(t, gateway, { body: question('gpt-4o', true) })
  await eventually(() => client.text().includes('"content":"'), 'content')
  t.notMatch(client.text(), '\n: keep-alive\n\n')
  for (let beats = 1; beats <= 2; beats += 1) {
    forward(16_000)
    const beat = new RegExp(`(\r\n: keep-alive\n\n\r\n[^:]*){${beats}}`)
    await eventually(() => beat.test(client.text()), `${beats} comments`)
  }
  client.socket.destroy()
  await checkAfter(t, gateway)
  t.equal(gateway.lines.find(({ outcome }) => outcome === 'client_gone')?.['status'], 499)
})

void t.test('silence in a stream of messages is filled with pings', async (t) => {
  watchProcess(t)
  const gateway = await startGateway(t)
  const forward = fastClock(t)
  gateway.emulator.script({ times: 1, fault: { kind: 'stall', event: 3 } })
  const body = question('gpt-4o', true, { max_tokens: 100 })
  const client = openClient(t, gateway, { body, path: '/v1/messages' })
  await eventually(() => client.text().includes('text_delta'), 'content')
  const pings = (): number => client.text().split('event: ping\ndata: {"type":"ping"}\n\n').length - 1
  t.equal(pings(), 1, 'one follows the start of the first block')
  for (let beats = 2; beats <= 3; beats += 1) {
    forward(16_000)
    await eventually(() => pings() === beats, `${beats} pings`)
  }
  client.socket.destroy()
  await checkAfter(t, gateway)
})

void t.test('F-96: a client that never reads uses little memory and is disconnected', async (t) => {
  watchProcess(t)
  let sent = 0
  const upstream = await startSocketUpstream(t, ({ socket }) => {
    socket.write(STREAM_HEAD)
    const blast = (): void => {
      while (!socket.destroyed && socket.write(CONTENT_EVENT.repeat(50))) sent += CONTENT_EVENT.length * 50
    }
    socket.on('drain', blast)
    blast()
  })
  const gateway = await startGateway(t, {
    upstreams: { openai: upstream.url },
    server: `client_stall_ms: ${STALL_MS}`,
  })
  const heapBefore = process.memoryUsage().heapUsed + process.memoryUsage().external
  const tookMs = stopwatch()
  const client = openClient(t, gateway, { body: question('gpt-4o', true) })
  client.socket.pause()
  let last = -1
  await eventually(
    async () => {
      const isStill = sent > 0 && sent === last
      last = sent
      await new Promise((resolve) => setTimeout(resolve, 200))
      return isStill
    },
    'the upstream is paused',
    10_000,
  )
  const growthBytes = process.memoryUsage().heapUsed + process.memoryUsage().external - heapBefore
  t.ok(growthBytes < 24e6, `${growthBytes} bytes more in this process, client and upstream included`)
  t.equal(upstream.connections[0]?.closedMs, null, 'not cut yet')
  await eventually(() => upstream.connections[0]?.closedMs !== null, 'the upstream connection is closed')
  const closedMs = tookMs()
  t.ok(closedMs < 1.8 * STALL_MS, `cut after ${closedMs} ms`)
  await eventually(() => lastLine(gateway)['outcome'] === 'client_gone', 'and the exchange ended')
  const seconds = await series(gateway, CLIENT_SECONDS)
  t.ok(seconds > 2 && seconds < 30, `${seconds} s of waiting for it are counted`)
})

void t.test('time blocked on a slow client is counted once', async (t) => {
  watchProcess(t)
  let source: Socket | undefined
  const upstream = await startSocketUpstream(t, ({ socket }) => {
    source = socket
    socket.write(STREAM_HEAD)
    for (let i = 0; i < 20; i++) socket.write(CONTENT_EVENT.repeat(1000))
    socket.write(`${LAST}data: [DONE]\n\n`)
  })
  const gateway = await startGateway(t, { upstreams: { openai: upstream.url } })
  const forward = fastClock(t)
  const client = openClient(t, gateway, { body: question('gpt-4o', true) })
  client.socket.pause()
  let last = -1
  await eventually(async () => {
    const waiting = source?.writableLength ?? 0
    const isStill = waiting > 0 && waiting === last
    last = waiting
    await new Promise((resolve) => setTimeout(resolve, 200))
    return isStill
  }, 'the upstream has to wait')
  forward(20_000)
  client.socket.resume()
  await eventually(() => client.text().includes('[DONE]'), 'the whole stream')
  await eventually(() => lastLine(gateway)['outcome'] === 'ok', 'the line')
  const seconds = await series(gateway, CLIENT_SECONDS)
  t.ok(seconds > 19 && seconds < 38, `${seconds} s`)
})

const ENDINGS = [
  { name: 'complete', body: `${LAST}data: [DONE]\n\n`, outcome: 'client_gone' },
  {
    name: 'failed',
    body: `data: {"error":{"message":"no","type":"server_error"}}\n\n`,
    outcome: 'upstream_failed',
  },
]
for (const { name, body, outcome } of ENDINGS) {
  void t.test(`a client that does not read the end of a ${name} stream is disconnected`, async (t) => {
    watchProcess(t)
    const upstream = await startSocketUpstream(t, ({ socket }) => {
      socket.write(STREAM_HEAD + CONTENT_EVENT)
      // Content comes first, so that the stream has begun when it fails.
      setTimeout(() => socket.write(body), 50)
    })
    const gateway = await startGateway(t, {
      upstreams: { openai: upstream.url },
      server: 'client_stall_ms: 1500',
    })
    let server: Socket | undefined
    clogServerSockets(t, gateway, (socket) => (server = socket))
    openClient(t, gateway, { body: question('gpt-4o', true) })
    await eventually(() => (server?.writableLength ?? 0) > 1000, 'the reply waits')
    await new Promise((resolve) => setTimeout(resolve, 250))
    t.equal(server?.destroyed, false, 'it is still within the time limit')
    await eventually(() => server?.destroyed === true, 'the client was cut')
    await idle(gateway)
    await eventually(() => lastLine(gateway)['outcome'] === outcome, 'the line')
  })
}

void t.test('a client that does not read a whole reply is disconnected', async (t) => {
  watchProcess(t)
  const gateway = await startGateway(t, { server: 'client_stall_ms: 1500' })
  for (const words of [5, 200_000]) {
    let server: Socket | undefined
    clogServerSockets(t, gateway, (socket) => (server = socket))
    const client = openClient(t, gateway, {
      body: question('gpt-4o', false, { text: `[[words: ${words}]]` }),
    })
    await eventually(() => (server?.writableLength ?? 0) > 500, 'the reply waits')
    await eventually(() => server?.destroyed === true, 'the client was cut')
    await eventually(() => lastLine(gateway)['outcome'] === 'client_gone', 'the line')
    client.socket.destroy()
  }
})

void t.test('F-98: a large whole reply to a slow client arrives complete', async (t) => {
  watchProcess(t)
  const gateway = await startGateway(t)
  const client = openClient(t, gateway, {
    body: question('gpt-4o', false, { text: '[[words: 300000]]' }),
  })
  let paused = 0
  client.socket.on('data', () => {
    paused += 1
    if (paused % 10 !== 0) return
    client.socket.pause()
    setTimeout(() => client.socket.resume(), 2)
  })
  const body = (): string => client.text().slice(client.text().indexOf('\r\n\r\n') + 4)
  const length = (): number => Number(/content-length: (\d+)/.exec(client.text())?.[1] ?? NaN)
  await eventually(() => Buffer.byteLength(body()) >= length(), 'the whole body', 10_000)
  t.equal(Buffer.byteLength(body()), length())
  t.doesNotThrow(() => JSON.parse(body()) as unknown)
  client.socket.destroy()
  await checkAfter(t, gateway)
})
