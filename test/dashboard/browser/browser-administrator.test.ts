/**
 * Goal: an administrator of many accounts finds and stops a leaked key, raises a limit, invites a colleague
 * and finds anything by its id in a few clicks; lists are in the order of the server.
 * Method: a real gateway with keys of several accounts, a real Chromium; each click of a task is counted, and
 * its seconds are reported. axe looks at lists with long names in both themes and both widths.
 */
import { putAccount, putKey } from '../../helpers/store-changes.js'
import t from 'tap'
import type { Page } from 'playwright-core'
import { auditReply, keysReply } from '../../../src/control/dashboard/schema/schema.js'
import { aKey, anAccount } from '../../store/contract/sample-records.js'
import { aRow, startStage, type Stage } from '../fixtures/stage.js'
import { launch, open, overflow, Task, signIn } from './browser.js'
import { sixth } from './sixth.js'
import { looks } from './looks.js'

t.setTimeout(240_000)

const LONG_NAME = 'a service with a very long name that no person types twice in one week 74'

async function filled({ store }: Stage): Promise<{ leakedId: string; requestId: string }> {
  const teams = ['alpha', 'beta'].map((name) =>
    anAccount({ name, email: `${name}@example.com`, plan: 'max' }),
  )
  let [leakedId, requestId] = ['', '']
  for (const [at, team] of teams.entries()) {
    await putAccount(store, team)
    for (let number = 0; number < 60; number += 1) {
      const key = aKey(team.id, {
        name: number === 7 ? LONG_NAME : `${team.name} ${number}`,
        createdBy: 'ada@example.com',
        ...(number % 3 === 0 ? { labels: { team: 'research' } } : {}),
        ...(number === 0 ? { limits: { requestsPerMinute: 3 } } : {}),
      })
      await putKey(store, key, null)
      const row = aRow(team.id, { keyId: key.id, costNanoUsd: (at * 60 + number) * 1_000_000_000 })
      await store.ledger.settle(row)
      if (at === 0 && number === 5) [leakedId, requestId] = [key.id, row.requestId]
      if (at !== 1 || number !== 0) continue
      const limit = `key:${key.id};own requests_per_minute`
      await store.ledger.settle(
        aRow(team.id, {
          ...{ atMs: Date.now() + 60_000, keyId: key.id, status: 429, outcome: 'rate_limited', limit },
          ...{ cause: 'limits', errorMessage: 'The limit of 3 requests per minute is reached.' },
        }),
      )
    }
  }
  return { leakedId, requestId }
}

