/**
 * Goal: targets get requests in proportion to their weights; a failing one is followed by the others by
 * weight, then by `fallback` in order; sticky keys keep their target and move as little as possible; the
 * faster target is preferred.
 * Method: many choices with seeded randomness, as properties over random weights.
 */
import t from 'tap'
import type { ModelRoute, RouteTarget } from '../../../src/gateway/routing/router.js'
import { stickyKeyOf, orderTargets, type Choice } from '../../../src/gateway/routing/order-targets.js'
import { requestOf, routeWith, message, seeded } from './fixtures.js'
import { cpuWatch } from '../../helpers/stopwatch.js'

const NAMES = ['a', 'b', 'c', 'd']

function weighted(weights: readonly number[], more = ''): ModelRoute {
  const targets = weights.map((weight, index) => `{ upstream: ${NAMES[index] ?? ''}, weight: ${weight} }`)
  return routeWith(`targets: [${targets.join(', ')}]${more}`)
}

function choice(changed: Partial<Choice> = {}): Choice {
  return { random: () => 0, stickyKey: null, aborted: new Set(), latencyMs: () => 0, ...changed }
}

function names(targets: readonly RouteTarget[]): string {
  return targets.map(({ upstream }) => upstream.name).join(' ')
}

/** The number of times that each upstream is first. */
function counts(route: ModelRoute, choices: readonly Choice[]): Map<string, number> {
  const firsts = new Map<string, number>()
  for (const each of choices) {
    const name = orderTargets(route, each)[0]?.upstream.name ?? ''
    firsts.set(name, (firsts.get(name) ?? 0) + 1)
  }
  return firsts
}

void t.test('the first target is drawn by weight, for all weights', (t) => {
  const random = seeded(1)
  for (let round = 0; round < 20; round++) {
    const weights = Array.from({ length: 2 + (round % 3) }, () => Math.ceil(random() * 20) / 2)
    const total = weights.reduce((sum, weight) => sum + weight, 0)
    const n = 20_000
    const firsts = counts(
      weighted(weights),
      Array.from({ length: n }, () => choice({ random })),
    )
    weights.forEach((weight, index) => {
      const expected = weight / total
      const error = 5 * Math.sqrt((expected * (1 - expected)) / n)
      const actual = (firsts.get(NAMES[index] ?? '') ?? 0) / n
      t.ok(Math.abs(actual - expected) < error, `${weights.join(':')} ${index}: ${actual}`)
    })
  }
  t.end()
})

void t.test('the other targets by weight follow it, then fallback in order', (t) => {
  const route = weighted([1, 5, 9, 5], ', fallback: [{ upstream: b, model: x }, { upstream: a, model: y }]')
  t.equal(names(orderTargets(route, choice({ random: () => 0 }))), 'a c b d b a')
  t.equal(names(orderTargets(route, choice({ random: () => 0.999_999 }))), 'd c b a b a')
  t.same(
    orderTargets(route, choice()).map(({ isFallback }) => isFallback),
    [false, false, false, false, true, true],
  )
  t.equal(names(orderTargets(weighted([0, 1]), choice())), 'b', 'weight 0 gets nothing')
  t.equal(names(orderTargets(weighted([3]), choice())), 'a')
  t.end()
})

void t.test('a sticky key keeps its target, in proportion to the weights', (t) => {
  const keys = Array.from({ length: 4_000 }, (_, index) => `key ${index}`)
  const random = () => {
    throw new Error('a sticky choice is not random')
  }
  const first = (route: ModelRoute, key: string) =>
    orderTargets(route, choice({ random, stickyKey: key }))[0]?.upstream.name
  const route = weighted([9, 1])
  const again = weighted([9, 1])
  for (const key of keys.slice(0, 200)) t.equal(first(route, key), first(again, key), 'any process')
  const firsts = counts(
    route,
    keys.map((stickyKey) => choice({ random, stickyKey })),
  )
  const share = (firsts.get('b') ?? 0) / keys.length
  t.ok(Math.abs(share - 0.1) < 0.02, String(share))
  t.end()
})

