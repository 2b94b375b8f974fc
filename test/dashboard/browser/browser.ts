/**
 * One Chromium per process: pages that record their errors, what axe finds in them, and tasks whose clicks
 * are counted.
 */
import { existsSync, readFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { createRequire } from 'node:module'
import { chromium, type Browser, type BrowserContextOptions, type Locator, type Page } from 'playwright-core'
import { t as root, type Test } from 'tap'
import { IS_LONG } from '../../helpers/long-suite.js'
import { PASSWORD } from '../../helpers/password.js'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/**
 * Chromium's program, or why the tests of the page are skipped; under CI a missing one fails. The one without
 * a window takes half of the CPU time.
 */
export const CHROMIUM: string | undefined = ['chromium-headless-shell', 'chromium']
  .flatMap((name) => (process.env['PATH'] ?? '').split(delimiter).map((folder) => join(folder, name)))
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

let shared: Promise<Browser> | undefined

async function start(): Promise<Browser> {
  const browser = await chromium.launch({
    ...(CHROMIUM === undefined ? {} : { executablePath: CHROMIUM }),
    args: ['--no-sandbox'],
  })
  root.teardown(() => browser.close())
  return browser
}

/** The Chromium of this process, whose tests run in sequence: its pages end with the test. */
export async function launch(t: Test): Promise<Browser> {
  shared ??= start()
  const browser = await shared
  t.teardown(() => Promise.all(browser.contexts().map((context) => context.close())))
  return browser
}

/**
 * A page in a browser context of its own. The console message of a refused call is not recorded as an error.
 */
export async function open(browser: Browser, options: BrowserContextOptions = {}): Promise<Watched> {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 860 },
    // Each frame of a fade is drawn.
    reducedMotion: IS_LONG ? 'no-preference' : 'reduce',
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

/** What axe looks at, by default the whole page, and its rules, by default all. */
interface Search {
  readonly rule?: 'color-contrast' | undefined
  /** A selector. */
  readonly part?: string | undefined
}

/** The violations that axe finds in the current page once its transitions have ended, one line each. */
export async function violations(page: Page, { rule, part }: Search = {}): Promise<string[]> {
  await page.evaluate(TRANSITIONS_END)
  // Once for a document: it is half a megabyte of code.
  if ((await page.evaluate('typeof axe')) === 'undefined') await page.evaluate(AXE)
  const rules = rule === undefined ? {} : { runOnly: [rule] }
  // The page has no audio or video, and its style sheets have no rule for an orientation.
  const options = { resultTypes: ['violations'], preload: false, ...rules }
  const found: unknown = await page.evaluate(
    `axe.run(${part === undefined ? 'document' : JSON.stringify(part)}, ${JSON.stringify(options)}).then(({ violations }) =>
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

/** Chooses an option of a selection by its texts. */
export async function choose(within: Page | Locator, label: string, option: string): Promise<void> {
  const page = 'mouse' in within ? within : within.page()
  await within.getByLabel(label, { exact: true }).click()
  await page.getByRole('option', { name: option, exact: true }).click()
}

/** What a person does for a task: clicks and selections are counted, and the time is reported. */
export class Task {
  readonly page: Page
  clicks = 0
  private readonly startMs = performance.now()

  constructor(page: Page) {
    this.page = page
  }

  async click(target: Locator): Promise<void> {
    this.clicks += 1
    await target.click()
  }

  async select(label: string, option: string): Promise<void> {
    this.clicks += 1
    await choose(this.page, label, option)
  }

  /** A page of the rail; the account stays that of the view. */
  nav(name: string): Promise<void> {
    const rail = this.page.getByRole('navigation', { name: 'Pages' })
    return this.click(rail.getByRole('link', { name, exact: true }))
  }

  /** The task is done, with at most this number of clicks. */
  end(t: Test, name: string, most: number): void {
    const seconds = ((performance.now() - this.startMs) / 1_000).toFixed(1)
    t.comment(`${name}: ${this.clicks} clicks, ${seconds} s`)
    t.ok(this.clicks <= most, `${name}: ${this.clicks} of at most ${most} clicks`)
  }
}

/** The first heading of a page. */
export function heading(page: Page, name: string): Locator {
  return page.getByRole('heading', { name, level: 1 })
}

/** Fails for faults of accessibility, and for messages in the console. */
export async function inOrder(t: Test, { page, complaints }: Watched, where: string): Promise<void> {
  t.strictSame(await violations(page), [], `${where}: axe`)
  t.strictSame(complaints.splice(0), [], `${where}: console`)
}

/** Signs in at the form. */
export async function signIn(
  page: Page,
  { origin }: { readonly origin: string },
  email: string,
): Promise<void> {
  await page.goto(`${origin}/dashboard/`)
  await page.getByLabel('E-mail').fill(email)
  await page.getByLabel('Password').fill(PASSWORD)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
}
