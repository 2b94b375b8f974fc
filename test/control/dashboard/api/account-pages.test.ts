/**
 * Goal: the tree of accounts adds up, an owner sees and limits the accounts below within the parent's limits,
 * and an administrator creates accounts with a name and a parent, and sets any limit.
 * Method: a gateway with three levels of accounts and requests in each; both stores.
 */
import { putKey } from '../../../helpers/store-changes.js'
import t, { type Test } from 'tap'
import type { Account } from '../../../../src/accounts/account.js'
import { createAccount } from '../../../../src/accounts/changes/change-accounts.js'
import { createUser, setMember } from '../../../../src/accounts/members.js'
import {
  accountPageReply,
  accountTreeReply,
  createdAccountReply,
  sessionReply,
} from '../../../../src/control/dashboard/schema/schema.js'
import { startRedis } from '../../../helpers/redis.js'
import { aKey } from '../../../store/contract/sample-records.js'
import { aRow, PASSWORD, startStage, type Browser, type Stage } from '../../../dashboard/fixtures/stage.js'
import { knownHash } from '../../../helpers/password.js'

interface Cast extends Stage {
  readonly admin: Browser
  /** Owns `acme`. */
  readonly lead: Browser
  /** Owns `acme-search`. */
  readonly search: Browser
  readonly accounts: Readonly<Record<string, Account>>
}

async function cast(t: Test, store?: string): Promise<Cast> {
  const stage = await startStage(t, store === undefined ? {} : { store })
  const accounts: Record<string, Account> = {}
  const make = async (name: string, parent?: string): Promise<Account> => {
    const above = parent === undefined ? undefined : accounts[parent]
    const { account } = await createAccount(stage.store, {
      ...{ name, plan: 'max', password: null },
      ...(above === undefined ? {} : { parentId: above.id }),
    })
    accounts[name] = account
    const key = aKey(account.id, { name: `key of ${name}` })
    await putKey(stage.store, key, null)
    await stage.store.ledger.settle(aRow(account.id, { keyId: key.id, costNanoUsd: 1_000_000_001 }))
    return account
  }
  const acme = await make('acme')
  const search = await make('acme-search', 'acme')
  await make('acme-search-ci', 'acme-search')
  await make('other')
  await stage.store.ledger.settle(
    aRow(search.id, { keyId: 'playground', costNanoUsd: 0, status: 502, outcome: 'upstream_failed' }),
  )
  const enter = async (email: string, account: Account): Promise<Browser> => {
    const { user } = await createUser(stage.store, { email, password: PASSWORD, hash: knownHash })
    await setMember(stage.store, { account, user, role: 'owner', nowMs: Date.now(), audit: () => [] })
    const browser = stage.browser()
    const reply = await browser.signIn(email)
    if (reply.status !== 200) throw new Error(reply.text)
    return browser
  }
  const lead = await enter('lead@example.com', acme)
  const searchOwner = await enter('search@example.com', search)
  const admin = await stage.signedIn('root@example.com', 'max', 'admin')
  return { ...stage, admin, lead, search: searchOwner, accounts }
}

async function treeOf(browser: Browser, query = '') {
  return accountTreeReply.parse((await browser.get(`/account-tree${query}`)).json)
}

