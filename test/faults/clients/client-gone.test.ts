// Goal: a client that leaves ends the upstream request at once, in every phase and also for whole
//   replies, with one log line (G6, D-70).
// Method: clients that close in order or reset while the request is queued, connecting, waiting for
//   the head, streaming, or in the middle of a whole reply; the upstream's sockets are timed.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { startGateway, type TestGateway } from '../../helpers/gateway.js'
import { stopwatch } from '../../helpers/stopwatch.js'
import {
  checkAfter,
  eventually,
  lastLine,
  openClient,
  question,
  series,
  UPSTREAMS,
  watchProcess,
} from '../scene.js'

const MODES = ['fin', 'reset'] as const
const LEFT = { status: 499, outcome: 'client_gone' }

function leave(socket: Socket, mode: (typeof MODES)[number]): void {
  if (mode === 'fin') socket.end()
  else socket.resetAndDestroy()
}

/** Checks that the exchange ends within 200 ms, with exactly one log line since `before`. */
async function checkLeft(t: Test, gateway: TestGateway, before: number): Promise<void> {
  const exchanges = (): number => gateway.lines.filter(({ msg }) => msg === 'exchange').length
  const tookMs = await eventually(() => exchanges() > before, 'the line')
  t.ok(tookMs < 200, `over after ${tookMs} ms`)
  t.match(lastLine(gateway), LEFT)
  await new Promise((resolve) => setTimeout(resolve, 20))
  t.equal(exchanges(), before + 1, 'one line')
}

const PHASES = {
  waiting: { stream: true, fault: { kind: 'hang' }, sign: undefined },
  streaming: { stream: true, fault: { kind: 'stall', event: 5 }, sign: '"content":"' },
  'a stream without content': { stream: true, fault: { kind: 'stall', event: 0 }, sign: undefined },
  'a whole reply': { stream: false, fault: { kind: 'stall', bytes: 20 }, sign: undefined },
  'waiting for a whole reply': { stream: false, fault: { kind: 'hang' }, sign: undefined },
} as const

for (const { name, model } of UPSTREAMS) {
  void t.test(`${name}: while the upstream works`, async (t) => {
    watchProcess(t)
    const gateway = await startGateway(t)
    let before = 0
    for (const [phase, { stream, fault, sign }] of Object.entries(PHASES)) {
      for (const mode of MODES) {
        const { emulator } = gateway
        emulator.script({ times: 1, fault })
        const client = openClient(t, gateway, { body: question(model, stream) })
        await eventually(() => emulator.open() === 1, 'the upstream receives the request')
        if (sign !== undefined) await eventually(() => client.text().includes(sign), 'content')
        else await new Promise((resolve) => setTimeout(resolve, 20))
        leave(client.socket, mode)
        const tookMs = await eventually(() => emulator.open() === 0, 'upstream closed')
        t.ok(tookMs < 200, `${phase}, ${mode}: upstream closed after ${tookMs} ms`)
        t.equal(emulator.ledger.at(-1)?.outcome, 'client_closed')
        await checkLeft(t, gateway, before)
        before += 1
      }
    }
    t.equal(await series(gateway, `sluice_attempts_total{upstream="${name}",kind="client_gone"}`), before)
    await checkAfter(t, gateway)
  })
}

void t.test('queued behind the only connection', async (t) => {
  watchProcess(t)
  const gateway = await startGateway(t, { upstreamOptions: 'max_connections: 1' })
  const { emulator } = gateway
  let before = 0
  for (const mode of MODES) {
    emulator.script({ times: 1, fault: { kind: 'stall', event: 5 } })
    const busy = openClient(t, gateway, { body: question('gpt-4o', true) })
    await eventually(() => busy.text().includes('"content":"'), 'the connection is in use')
    const requestsBefore = emulator.ledger.length
    const queued = openClient(t, gateway, { body: question('gpt-4o', true) })
    await eventually(
      async () => (await series(gateway, 'sluice_inflight{upstream="openai"}')) === 2,
      'queued',
    )
    leave(queued.socket, mode)
    await checkLeft(t, gateway, before)
    t.equal(emulator.open(), 1, 'the other continues')
    leave(busy.socket, mode)
    await checkLeft(t, gateway, before + 1)
    before += 2
    t.equal(emulator.ledger.length, requestsBefore, 'the upstream never got the queued request')
  }
  await checkAfter(t, gateway)
})

/** A port whose connections are never accepted: its process is stopped and its backlog is full. */
async function fullPort(t: Test): Promise<number> {
  const program =
    "const s = require('net').createServer().listen({port: 0, host: '127.0.0.1', backlog: 1}, () => console.log(s.address().port))"
  const child = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(async () => {
    child.kill('SIGKILL')
    await once(child, 'exit')
  })
  const [line] = (await once(child.stdout, 'data')) as [Buffer]
  child.kill('SIGSTOP')
  const port = Number(line.toString())
  for (let i = 0; i < 4; i += 1) {
    const filler = connect(port, '127.0.0.1')
    filler.on('error', () => undefined)
    t.teardown(() => filler.destroy())
  }
  await new Promise((resolve) => setTimeout(resolve, 50))
  return port
}

void t.test('while a connection is opened', async (t) => {
  watchProcess(t)
  const port = await fullPort(t)
  const upstreams = { openai: `http://127.0.0.1:${port}/v1` }
  const gateway = await startGateway(t, { upstreams })
  let before = 0
  for (const mode of MODES) {
    const client = openClient(t, gateway, { body: question('gpt-4o', true) })
    const gauge = 'sluice_inflight{upstream="openai"}'
    await eventually(async () => (await series(gateway, gauge)) === 1, 'connecting')
    leave(client.socket, mode)
    await checkLeft(t, gateway, before)
    t.equal(await series(gateway, gauge), 0)
    before += 1
  }
})

void t.test('a connection that is never accepted is a 504 after connect_ms', async (t) => {
  watchProcess(t)
  const port = await fullPort(t)
  const upstreams = { openai: `http://127.0.0.1:${port}/v1` }
  const upstreamOptions = 'timeouts: { connect_ms: 300 }'
  const gateway = await startGateway(t, { upstreams, upstreamOptions })
  for (const stream of [true, false]) {
    const began = performance.now()
    const watch = stopwatch()
    const response = await gateway.chat(question('gpt-4o', stream))
    t.equal(response.status, 504)
    t.match(await response.json(), { error: { kind: 'upstream_timeout', code: null } })
    const tookMs = performance.now() - began
    t.ok(tookMs >= 250 && watch() < 1500, `${tookMs} ms`)
  }
  t.equal(await series(gateway, 'sluice_inflight{upstream="openai"}'), 0)
})
