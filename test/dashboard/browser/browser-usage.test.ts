/**
 * Goal: the questions of finance and of operators are answered in few clicks: who spent most yesterday (3),
 * usage by team of last month as CSV (4), who uses a deprecated model (2), the first token of two providers
 * (3).
 * Method: a gateway with two months of use by three teams, and Chromium in a zone other than UTC; every click
 * and selection is counted, and the seconds are reported.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Locator } from 'playwright-core'
import t, { type Test } from 'tap'
import { createAccount } from '../../../src/accounts/changes/change-accounts.js'
import { createKey } from '../../helpers/keys.js'
import { openStore } from '../../../src/store/open-store.js'
import { prepare, run, until } from '../../process/program.js'
import { aRow, PASSWORD } from '../fixtures/stage.js'
import { launch, open, Task, type Watched } from './browser.js'
import { sixth } from './sixth.js'
import { looks } from './looks.js'

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
    await store.ledger.settle(aRow('acc_now', { atMs: now - 60_000, upstream, hops: { firstContent } }))
  }
  await store.close()
}

async function started(t: Test): Promise<Watched & { readonly address: string }> {
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
  return { address, page, complaints }
}

/** From the account that spent most to its key, to the model, to single requests; and back. */
async function drill(t: Test, task: Task): Promise<void> {
  const { page } = task
  const row = (by: string): Locator =>
    page
      .getByRole('table', { name: `Usage by ${by}` })
      .locator('tbody tr:not(.skeleton-row)')
      .first()
  await task.click(page.getByRole('link', { name: /^Cost/ }))
  await task.click(page.getByRole('button', { name: '7 d', exact: true }))
  await task.click(row('account'))
  await page
    .getByRole('navigation', { name: 'What is shown' })
    .getByText(TEAMS[2] ?? '')
    .waitFor()
  await task.click(row('key'))
  t.match(await row('model').innerText(), /gpt-5\.4|gemini-2\.5-pro/)
  task.end(t, 'who spent most last week, and on what', 4)
  await looks(t, page, 'usage of a key')
  const crumbs = page.getByRole('navigation', { name: 'What is shown' })
  t.match(await crumbs.innerText(), /^All accounts\s+›\s+a-team-[\s\S]*›[\s\S]*-key$/)
  await crumbs.getByRole('link', { name: 'All accounts' }).click()
  await row('account').waitFor()
  await page.goBack()
  await row('model').waitFor()
  await row('model').click()
  await page.getByRole('heading', { level: 1, name: 'Requests' }).waitFor()
  t.match(page.url(), /key=key_[\s\S]*model=/)
  await page.goBack()

  const chart = page.getByRole('img', { name: /^Cost by model/ })
  const box = await chart.boundingBox()
  if (box === null) throw new Error('no chart')
  const y = box.y + box.height / 2
  await page.mouse.move(box.x + box.width * 0.4, y)
  await page.mouse.down()
  await page.mouse.move(box.x + box.width * 0.7, y, { steps: 5 })
  await page.mouse.up()
  await page.waitForURL(/from=[\s\S]*to=/)
  const span = (): number => {
    const { searchParams } = new URL(page.url())
    const [from, to] = ['from', 'to'].map((name) => Date.parse(`${searchParams.get(name) ?? ''}Z`))
    return (to ?? 0) - (from ?? 0)
  }
  const zoomed = span()
  t.ok(zoomed > DAY_MS && zoomed < 4 * DAY_MS, 'dragging zooms')
  const wide = page.url()
  await page.keyboard.press('[')
  await page.waitForURL((url) => url.href !== wide)
  t.ok(Math.abs(span() - zoomed / 2) < 240_000, 'and the keyboard halves the range')
}

