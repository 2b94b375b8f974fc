/**
 * Goal: filters, causes, limits, lost connections and the queue of the playground work as shown.
 * Method: Chromium with the built page; the test is the server and records the page's requests.
 */
import file, { type Test } from 'tap'
import { arrayOf, objectOf } from '../../../src/base/json.js'
import type { Page } from 'playwright-core'
import { requestRow } from '../../../src/control/dashboard/schema/schema.js'
import { choose, launch, open, overflow, violations } from './browser.js'
import { sixth } from './sixth.js'
import { looks } from './looks.js'
import { replyTo } from '../fixtures/replies.js'
import { ORIGIN, standIn, type Answer, type Api } from '../fixtures/fake-api.js'

file.setTimeout(300_000)

const busy: Api = (_, path, query) => ({ body: replyTo(path, query) })

interface Visit {
  readonly page: Page
  /** The calls so far: method, path and query. */
  readonly asked: string[]
}

async function visit(
  t: Test,
  path: string,
  { api = busy, width = 1280 }: { api?: Api; width?: number } = {},
): Promise<Visit> {
  const { page } = await open(await launch(t), { viewport: { width, height: 860 } })
  const asked: string[] = []
  await standIn(page, (method, called, query) => {
    asked.push(`${method} ${called}?${query.toString()}`)
    return api(method, called, query)
  })
  await page.goto(`${ORIGIN}/dashboard${path}`)
  await page.getByRole('heading', { level: 1 }).waitFor()
  return { page, asked }
}

function lastOf(asked: readonly string[], path: string): URLSearchParams {
  const found = asked.findLast((call) => call.startsWith(`GET ${path}?`)) ?? ''
  return new URLSearchParams(found.slice(found.indexOf('?')))
}

void file.test('filters are in the address, the query and the CSV file', { skip: sixth(0) }, async (t) => {
  const { page, asked } = await visit(t, '/requests')
  const add = async (filter: string, value: string | RegExp) => {
    await page.getByRole('button', { name: 'Add filter' }).click()
    await page.getByRole('option', { name: filter, exact: true }).click()
    await page.getByRole('option', { name: value, exact: true }).first().click()
    await page.getByRole('button', { name: `Remove filter ${filter}` }).waitFor()
  }
  await add('Status', '429')
  await add('Cause', 'Provider')
  await add('Upstream', 'anthropic')
  await add('Model', 'gpt-5.4')
  await add('Key', /^ci-runner …/)
  await add('Label', 'team=search')
  await add('Client format', 'Messages')
  await add('Outcome', 'upstream_busy')
  await page.getByRole('button', { name: '1 h', exact: true }).click()
  await page.getByLabel('Search requests').fill('mine-1')
  await page.waitForURL(/search=mine-1/)
  const expected = {
    status: '429',
    cause: 'provider',
    upstream: 'anthropic',
    model: 'gpt-5.4',
    keyId: 'key_0',
    label: 'team=search',
    clientFormat: 'messages',
    outcome: 'upstream_busy',
    anyId: 'mine-1',
  }
  await page.getByRole('table', { name: 'Requests, newest first' }).waitFor()
  // The browser loads a file itself, past the routes of the test.
  const file = await page.getByRole('link', { name: 'Save CSV' }).getAttribute('href')
  const { pathname, searchParams } = new URL(file ?? '', ORIGIN)
  t.equal(pathname, '/dashboard/api/requests.csv')
  const queries = { '/requests': lastOf(asked, '/requests'), '/requests.csv': searchParams }
  for (const [path, query] of Object.entries(queries)) {
    t.match(Object.fromEntries(query), expected, path)
    t.equal(query.get('range'), '1h', 'and the time, which ends when the server replies')
  }
  for (const part of ['status=429', 'cause=provider', 'key=key_0', 'format=messages', 'range=1h']) {
    t.match(page.url(), part)
  }
  await page.getByRole('button', { name: 'Clear filters' }).first().click()
  await page.waitForURL((url) => url.search === '')
  await page.getByLabel('More ranges').getByText('Any time').waitFor()

  await page.goto(`${ORIGIN}/dashboard/requests?since=24h`)
  await page.getByRole('button', { name: '24 h', exact: true, pressed: true }).waitFor()
  await page.goto(`${ORIGIN}/dashboard/requests?since=custom&fromMs=1795000000000&toMs=1795100000000`)
  await page.getByRole('table', { name: 'Requests, newest first' }).waitFor()
  const former = lastOf(asked, '/requests')
  t.same([former.get('fromMs'), former.get('toMs')], [1795000000000, 1795100000000], 'former addresses')
  await rangeByKeyboard(t, page)
})

