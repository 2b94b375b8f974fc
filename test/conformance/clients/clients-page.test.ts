/**
 * Goal: the JavaScript programs of `docs/reference/clients.md` work unchanged, and its endpoints are those
 * that exist.
 * Method: runs each program with a running gateway.
 */
import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { ENDPOINTS } from '../../../src/formats/match-endpoint.js'
import { startGateway } from '../../helpers/gateway.js'

const PAGE = readFileSync('docs/reference/clients.md', 'utf8')
const PROGRAMS = [...PAGE.matchAll(/```js\n([\s\S]*?)```/g)].map(([, program = '']) => program)

void t.test('each program prints a reply', async (t) => {
  const gateway = await startGateway(t)
  // Below the project, so that its packages are found.
  const folder = t.testdir()
  const env = { ...process.env, SLUICE_URL: gateway.origin, SLUICE_KEY: gateway.secret }
  t.ok(PROGRAMS.length >= 4)
  for (const [at, program] of PROGRAMS.entries()) {
    const file = join(folder, `${at}.mjs`)
    writeFileSync(file, program)
    const { stdout } = await promisify(execFile)(process.execPath, [file], { env })
    t.match(stdout, 'Name three rivers.', program.split('\n')[0] ?? '')
  }
})

void t.test('every endpoint is on the page', (t) => {
  for (const { path } of ENDPOINTS) {
    const shown = path.replace(/^\/v1(?:beta)?\/models\/\{model\}(?=:)/, '')
    t.ok(PAGE.includes(`\`${shown}\``) || PAGE.includes(shown), path)
  }
  t.end()
})
