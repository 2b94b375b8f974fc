/**
 * Goal: a team gets a budget in a few clicks, the tree of accounts opens by mouse and by keyboard, and an
 * owner sees the accounts below and may set their budgets within the own one.
 * Method: a real gateway with three levels of accounts, and a real Chromium.
 */
import { putKey } from '../../helpers/store-changes.js'
import t from 'tap'
import { createAccount } from '../../../src/accounts/changes/change-accounts.js'
import { createUser, setMember } from '../../../src/accounts/members.js'
import type { Account } from '../../../src/accounts/account.js'
import { aKey } from '../../store/contract/sample-records.js'
import { aRow, PASSWORD, startStage, type Stage } from '../fixtures/stage.js'
import { launch, open, Task, signIn } from './browser.js'
import { sixth } from './sixth.js'
import { looks } from './looks.js'
import { knownHash } from '../../helpers/password.js'

t.setTimeout(240_000)

const NAMES = ['acme', 'acme-search', 'acme-search-reranker-for-the-european-region', 'acme-support', 'zeta']

async function filled({ store }: Stage): Promise<ReadonlyMap<string, Account>> {
  const accounts = new Map<string, Account>()
  for (const [at, name] of NAMES.entries()) {
    const above = accounts.get(at === 2 ? 'acme-search' : at === 1 || at === 3 ? 'acme' : '')
    const { account } = await createAccount(store, {
      ...{ name, plan: 'max', password: null },
      ...(above === undefined ? {} : { parentId: above.id }),
    })
    accounts.set(name, account)
    const key = aKey(account.id, { name: `${name} key` })
    await putKey(store, key, null)
    for (let day = 0; day < 20; day += 1) {
      const atMs = Date.now() - day * 86_400_000
      const cost = { costNanoUsd: (at + 1) * (20 - day) * 400_000_000 }
      await store.ledger.settle(aRow(account.id, { keyId: key.id, atMs, ...cost }))
    }
  }
  return accounts
}

