/**
 * Goal: the page shows what is used and left of each limit and budget, of the account and of its keys, and
 * when it resets.
 * Method: a gateway whose plan has a budget, keys with limits of their own, and requests that use them up.
 */
import { appendFileSync } from 'node:fs'
import t from 'tap'
import { createdKeyReply, limitsReply } from '../../../../src/control/dashboard/schema/schema.js'
import { aRow, startStage } from '../../../dashboard/fixtures/stage.js'

const DAY_MS = 86_400_000

void t.test('used, left, and when it resets', async (t) => {
  const stage = await startStage(t)
  const rules = 'limits: [{ scope: account, requests_per_minute: 100 }, { scope: upstream, concurrent: 3 }]\n'
  appendFileSync(stage.gateway.configFile, rules)
  stage.gateway.reload()
  const browser = await stage.signedIn('ada@example.com')
  const limits = { requestsPerMinute: 60, nanoUsdPerDay: 5_000_000_000 }
  const made = await browser.ask('POST', '/keys', { body: { name: 'ci', limits } })
  const { key, secret } = createdKeyReply.parse(made.json)
  await browser.ask('POST', '/keys', { body: { name: 'no limits' } })

  const before = limitsReply.parse((await browser.get('/limits')).json)
  t.match(before.limits, [
    { scope: 'account', kind: 'requests_per_minute', limit: 100, used: 0, left: 100, keyId: null },
    { scope: 'key', kind: 'requests_per_minute', limit: 60, used: 0, keyName: 'ci' },
    { scope: 'key', kind: 'usd_per_day', limit: 5_000_000_000, used: 0, resetsAtMs: null },
  ])
  t.equal(before.limits.length, 3, 'no limit that is shared, and no key without limits')

  const body = { model: 'gpt-5.4-mini', messages: [{ role: 'user', content: 'Name a colour.' }] }
  const reply = await stage.gateway.chat(body, { headers: { authorization: `Bearer ${secret}` } })
  t.equal(reply.status, 200)
  await reply.arrayBuffer()
  const after = limitsReply.parse((await browser.get('/limits')).json)
  const [account, requests, budget] = after.limits
  t.match([account?.used, requests?.used], [1, 1])
  t.ok((budget?.used ?? 0) > 0 && budget?.keyId === key.id, 'money is used')
  t.equal(budget?.resetsAtMs, Math.ceil(after.nowMs / DAY_MS) * DAY_MS, 'until midnight UTC')
  for (const { limit, used, left } of after.limits) t.equal(used + left, limit)

  const { store } = stage
  await store.transact({
    accountId: key.accountId,
    nowMs: 1,
    decide: ({ account: own }) =>
      own === null
        ? { refuse: 'absent' }
        : { write: { account: { ...own, limits: { nanoUsdPerMonth: 7e9 } }, audit: [] } },
  })
  const own = limitsReply.parse((await browser.get('/limits')).json)
  t.match(
    own.limits.find(({ kind }) => kind === 'usd_per_month'),
    { scope: 'account', limit: 7e9, used: budget?.used },
    "the account's own",
  )
})

void t.test('limits are shown for one account that the user may see', async (t) => {
  const stage = await startStage(t)
  const ada = await stage.account('ada@example.com')
  await stage.store.ledger.settle(aRow(ada.id))
  const owner = await stage.signedIn('bob@example.com')
  const admin = await stage.signedIn('root@example.com', 'max', 'admin')
  t.equal((await owner.get(`/limits?account=${ada.id}`)).status, 404)
  t.equal((await admin.get(`/limits?account=${ada.id}`)).status, 200)
  t.match(await admin.get('/limits?account=all'), { status: 400, error: { field: 'account' } })
})
