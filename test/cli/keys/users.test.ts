/**
 * Goal: `sluice users` and `sluice members` create users, give and take roles, and record each change;
 * accounts get names and parents.
 * Method: the commands' actions on a real store.
 */
import t from 'tap'
import { isPassword } from '../../../src/accounts/password.js'
import { command as accounts } from '../../../src/cli/accounts.js'
import { reporting } from '../../../src/cli/exit-status.js'
import { command as members } from '../../../src/cli/members.js'
import { UsageError } from '../../../src/cli/command.js'
import { command as users } from '../../../src/cli/users.js'
import { newSession, runOn, type TestSession } from '../session.js'

/** Runs one command line on the session's store. Returns the exit status. */
function run(session: TestSession, line: string): Promise<number> {
  const [name, ...args] = line.split(' ')
  const command = name === 'users' ? users : name === 'members' ? members : accounts
  return reporting(session.terminal, () => runOn(session, command, args))
}

async function actions(session: TestSession): Promise<string[]> {
  const page = { accountId: null, after: null, limit: 50 }
  return (await session.store.auditTrail.page(page)).map(({ action }) => action).reverse()
}

void t.test('users: create, set-role, disable, list', async (t) => {
  const session = await newSession(t)
  const { store } = session
  t.equal(await run(session, 'users create --email Ada@x.org --role auditor --json'), 0)
  const made = JSON.parse(session.output()[0] ?? '') as Record<string, string>
  t.match(made, { id: /^usr_/, email: 'ada@x.org', role: 'auditor', state: 'invited' })
  const ada = await store.users.byEmail('ada@x.org')
  t.ok(isPassword(ada?.passwordHash ?? '', made['password'] ?? ''))
  session.input = 'correct horse battery\n'
  t.equal(await run(session, 'users create --email bob@x.org --password-stdin'), 0)
  t.notMatch(session.output().join('\n'), /horse/)
  t.equal(await run(session, 'users create --email bob@x.org'), 1)
  t.match(session.errors().join('\n'), /A user with this e-mail address exists/)

  t.equal(await run(session, 'users set-role --email bob@x.org --role admin'), 0)
  t.match(session.output(), [/^usr_.* \(bob@x\.org\): role admin$/])
  t.equal((await store.users.byEmail('bob@x.org'))?.role, 'admin')
  t.equal(await run(session, 'users set-role --email ada@x.org --role none'), 0)
  t.equal(await run(session, 'users disable --email ada@x.org'), 0)
  t.match(await store.users.byEmail('ada@x.org'), { role: null, disabled: true })
  t.equal(await run(session, 'users set-role --email eve@x.org --role admin'), 1)
  t.match(session.errors().join('\n'), /no user has the e-mail address "eve@x.org"/)
  session.output()
  t.equal(await run(session, 'users list --json'), 0)
  t.match(JSON.parse(session.output().join('\n')), [
    { email: 'ada@x.org', role: null, disabled: true },
    { email: 'bob@x.org', role: 'admin', disabled: false },
  ])
  t.same(await actions(session), ['user.create', 'user.create', 'user.role', 'user.role', 'user.disable'])
  for (const line of [
    'users set-role --email a@x.org --role owner',
    'users create --email a@x.org --role none',
  ]) {
    await t.rejects(run(session, line), UsageError)
  }
})

void t.test('members: set, list, remove', async (t) => {
  const session = await newSession(t)
  const { store } = session
  t.equal(await run(session, 'accounts create --name research --plan pro'), 0)
  t.equal(await run(session, 'members set --account research --email Ada@x.org --role owner'), 0)
  t.match(session.output().at(-1), 'ada@x.org: owner of research')
  t.equal(await run(session, 'members set --account research --email ada@x.org --role viewer'), 0)
  session.output()
  t.equal(await run(session, 'members list --account research --json'), 0)
  t.match(JSON.parse(session.output().join('\n')), [
    { account: 'research', email: 'ada@x.org', role: 'viewer', state: 'invited' },
  ])
  t.equal(await run(session, 'members remove --account research --email ada@x.org'), 0)
  t.equal(await run(session, 'members remove --account research --email ada@x.org'), 1)
  const account = await store.accountByName('research')
  t.same(await store.membersOf(account?.id ?? ''), [])
  t.equal(await run(session, 'members list --account nowhere'), 1)
  t.match(session.errors().join('\n'), /no account has the name, id or e-mail address "nowhere"/)
  t.same((await actions(session)).slice(1), [
    'user.create',
    'member.create',
    'member.change',
    'member.remove',
  ])
  await t.rejects(run(session, 'members set --account a --email b@x.org --role admin'), UsageError)
})

void t.test('accounts: names, parents and a second account of a user', async (t) => {
  const session = await newSession(t)
  const { store } = session
  t.equal(await run(session, 'accounts create --email Ada.Lovelace@x.org --plan pro'), 0)
  t.match(session.output().join('\n'), /^name {6}ada-lovelace$/m)
  t.equal(await run(session, 'accounts create --email ada.lovelace@y.org --plan pro'), 0)
  t.match(session.output().join('\n'), /^name {6}ada-lovelace-2$/m)
  t.equal(await run(session, 'accounts create --name acme'), 0)
  const line = 'accounts create --name team --plan pro --parent acme --email ada.lovelace@x.org'
  t.equal(await run(session, line), 0)
  const [acme, team] = [await store.accountByName('acme'), await store.accountByName('team')]
  t.match(acme, { plan: 'starter' })
  t.match(team, { parentId: acme?.id })
  t.match(await store.memberOf(team?.id ?? '', 'ada.lovelace@x.org'), { role: 'owner' })

  t.equal(await run(session, 'accounts set-parent --account ada-lovelace --parent team'), 0)
  t.match(await store.accountByName('ada-lovelace'), { parentId: team?.id })
  t.equal(await run(session, 'accounts set-parent --account acme --parent ada-lovelace'), 1)
  t.match(session.errors().join('\n'), /below this account/)
  t.equal(await run(session, 'accounts set-parent --account ada-lovelace --parent none'), 0)
  t.equal((await store.accountByName('ada-lovelace'))?.parentId, undefined)
  for (const name of ['Acme', 'a-', 'a_b', 'x'.repeat(64)]) {
    t.equal(await run(session, `accounts create --name ${name} --plan pro`), 1)
    t.match(session.errors().join('\n'), /1 to 63 characters/)
  }
  t.equal(await run(session, 'accounts create --name acme --plan pro'), 1)
  t.match(session.errors().join('\n'), /name "acme" is in use/)
  t.equal(await run(session, 'accounts create --name x --parent nowhere --plan pro'), 1)
})
