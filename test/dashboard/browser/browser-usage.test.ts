/**
 * Goal: the questions of finance and of operators are answered in few clicks: who spent most yesterday (3),
 * usage by team of last month as CSV (4), who uses a deprecated model (2), the first token of two providers
 * (3).
 * Method: a gateway with two months of use by three teams, and Chromium in a zone other than UTC; every click
 * and selection is counted.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Locator, Page } from 'playwright-core'
import { createAccount } from '../../../src/accounts/accounts.js'
import { createKey } from '../../../src/accounts/keys.js'
import { openStore } from '../../../src/store/open-store.js'
import { prepare, run, until } from '../../process/program.js'
import { aRow, PASSWORD } from '../fixtures/stage.js'
import { launch, open, overflow, SKIP, violations } from './browser.js'

t.setTimeout(300_000)

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const ZONE = 'America/New_York'
const EMAIL = 'root@example.com'
const TEAMS = ['search', 'web', 'a-team-whose-name-is-longer-than-any-column-of-a-table']

async function fill(folder: string): Promise<void> {
  const store = await openStore(`sqlite:${join(folder, 'sluice.db')}`)
  const plan = { priceUsd: 200, maxKeys: null }
  const plans = { starter: plan, pro: plan, max: plan }
  await createAccount(store, { email: EMAIL, password: PASSWORD, plan: 'max', role: 'admin' })
  const now = Date.now()
  for (const [at, team] of TEAMS.entries()) {
    const login = { email: `${team}@example.com`, plan: 'pro', password: { none: true } } as const
    const { account } = await createAccount(store, login)
    const { key } = await createKey(store, { plans, account, name: `${team}-key` })
    const settled = Array.from({ length: 60 }, (_, day) =>
      store.ledger.settle(
        aRow(account.id, {
          ...{ atMs: now - day * DAY_MS - at * HOUR_MS, keyId: key.id, accountPath: account.name },
          ...{ labels: `team=${team}`, costNanoUsd: (at + 1) * 1e9 },
          model: day % 2 === 0 ? 'gpt-5.4' : 'gemini-2.5-pro',
          upstream: day % 2 === 0 ? 'openai' : 'anthropic',
          hops: { firstContent: day % 2 === 0 ? 300 : 900 },
        }),
      ),
    )
    await Promise.all(settled)
  }
  for (const [upstream, firstContent] of [
    ['openai', 310],
    ['anthropic', 880],
  ] as const) {
    await store.ledger.settle(
      aRow('acc_now', { atMs: now - 60_000, upstream, hops: { firstContent } }),
    )
  }
  await store.close()
}

/** A page that counts what a person does. */
class Person {
  readonly page: Page
  steps = 0

  constructor(page: Page) {
    this.page = page
  }

  async click(target: Locator): Promise<void> {
    this.steps += 1
    await target.click()
  }

  async select(label: string, option: string): Promise<void> {
    this.steps += 1
    await this.page.getByLabel(label, { exact: true }).selectOption({ label: option })
  }

  async start(address: string): Promise<void> {
    this.steps = 0
    await this.page.goto(`${address}/?account=all`)
    await this.page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
  }

  /** A page of the rail; the account stays that of the view. */
  nav(name: string): Promise<void> {
    return this.click(this.page.getByRole('navigation').getByRole('link', { name, exact: true }))
  }
}

async function started(
  t: Test,
): Promise<{ address: string; person: Person; complaints: string[] }> {
  const { file, folder } = await prepare(t)
  await fill(join(folder, 'data'))
  const program = run(t, ['serve', '--config', file])
  const port = (): unknown => program.lines().find(({ msg }) => msg === 'sluice serves')?.['port']
  await until(() => {
    if (program.child.exitCode !== null) throw new Error(`the gateway exited: ${program.err()}`)
    return port() !== undefined
  })
  const address = `http://127.0.0.1:${String(port())}/dashboard`
  const { page, complaints } = await open(await launch(t), {
    ...{ timezoneId: ZONE, viewport: { width: 1440, height: 900 } },
  })
  await page.goto(address)
  await page.getByLabel('E-mail').fill(EMAIL)
  await page.getByLabel('Password').fill(PASSWORD)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
  return { address, person: new Person(page), complaints }
}

