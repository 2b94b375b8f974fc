/**
 * Goal: a comparison applies the conditions, weights, limits and prices of both configurations.
 * Method: two configurations in memory and hand-made request shapes; no process is started.
 */
import t from 'tap'
import { compare } from '../../../src/cli/plan/compare-configs.js'
import { ComparedConfig } from '../../../src/cli/plan/targets-and-cost.js'
import { loadConfigText } from '../../../src/config/load-config.js'
import type { RequestHead, RequestShape } from '../../../src/gateway/report/recent-requests.js'

const MODELS = `
as_of: 2026-11-20
models:
  - { id: seeing, family: openai, vision: true, context_window: 100000, price: { input: 1, output: 2 } }
  - { id: blind, family: openai, vision: false, tools: false, context_window: 1000, price: { input: 10, output: 20 } }
  - { id: free, family: openai }
  - { id: claude-sonnet-9, family: anthropic, vision: true, price: { input: 1, output: 1, service_tiers: { geographic_profile: 1.1 } } }
`

function sideOf(routes: string): ComparedConfig {
  const loaded = loadConfigText(
    {
      path: '/nowhere/gateway.yaml',
      text: `
store: sqlite:./x.db
models: models.yaml
upstreams:
  a: { dialect: openai-chat, base_url: https://a.example.com/v1, api_key: x }
  b: { dialect: anthropic, base_url: https://b.example.com/v1, api_key: x }
  bedrock: { platform: bedrock, dialect: anthropic, region: eu-west-1, auth: { aws: default } }
  converse: { platform: bedrock, dialect: converse, region: eu-west-1, auth: { aws: default } }
  vertex: { platform: vertex, dialect: anthropic, project: p, location: global, auth: { google: default } }
routes:
${routes}`,
      files: { '/nowhere/models.yaml': MODELS },
    },
    {},
  )
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.errors))
  return new ComparedConfig(loaded)
}

const SKETCH: RequestShape = {
  turns: [['user', 'text']],
  ends: ['user', 'user'],
  tools: [],
  settings: {},
  rest: {},
  native: [],
}

function headOf(changes: Partial<RequestHead> = {}): RequestHead {
  return {
    atMs: 0,
    keyId: 'key_1',
    accountId: 'acc_1',
    labels: {},
    format: 'chat',
    dialect: 'openai-chat',
    wire: 'openai-chat',
    model: 'seeing',
    stream: false,
    bodyBytes: 100,
    promptTokens: 20,
    usage: { input: 1_000, output: 1_000 },
    tier: null,
    outcome: 'ok',
    sketch: SKETCH,
    ...changes,
  }
}

const before = sideOf(
  '  - { prefix: s, upstream: a }\n  - { prefix: b, upstream: a }\n  - { prefix: f, upstream: a }',
)

void t.test('a key loses a model when the new route requires a label that the key lacks', (t) => {
  const after = sideOf('  - { prefix: s, upstream: a, when: { labels: { team: research } } }')
  const heads = [headOf(), headOf({ keyId: 'key_2', labels: { team: 'research' } })]
  const { keys, moves, unmoved } = compare(heads, before, after)
  t.same(keys, [{ key_id: 'key_1', account_id: 'acc_1', model: 'seeing', requests: 1 }])
  t.match(moves, [{ model: 'seeing', to: null, requests: 1 }])
  t.equal(unmoved, 1)
  t.end()
})

void t.test('a request is refused if the new model does not support one of its fields', (t) => {
  const after = sideOf('  - { prefix: s, targets: [{ upstream: a, model: blind }] }')
  const image = { ...SKETCH, turns: [['user', 'text', 'image base64 image/png']] }
  const tools = { ...SKETCH, tools: ['function parameters'] }
  const heads = [headOf({ sketch: image }), headOf({ sketch: tools }), headOf({ promptTokens: 5_000 })]
  const { refused } = compare(heads, before, after)
  t.same(refused.map(({ field }) => field).sort(), ['images', 'prompt', 'tools'])
  const { refused: known } = compare(
    [headOf({ model: 'blind', sketch: image })],
    before,
    sideOf('  - { prefix: b, targets: [{ upstream: a }, { upstream: b }] }'),
  )
  t.same(known, [], 'what the present target does not take either is nothing new')
  t.end()
})

