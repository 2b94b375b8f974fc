/**
 * Goal: no user gets the keys or the workloads of an account by making one with its name first, and what was
 * permitted for one account is not done to another.
 * Method: names that users and tokens of accounts give, documents for accounts that others made, and accounts
 * that appear between the plan and its transaction.
 */
import { moveAccount } from '../../helpers/store-changes.js'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Account } from '../../../src/accounts/account.js'
import { createAccount } from '../../../src/accounts/changes/change-accounts.js'
import { createKey } from '../../helpers/keys.js'
import { command } from '../../../src/cli/apply/apply.js'
import { digestOf } from '../../../src/accounts/key-secret.js'
import { permissions } from '../../../src/control/admin/apply.js'
import { sees } from '../../../src/control/admin/token-access.js'
import { readDocuments } from '../../../src/control/admin/documents.js'
import { planApply, runApply } from '../../../src/control/admin/plan-and-apply.js'
import { arrayOf, isObject, type JsonValue } from '../../../src/base/json.js'
import { openStore } from '../../../src/store/open-store.js'
import { argvOf, exitStatus } from '../../cli/session.js'
import { onBothStores, startAdmin, textOf, type AdminStage } from './admin-stage.js'

const KEY_DIGEST = 'c'.repeat(64)

async function ran(values: Readonly<Record<string, string | boolean | string[]>>) {
  const out: string[] = []
  const err: string[] = []
  const terminal = {
    out: (line: string) => void out.push(line),
    err: (line: string) => void err.push(line),
    ready: () => Promise.resolve(),
    input: () => Promise.resolve(''),
  }
  const status = await exitStatus(command(undefined, terminal), argvOf(values))
  return { status, out: out.join('\n'), err: err.join('\n') }
}

onBothStores(t, 'an account that apply did not make is refused, or adopted', async (t, settings) => {
  const stage = await startAdmin(t, settings)
  const { store, gateway } = stage
  const targets = [
    { name: 'finance', target: { config: gateway.configFile } },
    { name: 'sales', target: { server: gateway.origin, token: stage.token } },
  ]
  for (const { name, target } of targets) {
    const wish = { name, email: `owner@${name}.example`, plan: 'starter', password: { none: true } } as const
    const { account } = await createAccount(store, wish)
    await createKey(store, { plans: gateway.plans, account, name: 'hers' })
    const file = join(gateway.folder, `${name}.yaml`)
    writeFileSync(
      file,
      `kind: Key\nmetadata: { name: ci, account: ${name} }\nspec: { secret_sha256: ${name === 'sales' ? 'a'.repeat(64) : 'b'.repeat(64)} }\n---\nkind: Account\nmetadata: { name: ${name} }\nspec: { plan: pro }\n`,
    )
    for (const more of [{}, { prune: true, yes: true }, { 'dry-run': true }]) {
      const refused = await ran({ file: [file], ...target, ...more })
      t.equal(refused.status, 1, refused.out)
      t.match(refused.err, new RegExp(`:6:19: account ${name} exists, and apply did not make it`))
      t.match(refused.err, `its keys: hers; its members: owner@${name}.example (owner); its parent: none`)
    }
    t.equal((await store.accountByName(name))?.plan, 'starter')
    t.equal(await store.keyByName(account.id, 'ci'), null)
    const adopted = await ran({ file: [file], ...target, adopt: true, json: true })
    t.equal(adopted.status, 0, adopted.err)
    t.match(JSON.parse(adopted.out), {
      change: [
        {
          name,
          changes: { plan: ['starter', 'pro'], 'labels.managed-by': [null, 'apply'] },
          adopts: { keys: ['hers'], members: [`owner@${name}.example (owner)`], parent: null },
        },
      ],
    })
    t.match(await ran({ file: [file], ...target }), { status: 0, out: /0 created, 0 changed/ })
    t.match(await store.accountByName(name), { labels: { 'managed-by': 'apply' } })
  }
})