void t.test('accounts, their budgets and their pages', { skip: sixth(3) }, async (t) => {
  const stage = await startStage(t)
  const { store, origin } = stage
  const accounts = await filled(stage)
  await stage.signedIn('root@example.com', 'max', 'admin')
  const acme = accounts.get('acme')
  if (acme === undefined) throw new Error('no account')
  const { user } = await createUser(store, { email: 'lead@example.com', password: PASSWORD, hash: knownHash })
  await setMember(store, { account: acme, user, role: 'owner', nowMs: Date.now(), audit: () => [] })
  const chromium = await launch(t)
  const { page, complaints } = await open(chromium, { viewport: { width: 1440, height: 900 } })
  await signIn(page, stage, 'root@example.com')
  const tree = page.getByRole('treegrid', { name: 'Accounts' })
  const limitsOf = async (name: string) => (await store.accountByName(name))?.limits

  await t.test('$50 a month for a team', async (t) => {
    const task = new Task(page)
    await task.nav('Accounts')
    await task.click(tree.getByRole('button', { name: 'Set the budget of acme' }))
    const dialog = page.getByRole('dialog', { name: 'Budget of acme' })
    await dialog.getByLabel('Dollars per month (UTC)').fill('50')
    await task.click(dialog.getByRole('button', { name: 'Save' }))
    await page.getByText(/^Saved\./).waitFor()
    task.end(t, 'a budget for a team', 4)
    t.same(await limitsOf('acme'), { nanoUsdPerMonth: 50e9 })
    await tree.getByText(/ of \$50/).waitFor()
  })

  await t.test('the tree opens by keyboard and adds up', async (t) => {
    const row = tree.locator('tbody tr').first()
    await tree.getByRole('link', { name: 'acme', exact: true }).focus()
    await page.keyboard.press('ArrowRight')
    await tree.getByText('(itself)').waitFor()
    await tree.getByRole('link', { name: 'acme-search', exact: true }).waitFor()
    t.equal(await row.getAttribute('aria-expanded'), 'true')
    await tree.getByRole('button', { name: 'Open acme-search' }).click()
    await tree.getByRole('link', { name: /reranker/ }).waitFor()
    t.match(await tree.getByRole('row').last().innerText(), /All accounts/)
    await looks(t, page, 'accounts')
    await tree.getByRole('link', { name: 'acme', exact: true }).focus()
    await page.keyboard.press('ArrowLeft')
    await tree.getByText('(itself)').first().waitFor({ state: 'detached' })
    await page.getByRole('searchbox', { name: 'Search accounts' }).fill('reranker')
    await tree.getByText('acme › acme-search › acme-search-reranker').waitFor()
    t.equal(await tree.getByRole('row').count(), 2, 'head and one row')
  })

  await t.test('the page of an account', async (t) => {
    await page.goto(`${origin}/dashboard/accounts/acme`)
    await page.getByRole('heading', { name: 'Cost in' }).waitFor()
    await page.getByText('Cost by account').waitFor()
    await page.getByRole('treegrid', { name: 'Accounts below acme' }).waitFor()
    await looks(t, page, 'account')
    for (const [tab, text] of [
      ['Keys', 'acme key'],
      ['Members', 'lead@example.com'],
      ['Budget and limits', 'Budget per month (UTC)'],
      ['Activity', 'account.change'],
      ['Settings', 'Edit settings'],
    ] as const) {
      await page.getByLabel('Parts of the account').getByRole('link', { name: tab }).click()
      await page.getByText(text).first().waitFor()
      await looks(t, page, `account ${tab}`)
    }
    await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Usage' }).click()
    await page.getByRole('button', { name: 'Account: acme' }).waitFor()
    t.match(page.url(), /account=acme/, 'the other pages keep the account')
  })

  await t.test('the switcher: type and Enter takes the first match', async (t) => {
    await page.goto(`${origin}/dashboard/usage`)
    await page.getByRole('button', { name: 'Account: All accounts' }).click()
    const field = page.getByRole('combobox', { name: 'Search accounts' })
    await field.fill('supp')
    await page.getByRole('option', { name: /acme-support/ }).waitFor()
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'Account: acme-support' }).waitFor()
    t.match(page.url(), /account=acme-support/)
  })

  await t.test('an account is created with a name and a parent', async (t) => {
    await page.goto(`${origin}/dashboard/accounts`)
    await page.getByRole('button', { name: 'Create account' }).click()
    const dialog = page.getByRole('dialog', { name: 'Create account' })
    await dialog.getByLabel('Name').fill('acme-docs')
    await dialog.getByLabel('Account above').fill('acme')
    await page.getByRole('listbox').getByText('acme', { exact: true }).waitFor()
    await page.keyboard.press('Enter')
    await dialog.getByRole('button', { name: 'Create', exact: true }).click()
    await page.getByText('Created the account acme-docs.').waitFor()
    t.equal((await store.accountByName('acme-docs'))?.parentId, acme.id)
  })

  await t.test('an owner sets a budget below within the own one', async (t) => {
    const { page: other, complaints: others } = await open(chromium)
    await signIn(other, stage, 'lead@example.com')
    await other.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Accounts' }).click()
    const own = other.getByRole('treegrid', { name: 'Accounts' })
    await own.getByRole('link', { name: 'acme-search', exact: true }).waitFor()
    t.equal(await own.getByRole('link', { name: 'zeta' }).count(), 0, 'another account')
    t.equal(await other.getByRole('button', { name: 'Create account' }).count(), 0)
    await own.getByRole('button', { name: 'Set the budget of acme-search', exact: true }).click()
    const dialog = other.getByRole('dialog', { name: 'Budget of acme-search' })
    const field = dialog.getByLabel('Dollars per month (UTC)')
    await field.fill('51')
    await dialog.getByText('acme allows $50').waitFor()
    await dialog.getByRole('button', { name: 'Save' }).click()
    await dialog.getByText(/allows 50 at most/).waitFor()
    await field.fill('40')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await other.getByText(/^Saved\./).waitFor()
    t.same(await limitsOf('acme-search'), { nanoUsdPerMonth: 40e9 })
    await other.goto(`${origin}/dashboard/accounts/acme-search`)
    await other.getByRole('button', { name: 'Edit budget' }).waitFor()
    t.same(others, [])
  })
  t.same(complaints, [])
})
