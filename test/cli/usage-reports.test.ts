/**
 * Goal: reports by the tree of accounts and monthly statements equal the ledger to the nano-dollar, also for
 * revoked keys, purged accounts, moved accounts and pruned entries.
 * Method: entries settled in a store in a temporary folder.
 */
import t from 'tap'
import { createAccount } from '../../src/accounts/changes/change-accounts.js'
import { createKey, revokeKey } from '../helpers/keys.js'
import { command } from '../../src/cli/usage.js'
import { ledgerEntry } from '../ledger/build-entry.js'
import { newSession, runOn } from './session.js'

const NOVEMBER = Date.UTC(2026, 10, 10)

async function scene(t: Parameters<typeof newSession>[0]) {
  const session = await newSession(t)
  const { store, plans } = session
  const plan = { plan: 'pro', role: 'owner', password: null } as const
  const { account: acme } = await createAccount(store, { ...plan, name: 'acme' })
  const team = { ...plan, name: 'research', parentId: acme.id }
  const { account: research } = await createAccount(store, team)
  const { key } = await createKey(store, { plans, account: research, name: 'ci' })
  await revokeKey(store, { accountId: research.id, id: key.id })
  const rows = [
    {
      accountId: research.id,
      accountPath: 'acme/research',
      keyId: key.id,
      costNanoUsd: 3,
      dimensions: 'end_user=ada%20b',
    },
    {
      accountId: research.id,
      accountPath: 'acme/research',
      keyId: key.id,
      costNanoUsd: 4,
      dimensions: 'end_user=bob',
    },
    { accountId: research.id, accountPath: 'other/research', keyId: key.id, costNanoUsd: 50 },
    {
      accountId: acme.id,
      accountPath: 'acme',
      keyId: 'playground',
      costNanoUsd: 1_000_000_001,
      units: 'search=3',
    },
    { accountId: 'acc_gone', accountPath: 'acme/gone', keyId: 'key_gone', costNanoUsd: 7 },
    {
      accountId: 'acc_gone',
      accountPath: 'gone',
      keyId: 'ci/build',
      costNanoUsd: 9,
      labels: 'app=a',
    },
    { accountId: acme.id, keyId: 'playground', costNanoUsd: 11 },
  ]
  for (const [at, row] of rows.entries()) {
    await store.ledger.settle(ledgerEntry(`r${at}`, { atMs: NOVEMBER + at, ...row }))
  }
  await store.ledger.settle(
    ledgerEntry('later', { atMs: Date.UTC(2026, 11), accountPath: 'acme', costNanoUsd: 5 }),
  )
  const run = async (...argv: string[]): Promise<string> => {
    const now = (): number => Date.UTC(2026, 11, 20)
    const status = await runOn(session, (open) => command(open, now), argv)
    const text = session.output().join('\n')
    return status === 0 ? text : `exit ${status}: ${session.errors().join('\n')}`
  }
  return { session, run, keyId: key.id }
}

const PERIOD = ['--since', '2026-11-01', '--until', '2026-12-01']

