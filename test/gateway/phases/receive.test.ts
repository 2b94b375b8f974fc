/**
 * Goal: a body is accepted whole or refused, and its memory is returned to the budget of the process.
 * Method: `receive` behind a real listener, with a budget as small as the size limit.
 */
import { copyFileSync } from 'node:fs'
import { once } from 'node:events'
import { connect } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { loadConfig } from '../../../src/config/load-config.js'
import { createSnapshot } from '../../../src/config/create-snapshot.js'
import { errorFormatOf, resolveEndpoint } from '../../../src/formats/index.js'
import { Exchange } from '../../../src/gateway/client-exchange.js'
import { Generation } from '../../../src/gateway/generation.js'
import { BodyMemory } from '../../../src/gateway/body-memory.js'
import { receive } from '../../../src/gateway/phases/receive.js'
import { Intake, type Call } from '../../../src/gateway/phases/call.js'
import { sendErrorReply, toGatewayError } from '../../../src/gateway/phases/send-error.js'
import { Metrics } from '../../../src/observe/metrics/metrics.js'
import { sendReply } from '../../../src/http/respond.js'
import { openServer } from '../../../src/http/server.js'

const CAP = 1_000
/** Enough for one body of the maximum size with its copies. */
const ROOM = 10_000
const GOOD = JSON.stringify({ model: 'gpt-4o', messages: [{ role: 'user', content: 'Hi' }] })

/** The results of the requests, in order. */
interface Taken {
  readonly port: number
  readonly calls: Call[]
  readonly errors: string[]
  readonly budget: BodyMemory
  /** Resolves when the head of a request has arrived. */
  readonly arrived: Promise<void>
}

async function listening(t: Test): Promise<Taken> {
  const folder = t.testdir({
    'gateway.yaml': `
server: { host: 127.0.0.1, port: 0, max_body_bytes: ${CAP} }
store: sqlite:./data/sluice.db
models: models.yaml
upstreams:
  one: { dialect: openai-chat, base_url: https://example.com/v1, api_key: x }
routes: [ { prefix: gpt-, upstream: one } ]
plans:
  starter: { price_usd: 20, max_keys: 5 }
  pro: { price_usd: 50, max_keys: 20 }
  max: { price_usd: 100, max_keys: unlimited }
`,
  })
  copyFileSync('config/models.yaml', join(folder, 'models.yaml'))
  const loaded = loadConfig(join(folder, 'gateway.yaml'), {})
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.errors))
  const metrics = new Metrics({ processMetrics: false })
  const generation = new Generation(createSnapshot(loaded, { generation: 1, loadedAtMs: 0 }), metrics, null)
  t.teardown(() => generation.destroy())
  const budget = new BodyMemory(ROOM, ROOM)
  const calls: Call[] = []
  const errors: string[] = []
  let arrive = (): void => undefined
  const arrived = new Promise<void>((resolve) => (arrive = resolve))
  const server = await openServer({
    host: '127.0.0.1',
    port: 0,
    handler: (req, res) => {
      arrive()
      const x = new Exchange({ id: 'id', req, res, generation, startedMs: performance.now() })
      const at = resolveEndpoint('POST', '/v1/chat/completions')
      if (at === null) throw new Error('the endpoint is missing')
      const memory = budget.open('')
      receive(x, at, new Intake(memory))
        .then(
          (call) => {
            calls.push(call)
            sendReply(res, { status: 200, headers: [], body: 'taken' })
          },
          (thrown: unknown) => {
            const error = toGatewayError(thrown)
            errors.push(error.kind)
            sendErrorReply(x, error, { format: errorFormatOf(null), headers: [] })
          },
        )
        .finally(() => memory.end())
        .catch((error: unknown) => t.fail(String(error)))
    },
  })
  t.teardown(() => server.drain(0))
  return { port: server.port, calls, errors, budget, arrived }
}

/** Sends each part as a separate chunk, and reads to the end of the connection. */
async function send(port: number, parts: readonly string[], cutAfter?: Promise<void>): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  let text = ''
  socket.on('data', (chunk: Buffer) => (text += chunk.toString()))
  socket.on('error', () => undefined)
  const closed = once(socket, 'close')
  const head = 'host: x\r\ncontent-type: application/json\r\nconnection: close\r\n'
  socket.write(`POST / HTTP/1.1\r\n${head}transfer-encoding: chunked\r\n\r\n`)
  for (const part of parts) {
    socket.write(`${Buffer.byteLength(part).toString(16)}\r\n${part}\r\n`)
    // The other side must read the next part separately.
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  if (cutAfter !== undefined) {
    await cutAfter
    socket.resetAndDestroy()
  } else socket.write('0\r\n\r\n')
  await closed
  return text
}

void t.test('a body in several chunks becomes one call with unchanged bytes', async (t) => {
  const { port, calls, budget } = await listening(t)
  t.match(await send(port, [GOOD.slice(0, 10), GOOD.slice(10, 11), GOOD.slice(11)]), /taken/)
  t.equal(calls[0]?.raw.toString(), GOOD)
  t.match(calls[0], { request: { model: 'gpt-4o', stream: false }, dialect: 'openai-chat' })
  t.equal(budget.heldBytes, 0, 'the whole budget is available')
})

void t.test('bytes after the maximum are not accepted, for any size', async (t) => {
  const { port, calls, errors, budget } = await listening(t)
  const parts = ['x'.repeat(CAP + 1), 'y', 'z'.repeat(500)]
  t.match(await send(port, parts), /413 .*body_too_large/s)
  t.match(await send(port, ['x'.repeat(600), 'y'.repeat(600), 'z'.repeat(10)]), /413/)
  t.same(errors, ['body_too_large', 'body_too_large'])
  t.equal(calls.length, 0)
  t.equal(budget.heldBytes, 0, 'the whole budget is available')
})

void t.test('a full process refuses with retry-after, and recovers', async (t) => {
  const { port, errors, budget } = await listening(t)
  const others = budget.open('others')
  others.take(ROOM - 20)
  t.match(await send(port, [GOOD.slice(0, 15), GOOD.slice(15)]), /503 .*retry-after: 1/s)
  t.same(errors, ['overloaded'])
  others.end()
  t.match(await send(port, [GOOD]), /taken/)
  t.equal(budget.heldBytes, 0)
})

void t.test('a client that leaves during its body frees its memory', async (t) => {
  const { port, errors, budget, arrived } = await listening(t)
  await send(port, [GOOD.slice(0, 40)], arrived)
  while (errors.length === 0) await new Promise((resolve) => setImmediate(resolve))
  t.same(errors, ['client_gone'])
  t.equal(budget.heldBytes, 0)
})

void t.test('a body whose parsed form has no room is refused', async (t) => {
  const taken = await listening(t)
  const lists = Array.from({ length: 290 }, () => '[]').join(',')
  const body = GOOD.replace('{', `{"extra_body":[${lists}],`)
  t.ok(body.length < CAP)
  t.match(await send(taken.port, [body]), /body_too_large|overloaded/)
  t.equal(taken.calls.length, 0)
  t.equal(taken.budget.heldBytes, 0)
})
