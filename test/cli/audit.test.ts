/**
 * Goal: `sluice audit export` prints the audit trail with its fixed fields, as JSON lines and CSV.
 * Method: the command's action on a real store, then the built program.
 */
import t from 'tap'
import { createAccount } from '../../src/accounts/changes/change-accounts.js'
import { command as accounts } from '../../src/cli/accounts.js'
import { command as audit } from '../../src/cli/audit.js'
import { UsageError } from '../../src/cli/command.js'
import { configFolder, newSession, runOn, sluice, sluiceHere, type TestSession } from './session.js'

const FIELDS = 'id,at,actor,address,request_id,action,account,target,before,after'.split(',')

function run(session: TestSession, line: string): Promise<number> {
  return runOn(session, audit, line.split(' '))
}

async function withChanges(session: TestSession): Promise<void> {
  for (const line of [
    'create --email ada@x.org --plan starter',
    'set-plan --account ada@x.org --plan pro',
    'create --email bob@x.org --plan max',
    'disable --account bob@x.org',
  ]) {
    await runOn(session, accounts, line.split(' '))
  }
  session.output()
}

void t.test('every change is a line of JSON with the fixed fields, newest first', async (t) => {
  const session = await newSession(t)
  await withChanges(session)
  t.equal(await run(session, 'export --format jsonl'), 0)
  const lines = session.output().join('\n').split('\n')
  const entries = lines.map((line) => JSON.parse(line) as Record<string, unknown>)
  for (const entry of entries) t.same(Object.keys(entry), FIELDS)
  const bob = await session.store.accountByEmail('bob@x.org')
  t.match(entries, [
    {
      at: /^\d{4}-\d\d-\d\dT.*Z$/,
      actor: /^command line \(.+\)$/,
      address: null,
      request_id: null,
      action: 'account.disable',
      account: 'bob@x.org',
      target: bob?.id,
      before: { disabled: false },
      after: { disabled: true },
    },
    { action: 'account.create', account: 'bob@x.org', before: null, after: { plan: 'max' } },
    { action: 'account.plan', before: { plan: 'starter' }, after: { plan: 'pro' } },
    { action: 'account.create', account: 'ada@x.org' },
  ])
})

void t.test('CSV has a line of names, and JSON in before and after', async (t) => {
  const session = await newSession(t)
  await withChanges(session)
  t.equal(await run(session, 'export --format csv --account bob@x.org'), 0)
  const [head, ...rows] = session.output().join('\n').split('\n')
  t.equal(head, FIELDS.join(','))
  t.equal(rows.length, 2)
  t.match(rows[0], /,account\.disable,bob@x\.org,acc_\w+,"\{""disabled"":false\}","\{""disabled"":true\}"$/)
  t.match(rows[1], /,account\.create,bob@x\.org,acc_\w+,,"\{.*""email""/)
})

void t.test('the time selects, also over several pages', async (t) => {
  const session = await newSession(t)
  const { account } = await createAccount(session.store, {
    email: 'ada@x.org',
    plan: 'max',
    password: null,
  })
  const startMs = Date.parse('2026-01-01T00:00:00Z')
  for (let at = 0; at < 1_200; at += 1) {
    await session.store.auditTrail.add({
      id: `entry-${String(at).padStart(5, '0')}`,
      atMs: startMs + at * 60_000,
      accountId: at === 7 ? 'acc_gone' : account.id,
      actor: 'ada@x.org',
      action: 'session.sign-in',
      target: account.id,
      detail: at === 3 ? 'an earlier version' : '',
      address: '10.0.0.1',
    })
  }
  const lines = async (options: string) => {
    t.equal(await run(session, `export --format jsonl ${options}`.trim()), 0)
    const text = session.output().join('\n')
    return text === '' ? [] : text.split('\n').map((line) => JSON.parse(line) as { id: string })
  }
  t.equal((await lines('')).length, 1_200)
  const some = await lines('--since 2026-01-01T00:03:00Z --until 2026-01-01T00:08:00Z')
  t.match(some, [
    { id: 'entry-00007', account: 'acc_gone', before: null, after: null },
    { id: 'entry-00006', account: 'ada@x.org', address: '10.0.0.1' },
    { id: 'entry-00005' },
    { id: 'entry-00004' },
    { id: 'entry-00003', after: { detail: 'an earlier version' } },
  ])
  t.equal(some.length, 5)
  t.same(await lines('--since 1h'), [])
})

void t.test('wrong usage is reported, and the program works', async (t) => {
  const session = await newSession(t)
  await t.rejects(run(session, 'export'), UsageError)
  await t.rejects(run(session, 'export --format xml'), UsageError)
  await t.rejects(run(session, 'list --format csv'), { message: /needs one of: export/ })
  const { good } = configFolder(t)
  const create = ['accounts', 'create', '--config', good, '--email', 'ada@x.org', '--plan', 'pro']
  t.match(await sluiceHere(create), { status: 0 })
  t.match(await sluice(['audit', 'export', '--config', good, '--format', 'jsonl']), {
    status: 0,
    out: /"action":"account\.create","account":"ada@x\.org"/,
    err: '',
  })
  t.match(await sluiceHere(['audit', 'export', '--config', good]), { status: 2, err: /--format/ })
  t.match(await sluiceHere(['audit', '--help']), { status: 0, out: /Usage: sluice audit export/ })
})
