import t from 'tap'
import { MAX_HEADS, RecentHeads } from '../../../src/gateway/report/recent-requests.js'
import { startGateway } from '../../helpers/gateway.js'
import { until } from '../../helpers/upstream.js'

/** How many of `requests` that end at equal distances within a second are kept. */
function keptOf(recent: RecentHeads, requests: number, fromMs: number): number {
  let kept = 0
  for (let index = 0; index < requests; index += 1) {
    if (recent.takes(fromMs + (index * 1000) / requests)) kept += 1
  }
  return kept
}

void t.test('every request of a burst is kept', (t) => {
  t.equal(keptOf(new RecentHeads(), MAX_HEADS, 5_000), MAX_HEADS)
  t.end()
})

void t.test('100 requests per second are all kept, for any time', (t) => {
  const recent = new RecentHeads()
  for (let second = 0; second < 60; second += 1) {
    t.equal(keptOf(recent, 100, second * 1000), 100)
  }
  t.end()
})

void t.test('of more requests, 100 per second are kept after a burst', (t) => {
  const recent = new RecentHeads()
  keptOf(recent, 5_000, 0)
  for (let second = 1; second < 10; second += 1) {
    const kept = keptOf(recent, 5_000, second * 1000)
    t.ok(kept >= 99 && kept <= 101, `${kept} requests`)
  }
  t.end()
})

const RULES = `
guardrails:
  words: { patterns: ['forbidden'], on: [request], action: mask }
limits:
  - { scope: model, model: claude-sonnet-4-6, usd_per_month: 0.03 }
`

void t.test('a maximum that a budget has set is not taken for the one of the client', async (t) => {
  for (const [name, more] of [
    ['a budget', RULES.replace(/guardrails:\n.*\n/, '')],
    ['a budget and a guardrail', RULES],
  ] as const) {
    const gateway = await startGateway(t, { more })
    const model = 'claude-sonnet-4-6'
    const messages = [{ role: 'user', content: 'a forbidden word' }]
    const reply = await gateway.chat({ model, messages })
    t.equal(reply.status, 200, name)
    const sent = gateway.emulator.ledger.at(-1)?.body
    t.ok(Number(sent?.['max_tokens']) < 2_000, `${name}: the upstream gets a maximum`)
    await gateway.chat({ model: 'gpt-5.4', messages, max_tokens: 77 })
    await until(() => gateway.plane.recentHeads().length === 2)
    const [shortened, own] = gateway.plane.recentHeads()
    t.equal(shortened?.sketch.settings.maxOutputTokens, undefined, name)
    t.equal(own?.sketch.settings.maxOutputTokens, 77, `${name}: that of a client is kept`)
  }
})
