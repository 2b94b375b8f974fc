// Goal: a refused, invalid or truncated request body ends its exchange at once, releases its memory, and
//   never reaches an upstream (A-7, A-19, C-41, G6).
// Method: raw requests against a whole gateway, and the receiving phase alone on a small budget.
import { connect } from 'node:net'
import t from 'tap'
import { clientCodecOf } from '../../../src/formats/index.js'
import { Exchange } from '../../../src/gateway/client-exchange.js'
import { Generation } from '../../../src/gateway/generation.js'
import { BodyMemory } from '../../../src/gateway/body-memory.js'
import { receive } from '../../../src/gateway/phases/receive.js'
import { Intake } from '../../../src/gateway/phases/call.js'
import { sendReply } from '../../../src/http/respond.js'
import { openServer } from '../../../src/http/server.js'
import { startGateway, type TestGateway } from '../../helpers/gateway.js'
import { send } from './raw-client.js'
import { checkAfter, eventually, lastLine, question, watchProcess } from '../scene.js'

function head(gateway: TestGateway, framing: string): string {
  return (
    'POST /v1/chat/completions HTTP/1.1\r\nhost: gateway\r\ncontent-type: application/json\r\n' +
    `authorization: Bearer ${gateway.secret}\r\n${framing}\r\n\r\n`
  )
}

function chunk(text: string): string {
  return `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`
}

const CHUNKED = 'transfer-encoding: chunked'

void t.test('a chunked body over the size limit gets a 413 and the rest of it is discarded', async (t) => {
  watchProcess(t)
  const gateway = await startGateway(t, { server: 'max_body_bytes: 1000' })
  const chunks = [
    head(gateway, CHUNKED) + chunk('x'.repeat(900)),
    chunk('y'.repeat(200)),
    ...Array.from({ length: 20 }, () => chunk('z'.repeat(50))),
    '0\r\n\r\n',
  ]
  const { answers, closed, ownMs } = await send(gateway.port, chunks, { chunkEveryMs: 3 })
  t.equal(answers[0]?.status, 413)
  t.equal(answers[0]?.headers['connection'], 'close')
  t.match(answers[0]?.body, '"kind":"body_too_large"')
  t.ok(closed && ownMs < 700, `closed after the client had sent everything, after ${ownMs} ms`)
  t.equal(gateway.emulator.ledger.length, 0)
  await checkAfter(t, gateway)
})

void t.test('a refused body releases its memory and reserves no more', async (t) => {
  watchProcess(t)
  const gateway = await startGateway(t, { server: 'max_body_bytes: 1000' })
  const generation = new Generation(gateway.reload(), gateway.metrics, null)
  const budget = new BodyMemory(5000, 5000)
  const endpoint = { operation: 'chat' } as const
  const clientCodec = clientCodecOf('openai-chat')
  let errors = 0
  const server = await openServer({
    host: '127.0.0.1',
    port: 0,
    handler: (req, res) => {
      const x = new Exchange({ id: '1', req, res, generation, startedMs: 0 })
      const memory = budget.open('account')
      const at = {
        dialect: 'openai-chat',
        clientCodec,
        format: 'chat',
        wire: 'openai-chat',
        endpoint,
      } as const
      receive(x, at, new Intake(memory))
        .catch(() => (errors += 1))
        .finally(() => {
          memory.end()
          sendReply(res, { status: 200, headers: [], body: '' })
        })
        .catch(() => undefined)
    },
  })
  t.teardown(() => server.drain(0))
  for (const sizes of [[900, 200, 50, 50], [2000, 10], [999], [400, 400]]) {
    const chunks = [head(gateway, CHUNKED), ...sizes.map((size) => chunk('x'.repeat(size)))]
    await send(server.port, [...chunks, '0\r\n\r\n'], { waitMs: 300 })
  }
  t.equal(errors, 4, 'all four were refused')
  t.equal(budget.heldBytes, 0, 'nothing is held')
})

void t.test('more trailers than a request may have are refused', async (t) => {
  watchProcess(t)
  const gateway = await startGateway(t)
  for (const [count, status] of [
    [100, 200],
    [101, 431],
  ] as const) {
    const trailers = Array.from({ length: count }, (_, i) => `t${i}: v\r\n`).join('')
    const body = chunk(question('gpt-4o', false))
    const { answers } = await send(gateway.port, `${head(gateway, CHUNKED)}${body}0\r\n${trailers}\r\n`, {
      waitMs: 400,
    })
    t.equal(answers[0]?.status, status, `${count} trailers`)
    if (status === 200) continue
    t.equal(answers[0]?.headers['connection'], 'close')
    t.match(answers[0]?.body, '"kind":"headers_too_large"')
  }
  t.equal(gateway.emulator.ledger.length, 1, 'the upstream got only the valid request')
  await checkAfter(t, gateway)
})

void t.test('a body that violates the protocol gets one reply, and its exchange ends', async (t) => {
  watchProcess(t)
  const gateway = await startGateway(t)
  const broken = { size: 'zz\r\n', sign: '+5\r\nhello\r\n', end: '5\r\nhelloX' }
  for (const [name, invalid] of Object.entries(broken)) {
    const before = gateway.lines.length
    const { answers, text } = await send(
      gateway.port,
      [head(gateway, CHUNKED) + chunk('{"model":"gpt-4o",'), invalid],
      { waitMs: 1500 },
    )
    t.equal(answers[0]?.status, 400, name)
    t.equal(text.match(/HTTP\/1\.1 \d/g)?.length, 1, `${name}: one reply`)
    await eventually(() => gateway.lines.length === before + 1, `${name}: one line`)
    t.match(lastLine(gateway), { status: 400, outcome: 'malformed_request' }, name)
  }
  t.equal(gateway.emulator.ledger.length, 0)
  await checkAfter(t, gateway)
})

for (const mode of ['fin', 'reset'] as const) {
  void t.test(`a client that leaves in the middle of its body: ${mode}`, async (t) => {
    watchProcess(t)
    const gateway = await startGateway(t)
    for (const framing of [CHUNKED, 'content-length: 500']) {
      const before = gateway.lines.length
      const socket = connect(gateway.port, '127.0.0.1')
      socket.on('error', () => undefined).resume()
      const start = framing === CHUNKED ? chunk('{"model":') : '{"model":'
      socket.write(head(gateway, framing) + start)
      await new Promise((resolve) => setTimeout(resolve, 30))
      t.equal(gateway.lines.length, before, 'waiting for the rest')
      if (mode === 'fin') socket.end()
      else socket.resetAndDestroy()
      const tookMs = await eventually(() => gateway.lines.length === before + 1, 'the line')
      // A half-closed client can still read, so it gets a 400 and time to read it.
      t.ok(tookMs < (mode === 'fin' ? 1400 : 200), `${tookMs} ms`)
      const line =
        mode === 'fin'
          ? { status: 400, outcome: 'malformed_request' }
          : { status: 499, outcome: 'client_gone' }
      t.match(lastLine(gateway), line)
      socket.destroy()
    }
    t.equal(gateway.emulator.ledger.length, 0)
    await checkAfter(t, gateway)
  })
}
