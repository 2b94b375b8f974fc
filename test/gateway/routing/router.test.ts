/**
 * Goal: exact model first, then the longest prefix, else nothing; the default routes are those of the
 * specification (S5); the number of routes does not slow a lookup.
 * Method: routers of loaded configurations; 10,000 routes compared with a linear search.
 */
import t from 'tap'
import { loadConfig } from '../../../src/config/load-config.js'
import { PLAIN_REQUEST } from '../../../src/gateway/routing/match-route-conditions.js'
import { createRouter, type ModelRoute, type Router } from '../../../src/gateway/routing/router.js'
import { loadText } from '../../config/sample.js'

function routerOf(routes: string): Router {
  const loaded = loadText(`
upstreams:
  a: { dialect: openai, base_url: https://a.example/v1 }
  b: { dialect: anthropic, base_url: https://b.example/v1 }
routes:
${routes}`)
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.errors))
  return createRouter(loaded.config)
}

function plain(router: Router, model: string): ModelRoute | null {
  return router.find(model, PLAIN_REQUEST)
}

void t.test('exact wins over prefix, long over short, in any order', (t) => {
  const router = routerOf(`
  - { prefix: gpt-, upstream: a }
  - { prefix: gpt-5-mini-, upstream: b }
  - { prefix: gpt-5, upstream: b }
  - { model: gpt-5-mini-x, upstream: a }
`)
  const label = (model: string) => plain(router, model)?.label ?? null
  t.equal(label('gpt-4'), 'gpt-')
  t.equal(label('gpt-5'), 'gpt-5')
  t.equal(label('gpt-5-mini-y'), 'gpt-5-mini-')
  t.equal(label('gpt-5-mini-x'), 'gpt-5-mini-x')
  t.equal(label('gpt-'), 'gpt-')
  t.equal(label('gpt'), null)
  t.equal(label(''), null)
  t.equal(label('GPT-5'), null)
  t.equal(label('__proto__'), null)
  t.end()
})

void t.test('the route for every model comes last', (t) => {
  const router = routerOf(`
  - { model: '*', upstream: b }
  - { prefix: gpt-, upstream: a }
`)
  t.equal(plain(router, 'gpt-5')?.label, 'gpt-')
  t.equal(plain(router, 'llama')?.label, '*')
  t.equal(router.all('gpt-5').length, 2)
  t.end()
})

void t.test('a target may request another model from its upstream', (t) => {
  const router = routerOf(`
  - { prefix: fast-, targets: [{ upstream: b, model: claude-haiku-5-5 }] }
  - { prefix: gpt-, targets: [{ upstream: a }] }
`)
  const renamed = plain(router, 'fast-1')?.targets[0]
  t.equal(renamed?.model, 'claude-haiku-5-5')
  t.equal(renamed?.upstream.name, 'b')
  t.equal(plain(router, 'gpt-5')?.targets[0]?.model, null, 'the model of the client')
  t.end()
})

void t.test('S5: the default routes match these ids and no others', (t) => {
  const loaded = loadConfig('config/gateway.yaml', {})
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.errors))
  const router = createRouter(loaded.config)
  const upstream = (model: string) => plain(router, model)?.targets[0]?.upstream.name ?? null
  for (const prefix of ['gpt-', 'o1-', 'o3-', 'o4-']) {
    t.equal(upstream(`${prefix}x-2026-01-01`), 'openai', prefix)
  }
  t.equal(upstream('o1'), 'openai')
  t.equal(upstream('o3'), 'openai')
  t.equal(upstream('claude-opus-5'), 'anthropic')
  t.equal(upstream('gemini-3.5-flash'), 'google')
  const refused = ['o4', 'o2-mini', 'o5', 'o1x', 'chat-latest', 'gpt', 'gpt4', 'Claude-opus-5']
  for (const model of [...refused, ' gpt-5', 'xgpt-5', 'models/gemini-3', 'claude', '']) {
    t.equal(upstream(model), null, model)
  }
  t.end()
})

void t.test('10,000 routes: the same results as a linear search, within a millisecond each', (t) => {
  const exact = Array.from({ length: 5_000 }, (_, index) => `m-${index}`)
  const prefixes = Array.from({ length: 5_000 }, (_, index) => `p-${index.toString(2)}-`)
  const router = routerOf(
    [
      ...exact.map((model) => `  - { model: ${model}, upstream: a }`),
      ...prefixes.map((prefix) => `  - { prefix: ${prefix}, upstream: b }`),
    ].join('\n'),
  )
  const ids = [...exact, ...prefixes.map((prefix) => `${prefix}x`), 'm-x', 'p-2-', 'p-1', 'q']
  const before = process.hrtime.bigint()
  const answers = ids.map((model) => plain(router, model)?.label ?? null)
  const spentMs = Number(process.hrtime.bigint() - before) / 1e6
  t.ok(spentMs < ids.length, `${spentMs} ms`)
  const isExact = new Set(exact)
  ids.forEach((model, index) => {
    if (index % 97 !== 0 && index < 10_000) return
    const fitting = prefixes.filter((prefix) => model.startsWith(prefix))
    fitting.sort((one, other) => other.length - one.length)
    t.equal(answers[index], isExact.has(model) ? model : (fitting[0] ?? null), model)
  })
  t.end()
})
