/**
 * Goal: the list of budgets has every account, key and label with a limit in money, with the spend of the
 * whole period and a forecast; a raise holds until its end, within the limits above, and is in the audit
 * trail with its reason.
 * A budget in all is in the list, too, with what its counter has, also if the ledger keeps less.
 * Method: a gateway with accounts, keys and requests of the last weeks; both stores. Forecasts are also
 * compared with the formulas by hand.
 */
import t, { type Test } from 'tap'
import { limitsAt, raisesLeft } from '../../../../src/accounts/limit-raises.js'
import { createAccount } from '../../../../src/accounts/changes/change-accounts.js'
import { createUser, setMember } from '../../../../src/accounts/members.js'
import { linearForecast, overOn, weekdayForecast } from '../../../../src/control/dashboard/forecast.js'
import { budgetsReply, limitsReply, type BudgetRow } from '../../../../src/control/dashboard/schema/schema.js'
import { putKey } from '../../../helpers/store-changes.js'
import { startRedis } from '../../../helpers/redis.js'
import { aKey } from '../../../store/contract/sample-records.js'
import { anAdmission } from '../../../store/ledger/sample-entries.js'
import { aRow, PASSWORD, startStage, type Browser } from '../../../dashboard/fixtures/stage.js'
import { knownHash } from '../../../helpers/password.js'

const DAY_MS = 86_400_000
const USD = 1e9

async function rowsOf(browser: Browser, query = '?account=all') {
  return budgetsReply.parse((await browser.get(`/budgets${query}`)).json)
}