onBothStores(t, 'names that users and tokens of accounts give are of another form', async (t, settings) => {
  const more = `${settings.more ?? ''}\ndashboard: { self_sign_up: true }\n`
  const stage = await startAdmin(t, { ...settings, more })
  const { ask, store, gateway } = stage
  const signedUp = await fetch(`${gateway.origin}/dashboard/api/sign-up`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-sluice-csrf': '1', origin: gateway.origin },
    body: JSON.stringify({ email: 'finance@visitor.example', password: 'correct horse battery staple' }),
  })
  t.equal(signedUp.status, 200, await signedUp.text())
  t.equal(await store.accountByName('finance'), null)
  t.match(await store.accountByEmail('finance@visitor.example'), { name: 'self--finance' })
  const team = await ask('PUT', '/accounts/team', { body: {} })
  const token = await stage.makeToken(['accounts:write', 'keys:write'], textOf(team, 'id'))
  const direct = await ask('PUT', '/accounts/finance', { token, body: { parent: 'team' } })
  t.match(direct, { status: 400, json: { kind: 'invalid_field', field: 'name' } })
  const documents = (name: string) => [{ kind: 'Account', metadata: { name }, spec: { parent: 'team' } }]
  const applied = await ask('POST', '/apply', { token, body: { documents: documents('finance') } })
  t.match(applied, { status: 400, text: /starts with \\"team--\\"/ })
  t.match(await ask('POST', '/apply', { token, body: { documents: documents('team--finance') } }), {
    status: 200,
    json: { create: [{ name: 'team--finance' }], applied: true },
  })
  t.equal((await ask('PUT', '/accounts/finance', { body: {} })).status, 201)
})

/** A plan of a token of `team` for a new account with a key and a member. */
async function planOfTeam(stage: AdminStage, team: Account, adopt: boolean) {
  const { store, gateway } = stage
  const wish: JsonValue[] = [
    { kind: 'Account', metadata: { name: 'team--new' }, spec: { parent: 'team' } },
    { kind: 'Key', metadata: { name: 'ci', account: 'team--new' }, spec: { secret_sha256: KEY_DIGEST } },
    { kind: 'Member', metadata: { name: 'eve@team.example', account: 'team--new' }, spec: { role: 'owner' } },
  ]
  const { objects } = readDocuments(wish, gateway.plans)
  const secret = await stage.makeToken(['accounts:write', 'keys:write'], team.id)
  const token = await store.adminTokens.byDigest(digestOf(secret))
  if (token === null) throw new Error('the token is gone')
  const options = {
    ...{ store, plans: gateway.plans, now: Date.now, objects, adopt, prune: false, managedBy: 'apply' },
    actor: { actor: 'token:team', address: null },
    permissionFor: permissions({ store, now: Date.now }, token),
    view: { sees: (account: Account) => sees({ store }, token, account), levelsAbove: 0 },
  }
  return { options, token, plan: await planApply(options) }
}

onBothStores(t, 'permission holds for the account that the transaction finds', async (t, settings) => {
  const stage = await startAdmin(t, settings)
  const { store } = stage
  const make = async (name: string, parentId?: string): Promise<Account> => {
    const parent = parentId === undefined ? {} : { parentId }
    return (await createAccount(store, { name, plan: 'starter', password: null, ...parent })).account
  }
  const team = await make('team')
  const isUntouched = async (t: Test, { id }: Account): Promise<void> => {
    t.equal(await store.keyByName(id, 'ci'), null)
    t.strictSame(await store.membersOf(id), [])
    t.equal(await store.users.byEmail('eve@team.example'), null, 'no user is made')
  }
  const remove = async (name: string): Promise<void> => {
    t.equal((await stage.ask('DELETE', `/accounts/${name}?purge=true`)).status, 204)
  }
  await t.test('made by an administrator elsewhere', async (t) => {
    for (const adopt of [false, true]) {
      const { options, plan } = await planOfTeam(stage, team, adopt)
      t.match(plan, { faults: [], changes: [{}, {}, {}] })
      const made = await make('team--new')
      const applied = await runApply(options, plan)
      t.match(applied, { changes: [], failures: [{ account: 'team--new', message: /is in use/ }] })
      await isUntouched(t, made)
      await remove('team--new')
    }
  })
  await t.test('made below the account of the token', async (t) => {
    const { options, plan } = await planOfTeam(stage, team, false)
    const made = await make('team--new', team.id)
    t.match(await runApply(options, plan), { failures: [{ message: /apply did not make it/ }] })
    await isUntouched(t, made)
    await remove('team--new')
  })
  await t.test('moved after the plan', async (t) => {
    const first = await planOfTeam(stage, team, false)
    await stage.ask('POST', '/apply', {
      body: { documents: [{ kind: 'Account', metadata: { name: 'team--new' }, spec: { parent: 'team' } }] },
    })
    const made = await store.accountByName('team--new')
    if (made === null) throw new Error('it was not made')
    const { options, plan } = await planOfTeam(stage, team, false)
    t.strictSame(plan.faults, [])
    await moveAccount(store, made.id, null)
    for (const each of [{ options, plan }, first]) {
      t.match(await runApply(each.options, each.plan), { failures: [{ message: /is in use/ }] })
    }
    await isUntouched(t, made)
    await moveAccount(store, made.id, team.id)
    t.match(await runApply(options, plan), { failures: [], changes: [{ kind: 'Member' }, { kind: 'Key' }] })
  })
})