void t.test('expected costs follow the weights; unknown prices are counted apart', (t) => {
  const after = sideOf(
    '  - { prefix: s, targets: [{ upstream: a, weight: 1 }, { upstream: a, model: blind, weight: 1 }] }\n  - { prefix: f, upstream: a }',
  )
  const heads = [headOf(), headOf({ model: 'free' }), headOf({ usage: {} })]
  const { cost } = compare(heads, before, after)
  // 1,000 input and 1,000 output tokens: 0.003 USD on one upstream, 0.03 USD on the other.
  t.equal(cost.before_usd, 0.003)
  t.equal(cost.after_usd, 0.0165)
  t.equal(cost.difference_usd, 0.0135)
  t.match(cost, { requests: 1, without_price: 1, without_usage: 1 })
  t.end()
})

void t.test('only the changed share of the weights counts as moved', (t) => {
  const half = '  - { prefix: s, targets: [{ upstream: a, weight: 1 }, { upstream: b, weight: 1 }] }'
  const mostly = '  - { prefix: s, targets: [{ upstream: a, weight: 1 }, { upstream: b, weight: 3 }] }'
  const { moves } = compare([headOf(), headOf()], sideOf(half), sideOf(mostly))
  t.match(moves, [{ from: { upstream: 'a' }, to: { upstream: 'b' }, requests: 0.5 }])
  t.equal(moves.length, 1)
  t.end()
})

void t.test('requests that were never routed are not counted', (t) => {
  const heads = [headOf({ outcome: 'forbidden' }), headOf({ model: 'x', outcome: 'unknown_model' })]
  t.equal(compare(heads, before, before).requests, 0)
  t.end()
})

void t.test('embeddings cannot move to an upstream that does not support them', (t) => {
  const embedding = headOf({ format: 'embeddings', wire: 'openai-embeddings', model: 'free' })
  const { refused } = compare([embedding], before, sideOf('  - { prefix: f, upstream: b }'))
  t.match(refused, [{ model: 'free', dialect: null, requests: 1 }])
  t.end()
})

void t.test('a move to a cloud has the price of its ids, and what it cannot read', (t) => {
  const vendor = sideOf('  - { prefix: claude-, upstream: b }')
  const cloud = (upstream: string, model: string): ComparedConfig =>
    sideOf(`  - { prefix: claude-, targets: [{ upstream: ${upstream}, model: '${model}' }] }`)
  const image = { ...SKETCH, turns: [['user', 'text', 'image url']] }
  const claude = { format: 'messages', wire: 'anthropic', dialect: 'anthropic' } as const
  const heads = [
    headOf({ ...claude, model: 'claude-sonnet-9' }),
    headOf({ ...claude, model: 'claude-sonnet-9', sketch: image }),
  ]
  for (const [upstream, model, usd, refusals] of [
    ['bedrock', 'eu.anthropic.claude-sonnet-9-v1:0', 0.0044, 1],
    ['bedrock', 'global.anthropic.claude-sonnet-9-v1:0', 0.004, 1],
    ['converse', 'anthropic.claude-sonnet-9-v1:0', 0.004, 1],
    ['vertex', 'claude-sonnet-9@20260901', 0.004, 0],
  ] as const) {
    const { moves, cost, refused } = compare(heads, vendor, cloud(upstream, model))
    t.match(moves, [{ from: { upstream: 'b' }, to: { upstream, model }, requests: 2 }], model)
    t.equal(cost.after_usd, usd, model)
    t.equal(refused.length, refusals, model)
  }
  t.end()
})
