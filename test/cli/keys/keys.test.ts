/**
 * Goal: `sluice keys` creates, lists and revokes keys; a secret is printed once, and nothing else on
 * standard output.
 * Method: the command's actions on a real store, then the built program with a configuration.
 */
import { userInfo } from 'node:os'
import t, { type Test } from 'tap'
import { createAccount } from '../../../src/accounts/changes/change-accounts.js'
import { digestOf, hasValidForm } from '../../../src/accounts/key-secret.js'
import { UsageError } from '../../../src/cli/command.js'
import { command } from '../../../src/cli/keys.js'
import { reporting } from '../../../src/cli/exit-status.js'
import { configFolder, newSession, runOn, sluice, sluiceHere, type TestSession } from '../session.js'
import { allAccounts, allKeys } from '../../helpers/lists.js'

function run(session: TestSession, line: string): Promise<number> {
  return reporting(session.terminal, () => runOn(session, command, line.split(' ')))
}

async function withAda(t: Test): Promise<TestSession> {
  const session = await newSession(t)
  const ada = { email: 'ada@x.org', plan: 'starter', password: 'long enough' } as const
  await createAccount(session.store, ada)
  return session
}

void t.test('create prints only the secret of the new key', async (t) => {
  const session = await withAda(t)
  t.equal(await run(session, 'create --account ada@x.org --name ci'), 0)
  const output = session.output()
  t.equal(output.length, 1)
  const [secret = ''] = output
  t.ok(hasValidForm(secret))
  t.match(await session.store.findKey(digestOf(secret)), {
    key: { name: 'ci' },
    account: { email: 'ada@x.org' },
  })
  const errors = session.errors().join('\n')
  t.match(errors, /key_\w+ "ci" of ada@x\.org.*only now/)
  t.notOk(errors.includes(secret))
})

void t.test('a key above the limit is refused with the plan and its limit', async (t) => {
  const session = await withAda(t)
  for (const name of ['a', 'b']) {
    t.equal(await run(session, `create --account ada@x.org --name ${name}`), 0)
  }
  session.output()
  session.errors()
  t.equal(await run(session, 'create --account ada@x.org --name c'), 1)
  t.same(session.output(), [])
  const text = session.errors().join('\n')
  t.match(text, /plan "starter" allows no more keys/)
  t.match(text, /Revoke/)
  t.match(text, /set-plan/)
})

void t.test('list prints masked secrets, and a revocation is final', async (t) => {
  const session = await withAda(t)
  t.equal(await run(session, 'list --account ada@x.org'), 0)
  t.match(session.errors(), [/no keys yet/])
  await run(session, 'create --account ada@x.org --name ci')
  const [secret = ''] = session.output()
  t.equal(await run(session, 'list --account ada@x.org --json'), 0)
  const [json = ''] = session.output()
  const shown = JSON.parse(json) as [{ id: string }]
  const entry = { name: 'ci', prefix: secret.slice(0, 8), last_four: secret.slice(-4) }
  t.match(shown, [{ ...entry, revoked_at: null }])
  t.notOk(json.includes(digestOf(secret)), 'no digest')

  const [{ id }] = shown
  t.equal(await run(session, `revoke --account ada@x.org --key ${id}`), 0)
  t.same(session.output(), [`${id}: revoked`])
  t.equal(await run(session, `revoke --account ada@x.org --key ${id}`), 0, 'again is no error')
  t.ok((await session.store.findKey(digestOf(secret)))?.key.revokedAtMs)
  session.output()
  t.equal(await run(session, 'list --account ada@x.org'), 0)
  const text = session.output().join('\n')
  t.match(text, new RegExp(`${id} .*ci .*revoked 20`))
  t.notOk(text.includes(secret))
})

void t.test('an unknown account or key is refused by name', async (t) => {
  const session = await withAda(t)
  const lines = ['create --name x', 'list', 'revoke --key key_x', 'rotate --key key_x']
  for (const line of [...lines, 'edit --rpm 1 --key key_x']) {
    t.equal(await run(session, `${line} --account unknown@x.org`), 1)
    t.match(session.errors().join('\n'), /"unknown@x\.org".*accounts list/)
  }
  t.equal(await run(session, 'revoke --account ada@x.org --key key_x'), 1)
  t.match(session.errors().join('\n'), /no key with this id/)
  t.equal(await run(session, `create --account ada@x.org --name ${'x'.repeat(101)}`), 1)
  t.match(session.errors().join('\n'), /1 to 100/)
})