async function check(t: Test, store?: string): Promise<void> {
  const scene = await cast(t, store)
  const { admin, lead, search } = scene

  await t.test('a row is the account and all below it', async (t) => {
    const { rows, sum } = await treeOf(admin)
    const acme = rows.find(({ name }) => name === 'acme')
    t.match(acme, {
      ...{ children: 1, requests: 4, failed: 1, costNanoUsd: 3_000_000_003, liveKeys: 3 },
      ...{ members: 2, budgetNanoUsd: null, above: [] },
      itself: { requests: 1, costNanoUsd: 1_000_000_001, liveKeys: 1, members: 1 },
    })
    t.equal(sum.costNanoUsd, 4_000_000_004, 'the roots add up')
    const below = await treeOf(admin, '?parent=acme')
    t.match(below.rows, [{ name: 'acme-search', above: ['acme'], requests: 3, liveKeys: 2, members: 1 }])
    const [child] = below.rows
    t.equal((child?.costNanoUsd ?? 0) + (acme?.itself?.costNanoUsd ?? 0), acme?.costNanoUsd)
    const found = await treeOf(admin, '?search=search%40example')
    t.same(
      found.rows.map(({ name }) => name),
      ['acme-search'],
      'by the address of a member',
    )
  })

  await t.test('an owner sees own accounts and those below, and no other', async (t) => {
    t.same(
      (await treeOf(lead)).rows.map(({ name }) => name),
      ['acme'],
    )
    t.same(
      (await treeOf(search)).rows.map(({ name, costNanoUsd }) => [name, costNanoUsd]),
      [['acme-search', 2_000_000_002]],
    )
    const page = accountPageReply.parse((await lead.get('/accounts/acme-search-ci')).json)
    t.match(page, { account: { above: ['acme', 'acme-search'], requests: 1 }, mayChangeLimits: true })
    for (const [browser, name] of [
      [search, 'acme'],
      [lead, 'other'],
      [lead, 'none'],
    ] as const) {
      t.equal((await browser.get(`/accounts/${name}`)).status, 404, name)
      const change = await browser.ask('PUT', `/accounts/${name}/limits`, { body: {} })
      t.equal(change.status, 404, name)
    }
    t.equal((await lead.get('/usage?account=acme-search-ci&by=day&fromMs=0&toMs=1')).status, 200)
    t.equal((await lead.get('/keys?account=acme-search-ci')).status, 200)
    const made = await lead.ask('POST', '/keys?account=acme-search', { body: { name: 'k' } })
    t.equal(made.status, 403, 'new keys are for its own owners')
    t.match(sessionReply.parse((await lead.get('/session')).json).accounts, [
      { name: 'acme', role: 'owner' },
      { name: 'acme-search', role: 'above' },
      { name: 'acme-search-ci', role: 'above' },
    ])
  })

  await t.test('limits: an owner within those above, an administrator all', async (t) => {
    const put = (browser: Browser, name: string, body: object) =>
      browser.ask('PUT', `/accounts/${name}/limits`, { body })
    const dollars = (usd: number) => ({ nanoUsdPerMonth: usd * 1e9 })
    const top = await put(lead, 'acme', dollars(5))
    t.match([top.status, top.error['kind']], [403, 'forbidden'], 'a top account')
    t.equal((await put(admin, 'acme', { ...dollars(100), requestsPerMinute: 10 })).status, 200)
    const above = await put(search, 'acme-search', dollars(101))
    t.match([above.status, above.error['field']], [403, 'nanoUsdPerMonth'])
    t.equal((await put(search, 'acme-search', dollars(60))).status, 200)
    t.equal((await put(lead, 'acme-search-ci', dollars(61))).status, 403, 'the nearest one above')
    t.equal((await put(lead, 'acme-search-ci', dollars(50))).status, 200)
    const { rows } = await treeOf(admin, '?parent=acme')
    t.match(rows, [{ budgetNanoUsd: 60e9 }])
    const page = accountPageReply.parse((await lead.get('/accounts/acme-search-ci')).json)
    t.match(page.inherited, [
      { name: 'acme-search', limits: dollars(60) },
      { name: 'acme', limits: { ...dollars(100), requestsPerMinute: 10 } },
    ])
    const id = scene.accounts['acme-search']?.id ?? ''
    const [entry] = await scene.store.auditTrail.page({ accountId: id, after: null, limit: 1 })
    t.match(entry, {
      ...{ actor: 'search@example.com', action: 'account.change' },
      ...{ before: { limits: {} }, after: { limits: { usd_per_month: 60 } } },
    })
    t.equal((await put(search, 'acme-search', {})).status, 200, 'no limit of its own')
    t.same((await scene.store.accountById(id))?.limits, undefined)
    t.equal((await put(admin, 'acme', { nanoUsdPerMonth: -1 })).status, 400)
  })

  await t.test('an administrator creates an account with a name and a parent', async (t) => {
    const create = (body: object) => admin.ask('POST', '/accounts', { body: { plan: 'pro', ...body } })
    const made = await create({ name: 'acme-docs', parent: 'acme' })
    t.equal(made.status, 201, made.text)
    const { account, link } = createdAccountReply.parse(made.json)
    t.match([account, link], [{ name: 'acme-docs', parent: 'acme' }, null])
    const owned = await create({ name: 'acme-web', parent: 'acme', email: 'new@example.com' })
    t.ok(createdAccountReply.parse(owned.json).link?.url, 'a new owner gets a link')
    const known = await create({ name: 'acme-app', parent: 'acme', email: 'lead@example.com' })
    t.equal(createdAccountReply.parse(known.json).link, null, 'a known one needs none')
    for (const [body, status, field] of [
      [{ name: 'acme-docs' }, 409, 'name'],
      [{ name: 'Not A Name' }, 400, 'name'],
      [{ name: 'x', parent: 'none' }, 400, 'parent'],
      [{ name: 'y', parent: 'acme-search-ci-x' }, 400, 'parent'],
      [{}, 400, 'name'],
    ] as const) {
      const refused = await create(body)
      t.match([refused.status, refused.error['field']], [status, field], JSON.stringify(body))
    }
    t.equal((await lead.ask('POST', '/accounts', { body: { name: 'z', plan: 'pro' } })).status, 403)
  })
}

void t.test('SQLite', (t) => check(t))
void t.test('Redis', async (t) => {
  const redis = await startRedis(t)
  await check(t, redis.url())
})
