/**
 * Goal: each page in each of its states, in light and dark, wide and narrow: axe has no findings, the console
 * is empty, and nothing is wider than the window; failed, loading and empty states tell the user what to do.
 * Method: Chromium with the built page; the test is the server, and its replies are validated by the API's
 * schemas.
 */
import t, { type Test } from 'tap'
import { anotherDay, ofToday } from '../../helpers/long-suite.js'
import { busy, goTo, settle, visit } from './visit.js'
import { launch, open, SKIP, type Watched } from './browser.js'
import { looks } from './looks.js'
import { emptyReplyTo, replyTo, SIGNED_OUT } from '../fixtures/replies.js'
import { ORIGIN, standIn, type Answer, type Api } from '../fixtures/fake-api.js'

t.setTimeout(235_000)

const PAGES = [
  '/',
  '/keys',
  '/keys?create=1',
  '/usage',
  '/usage?range=7d&group=key',
  '/runs?account=ada&run=r-17',
  '/batches',
  '/batches?batch=batch_0',
  '/batches?batch=batch_2',
  '/me?account=ada',
  '/requests',
  '/requests?request=req_0',
  '/requests?request=req_4',
  '/models',
  '/models?model=gpt-5-mini',
  '/playground',
  '/accounts/ada',
  '/accounts/ada?tab=keys',
  '/accounts/ada?tab=members',
  '/accounts/ada?tab=limits',
  '/accounts/ada?tab=activity',
  '/accounts/ada?tab=settings',
  '/accounts?search=ada',
  '/operations',
  '/users',
  '/providers',
  '/accounts',
  '/configuration',
  '/configuration?generation=2',
  '/settings',
  '/statement',
  '/audit',
  '/models?view=ending',
  '/keys?key=key_0',
  '/keys?account=acc_1',
  '/no-such-page',
]

function refusal(status: number, kind: string, message: string): Answer {
  return { status, body: { detail: message, kind } }
}

async function look(t: Test, watched: Watched, name: string): Promise<void> {
  await settle(watched.page)
  await looks(t, watched.page, name)
  t.strictSame(watched.complaints, [], `${name}: console`)
}