/** Of the custom range: a typed end, then two days of the calendar by keyboard. */
async function rangeByKeyboard(t: Test, page: Page): Promise<void> {
  const from = page.getByLabel(/^From, /)
  await from.fill('2026-11-02 08:30')
  await from.press('Enter')
  await page.waitForURL(/from=2026-11-02T08%3A30/)
  await from.fill('yesterday')
  await from.press('Enter')
  t.equal(await from.inputValue(), '2026-11-02 08:30', 'what is no time is not taken')
  await page.getByLabel(/^To, /).fill('2026-11-18 00:00')
  await page.getByRole('button', { name: 'Choose the first and the last day' }).click()
  const grid = page.getByRole('grid', { name: 'November 2026' })
  await grid.getByRole('button', { name: 'Wednesday, 18 November 2026' }).waitFor()
  t.equal(await grid.getByRole('gridcell', { selected: true }).count(), 17, 'the range is marked')
  await looks(t, page, 'a calendar')
  for (const key of ['ArrowUp', 'ArrowLeft', 'Enter', 'PageDown', 'End', 'Enter'])
    await page.keyboard.press(key)
  await page.waitForURL(/from=2026-11-10T00%3A00&to=2026-12-14T00%3A00/)
  // The second day closes it.
  await page.getByRole('grid').waitFor({ state: 'detached' })
}

void file.test('errors by cause lead to their requests', { skip: sixth(1) }, async (t) => {
  const { page } = await visit(t, '/')
  const chart = page.getByRole('figure').filter({ hasText: 'by cause' })
  await chart.getByRole('img', { name: /^Failed requests: .*Client up to/ }).waitFor()
  await chart.getByRole('button', { name: 'Failed requests as a table' }).click()
  const table = page.getByRole('region', { name: 'Failed requests, table' })
  t.match(await table.innerText(), /Client\s+Gateway limits\s+Gateway\s+Provider/)
  await chart.getByRole('link', { name: 'Provider' }).click()
  await page.getByRole('heading', { name: 'Requests', level: 1 }).waitFor()
  t.match(page.url(), /outcome=failed&cause=provider&from=\d+&to=\d+/)
  await page.getByRole('button', { name: 'Cause: Provider', exact: true }).waitFor()
})

void file.test(
  'limits: a bar, amounts, the reset, and a warning from 80 %',
  { skip: sixth(2) },
  async (t) => {
    const { page } = await visit(t, '/?account=acc_1')
    const bars = page.getByRole('meter')
    await bars.first().waitFor()
    const plan = page.getByRole('meter', { name: 'Budget per month (UTC), plan: 83 % used' })
    t.equal(await plan.count(), 1)
    const block = page.locator('.limit').filter({ has: plan })
    t.match(await block.innerText(), /\$166\.00 of \$200\.00 used · \$34\.00 left\s+· resets in/)
    t.match(await block.getAttribute('class'), 'warn')
    const calm = page.locator('.limit').filter({ hasText: 'Requests per minute' })
    t.equal(await calm.getAttribute('class'), 'limit')
    await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Keys' }).click()
    await page.getByRole('heading', { name: 'Keys', level: 1 }).waitFor()
    await page.getByRole('button', { name: /^ci-runner/ }).click()
    const drawer = page.getByRole('dialog')
    await drawer.getByRole('meter', { name: /^Budget per day \(UTC\), ci-runner/ }).waitFor()
  },
)

void file.test('the account is chosen in the rail, for all pages', { skip: sixth(3) }, async (t) => {
  const { page, asked } = await visit(t, '/usage')
  const shown = page.getByRole('button', { name: /^Account: / })
  t.equal(await shown.innerText(), 'All accounts', 'administrators begin with all accounts')
  await shown.click()
  await page.getByRole('option', { name: /^grace/ }).click()
  await page.waitForURL(/account=grace/)
  for (const name of ['Overview', 'Keys', 'Requests']) {
    await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name }).click()
    await page.getByRole('heading', { name, level: 1 }).waitFor()
    await page.getByRole('button', { name: 'Account: grace' }).waitFor()
    t.match(page.url(), /account=grace/, name)
  }
  t.equal(lastOf(asked, '/keys').get('account'), 'grace')
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Operations' }).click()
  await page.getByRole('heading', { name: 'Operations', level: 1 }).waitFor()
  await shown.click()
  await page.getByRole('option', { name: /^grace/ }).click()
  await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
  t.match(page.url(), /account=grace/, 'a page of the gateway has no account: the choice opens the overview')
})

