/** A look at a page in both themes and widths. */
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import type { Test } from 'tap'
import { DAY, IS_LONG } from '../../helpers/long-suite.js'
import { overflow, violations } from './browser.js'

const NEXT_FRAMES =
  'new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(null))))'

/** Widths of the window, and themes, of which axe looks at one combination. */
const WIDTHS = [1440, 390]
const THEMES = ['light', 'dark'] as const

/** How many looks this process has had. */
let looked = 0

/**
 * Neither axe nor the width of the window finds anything wrong with the page, at 1440 and 390 px, light and
 * dark. axe looks at one width and theme of each page, and every fourth day at others; the long suite, which
 * runs after each change of the page, at all: then dark needs only the rule of contrasts, because themes
 * differ in colours alone. With SLUICE_PICTURES, a folder, also takes pictures. With `part`,
 * axe looks only at what it selects; in the long suite at the whole page.
 */
export async function looks(t: Test, page: Page, name: string, part?: string): Promise<void> {
  const before = page.viewportSize()
  const folder = process.env['SLUICE_PICTURES']
  const look = (looked + Math.floor(DAY / 4)) % (WIDTHS.length * THEMES.length)
  looked += 1
  for (const [column, width] of WIDTHS.entries()) {
    await page.setViewportSize({ width, height: 900 })
    for (const [row, colorScheme] of THEMES.entries()) {
      const isAll = IS_LONG || folder !== undefined
      if (!isAll && look !== column * THEMES.length + row) continue
      await page.emulateMedia({ colorScheme })
      await page.evaluate(NEXT_FRAMES)
      const rule = isAll && colorScheme === 'dark' ? 'color-contrast' : undefined
      const found = await violations(page, { rule, part: isAll ? undefined : part })
      t.strictSame(found, [], `${name}, ${colorScheme}, ${width}: axe`)
      if (folder === undefined) continue
      const file = `${name}-${colorScheme}-${width}`.replaceAll(/[^a-z0-9]+/gi, '-')
      await page.screenshot({ path: join(folder, `${file}.png`) })
    }
    await page.evaluate(NEXT_FRAMES)
    t.equal(await overflow(page), 0, `${name}: nothing is wider than ${width} px`)
  }
  await page.emulateMedia({ colorScheme: null })
  if (before !== null) await page.setViewportSize(before)
}
