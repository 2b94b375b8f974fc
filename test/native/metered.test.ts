/**
 * Goal: batches are charged by their results, once, to the account that created them, and the replies of a
 * WebSocket by their usage events; under a budget both are refused if their price is unknown.
 * Method: a provider with results and a realtime endpoint, prices of its own, both stores.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { WebSocket, WebSocketServer } from 'ws'
import { eventually } from '../faults/scene.js'
import { startGateway } from '../helpers/gateway.js'
import { rowsOf } from '../helpers/ledger.js'
import { startRedis } from '../helpers/redis.js'
import { openAccounts, STORES } from './accounts.js'

t.setTimeout(120_000)

const PRICES = 'prices: { gpt-batch: { input: 1000, output: 2000 } }'
const OPENAI = '/native/openai/v1'
const BUDGET = (usd: number): string => `limits: [{ scope: key, usd_per_day: ${usd} }]`

/** One line of a batch, or of its results. */
function line(value: object): string {
  return `${JSON.stringify(value)}\n`
}

function request(at: number): string {
  const body = { model: 'gpt-batch', max_tokens: 10, messages: [{ role: 'user', content: 'hi' }] }
  return line({ custom_id: `r${at}`, method: 'POST', url: '/v1/chat/completions', body })
}

function result(at: number): string {
  const usage = { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 }
  const body = { model: 'gpt-batch', choices: [{ message: { content: '{"usage":1}' } }], usage }
  return line({ custom_id: `r${at}`, response: { status_code: 200, body } })
}

/** Uploads a file of a batch; its id. */
async function uploaded(ask: (path: string, init: object) => Promise<Response>, text: string) {
  const data = new FormData()
  data.append('purpose', 'batch')
  data.append('file', new Blob([text]), 'batch.jsonl')
  const reply = await ask(`${OPENAI}/files`, { method: 'POST', body: data })
  return ((await reply.json()) as { id: string }).id
}

for (const store of STORES) {
  void t.test(`${store}: a batch is charged by its results, once`, async (t) => {
    const options = `${PRICES}, native_usd_per_request: 0`
    const { a, b, gateway, provider } = await openAccounts(t, store, { options, more: BUDGET(0.8) })
    const input_file_id = await uploaded(a, request(1) + request(2))
    const created = await a(`${OPENAI}/batches`, { json: { input_file_id } })
    t.equal(created.status, 200)
    const { id } = (await created.json()) as { id: string }
    const again = await a(`${OPENAI}/batches`, { json: { input_file_id } })
    t.equal(again.status, 402, 'the maximum cost of the first one is reserved')
    const running = { id, object: 'batch', status: 'in_progress' }
    provider.replies.set(`GET /v1/batches/${id}`, running)
    await a(`${OPENAI}/batches/${id}`)
    const done = { ...running, status: 'completed', output_file_id: 'file-out' }
    provider.replies.set(`GET /v1/batches/${id}`, done)
    provider.replies.set('GET /v1/files/file-out/content', result(1) + result(2))
    for (let at = 0; at < 3; at += 1) t.equal((await a(`${OPENAI}/batches/${id}`)).status, 200)
    const content = await (await a(`${OPENAI}/files/file-out/content`)).text()
    t.equal(content, result(1) + result(2))
    const charged = async () => (await rowsOf(gateway)).filter(({ costNanoUsd }) => costNanoUsd !== 0)
    await eventually(async () => (await charged()).length > 0, 'charged')
    const rows = await charged()
    t.equal(rows.length, 1, 'once')
    t.match(rows[0], {
      usage: { input: 6, output: 8 },
      costNanoUsd: 22_000_000,
      model: 'other',
      modelAnswered: 'gpt-batch',
      source: 'reported',
      ingress: 'native',
    })
    t.equal((await a(`${OPENAI}/batches`, { json: { input_file_id } })).status, 200, 'released')
    const other = await b(`${OPENAI}/batches`, { json: { input_file_id } })
    t.equal(other.status, 404)
  })

  void t.test(`${store}: a batch of unknown price is refused under a budget`, async (t) => {
    const options = `${PRICES}, native_usd_per_request: 0.01`
    const { a, provider } = await openAccounts(t, store, { options, more: BUDGET(100) })
    const unknown = await uploaded(a, request(1).replace('gpt-batch', 'gpt-unknown'))
    const before = provider.seen.length
    const reply = await a(`${OPENAI}/batches`, { json: { input_file_id: unknown } })
    t.equal(reply.status, 403)
    t.match(await reply.text(), 'price of the batch')
    t.equal(provider.seen.length, before, 'no request reaches the provider')
    const messages = [{ role: 'user', content: 'hi' }]
    const requests = [{ custom_id: '1', params: { model: 'gpt-batch', max_tokens: 5, messages } }]
    const inline = '/native/anthropic/v1/messages/batches'
    const made = (await (await a(inline, { json: { requests } })).json()) as { id: string }
    const ended = { id: made.id, type: 'message_batch', processing_status: 'ended' }
    provider.replies.set(`GET /v1/messages/batches/${made.id}`, ended)
    const usage = { input_tokens: 2, output_tokens: 3, cache_read_input_tokens: 1 }
    const message = { model: 'gpt-batch', content: [], usage }
    const results = line({ custom_id: '1', result: { type: 'succeeded', message } })
    provider.replies.set(`GET /v1/messages/batches/${made.id}/results`, results)
    t.equal(await (await a(`${inline}/${made.id}/results`)).text(), results)
  })
}