void t.test('the page in a browser', { skip: SKIP }, async (t) => {
  const browser = await launch(t)

  await t.test('every page', async (t) => {
    const watched = await visit(browser, '/', { api: busy })
    for (const path of ofToday(PAGES, 4)) {
      await goTo(watched.page, path)
      await settle(watched.page)
      await looks(t, watched.page, path)
      t.strictSame(watched.complaints.splice(0), [], `${path}: console`)
    }
  })

  await t.test(
    'an empty page explains its content and shows a command to create it',
    { skip: anotherDay(0, 3) },
    async (t) => {
      const api: Api = (_, path, query) => ({ body: emptyReplyTo(path, query) })
      const watched = await visit(browser, '/', { api })
      const { page } = watched
      for (const path of ['/', '/usage', '/requests']) {
        await goTo(page, path)
        await settle(page)
        const code = await page.locator('.code').innerText()
        t.match(code, `curl ${ORIGIN}/v1/chat/completions`, `${path}: the address of this gateway`)
        await look(t, watched, path)
      }
      await goTo(page, '/keys')
      await page.getByRole('button', { name: 'Create your first key' }).click()
      await page.getByRole('dialog', { name: 'Create key' }).waitFor()
      t.pass('the first key is one press away')
    },
  )

  await t.test(
    'a failure shows what failed and what is not affected, and can be retried',
    { skip: anotherDay(1, 3) },
    async (t) => {
      let isDown = true
      const watched = await visit(browser, '/keys', {
        api: (_, path, query) =>
          isDown && path === '/keys'
            ? refusal(503, 'store_unavailable', 'The store does not answer.')
            : { body: replyTo(path, query) },
      })
      const { page } = watched
      const alert = page.getByRole('alert')
      await alert.waitFor()
      t.match(await alert.innerText(), /The list of keys could not be loaded/)
      t.match(await alert.innerText(), /The store does not answer\. Keys keep working\./)
      t.match(await alert.innerText(), /req_of_the_test/)
      await look(t, watched, 'the failure')
      isDown = false
      await page.getByRole('button', { name: 'Retry' }).click()
      await page.getByText('ci-runner', { exact: true }).waitFor()
      t.equal(await alert.count(), 0)
    },
  )

  await t.test('a skeleton is shown only if loading takes long', { skip: anotherDay(2, 3) }, async (t) => {
    let release = (): void => undefined
    const held = new Promise<void>((resolve) => (release = resolve))
    const { page } = await visit(browser, '/keys', {
      api: async (_, path, query) => {
        if (path === '/keys') await held
        return { body: replyTo(path, query) }
      },
    })
    await page.locator('.skeleton-row').first().waitFor()
    t.equal(await page.locator('.late[aria-busy="true"]').count(), 1, 'it is announced as busy')
    release()
    await page.getByText('ci-runner', { exact: true }).waitFor()
    t.equal(await page.locator('.skeleton-row').count(), 0)
    const slow = await open(browser)
    await standIn(slow.page, busy)
    let load = (): void => undefined
    const script = new Promise<void>((resolve) => (load = resolve))
    await slow.page.route('**/assets/*.js', async (route) => {
      await script
      await route.fallback()
    })
    await slow.page.goto(`${ORIGIN}/dashboard/keys`, { waitUntil: 'commit' })
    await slow.page.locator('#boot .rail').getByText('Sluice').waitFor()
    t.ok(await slow.page.locator('#boot .skeleton-block').isVisible(), 'a frame before the script')
    load()
    await slow.page.getByText('ci-runner', { exact: true }).waitFor()
    t.equal(await slow.page.locator('#boot').count(), 0)
    const quick = await visit(browser, '/keys', { api: busy })
    await settle(quick.page)
    t.equal(await quick.page.locator('.skeleton-row').count(), 0, 'a quick answer shows none')
  })

  await t.test(
    'figures never stand under the label of another range',
    { skip: anotherDay(3, 3) },
    async (t) => {
      for (const path of ['/', '/usage', '/operations']) {
        let release = (): void => undefined
        let isHeld = false
        const held = new Promise<void>((resolve) => (release = resolve))
        const { page } = await visit(browser, `${path}?range=24h`, {
          api: async (_, asked, query) => {
            if (isHeld && asked === (path === '/operations' ? '/failures' : '/usage')) await held
            return { body: replyTo(asked, query) }
          },
        })
        await settle(page)
        const shown = page.locator(path === '/operations' ? 'table' : '.cards').last()
        await shown.waitFor()
        const former = await shown.innerText()
        isHeld = true
        await page.getByRole('button', { name: '7 d', exact: true }).click()
        await page.locator('.late .skeleton').first().waitFor()
        const texts = await page.locator('main').innerText()
        t.notOk(texts.includes(former), `${path}: the figures of 24 h are gone`)
        release()
        await page.locator('.late .skeleton').first().waitFor({ state: 'detached' })
        await page.context().close()
      }
    },
  )

  await t.test('data that cannot be loaded is not live', { skip: anotherDay(4, 3) }, async (t) => {
    for (const path of ['/', '/requests']) {
      let isDown = false
      const { page } = await visit(browser, path, {
        api: (_, asked, query) =>
          isDown && asked === '/live'
            ? refusal(503, 'store_unavailable', 'The store does not answer.')
            : { body: replyTo(asked, query) },
      })
      const dot = page.locator('.pulse')
      await page.locator('.pulse.on').waitFor()
      isDown = true
      await dot.getByText('not updated').waitFor()
      t.equal(await page.locator('.pulse.on').count(), 0, `${path}: grey`)
      isDown = false
      await page.locator('.pulse.on').waitFor()
      await page.context().close()
    }
    const { page } = await visit(browser, '/', {
      api: (_, asked, query) =>
        asked === '/live'
          ? refusal(503, 'store_unavailable', 'The store does not answer.')
          : { body: replyTo(asked, query) },
    })
    const failed = page.getByRole('alert').filter({ hasText: 'The latest requests could not be loaded' })
    await failed.waitFor()
    t.match(await failed.innerText(), /req_of_the_test/)
    await failed.getByRole('button', { name: 'Retry' }).waitFor()
  })

  await t.test(
    'an ended session leads to the sign-in page, and back',
    { skip: anotherDay(5, 3) },
    async (t) => {
      let isIn = true
      const watched = await visit(browser, '/keys', {
        api: (method, path, query) => {
          if (method === 'POST' && path === '/session') isIn = true
          if (path === '/session') return { body: isIn ? replyTo(path, query) : SIGNED_OUT }
          if (!isIn) return refusal(401, 'unauthenticated', 'Sign in first.')
          return { body: replyTo(path, query) }
        },
      })
      const { page } = watched
      await settle(page)
      isIn = false
      await page.getByRole('link', { name: 'Usage' }).click()
      await page.getByRole('heading', { name: 'Sign in', level: 1 }).waitFor()
      await look(t, watched, 'the door')
      await page.getByLabel('E-mail').fill('ada@example.com')
      await page.getByLabel('Password').fill('correct horse')
      await page.getByRole('button', { name: 'Sign in', exact: true }).click()
      await page.getByRole('heading', { name: 'Usage', level: 1 }).waitFor()
      t.equal(new URL(page.url()).pathname, '/dashboard/usage', 'the requested page')
    },
  )

  await t.test('the pages of links and of sign-up', { skip: anotherDay(6, 3) }, async (t) => {
    const api: Api = () => ({ body: SIGNED_OUT })
    const watched = await visit(browser, '/', { api })
    const { page } = watched
    for (const path of ['/', '/sign-up', '/setup#abcdefghijklmnopqrstuvwx', '/reset']) {
      if (path !== '/') await page.goto(`${ORIGIN}/dashboard${path}`)
      await page.locator('h1').first().waitFor()
      await look(t, watched, path)
      t.equal(new URL(page.url()).hash, '', 'the token has left the address')
    }
  })

  await t.test('the page works by keyboard alone', { skip: anotherDay(7, 3) }, async (t) => {
    const { page, complaints } = await visit(browser, '/', { api: busy })
    await settle(page)
    await page.keyboard.press('g')
    await page.keyboard.press('k')
    await page.getByRole('heading', { name: 'Keys', level: 1 }).waitFor()
    await settle(page)
    await page.keyboard.press('/')
    t.equal(await page.evaluate('document.activeElement.type'), 'search', '/ searches')
    await page.keyboard.press('Escape')
    await page.keyboard.press('c')
    const dialog = page.getByRole('dialog', { name: 'Create key' })
    await dialog.waitFor()
    await page.keyboard.press('g')
    t.equal(await dialog.getByLabel('Account').inputValue(), 'g', 'letters are letters in a field')
    await page.getByRole('option').first().waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('option').first().waitFor({ state: 'detached' })
    t.ok(await dialog.isVisible(), 'Escape closes the list of accounts alone')
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    t.match(await page.evaluate('document.activeElement.textContent'), 'Create key', 'focus is back')
    await page.getByRole('button', { name: 'Actions for ci-runner' }).focus()
    await page.keyboard.press('ArrowDown')
    t.match(
      await page.evaluate("document.activeElement.getAttribute('aria-label')"),
      'laptop',
      'arrows move from row to row',
    )
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keyboard' }).waitFor()
    t.strictSame(complaints, [])
  })

  await t.test(
    'a chart has a table, and a spike leads to its requests',
    { skip: anotherDay(8, 3) },
    async (t) => {
      const { page, complaints } = await visit(browser, '/usage?range=7d', { api: busy })
      await page.locator('.uplot canvas').first().waitFor()
      await page.getByRole('button', { name: /^Cost by \w+ as a table$/ }).click()
      const table = page.getByRole('region', { name: /^Cost by \w+, table$/ })
      t.match(await table.innerText(), /claude-sonnet-4-5/)
      t.match(await table.innerText(), /so far/)
      const download = page.waitForEvent('download')
      await page.getByRole('button', { name: /^Save Cost by \w+ as CSV$/ }).click()
      t.match((await download).suggestedFilename(), /^cost-by-\w+\.csv$/)
      await page
        .getByRole('list', { name: 'Figures' })
        .getByRole('button', { name: /^Failed/ })
        .click()
      await page.getByRole('img', { name: /^Failed requests/ }).click({ position: { x: 200, y: 100 } })
      await page.getByRole('heading', { name: 'Requests', level: 1 }).waitFor()
      t.match(page.url(), /outcome=failed/)
      t.match(page.url(), /from=\d+&to=\d+/)
      await page.goBack()
      await page.getByRole('heading', { name: 'Usage', level: 1 }).waitFor()
      t.match(page.url(), /\/usage\?range=7d&figure=failed$/, 'Back shows the same view')
      t.strictSame(complaints, [])
    },
  )
})
