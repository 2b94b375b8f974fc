/**
 * Goal: `sluice accounts` creates, changes and lists accounts, and its errors name the problem.
 * Method: the command's actions on a real store, then the built program with a configuration.
 */
import t from 'tap'
import { isPassword } from '../../../src/accounts/password.js'
import { command } from '../../../src/cli/accounts.js'
import { UsageError } from '../../../src/cli/command.js'
import { reporting } from '../../../src/cli/exit-status.js'
import { configFolder, newSession, runOn, sluice, sluiceHere, type TestSession } from '../session.js'

/** Runs one command line on the session's store. Returns the exit status. */
function run(session: TestSession, line: string): Promise<number> {
  return reporting(session.terminal, () => runOn(session, command, line.split(' ')))
}

void t.test('create generates a password and prints it once', async (t) => {
  const session = await newSession(t)
  t.equal(await run(session, 'create --email Ada@x.org --plan pro --json'), 0)
  const [line = ''] = session.output()
  const shown: unknown = JSON.parse(line)
  t.match(shown, { id: /^acc_/, email: 'ada@x.org', plan: 'pro', password: /^[0-9A-Za-z]{20}$/ })

  t.equal(await run(session, 'create --email bob@x.org --plan max'), 0)
  const password = /password {2}(\S+)/.exec(session.output().join('\n'))?.[1] ?? ''
  const bob = await session.store.users.byEmail('bob@x.org')
  t.ok(isPassword(bob?.passwordHash ?? '', password), 'the shown one is the right one')
  t.match(session.errors().join('\n'), /only now/)
})

void t.test('only create --admin creates an administrator', async (t) => {
  const session = await newSession(t)
  await run(session, 'create --email root@x.org --plan max --admin --json')
  await run(session, 'create --email ada@x.org --plan max')
  t.match(await session.store.users.byEmail('root@x.org'), { role: 'admin' })
  t.match(await session.store.users.byEmail('ada@x.org'), { role: null })
})

void t.test('create reads a password from standard input and does not print it', async (t) => {
  const session = await newSession(t)
  for (const [at, end] of ['', '\n', '\r\n'].entries()) {
    session.input = `  my pass word ${end}`
    t.equal(await run(session, `create --email a${at}@x.org --plan pro --password-stdin`), 0)
    t.notMatch(session.output().join('\n'), /pass/)
    const user = await session.store.users.byEmail(`a${at}@x.org`)
    t.ok(isPassword(user?.passwordHash ?? '', '  my pass word '), 'only the end is cut')
  }
  session.input = 'short\n'
  t.equal(await run(session, 'create --email b@x.org --plan pro --password-stdin'), 1)
  t.match(session.errors().join('\n'), /password.*8 characters/)
  t.equal(await session.store.accountByEmail('b@x.org'), null)
})

void t.test('create refuses an e-mail address that is invalid or already used', async (t) => {
  const session = await newSession(t)
  t.equal(await run(session, 'create --email ada@x.org --plan pro'), 0)
  session.output()
  t.equal(await run(session, 'create --email ADA@x.org --plan pro'), 1)
  t.equal(await run(session, 'create --email no-address --plan pro'), 1)
  t.match(session.errors().slice(-2), [/e-mail address exists/, /no e-mail address/])
  t.same(session.output(), [])
})

void t.test('set-plan accepts an id or an e-mail address', async (t) => {
  const session = await newSession(t)
  await run(session, 'create --email ada@x.org --plan starter')
  const ada = await session.store.accountByEmail('ada@x.org')
  const lines = [`--account ${ada?.id ?? ''} --plan pro`, '--account ADA@x.org --plan starter']
  for (const line of [...lines, '--email ada@x.org --plan max']) {
    t.equal(await run(session, `set-plan ${line}`), 0)
    const plan = line.split(' ').at(-1)
    t.equal((await session.store.accountByEmail('ada@x.org'))?.plan, plan)
    t.match(session.output().at(-1), new RegExp(`plan ${plan ?? ''}`))
  }
  session.errors()
  t.equal(await run(session, 'set-plan --account acc_x --plan pro'), 1)
  t.match(session.errors().join('\n'), /"acc_x".*accounts list/)
})

void t.test('plans of any name: those of the configuration and no others', async (t) => {
  const session = await newSession(t)
  const plans = { 'team-xl': { priceUsd: 9, maxKeys: 1 }, free: { priceUsd: 0, maxKeys: null } }
  const own = { ...session, plans }
  t.equal(await run(own, 'create --email ada@x.org --plan team-xl'), 0)
  t.match(session.output().join('\n'), /plan +team-xl/)
  t.equal(await run(own, 'set-plan --account ada@x.org --plan free'), 0)
  t.match(session.output(), [/plan free, any number of keys/])
  await t.rejects(run(own, 'create --email bob@x.org --plan starter'), {
    message: 'The value of "--plan" is not valid. Use team-xl, free.',
  })
})

