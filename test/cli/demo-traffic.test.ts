/**
 * Goal: the demo's ledger entries are from the last 65 days, include costs and failures, and belong to
 * its keys.
 */
import t from 'tap'
import { writeDemoTraffic } from '../../src/cli/demo-traffic.js'
import { loadConfig } from '../../src/config/load-config.js'
import type { LedgerEntry } from '../../src/ledger/entry.js'
import { openStore } from '../../src/store/open-store.js'

const DAY_MS = 86_400_000
/** Less than a day at a weekend has. */
const SENT_TODAY = 23
const APP = { accountId: 'acc_demo', accountPath: 'sample-company' }

void t.test('the demo records a day of traffic, and less of the days before', async (t) => {
  const loaded = loadConfig('config/gateway.yaml', {})
  if (!loaded.ok) throw new Error('config/gateway.yaml is not good')
  const store = await openStore(`sqlite:${t.testdir()}/demo.db`)
  t.teardown(() => store.close())
  const nowMs = Date.now()
  const apps = [
    { ...APP, keyId: 'key_a', labels: 'data=sample team=shop', share: 3 },
    { ...APP, keyId: 'key_b', labels: 'data=sample team=data', share: 1, model: 'gpt-4o' },
  ]
  const { catalogue } = loaded
  await writeDemoTraffic(store.ledger, { apps, catalogue, nowMs, sentToday: SENT_TODAY })
  const rows: LedgerEntry[] = []
  for await (const batch of store.ledger.export(0)) rows.push(...batch)
  const byDay = Array.from({ length: 65 }, (_, day) => {
    return rows.filter(({ atMs }) => Math.floor((nowMs - atMs) / DAY_MS) === day).length
  })
  const [today = 0, ...before] = byDay
  t.ok(today + SENT_TODAY <= Math.max(...before), 'with what the demo sends, today is no spike')
  t.ok(Math.max(...byDay) <= 4 * Math.min(...byDay), `no day has many more than another: ${byDay.join(' ')}`)
  t.ok(rows.every(({ atMs }) => atMs <= nowMs && atMs > nowMs - 65 * DAY_MS))
  for (let day = 1; day < 65; day += 1) {
    const from = nowMs - (day + 1) * DAY_MS
    t.ok(
      rows.some(({ atMs }) => atMs > from && atMs <= from + DAY_MS),
      `${day} days ago`,
    )
  }
  t.ok(rows.every(({ labels }) => labels?.startsWith('data=sample ')))
  const ofOneModel = rows.filter(({ keyId, outcome }) => keyId === 'key_b' && outcome === 'ok')
  t.same(new Set(ofOneModel.map(({ model }) => model)), new Set(['gpt-4o']))
  t.ok(rows.some(({ attempted }) => attempted === 'unreliable:upstream_failed, openai:ok'))
  t.ok(rows.every(({ costNanoUsd }) => costNanoUsd !== null))
  t.ok(rows.some(({ costNanoUsd }) => (costNanoUsd ?? 0) > 0))
  t.same(new Set(rows.map(({ keyId }) => keyId)), new Set(['key_a', 'key_b']))
  const failed = rows.filter(({ status }) => status !== 200)
  t.ok(failed.length > 10 && failed.length < 400)
  t.ok(failed.every(({ errorMessage }) => errorMessage !== null))
})
