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

/** Resolves when the page has its heading. */
export async function goTo(page: Page, path: string): Promise<void> {
  await page.goto(`${ORIGIN}/dashboard${path}`)
  // Under an open dialog the page is hidden from screen readers, so it has no role.
  await page.locator('h1').first().waitFor()
}

/** Resolves when the content is there: the heading is shown before it. */
export async function settle(page: Page): Promise<void> {
  while ((await page.locator('.late').count()) > 0) await page.waitForTimeout(20)
}