void t.test('the reply of the API names what an account has', async (t) => {
  const stage = await startAdmin(t)
  const store = await openStore(stage.gateway.store)
  t.teardown(() => store.close())
  const documents = [{ kind: 'Account', metadata: { name: 'test' }, spec: {} }]
  const refused = await stage.ask('POST', '/apply', { body: { documents } })
  t.match(refused, { status: 400, json: { field: 'documents[0].metadata.name', detail: /its keys: test;/ } })
  const planned = await stage.ask('POST', '/apply', { body: { documents, adopt: true, dry_run: true } })
  t.equal(planned.status, 200)
  const [change] = arrayOf(planned.json['change'])
  t.match(isObject(change) ? change : {}, { adopts: { keys: ['test'] } })
})

onBothStores(t, 'faults of a token tell nothing about accounts that it does not see', async (t, settings) => {
  const { ask, store, makeToken } = await startAdmin(t, settings)
  for (const [name, parent] of [
    ['top', null],
    ['mid', 'top'],
    ['bottom', 'mid'],
    ['team', null],
    ['team--a', 'team'],
    // In the form of the names that the token gives, and elsewhere.
    ['team--x', 'bottom'],
  ] as const) {
    t.equal((await ask('PUT', `/accounts/${name}`, { body: { parent } })).status, 201, name)
  }
  const team = await store.accountByName('team')
  const token = await makeToken(['accounts:write', 'keys:write'], team?.id)
  const account = (name: string, parent: string) => [
    { kind: 'Account', metadata: { name }, spec: { parent } },
  ]
  const secret_sha256 = 'd'.repeat(64)
  const key = (name: string) => [
    { kind: 'Key', metadata: { name: 'ci', account: name }, spec: { secret_sha256 } },
  ]
  const member = (name: string) => {
    return [
      { kind: 'Member', metadata: { name: 'eve@team.example', account: name }, spec: { role: 'owner' } },
    ]
  }
  const about = async (documents: (name: string) => object[], name: string) => {
    const { status, text } = await ask('POST', '/apply', { token, body: { documents: documents(name) } })
    t.equal(status, 400, name)
    return text.replaceAll(name, 'NAME').replaceAll(/"(request_id|instance)":"[^"]*"/g, '')
  }
  const forms: [what: string, documents: (name: string) => object[]][] = [
    ['a parent', (parent) => account('team--new', parent)],
    ['a key', key],
    ['a member', member],
    ['an account with its own parent', (name) => account(name, 'team')],
    ['a loop', (name) => [...account('team--new', name), ...account(name, 'team--new')]],
    ['a loop of one', (name) => account(name, name)],
    ['levels', (name) => [...account('team--b', name), ...account('team--c', 'team--b')]],
  ]
  for (const [what, documents] of forms) {
    const absent = await about(documents, 'nowhere')
    for (const name of ['top', 'mid', 'bottom', 'test'])
      t.equal(await about(documents, name), absent, `${what}: ${name}`)
  }
  // A name of its own form that is taken is refused as taken, of any account.
  const taken = await ask('POST', '/apply', { token, body: { documents: account('team--x', 'team--a') } })
  t.match(taken, { status: 400, text: /name \\"team--x\\" is in use/ })
  t.notMatch(taken.text, /loop|levels/)
  for (const documents of [key('team--x'), member('team--x'), account('team--new', 'team--x')]) {
    const refused = await ask('POST', '/apply', { token, body: { documents } })
    t.match(refused, { status: 400, text: /there is no account \\"team--x\\"/ }, JSON.stringify(documents))
  }
})

