/**
 * `node build/node_modules/tap/group.js` runs the test files of SLUICE_TEST_FILES in one process, one after
 * the other: starting Node and loading the gateway costs most of them more than their tests. Each is a
 * subtest with the file's name. The files are no arguments, because tap names temporary folders after these.
 * After each file the environment has its variables of the start again.
 */
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { cpuSeconds, recordCpu } from './cpu-time.js'
import { current } from './tap.js'

t.setTimeout(0)
const variables = { ...process.env }
for (const file of (process.env['SLUICE_TEST_FILES'] ?? '').split(' ')) {
  const before = cpuSeconds()
  await t.test(file, async (t) => {
    current.t = t
    await import(pathToFileURL(join(process.cwd(), file)).href)
  })
  for (const name of Object.keys(process.env)) {
    if (!(name in variables)) Reflect.deleteProperty(process.env, name)
  }
  Object.assign(process.env, variables)
  recordCpu(file, cpuSeconds() - before)
}