async function check(t: Test, store?: string): Promise<void> {
  const more =
    'limits: [{ scope: label:team, value: red, usd_per_month: 100 }, { scope: label:env, usd_per_month: 7 }]'
  const stage = await startStage(t, { more, ...(store === undefined ? {} : { store }) })
  const admin = await stage.signedIn('root@example.com', 'max', 'admin')
  const make = async (name: string, parentId?: string) => {
    const above = parentId === undefined ? {} : { parentId }
    return (await createAccount(stage.store, { name, plan: 'max', password: null, ...above })).account
  }
  const acme = await make('acme')
  const search = await make('acme-search', acme.id)
  const key = aKey(search.id, { name: 'ci', limits: { nanoUsdPerDay: 10 * USD } })
  await putKey(stage.store, key, null)
  await stage.store.ledger.settle(
    aRow(search.id, { keyId: key.id, costNanoUsd: 9 * USD, labels: 'env=prod team=red' }),
  )
  const { user } = await createUser(stage.store, {
    email: 'lead@example.com',
    password: PASSWORD,
    hash: knownHash,
  })
  const owner = { account: acme, user, role: 'owner', nowMs: Date.now(), audit: () => [] } as const
  await setMember(stage.store, owner)
  const lead = stage.browser()
  t.equal((await lead.signIn('lead@example.com')).status, 200)
  const put = (name: string, usd: number) =>
    admin.ask('PUT', `/accounts/${name}/limits`, { body: { nanoUsdPerMonth: usd * USD } })
  const raise = (browser: Browser, path: string, more: object) =>
    browser.ask('POST', path, {
      body: { budget: 'usd_per_month', usd: 30, untilMs: Date.now() + DAY_MS, reason: 'launch', ...more },
    })
  const named = ({ rows }: { rows: readonly BudgetRow[] }, name: string) =>
    rows.find((row) => row.name === name)

  await t.test('each budget with the spend of its period, the most urgent first', async (t) => {
    t.equal((await put('acme', 50)).status, 200)
    t.equal((await put('acme-search', 8)).status, 200)
    const all = await rowsOf(admin)
    t.match(named(all, 'acme-search'), {
      ...{ kind: 'account', account: 'acme', source: 'own', period: 'month', status: 'over' },
      ...{ spentNanoUsd: 9 * USD, limitNanoUsd: 8 * USD, raise: null, mayChange: true },
    })
    t.equal(named(all, 'acme')?.spentNanoUsd, 9 * USD, 'with all below it')
    t.match(named(all, 'ci'), { kind: 'key', ofId: key.id, account: 'acme-search', period: 'day' })
    t.match(named(all, 'team=red'), { kind: 'label', spentNanoUsd: 9 * USD, mayChange: false })
    t.match(named(all, 'env=prod'), { kind: 'label', limitNanoUsd: 7 * USD, status: 'over' })
    t.same([...all.rows.slice(0, 2)].map(({ name }) => name).sort(), ['acme-search', 'env=prod'], 'first')
    t.equal(all.counts.over, 2)
    const own = await rowsOf(lead, '')
    t.equal(named(own, 'team=red'), undefined, 'labels are of no account')
    t.match([named(own, 'acme')?.mayChange, named(own, 'acme-search')?.mayChange], [false, true])
    t.match((await rowsOf(admin, '?account=all&search=search')).rows, [
      { name: 'acme-search' },
      { name: 'ci' },
    ])
    t.match((await rowsOf(admin, '?account=all&kind=label')).rows, [
      { name: 'env=prod' },
      { name: 'team=red' },
    ])
    t.equal(
      (await rowsOf(admin)).without.some(({ name }) => name === 'acme'),
      false,
    )
  })

  await t.test('budgets in all: what the counter has, also beyond the limit', async (t) => {
    const trial = await make('trial')
    const ofTrial = aKey(trial.id, { name: 'trial-key', limits: { nanoUsdTotal: 4 * USD } })
    await putKey(stage.store, ofTrial, null)
    await stage.store.ledger.settle(aRow(trial.id, { keyId: ofTrial.id, costNanoUsd: 3 * USD }))
    const body = { nanoUsdTotal: 2 * USD }
    t.equal((await admin.ask('PUT', '/accounts/trial/limits', { body })).status, 200)
    const rows = await rowsOf(admin, '?account=trial&period=total')
    t.match(named(rows, 'trial'), {
      ...{ kind: 'account', period: 'total', fromMs: null, toMs: null, status: 'over', mayChange: true },
      ...{ spentNanoUsd: 3 * USD, limitNanoUsd: 2 * USD, forecastNanoUsd: null, overOnMs: null },
    })
    t.match(named(rows, 'trial-key'), { kind: 'key', spentNanoUsd: 3 * USD, status: 'fine' }, 'by the ledger')
    const level = limitsReply.parse((await admin.get('/limits?account=trial')).json).limits
    t.match(
      level.map(({ scope, used }) => [scope, used]),
      [
        ['account', 2 * USD],
        ['key', 3 * USD],
      ],
      'the same beside the limits, before their first request',
    )
    const demand = {
      ...({ kind: 'usd_total', subject: `key:${ofTrial.id};own`, shared: false } as const),
      ...{ limitNanoUsd: 9 * USD, costNanoUsd: 5 * USD },
    }
    const of = { accountId: trial.id }
    t.equal((await stage.store.ledger.admit(anAdmission([demand], of))).admitted, true)
    const after = await rowsOf(admin, '?account=trial&period=total')
    const { spentNanoUsd, status } = named(after, 'trial-key') ?? {}
    t.same([spentNanoUsd, status], [5 * USD, 'over'], 'by its counter, beyond the limit')
    t.equal(after.counts.over, 2)
  })

  await t.test('a raise holds until its end, within the limits above', async (t) => {
    t.equal((await raise(lead, '/accounts/acme/limits/raise', {})).status, 403, 'a top account')
    const above = await raise(lead, '/accounts/acme-search/limits/raise', { usd: 51 })
    t.match([above.status, above.error['field']], [403, 'usd'], above.text)
    for (const [more, param] of [
      [{ usd: 8 }, 'usd'],
      [{ reason: ' ' }, 'reason'],
      [{ untilMs: Date.now() - 1 }, 'until'],
      [{ budget: 'usd_per_day' }, 'budget'],
    ] as const) {
      const refused = await raise(admin, '/accounts/acme-search/limits/raise', more)
      t.match([refused.status, refused.error['field']], [400, param], JSON.stringify(more))
    }
    t.equal((await raise(lead, '/accounts/acme-search/limits/raise', {})).status, 200)
    t.match(named(await rowsOf(admin), 'acme-search'), {
      limitNanoUsd: 30 * USD,
      raise: { fromNanoUsd: 8 * USD, reason: 'launch', by: 'lead@example.com' },
    })
    const now = limitsReply.parse((await admin.get('/limits?account=acme-search')).json)
    t.match(
      now.limits.find(({ kind }) => kind === 'usd_per_month'),
      { limit: 30 * USD },
      'it holds',
    )
    const stored = await stage.store.accountById(search.id)
    t.equal(stored?.limits?.nanoUsdPerMonth, 8 * USD, 'the record keeps the former budget')
    const [entry] = await stage.store.auditTrail.page({ accountId: search.id, after: null, limit: 1 })
    t.match(entry, {
      ...{ action: 'account.raise', actor: 'lead@example.com', reason: 'launch' },
      ...{ before: { 'limits.usd_per_month': 8 }, after: { 'limits.usd_per_month': 30 } },
    })
    t.equal((await put('acme-search', 9)).status, 200)
    t.equal((await stage.store.accountById(search.id))?.raises, undefined, 'another budget ends the raise')
    const ofKey = await raise(lead, `/keys/${key.id}/raise?account=acme-search`, {
      ...{ budget: 'usd_per_day', usd: 20 },
    })
    t.equal(ofKey.status, 200, ofKey.text)
    t.match(named(await rowsOf(admin), 'ci'), { limitNanoUsd: 20 * USD, raise: { fromNanoUsd: 10 * USD } })
    const other = await stage.signedIn('other@example.com')
    t.equal((await raise(other, '/accounts/acme-search/limits/raise', {})).status, 404)
    t.same(
      (await rowsOf(other, '')).rows.map(({ account }) => account),
      [],
      'of no other account',
    )
  })
}

