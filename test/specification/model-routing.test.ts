/**
 * Goal: only the model's id selects the upstream.
 * Method: ids of every prefix and similar ones, and the requests that the emulator received.
 */
import t from 'tap'
import { startGateway } from '../helpers/gateway.js'
import { ask, body } from './exchange.js'

const TAKEN: readonly [id: string, provider: string][] = [
  ['gpt-4o', 'openai'],
  ['gpt-4o-2024-08-06', 'openai'],
  ['gpt-99-not-yet-known', 'openai'],
  ['o1', 'openai'],
  ['o3', 'openai'],
  ['o1-preview', 'openai'],
  ['o1-2024-12-17', 'openai'],
  ['o3-mini', 'openai'],
  ['o3-mini-2025-01-31', 'openai'],
  ['o4-mini', 'openai'],
  ['o4-mini-2025-04-16', 'openai'],
  ['claude-haiku-4-5', 'anthropic'],
  ['claude-haiku-4-5-20251001', 'anthropic'],
  ['claude-99-opus', 'anthropic'],
  ['gemini-2.5-flash', 'gemini'],
  ['gemini-2.5-flash-preview-09-2025', 'gemini'],
  ['gemini-99', 'gemini'],
]

void t.test('S5: every prefix, dated variants, o1 and o3', async (t) => {
  const gateway = await startGateway(t)
  for (const [model, provider] of TAKEN) {
    for (const stream of [false, true]) {
      const { status, text } = await ask(gateway, body({ model, stream }))
      t.equal(status, 200, `${model}: ${text.slice(0, 120)}`)
      t.match(gateway.emulator.ledger.at(-1), { provider, model })
    }
  }
})

void t.test('S5: any other id is 404 with model_not_found', async (t) => {
  const gateway = await startGateway(t)
  for (const model of [
    'llama-3',
    'gpt',
    'gpt4',
    'GPT-4o',
    ' gpt-4o',
    'openai/gpt-4o',
    'claude',
    'Claude-haiku-4-5',
    'gemini',
    'models/gemini-2.5-flash',
    'o1x',
    'o3x',
    'o4',
    'o2-mini',
    'o1 ',
    '*',
    '..',
    'constructor',
    '__proto__',
  ]) {
    const { status, error } = await ask(gateway, body({ model }))
    t.equal(status, 404, JSON.stringify(model))
    t.match(error, {
      message: /is not available/,
      type: 'invalid_request_error',
      code: 'model_not_found',
      param: 'model',
      kind: 'unknown_model',
    })
  }
  const { status, error } = await ask(gateway, body({ model: 'o3\n' }))
  t.equal(status, 400, 'control characters are malformed')
  t.match(error, { param: 'model', kind: 'malformed_request' })
  t.equal(gateway.emulator.ledger.length, 0)
})

void t.test("S5: an id cannot change the rest of the upstream's path", async (t) => {
  const gateway = await startGateway(t)
  for (const tail of ['/../../admin', '?key=x', '#x', '\r\nx: y', '%2e%2e%2f', ':countTokens?a=', '\\..']) {
    await ask(gateway, body({ model: `gemini-${tail}` }))
    const entry = gateway.emulator.ledger.at(-1)
    if (entry === undefined) continue
    const { path, headers } = entry
    t.notMatch(path, /[?#\\\r\n]|\/\.\.|countTokens$/, JSON.stringify(tail))
    t.match(path, /:generateContent$/, path)
    t.equal(headers['x'], undefined)
  }
})
