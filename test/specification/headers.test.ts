/**
 * Goal: replies of every kind have the documented headers, and losses are reported.
 * Method: successes, streams, refusals and failures of a running gateway over all three families.
 */
import t from 'tap'
import { send } from '../faults/listener/raw-client.js'
import { startGateway } from '../helpers/gateway.js'
import { ask, body, FAMILIES, get } from './exchange.js'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const TIMING = /^auth;dur=[\d.]+, route;dur=[\d.]+, limit;dur=[\d.]+, upstream;dur=[\d.]+$/

for (const { family, model, upstream } of FAMILIES) {
  void t.test(`${family}: headers of every reply of an upstream`, async (t) => {
    const gateway = await startGateway(t)
    const seen = new Set<string | null>()
    for (const stream of [false, true]) {
      const { headers } = await ask(gateway, body({ model, stream }), {
        headers: { 'x-request-id': 'mine' },
      })
      t.match(headers.get('x-request-id'), UUID, "ours, not the client's")
      t.equal(headers.get('x-sluice-upstream'), upstream)
      t.equal(headers.get('x-sluice-generation'), '1')
      t.match(headers.get('server-timing'), TIMING)
      t.equal(headers.get('x-sluice-lost'), null, 'nothing was lost')
      t.match(gateway.lines.at(-1), {
        request_id: headers.get('x-request-id'),
        client_request_id: 'mine',
        upstream,
        generation: 1,
      })
      seen.add(headers.get('x-request-id'))
    }
    t.equal(seen.size, 2)
  })

  void t.test(`${family}: a failed upstream and its request are named`, async (t) => {
    const gateway = await startGateway(t)
    gateway.emulator.script({ fault: { kind: 'status', code: 500 }, times: 1 })
    const failed = await ask(gateway, body({ model }))
    t.equal(failed.status, 502)
    t.match(failed.headers.get('x-request-id'), UUID)
    t.equal(failed.headers.get('x-sluice-upstream'), upstream)
    gateway.emulator.script({
      fault: { kind: 'status', code: 429, 'retry-after': '7' },
      times: 1,
    })
    const busy = await ask(gateway, body({ model }))
    t.equal(busy.status, 429)
    t.equal(busy.headers.get('retry-after'), '7')
    t.match(busy.error, {
      type: 'rate_limit_error',
      code: 'rate_limit_exceeded',
      kind: 'upstream_busy',
    })
  })
}

void t.test('a refusal has an id and a generation, and no upstream', async (t) => {
  const gateway = await startGateway(t)
  for (const answer of [
    await ask(gateway, body({ model: 'llama' })),
    await ask(gateway, body({ stop: 7 })),
    await ask(gateway, body(), { headers: { authorization: 'Bearer x' } }),
    await get(gateway, '/v1/nothing'),
  ]) {
    t.match(answer.headers.get('x-request-id'), UUID)
    t.equal(answer.headers.get('x-sluice-generation'), '1')
    t.equal(answer.headers.get('x-sluice-upstream'), null)
    t.equal(answer.headers.get('content-type'), 'application/json')
  }
})

void t.test('a request that the listener refuses has an id and a log line', async (t) => {
  const gateway = await startGateway(t)
  const head = 'POST /v1/chat/completions HTTP/1.1\r\nHost: gateway\r\n'
  const known = `Authorization: Bearer ${gateway.secret}\r\nContent-Type: application/json\r\n`
  const chunked = `${head}${known}Transfer-Encoding: chunked\r\n\r\n`
  const turnedAway: Record<string, string> = {
    'no host': 'GET /v1/models HTTP/1.1\r\n\r\n',
    'no HTTP': '\x16\x03\x01\r\n\r\n',
    'a method that is never allowed': 'TRACE /v1/models HTTP/1.1\r\nHost: gateway\r\n\r\n',
    'a body that breaks, with its head': `${chunked}0x5\r\nhello\r\n`,
  }
  const seen = new Set<string>()
  for (const [name, request] of Object.entries(turnedAway)) {
    const { answers } = await send(gateway.port, request)
    const id = answers[0]?.headers['x-request-id']
    t.match(id, UUID, name)
    const line = gateway.lines.find((line) => line['request_id'] === id)
    t.match(line, { msg: 'exchange', status: answers[0]?.status, outcome: String }, name)
    seen.add(String(id))
  }
  const { answers } = await send(gateway.port, [chunked, '0x5\r\nhello\r\n'])
  const id = answers[0]?.headers['x-request-id']
  t.match(id, UUID, 'a body that breaks behind its head')
  const lines = gateway.lines.filter((line) => line['request_id'] === id)
  t.match(lines, [{ status: 400, outcome: 'malformed_request', path: '/v1/chat/completions' }])
  t.equal(lines.length, 1)
  t.equal(seen.size, 4)
})

void t.test('after a reload every reply has the new generation', async (t) => {
  const gateway = await startGateway(t)
  t.equal((await get(gateway, '/v1/models')).headers.get('x-sluice-generation'), '1')
  gateway.reload()
  t.equal((await get(gateway, '/v1/models')).headers.get('x-sluice-generation'), '2')
  t.equal((await ask(gateway, body())).headers.get('x-sluice-generation'), '2')
})

void t.test('a field that the other dialect lacks is reported', async (t) => {
  const gateway = await startGateway(t)
  const members = { logit_bias: { '5': 1 } }
  const kept = await ask(gateway, body(members))
  t.equal(kept.headers.get('x-sluice-lost'), null, 'the same dialect loses nothing')
  for (const model of ['claude-haiku-4-5', 'gemini-2.5-flash']) {
    for (const stream of [false, true]) {
      const { status, headers } = await ask(gateway, body({ model, stream, ...members }))
      t.equal(status, 200)
      t.equal(headers.get('x-sluice-lost'), 'logit_bias')
      t.match(gateway.lines.at(-1), { lost: 'logit_bias' })
    }
  }
})

void t.test('on_loss: reject: a 400 that names the field, and no request upstream', async (t) => {
  const gateway = await startGateway(t, { more: 'on_loss: reject' })
  for (const model of ['claude-haiku-4-5', 'gemini-2.5-flash']) {
    const { status, error, headers } = await ask(gateway, body({ model, logit_bias: { '5': 1 } }))
    t.equal(status, 400)
    t.match(error, { kind: 'untranslatable', param: 'logit_bias', message: /logit_bias/ })
    t.equal(headers.get('x-sluice-lost'), 'logit_bias')
  }
  t.equal(gateway.emulator.ledger.length, 0)
  t.equal((await ask(gateway, body({ model: 'claude-haiku-4-5' }))).status, 200)
  t.equal((await ask(gateway, body({ logit_bias: { '5': 1 } }))).status, 200)
})

void t.test('an unknown field is reported in characters that a header allows', async (t) => {
  const gateway = await startGateway(t)
  for (const name of ['ключ', 'a\r\nb: c', 'x'.repeat(8_000), '', 'a, b', '\u0000']) {
    for (const model of ['claude-haiku-4-5', 'gemini-2.5-flash']) {
      const { status, headers, text } = await ask(gateway, body({ model, [name]: 1 }))
      t.equal(status, 200, text.slice(0, 200))
      t.match(headers.get('x-sluice-lost'), /^[!-~ ]{1,2000}$/)
    }
  }
})
