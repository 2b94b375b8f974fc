/**
 * Goal: a long list of keys is shown page by page, and a search finds all keys.
 * Method: a real gateway with more keys than a page has, and a real Chromium.
 */
import { putKey } from '../../helpers/store-changes.js'
import t from 'tap'
import { aKey } from '../../store/contract/sample-records.js'
import { launch, open } from './browser.js'
import { sixth } from './sixth.js'
import { PASSWORD, startStage } from '../fixtures/stage.js'

t.setTimeout(180_000)

void t.test('a long list has pages', { skip: sixth(3) }, async (t) => {
  const stage = await startStage(t)
  const account = await stage.account('ada@example.com', 'max')
  const count = 230
  for (let at = 0; at < count; at += 1) {
    await putKey(stage.store, aKey(account.id, { name: `service ${at}.` }), null)
  }
  const { page, complaints } = await open(await launch(t))
  await page.goto(`${stage.origin}/dashboard/keys`)
  await page.getByLabel('E-mail').fill('ada@example.com')
  await page.getByLabel('Password').fill(PASSWORD)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  const names = page.locator('tbody .strong')
  await page.getByText(`${count} keys · page 1`).waitFor()
  const seen = new Set(await names.allInnerTexts())
  t.equal(seen.size, 50, 'a page')
  for (const number of [2, 3, 4, 5]) {
    await page.getByRole('button', { name: 'Next' }).click()
    await page.getByText(`${count} keys · page ${number}`).waitFor()
    await page.locator('.list.stale').waitFor({ state: 'detached' })
    for (const name of await names.allInnerTexts()) seen.add(name)
  }
  t.equal(await page.getByRole('button', { name: 'Next' }).isEnabled(), false, 'the list has ended')
  await page.reload()
  for (const number of [4, 3, 2, 1]) {
    await page.getByRole('button', { name: 'Previous' }).click()
    await page.getByText(`${count} keys · page ${number}`).waitFor()
  }
  t.notMatch(page.url(), /after=/, 'back to the first page after a reload of the last')
  t.equal(seen.size, count, 'each key once')

  await page.getByLabel('Search keys').fill('service 3.')
  await page.getByText('1 key', { exact: true }).waitFor()
  t.same(await names.allInnerTexts(), ['service 3.'], 'the search looks at all pages')
  t.strictSame(complaints, [])
})
