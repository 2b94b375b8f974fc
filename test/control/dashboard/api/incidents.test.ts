/**
 * Goal: an outage of an upstream is reported with its start, its share and whom it hits, to those who operate
 * the gateway and to those whom it hits; limits and errors of clients are none. Failures are grouped.
 * Method: a gateway with requests of the last minutes; both stores.
 */
import t, { type Test } from 'tap'
import { failuresReply, incidentsReply } from '../../../../src/control/dashboard/schema/schema.js'
import type { LedgerEntry } from '../../../../src/ledger/entry.js'
import { startRedis } from '../../../helpers/redis.js'
import { aRow, startStage, type Browser } from '../../../dashboard/fixtures/stage.js'

const MINUTE_MS = 60_000
const FAILED: Partial<LedgerEntry> = {
  ...{ outcome: 'upstream_failed', status: 502, upstreamStatus: 500, upstream: 'openai' },
  ...{ attempted: 'openai:upstream_failed', attempts: 1, hops: {} },
}

async function incidentsFor(browser: Browser, query = '') {
  return incidentsReply.parse((await browser.get(`/incidents${query}`)).json)
}

async function check(t: Test, store?: string): Promise<void> {
  const stage = await startStage(t, store === undefined ? {} : { store })
  const admin = await stage.signedIn('root@example.com', 'max', 'admin')
  const ada = await stage.signedIn('ada@example.com')
  const bob = await stage.signedIn('bob@example.com')
  const adaId = (await stage.store.accountByEmail('ada@example.com'))?.id ?? ''
  const settle = async (times: number, more: Partial<LedgerEntry>) => {
    for (let at = 0; at < times; at += 1) {
      await stage.store.ledger.settle(aRow(adaId, { atMs: Date.now() - 1_000 - at, ...more }))
    }
  }
  await settle(9, { outcome: 'rate_limited', status: 429, attempts: 0, upstream: 'openai' })
  await settle(9, { outcome: 'malformed_request', status: 400, attempts: 0, upstream: 'openai' })
  t.same((await incidentsFor(admin)).open, [], 'limits and clients are no outage')

  const startMs = Date.now() - 3 * MINUTE_MS
  await settle(4, { ...FAILED, atMs: startMs })
  await settle(6, FAILED)
  await new Promise((resolve) => setTimeout(resolve, 4_200))
  const { open, history } = await incidentsFor(admin, '?history=true')
  t.match(open, [
    {
      ...{ upstream: 'openai', sinceMs: startMs, share: 1, attemptsPerMinute: 6, what: '500' },
      ...{ cause: 'provider', requests: 10, accounts: 1, isPart: false },
    },
  ])
  t.match(history?.past, [{ upstream: 'openai', fromMs: startMs, requests: 10 }])
  const cells = history?.rows.find(({ upstream }) => upstream === 'openai')?.cells ?? []
  t.equal(cells.length, 24)
  t.equal(
    cells.reduce((sum, { failed }) => sum + failed, 0),
    10,
  )
  const hit = await incidentsFor(ada, '?history=true')
  t.match(hit, { open: [{ upstream: null, breaker: null, requests: 10 }], history: null, recovered: [] })
  t.same((await incidentsFor(bob)).open, [], 'it hits nothing of his')

  const groups = failuresReply.parse((await admin.get('/failures?account=all&fromMs=0')).json)
  t.equal(groups.requests, 28)
  t.match(groups.groups[0], {
    ...{ upstream: 'openai', outcome: 'upstream_failed', upstreamStatus: 500, cause: 'provider' },
    ...{ requests: 10, accounts: 1, firstMs: startMs },
  })
  const late = await admin.get(`/failures?account=all&upstream=openai&fromMs=${startMs + 1}`)
  t.match(failuresReply.parse(late.json), { requests: 24 })
  const rolling = failuresReply.parse((await admin.get('/failures?account=all&range=1h')).json)
  t.match(rolling, { requests: 28, toMs: rolling.nowMs, fromMs: rolling.nowMs - 3_600_000 })
  t.match(failuresReply.parse((await bob.get('/failures?fromMs=0')).json), { requests: 0, groups: [] })
}

void t.test('SQLite', (t) => check(t))
void t.test('Redis', async (t) => {
  const redis = await startRedis(t)
  await check(t, redis.url())
})
