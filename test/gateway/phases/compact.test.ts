/**
 * Goal: `POST /v1/responses/compact` compacts a conversation on a model of any vendor, as one request with
 * one entry, and what it returns continues the conversation on any other model.
 * Method: gateways over an emulator, on both stores.
 */
import t, { type Test } from 'tap'
import { arrayOf, objectOf, stringOf, type JsonObject, type JsonValue } from '../../../src/base/json.js'
import { onBothStores, startAdmin } from '../../control/admin/admin-stage.js'
import { startGateway, type TestGateway } from '../../helpers/gateway.js'
import { rowsOf } from '../../helpers/ledger.js'
import { connectSocket, typeOf } from '../responses-socket/client.js'

const CALL = { type: 'function_call', call_id: 'call_1', name: 'look', arguments: '{"at":"door"}' }
const CONVERSATION: JsonValue[] = [
  { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'The code word is heron.' }] },
  CALL,
  { type: 'function_call_output', call_id: 'call_1', output: 'a blue door' },
  {
    type: 'message',
    role: 'assistant',
    content: [{ type: 'output_text', text: 'I saw a blue door.', annotations: [] }],
  },
]
const TOOLS = [
  { type: 'function', name: 'look', parameters: { type: 'object', properties: { at: { type: 'string' } } } },
  { type: 'web_search' },
]

