/**
 * Goal: a statement and the sums by the tree of accounts are those of the account that may see them, as JSON
 * and as CSV.
 * Method: entries are put into the ledger; an owner, another owner and an administrator ask.
 */
import t from 'tap'
import { statementReply, usageReply } from '../../../../src/control/dashboard/schema/schema.js'
import { aRow, startStage } from '../../../dashboard/fixtures/stage.js'

const NOVEMBER = Date.UTC(2026, 10, 5)

void t.test('statements', async (t) => {
  const stage = await startStage(t)
  const ada = await stage.signedIn('ada@example.com')
  const bob = await stage.signedIn('bob@example.com')
  const own = await stage.store.accountByEmail('ada@example.com')
  if (own === null) throw new Error('no account')
  const { ledger } = stage.store
  const row = { atMs: NOVEMBER, keyId: 'playground' }
  await ledger.settle(aRow(own.id, { ...row, accountPath: own.name, costNanoUsd: 3 }))
  const below = { accountPath: `${own.name}/team`, costNanoUsd: 4, labels: 'app=a' }
  await ledger.settle(aRow('acc_below', { ...row, ...below }))
  await ledger.settle(aRow(own.id, { ...row, atMs: Date.UTC(2026, 9), accountPath: own.name }))

  const statement = statementReply.parse((await ada.get('/statements/2026-11')).json)
  t.match(statement, {
    account: own.name,
    month: '2026-11',
    lines: [
      { account: own.name, key: 'playground', cost_nano_usd: 3 },
      { account: 'team', cost_nano_usd: 4 },
    ],
    total: { requests: 2, cost_nano_usd: 7, cost_usd: '0.000000007' },
  })
  t.match(statement, {
    accounts: [
      { account: 'team', cost_nano_usd: 4 },
      { account: own.name, cost_nano_usd: 3 },
    ],
    ...{ line_count: 2, account_count: 2, next: null },
  })
  const pageOf = async (query: string, browser = ada) =>
    statementReply.parse((await browser.get(`/statements/2026-11?${query}`)).json)
  const first = await pageOf('limit=1')
  t.match(first, { lines: [{ account: own.name }], next: '1', line_count: 2, total: { requests: 2 } })
  t.match(await pageOf('limit=1&after=1'), { lines: [{ account: 'team' }], next: null })
  const found = await pageOf('search=TEAM')
  t.match(found, { lines: [{ account: 'team' }], line_count: 1, account_count: 1 })
  t.equal(found.total.cost_nano_usd, 7, 'the total is that of the whole')
  const admin = await stage.signedIn('root@example.com', 'max', 'admin')
  await ledger.settle(aRow('acc_other', { ...row, accountPath: 'other', costNanoUsd: 50 }))
  const all = await pageOf('account=all', admin)
  t.match(all, { account: null, line_count: 3, total: { requests: 3, cost_nano_usd: 57 } })
  t.equal(
    all.accounts.reduce((sum, each) => sum + each.cost_nano_usd, 0),
    57,
    'the accounts add up to the total',
  )
  const whole = await admin.get('/statements/2026-11?account=all&format=csv')
  t.equal(whole.text.trimEnd().split('\r\n').length, 4, 'the file has all lines')
  t.match(whole.headers.get('content-disposition'), 'statement-all-2026-11.csv')
  t.equal((await ada.get('/statements/2026-11?account=all')).status, 404)
  const file = await ada.get('/statements/2026-11?format=csv')
  t.match(file.text, /^account,key,key_id,model,requests,.*\r\n/)
  t.match(file.headers.get('content-type'), /text\/csv/)
  const split = await pageOf('by=user')
  t.match(split, { lines: [{ account: own.name, group: '(none)' }, {}], total: { cost_nano_usd: 7 } })
  t.match((await ada.get('/statements/2026-11?by=user&format=csv')).text, /^account,key,key_id,model,group,/)
  t.equal((await ada.get('/statements/2026-11?by=key')).status, 400)
  t.equal((await ada.get('/statements/2026-13')).status, 404)
  t.equal((await bob.get(`/statements/2026-11?account=${own.id}`)).status, 404)
  t.match(statementReply.parse((await bob.get('/statements/2026-11')).json), { lines: [] })

  const range = `fromMs=${Date.UTC(2026, 9)}&toMs=${Date.UTC(2026, 11)}&by=day`
  const months = usageReply.parse((await ada.get(`/usage?${range}&group=month`)).json)
  t.match(months.report, [{ group: '2026-10' }, { group: '2026-11', requests: 1 }])
  const byKey = await ada.get(`/usage?${range}&group=key&format=csv`)
  t.match(byKey.text, /^group,requests,failed,.*\r\nplayground,2,/)
  t.equal((await ada.get(`/usage?${range}&group=team`)).status, 400)
})