void t.test('a statement', async (t) => {
  const { session, run, keyId } = await scene(t)
  const of = (account: string) => ['statement', '--account', account, '--month', '2026-11']
  const text = await run(...of('acme'), '--json')
  const statement = JSON.parse(text) as { lines: Record<string, unknown>[]; total: unknown }
  t.match(statement, {
    account: 'acme',
    month: '2026-11',
    total: { requests: 5, cost_nano_usd: 1_000_000_026, cost_usd: '1.000000026' },
  })
  t.match(statement.lines, [
    { account: 'acme', key: 'playground', key_id: 'playground', requests: 2 },
    { account: 'gone', key: null, key_id: 'key_gone', cost_nano_usd: 7 },
    { account: 'research', key: 'ci', key_id: keyId, requests: 2, cost_nano_usd: 7 },
  ])
  const csv = await run(...of('acme'), '--format', 'csv')
  const [head, ...lines] = csv.split('\r\n')
  const columns = 'account,key,key_id,model,requests,input_tokens,output_tokens,cost_nano_usd,cost_usd'
  t.equal(head, `${columns},units`)
  t.match(lines[0], /,search=3$/)
  t.equal(lines.length, 3)
  t.match(await run(...of('acme')), /total +5/)
  const ofUser = [...of('acme'), '--by', 'dimension:end_user']
  const split = JSON.parse(await run(...ofUser, '--json')) as { by: string; lines: Record<string, unknown>[] }
  const shown = split.lines.map(({ key_id: key, group, requests, cost_nano_usd: cost }) => {
    return [key, group, requests, cost]
  })
  t.same(shown, [
    ['playground', '(none)', 2, 1_000_000_012],
    ['key_gone', '(none)', 1, 7],
    [keyId, 'ada b', 1, 3],
    [keyId, 'bob', 1, 4],
  ])
  t.match(split, { by: 'dimension:end_user', total: { cost_nano_usd: 1_000_000_026 } })
  t.match(
    await run(...ofUser, '--format', 'csv'),
    /^account,key,key_id,model,group,requests,.*\r\n.*,ada b,1,/s,
  )
  t.match(await run(...ofUser), /dimension:end_user.*bob/s)
  t.match(await run(...of('gone'), '--json'), /"key": "build"/, 'a purged account')
  t.match(await run(...of('missing')), /^exit 1: .*no account/)
  const retention = { entriesBeforeMs: NOVEMBER + 3, hoursBeforeMs: 0, daysBeforeMs: 0 }
  t.equal(await session.store.ledger.prune(retention), 3)
  t.equal(await run(...of('acme'), '--json'), text, 'the same after entries were pruned')
  const rest = await run(...ofUser)
  t.match(rest, /\(not kept\) +2 /)
  t.match(rest, /total +5/, 'the lines still add up')
})

void t.test('summaries by the tree', async (t) => {
  const { run, keyId } = await scene(t)
  const groups = async (...argv: string[]) => {
    const rows = JSON.parse(await run('summary', ...argv, '--json')) as Record<string, unknown>[]
    return rows.map((row) => `${String(Object.values(row)[0])} ${String(row['cost_nano_usd'])}`)
  }
  t.same(await groups('--by', 'parent', ...PERIOD), ['acme 1000000026', 'other 50', 'gone 9'])
  t.same(await groups('--by', 'root', ...PERIOD), ['acme 1000000026', 'other 50', 'gone 9'])
  t.same(await groups('--by', 'month', '--since', '2026-10-01'), ['2026-11 1000000085', '2026-12 5'])
  t.same(await groups('--by', 'member', ...PERIOD), ['(none) 1000000028', 'test 57'])
  const own = ['--account', 'acme', ...PERIOD]
  t.same(await groups('--by', 'parent', ...own), ['acme 1000000012'])
  t.same(await groups('--by', 'parent', ...own, '--tree'), ['acme 1000000026'])
  const csv = await run('summary', '--by', 'key', '--format', 'csv', ...PERIOD)
  t.match(csv, new RegExp(`^group,requests,failed,input_tokens,.*\r\nplayground,2,[^]*${keyId},3,`))
  t.match(await run('summary', '--by', 'label:app', '--format', 'csv', ...PERIOD), /\r\na,1,/)
  t.match(await run('summary', '--by', 'account', '--format', 'csv', ...PERIOD), /gone,2,/)
  t.match(await run('summary', '--by', 'parent', ...PERIOD), /^parent +requests/)
})

void t.test('wrong usage', async (t) => {
  const session = await newSession(t)
  for (const argv of [
    ['statement', '--account', 'a'],
    ['statement', '--account', 'a', '--month', '2026-13'],
    ['statement', '--account', 'a', '--month', '2026-11', '--format', 'jsonl'],
    ['statement', '--account', 'a', '--month', '2026-11', '--by', 'key'],
    ['summary', '--by', 'team'],
    ['summary', '--by', 'upstream', '--format', 'csv'],
    ['summary', '--by', 'parent', '--format', 'csv', '--json'],
    ['summary', '--by', 'parent', '--status', '429'],
    ['summary', '--by', 'parent', '--tree'],
    ['summary', '--by', 'model', '--tree', '--account', 'a'],
  ]) {
    await t.rejects(runOn(session, command, argv), { name: 'UsageError' }, argv.join(' '))
  }
})
