/**
 * Goal: `when` routes a request by key labels, images, tools and prompt size; of routes with the same matcher
 * those with `when` come first in file order, then the one without, then shorter prefixes.
 * Method: routers of loaded configurations.
 */
import t from 'tap'
import { matches, traitsOf, whenText } from '../../../src/gateway/routing/match-route-conditions.js'
import { requestOf, routerOf, message, traits } from './fixtures.js'

const router = routerOf(`
  - { prefix: gpt-, upstream: a }
  - { prefix: gpt-, upstream: b, when: { tools: true } }
  - { prefix: gpt-, upstream: c, when: { min_prompt_tokens: 100 } }
  - { prefix: gpt-5-, upstream: d, when: { labels: { team: research, area: eu } } }
  - { model: gpt-5-x, upstream: c, when: { images: true } }
`)

function upstream(model: string, changed: Parameters<typeof traits>[0] = {}): string | undefined {
  return router.find(model, traits(changed))?.targets[0]?.upstream.name
}

void t.test('routes with conditions come first, in file order, then the one without', (t) => {
  t.equal(upstream('gpt-4'), 'a')
  t.equal(upstream('gpt-4', { hasTools: () => true }), 'b')
  t.equal(upstream('gpt-4', { promptTokens: () => 100 }), 'c')
  t.equal(upstream('gpt-4', { promptTokens: () => 99 }), 'a')
  t.equal(upstream('gpt-4', { hasTools: () => true, promptTokens: () => 500 }), 'b')
  t.end()
})

void t.test('if no condition matches, the next shorter prefix takes the request', (t) => {
  t.equal(upstream('gpt-5-mini', { labels: { team: 'research', area: 'eu', more: 'x' } }), 'd')
  t.equal(upstream('gpt-5-mini', { labels: { team: 'research' } }), 'a', 'all labels must match')
  t.equal(upstream('gpt-5-mini', { labels: { team: 'sales', area: 'eu' } }), 'a')
  t.equal(upstream('gpt-5-x', { hasImages: () => true }), 'c')
  t.equal(upstream('gpt-5-x', { hasTools: () => true }), 'b')
  t.same(
    router.all('gpt-5-x').map(({ index }) => index),
    [4, 3, 1, 2, 0],
    'all routes that may match it, in the order in which they are tried',
  )
  t.end()
})

void t.test('a model whose only routes have conditions that do not hold has no route', (t) => {
  const own = routerOf('  - { model: m, upstream: a, when: { tools: false, images: false } }\n')
  t.equal(own.find('m', traits({ hasTools: () => true })), null)
  t.equal(own.find('m', traits({ hasImages: () => true })), null)
  t.equal(own.find('m', traits({}))?.label, 'm')
  t.end()
})

void t.test('traits are those of the request; the prompt is measured at most once, on first use', (t) => {
  let measured = 0
  const measure = (): number => {
    measured += 1
    return 7
  }
  const plain = traitsOf(requestOf([message('user', 'hello')]), {}, measure)
  t.equal(plain.hasImages(), false)
  t.equal(plain.hasTools(), false)
  t.equal(measured, 0)
  t.equal(plain.promptTokens(), 7)
  plain.promptTokens()
  t.equal(measured, 1)
  const image = {
    type: 'image' as const,
    source: { kind: 'url' as const, url: 'https://x.example/' },
  }
  const rich = requestOf([message('system', 's'), { role: 'user', index: 1, parts: [image] }], {
    tools: [{ name: 'f' }],
  })
  t.equal(traitsOf(rich, {}, measure).hasImages(), true)
  t.equal(traitsOf(rich, {}, measure).hasTools(), true)
  const tool = requestOf([{ role: 'tool', index: 0, callId: 'c', parts: [image] }])
  t.equal(traitsOf(tool, {}, measure).hasImages(), true, 'a picture that a tool returned')
  t.end()
})

void t.test('labels with the names of object members are ordinary labels', (t) => {
  const none = { images: null, tools: null, minPromptTokens: null, plugin: null }
  const when = { labels: { constructor: 'x' }, ...none }
  t.equal(matches(when, traits({})), false)
  t.equal(matches(when, traits({ labels: { constructor: 'x' } })), true)
  t.equal(
    whenText({
      labels: { team: 'a' },
      images: true,
      tools: false,
      minPromptTokens: 5,
      plugin: 'acme.weekend',
    }),
    'label team=a, with images, without tools, prompt of at least 5 tokens, plugin acme.weekend',
  )
  t.end()
})
