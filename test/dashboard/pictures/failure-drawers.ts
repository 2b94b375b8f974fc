/**
 * The ten prepared failures, each in the drawer of its request: one gateway, one Chromium, signed in as the
 * account.
 */
import type { Test } from 'tap'
import type { Locator, Page } from 'playwright-core'
import {
  makeAll,
  openFailureScene,
  TEN_FAILURES,
  type PreparedFailure,
} from '../../gateway/failures/ten-failures.js'
import { launch, open } from '../browser/browser.js'

/** The account of the failures. */
const LOGIN = { email: 'test@example.com', password: 'correct horse battery staple' }

/** Names of the pictures, in the order of the failures. */
const SLUGS = [
  'rate-limit',
  'budget',
  'unknown-model',
  'provider-429',
  'provider-500',
  'truncated-stream',
  'timeout',
  'bad-credential',
  'untranslatable-field',
  'client-gone',
] as const

/** A failure, and the drawer that explains it. */
export interface Explained {
  readonly failure: PreparedFailure
  readonly slug: string
  readonly page: Page
  readonly drawer: Locator
}

/** Makes the failures and calls `look` with the drawer of each. Resolves with the errors of the page. */
export async function eachDrawer(
  t: Test,
  look: (explained: Explained) => Promise<void>,
): Promise<readonly string[]> {
  const scene = await openFailureScene(t)
  const ids = await makeAll(scene)
  const { page, complaints } = await open(await launch(t))
  const address = `${scene.gateway.origin}/dashboard/requests`
  await page.goto(address)
  await page.getByLabel('E-mail').fill(LOGIN.email)
  await page.getByLabel('Password').fill(LOGIN.password)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await page.getByRole('heading', { name: 'Requests', level: 1 }).waitFor()
  for (const [at, failure] of TEN_FAILURES.entries()) {
    await page.goto(`${address}?request=${ids[at] ?? ''}`)
    const drawer = page.getByRole('dialog', { name: 'Request' })
    await drawer.getByRole('region', { name: 'Failure' }).waitFor()
    await look({ failure, slug: SLUGS[at] ?? String(at), page, drawer })
  }
  return complaints
}
