/**
 * Goal: a long list of keys is shown by page, older keys are loaded on demand, and a search finds all keys.
 * Method: a real gateway with more keys than a page has, and a real Chromium.
 */
import t from 'tap'
import { aKey } from '../../store/contract/sample-records.js'
import { launch, open, SKIP } from './browser.js'
import { PASSWORD, startStage } from '../fixtures/stage.js'

t.setTimeout(180_000)

void t.test('older keys are loaded on demand', { skip: SKIP }, async (t) => {
  const stage = await startStage(t)
  const account = await stage.account('ada@example.com', 'max')
  const count = 230
  for (let at = 0; at < count; at += 1) {
    await stage.store.createKey(aKey(account.id, { name: `service ${at}.` }), null)
  }
  const { page, complaints } = await open(await launch(t))
  await page.goto(`${stage.origin}/dashboard/keys`)
  await page.getByLabel('E-mail').fill('ada@example.com')
  await page.getByLabel('Password').fill(PASSWORD)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  const names = page.locator('tbody .cell-name')
  const more = page.getByRole('button', { name: 'Older keys' })
  await more.waitFor()
  t.equal(await names.count(), 100, 'a page')
  for (const shown of [200, 230]) {
    await more.click()
    await names.nth(shown - 1).waitFor()
    t.equal(await names.count(), shown)
  }
  t.equal(await more.count(), 0, 'the list has ended')
  t.equal(new Set(await names.allInnerTexts()).size, count, 'each key once')

  await page.getByLabel('Search keys').fill('service 3.')
  await page.getByText('service 229.').waitFor({ state: 'detached' })
  await page.getByText('service 3.', { exact: true }).waitFor()
  t.same(await names.allInnerTexts(), ['service 3.'], 'the search looks at all pages')
  t.strictSame(complaints, [])
})
