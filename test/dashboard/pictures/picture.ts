/**
 * Makes the README's picture: a gateway with a month of use, its overview in Chromium,
 * `docs/pictures/dashboard.png`. Run by `npm run picture`; not a test.
 */
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromium } from 'playwright-core'
import { openConfig } from '../../../src/config/generations/config-at-start.js'
import { openDataPlane } from '../../../src/process/data-plane.js'
import { startEmulator } from '../../../src/emulator/server.js'
import { createLogger } from '../../../src/observe/log.js'
import { Metrics } from '../../../src/observe/metrics/metrics.js'
import { packageFile } from '../../../src/config/package-file.js'
import { fileText } from '../../process/program.js'
import { CHROMIUM } from '../browser/browser.js'
import { fill, LOGIN } from '../fixtures/filled.js'

const FILE = packageFile('docs/pictures/dashboard.png')
const PER_DAY = 2_400

const folder = mkdtempSync(join(tmpdir(), 'sluice-picture-'))
try {
  await fill(join(folder, 'data'), Date.now(), PER_DAY)
  const emulator = await startEmulator({})
  copyFileSync(packageFile('config/models.yaml'), join(folder, 'models.yaml'))
  writeFileSync(join(folder, 'gateway.yaml'), fileText(emulator))
  const source = await openConfig(join(folder, 'gateway.yaml'), process.env)
  const plane = await openDataPlane(source.current(), {
    log: createLogger({ level: 'warn' }),
    metrics: new Metrics(),
  })
  try {
    await takePicture(`http://127.0.0.1:${plane.port}/dashboard/`)
  } finally {
    await plane.drain()
    await source.close()
    await emulator.close()
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}

async function takePicture(address: string): Promise<void> {
  const browser = await chromium.launch({
    ...(CHROMIUM === undefined ? {} : { executablePath: CHROMIUM }),
    args: ['--no-sandbox'],
  })
  try {
    const page = await browser.newPage({ viewport: { width: 1280, height: 1_200 } })
    await page.goto(address)
    await page.getByLabel('E-mail').fill(LOGIN.email)
    await page.getByLabel('Password').fill(LOGIN.password)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page
      .getByRole('img', { name: /^Cost by model/ })
      .locator('canvas')
      .waitFor()
    await page.getByRole('table').waitFor()
    // Hides the pointer and the focus of signing in.
    await page.mouse.move(0, 0)
    await page.waitForTimeout(500)
    await page.screenshot({ path: FILE })
  } finally {
    await browser.close()
  }
}