void t.test('answers in few clicks', { skip: sixth(1) }, async (t) => {
  const { address, page, complaints } = await started(t)
  const start = async (): Promise<Task> => {
    await page.goto(`${address}/?account=all`)
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
    return new Task(page)
  }

  let task = await start()
  await task.nav('Usage')
  await task.select('More ranges', 'Yesterday')
  const accounts = page.getByRole('table', { name: 'Usage by account' })
  await accounts.locator('tbody tr:not(.skeleton-row)').first().waitFor()
  t.match(await accounts.getByRole('row').nth(1).innerText(), TEAMS[2] ?? '', 'who spent most')
  task.end(t, 'who spent most yesterday', 2)
  t.match(await page.locator('main').innerText(), new RegExp(`yesterday, ${ZONE}`))
  const place = await accounts.getByRole('row').nth(1).boundingBox()
  t.ok((place?.y ?? 900) + (place?.height ?? 0) <= 900, 'the first row is on the first screen')
  await looks(t, page, 'usage')

  task = await start()
  await task.nav('Usage')
  await task.select('More ranges', 'Last month')
  await task.select('Group by', 'by label team')
  await page.getByRole('table', { name: 'Usage by label team' }).waitFor()
  const download = page.waitForEvent('download')
  await task.click(page.getByRole('link', { name: 'Save CSV' }))
  const file = readFileSync(await (await download).path(), 'utf8')
  task.end(t, 'usage by team of last month as CSV', 4)
  const lines = file.trim().split('\r\n')
  t.match(lines[0], /^group,requests,[\s\S]*,period_from,period_to,zone,currency,units$/)
  t.match((await download).suggestedFilename(), /^usage-\d{4}-\d\d-by-label-team-America-New_York\.csv$/)
  t.match(lines.pop(), /^total,[\s\S]*,America\/New_York,USD,$/)
  t.same(
    lines
      .slice(1)
      .map((line) => line.split(',')[0])
      .sort(),
    [...TEAMS].sort(),
    'a line for each',
  )

  await drill(t, await start())

  task = await start()
  await task.nav('Models')
  await task.click(page.getByRole('button', { name: /with an announced end/ }))
  const ending = page.getByRole('table', { name: 'Models with an announced end' })
  await ending.waitFor()
  const row = ending.getByRole('row').filter({ hasText: 'gemini-2.5-pro' })
  t.match(await row.innerText(), /search-key[\s\S]*team=search/)
  task.end(t, 'who uses a deprecated model', 2)
  await looks(t, page, 'deprecated models')

  task = await start()
  await task.nav('Providers')
  const upstreams = page.getByRole('table', { name: 'Upstreams', exact: true })
  await upstreams.waitFor()
  const tokens = async (name: string): Promise<string> =>
    upstreams.getByRole('row').filter({ hasText: name }).innerText()
  t.match(await tokens('openai'), /3\d\d ms/)
  t.match(await tokens('anthropic'), /[89]\d\d ms/)
  await page.getByRole('heading', { name: 'Time to first token, p95' }).waitFor()
  task.end(t, "two providers' first token", 3)
  for (const upstream of ['openai', 'anthropic']) {
    await task.click(page.getByRole('checkbox', { name: new RegExp(`^Compare .* at ${upstream}$`) }).first())
  }
  const pair = page.getByRole('table', { name: 'Models side by side' })
  const line = (name: string): Promise<string> => pair.getByRole('row').filter({ hasText: name }).innerText()
  t.match(await line('First token p95'), /3\d\d ms\s+[89]\d\d ms\s+\+1\d\d %/)
  t.match(await line('Cost per request'), /\$\d/)
  t.match(await line('Failed at the provider'), /0 %\s+0 %/)
  await page.getByRole('img', { name: /^First token p95 side by side/ }).waitFor()
  task.end(t, "two models' cost and latency", 4)
  await looks(t, page, 'providers')

  await task.nav('Operations')
  await page.getByRole('table', { name: 'Upstreams' }).waitFor()
  t.match(await page.locator('main').innerText(), /healthy/)
  await looks(t, page, 'operations')
  t.same(complaints, [], 'no errors in the console')
})