void t.test('the tasks of an administrator', { skip: sixth(0) }, async (t) => {
  const stage = await startStage(t)
  const { leakedId, requestId } = await filled(stage)
  const api = await stage.signedIn('root@example.com', 'max', 'admin')
  const { page, complaints } = await open(await launch(t), {
    viewport: { width: 1440, height: 900 },
  })
  await signIn(page, stage, 'root@example.com')
  const rail = (name: string) =>
    page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name, exact: true })

  await t.test('the largest spend of all keys is on top', async (t) => {
    await page.goto(`${stage.origin}/dashboard/keys?account=all`)
    await page.getByRole('button', { name: '30 d cost' }).click()
    const first = page.locator('tbody tr').first()
    await first.getByText('beta 59').waitFor()
    t.match(await first.innerText(), /beta 59[\s\S]*beta[\s\S]*\$119/)
    await page.getByText(/121 keys/).waitFor()
    await page.getByRole('button', { name: 'Next' }).click()
    await page.getByText('page 2').waitFor()
    t.match(page.url(), /sort=-cost/)
    t.equal(await overflow(page), 0)
  })

  await t.test('anyone’s key is revoked', async (t) => {
    const task = new Task(page)
    await task.nav('Keys')
    await page.getByRole('searchbox', { name: 'Search keys' }).fill(leakedId)
    await task.click(page.getByRole('button', { name: 'Actions for alpha 5', exact: true }))
    await task.click(page.getByRole('menuitem', { name: 'Revoke' }))
    const dialog = page.getByRole('alertdialog', { name: 'Revoke alpha 5?' })
    await dialog.getByLabel('Reason').fill('leaked in a repository')
    await task.click(dialog.getByRole('button', { name: 'Revoke' }))
    await page.getByText(/^Revoked\. alpha 5 stopped working/).waitFor()
    task.end(t, 'revoke anyone’s key', 4)
    const log = await api.get('/audit?account=all&action=key.revoke')
    t.match(auditReply.parse(log.json).entries, [
      { target: leakedId, reason: 'leaked in a repository', accountName: 'alpha' },
    ])
  })

  await t.test('a limit is raised from the key', async (t) => {
    const task = new Task(page)
    await task.nav('Keys')
    await page.getByRole('searchbox', { name: 'Search keys' }).fill('alpha 0')
    await task.click(page.getByRole('button', { name: /^alpha 0/ }))
    const drawer = page.getByRole('dialog', { name: 'alpha 0' })
    await drawer.getByText('Requests per minute').waitFor()
    await task.click(drawer.getByRole('button', { name: 'Edit' }))
    const form = page.getByRole('dialog', { name: 'Edit alpha 0' })
    await form.getByLabel('Requests per minute').fill('60')
    await form.getByLabel('Labels').fill('team=platform')
    await task.click(form.getByRole('button', { name: 'Save' }))
    await page.getByText(/^Saved\. alpha 0/).waitFor()
    task.end(t, 'raise a limit from the key', 4)
    const found = await api.get('/keys?account=all&search=alpha+0')
    t.match(keysReply.parse(found.json).keys, [
      { limits: { requestsPerMinute: 60 }, labels: { team: 'platform' } },
    ])
    const changed = page.getByRole('dialog', { name: 'alpha 0' })
    await changed.getByText('team=platform').waitFor()
    t.match(await changed.innerText(), /by root@example.com/, 'the history of its labels')
    await page.keyboard.press('Escape')
  })

  await t.test('why a request failed, and its limit is raised', async (t) => {
    await page.goto(`${stage.origin}/dashboard/`)
    const task = new Task(page)
    await task.click(page.getByRole('row', { name: /429 rate limited/ }).first())
    const failure = page.getByRole('dialog').getByRole('region', { name: 'Failure' })
    t.match(await failure.innerText(), /Requests per minute of this key/)
    task.end(t, 'why a request failed', 3)
    await task.click(failure.getByRole('link', { name: 'raise the limit' }))
    const form = page.getByRole('dialog', { name: 'Edit beta 0' })
    await form.locator('.limit-fields input:focus').waitFor()
    t.equal(await form.getByLabel('Requests per minute').inputValue(), '3')
    await form.getByLabel('Requests per minute').fill('30')
    await task.click(form.getByRole('button', { name: 'Save' }))
    await page.getByText(/^Saved\. beta 0/).waitFor()
    task.end(t, 'which key hit its limit, and raise it', 4)
    await page.keyboard.press('Escape')
  })

  await t.test('the form opens at the limits from a link', async (t) => {
    const [key] = keysReply.parse((await api.get('/keys?account=all&search=beta+0')).json).keys
    const query = `account=${key?.accountId ?? ''}&key=${key?.id ?? ''}&edit=limits`
    await page.goto(`${stage.origin}/dashboard/keys?${query}`)
    const form = page.getByRole('dialog', { name: 'Edit beta 0' })
    await form.waitFor()
    const field = form.getByLabel('Requests per minute')
    t.equal(await field.inputValue(), '30')
    await form.locator('.limit-fields input:focus').waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog', { name: 'beta 0' }).getByText('Limits now').waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
  })

  await t.test('a request and a key are found by id', async (t) => {
    for (const [id, name] of [
      [requestId, requestId],
      [leakedId, 'alpha 5'],
    ] as const) {
      const task = new Task(page)
      await page.keyboard.press('Control+k')
      const palette = page.getByRole('dialog', { name: 'Find' })
      await palette.getByRole('searchbox').fill(id)
      await task.click(palette.getByRole('link', { name }))
      await page.getByRole('dialog').getByText(id).first().waitFor()
      task.end(t, 'find by id', 2)
      await page.keyboard.press('Escape')
      await page.getByRole('dialog').waitFor({ state: 'detached' })
    }
    await page.keyboard.press('Control+k')
    await page.getByRole('dialog', { name: 'Find' }).getByRole('searchbox').fill('audit')
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Audit log' }).waitFor()
  })

  await t.test('the audit log is filtered and saved', async (t) => {
    await page.getByRole('button', { name: 'Add filter' }).click()
    await page.getByRole('option', { name: 'Action' }).click()
    await page.getByRole('option', { name: 'key.revoke' }).click()
    // The rows of the former filter are shown until those of the new one are there.
    await page.locator('tbody tr').nth(1).waitFor({ state: 'detached' })
    await page.getByText('leaked in a repository').waitFor()
    t.equal(await page.locator('tbody tr').count(), 1)
    const download = page.waitForEvent('download')
    await page.getByRole('link', { name: 'Save CSV' }).click()
    t.match((await download).suggestedFilename(), /^audit-[\d-]{10}\.csv$/)
    await page.getByRole('button', { name: 'Saved views' }).click()
    const dialog = page.getByRole('dialog', { name: 'Saved views' })
    await dialog.getByLabel('Name').fill('Revoked keys')
    await dialog.getByRole('button', { name: 'Save view' }).click()
    await page.getByText('Saved the view Revoked keys.').waitFor()
    await rail('Keys').click()
    await page.keyboard.press('Control+k')
    await page.getByRole('dialog', { name: 'Find' }).getByRole('searchbox').fill('revoked')
    await page.getByRole('link', { name: 'Revoked keys' }).click()
    await page.getByText('leaked in a repository').waitFor()
    t.match(page.url(), /\/audit\?.*action=key\.revoke/)
  })

  await t.test('of all accounts, a new key is of the account that is named', async (t) => {
    await page.goto(`${stage.origin}/dashboard/keys?create=1`)
    const first = page.getByRole('dialog', { name: 'Create key' })
    await first.getByLabel('Account').fill('bet')
    await page.getByRole('option', { name: 'beta', exact: true }).click()
    await first.getByRole('button', { name: 'Continue' }).click()
    const dialog = page.getByRole('dialog', { name: 'Create key' })
    await dialog.getByLabel('Name').fill('for beta')
    await dialog.getByRole('button', { name: 'Create', exact: true }).click()
    await page.getByRole('button', { name: 'I have saved it' }).click()
    const found = keysReply.parse((await api.get('/keys?account=all&search=for%20beta')).json)
    t.match(found.keys, [{ name: 'for beta', accountName: 'beta' }])
  })

  await t.test('a colleague is invited', async (t) => {
    await page.goto(`${stage.origin}/dashboard/`)
    const task = new Task(page)
    await task.nav('Accounts')
    await task.click(page.getByRole('link', { name: 'alpha', exact: true }))
    await task.click(page.getByRole('link', { name: 'Members', exact: true }))
    await task.click(page.getByRole('button', { name: 'Add member' }))
    await page.getByRole('dialog').getByLabel('E-mail').fill('new@example.com')
    await task.click(page.getByRole('dialog').getByRole('button', { name: 'Add', exact: true }))
    await page.getByText(/\/dashboard\/reset#/).waitFor()
    task.end(t, 'invite a colleague to an account', 5)
    await page.getByRole('button', { name: 'I have saved it' }).click()
    const members = await api.get('/members?account=alpha')
    t.match(members.json, { members: [{ email: 'new@example.com', role: 'member' }] })
  })

  await t.test('an auditor is invited', async (t) => {
    await page.goto(`${stage.origin}/dashboard/`)
    const task = new Task(page)
    await task.nav('Users')
    await task.click(page.getByRole('button', { name: 'Invite' }))
    const dialog = page.getByRole('dialog', { name: 'Invite' })
    await dialog.getByLabel('E-mail').fill('eve@example.com')
    await task.select('Role', 'Auditor: sees everything, changes nothing')
    await task.click(dialog.getByRole('button', { name: 'Send invitation' }))
    await page.getByText(/\/dashboard\/reset#/).waitFor()
    task.end(t, 'invite an auditor', 4)
    await page.getByRole('button', { name: 'I have saved it' }).click()
    const row = page.getByRole('table', { name: 'Users' }).getByRole('row', { name: /eve@example/ })
    t.match(await row.innerText(), /auditor[\s\S]*invited/)
    await looks(t, page, 'users')
  })
  t.strictSame(complaints, [])
})