void t.test('a failure of the store is reported with its reason', async (t) => {
  const session = await withAda(t)
  await session.store.close()
  t.equal(await run(session, 'list --account ada@x.org'), 1)
  t.match(session.errors().join('\n'), /key store.*closed/)
})

void t.test('wrong usage is reported with its problem', async (t) => {
  const session = await withAda(t)
  const wrong: [string, RegExp][] = [
    ['', /generate, create, list, edit, rotate, raise, revoke/],
    ['remove', /generate, create, list, edit, rotate, raise, revoke/],
    ['edit --account ada@x.org --name x', /--key/],
    ['edit --account ada@x.org --key key_x', /needs an option/],
    ['rotate --account ada@x.org --key key_x --rpm 5', /does not accept --rpm/],
    ['rotate --account ada@x.org --key key_x --overlap soon', /"--overlap" is not valid/],
    ['rotate --account ada@x.org --key key_x --overlap 31d', /"--overlap" is not valid/],
    ['list more --account a', /only options/],
    ['list', /--account/],
    ['create --account ada@x.org', /--name/],
    ['create --account ada@x.org --name x --json', /does not accept --json/],
    ['revoke --account ada@x.org', /--key/],
  ]
  for (const [line, why] of wrong) {
    const error: unknown = await Promise.resolve()
      .then(() => run(session, line))
      .catch((cause: unknown) => cause)
    t.ok(error instanceof UsageError, line)
    t.match(error, { message: why })
  }
})

void t.test('the program writes only the secret to standard output', async (t) => {
  const { good } = configFolder(t)
  const options = ['--config', good, '--account', 'ada@x.org']
  const create = ['accounts', 'create', '--config', good, '--email', 'ada@x.org', '--plan', 'pro']
  t.match(await sluiceHere(create), { status: 0 })
  const created = await sluice(['keys', 'create', ...options, '--name', 'ci'])
  t.match(created, { status: 0, out: /^sk_[0-9A-Za-z]{44}\n$/ })
  const models = ['--name', 'mini', '--models', 'gpt-5.4-minni,claude-sonnet-4-5']
  t.match(await sluiceHere(['keys', 'create', ...options, ...models]), {
    status: 0,
    out: /^sk_/,
    err: /"gpt-5.4-minni" \(did you mean "gpt-5.4-mini"\?\)\n.*"claude-sonnet-4-5"\n/,
  })
  t.match(await sluiceHere(['keys', 'list', ...options]), { status: 0, out: /^KEY .*\nkey_\w+ .* ci / })
  t.match(await sluiceHere(['keys', 'list', '--account', 'a']), { status: 2, err: /--config/ })
  t.match(await sluiceHere(['keys', '--help']), { status: 0, out: /Usage: sluice keys/ })
})

void t.test('create sets the limits, expiry and models of its options', async (t) => {
  const session = await withAda(t)
  const limits =
    '--rpm 60 --tpm 100000 --concurrent 4 --usd-per-day 2.5 --usd-per-week 9 --usd-per-month 0.000000001'
  const others = '--expires 30d --models gpt-5.5,claude-* --allow-tools web_search_preview,mcp'
  const line = `create --account ada@x.org --name ci ${limits} ${others}`
  t.equal(await run(session, line), 0)
  const [secret = ''] = session.output()
  const key = (await session.store.findKey(digestOf(secret)))?.key
  t.match(key, {
    limits: {
      requestsPerMinute: 60,
      tokensPerMinute: 100_000,
      concurrent: 4,
      nanoUsdPerDay: 2_500_000_000,
      nanoUsdPerWeek: 9_000_000_000,
      nanoUsdPerMonth: 1,
    },
    models: ['gpt-5.5', 'claude-*'],
    allowTools: ['web_search', 'mcp'],
  })
  const lastsMs = (key?.expiresAtMs ?? 0) - (key?.createdAtMs ?? 0)
  t.ok(Math.abs(lastsMs - 30 * 86_400_000) < 5_000)
  await run(session, 'list --account ada@x.org --json')
  t.match(JSON.parse(session.output()[0] ?? ''), [
    {
      expires_at: /^20/,
      models: ['gpt-5.5', 'claude-*'],
      allow_tools: ['web_search', 'mcp'],
      limits: { requests_per_minute: 60, usd_per_day: 2.5, usd_per_week: 9, usd_per_month: 1e-9 },
    },
  ])
  await run(session, 'list --account ada@x.org')
  t.match(session.output().join('\n'), /expires 20\d\d-/)
  for (const [list, tools] of [
    ['*', ['*']],
    ['', []],
  ] as const) {
    const other = await withAda(t)
    await run(other, `create --account ada@x.org --name tools --allow-tools=${list}`)
    const made = (await other.store.findKey(digestOf(other.output()[0] ?? '')))?.key
    t.same(made?.allowTools, tools)
  }
})