void t.test('disable and enable switch an account, with entries in the audit trail', async (t) => {
  const session = await newSession(t)
  await run(session, 'create --email ada@x.org --plan starter')
  const ada = await session.store.accountByEmail('ada@x.org')
  session.output()
  for (const line of ['disable --account ada@x.org', `disable --account ${ada?.id ?? ''}`]) {
    t.equal(await run(session, line), 0)
    t.same(session.output(), [`${ada?.id ?? ''} (ada@x.org): disabled`])
  }
  t.equal((await session.store.accountByEmail('ada@x.org'))?.disabled, true)
  t.equal(await run(session, 'enable --email ada@x.org'), 0)
  t.equal((await session.store.accountByEmail('ada@x.org'))?.disabled, false)
  const page = await session.store.auditTrail.page({ accountId: null, after: null, limit: 9 })
  t.match(page, [
    { action: 'account.enable', before: { disabled: true }, after: { disabled: false } },
    { action: 'account.disable', actor: /^command line \(/, target: ada?.id },
    { action: 'account.create', before: null, after: { email: 'ada@x.org', plan: 'starter' } },
  ])
  t.equal(page.length, 3, 'a second one has none')
  t.equal(await run(session, 'disable --account unknown@x.org'), 1)
  t.match(session.errors().join('\n'), /unknown@x\.org/)
})

void t.test('list prints every account and no password hash', async (t) => {
  const session = await newSession(t)
  t.equal(await run(session, 'list'), 0)
  t.same(session.output(), [])
  t.match(session.errors().join('\n'), /no accounts yet/)
  await run(session, 'create --email ada@x.org --plan starter')
  await run(session, 'create --email bob@x.org --plan max')
  session.output()
  t.equal(await run(session, 'list'), 0)
  const text = session.output().join('\n')
  t.match(text, /ada@x\.org +starter/)
  t.match(text, /bob@x\.org +max/)
  t.equal(await run(session, 'list --json'), 0)
  const json = session.output().join('\n')
  const shown: unknown = JSON.parse(json)
  t.match(shown, [{ email: 'ada@x.org', plan: 'starter' }, { email: 'bob@x.org' }])
  t.notMatch(text + json, /argon2/)
})

void t.test('wrong usage is reported with its problem', async (t) => {
  const session = await newSession(t)
  const wrong: [string, RegExp][] = [
    ['', /create, set-plan, disable, enable, list/],
    ['remove', /create, set-plan, disable, enable, list/],
    ['create extra --email a@x.org', /only options/],
    ['list --plan pro', /does not accept --plan/],
    ['set-plan --account a --plan pro --json', /does not accept --json/],
    ['create --plan pro', /--email/],
    ['create --email a@x.org', /--plan/],
    ['create --email a@x.org --plan gold', /starter, pro, max/],
    ['set-plan --plan pro', /--account/],
    ['set-plan --account a --email b@x.org --plan pro', /not both/],
    ['disable', /--account/],
    ['enable --account a --plan pro', /does not accept --plan/],
  ]
  for (const [line, why] of wrong) {
    const error: unknown = await Promise.resolve()
      .then(() => run(session, line))
      .catch((cause: unknown) => cause)
    t.ok(error instanceof UsageError, line)
    t.match(error, { message: why })
  }
})

void t.test('the program exits with its statuses and prints configuration errors', async (t) => {
  const { good, bad } = configFolder(t)
  const create = ['accounts', 'create', '--email', 'ada@x.org', '--plan', 'pro']
  const created = await sluice([...create, '--config', good, '--password-stdin'], 'long enough\n')
  t.match(created, { status: 0, out: /account +acc_/, err: '' })
  t.match(await sluiceHere([...create, '--config', good]), { status: 1, err: /e-mail address exists/ })
  t.match(await sluiceHere(['accounts', 'list', '--config', good]), { status: 0, out: /ada@x\.org/ })
  t.match(await sluiceHere(['accounts', 'list', '--config', bad]), {
    status: 1,
    err: /bad\.yaml:\d+:\d+: stores/,
  })
  t.match(await sluiceHere(['accounts', 'list']), { status: 2, err: /--config/ })
  t.match(await sluiceHere(['accounts', 'list', '--nonsense']), { status: 2, err: /nonsense/ })
  t.match(await sluiceHere(['accounts', '--help']), { status: 0, out: /Usage: sluice accounts/ })
})
