/**
 * Goal: the tokens of a prompt are counted by the upstream that would serve it, or estimated and marked as
 * such.
 * Method: Anthropic's own client and plain requests against a whole gateway, with emulated providers.
 */
import Anthropic from '@anthropic-ai/sdk'
import t from 'tap'
import { objectOf } from '../../../src/base/json.js'
import { startGateway, type TestGateway } from '../../helpers/gateway.js'
import { ROWS } from '../../conformance/upstream-cases.js'
import { failing, thrownBy } from '../../conformance/client-scenarios.js'

const messages: Anthropic.MessageParam[] = [{ role: 'user', content: 'Count these words, please' }]
const tools = [{ name: 'get_time', input_schema: { type: 'object' as const, properties: {} } }]

function clientOf(gateway: TestGateway): Anthropic {
  return new Anthropic({ apiKey: gateway.secret, baseURL: gateway.origin, maxRetries: 0 })
}

void t.test('each dialect of an upstream counts exactly', async (t) => {
  const gateway = await startGateway(t)
  const client = clientOf(gateway)
  for (const { dialect, model } of ROWS) {
    const ask = { model, messages, tools, system: 'Be brief.' }
    const { data, response } = await client.messages.countTokens(ask).withResponse()
    t.equal(response.headers.get('x-sluice-estimated'), null, dialect)
    const { path } = gateway.emulator.ledger.at(-1) ?? {}
    t.match(path, /count_tokens|countTokens|input_tokens/, dialect)
    const { usage } = await client.messages.create({ ...ask, max_tokens: 100 })
    // Chat requests to OpenAI's models are counted in the Responses format, which may differ by a few tokens.
    const tolerance = dialect === 'openai-chat' ? usage.input_tokens : 0
    t.ok(Math.abs(data.input_tokens - usage.input_tokens) <= tolerance, `${dialect}: as in the reply`)
  }
})

void t.test('the bytes of a request for an Anthropic upstream pass unchanged', async (t) => {
  const gateway = await startGateway(t)
  const body = '{"model":"claude-haiku-4-5",  "messages":[{"role":"user","content":"\\u0048i"}]}'
  const response = await post(gateway, body)
  t.equal(response.status, 200)
  t.equal(gateway.emulator.ledger.at(-1)?.bodyBytes, body.length)
})

void t.test('an upstream without such an endpoint has its tokens estimated', async (t) => {
  const gateway = await startGateway(t)
  const body = JSON.stringify({ model: 'gpt-4.1', messages })
  for (const code of [404, 500, 429]) {
    const response = await failing(gateway.emulator, { kind: 'status', code }, () => post(gateway, body))
    t.equal(response.status, 200, `after ${code}`)
    t.equal(response.headers.get('x-sluice-estimated'), 'input_tokens')
    const { input_tokens } = objectOf(await response.json())
    t.ok(typeof input_tokens === 'number' && input_tokens > 5 && input_tokens < 50)
  }
})

void t.test('the client gets the error of Anthropic for a request that passes', async (t) => {
  const gateway = await startGateway(t)
  const body = JSON.stringify({ model: 'claude-haiku-4-5', messages, invented: 1 })
  const response = await post(gateway, body)
  t.equal(response.status, 400)
  t.match(await response.json(), { type: 'error', error: { type: 'invalid_request_error' } })
})

void t.test('a count costs nothing, needs a key, and counts for the limit of requests', async (t) => {
  const gateway = await startGateway(t, {
    more: 'limits: [ { scope: key, requests_per_minute: 3, tokens_per_minute: 10, usd_per_day: 0.000001 } ]',
  })
  const body = JSON.stringify({ model: 'claude-haiku-4-5', messages })
  const unknown = await post(gateway, body, 'sk_wrong')
  t.equal(unknown.status, 401)
  const statuses: number[] = []
  for (let turn = 0; turn < 4; turn += 1) statuses.push((await post(gateway, body)).status)
  t.same(statuses, [200, 200, 200, 429])
  const lines = gateway.lines.filter(({ path }) => path === '/v1/messages/count_tokens')
  t.equal(lines.length, 5, 'each is logged')
  t.ok(lines.every(({ output_tokens }) => output_tokens === undefined))
})

void t.test(
  'message batches need files in the configuration, and the error has the format of Anthropic',
  async (t) => {
    const gateway = await startGateway(t)
    const error = await thrownBy(() =>
      clientOf(gateway).messages.batches.create({
        requests: [{ custom_id: 'one', params: { model: 'claude-haiku-4-5', max_tokens: 1, messages } }],
      }),
    )
    t.ok(error instanceof Anthropic.BadRequestError)
    t.match(error, { error: { type: 'error', error: { message: /files\.to/ } } })
  },
)

void t.test('clients of Responses count with each dialect of an upstream', async (t) => {
  const gateway = await startGateway(t)
  const tool = { type: 'function', name: 'get_time', parameters: { type: 'object', properties: {} } }
  for (const { dialect, model } of ROWS) {
    const ask = { model, input: 'Count these words, please', instructions: 'Be brief.', tools: [tool] }
    const counted = await responses(gateway, '/v1/responses/input_tokens', ask)
    t.equal(counted.status, 200, dialect)
    t.equal(counted.headers.get('x-sluice-estimated'), null, dialect)
    const { path, bodyBytes } = gateway.emulator.ledger.at(-1) ?? {}
    t.match(path, /count_tokens|countTokens|input_tokens/, dialect)
    const { object, input_tokens: tokens } = objectOf(await counted.json())
    t.equal(object, 'response.input_tokens')
    t.ok(typeof tokens === 'number' && tokens > 5, dialect)
    if (dialect === 'openai-responses') t.equal(bodyBytes, JSON.stringify(ask).length, 'the same bytes')
  }
  const wrong = await responses(gateway, '/v1/responses/input_tokens', {
    model: 'claude-haiku-4-5',
    input: 1,
  })
  t.equal(wrong.status, 400)
  t.equal((await fetch(`${gateway.origin}/v1/responses/input_tokens`, { method: 'PUT' })).status, 405)
})

void t.test('a count continues a stored response', async (t) => {
  const gateway = await startGateway(t)
  const model = 'claude-haiku-4-5'
  const first = await responses(gateway, '/v1/responses', { model, input: 'a '.repeat(500), store: true })
  const { id } = objectOf(await first.json())
  t.match(id, /^resp_/)
  const next = { model, previous_response_id: typeof id === 'string' ? id : '', input: 'And?' }
  const counted = objectOf(await (await responses(gateway, '/v1/responses/input_tokens', next)).json())
  t.ok(Number(counted['input_tokens']) > 200, 'with its conversation')
})

void t.test('responses are not cancelled, and the refusal has the reason', async (t) => {
  const gateway = await startGateway(t)
  const refused = await responses(gateway, '/v1/responses/resp_1/cancel', { model: 'gpt-4.1' })
  t.equal(refused.status, 404)
  t.match(await refused.json(), { error: { kind: 'unknown_endpoint', message: /in the background/ } })
})

function responses(gateway: TestGateway, path: string, body: object): Promise<Response> {
  return fetch(`${gateway.origin}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.secret}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
}

function post(gateway: TestGateway, body: string, key = gateway.secret): Promise<Response> {
  return fetch(`${gateway.origin}/v1/messages/count_tokens`, {
    method: 'POST',
    headers: { 'x-api-key': key, 'content-type': 'application/json' },
    body,
  })
}