void file.test('a lost connection shows how old the figures are', { skip: sixth(4) }, async (t) => {
  let isDown = false
  const down: Answer = { status: 503, body: { detail: 'down', kind: 'x' } }
  const { page } = await visit(t, '/', {
    api: (_, path, query) => (isDown ? down : { body: replyTo(path, query) }),
  })
  await page.getByRole('table', { name: 'Requests, newest first' }).waitFor()
  t.equal(await page.getByText('live', { exact: true }).count(), 1)
  isDown = true
  const banner = page.getByRole('status').filter({ hasText: 'Reconnecting…' })
  await banner.waitFor()
  t.match(await banner.innerText(), /Reconnecting… Figures are as of \d\d:\d\d:\d\d\./)
  t.equal(await page.getByText('live', { exact: true }).count(), 0, 'nothing is shown as live')
  t.equal(await page.getByText('paused', { exact: true }).count(), 1)
  t.strictSame(await violations(page), [])
  isDown = false
  await banner.waitFor({ state: 'detached' })
  await page.getByText('live', { exact: true }).waitFor()
})

void file.test(
  'why a request failed: two clicks; one found by its id: one',
  { skip: sixth(5) },
  async (t) => {
    const { page } = await visit(t, '/')
    await page
      .getByRole('row', { name: /502 upstream failed/ })
      .first()
      .click()
    const failure = page.getByRole('dialog').getByRole('region', { name: 'Failure' })
    t.match(await failure.innerText(), /The upstream "openai" answered 503\./)
    await failure.getByRole('link', { name: 'Requests that failed like this one' }).click()
    await page.waitForURL(/outcome=upstream_failed&upstream=openai/)
    await page.getByLabel('Search requests').fill('req_4')
    await page.waitForURL(/search=req_4/)
    await page
      .getByRole('row', { name: /502 upstream failed/ })
      .first()
      .click()
    await page.waitForURL(/request=req_4/)
  },
)

void file.test('what a request names is a link', { skip: sixth(6) }, async (t) => {
  const { page, asked } = await visit(t, '/requests')
  await page
    .getByRole('button', { name: /open request to/ })
    .first()
    .click()
  const drawer = page.getByRole('dialog', { name: 'Request' })
  const hrefs = async (name: string) => {
    const link = drawer.getByRole('link', { name, exact: true }).first()
    return link.getAttribute('href')
  }
  await drawer.getByRole('link', { name: 'ci-runner' }).waitFor()
  t.match(await hrefs('ci-runner'), '/dashboard/keys?account=acc_1&key=key_0')
  t.match(await hrefs('research'), '/dashboard/?account=acc_1')
  t.match(await hrefs('claude-sonnet-4-5'), '/dashboard/models?model=claude-sonnet-4-5')
  await drawer.getByRole('tab', { name: 'Raw' }).click()
  await drawer.getByText('"requestId": "req_0"').waitFor()
  t.strictSame(await violations(page), [])
  await drawer.getByRole('tab', { name: 'Routing' }).click()
  await drawer.getByRole('heading', { name: 'Route' }).waitFor()
  t.match(await hrefs('openai'), /\/dashboard\/requests\?.*upstream=openai/)
  t.match(await hrefs('generation 3'), '/dashboard/configuration?generation=3')
  t.match(await hrefs('team=research'), /label=team%3Dresearch/)
  t.notOk(
    asked.some((call) => call.includes('/recordings/')),
    'a reading is audited: on demand',
  )
  await drawer.getByRole('tab', { name: 'Conversation' }).click()
  await drawer.getByRole('button', { name: 'Show conversation' }).click()
  await drawer.getByText('Name three rivers.').waitFor()
  await drawer.getByText('map({"of":"Nile"})').waitFor()
  t.strictSame(await violations(page), [])
  await drawer.getByRole('button', { name: 'Delete recording' }).click()
  await page.getByRole('alertdialog').getByRole('button', { name: 'Delete' }).click()
  await drawer.getByText('The recording was deleted.').waitFor()
  t.ok(asked.includes('DELETE /recordings/req_0?account=acc_1'))
})

