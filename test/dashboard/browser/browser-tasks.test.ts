/**
 * Goal: the tasks that bring people to the dashboard take at most four clicks from the overview, typing not
 * counted: a leaked key found by any part of it, the failures of a provider with their cause, the spend of
 * last month by team as a file for finance, a budget raised until a time, a new developer's key with its
 * first request, and what a request cost and why. The others are counted where their pages are tested: a
 * budget for a team (`browser-accounts`), an auditor (`browser-administrator`), a rollback and what changed
 * before an incident (`browser-configuration`).
 * Method: the real program with an emulator that refuses one provider, and Chromium; each click is counted.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Locator, Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { createAccount } from '../../../src/accounts/changes/change-accounts.js'
import { createUser, setMember } from '../../../src/accounts/members.js'
import { createKey } from '../../helpers/keys.js'
import { knownHash } from '../../helpers/password.js'
import { openStore } from '../../../src/store/open-store.js'
import { ALONE, prepare, run, until } from '../../process/program.js'
import { aRow, PASSWORD } from '../fixtures/stage.js'
import { launch, open, Task } from './browser.js'
import { sixth } from './sixth.js'

t.setTimeout(300_000)

const ADMIN = 'root@example.com'
const DEVELOPER = 'dev@example.com'
const TEAMS = ['search', 'support']
const MOST = 4
/** More attempts than an incident needs. */
const FAILURES = 8
const PLAN = { priceUsd: 0, maxKeys: null }
const PLANS = { starter: PLAN, pro: PLAN, max: PLAN }

interface Filled {
  /** The secret of a key of the first team, whose budget is used up by half. */
  readonly secret: string
}

async function fill(folder: string): Promise<Filled> {
  const store = await openStore(`sqlite:${join(folder, 'data', 'sluice.db')}`)
  const hash = knownHash
  await createAccount(store, { email: ADMIN, password: PASSWORD, plan: 'max', role: 'admin' }, { hash })
  const now = new Date()
  const lastMonth = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - 1, 15, 12)
  const secrets: string[] = []
  for (const [at, name] of TEAMS.entries()) {
    const { account } = await createAccount(store, { name, plan: 'max', password: { none: true } })
    const limits = { nanoUsdPerMonth: 20e9 }
    const { key, secret } = await createKey(store, { plans: PLANS, account, name: `${name}-app`, limits })
    secrets.push(secret)
    const row = { keyId: key.id, accountPath: name, costNanoUsd: (at + 1) * 1_234_567_891 }
    await store.ledger.settle(aRow(account.id, { ...row, atMs: lastMonth }))
    if (at > 0) continue
    const { user } = await createUser(store, { email: DEVELOPER, password: PASSWORD, hash })
    await setMember(store, { account, user, role: 'member', nowMs: Date.now(), audit: () => [] })
  }
  await store.close()
  return { secret: secrets[0] ?? '' }
}

async function started(t: Test) {
  const { emulator, file, folder } = await prepare(t, ALONE)
  emulator.script({
    match: ({ path }: { readonly path: string }) => path.includes('/messages'),
    fault: { kind: 'status', code: 500 },
  })
  const filled = await fill(folder)
  const program = run(t, ['serve', '--config', file])
  const port = (): unknown => program.lines().find(({ msg }) => msg === 'sluice serves')?.['port']
  await until(() => {
    if (program.child.exitCode !== null) throw new Error(`the gateway exited: ${program.err()}`)
    return port() !== undefined
  })
  return { ...filled, origin: `http://127.0.0.1:${String(port())}` }
}