void t.test('SQLite', (t) => check(t))
void t.test('Redis', async (t) => {
  const redis = await startRedis(t)
  await check(t, redis.url())
})

void t.test('raises: higher until the end; a changed or removed budget ends them', (t) => {
  const raise = {
    budget: 'nanoUsdPerMonth',
    nanoUsd: 9,
    untilMs: 100,
    reason: 'r',
    by: 'b',
    atMs: 1,
  } as const
  const limits = { nanoUsdPerMonth: 5, concurrent: 2 }
  const at = (atMs: number) => limitsAt({ limits, raises: [raise] }, atMs).nanoUsdPerMonth
  t.same([at(0), at(99), at(100)], [9, 9, 5])
  t.same(limitsAt({ limits: { concurrent: 2 }, raises: [raise] }, 0), { concurrent: 2 })
  t.same(raisesLeft([raise], limits, { ...limits, concurrent: 3 }), { raises: [raise] })
  t.same(raisesLeft([raise], limits, { nanoUsdPerMonth: 4 }), {})
  t.same(raisesLeft([raise], limits), {})
  t.end()
})

void t.test('forecasts: linear, by weekday, and the day on which a limit is passed', (t) => {
  const month = { fromMs: Date.UTC(2026, 10, 1), toMs: Date.UTC(2026, 11, 1) }
  const nowMs = Date.UTC(2026, 10, 16)
  t.equal(linearForecast(100, month, nowMs), 200)
  t.equal(linearForecast(100, month, month.fromMs + 3_600_000), null, 'too early')
  // 16 Nov 2026 is a Monday; only the weekend costs, 10 a day.
  const days = Array.from({ length: 28 }, (_, at) => {
    const weekday = new Date(nowMs - (28 - at) * DAY_MS).getUTCDay()
    return weekday === 0 || weekday === 6 ? 10 : 1
  })
  // Two Saturdays, two Sundays and eleven other days are left.
  t.equal(weekdayForecast(100, days, month, nowMs), 100 + 4 * 10 + 11)
  t.equal(weekdayForecast(100, days, month, nowMs + DAY_MS / 2), Math.round(100 + 4 * 10 + 10.5))
  t.equal(
    weekdayForecast(
      100,
      days.map((_, at) => (at < 13 ? 1 : 0)),
      month,
      nowMs,
    ),
    null,
    '13 days',
  )
  t.equal(overOn({ ...month, spent: 100, limit: 150 }, null, nowMs), Date.UTC(2026, 10, 23))
  t.equal(overOn({ ...month, spent: 100, limit: 300 }, null, nowMs), null)
  t.equal(overOn({ ...month, spent: 100, limit: 106 }, days, nowMs), Date.UTC(2026, 10, 21), 'a Saturday')
  t.end()
})
