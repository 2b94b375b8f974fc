/**
 * Makes the pictures of `docs/how-to/read-a-failure.md`: the drawer of each of the ten prepared failures, in
 * `docs/pictures/failures`. Run by `npm run picture`; not a test.
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { packageFile } from '../../../src/config/package-file.js'
import { eachDrawer } from './failure-drawers.js'

const FOLDER = packageFile('docs/pictures/failures')
/** The drawer down to its attempts; the rest is the same in every drawer. */
const HEIGHT = 700

t.setTimeout(240_000)
mkdirSync(FOLDER, { recursive: true })
void t.test('pictures', async (t) => {
  await eachDrawer(t, async ({ slug, page, drawer }) => {
    await page.setViewportSize({ width: 1280, height: HEIGHT })
    // Hides the focus ring of the opened drawer.
    await drawer.getByRole('heading', { name: 'Request', exact: true }).first().click()
    await drawer.screenshot({ path: join(FOLDER, `${slug}.png`) })
    t.pass(slug)
  })
})
