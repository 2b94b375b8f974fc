/**
 * Goal: a turn of a WebSocket is a request of its own: the same events, errors, limits and ledger entry as
 * over HTTP, with the conversation of the connection.
 * Method: whole gateways over an emulator, on both stores, with a real WebSocket client.
 */
import t from 'tap'
import { objectOf, stringOf, type JsonObject } from '../../../src/base/json.js'
import { onBothStores, startAdmin } from '../../control/admin/admin-stage.js'
import { eventually } from '../../faults/scene.js'
import { rowsOf } from '../../helpers/ledger.js'
import { startGateway } from '../../helpers/gateway.js'
import { connectSocket, refusedHandshake, responseOf, textOf, typeOf } from './client.js'

const MODELS = ['gpt-5.4-mini', 'claude-sonnet-4-5', 'gemini-2.5-flash']

function message(text: string): JsonObject {
  return { type: 'message', role: 'user', content: [{ type: 'input_text', text }] }
}

function turnOf(model: string, text: string, more: JsonObject = {}): JsonObject {
  return { model, input: [message(text)], store: false, ...more }
}

onBothStores(
  t,
  'turns on models of each vendor, with the conversation of the connection',
  async (t, more) => {
    const { gateway } = await startAdmin(t, more)
    for (const model of MODELS) {
      const client = await connectSocket(t, gateway)
      const first = await client.turn(turnOf(model, 'one'))
      t.equal(typeOf(first[0]), 'response.created', model)
      t.equal(typeOf(first.at(-1)), 'response.completed', model)
      t.not(textOf(first), '')
      const previous = stringOf(responseOf(first)['id']) ?? ''
      const second = await client.turn(turnOf(model, 'two', { previous_response_id: previous }))
      t.equal(typeOf(second.at(-1)), 'response.completed', JSON.stringify(second.at(-1)))
      const { emulator } = gateway
      const sent = JSON.stringify(emulator.ledger.at(-1)?.body ?? '')
      t.match(sent, /one/, `${model}: the first turn is in the request of the second`)
      t.match(sent, /two/)
      // Another connection does not have it.
      const other = await connectSocket(t, gateway)
      const unknown = await other.turn(turnOf(model, 'three', { previous_response_id: previous }))
      t.match(unknown.at(-1), {
        type: 'error',
        status: 400,
        error: { type: 'invalid_request_error', code: 'previous_response_not_found' },
      })
      t.equal(typeOf((await other.turn(turnOf(model, 'four'))).at(-1)), 'response.completed', 'it stays open')
      await client.close()
      await other.close()
    }
    const rows = await rowsOf(gateway)
    t.same(
      rows.map(({ ingress, stream, status, outcome }) => [ingress, stream, status, outcome]).slice(0, 4),
      [
        ['responses', true, 200, 'ok'],
        ['responses', true, 200, 'ok'],
        ['responses', true, 400, 'malformed_request'],
        ['responses', true, 200, 'ok'],
      ],
    )
    t.equal(new Set(rows.map(({ requestId }) => requestId)).size, rows.length)
  },
)

void t.test('a turn without generation costs nothing and can be continued', async (t) => {
  const gateway = await startGateway(t)
  const client = await connectSocket(t, gateway)
  const asked = gateway.emulator.ledger.length
  for (const model of MODELS) {
    const developer = {
      type: 'message',
      role: 'developer',
      content: [{ type: 'input_text', text: 'Be brief' }],
    }
    const warm = await client.turn({ model, input: [developer], generate: false, store: false })
    t.same(warm.map(typeOf), ['response.created', 'response.in_progress', 'response.completed'])
    t.match(responseOf(warm), {
      status: 'completed',
      output: [],
      usage: { input_tokens: 0, output_tokens: 0 },
    })
    t.equal((await rowsOf(gateway)).length, 0, 'no entry')
    t.equal(gateway.emulator.ledger.length, asked, 'no request')
  }
  const id = stringOf(responseOf(client.events)['id']) ?? ''
  const turn = await client.turn(turnOf('claude-sonnet-4-5', 'hello', { previous_response_id: id }))
  t.equal(typeOf(turn.at(-1)), 'response.completed')
  t.match(JSON.stringify(gateway.emulator.ledger.at(-1)?.body), /Be brief/)
  const refused = await client.turn({ model: 'no-such-model', input: 'x', generate: false })
  t.match(refused.at(-1), { type: 'error', status: 404, error: { code: 'model_not_found' } })
  const wrong = await client.turn({ model: 'gpt-5.4-mini', input: 'x', generate: 'no' })
  t.match(wrong.at(-1), { type: 'error', status: 400, error: { param: 'generate' } })
})