void file.test('long and unknown names, and a reply that was cut off', { skip: sixth(7) }, async (t) => {
  const name = 'a-key-of-the-nightly-batch-'.repeat(3)
  const first = requestRow.parse({
    ...objectOf(objectOf(replyTo('/requests/req_0', new URLSearchParams()))['row']),
    ...{ keyName: name, model: 'other', modelAsked: 'no-such-model' },
    ...{ outcome: 'upstream_truncated', cause: 'provider' },
  })
  for (const width of [1440, 390]) {
    const { page } = await visit(t, '/requests', {
      width,
      api: (_, path, query) => ({
        body: path === '/requests' ? { rows: [first], next: null } : replyTo(path, query),
      }),
    })
    const row = page.getByRole('row', { name: /no-such-model/ })
    t.match(await row.innerText(), /200 truncated/)
    t.equal(await overflow(page), 0, `${width} wide`)
    if (width > 1_000) t.equal(await row.getByTitle(name).count(), 1, 'the whole name on hover')
  }
})

void file.test('on a phone, filters are behind a button with their number', { skip: sixth(8) }, async (t) => {
  const { page } = await visit(t, '/requests?upstream=openai&outcome=failed&sort=-cost', { width: 390 })
  const search = page.getByLabel('Search requests')
  const button = page.getByRole('button', { name: 'Filters (2)' })
  await button.waitFor()
  t.equal(await search.isVisible(), false)
  await button.click()
  t.equal(await search.isVisible(), true)
  t.equal(await button.getAttribute('aria-expanded'), 'true')
  await looks(t, page, 'the filters of a phone')
  await search.press('Escape')
  await search.waitFor({ state: 'hidden' })
  t.equal(await button.evaluate('document.activeElement?.innerText'), 'Filters (2)')
  await button.click()
  await page.getByRole('button', { name: 'Done' }).click()
  await search.waitFor({ state: 'hidden' })
  await button.click()
  await page.setViewportSize({ width: 1440, height: 900 })
  t.equal(await button.isVisible(), false)
  t.equal(await search.isVisible(), true)
})

void file.test('one endpoint that fails is no lost connection', { skip: sixth(9) }, async (t) => {
  const { page, asked } = await visit(t, '/', {
    api: (_, path, query) =>
      path === '/usage'
        ? { status: 503, body: { detail: 'The sums are busy.', kind: 'x' } }
        : { body: replyTo(path, query) },
  })
  await page.getByRole('alert').getByText('The sums are busy.').first().waitFor()
  const calls = asked.filter((call) => call.startsWith('GET /usage?'))
  t.ok(calls.length >= 4, 'each load was repeated before it was given up')
  await page.getByText('not updated', { exact: true }).waitFor()
  t.equal(await page.getByText('Reconnecting…').count(), 0)
})

void file.test('a failure is shown at its turn; an edit sends no request', { skip: sixth(10) }, async (t) => {
  let isBroken = true
  const { page, asked } = await visit(t, '/playground', {
    api: (_, path, query) => {
      if (!path.startsWith('/playground/')) return { body: replyTo(path, query) }
      // Replies in the Gemini format are whole, which the test's server supports.
      if (!isBroken) {
        const parts = [{ text: 'Rhine, Nile, Amazon.' }]
        return { body: { candidates: [{ content: { parts }, finishReason: 'STOP' }] } }
      }
      const message = 'The upstream is busy.'
      return { status: 429, body: { error: { message, code: 429, kind: 'upstream_busy' } } }
    },
  })
  const calls = (): number => asked.filter((call) => call.startsWith('POST /playground/')).length
  await choose(page, 'Client format', 'Gemini')
  const write = async (text: string): Promise<void> => {
    await page.getByLabel('Message', { exact: true }).fill(text)
    await page.getByRole('button', { name: 'Send' }).click()
  }
  await write('Name three rivers.')
  const first = page.getByRole('article', { name: 'Turn 1' })
  await first.getByRole('alert').waitFor()
  isBroken = false
  await write('Name three lakes.')
  const second = page.getByRole('article', { name: 'Turn 2' })
  await second.getByText('Rhine, Nile, Amazon.').waitFor()
  t.match(await first.getByRole('alert').innerText(), 'The upstream is busy.', 'it is still there')
  await first.getByRole('button', { name: 'Retry' }).click()
  await first.getByText('Rhine, Nile, Amazon.').waitFor()
  t.equal(await first.getByRole('alert').count(), 0)
  t.equal(calls(), 3)

  await first.getByRole('button', { name: 'Edit' }).click()
  await first.getByLabel('Edit message').fill('Name three hills.')
  await first.getByRole('button', { name: 'Save' }).click()
  await first.getByText('Name three hills.').waitFor()
  t.equal(calls(), 3, 'nothing is sent')
  await first.getByRole('button', { name: 'Run again' }).click()
  await first.getByRole('button', { name: 'Copy reply' }).waitFor()
  t.equal(calls(), 4, 'one turn alone')
  t.match(await second.innerText(), 'Name three lakes.', 'the turn after it stays')
  t.strictSame(await violations(page), [])
})

