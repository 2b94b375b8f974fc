/**
 * Goal: an account with the name of a purged one reads nothing of the purged one, and what the purged one
 * used stays readable by its id.
 * Method: an account with another below it uses the gateway, is purged and made again; then its usage,
 * statement, requests and audit lines are read with each of the ways that select an account.
 */
import t from 'tap'
import { createAccount } from '../../../src/accounts/changes/change-accounts.js'
import { objectOf } from '../../../src/base/json.js'
import { statementOf } from '../../../src/dashboard/server/statements-and-reports.js'
import { aRow, Browser, PASSWORD } from '../fixtures/stage.js'
import { onBothStores, startAdmin, type Reply } from './admin-stage.js'

const ADMIN = ['accounts:read', 'accounts:write', 'usage:read', 'audit:read']

/** A text or number of an object. */
function shown(value: unknown, name: string): string {
  const found = objectOf(value)[name]
  return typeof found === 'string' || typeof found === 'number' ? String(found) : ''
}

/** The ids, groups or names of the items of a reply, and their costs. */
function listed({ json }: Reply, name: string): string[] {
  const list = [json['items'], json['rows'], json['lines']].find(Array.isArray) ?? []
  return list.map((item) => `${shown(item, name)} ${shown(item, 'cost_nano_usd')}`).sort()
}

onBothStores(t, 'the name of a purged account', async (t, settings) => {
  const { ask, store, makeToken, gateway } = await startAdmin(t, settings)
  const root = await makeToken(ADMIN)
  const idOf = async (name: string) => (await store.accountByName(name))?.id ?? ''
  const use = async (accountId: string, accountPath: string, costNanoUsd: number) => {
    const atMs = Date.now()
    await store.ledger.settle(aRow(accountId, { atMs, accountPath, costNanoUsd, keyId: 'playground' }))
  }
  const put = (name: string, parent: string | null) => {
    const body = { plan: 'max', ...(parent === null ? {} : { parent }) }
    return ask('PUT', `/accounts/${name}`, { body, token: root })
  }
  await put('finance', null)
  await put('web', 'finance')
  const [former, web] = [await idOf('finance'), await idOf('web')]
  await use(former, 'finance', 1)
  await use(web, 'finance/web', 2)
  t.equal((await ask('PATCH', '/accounts/web', { body: { parent: null }, token: root })).status, 200)
  t.equal((await ask('DELETE', '/accounts/finance?purge=true', { token: root })).status, 204)

  const month = new Date().toISOString().slice(0, 7)
  const byName = await ask('GET', `/accounts/finance/statements/${month}`, { token: root })
  t.same(listed(byName, 'account'), ['finance 1', 'web 2'], 'the name is free')

  await put('finance', null)
  const id = await idOf('finance')
  t.not(id, former)
  const own = await makeToken(ADMIN, id)
  const span = 'by=account&from=2020-01-01T00:00:00Z&to=2100-01-01T00:00:00Z'
  const reads = async (token: string, account: string) => {
    const query = account === '' ? '' : `&account=${account}&tree=true`
    const [byAccount, byDay, requests, statement] = await Promise.all([
      ask('GET', `/usage?${span}${query}`, { token }),
      ask('GET', `/usage?${span.replace('by=account', 'by=day')}${query}`, { token }),
      ask('GET', `/requests?limit=100${query}`, { token }),
      ask('GET', `/accounts/${account === '' ? 'finance' : account}/statements/${month}`, { token }),
    ])
    const total = shown(byDay.json['total'], 'cost_nano_usd')
    const items = listed(requests, 'account_path')
    return { usage: listed(byAccount, 'group'), total, items, statement: listed(statement, 'account') }
  }
  const nothing = { usage: [], total: '0', items: [], statement: [] }
  t.same(await reads(own, ''), nothing)
  t.same(await reads(own, 'finance'), nothing)
  t.same(await reads(root, 'finance'), nothing)

  await put('shop', 'finance')
  await use(id, 'finance', 10)
  await use(await idOf('shop'), 'finance/shop', 20)
  const fresh = ['finance 10', 'shop 20']
  for (const [token, account] of [
    [own, ''],
    [own, 'finance'],
    [root, 'finance'],
  ] as const) {
    const found = await reads(token, account)
    t.match(found, { usage: fresh, total: '30', statement: fresh })
    t.same(found.items, ['finance 10', 'finance/shop 20'])
  }
  const left = await reads(root, former)
  t.match(left, { total: '1', usage: ['finance 1', 'web 2'], statement: ['finance 1', 'web 2'] }, 'by the id')
  t.equal((await ask('GET', `/usage?${span}&account=${former}`, { token: own })).status, 404)
  t.equal((await ask('GET', `/accounts/${former}/statements/${month}`, { token: own })).status, 404)
  t.match(await statementOf(store, 'finance', month), { total: { cost_nano_usd: 30 } })

  const login = { email: 'root@example.com', plan: 'max', role: 'admin', password: PASSWORD } as const
  await createAccount(store, login)
  const browser = new Browser(gateway.origin)
  await browser.signIn('root@example.com')
  const page = await browser.get('/requests?account=all&parent=finance')
  t.equal(Array.isArray(page.json['rows']) ? page.json['rows'].length : -1, 2, 'the list of requests')
})