/** A provider whose WebSocket replies to each message with a reply of 100 tokens; its base URL. */
async function realtimeProvider(t: Test): Promise<{ baseUrl: string; messages: string[] }> {
  const server = createServer()
  const messages: string[] = []
  const sockets = new WebSocketServer({ server, perMessageDeflate: true })
  sockets.on('connection', (socket) => {
    socket.send(JSON.stringify({ type: 'session.created' }))
    socket.on('message', (bytes: Buffer) => {
      messages.push(bytes.toString())
      const usage = { total_tokens: 100, input_tokens: 60, output_tokens: 40 }
      const audio = 'A'.repeat(200_000)
      socket.send(JSON.stringify({ type: 'response.created', response: { usage: null } }))
      socket.send(JSON.stringify({ type: 'response.output_audio.delta', delta: audio }))
      if (bytes.toString().includes('stay')) return
      socket.send(JSON.stringify({ type: 'response.done', response: { id: 'r', usage } }))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    for (const client of sockets.clients) client.terminate()
    server.close()
  })
  return { baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, messages }
}

for (const store of STORES) {
  const open = async (t: Test, more: string, price = '100') => {
    const { baseUrl } = await realtimeProvider(t)
    const native = `['GET /v1/realtime'], prices: { rt: { input: ${price}, output: ${price} } }`
    const gateway = await startGateway(t, {
      upstreams: { openai: `${baseUrl}, native: ${native}` },
      more,
      ...(store === 'redis' ? { store: `${(await startRedis(t)).url()}?timeout_ms=2000` } : {}),
    })
    const socket = (model: string): WebSocket =>
      new WebSocket(`ws://127.0.0.1:${gateway.port}${OPENAI}/realtime?model=${model}`, {
        headers: { authorization: `Bearer ${gateway.secret}` },
      })
    return { gateway, socket }
  }

  void t.test(`${store}: each reply of a WebSocket is charged`, async (t) => {
    const { gateway, socket } = await open(t, BUDGET(10))
    const client = socket('rt')
    await once(client, 'message')
    for (let at = 0; at < 3; at += 1) client.send('go')
    const charged = async () => (await rowsOf(gateway)).filter(({ usage }) => usage.input === 60)
    await eventually(async () => (await charged()).length === 3, 'three entries')
    t.match((await charged())[0], { usage: { input: 60, output: 40 }, costNanoUsd: 10_000_000 })
    client.send('stay')
    await once(client, 'message')
    await new Promise((resolve) => setTimeout(resolve, 100))
    client.close()
    await eventually(async () => (await rowsOf(gateway)).length === 4, 'the session')
    const last = (await rowsOf(gateway)).find(({ status }) => status === 101)
    t.equal(last?.costNanoUsd, (32_000 + 4_096) * 100_000, 'a reply without usage costs the maximum')
    const unknown = socket('unknown')
    const [error] = (await once(unknown, 'error')) as [Error]
    t.match(error.message, '403')
  })

  void t.test(`${store}: a limit per minute ends a session that exceeds it`, async (t) => {
    const { gateway, socket } = await open(t, 'limits: [{ scope: key, tokens_per_minute: 150 }]')
    const client = socket('rt')
    await once(client, 'message')
    const closed = once(client, 'close')
    client.send('go')
    client.send('go')
    await closed
    await eventually(async () => (await rowsOf(gateway)).length === 3, 'all entries')
    const rows = await rowsOf(gateway)
    t.ok(
      rows.some(
        ({ outcome, errorMessage }) =>
          outcome === 'rate_limited' && /150 tokens a minute/.test(errorMessage ?? ''),
      ),
    )
  })

  void t.test(`${store}: a budget ends a session that has used it up`, async (t) => {
    const { gateway, socket } = await open(t, BUDGET(3.61))
    const client = socket('rt')
    await once(client, 'message')
    const closed = once(client, 'close')
    client.send('go')
    client.send('go')
    await closed
    await eventually(async () => (await rowsOf(gateway)).length === 3, 'all entries')
    const rows = await rowsOf(gateway)
    const spent = rows.filter(({ usage }) => usage.input === 60)
    t.strictSame(
      spent.map(({ costNanoUsd }) => costNanoUsd),
      [10_000_000, 10_000_000],
    )
    const session = rows.find(({ usage }) => usage.input !== 60)
    t.match(session, {
      outcome: 'budget_exceeded',
      errorMessage: /^The budget of \$3\.61 a day for this key leaves/,
    })
  })
}