void t.test('answers in few clicks', { skip: SKIP }, async (t) => {
  const { address, person, complaints } = await started(t)
  const { page } = person

  await person.start(address)
  await person.nav('Usage')
  await person.select('Time range', 'Yesterday')
  await person.select('More groups', 'by account')
  const accounts = page.getByRole('table', { name: 'Usage by account' })
  await accounts.locator('tbody tr:not(.skeleton-row)').first().waitFor()
  t.match(await accounts.getByRole('row').nth(1).innerText(), TEAMS[2] ?? '', 'who spent most')
  t.ok(person.steps <= 3, `who spent most yesterday: ${person.steps} clicks`)
  t.match(await page.locator('main').innerText(), new RegExp(`yesterday, ${ZONE}`))
  await looks(t, person, 'usage')

  await person.start(address)
  await person.nav('Usage')
  await person.select('Time range', 'Last month')
  await person.select('More groups', 'by label team')
  await page.getByRole('table', { name: 'Usage by label team' }).waitFor()
  const download = page.waitForEvent('download')
  await person.click(page.getByRole('link', { name: 'Save CSV' }))
  const file = readFileSync(await (await download).path(), 'utf8')
  t.ok(person.steps <= 4, `usage by team of last month as CSV: ${person.steps} clicks`)
  const lines = file.trim().split('\r\n')
  t.match(lines[0], /^group,requests,/)
  t.same(
    lines
      .slice(1)
      .map((line) => line.split(',')[0])
      .sort(),
    [...TEAMS].sort(),
    'no totals',
  )

  await person.start(address)
  await person.nav('Models')
  await person.click(page.getByRole('button', { name: /with an announced end/ }))
  const ending = page.getByRole('table', { name: 'Models with an announced end' })
  await ending.waitFor()
  const row = ending.getByRole('row').filter({ hasText: 'gemini-2.5-pro' })
  t.match(await row.innerText(), /search-key[\s\S]*team=search/)
  t.ok(person.steps <= 2, `who uses a deprecated model: ${person.steps} clicks`)
  await looks(t, person, 'deprecated models')

  await person.start(address)
  await person.nav('Providers')
  const upstreams = page.getByRole('table', { name: 'Upstreams', exact: true })
  await upstreams.waitFor()
  const tokens = async (name: string): Promise<string> =>
    upstreams.getByRole('row').filter({ hasText: name }).innerText()
  t.match(await tokens('openai'), /3\d\d ms/)
  t.match(await tokens('anthropic'), /[89]\d\d ms/)
  await page.getByRole('heading', { name: 'Time to first token, p95' }).waitFor()
  t.ok(person.steps <= 3, `two providers' first token: ${person.steps} clicks`)
  await looks(t, person, 'providers')

  await person.nav('Operations')
  await page.getByRole('table', { name: 'Upstreams' }).waitFor()
  t.match(await page.locator('main').innerText(), /healthy/)
  await looks(t, person, 'operations')
  t.same(complaints, [], 'no errors in the console')
})

/** No axe finding and no horizontal scrolling, light and dark, at 1440 and 390 px. */
async function looks(t: Test, { page }: Person, name: string): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const) {
    for (const width of [1440, 390]) {
      await page.emulateMedia({ colorScheme })
      await page.setViewportSize({ width, height: 900 })
      // The colours change after the next frame.
      await page.evaluate(
        'new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))',
      )
      t.same(await violations(page), [], `${name}, ${colorScheme}, ${width}`)
      t.equal(await overflow(page), 0, `${name} fits ${width}`)
      const folder = process.env['SLUICE_PICTURES']
      if (folder !== undefined) {
        const path = join(folder, `${name}-${colorScheme}-${width}.png`)
        await page.screenshot({ path, fullPage: true })
      }
    }
  }
  await page.emulateMedia({ colorScheme: null })
  await page.setViewportSize({ width: 1440, height: 900 })
}