void t.test('messages of older and newer clients', async (t) => {
  const gateway = await startGateway(t)
  const client = await connectSocket(t, gateway)
  client.send({ type: 'response.append', input: [message('early')] })
  t.match((await client.rest(0)).at(-1), { status: 400, error: { code: 'previous_response_not_found' } })
  const first = await client.turn(turnOf('gpt-5.4-mini', 'first', { instructions: 'Answer' }))
  client.send({ type: 'response.processed', response_id: responseOf(first)['id'] ?? '' })
  const from = client.events.length
  client.send({ type: 'response.append', input: [message('appended')] })
  t.equal(typeOf((await client.rest(from)).at(-1)), 'response.completed')
  const sent = JSON.stringify(gateway.emulator.ledger.at(-1)?.body)
  for (const text of ['first', 'appended', 'Answer']) t.match(sent, new RegExp(text))
  const before = client.events.length
  client.send({ type: 'response.unknown' })
  t.match((await client.rest(before)).at(-1), { type: 'error', status: 400, error: { param: 'type' } })
})

void t.test('errors are those of HTTP, as events', async (t) => {
  const gateway = await startGateway(t)
  const client = await connectSocket(t, gateway)
  const bodies = [
    { model: 'no-such-model', input: 'x' },
    { model: 'gpt-5.4-mini', input: 'x', temperature: 'hot' },
    { model: 'gpt-5.4-mini' },
  ]
  for (const body of bodies) {
    const event = (await client.turn(body)).at(-1) ?? {}
    const reply = await fetch(`${gateway.baseUrl}/responses`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.secret}`, 'content-type': 'application/json' },
      body: JSON.stringify({ ...body, stream: true }),
    })
    const http = objectOf(await reply.json())
    t.match(event, { type: 'error', status: reply.status, error: http['error'] ?? '' })
    const headers = objectOf(event['headers'])
    t.equal(headers['x-should-retry'], reply.headers.get('x-should-retry'))
    t.match(headers['x-request-id'], /^[0-9a-f-]{36}$/)
  }
})

void t.test('what is no turn closes the connection after an error', async (t) => {
  const gateway = await startGateway(t, { server: 'max_body_bytes: 20000' })
  const cases: [string, (client: Awaited<ReturnType<typeof connectSocket>>) => void, number, number][] = [
    ['a binary frame', ({ socket }) => socket.send(Buffer.from('{}'), { binary: true }), 1003, 400],
    ['no JSON', (client) => client.send('hello'), 1003, 400],
    ['half an object', (client) => client.send('{"type":'), 1003, 400],
    ['an array', (client) => client.send('[]'), 1003, 400],
    ['too large', (client) => client.send({ type: 'response.create', input: 'x'.repeat(30_000) }), 1009, 413],
    [
      'a second turn',
      (client) => {
        client.send({ type: 'response.create', ...turnOf('gpt-5.4-mini', 'one') })
        client.send({ type: 'response.create', ...turnOf('gpt-5.4-mini', 'two') })
      },
      1008,
      400,
    ],
  ]
  for (const [name, act, code, status] of cases) {
    const client = await connectSocket(t, gateway)
    act(client)
    t.equal(await client.closed, code, name)
    t.match(
      client.events.find((event) => typeOf(event) === 'error'),
      { type: 'error', status },
      name,
    )
  }
  const client = await connectSocket(t, gateway)
  client.send('{"type":"response.create","model":"a","model":"b"}')
  t.match((await client.rest(0)).at(-1), { status: 400 }, 'an object that is refused')
  t.equal(typeOf((await client.turn(turnOf('gpt-5.4-mini', 'on'))).at(-1)), 'response.completed')
})

void t.test('the handshake is refused as HTTP is', async (t) => {
  const gateway = await startGateway(t)
  const { port } = gateway
  const wrong = await refusedHandshake({ port, secret: `sk_${'a'.repeat(40)}` })
  t.match(wrong, { status: 401, body: { error: { type: 'authentication_error' } } })
  const old = await refusedHandshake(gateway, { headers: { 'sec-websocket-version': '7' } }).catch(() => null)
  if (old !== null) t.equal(old.status, 400)
  t.equal((await refusedHandshake(gateway, { path: '/v1/models' })).status, 400)
  t.equal((await refusedHandshake(gateway, { path: '/responses' })).status, 400, 'without bare paths')
  await (await connectSocket(t, gateway, { path: '/openai/v1/responses' })).close()
  const off = await startGateway(t, { more: 'responses: { websocket: false }' })
  t.match(await refusedHandshake(off), { status: 426, body: { error: { kind: 'no_websocket' } } })
  const bare = await startGateway(t, { server: 'bare_paths: true' })
  for (const path of ['/responses', '/openai/v1/responses']) {
    const client = await connectSocket(t, bare, { path })
    t.equal(typeOf((await client.turn(turnOf('gpt-5.4-mini', 'x'))).at(-1)), 'response.completed', path)
  }
  await eventually(() => gateway.lines.some(({ status }) => status === 101), 'a line of the handshake')
})
