/**
 * Goal: a user of several accounts chooses one of them; an owner invites a member with a one-time link and
 * changes the role; what a role may not do is not shown.
 * Method: a real gateway and a real Chromium with a browser context for each person.
 */
import t from 'tap'
import type { Page } from 'playwright-core'
import { createAccount } from '../../../src/accounts/changes/change-accounts.js'
import { createUser, setMember } from '../../../src/accounts/members.js'
import { choose, launch, open, violations, heading } from './browser.js'
import { sixth } from './sixth.js'
import { PASSWORD, startStage } from '../fixtures/stage.js'
import { knownHash } from '../../helpers/password.js'

t.setTimeout(180_000)

const EMAIL = 'grace@example.com'

function links(page: Page): Promise<string[]> {
  return page.getByRole('navigation', { name: 'Pages' }).getByRole('link').allInnerTexts()
}

void t.test('members, invitations and the choice of an account', { skip: sixth(3) }, async (t) => {
  const stage = await startStage(t)
  const { store, origin } = stage
  const { user } = await createUser(store, { email: 'ada@example.com', password: PASSWORD, hash: knownHash })
  for (const [name, role] of [
    ['research', 'owner'],
    ['search', 'viewer'],
  ] as const) {
    const { account } = await createAccount(store, { name, plan: 'pro', password: null })
    await setMember(store, { account, user, role, nowMs: 1, audit: () => [] })
  }
  const chromium = await launch(t)
  const { page, complaints } = await open(chromium)
  await page.goto(`${origin}/dashboard/`)
  await page.getByLabel('E-mail').fill('ada@example.com')
  await page.getByLabel('Password').fill(PASSWORD)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await heading(page, 'Overview').waitFor()
  const ofOwner = await links(page)
  t.ok(
    ['Keys', 'Playground', 'Accounts'].every((name) => ofOwner.includes(name)),
    ofOwner.join(),
  )
  t.notOk(ofOwner.includes('Operations'), 'a page of the gateway')

  const switchTo = async (account: string): Promise<void> => {
    await page.getByRole('button', { name: /^Account: / }).click()
    const options = page.getByRole('listbox').getByRole('option')
    await options.filter({ hasText: 'research' }).waitFor()
    const names = (await options.allInnerTexts()).map((text) => text.split('\n')[0])
    t.same(names, ['research', 'search'])
    await page.getByRole('option', { name: new RegExp(`^${account}`) }).click()
  }
  await switchTo('search')
  await page.getByRole('link', { name: 'Keys', exact: true }).waitFor({ state: 'detached' })
  const ofViewer = await links(page)
  t.notOk(
    ['Keys', 'Playground'].some((name) => ofViewer.includes(name)),
    ofViewer.join(),
  )
  await switchTo('research')

  await page.goto(`${origin}/dashboard/members?account=research`)
  await page.getByRole('link', { name: 'Members', exact: true }).waitFor()
  t.match(page.url(), /\/accounts\/research\?tab=members$/, 'the former address')
  t.same(await violations(page), [], 'axe')
  await page.getByRole('button', { name: 'Add member' }).click()
  const dialog = page.getByRole('dialog', { name: 'Add member' })
  await dialog.getByLabel('E-mail').fill(EMAIL)
  await choose(dialog, 'Role', 'member: own keys, usage')
  await dialog.getByRole('button', { name: 'Add', exact: true }).click()
  await page.getByText('You will not see the link again').waitFor()
  const link = await page.locator('.secret-text').innerText()
  t.same(await violations(page), [], 'axe: the link')
  await page.getByRole('button', { name: 'I have saved it' }).click()
  const row = page.getByRole('table', { name: 'Members' }).getByRole('row', { name: EMAIL })
  t.match(await row.innerText(), /pending[\s\S]*member/)

  const { page: other } = await open(chromium)
  await other.goto(link)
  await other.getByLabel('New password').fill('a horse of another kind')
  await other.getByRole('button', { name: 'Set password' }).click()
  await heading(other, 'Overview').waitFor()
  const ofMember = await links(other)
  t.ok(ofMember.includes('Keys') && !ofMember.includes('Account'), ofMember.join())
  await other.goto(`${origin}/dashboard/accounts`)
  await other.getByText('Accounts is for owners of an account, administrators and auditors').waitFor()
  await other.goto(`${origin}/dashboard/keys`)
  await other.getByRole('button', { name: 'Create key' }).waitFor()

  await page.getByRole('button', { name: `Actions for ${EMAIL}` }).click()
  await page.getByRole('menuitem', { name: 'Remove' }).click()
  await page.getByRole('button', { name: 'Remove', exact: true }).click()
  await row.waitFor({ state: 'detached' })
  await other.goto(`${origin}/dashboard/`)
  await heading(other, 'Sign in').waitFor()
  t.same(complaints, [])
})
