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
import { permissions } from '../../../src/control/admin/apply.js'
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
  const nowMs = Date.now()
  const token = {
    ...{ id: 'tok_1', name: 'team', digest: '', lastFour: '', scopes: [], accountId: team.id },
    ...{ expiresAtMs: nowMs + 1_000_000, createdBy: 'command line', createdAtMs: nowMs },
  }
  const options = {
    ...{ store, plans: gateway.plans, now: Date.now, objects, adopt, prune: false, managedBy: 'apply' },
    actor: { actor: 'token:team', address: null },
    permissionFor: permissions({ store, snapshot: () => gateway.load() }, token),
  }
  return { options, plan: await planApply(options) }
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
