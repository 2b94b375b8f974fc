/**
 * Goal: the demo's ledger entries are from the last 24 hours, include costs and failures, and belong to
 * its keys.
 */
import t from 'tap'
import { writeDemoTraffic } from '../../src/cli/demo-traffic.js'
import { loadConfig } from '../../src/config/load-config.js'
import type { LedgerEntry } from '../../src/ledger/entry.js'
import { openStore } from '../../src/store/open-store.js'

const DAY_MS = 86_400_000

void t.test('the demo records one day of traffic', async (t) => {
  const loaded = loadConfig('config/gateway.yaml', {})
  if (!loaded.ok) throw new Error('config/gateway.yaml is not good')
  const store = await openStore(`sqlite:${t.testdir()}/demo.db`)
  t.teardown(() => store.close())
  const nowMs = Date.now()
  const apps = [
    { keyId: 'key_a', labels: 'team=shop', share: 3 },
    { keyId: 'key_b', labels: 'team=data', share: 1 },
  ]
  const { catalogue } = loaded
  await writeDemoTraffic(store.ledger, { accountId: 'acc_demo', apps, catalogue, nowMs })
  const rows: LedgerEntry[] = []
  for await (const batch of store.ledger.export(0)) rows.push(...batch)
  t.equal(rows.length, 900)
  t.ok(rows.every(({ atMs }) => atMs <= nowMs && atMs > nowMs - DAY_MS))
  t.ok(rows.every(({ costNanoUsd }) => costNanoUsd !== null))
  t.ok(rows.some(({ costNanoUsd }) => (costNanoUsd ?? 0) > 0))
  t.same(new Set(rows.map(({ keyId }) => keyId)), new Set(['key_a', 'key_b']))
  const failed = rows.filter(({ status }) => status !== 200)
  t.ok(failed.length > 10 && failed.length < 100)
  t.ok(failed.every(({ errorMessage }) => errorMessage !== null))
})