void file.test('on a phone the composer comes first', { skip: sixth(11) }, async (t) => {
  const { page } = await visit(t, '/playground', { api: busy, width: 360 })
  const top = async (name: string): Promise<number> => {
    const box = await page.getByLabel(name, { exact: true }).boundingBox()
    return box?.y ?? Number.NaN
  }
  t.ok((await top('Message')) < (await top('Model')), 'above the settings')
  const order: unknown = await page.evaluate(
    `[...document.querySelectorAll('textarea, select')].findIndex((each) => each.ariaLabel === 'Message')`,
  )
  t.equal(order, 0, 'and first for the keyboard')
})

void file.test('colours are by rank, one for a model in a view', { skip: sixth(12) }, async (t) => {
  const { page } = await visit(t, '/')
  const colours = async (chart: string): Promise<[name: string, colour: string][]> => {
    const figure = page.getByRole('figure').filter({ hasText: chart })
    await figure.getByRole('listitem').filter({ hasText: 'gpt-5.4' }).waitFor()
    const items = await figure.locator('.legend li').all()
    return Promise.all(
      items.map(async (item) => {
        const style = (await item.locator('.swatch').getAttribute('style')) ?? ''
        return [await item.innerText(), style] as [string, string]
      }),
    )
  }
  const [first, second] = await colours('Cost by model')
  t.match([first?.[1], second?.[1]], ['--series-1', '--series-2'])
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Usage' }).click()
  await page.getByRole('heading', { name: 'Usage', level: 1 }).waitFor()
  const before = await colours('Cost by account')
  await page
    .getByRole('list', { name: 'Figures' })
    .getByRole('button', { name: /^Requests/ })
    .click()
  t.same(await colours('Requests by account'), before)
  await page.reload()
  t.same(await colours('Requests by account'), before, 'also after a reload')
})

void file.test(
  'by keyboard: from the search to a row, and on in its drawer',
  { skip: sixth(13) },
  async (t) => {
    const { page } = await visit(t, '/requests')
    await page.locator('.row-open').nth(1).waitFor()
    await page.keyboard.press('/')
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    const drawer = page.getByRole('dialog', { name: 'Request' })
    await drawer.getByRole('group', { name: 'Summary' }).waitFor()
    const shown = (): string | null => new URL(page.url()).searchParams.get('request')
    const first = shown()
    await page.keyboard.press('j')
    const second = shown()
    t.not(second, first, 'the next row')
    await page.keyboard.press('k')
    t.equal(shown(), first, 'the previous one')
    await page.keyboard.press('k')
    t.equal(shown(), first, 'before the first there is none')
    await page.keyboard.press('Escape')
    await drawer.waitFor({ state: 'detached' })
  },
)

void file.test('a filter by label proposes those of all keys', { skip: sixth(14) }, async (t) => {
  const old = { labels: { team: 'red' } }
  const { page, asked } = await visit(t, '/keys', {
    api: (_, path, query) => {
      const body = objectOf(replyTo(path, query))
      if (path !== '/keys' || query.get('search') !== 'team=r') return { body }
      const [first] = arrayOf(body['keys'])
      return { body: { ...body, keys: [{ ...objectOf(first), ...old }] } }
    },
  })
  await page.getByRole('button', { name: 'Add filter' }).click()
  await page.getByRole('option', { name: 'Label', exact: true }).click()
  await page.getByPlaceholder('Label is …').fill('team=r')
  await page.getByRole('option', { name: 'team=red', exact: true }).click()
  await page.waitForURL(/label=team%3Dred/)
  await page.getByRole('button', { name: 'Remove filter Label' }).waitFor()
  t.equal(lastOf(asked, '/keys').get('label'), 'team=red')
})
