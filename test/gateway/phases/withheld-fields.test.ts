/**
 * Goal: the upstream gets exactly the request that was checked and reserved: the same model and provider, no
 * longer reply, and no more choices.
 * Method: a gateway with an emulator that keeps the bodies of its requests.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import type { JsonObject } from '../../../src/base/json.js'
import { startGateway, type TestGateway } from '../../helpers/gateway.js'

const MESSAGES = [{ role: 'user', content: 'Hi' }]
/** A budget of a thousandth of the price of 50,000 output tokens. */
const BUDGET = `
limits:
  - { scope: account, model: gpt-4o, usd_per_day: 0.01 }
`

async function aggregator(t: Test, more = ''): Promise<TestGateway> {
  const gateway = await startGateway(t, { more })
  const text = readFileSync(gateway.configFile, 'utf8')
  const routes = 'routes:\n  - { prefix: llama-, upstream: openai }\n'
  writeFileSync(gateway.configFile, text.replace('routes:\n', routes))
  gateway.reload()
  return gateway
}

/** The upstream's body and the losses of a request with these fields besides model and messages. */
async function sent(
  gateway: TestGateway,
  model: string,
  fields: object,
): Promise<{ body: JsonObject; lost: string[] }> {
  const res = await gateway.chat({ model, messages: MESSAGES, ...fields })
  const text = await res.text()
  const entry = gateway.emulator.ledger.at(-1)
  if (entry?.body === undefined) throw new Error(`nothing reached the upstream: ${text}`)
  return { body: entry.body, lost: (res.headers.get('x-sluice-lost') ?? '').split(', ') }
}

const ROUTING: Readonly<Record<string, unknown>> = {
  models: ['gpt-5.4-pro', 'llama-b'],
  plugins: [{ id: 'web' }],
  route: 'fallback',
  transforms: ['middle-out'],
  preset: 'mine',
  fallback_models: ['gpt-5.4-pro'],
  context_window_fallbacks: [{ a: ['b'] }],
  custom_llm_provider: 'bedrock',
  providerOptions: { gateway: { models: ['gpt-5.4-pro'] } },
  MODEL: 'gpt-5.4-pro',
  Max_Tokens: 50_000,
  meſſages: [],
}

void t.test('fields that choose another model or provider do not reach an upstream', async (t) => {
  const gateway = await aggregator(t)
  for (const model of ['llama-a', 'gpt-4o', 'claude-sonnet-4-5', 'gemini-2.5-flash']) {
    const { body, lost } = await sent(gateway, model, ROUTING)
    for (const field of Object.keys(ROUTING)) {
      t.notOk(Object.hasOwn(body, field), `${model}: ${field} is not sent`)
      t.ok(lost.includes(/^[a-zA-Z_]+$/.test(field) ? field : 'other'), `${model}: ${field} is reported`)
    }
  }
})

void t.test('a preference that only narrows the choice of a provider is kept', async (t) => {
  const gateway = await aggregator(t)
  const provider = { order: ['dear'], only: ['dear'], data_collection: 'deny', zdr: true }
  const { body, lost } = await sent(gateway, 'llama-a', { provider })
  t.same(body['provider'], { data_collection: 'deny', zdr: true })
  t.same(lost, ['provider.order', 'provider.only'])
  const none = await sent(gateway, 'llama-a', { provider: { sort: 'price' } })
  t.notOk(Object.hasOwn(none.body, 'provider'))
  const bad = await sent(gateway, 'llama-a', { provider: 'dear' })
  t.notOk(Object.hasOwn(bad.body, 'provider'))
  const kept = await sent(gateway, 'llama-a', { provider: { zdr: true } })
  t.same([kept.body['provider'], kept.lost], [{ zdr: true }, ['']])
})

void t.test('extra_body cannot contain members that the body must not have', async (t) => {
  const gateway = await aggregator(t)
  const google = { thinking_config: { include_thoughts: true } }
  const extra_body = {
    google,
    model: 'x',
    max_tokens: 5,
    models: ['y'],
    Route: 'z',
    extra_body: {},
  }
  const { body, lost } = await sent(gateway, 'llama-a', { extra_body })
  t.same(body['extra_body'], { google })
  t.equal(lost.length, 5)
})

void t.test('the upstream sees only the admitted maximum', async (t) => {
  const gateway = await aggregator(t)
  const both = { max_completion_tokens: 20, max_tokens: 50_000 }
  for (const fields of [both, { max_tokens: 50_000, max_completion_tokens: 20 }]) {
    const openai = await sent(gateway, 'gpt-4o', fields)
    t.match(openai.body, { max_completion_tokens: 20, max_tokens: undefined })
    const reasoning = await sent(gateway, 'o3', fields)
    t.match(reasoning.body, { max_completion_tokens: 20, max_tokens: undefined })
    const other = await sent(gateway, 'llama-a', fields)
    t.match(other.body, { max_completion_tokens: 20, max_tokens: 20 })
    const claude = await sent(gateway, 'claude-haiku-4-5', fields)
    t.equal(claude.body['max_tokens'], 20)
    const responses = await sent(gateway, 'gpt-4.1', fields)
    t.equal(responses.body['max_output_tokens'], 20)
  }
  const aliases = {
    best_of: 9,
    max_new_tokens: 9e4,
    max_output_tokens: 9e4,
    num_return_sequences: 9,
  }
  const { body } = await sent(gateway, 'llama-a', { ...aliases, max_tokens: 20 })
  t.same(Object.keys(body).sort(), ['max_tokens', 'messages', 'model'])
})

void t.test('a request that a budget refuses cannot be split into two fields', async (t) => {
  const gateway = await aggregator(t, BUDGET)
  const ask = async (fields: object): Promise<number> =>
    (await gateway.chat({ model: 'gpt-4o', messages: MESSAGES, ...fields })).status
  t.equal(await ask({ max_tokens: 50_000 }), 402)
  t.equal(await ask({ max_completion_tokens: 20, thinking: { budget_tokens: 50_000 } }), 402)
  t.equal(await ask({ max_completion_tokens: 20, reasoning: { max_tokens: 50_000 } }), 402)
  t.equal(await ask({ max_completion_tokens: 20, thinking_budget: 50_000 }), 402)
  t.equal(gateway.emulator.ledger.length, 0)
  t.equal(await ask({ max_completion_tokens: 20, max_tokens: 50_000 }), 200)
  t.equal(gateway.emulator.ledger.at(-1)?.body?.['max_tokens'], undefined)
})