async function chat(base: string, secret: string, model: string): Promise<number> {
  const response = await fetch(`${base}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Which team spent most?' }] }),
  })
  await response.text()
  return response.status
}

/** The overview of all that the user sees; from there each task begins. */
async function home(page: Page, origin: string, account = ''): Promise<Task> {
  await page.goto(`${origin}/dashboard/${account}`)
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
  return new Task(page)
}

async function signIn(page: Page, origin: string, email: string): Promise<void> {
  await page.goto(`${origin}/dashboard/`)
  await page.getByLabel('E-mail').fill(email)
  await page.getByLabel('Password').fill(PASSWORD)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
}

/** A picture of the step, with SLUICE_PICTURES. */
async function picture(page: Page, name: string): Promise<void> {
  const folder = process.env['SLUICE_PICTURES']
  if (folder !== undefined) await page.screenshot({ path: join(folder, `task-${name}.png`) })
}

void t.test('the tasks take at most four clicks', { skip: sixth(5) }, async (t) => {
  const { origin, secret } = await started(t)
  const chromium = await launch(t)
  const { page, complaints } = await open(chromium, { viewport: { width: 1440, height: 900 } })
  await signIn(page, origin, ADMIN)

  await t.test('a leaked key is found by any part of it, and revoked', async (t) => {
    const middle = secret.slice(3, 8)
    const parts = [secret.slice(0, 8), middle, secret.slice(-4), secret.slice(-8).toLowerCase()]
    const found = page.getByRole('dialog', { name: 'search-app', exact: true })
    const whole = [`"${secret}"`, `curl -H 'Authorization: Bearer ${secret}'`, `SLUICE_KEY=${secret}`]
    for (const part of [...parts, 'search-app', ...whole]) {
      const task = await home(page, origin)
      await page.keyboard.press('Control+k')
      const palette = page.getByRole('dialog', { name: 'Find' })
      await palette.getByRole('searchbox').fill(part)
      if (!part.includes(secret)) {
        await palette.getByRole('link', { name: /search-app/ }).waitFor()
        await page.keyboard.press('Enter')
      }
      await found.getByRole('button', { name: 'Revoke' }).waitFor()
      t.notOk(page.url().includes(secret.slice(3)), 'no secret is in the address')
      t.equal(task.clicks, 0)
    }
    await picture(page, 'leaked-key')
  })

  await t.test('failures of a provider in the last hour, with their cause', async (t) => {
    for (let sent = 0; sent < FAILURES; sent += 1) {
      t.not(await chat(`${origin}/v1`, secret, 'claude-haiku-4-5'), 200)
    }
    let task = await home(page, origin)
    const failure = page.getByRole('dialog').getByRole('region', { name: 'Failure' })
    await page.getByText(/^anthropic: 100 %/).waitFor()
    await picture(page, 'incident')
    await task.click(page.getByRole('link', { name: 'See failures' }))
    await task.click(page.getByRole('row', { name: /claude-haiku-4-5/ }).first())
    t.match(await failure.innerText(), /upstream_failed[\s\S]*anthropic[\s\S]*status 500/)
    await picture(page, 'failure')
    task.end(t, 'failures of a provider, from the strip', MOST)

    task = await home(page, origin)
    // Its name has the number of incidents.
    await task.click(
      page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: /^Operations/ }),
    )
    await task.click(page.getByRole('button', { name: '1 h', exact: true }))
    const groups = page.getByRole('table', { name: /Failures/ })
    const row = groups.getByRole('row').filter({ hasText: 'anthropic' }).first()
    await row.waitFor()
    await picture(page, 'failures-of-the-hour')
    await task.click(row.getByRole('link'))
    await page.getByRole('heading', { level: 1, name: 'Requests' }).waitFor()
    await task.click(page.getByRole('row', { name: /claude-haiku-4-5/ }).first())
    await failure.waitFor()
    task.end(t, 'failures of a provider, from Operations', MOST)
  })

  await t.test("last month's spend by team as a file", async (t) => {
    const task = await home(page, origin)
    await task.nav('Usage')
    await task.click(page.getByLabel('More ranges', { exact: true }))
    await task.click(page.getByRole('option', { name: 'Last month', exact: true }))
    await page.getByRole('table', { name: 'Usage by account' }).getByText('support').waitFor()
    await picture(page, 'last-month')
    const download = page.waitForEvent('download')
    await task.click(page.getByRole('link', { name: 'Save CSV' }))
    const file = await download
    task.end(t, 'spend of last month by team', MOST)
    t.match(file.suggestedFilename(), /^usage-\d{4}-\d\d-by-account-/)
    const [head = '', ...lines] = readFileSync(await file.path(), 'utf8')
      .trim()
      .split('\r\n')
    const names = head.split(',')
    const cell = (line: string, name: string): string => line.split(',')[names.indexOf(name)] ?? ''
    t.same(
      lines.map((line) => [cell(line, 'group'), cell(line, 'cost_usd'), cell(line, 'currency')]),
      [
        ['support', '2.469135782', 'USD'],
        ['search', '1.234567891', 'USD'],
        ['total', '3.703703673', 'USD'],
      ],
    )
  })

  await t.test("a key's budget is raised until a time", async (t) => {
    const task = await home(page, origin)
    await task.nav('Budgets')
    await task.click(page.getByRole('button', { name: 'Raise the budget of search-app' }))
    const dialog = page.getByRole('dialog', { name: 'Raise the budget of search-app' })
    await dialog.getByLabel('US dollars a month').fill('45')
    await dialog.getByLabel('Reason').fill('launch')
    await picture(page, 'raise')
    await task.click(dialog.getByRole('button', { name: 'Raise', exact: true }))
    await page.getByText(/^raised from \$20\.00 until [\s\S]*launch[\s\S]*root@example\.com/).waitFor()
    await picture(page, 'raised')
    task.end(t, 'a budget of a key raised until a time', MOST)
  })

  await t.test('what a request cost, and why', async (t) => {
    t.equal(await chat(`${origin}/v1`, secret, 'gpt-5.4-mini'), 200)
    const task = await home(page, origin)
    await task.nav('Requests')
    await task.click(page.getByRole('row', { name: /gpt-5\.4-mini/ }).first())
    const drawer = page.getByRole('dialog', { name: 'Request' })
    const parts = drawer.getByRole('list', { name: 'Why it cost that' })
    t.match(await parts.innerText(), /\d+ input × \$0\.75 per million = \$0\.[\s\S]*\d+ output × \$4\.50/)
    await picture(page, 'cost')
    await task.click(drawer.getByRole('link', { name: 'Try it in the playground' }))
    await page.getByRole('heading', { level: 1, name: 'Playground' }).waitFor()
    t.match(page.url(), /model=gpt-5\.4-mini/)
    task.end(t, 'what a request cost, and the same model in the playground', MOST)
  })
  t.same(complaints, [], 'no errors in the console')

  await t.test("a new developer's key, to the first request", async (t) => {
    const { page } = await open(chromium, { viewport: { width: 1440, height: 900 } })
    await signIn(page, origin, DEVELOPER)
    const task = await home(page, origin)
    await task.nav('Keys')
    await task.click(page.getByRole('button', { name: 'Create key' }).first())
    await page.getByRole('dialog', { name: 'Create key' }).getByLabel('Name').fill('laptop')
    await task.click(page.getByRole('dialog').getByRole('button', { name: 'Create', exact: true }))
    const dialog = page.getByRole('dialog', { name: 'Key laptop' })
    await dialog.getByText('Waiting for the first request').waitFor()
    await picture(page, 'new-key')
    const copied = async (button: Locator): Promise<string> => {
      await button.click()
      return String(await page.evaluate('navigator.clipboard.readText()'))
    }
    const base = await dialog.locator('.copy-rows code').first().innerText()
    const key = await copied(dialog.getByRole('button', { name: /Copy.*key/ }).first())
    task.clicks += 1
    t.equal(await chat(base, key, 'gpt-5.4-mini'), 200)
    await dialog.getByText(/^200, gpt-5\.4-mini, /).waitFor()
    await picture(page, 'first-request')
    task.end(t, 'a new key and its first request', MOST)
  })

  await t.test('the leaked key is revoked', async (t) => {
    const task = await home(page, origin)
    await page.keyboard.press('Control+k')
    await page.getByRole('dialog', { name: 'Find' }).getByRole('searchbox').fill(`key: ${secret}`)
    const drawer = page.getByRole('dialog', { name: 'search-app', exact: true })
    await task.click(drawer.getByRole('button', { name: 'Revoke' }))
    const dialog = page.getByRole('alertdialog', { name: 'Revoke search-app?' })
    await picture(page, 'revoke')
    await task.click(dialog.getByRole('button', { name: 'Revoke' }))
    await page.getByText(/^Revoked\. search-app stopped working/).waitFor()
    task.end(t, 'a leaked key revoked', MOST)
    t.equal(await chat(`${origin}/v1`, secret, 'gpt-5.4-mini'), 401)
  })
})
