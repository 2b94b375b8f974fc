/**
 * Goal: models of unknown price or maximum reply can be used under a budget, and the budget still limits
 * them.
 * Method: a gateway over an emulator, with the snippets of the README in one file; budgets are read from
 * headers and ledger entries.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import { rowsOf } from '../helpers/ledger.js'
import { startGateway, type TestGateway } from '../helpers/gateway.js'

async function local(t: Test, limits: string, options = ''): Promise<TestGateway> {
  const gateway = await startGateway(t, { plan: 'starter', more: limits })
  const text = readFileSync(gateway.configFile, 'utf8')
  const { openai } = gateway.emulator.baseUrls
  const upstream = `upstreams:\n  local: { dialect: openai-chat, base_url: ${openai}, api_key: emulated${options} }`
  const route = 'routes:\n  - { prefix: llama, upstream: local }'
  writeFileSync(gateway.configFile, text.replace('upstreams:', upstream).replace('routes:', route))
  gateway.reload()
  return gateway
}

interface Reply {
  readonly status: number
  readonly error?: { readonly message: string; readonly kind: string }
}

async function ask(gateway: TestGateway, more: object = {}): Promise<Reply> {
  const messages = [{ role: 'user', content: 'Hi' }]
  const res = await gateway.chat({ model: 'llama-3', messages, ...more })
  return { status: res.status, ...((await res.json()) as object) }
}

/** The limits of the README. */
const LIMITS = `
limits:
  - { scope: key, requests_per_minute: 600, tokens_per_minute: 1000000, concurrent: 50 }
  - { scope: account, plan: starter, usd_per_month: 20 }
`

void t.test('the limits of the README admit a model without a price or a length', async (t) => {
  const gateway = await local(t, LIMITS)
  for (let index = 0; index < 60; index += 1) t.match(await ask(gateway), { status: 200 })
  const sent = gateway.emulator.ledger.at(-1)?.body ?? {}
  t.notOk('max_tokens' in sent || 'max_completion_tokens' in sent, 'the request is not shortened')
  const row = (await rowsOf(gateway)).at(-1)
  t.equal(row?.costNanoUsd, null, 'the entry has no assumed cost')
  const warnings = gateway.lines.filter(({ level }) => level === 'warn' || level === 40)
  t.match(warnings, [{ model: 'llama', upstream: 'local', reason: 'unknown_price is assume' }])
})

void t.test('an assumed price is reserved and charged, so that the budget holds', async (t) => {
  const limits = 'limits: [{ scope: key, prefix: llama, usd_per_day: 0.01 }]\n'
  const gateway = await local(t, `${limits}limiting: { assumed_price: { input: 10, output: 50 } }\n`)
  // 0.01 dollars at 50 dollars per million tokens are 200 tokens, minus the upper bound of the prompt.
  const refused = await ask(gateway, { max_tokens: 500 })
  t.match(refused, { status: 402, error: { kind: 'budget_exceeded' } })
  t.match(refused.error?.message, /limiting\.assumed_price, since the price .* upstreams\.NAME\.prices/)
  let answered = 0
  for (let index = 0; index < 100; index += 1) {
    const { status } = await ask(gateway, { max_tokens: 40 })
    if (status === 200) answered += 1
    else t.equal(status, 402)
  }
  const rows = (await rowsOf(gateway)).filter(({ outcome }) => outcome === 'ok')
  const used = rows.map(({ usage: { input = 0, output = 0 } }) => input * 10_000 + output * 50_000)
  const spent = used.reduce((sum, each) => sum + each, 0)
  t.ok(answered > 3, `${answered} were served: unused reservations are released`)
  t.ok(answered < 100 && spent <= 10_000_000, `${spent} nano-dollars of 10,000,000 were spent`)
})

void t.test('at price 0 no maximum length is needed, and a spent budget refuses nothing', async (t) => {
  const limits = 'limits: [{ scope: key, prefix: llama, usd_per_day: 0 }]\n'
  const strict = 'limiting: { unknown_price: refuse, unknown_length: refuse }\n'
  const free = ', models: [{ id: llama-3, price: { input: 0, output: 0 } }]'
  for (const prices of [free, ', prices: { "*": { input: 0, output: 0 } }']) {
    const gateway = await local(t, limits + strict, prices)
    for (let index = 0; index < 3; index += 1) t.match(await ask(gateway), { status: 200 })
    t.equal((await rowsOf(gateway)).at(-1)?.costNanoUsd, 0)
  }
})

void t.test(
  'a reply of unknown length: reserved as configured, or refused with the model named',
  async (t) => {
    const limits = 'limits: [{ scope: key, prefix: llama, usd_per_day: 1 }]\n'
    const priced = ', prices: { llama-3: { input: 1, output: 1 } }'
    const strict = await local(t, `${limits}limiting: { unknown_length: refuse }\n`, priced)
    const refused = await ask(strict)
    t.match(refused, { status: 400, error: { kind: 'malformed_request' } })
    t.match(refused.error?.message, /max_completion_tokens .* limiting\.unknown_length/)
    t.match(await ask(strict, { max_tokens: 10 }), { status: 200 })
    const length = ', models: [{ id: llama-3, max_output_tokens: 4096, price: { input: 1, output: 1 } }]'
    const known = await local(t, `${limits}limiting: { unknown_length: refuse }\n`, length)
    t.match(await ask(known), { status: 200 })
    // Groq's own limit of the model, which the package ships.
    const limited = 'limits: [{ scope: key, prefix: llama, usd_per_day: 0.02 }]\n'
    const host = await local(t, `${limited}limiting: { unknown_length: refuse }\n`, ', preset: groq')
    const ofHost = { model: 'llama-3.1-8b-instant' }
    t.match(await ask(host, ofHost), { status: 200 })
    const sent = host.emulator.ledger.at(-1)?.body ?? {}
    t.equal(
      sent['max_completion_tokens'] ?? sent['max_tokens'],
      undefined,
      '131,072 tokens fit into the budget',
    )
    t.match(await ask(host), { status: 400 }, 'a model that is not listed')
    const models = await fetch(`${host.baseUrl}/models/llama-3.1-8b-instant`, {
      headers: { authorization: `Bearer ${host.secret}` },
    })
    t.match(await models.json(), { context_length: 131_072, max_output_tokens: 131_072 })
  },
)

void t.test(
  'configured models are in the model list, with any family, if a route matches them',
  async (t) => {
    const models = ', models: [llama-3, { id: llama-4, family: meta, context_window: 8192 }, no-route-3]'
    const gateway = await local(t, LIMITS, models)
    const res = await fetch(`${gateway.baseUrl}/models`, {
      headers: { authorization: `Bearer ${gateway.secret}` },
    })
    const { data } = (await res.json()) as { data: { id: string; owned_by: string }[] }
    const listed = data.filter(({ id }) => /^(llama|no-route)/.test(id))
    t.match(listed, [
      { id: 'llama-3', owned_by: 'local' },
      { id: 'llama-4', owned_by: 'meta' },
    ])
  },
)
