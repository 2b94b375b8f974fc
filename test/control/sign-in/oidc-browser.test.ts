/**
 * Goal: signing in with a provider works in a browser, from the button to the overview and out again; a
 * refused user sees the reason and can try again.
 * Method: a real Chromium, the built page, and a real provider with a page of its own.
 */
import t, { type Test } from 'tap'
import type { Browser } from 'playwright-core'
import { launch, open, SKIP, type Watched, heading, inOrder } from '../../dashboard/browser/browser.js'
import { scene, type Scene } from './oidc-stage.js'
import type { Person } from './identity-provider.js'

t.setTimeout(120_000)

const ADA: Person = { email: 'ada@example.com', verified: true }

void t.test('sign-in with a provider works in a browser', { skip: SKIP }, async (t) => {
  const stage = await scene(t, { emailInToken: false, hasConsentPage: true })
  await stage.account(ADA.email)
  const browser = await launch(t)

  void t.test('signs in and out', async (t) => {
    const watched = await atTheDoor(browser, stage, '/')
    const { page } = watched
    await inOrder(t, watched, 'the door')
    await page.getByRole('button', { name: 'Sign in with Acme' }).click()
    await page.getByRole('button', { name: `Continue as ${ADA.email}` }).click()
    await heading(page, 'Overview').waitFor()
    t.equal(await page.evaluate('location.pathname + location.search'), '/dashboard/')
    await inOrder(t, watched, 'signed in')
    const cookies = await page.context().cookies(stage.origin)
    const ours = cookies.map(({ name }) => name).filter((name) => name.startsWith('__Host-'))
    t.same(ours.sort(), ['__Host-device', '__Host-sid'], 'and none of the sign-in')

    await page.reload()
    await heading(page, 'Overview').waitFor()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await heading(page, 'Sign in').waitFor()
    await page.goto(`${stage.origin}/dashboard/keys`)
    await heading(page, 'Sign in').waitFor()
    await inOrder(t, watched, 'signed out')
    const { entries } = await trailOf(stage)
    t.same(entries, ['session.sign-in-oidc'])
  })

  void t.test('a refused user sees the reason and tries again', async (t) => {
    const refusals: [Person, RegExp][] = [
      [{ email: ADA.email, verified: false }, /not verified/],
      [{ email: 'unknown@example.com', verified: true }, /Ask an administrator/],
    ]
    for (const [person, why] of refusals) {
      stage.provider.person = person
      const watched = await atTheDoor(browser, stage, '/')
      const { page } = watched
      await page.getByRole('button', { name: 'Sign in with Acme' }).click()
      await page.getByRole('button', { name: `Continue as ${person.email}` }).click()
      await refused(t, watched, why)
    }
    stage.provider.person = ADA
    const watched = await atTheDoor(browser, stage, '/')
    const { page } = watched
    await page.getByRole('button', { name: 'Sign in with Acme' }).click()
    await page.getByRole('button', { name: 'Cancel' }).click()
    await refused(t, watched, /sign in again/)
    await page.getByRole('button', { name: 'Sign in with Acme' }).click()
    await page.getByRole('button', { name: `Continue as ${ADA.email}` }).click()
    await heading(page, 'Overview').waitFor()
    t.strictSame(watched.complaints, [])
  })
})

/** The page in a new browser without a session. */
async function atTheDoor(browser: Browser, { origin }: Scene, path: string): Promise<Watched> {
  const watched = await open(browser)
  await watched.page.goto(`${origin}/dashboard${path}`)
  await heading(watched.page, 'Sign in').waitFor()
  return watched
}

/** The reason is shown, the address contains none of it, and a button leads back. */
async function refused(t: Test, watched: Watched, why: RegExp): Promise<void> {
  const { page } = watched
  await page.getByText(why).waitFor()
  t.equal(await page.evaluate('location.pathname + location.search'), '/dashboard/oidc')
  await inOrder(t, watched, String(why))
  await page.getByRole('button', { name: 'Back to sign in' }).click()
  await heading(page, 'Sign in').waitFor()
}

async function trailOf({ store }: Scene): Promise<{ entries: string[] }> {
  const page = await store.auditTrail.page({ accountId: null, after: null, limit: 100 })
  return { entries: page.map(({ action }) => action) }
}