async function idOf({ store }: Stage, name: string): Promise<string> {
  return (await store.accountByName(name))?.id ?? ''
}

void t.test('axe finds nothing', { skip: sixth(2) }, async (t) => {
  const stage = await startStage(t)
  const { leakedId } = await filled(stage)
  await stage.signedIn('root@example.com', 'max', 'admin')
  const account = await idOf(stage, 'alpha')
  const scenes: readonly [path: string, ready: (page: Page) => Promise<void>][] = [
    ['/keys?account=all&sort=-cost', (page) => page.getByText('beta 59').first().waitFor()],
    [`/keys?account=${account}&search=74`, (page) => page.getByText(LONG_NAME).first().waitFor()],
    [`/keys?account=${account}&key=${leakedId}`, (page) => page.getByText('Labels over time').waitFor()],
    [
      `/keys?account=${account}&key=${leakedId}&edit=limits`,
      (page) => page.getByRole('dialog', { name: 'Edit alpha 5' }).waitFor(),
    ],
    ['/accounts', (page) => page.getByRole('link', { name: 'beta' }).waitFor()],
    ['/audit?account=all&show=all', (page) => page.getByText('session.sign-in').first().waitFor()],
    ['/accounts/alpha', (page) => page.getByText('Cost by key').waitFor()],
    ['/accounts/alpha?tab=limits', (page) => page.getByText('No limits of its own').waitFor()],
    [`/members?account=${account}`, (page) => page.getByText('No members').first().waitFor()],
  ]
  const { page, complaints } = await open(await launch(t))
  await signIn(page, stage, 'root@example.com')
  for (const [path, ready] of scenes) {
    await page.goto(`${stage.origin}/dashboard${path}`)
    await ready(page)
    await looks(t, page, path)
  }
  t.strictSame(complaints, [])
})
