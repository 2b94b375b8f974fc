/**
 * Goal: a secret that is pasted into any search of the page is never in an address, in the history or in a
 * request; a key of this gateway opens, found by its digest.
 * Method: a real gateway and a real Chromium, whose requests are recorded.
 */
import t from 'tap'
import { newAdminSecret } from '../../../src/accounts/key-secret.js'
import { createdKeyReply } from '../../../src/control/dashboard/schema/schema.js'
import { aRow, PASSWORD, startStage } from '../fixtures/stage.js'
import { launch, open } from './browser.js'
import { sixth } from './sixth.js'

t.setTimeout(180_000)

const PAGES = ['/keys', '/requests', '/usage', '/accounts', '/audit', '/users', '/models']

void t.test('pasted secrets', { skip: sixth(5) }, async (t) => {
  const stage = await startStage(t)
  const owner = await stage.signedIn('ada@example.com')
  const made = createdKeyReply.parse((await owner.ask('POST', '/keys', { body: { name: 'laptop' } })).json)
  const { secret } = made
  // Usage has a search once there is a request.
  const ada = await stage.store.accountByEmail('ada@example.com')
  await stage.store.ledger.settle(aRow(ada?.id ?? '', { atMs: Date.now() - 60_000 }))
  await stage.account('root@example.com', 'max', 'admin')
  const { page, complaints } = await open(await launch(t))
  const sent: string[] = []
  page.on('request', (request) => sent.push(`${request.url()} ${request.postData() ?? ''}`))
  await page.goto(`${stage.origin}/dashboard/`)
  await page.getByLabel('E-mail').fill('root@example.com')
  await page.getByLabel('Password').fill(PASSWORD)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  const drawer = page.getByRole('dialog', { name: 'laptop' })
  const foreign = [newAdminSecret(), `sk-proj-${'a1B2c3D4'.repeat(6)}`]

  for (const path of PAGES) {
    await page.goto(`${stage.origin}/dashboard${path}?account=all`)
    const field = page.getByRole('searchbox').first()
    for (const other of foreign) {
      await field.fill(other)
      await page.getByText('It was not sent.').first().waitFor()
      t.equal(await field.inputValue(), '', `${path}: the field is empty`)
    }
    await field.fill(`api_key="${secret}"`)
    await drawer.waitFor()
    t.match(page.url(), /\/keys\?account=acc_\w+&key=key_\w+$/, path)
  }
  await page.goto(`${stage.origin}/dashboard/models`)
  await page.getByRole('heading', { name: 'Models', level: 1 }).waitFor()
  await page.keyboard.press('Control+k')
  const palette = page.getByRole('dialog', { name: 'Find' })
  await palette.getByRole('searchbox').fill(secret)
  await drawer.waitFor()
  await palette.waitFor({ state: 'detached' })
  await page.goto(`${stage.origin}/dashboard/usage`)
  await page.getByRole('button', { name: 'Account: All accounts' }).click()
  await page.getByRole('combobox', { name: 'Search accounts' }).fill(secret)
  await drawer.waitFor()

  const texts = [secret, ...foreign]
  t.same(
    sent.filter((text) =>
      texts.some((each) => text.includes(each) || text.includes(encodeURIComponent(each))),
    ),
    [],
    'no request has one',
  )
  t.same(complaints, [])
})
