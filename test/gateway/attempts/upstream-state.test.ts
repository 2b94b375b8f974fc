/**
 * Goal: the state of an upstream survives a reload if the settings that it depends on did not change.
 * Method: states of loaded configurations.
 */
import t from 'tap'
import { UpstreamStates } from '../../../src/gateway/attempts/upstream-state.js'
import { loadText } from '../../config/sample.js'
import { TestClock } from './clock.js'

function statesOf({ keys = '[k1, k2]', failures = 5, route = '' }, previous: UpstreamStates | null = null) {
  const loaded = loadText(`
upstreams:
  a: { dialect: openai, base_url: https://a.example/v1, api_keys: ${keys}, breaker: { failures: ${failures} } }
  b: { dialect: openai, base_url: https://b.example/v1 }
routes:
  - { prefix: gpt-, upstream: a, hedge: {} ${route} }
  - { prefix: o1-, upstream: a }
`)
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.errors))
  const states = new UpstreamStates(loaded.config, previous, previous?.clock ?? new TestClock())
  return { states, routes: loaded.config.routes }
}

void t.test('an unchanged upstream keeps its breaker, credentials and latency', (t) => {
  const { states } = statesOf({})
  const a = states.of('a')
  a.credentials.refused(0, 429, null)
  a.latency({ model: null }).begin(0)(500, true)
  const next = statesOf({}, states).states.of('a')
  t.equal(next.breaker, a.breaker)
  t.equal(next.credentials.resting, 1)
  t.equal(next.latency({ model: null }), a.latency({ model: null }))
  t.not(next.latency({ model: 'x' }), a.latency({ model: null }))
  t.equal(next.retries, a.retries)
  t.end()
})

void t.test('changed settings reset only their own state', (t) => {
  const { states } = statesOf({})
  const a = states.of('a')
  a.credentials.refused(0, 429, null)
  const otherKeys = statesOf({ keys: '[k1, k3]' }, states).states.of('a')
  t.equal(otherKeys.breaker, a.breaker)
  t.equal(otherKeys.credentials.resting, 0)
  const otherBreaker = statesOf({ failures: 6 }, states).states.of('a')
  t.not(otherBreaker.breaker, a.breaker)
  t.equal(otherBreaker.credentials, a.credentials)
  t.end()
})

void t.test('the hedge budget belongs to a route; routes without hedge have none', (t) => {
  const { states, routes } = statesOf({})
  const [hedged, plain] = routes
  if (hedged === undefined || plain === undefined) throw new Error('no routes')
  const budget = states.hedgesOf(hedged)
  t.ok(budget)
  t.equal(states.hedgesOf(plain), null)
  const next = statesOf({ route: ', fallback: [{ upstream: b }]' }, states)
  t.equal(next.routes[0] && next.states.hedgesOf(next.routes[0]), budget)
  t.throws(() => states.of('c'))
  t.end()
})

void t.test('breakers and resting keys are shown for metrics and /readyz', (t) => {
  const { states } = statesOf({})
  t.equal(states.text(), 'ok')
  states.of('a').credentials.refused(0, 429, null)
  for (let index = 0; index < 5; index++) states.of('b').breaker.begin().failed()
  const gauges = states.gauges()
  const now = Date.now()
  t.ok(Math.abs((gauges[1]?.breakerChangedAtMs ?? 0) - now) < 60_000, 'opened just now')
  t.match(gauges, [
    {
      name: 'a',
      breaker: 0,
      breakerChangedAtMs: 0,
      resting: 1,
      retriesDenied: 0,
      certificateExpiry: null,
    },
    { name: 'b', breaker: 2, resting: 0, retriesDenied: 0, certificateExpiry: null },
  ])
  t.equal(states.text(), '1 of 2 keys of a resting, circuit breaker of b open')
  t.end()
})
