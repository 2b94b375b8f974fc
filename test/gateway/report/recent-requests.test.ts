import t from 'tap'
import { MAX_HEADS, RecentHeads } from '../../../src/gateway/report/recent-requests.js'

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