void t.test('create warns of unknown models and makes the key', async (t) => {
  const session = await withAda(t)
  const warned = async (models: string): Promise<string[]> => {
    t.equal(await run(session, `create --account ada@x.org --name ci --models ${models}`), 0)
    t.match(session.output(), [/^sk_/])
    return session.errors().slice(0, -1)
  }
  t.same(await warned('gpt-5.5,gpt-5.5-2026-04-23,claude-*,gpt-*,llama-9,llama-*,native:one,*'), [])
  t.same(await warned('gpt-5.4-minni,gtp-*,claude-sonnet-5,native:on'), [
    'sluice: warning: --models: neither a route nor the catalogue has the model "gpt-5.4-minni" (did you mean "gpt-5.4-mini"?)',
    'sluice: warning: --models: neither a route nor the catalogue has the model "gtp-*"',
    'sluice: warning: --models: no upstream has the name "on" (did you mean "one"?)',
  ])
})

void t.test('an invalid limit is refused by name, and no key is created', async (t) => {
  const session = await withAda(t)
  const wrong = [
    '--rpm 0',
    '--rpm 1.5',
    '--tpm many',
    '--concurrent 1000001',
    '--usd-per-day -1',
    '--usd-per-week ten',
    '--usd-per-month 1e3',
    '--expires yesterday',
    '--expires 2020-01-01',
    '--expires 0d',
    '--models a,,b',
    '--models a*b',
    '--allow-tools web_search,,mcp',
    '--allow-tools web/search',
  ]
  for (const option of wrong) {
    const [name = ''] = option.split(' ')
    await t.rejects(
      async () => run(session, `create --account ada@x.org --name x ${option}`.replace(' -1', '=-1')),
      {
        name: 'UsageError',
        message:
          option.includes('2020') || option.endsWith('0d')
            ? /expire in the past/
            : new RegExp(`"${name}" is not`),
      },
      option,
    )
  }
  const [ada] = await allAccounts(session.store)
  t.same(await allKeys(session.store, ada?.id ?? ''), [])
})

void t.test('labels are set with --label, printed by list, and refused if invalid', async (t) => {
  const session = await withAda(t)
  const command = 'create --account ada@x.org --name ci --label team=research --label env=ci=1'
  t.equal(await run(session, command), 0)
  const [secret = ''] = session.output()
  t.match(await session.store.findKey(digestOf(secret)), {
    key: { labels: { env: 'ci=1', team: 'research' } },
  })
  t.equal(await run(session, 'list --account ada@x.org'), 0)
  t.match(session.output().join('\n'), /env=ci=1 team=research/)
  t.equal(await run(session, 'list --account ada@x.org --json'), 0)
  t.match(JSON.parse(session.output().join('')), [{ labels: { team: 'research' } }])
  for (const bad of ['team', '=x', 'Team=x', 'team=', 'team=a,b', 'a=1 --label a=2']) {
    const line = `create --account ada@x.org --name x --label ${bad}`
    await t.rejects(run(session, line), UsageError, bad)
  }
})

void t.test('each change has an entry in the audit trail', async (t) => {
  const session = await withAda(t)
  t.equal(await run(session, 'create --account ada@x.org --name ci'), 0)
  const [ada] = await allAccounts(session.store)
  const [key] = await allKeys(session.store, ada?.id ?? '')
  const revoke = `revoke --account ada@x.org --key ${key?.id ?? ''}`
  for (const line of [revoke, revoke]) t.equal(await run(session, line), 0)
  const entries = await session.store.auditTrail.page({ accountId: null, after: null, limit: 9 })
  const expected = {
    accountId: ada?.id,
    actor: `command line (${userInfo().username})`,
    target: key?.id,
    address: null,
  }
  t.match(entries, [
    { ...expected, action: 'key.revoke', detail: /^ci \(sk_/ },
    { ...expected, action: 'key.create', detail: /^ci \(sk_/ },
  ])
  t.equal(entries.length, 2, 'a second revocation has none')
})
