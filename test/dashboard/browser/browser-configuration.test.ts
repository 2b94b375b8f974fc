/**
 * Goal: an administrator sees the generations with author and reason, what one changed, and rolls back with a
 * reason; the page shows the settings that wait for a restart and why a file is refused. Others do not see
 * the page.
 * Method: the real program with two workers, so that the page's worker sends requests to the primary, and a
 * real Chromium.
 */
import { dirname, join } from 'node:path'
import t from 'tap'
import { createAccount } from '../../../src/accounts/changes/change-accounts.js'
import { openStore } from '../../../src/store/open-store.js'
import { EMAIL, fileText, PASSWORD, startServe, until } from '../../process/program.js'
import { launch, open, Task, violations } from './browser.js'
import { sixth } from './sixth.js'

t.setTimeout(240_000)

const ADMIN = 'root@example.com'

void t.test('the page of the configuration', { skip: sixth(2) }, async (t) => {
  const served = await startServe(t)
  const store = await openStore(`sqlite:${join(dirname(served.file), 'data', 'sluice.db')}`)
  const wanted = { email: ADMIN, plan: 'max', role: 'admin', password: PASSWORD } as const
  await createAccount(store, wanted)
  await store.close()
  const text = fileText(served.emulator)
  const generation = async (): Promise<unknown> =>
    (JSON.parse((await served.ops('/config')).text) as Record<string, unknown>)['generation']
  served.write(`# author: ada@example.com\n${text}on_loss: reject\n`)
  await until(async () => (await generation()) === 2)

  const chromium = await launch(t)
  const { page, complaints } = await open(chromium)
  page.setDefaultTimeout(60_000)
  const signIn = async (email: string): Promise<void> => {
    await page.goto(`http://127.0.0.1:${served.port}/dashboard/configuration`)
    await page.getByLabel('E-mail').fill(email)
    await page.getByLabel('Password').fill(PASSWORD)
    await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  }
  await signIn(ADMIN)
  const table = page.getByRole('table', { name: 'Generations' })
  await table.getByRole('row', { name: /^2 in force.*gateway\.yaml changed/ }).waitFor()
  await page.getByRole('heading', { name: 'Configuration', level: 1 }).waitFor()
  t.strictSame(await violations(page), [])

  await table.getByRole('button', { name: 'Roll back to 1', exact: true }).waitFor()
  // As from any other page: the link in the rail, the generation, and two presses.
  const task = new Task(page)
  await task.nav('Configuration')
  await task.click(table.getByRole('button', { name: /open generation 2/ }))
  const drawer = page.getByRole('dialog', { name: 'Generation 2' })
  await drawer.getByRole('list', { name: 'Changes' }).getByText('on_loss').waitFor()
  t.match(await drawer.getByRole('list', { name: 'Changes' }).innerText(), /"report"\s+"reject"/)
  t.strictSame(await violations(page), [])
  await task.click(drawer.getByRole('button', { name: 'Roll back to generation 1' }))
  const dialog = page.getByRole('dialog', { name: 'Roll back to generation 1?' })
  await dialog.getByLabel('Reason').fill('it refused too much')
  await task.click(dialog.getByRole('button', { name: 'Roll back', exact: true }))
  await table
    .getByRole('row', { name: /^3 in force.*root@example\.com.*rollback to 1: it refused too much/ })
    .waitFor()
  await page.getByText('A rollback is in force, not the file.').waitFor()
  task.end(t, 'what changed, and roll back', 4)
  t.notMatch(page.url(), /generation=/, 'the difference is closed')
  t.equal(await generation(), 3)
  const audit = await page.evaluate(async () => {
    const response = await fetch('/dashboard/api/audit')
    return response.text()
  })
  t.match(audit, 'configuration.rollback')

  const before = new Task(page)
  await before.nav('Audit log')
  const log = page.getByRole('table', { name: 'Audit log' })
  const [loaded, rolledBack] = ['loaded a changed configuration', 'rolled back the configuration'].map(
    (words) => log.getByRole('row').filter({ hasText: words }),
  )
  await loaded?.first().waitFor()
  t.match(
    await loaded?.first().innerText(),
    /ada@example\.com[\s\S]*generation 2 of[\s\S]*on_loss\s+"report"\s+"reject"/,
  )
  t.match(await rolledBack?.first().innerText(), /root@example\.com[\s\S]*on_loss\s+"reject"\s+"report"/)
  before.end(t, 'what changed before an incident', 1)
  await before.nav('Configuration')
  await table.waitFor()

  served.write(fileText(served.emulator, { port: 1 }))
  await until(async () => (await generation()) === 4)
  await page.getByText('server.port', { exact: true }).first().waitFor()
  served.write('upstreams: [')
  await page.getByText('The file is refused; generation 4 stays in force.').waitFor()
  t.strictSame(complaints, [])

  const other = await open(chromium)
  await other.page.goto(`http://127.0.0.1:${served.port}/dashboard/configuration`)
  await other.page.getByLabel('E-mail').fill(EMAIL)
  await other.page.getByLabel('Password').fill(PASSWORD)
  await other.page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await other.page.getByRole('link', { name: 'Keys' }).waitFor()
  t.equal(await other.page.getByRole('link', { name: 'Configuration' }).count(), 0)
  t.equal(await other.page.getByRole('table', { name: 'Generations' }).count(), 0)
})
