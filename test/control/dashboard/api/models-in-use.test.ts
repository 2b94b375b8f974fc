/**
 * Goal: the health of an upstream needs a ratio and a number of failures; providers are compared per model
 * over the whole range; models with an announced end show who uses them and a successor.
 * Method: entries in a gateway's store; the successor is chosen from small catalogues.
 */
import t from 'tap'
import { healthOf } from '../../../../src/control/dashboard/upstream-health.js'
import { successorOf } from '../../../../src/control/dashboard/deprecated-models.js'
import {
  deprecatedReply,
  modelsReply,
  providersReply,
  requestsReply,
} from '../../../../src/control/dashboard/schema/schema.js'
import type { ModelFacts } from '../../../../src/formats/chat/model-facts.js'
import { aRow, startStage } from '../../../dashboard/fixtures/stage.js'

const HOUR_MS = 3_600_000

void t.test('health needs a share and a number of failures', (t) => {
  t.equal(healthOf(0, 0), 'idle')
  t.equal(healthOf(2, 1), 'healthy', 'one of two is no state')
  t.equal(healthOf(10, 4), 'degraded')
  t.equal(healthOf(20, 5), 'failing')
  t.equal(healthOf(1_000, 40), 'healthy', '4 %')
  t.equal(healthOf(1_000, 50), 'degraded')
  t.equal(healthOf(5, 5), 'failing')
  t.end()
})

void t.test('providers per model, from stored sums beyond 2,000 requests', async (t) => {
  const stage = await startStage(t)
  const root = await stage.signedIn('root@example.com', 'max', 'admin')
  const { ledger } = stage.store
  const atMs = Date.now() - 2 * HOUR_MS
  await Promise.all(
    Array.from({ length: 2_100 }, (_, at) =>
      ledger.settle(
        aRow('acc_1', {
          ...{ atMs: atMs - (at % 2) * HOUR_MS, model: at % 3 === 0 ? 'gpt-5.4' : 'gpt-5.4-mini' },
          hops: { firstContent: 210 + at / 20 },
          ...(at % 10 === 0 ? { outcome: 'upstream_failed', status: 502 } : {}),
        }),
      ),
    ),
  )
  const reply = providersReply.parse((await root.get('/providers?hours=24')).json)
  const openai = reply.upstreams.find(({ upstream }) => upstream === 'openai')
  t.match(openai, {
    requests: 2_100,
    failures: 210,
    failureShare: 0.1,
    models: [
      { model: 'gpt-5.4-mini', requests: 1_400 },
      { model: 'gpt-5.4', requests: 700 },
    ],
    points: [{ requests: 1_050 }, { requests: 1_050 }],
  })
  const { firstTokenP50Ms: p50 = 0, firstTokenP95Ms: p95 = 0 } = openai ?? {}
  t.ok(Number(p50) > 200 && Number(p50) < Number(p95) && Number(p95) <= 350, `${p50} < ${p95}`)
})

void t.test('models with an announced end', async (t) => {
  const stage = await startStage(t)
  const root = await stage.signedIn('root@example.com', 'max', 'admin')
  const ada = await stage.signedIn('ada@example.com')
  const catalogue = modelsReply.parse((await ada.get('/models')).json).models
  const ending = catalogue.filter(({ endsOn }) => endsOn !== null)
  const [old] = ending
  if (old === undefined) throw new Error('the catalogue has no model with an announced end')
  const account = await stage.store.accountByEmail('ada@example.com')
  const accountId = account?.id ?? ''
  const atMs = (Math.floor(Date.now() / (24 * HOUR_MS)) - 0.5) * 24 * HOUR_MS
  const row = { atMs, model: old.id, keyId: 'playground', labels: 'team=web' }
  await stage.store.ledger.settle(aRow(accountId, { ...row, accountPath: account?.name ?? '' }))
  await stage.store.ledger.settle(aRow('acc_other', { ...row, labels: null }))
  await stage.store.ledger.settle(aRow(accountId, { atMs }))

  const own = deprecatedReply.parse((await ada.get('/models/deprecated')).json)
  t.equal(own.models.length, ending.length, 'every one of them')
  const ends = own.models.map(({ endsOn }) => endsOn)
  t.same(ends, [...ends].sort(), 'the nearest end first')
  const used = own.models.find(({ id }) => id === old.id)
  // The day of the request began one to two days ago.
  const days = Math.round((own.toMs - (used?.days[0]?.startMs ?? 0)) / (24 * HOUR_MS))
  t.ok(days === 1 || days === 2, `${days} days`)
  t.match(used, {
    endsOn: old.endsOn,
    requests: 1,
    requestsPerDay: 1 / days,
    days: [{ requests: 1 }],
    keyCount: 1,
    keys: [{ id: 'playground', name: 'playground', accountId, requests: 1 }],
    accounts: [{ name: account?.name, requests: 1 }],
    labels: [{ label: 'team=web', requests: 1 }],
  })
  const all = deprecatedReply.parse((await root.get('/models/deprecated?account=all')).json)
  t.match(
    all.models.find(({ id }) => id === old.id),
    { requests: 2, keyCount: 2 },
  )
  for (const { id, successor } of all.models) {
    if (successor === null) continue
    const [from, to] = [id, successor].map((name) => catalogue.find((each) => each.id === name))
    t.equal(to?.family, from?.family, `${id} to ${successor}`)
    t.equal(to?.endsOn, null)
  }
  const filtered = await root.get('/requests?account=all&deprecated=true')
  t.same(
    requestsReply.parse(filtered.json).rows.map(({ model }) => model),
    [old.id, old.id],
  )
  t.match(
    requestsReply
      .parse(filtered.json)
      .rows.map(({ accountName }) => accountName)
      .sort(),
    [account?.name, null],
  )
})

void t.test('the successor has the abilities, and the size if there is one', (t) => {
  const facts = (id: string, createdAtSeconds: number, over: Partial<ModelFacts> = {}): ModelFacts => {
    return { id, family: 'acme', createdAtSeconds, tools: true, ...over }
  }
  const old = facts('acme-2-mini', 2, { shutdownDate: '2027-01-01', vision: true })
  const models = [
    ...[old, facts('acme-1-mini', 1, { vision: true }), facts('acme-5-mini', 5)],
    ...[facts('acme-4-mini', 4, { vision: true }), facts('acme-6', 6, { vision: true })],
    facts('acme-7-mini', 7, { vision: true, shutdownDate: '2028-01-01' }),
    facts('other-9-mini', 9, { vision: true, family: 'other' }),
  ]
  t.equal(successorOf(old, models), 'acme-4-mini')
  t.equal(
    successorOf(
      old,
      models.filter(({ id }) => !id.endsWith('mini')),
    ),
    'acme-6',
  )
  t.equal(successorOf(old, [old]), null)
  t.end()
})
