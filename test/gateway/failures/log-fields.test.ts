/**
 * Goal: the documentation, the code and the log lines have the same fields, and sampling leaves out only
 * lines of successful requests.
 * Method: the table of the page, the code's list, and the lines of requests with every kind of end.
 */
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import t from 'tap'
import { exchangeFields } from '../../../src/observe/log-fields.js'
import { startGateway, type TestGateway } from '../../helpers/gateway.js'
import { until } from '../../helpers/upstream.js'
import { makeAll, openFailureScene } from './ten-failures.js'

/** The fields of every line. */
const OF_ALL_LINES = ['level', 'time', 'pid', 'msg']

function documented(): string[] {
  const page = readFileSync('docs/reference/log.md', 'utf8')
  const rows = [...page.matchAll(/^\| (`[^|]+`) +\|/gm)].map(([, cell = '']) => cell)
  return rows.flatMap((cell) => [...cell.matchAll(/`(\w+)`/g)].map(([, name = '']) => name))
}

function written(gateway: TestGateway): Record<string, unknown>[] {
  return gateway.lines.filter(({ msg }) => msg === 'exchange')
}

/** A reply of Anthropic with a stop sequence, which chat completions cannot represent. */
const STOPPED = {
  type: 'message',
  id: 'msg_1',
  role: 'assistant',
  model: 'claude-sonnet-4-5',
  content: [{ type: 'text', text: 'Blue.' }],
  stop_reason: 'stop_sequence',
  stop_sequence: 'END',
  usage: { input_tokens: 3, output_tokens: 2 },
}

/** A client that reads a stream late that the buffers of its connection, up to 10 MB, cannot hold. */
async function readSlowly(gateway: TestGateway): Promise<void> {
  const body = JSON.stringify({
    model: 'gpt-4o',
    stream: true,
    messages: [{ role: 'user', content: '[[words: 50000]] Hi.' }],
  })
  const before = gateway.emulator.ledger.length
  const socket = connect(gateway.port, '127.0.0.1')
  socket.write(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer ${gateway.secret}\r\n` +
      `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  )
  // Until the upstream has to wait for 300 turns of the event loop.
  let [sent, turns] = [0, 0]
  await until(() => {
    const now = gateway.emulator.ledger[before]?.bytesSent ?? 0
    turns = now > 0 && now === sent ? turns + 1 : 0
    sent = now
    return turns > 300
  }, 60_000)
  socket.resume()
  await new Promise((resolve) => socket.once('close', resolve))
}

/** Sends requests that together produce every field. */
async function askForAll(gateway: TestGateway): Promise<void> {
  const messages = [{ role: 'user', content: 'Think. '.repeat(800) }]
  const cached = [{ type: 'text', text: 'A long text. '.repeat(800), cache_control: { type: 'ephemeral' } }]
  const requests: [object, Record<string, string>][] = [
    [
      { model: 'claude-sonnet-4-5', stream: true, messages, seed: 1 },
      {
        'x-request-id': 'mine',
        traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
      },
    ],
    [{ model: 'claude-sonnet-4-5', messages: [{ role: 'user', content: cached }] }, {}],
    [{ model: 'o3', messages, reasoning_effort: 'high' }, {}],
    [
      {
        model: 'fragile',
        messages: [{ role: 'user', content: '[[fault: status code=503 times=1]] Hi, AKIAABCDEFGHIJKLMNOP.' }],
      },
      {},
    ],
  ]
  for (const [body, headers] of requests) {
    await (await gateway.chat(body, { headers })).text().catch(() => '')
  }
}

void t.test('documentation, code and lines have the same fields', async (t) => {
  const known = Object.keys(exchangeFields({ request_id: 'x', status: 200, outcome: 'ok', duration_ms: 0 }))
  t.same(documented().sort(), [...known].sort(), 'documentation and code')
  const scene = await openFailureScene(t)
  await makeAll(scene)
  await askForAll(scene.gateway)
  const routes = `  - model: fragile
    targets: [{ upstream: openai, model: gpt-4o }]
    retry: { attempts: 2 }
    guardrails: [keys]
guardrails: { keys: { patterns: [aws_access_key], action: mask } }
`
  const other = await startGateway(t, { routes })
  await askForAll(other)
  // The scene has short time limits.
  await readSlowly(other)
  other.emulator.replay({
    status: 200,
    response_headers: { 'content-type': 'application/json' },
    response_body: JSON.stringify(STOPPED),
  })
  await (
    await other.chat({ model: 'claude-sonnet-4-5', messages: [{ role: 'user', content: 'Hi.' }] })
  ).text()
  const usage = {
    prompt_tokens: 9,
    completion_tokens: 1,
    total_tokens: 10,
    prompt_tokens_details: { image_tokens: 5 },
  }
  other.emulator.replay({
    status: 200,
    response_headers: { 'content-type': 'application/json' },
    response_body: JSON.stringify({
      ...{ id: 'c1', object: 'chat.completion', created: 1, model: 'gpt-4o', usage },
      choices: [{ index: 0, message: { role: 'assistant', content: 'Blue.' }, finish_reason: 'stop' }],
    }),
  })
  await (await other.chat({ model: 'gpt-4o', messages: [{ role: 'user', content: 'Hi.' }] })).text()
  const lines = [...written(scene.gateway), ...written(other)]
  const fields = new Set(lines.flatMap((line) => Object.keys(line)))
  const never = known.filter((name) => !fields.has(name))
  t.same(never, [], 'fields that no line has')
  const unknown = [...fields].filter((name) => !known.includes(name) && !OF_ALL_LINES.includes(name))
  t.same(unknown, [], 'fields that are not documented')
  for (const line of lines) t.equal('cause' in line, line['outcome'] !== 'ok', String(line['outcome']))
})

void t.test('sampling leaves out only successes, except slow ones and retries', async (t) => {
  const routes = `  - model: fragile
    targets: [{ upstream: openai, model: gpt-4o }]
    retry: { attempts: 2 }
`
  const more = 'log: { sample_success: 0, slow_ms: 1000 }'
  const gateway = await startGateway(t, { routes, more })
  const ask = async (model: string, content: string): Promise<string> => {
    const response = await gateway.chat({ model, messages: [{ role: 'user', content }] })
    await response.text()
    return response.headers.get('x-request-id') ?? ''
  }
  const quick = await ask('gpt-4o', 'Hi.')
  const slow = await ask('gpt-4o', '[[fault: delay ms=1100 mode=headers]] Hi.')
  gateway.emulator.script({ times: 1, fault: { kind: 'status', code: 503 } })
  const retried = await ask('fragile', 'Hi.')
  const refused = await ask('nope', 'Hi.')
  await until(() => written(gateway).length >= 3)
  const ids = written(gateway).map((line) => line['request_id'])
  t.same(ids, [slow, retried, refused], `not ${quick}`)
})

void t.test('sampling writes the configured share', async (t) => {
  const gateway = await startGateway(t, { more: 'log: { sample_success: 0.5 }' })
  const REQUESTS = 200
  for (let sent = 0; sent < REQUESTS; sent += 1) {
    const messages = [{ role: 'user', content: 'Hi.' }]
    await (await gateway.chat({ model: 'gpt-4o', messages })).text()
  }
  const share = written(gateway).length / REQUESTS
  // Seven standard deviations: one run in 10^11 fails at random.
  t.ok(share > 0.25 && share < 0.75, String(share))
})