async function post(
  { baseUrl, secret }: TestGateway,
  path: string,
  body: JsonObject,
): Promise<{ readonly status: number; readonly json: JsonObject }> {
  const reply = await fetch(`${baseUrl}/responses${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  return { status: reply.status, json: objectOf(await reply.json()) }
}

function itemOf({ output }: JsonObject): JsonObject {
  return objectOf(arrayOf(output)[0])
}

function continued(item: JsonObject, model: string): JsonObject {
  const next = { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'And now?' }] }
  return { model, input: [item, next], store: false }
}

function sentBy({ emulator }: TestGateway): string {
  return JSON.stringify(emulator.ledger.at(-1)?.body)
}

onBothStores(t, 'a model writes the summary, which any model gets back', async (t, settings) => {
  const { gateway } = await startAdmin(t, settings)
  for (const model of ['claude-sonnet-4-5', 'gemini-2.5-flash']) {
    const body = { model, input: CONVERSATION, instructions: 'Be exact', tools: TOOLS, stream: true }
    const { status, json } = await post(gateway, '/compact', body)
    t.equal(status, 200, JSON.stringify(json))
    t.match(json, { object: 'response.compaction', id: /^resp_/, usage: { input_tokens: Number } })
    t.equal(arrayOf(json['output']).length, 1)
    t.match(itemOf(json), { type: 'compaction', id: /^cmp_/, encrypted_content: /^[A-Za-z0-9+/]+$/ })
    for (const text of ['heron', 'Be exact', 'summary']) t.match(sentBy(gateway), text)
    t.notMatch(sentBy(gateway), /web_search/)
    const entry = (await rowsOf(gateway)).at(-1)
    t.match(entry, { ingress: 'responses', status: 200, outcome: 'ok' })
    t.ok((entry?.costNanoUsd ?? 0) > 0)
    for (const other of ['gpt-5.4-mini', 'claude-sonnet-4-5', 'gemini-2.5-flash', 'gpt-4o']) {
      const reply = await post(gateway, '', continued(itemOf(json), other))
      t.equal(reply.status, 200, `${other}: ${JSON.stringify(reply.json)}`)
      t.match(sentBy(gateway), /emulated reply/, `${other} gets the summary`)
      t.notMatch(sentBy(gateway), /encrypted_content":"c2x1aWNl/)
    }
    await checkChanged(t, gateway, itemOf(json))
  }
  t.equal((await rowsOf(gateway)).length, 12, 'one entry for each request that was answered or refused')
})

async function checkChanged(t: Test, gateway: TestGateway, item: JsonObject): Promise<void> {
  const token = stringOf(item['encrypted_content']) ?? ''
  const changed = { ...item, encrypted_content: `${token.slice(0, -8)}AAAAAAAA` }
  const { status, json } = await post(gateway, '', continued(changed, 'claude-sonnet-4-5'))
  t.equal(status, 400)
  t.match(json['error'], { param: 'input[0].encrypted_content' })
}

void t.test('OpenAI compacts by itself', async (t) => {
  const gateway = await startGateway(t)
  const model = 'gpt-5.4-mini'
  const { status, json } = await post(gateway, '/compact', { model, input: CONVERSATION })
  t.equal(status, 200, JSON.stringify(json))
  t.match(json, { object: 'response.compaction', output: [{ type: 'compaction' }] })
  const sent = gateway.emulator.ledger.at(-1)
  t.match(sent, { path: '/responses/compact', body: { model, input: CONVERSATION } })
  t.notMatch(JSON.stringify(sent?.body), /summary/)
  const [entry] = await rowsOf(gateway)
  t.ok((entry?.costNanoUsd ?? 0) > 0)
  t.equal((await post(gateway, '', continued(itemOf(json), model))).status, 200, 'its own item goes back')
})

void t.test('stored and connected conversations are compacted by their ids', async (t) => {
  const gateway = await startGateway(t)
  const first = await post(gateway, '', { model: 'claude-sonnet-4-5', input: 'The code word is heron.' })
  const previous = stringOf(first.json['id']) ?? ''
  const body = { model: 'claude-sonnet-4-5', previous_response_id: previous, input: 'more' }
  const { status, json } = await post(gateway, '/compact', body)
  t.equal(status, 200, JSON.stringify(json))
  t.match(sentBy(gateway), /heron/)
  const client = await connectSocket(t, gateway)
  const turn = await client.turn(continued(itemOf(json), 'gemini-2.5-flash'))
  t.equal(typeOf(turn.at(-1)), 'response.completed')
})

void t.test('errors are those of Responses', async (t) => {
  const gateway = await startGateway(t)
  t.equal((await post(gateway, '/compact', { model: 'no-such-model', input: 'x' })).status, 404)
  t.equal((await post(gateway, '/compact', { model: 'claude-sonnet-4-5' })).status, 400)
  gateway.emulator.script({ times: 3, fault: { kind: 'status', code: 500 } })
  const failed = await post(gateway, '/compact', { model: 'claude-sonnet-4-5', input: 'x' })
  t.match(failed, { status: 502, json: { error: { kind: 'upstream_failed' } } })
})

onBothStores(t, 'one entry, the limits of a run, and the flag of a stream', async (t, settings) => {
  const more = `dimensions: [{ name: run, from: [header:x-run-id, body:metadata.run] }]
limits: [{ scope: 'dimension:run', requests_total: 1, usd_total: 5 }]`
  const { gateway } = await startAdmin(t, { ...settings, more })
  const large = 'The code word is heron. '.repeat(60_000)
  for (const model of ['gpt-5.4-mini', 'claude-sonnet-4-5', 'gemini-2.5-flash']) {
    const before = (await rowsOf(gateway)).length
    const body = { model, input: 'The code word is heron.', stream: true, metadata: { run: model } }
    const done = await post(gateway, '/compact', body)
    t.match(done, { status: 200, json: { object: 'response.compaction' } }, model)
    const refused = await post(gateway, '/compact', body)
    t.match(refused, { status: 429, json: { error: { kind: 'rate_limited', type: /./, message: model } } })
    const rows = (await rowsOf(gateway)).slice(before)
    t.match(rows, [
      { ingress: 'responses', outcome: 'ok', dimensions: `run=${model}`, stream: false },
      { ingress: 'responses', outcome: 'rate_limited', limit: `dimension:run=${model} requests_total` },
    ])
    t.equal(rows.length, 2)
    t.ok(Number(rows[0]?.costNanoUsd) > 0)
    const whole = await post(gateway, '/compact', {
      model,
      input: large,
      metadata: { run: `${model} large` },
    })
    t.ok([200, 400, 402].includes(whole.status), `${model}: ${whole.status} for 1.4 MB`)
    if (whole.status !== 200) t.match(whole.json, { error: { message: /./, type: /./ } })
  }
})
