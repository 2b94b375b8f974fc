/**
 * Goal: a person opens the page of a program, signs in with the identity provider, returns to the page and
 * approves or denies; the code of the address is not sent by itself; the page fits a telephone and passes axe
 * in both themes.
 * Method: a real Chromium, the built page, and a real provider with a page of its own.
 */
import t, { type Test } from 'tap'
import type { Page } from 'playwright-core'
import { launch, open, overflow, SKIP, violations, heading } from '../../dashboard/browser/browser.js'
import { DEVICE_GRANT, startLogin, textIn } from './login-stage.js'

t.setTimeout(120_000)

void t.test('a person approves a program in a browser', { skip: SKIP }, async (t) => {
  const stage = await startLogin(t, {}, {}, { emailInToken: false, hasConsentPage: true })
  const { origin, post } = stage
  await stage.account('ada@example.com')
  stage.provider.person = { email: 'ada@example.com', verified: true }
  const browser = await launch(t)
  for (const colorScheme of ['light', 'dark'] as const) {
    const { page, complaints } = await open(browser, { colorScheme, viewport: { width: 390, height: 800 } })
    const asked: string[] = []
    page.on('request', (request) => asked.push(request.url()))
    const begun = await post('/auth/device/code', {}, { headers: { 'user-agent': 'claude-code/2.1' } })
    await page.goto(textIn(begun.json, 'verification_uri_complete'))
    await page.getByRole('button', { name: 'Sign in with Acme' }).click()
    await page.getByRole('button', { name: 'Continue as ada@example.com' }).click()
    await heading(page, 'Let a program act for you').waitFor()
    t.equal(await page.getByLabel('Code').inputValue(), textIn(begun.json, 'user_code'))
    t.notOk(
      asked.some((url) => url.includes('/api/device/')),
      'the code is not sent by itself',
    )
    await inOrder(t, page, `${colorScheme}: code`)
    await page.getByRole('button', { name: 'Continue' }).click()
    await heading(page, 'Let claude-code act for you?').waitFor()
    await inOrder(t, page, `${colorScheme}: decision`)
    const isApproved = colorScheme === 'light'
    await page.getByRole('button', { name: isApproved ? 'Approve' : 'Deny' }).click()
    await heading(page, isApproved ? 'Approved' : 'Denied').waitFor()
    await inOrder(t, page, `${colorScheme}: end`)
    const form = { grant_type: DEVICE_GRANT, device_code: textIn(begun.json, 'device_code') }
    t.equal((await post('/auth/device/token', form)).status, isApproved ? 200 : 400)
    t.strictSame(complaints, [])

    await page.goto(`${origin}/auth/device`)
    await page.getByLabel('Code').fill('bcdf-bcdf')
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.getByText('No program waits with this code').waitFor()
    await page.context().close()
  }
})

async function inOrder(t: Test, page: Page, where: string): Promise<void> {
  t.strictSame(await violations(page), [], `${where}: axe`)
  t.ok((await overflow(page)) <= 0, `${where}: fits 390 px`)
}
