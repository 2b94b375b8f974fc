/**
 * One Chromium per test file: pages that record their errors, and axe checks.
 */
import { existsSync, readFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { createRequire } from 'node:module'
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core'
import type { Test } from 'tap'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** Chromium's program, or why the tests of the page are skipped; under CI a missing one fails. */
export const CHROMIUM: string | undefined = (process.env['PATH'] ?? '')
  .split(delimiter)
  .map((folder) => join(folder, 'chromium'))
  .find((path) => existsSync(path))

/** For tap: skips the tests if Chromium is missing, unless it is required. */
export const SKIP: string | false =
  CHROMIUM === undefined && process.env['CI'] !== 'true'
    ? 'chromium is not installed: the page is not looked at'
    : false

/** A page and its errors. */
export interface Watched {
  readonly page: Page
  /** Errors and warnings of the console, uncaught errors, and requests to other hosts. */
  readonly complaints: string[]
}

/** Starts Chromium; it ends with the test. */
export async function launch(t: Test): Promise<Browser> {
  const browser = await chromium.launch({
    ...(CHROMIUM === undefined ? {} : { executablePath: CHROMIUM }),
    args: ['--no-sandbox', '--headless=new'],
  })
  t.teardown(() => browser.close())
  return browser
}

/**
 * A page in a browser context of its own. The console message of a refused call is not recorded as an error.
 */
export async function open(
  browser: Browser,
  options: BrowserContextOptions = {},
): Promise<Watched> {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 860 },
    permissions: ['clipboard-read', 'clipboard-write'],
    ...options,
  })
  const page = await context.newPage()
  const complaints: string[] = []
  page.on('console', (message) => {
    const isAnswer = message.text().startsWith('Failed to load resource: the server responded')
    if (['error', 'warning'].includes(message.type()) && !isAnswer) complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(error.message))
  page.on('request', (request) => {
    const { protocol, hostname } = new URL(request.url())
    if (protocol.startsWith('http') && hostname !== '127.0.0.1') complaints.push(request.url())
  })
  return { page, complaints }
}

/** Elements that fade in or out have too little contrast until their transition ends. */
const TRANSITIONS_END = `Promise.all(
  document.getAnimations()
    .filter((it) => Number.isFinite(it.effect.getComputedTiming().endTime))
    .map((it) => it.finished.catch(() => null)),
).then(() => null)`

/** The violations that axe finds in the current page once its transitions have ended, one line each. */
export async function violations(page: Page): Promise<string[]> {
  await page.evaluate(TRANSITIONS_END)
  await page.evaluate(AXE)
  const found: unknown = await page.evaluate(
    `axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) =>
      violations.flatMap(({ id, nodes }) => nodes.map((node) => id + ' ' + node.target.join(' ') +
        ' ' + (node.any[0]?.message ?? ''))))`,
  )
  return Array.isArray(found) ? found.map(String) : ['axe did not answer']
}

/** How far the page is wider than its window, in pixels. */
export async function overflow(page: Page): Promise<number> {
  const pixels: unknown = await page.evaluate(
    'document.documentElement.scrollWidth - document.documentElement.clientWidth',
  )
  return Number(pixels)
}
