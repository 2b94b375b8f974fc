/**
 * Goal: what the gateway returned can be sent back, and upstreams get no empty turns, no repeated call ids
 * and no tool choice without tools.
 * Method: requests against a whole gateway, with an emulated provider.
 */
import t, { type Test } from 'tap'
import { arrayOf, objectOf, type JsonObject, type JsonValue } from '../../../src/base/json.js'
import { startCloud } from '../platforms/capture.js'
import { startGateway, type TestGateway } from '../../helpers/gateway.js'

const MODELS = ['gpt-5.4', 'claude-haiku-4-5', 'gemini-2.5-flash']
const HI = { role: 'user', content: 'Hi' }
const GO = { role: 'user', content: 'Go on' }

async function post(gateway: TestGateway, path: string, body: JsonObject): Promise<JsonObject> {
  const response = await fetch(`${gateway.origin}/v1/${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.secret}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  t.equal(response.status, 200, `${path} ${await response.text()}`)
  return gateway.emulator.ledger.at(-1)?.body ?? {}
}

function listOf(body: JsonObject, key = 'messages'): JsonObject[] {
  return arrayOf(body[key]).map(objectOf)
}

void t.test('an empty turn of the model is accepted, and left out', async (t) => {
  const gateway = await startGateway(t)
  const turns: JsonObject[] = [
    { role: 'assistant', content: null, refusal: null },
    { role: 'assistant' },
    { role: 'assistant', content: null, tool_calls: [] },
  ]
  for (const model of MODELS) {
    for (const turn of turns) {
      const sent = await post(gateway, 'chat/completions', { model, messages: [HI, turn, GO] })
      const roles = listOf(sent, sent['contents'] === undefined ? 'messages' : 'contents').map(
        ({ role }) => role,
      )
      t.notOk(roles.includes('assistant') || roles.includes('model'), `${model} ${JSON.stringify(turn)}`)
    }
  }
  for (const content of [null, [], '', [{ type: 'text', text: '' }]] as JsonValue[]) {
    for (const model of MODELS) {
      const messages = [HI, { role: 'assistant', content }, GO]
      const sent = await post(gateway, 'messages', { model, max_tokens: 9, messages })
      t.notMatch(JSON.stringify(sent), '"assistant"', model)
    }
  }
})

/** The request of a Responses client as a chat upstream gets it. */
async function asChat(t: Test, members: JsonObject): Promise<JsonObject> {
  const { cloud, gateway } = await startCloud(t, 'cc-', 'dialect: openai-chat, api_key: k')
  const response = await fetch(`${gateway.origin}/v1/responses`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.secret}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'cc-x', store: false, ...members }),
  })
  t.equal(response.status, 200, await response.text())
  return objectOf(JSON.parse(cloud.requests.at(-1)?.body.toString() ?? '{}'))
}

void t.test('a turn of reasoning alone is left out for chat upstreams', async (t) => {
  const input = [HI, { type: 'web_search_call', id: 'ws_1', status: 'completed' }, GO]
  const { messages } = await asChat(t, { input })
  t.same(messages, [HI, GO])
})

void t.test('repeated call ids are unique for Anthropic, in each format', async (t) => {
  const gateway = await startGateway(t)
  const call = { id: 'search:0', type: 'function', function: { name: 'f', arguments: null } }
  const turn = { role: 'assistant', content: null, tool_calls: [call] }
  const result = { role: 'tool', tool_call_id: 'search:0', content: 'found' }
  const messages = [HI, turn, result, turn, result]
  const own = [
    HI,
    ...[1, 2].flatMap(() => [
      { role: 'assistant', content: [{ type: 'tool_use', id: 'search:0', name: 'f', input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'search:0', content: 'found' }] },
    ]),
  ]
  const model = 'claude-haiku-4-5'
  for (const sent of [
    await post(gateway, 'chat/completions', { model, messages }),
    await post(gateway, 'messages', { model, max_tokens: 9, messages: own }),
  ]) {
    const [, first, firstResult, second, secondResult] = listOf(sent).map(
      ({ content }) => arrayOf(content).map(objectOf)[0] ?? {},
    )
    t.not(first?.['id'], second?.['id'])
    t.equal(firstResult?.['tool_use_id'], first?.['id'])
    t.equal(secondResult?.['tool_use_id'], second?.['id'])
    t.same(second?.['input'], {})
  }
})

void t.test('a tool choice without tools is not sent', async (t) => {
  const choice = { tools: [], tool_choice: 'auto', parallel_tool_calls: false }
  const sent = await asChat(t, { input: 'Sum up', ...choice })
  t.equal(sent['tool_choice'], undefined)
  t.equal(sent['parallel_tool_calls'], undefined)
})