void t.test('a change of weights or targets moves the minimum number of keys', (t) => {
  const keys = Array.from({ length: 4_000 }, (_, index) => `key ${index}`)
  const placed = (weights: number[]) => {
    const route = weighted(weights)
    return keys.map((key) => orderTargets(route, choice({ stickyKey: key }))[0]?.upstream.name)
  }
  const before = placed([2, 2, 2])
  const heavier = placed([2, 2, 4])
  const moved = before.filter((name, index) => name !== heavier[index])
  t.ok(
    before.every((name, index) => name === heavier[index] || heavier[index] === 'c'),
    'only towards c',
  )
  t.ok(Math.abs(moved.length / keys.length - 1 / 6) < 0.03, `${moved.length} moved`)
  const removed = placed([2, 2, 0])
  t.ok(
    before.every((name, index) => name === 'c' || name === removed[index]),
    'only those of c',
  )
  const added = placed([2, 2, 2, 2])
  t.ok(
    before.every((name, index) => name === added[index] || added[index] === 'd'),
    'only towards d',
  )
  t.end()
})

void t.test('a conversation has one sticky key in all its turns', (t) => {
  const key = (messages: Parameters<typeof requestOf>[0]) =>
    stickyKeyOf('conversation', requestOf(messages), 'key_1')
  const start = [message('system', 'You are kind.'), message('user', 'Hello')]
  const first = key(start)
  const reply = { role: 'assistant' as const, index: 2, parts: [], toolCalls: [] }
  t.equal(key([...start, reply, message('user', 'And now?')]), first)
  t.equal(key([...start, reply, message('system', 'Be brief.'), message('user', 'And now?')]), first)
  t.not(key([message('system', 'You are kind.'), message('user', 'Hello!')]), first)
  t.not(key([message('system', 'You are not kind.'), message('user', 'Hello')]), first)
  t.not(key([message('user', 'You are kind.'), message('user', 'Hello')]), first)
  t.equal(stickyKeyOf('key', requestOf(start), 'key_1'), 'key_1')
  t.equal(stickyKeyOf('key', requestOf(start), null), null)
  t.equal(stickyKeyOf('none', requestOf(start), 'key_1'), null)
  t.end()
})

void t.test('a long first message is hashed in bounded time without decoding', (t) => {
  const long = { type: 'text' as const, text: '', textBytes: 10_000_000 }
  Object.defineProperty(long, 'text', {
    get() {
      throw new Error('decoded')
    },
  })
  const key = (textBytes: number) =>
    stickyKeyOf(
      'conversation',
      requestOf([
        {
          role: 'user',
          index: 0,
          parts: [Object.assign(Object.create(long) as typeof long, { textBytes })],
        },
      ]),
      null,
    )
  t.equal(key(10_000_000), key(10_000_000))
  t.not(key(10_000_000), key(10_000_001))
  const many = Array.from({ length: 2_000 }, () => message('system', 'x'.repeat(10_000)))
  const watch = cpuWatch()
  stickyKeyOf('conversation', requestOf(many), null)
  t.ok(watch() < 50)
  t.end()
})

void t.test('least_latency takes the faster of two targets that are drawn by weight', (t) => {
  const route = weighted([1, 1, 1], ', balance: least_latency')
  const latency: Record<string, number> = { a: 100, b: 2_000, c: 150 }
  const latencyMs = ({ upstream }: RouteTarget) => latency[upstream.name] ?? 0
  const random = seeded(2)
  const firsts = counts(
    route,
    Array.from({ length: 6_000 }, () => choice({ random, latencyMs })),
  )
  t.equal(firsts.get('b') ?? 0, 0, 'the slowest of three is never chosen')
  t.ok(Math.abs((firsts.get('a') ?? 0) / 6_000 - 2 / 3) < 0.04, 'the fastest wins its two pairs of three')
  const sticky = weighted([1, 1], ', balance: least_latency, sticky: key')
  const slow = ({ upstream }: RouteTarget) => (upstream.name === chosen ? 9_000 : 1)
  const chosen = orderTargets(sticky, choice({ stickyKey: 'x' }))[0]?.upstream.name
  const still = orderTargets(sticky, choice({ stickyKey: 'x', latencyMs: slow }))[0]
  t.equal(still?.upstream.name, chosen, 'sticky comes before latency')
  t.end()
})
