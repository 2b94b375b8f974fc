/** Pages of the dashboard for which the test is the server. */
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { open, type Watched } from './browser.js'
import { objectOf } from '../../../src/base/json.js'
import { ORIGIN, standIn, type Api } from '../fixtures/fake-api.js'
import { replyTo } from '../fixtures/replies.js'

/** A gateway in use. */
export const busy: Api = (method, path, query) => {
  const body = replyTo(method === 'GET' ? path : path.replace('/rotate', ''), query)
  // The only reply that a scene gets for a change: the new key.
  if (!path.endsWith('/rotate')) return { body }
  return { body: { ...objectOf(body), secret: `sk_${'0'.repeat(40)}`, oldEndsAtMs: null } }
}

/** Opens a page with the replies of `api`. */
export async function visit(
  browser: Browser,
  path: string,
  { api, options = {} }: { api: Api; options?: BrowserContextOptions },
): Promise<Watched> {
  const watched = await open(browser, options)
  await standIn(watched.page, api)
  await goTo(watched.page, path)
  return watched
}

/** The address of no page, and its heading. */
const NOWHERE = '/no-such-page'
const NOWHERE_HEADING = 'Not found'

/** Changes the address as a link of the page does. */
function follow(page: Page, path: string): Promise<unknown> {
  const address = JSON.stringify(`/dashboard${path}`)
  return page.evaluate(
    `history.pushState(null, '', ${address}); dispatchEvent(new PopStateEvent('popstate'))`,
  )
}

/**
 * Resolves when the page has its heading. The page is loaded once, which takes more time than a look at it:
 * then its address changes, by way of one that has no page, so that what was open there is gone.
 */
export async function goTo(page: Page, path: string): Promise<void> {
  // Under an open dialog the page is hidden from screen readers, so it has no role.
  const heading = page.locator('h1')
  if (page.url().startsWith(ORIGIN)) {
    await follow(page, NOWHERE)
    await heading.filter({ hasText: NOWHERE_HEADING }).waitFor()
    await follow(page, path)
    if (path !== NOWHERE) await heading.filter({ hasNotText: NOWHERE_HEADING }).first().waitFor()
  } else {
    await page.goto(`${ORIGIN}/dashboard${path}`)
    await heading.first().waitFor()
  }
}

/** Resolves when the content is there: the heading is shown before it. */
export async function settle(page: Page): Promise<void> {
  while ((await page.locator('.late').count()) > 0) await page.waitForTimeout(20)
}
