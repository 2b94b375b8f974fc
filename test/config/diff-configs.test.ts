/**
 * Goal: differences name routes and upstreams, so that a changed position alone is no difference.
 * Method: pairs of configurations based on the sample, and the differences between them.
 */
import t from 'tap'
import { differencesOf } from '../../src/config/generations/diff-configs.js'
import { shownConfig } from '../../src/config/masked-config.js'
import { protectSecrets } from '../../src/hide-secrets.js'
import { GOOD, loadText } from './sample.js'

function pathsBetween(former: string, next: string): string[] {
  const [before, after] = [former, next].map((text) => {
    const loaded = loadText(text)
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.errors))
    return shownConfig(loaded.config)
  })
  if (before === undefined || after === undefined) throw new Error('two texts')
  return differencesOf(before, after).map(({ path }) => path)
}

const HEAD = GOOD.slice(0, GOOD.indexOf('routes:'))
const UPSTREAMS = `${HEAD}  other: { dialect: openai, base_url: https://b.example/v1, api_key: k-1 }\n`

function routes(...lines: string[]): string {
  return `${UPSTREAMS}routes:\n${lines.map((line) => `  - ${line}\n`).join('')}`
}

const A = '{ prefix: gpt-, upstream: openai }'
const B = '{ prefix: o1-, upstream: openai }'

void t.test('a route inserted before the others is the only difference', (t) => {
  t.same(pathsBetween(routes(A), routes(B, A)), ['routes[o1-*]'])
  t.same(pathsBetween(routes(B, A), routes(A)), ['routes[o1-*]'])
  t.end()
})

void t.test('a secret in the name of an entry is hidden in the path', (t) => {
  const secret = 'canary-in-a-name-5b1e'
  protectSecrets([secret])
  const named = `{ model: ${secret}, upstream: openai }`
  t.same(pathsBetween(routes(A), routes(A, named)), ['routes[***]'])
  t.end()
})

void t.test('routes in another order differ by their order', (t) => {
  t.same(pathsBetween(routes(A, B), routes(B, A)), ['routes (order)'])
  t.end()
})

void t.test('a changed weight is named by its route and upstream', (t) => {
  const targets = (weight: number): string =>
    `{ prefix: gpt-, targets: [{ upstream: openai, weight: ${weight} }, { upstream: other, model: m, weight: 1 }] }`
  t.same(pathsBetween(routes(targets(1)), routes(targets(9))), ['routes[gpt-*].targets[openai].weight'])
  t.end()
})

void t.test('fallbacks in another order are a difference', (t) => {
  const route = (...names: string[]): string =>
    `{ prefix: gpt-, upstream: openai, fallback: [${names.map((model) => `{ upstream: other, model: ${model} }`).join(', ')}] }`
  t.same(pathsBetween(routes(route('a', 'b')), routes(route('b', 'a'))), ['routes[gpt-*].fallback (order)'])
  t.end()
})

void t.test('routes with the same models are identified by their conditions', (t) => {
  const when = '{ prefix: gpt-, when: { images: true }, upstream: other }'
  const [path] = pathsBetween(routes(A), routes(when, A))
  t.equal(path, 'routes[gpt-* when {"images":true}]')
  t.end()
})

void t.test('a removed upstream is one difference', (t) => {
  t.same(pathsBetween(`${UPSTREAMS}routes:\n  - ${A}\n`, GOOD), ['upstreams.other'])
  t.end()
})

void t.test('a changed secret is a difference, and its value is hidden', (t) => {
  const secret = 'sk-canary-0123456789'
  const [former, next] = ['one', 'two'].map((each) => {
    const loaded = loadText(GOOD, { KEY: `${secret}-${each}` })
    if (!loaded.ok) throw new Error('good')
    return shownConfig(loaded.config)
  })
  if (former === undefined || next === undefined) throw new Error('two')
  const changes = differencesOf(former, next)
  t.match(changes, [{ path: 'upstreams.openai.api_keys' }])
  t.notMatch(JSON.stringify(changes), 'sk-canary')
  t.end()
})

void t.test('very long lists are compared in linear time', (t) => {
  const list = Array.from({ length: 50_000 }, () => ({ prefix: 'same' }))
  const began = performance.now()
  t.same(differencesOf({ routes: list }, { routes: [...list] }), [])
  t.ok(performance.now() - began < 10_000, 'a quadratic comparison takes minutes')
  t.end()
})