onBothStores(
  t,
  'the label of what a token of an account applied is not that of the gateway',
  async (t, settings) => {
    const stage = await startAdmin(t, settings)
    const { ask, store } = stage
    const team = await ask('PUT', '/accounts/team', { body: {} })
    const token = await stage.makeToken(['accounts:write', 'keys:write'], textOf(team, 'id'))
    const account = { kind: 'Account', metadata: { name: 'team--ml' }, spec: { parent: 'team' } }
    const key = (secret: string) => {
      return {
        kind: 'Key',
        metadata: { name: 'ci', account: 'team--ml' },
        spec: { secret_sha256: secret.repeat(64) },
      }
    }
    const reserved = await ask('POST', '/apply', { body: { documents: [], managed_by: 'team--apply' } })
    t.match(reserved, { status: 400, json: { field: 'managed_by' } })
    for (const managed_by of ['apply', 'gitops', 'x'.repeat(64)]) {
      const applied = await ask('POST', '/apply', {
        token,
        body: { documents: [account, key('e')], managed_by },
      })
      t.match(applied, { status: 200, json: { applied: true } }, managed_by)
      const again = await ask('POST', '/apply', {
        token,
        body: { documents: [account, key('e')], managed_by },
      })
      t.match(again, { status: 200, json: { unchanged: 2 } }, 'a second run changes nothing')
      // The gateway's documents neither prune nor take over what a token made.
      const others = { documents: [], prune: true, managed_by }
      t.match(await ask('POST', '/apply', { body: others }), { status: 200, json: { remove: [] } }, 'prune')
      const taken = await ask('POST', '/apply', { body: { documents: [account], managed_by } })
      t.match(
        taken,
        { status: 400, text: /team--ml exists, and apply did not make it \(its keys: ci;/ },
        managed_by,
      )
      t.equal((await ask('DELETE', '/accounts/team--ml?purge=true')).status, 204)
    }
    // What the gateway has applied below it keeps its label.
    t.match(await ask('POST', '/apply', { body: { documents: [account] } }), { status: 200 })
    const own = (method: string, path: string, body: unknown) => ask(method, path, { token, body })
    for (const labels of [{ 'managed-by': null }, null, { 'managed-by': 'team--apply' }]) {
      const refused = await own('PATCH', '/accounts/team--ml', { labels })
      t.match(refused, { status: 403, json: { field: 'labels.managed-by' } }, JSON.stringify(labels))
    }
    t.match(await own('PUT', '/accounts/team--ml', { parent: 'team' }), { status: 403 })
    t.equal((await own('PATCH', '/accounts/team--ml', { labels: { a: 'b' } })).status, 200)
    t.match(await own('POST', '/apply', { documents: [account, key('f')], adopt: true }), { status: 200 })
    t.match(await store.accountByName('team--ml'), { labels: { 'managed-by': 'apply' } })
    t.match(await ask('POST', '/apply', { body: { documents: [account] } }), { status: 200 })
  },
)

onBothStores(t, 'a token that is revoked while it applies applies no more', async (t, settings) => {
  const stage = await startAdmin(t, settings)
  const { store } = stage
  const { account: team } = await createAccount(store, { name: 'team', plan: 'starter', password: null })
  const { options, plan, token } = await planOfTeam(stage, team, false)
  t.strictSame(plan.faults, [])
  await store.adminTokens.change(token.id, (stored) => ({ ...stored, revokedAtMs: Date.now() }))
  const applied = await runApply(options, plan)
  t.match(applied, { changes: [], failures: [{ account: 'team--new', message: 'the token has ended' }] })
  t.equal(await store.accountByName('team--new'), null)
  t.equal(await store.users.byEmail('eve@team.example'), null, 'no user is made')
})
