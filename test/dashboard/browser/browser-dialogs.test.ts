/**
 * Goal: each dialog and menu, in light and dark, wide and narrow: axe has no findings, the console is empty,
 * and nothing is wider than the window.
 * Method: as for the pages (`browser-states.test.ts`).
 */
import t from 'tap'
import { ofToday } from '../../helpers/long-suite.js'
import { launch, SKIP } from './browser.js'
import { looks } from './looks.js'
import { busy, goTo, visit } from './visit.js'

t.setTimeout(235_000)

/** Dialogs and menus: the page, and what is pressed there until they are open. */
const DIALOGS: readonly (readonly [path: string, ...presses: string[]])[] = [
  ['/keys', 'Actions for ci-runner'],
  ['/keys', 'Actions for ci-runner', 'Rotate'],
  ['/keys', 'Actions for ci-runner', 'Rotate', 'Rotate'],
  ['/keys', 'Actions for ci-runner', 'Revoke'],
  ['/keys?key=key_0', 'Edit'],
  ['/keys?key=key_0&edit=limits'],
  ['/requests', 'Add filter'],
  ['/usage', 'Account: All accounts'],
  ['/usage', 'Saved views'],
  ['/accounts', 'Create account'],
  ['/accounts', 'Actions for ada', 'Set budget'],
  ['/accounts/ada', 'Edit budget'],
  ['/accounts/ada?tab=settings', 'Edit settings'],
  ['/accounts/ada?tab=settings', 'Password link'],
  ['/accounts/ada?tab=settings', 'Disable'],
  ['/accounts/ada?tab=members', 'Add member'],
  ['/accounts/ada?tab=members', 'Actions for bo@example.com', 'Change role'],
  ['/accounts/ada?tab=members', 'Actions for bo@example.com', 'New link'],
  ['/accounts/ada?tab=members', 'Actions for bo@example.com', 'Remove'],
  ['/users', 'Invite'],
  ['/users', 'Actions for invited@example.com', 'Resend invitation'],
  ['/users', 'Actions for invited@example.com', 'Change role'],
  ['/users', 'Actions for pending@example.com', 'Disable'],
  ['/configuration', 'Roll back to 1'],
  ['/requests?request=req_0', 'Routing'],
  ['/requests?request=req_0', 'Raw'],
  ['/requests?request=req_0', 'Conversation', 'Show conversation'],
  ['/requests?request=req_0', 'Conversation', 'Delete recording'],
  ['/settings', 'Sign out everywhere'],
  ['/playground', 'Copy as code'],
]

/** What axe looks at: the page behind it is looked at alone. */
const OPEN = '[role=dialog], [role=alertdialog], [role=menu]'

void t.test('every dialog', { skip: SKIP }, async (t) => {
  const browser = await launch(t)
  const { page, complaints } = await visit(browser, '/', { api: busy })
  for (const [path, ...presses] of ofToday(DIALOGS, 4)) {
    await goTo(page, path)
    for (const name of presses) {
      const button = page.getByRole('button', { name, exact: true })
      await button
        .or(page.getByRole('menuitem', { name, exact: true }))
        .or(page.getByRole('tab', { name, exact: true }))
        .last()
        .click()
    }
    await page.locator(OPEN).last().waitFor()
    await looks(t, page, [path, ...presses].join(' '), OPEN)
  }
  await goTo(page, '/audit')
  for (const [keys, name] of [
    ['Control+k', 'Find'],
    ['?', 'Keyboard'],
  ] as const) {
    await page.keyboard.press(keys)
    const dialog = page.getByRole('dialog', { name })
    await dialog.waitFor()
    if (name === 'Find') await dialog.getByRole('searchbox').fill('grace')
    if (name === 'Find') await dialog.getByRole('link', { name: 'grace' }).waitFor()
    await looks(t, page, name, OPEN)
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
  }
  t.strictSame(complaints, [])
})
