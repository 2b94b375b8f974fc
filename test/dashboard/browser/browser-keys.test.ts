/**
 * Goal: all settings of a key can be changed in the page, and refusals are shown
 * beside the field.
 * Method: a real gateway whose plan has limits, a real Chromium, and the key that the API returns afterwards.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { keysReply } from '../../../src/control/dashboard/schema/schema.js'
import { choose, launch, open, violations } from './browser.js'
import { sixth } from './sixth.js'
import { PASSWORD, startStage } from '../fixtures/stage.js'

t.setTimeout(180_000)

const LIMITS = 'limits: { concurrent: 10, usd_per_day: 2 }'

void t.test('a key is edited', { skip: sixth(2) }, async (t) => {
  const stage = await startStage(t)
  const { configFile } = stage.gateway
  const text = readFileSync(configFile, 'utf8')
  writeFileSync(configFile, text.replace('max_keys: 5', `max_keys: 5, ${LIMITS}`))
  stage.gateway.reload()
  const api = await stage.signedIn('ada@example.com')
  await api.ask('POST', '/keys', { body: { name: 'laptop', limits: { requestsPerMinute: 30 } } })
  const currentKey = async () => keysReply.parse((await api.get('/keys')).json).keys[0]

  const { page, complaints } = await open(await launch(t))
  await page.goto(`${stage.origin}/dashboard/keys`)
  await page.getByLabel('E-mail').fill('ada@example.com')
  await page.getByLabel('Password').fill(PASSWORD)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await page.getByRole('button', { name: 'Actions for laptop' }).click()
  await page.getByRole('menuitem', { name: 'Edit' }).click()
  const dialog = page.getByRole('dialog', { name: 'Edit laptop' })
  t.equal(await dialog.getByLabel('Requests per minute').inputValue(), '30', 'the current value')

  await dialog.getByLabel('Name').fill('ci-runner')
  await choose(dialog, 'Expires', 'in 7 days')
  await choose(dialog, 'Models', 'only some')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await dialog.getByText('Choose at least one model.').waitFor()
  const picker = dialog.getByRole('group', { name: 'Allowed models' })
  await picker.getByLabel('gpt-*').check()
  await picker.getByLabel('Search models').fill('claude-haiku')
  await picker.getByLabel('claude-haiku-4-5', { exact: true }).check()
  await picker.getByLabel('Search models').fill('in-house-*')
  await picker.getByRole('button', { name: 'Add "in-house-*"' }).click()
  await picker.getByText('3 models chosen').waitFor()
  await dialog.getByLabel('Requests per minute').fill('')
  await dialog.getByLabel('Dollars per day (UTC)').fill('2.5')
  const money = dialog.getByLabel('Dollars per day (UTC)')
  // While the value is being entered.
  await dialog.locator('.field.wrong').waitFor()
  t.equal(await money.getAttribute('aria-invalid'), 'true', 'the field at fault')
  t.match(await dialog.locator('.field.wrong').innerText(), /The plan allows \$2 at most/)
  t.strictSame(await violations(page), [], 'axe')
  await dialog.getByRole('button', { name: 'Save' }).click()
  t.match(await currentKey(), { name: 'laptop' }, 'nothing has changed')

  await money.fill('1.5')
  await dialog.getByRole('button', { name: 'Save' }).click()
  await page.getByText(/^Saved\. ci-runner/).waitFor()
  const key = await currentKey()
  t.match(key, { name: 'ci-runner', models: ['gpt-*', 'claude-haiku-4-5', 'in-house-*'] })
  t.strictSame(key?.limits, { nanoUsdPerDay: 1_500_000_000 })
  const days = ((key?.expiresAtMs ?? 0) - Date.now()) / 86_400_000
  t.ok(days > 6.9 && days <= 7, `it ends in ${days} days`)

  await page.getByRole('button', { name: 'Actions for ci-runner' }).click()
  await page.getByRole('menuitem', { name: 'Edit' }).click()
  await choose(page, 'Expires', 'never')
  await choose(page, 'Models', 'all')
  await choose(page, 'Limits', 'of the plan')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  t.match(await currentKey(), { expiresAtMs: null, models: null, limits: {} }, 'and taken back')
  t.strictSame(complaints, [])
})
