/**
 * Goal: only failures of the provider affect the health of an upstream.
 * Method: ledger entries with attempts of each kind.
 */
import t from 'tap'
import { upstreamHealth } from '../../../../src/control/dashboard/upstream-health.js'
import { aRow } from '../../../dashboard/fixtures/stage.js'

void t.test('each attempt counts for its upstream', (t) => {
  const rescued = aRow('acc_1', {
    atMs: 5_000,
    upstream: 'openai',
    attempted: 'anthropic:upstream_busy, anthropic:upstream_failed, openai:ok',
  })
  const hedged = aRow('acc_1', { attempted: 'anthropic:cancelled, google:ok' })
  const health = upstreamHealth([rescued, hedged])
  t.match(health.get('anthropic'), {
    attempts: 3,
    failures: { provider: 2, gateway: 0, limits: 0, client: 0 },
    retries: { count: 1, lastAtMs: 5_000 },
    fallbacks: { count: 1, lastAtMs: 5_000 },
  })
  t.match(health.get('openai'), { attempts: 1, failures: { provider: 0 }, fallbacks: { count: 0 } })
  t.match(health.get('google'), { attempts: 1, failures: { provider: 0 } })
  t.end()
})

void t.test('failures of the gateway and of the client do not count for the provider', (t) => {
  const of = (outcome: 'rate_limited' | 'client_gone' | 'upstream_denied' | 'upstream_rejected') =>
    aRow('acc_1', { outcome, attempts: outcome === 'rate_limited' ? 0 : 1 })
  const kinds = ['rate_limited', 'client_gone', 'upstream_denied', 'upstream_rejected'] as const
  const health = upstreamHealth(kinds.map(of)).get('openai')
  t.match(health, {
    attempts: 3,
    failures: { provider: 0, gateway: 1, limits: 1, client: 2 },
  })
  t.equal(health?.kinds.size, 0)
  t.end()
})

void t.test('a request without an upstream counts for none', (t) => {
  const refused = aRow('acc_1', { outcome: 'unknown_model', upstream: null, attempts: 0 })
  t.equal(upstreamHealth([refused]).size, 0)
  t.end()
})
