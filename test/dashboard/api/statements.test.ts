/**
 * Goal: a statement and the sums by the tree of accounts are those of the account that may see them, as JSON
 * and as CSV.
 * Method: entries are put into the ledger; an owner, another owner and an administrator ask.
 */
import t from 'tap'
import { statementReply, usageReply } from '../../../src/dashboard/server/schema/schema.js'
import { aRow, startStage } from '../fixtures/stage.js'

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
  const file = await ada.get('/statements/2026-11?format=csv')
  t.match(file.text, /^account,key,key_id,model,requests,.*\r\n/)
  t.match(file.headers.get('content-type'), /text\/csv/)
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
