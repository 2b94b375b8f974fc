/**
 * `node build/test/runner/group.js` runs the test files of SLUICE_TEST_FILES in one process, one after the
 * other: starting Node and loading the gateway costs most of them more than their tests. Each is a subtest
 * with the file's name. The files are no arguments, because tap names temporary folders after these.
 */
import { register } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { cpuSeconds, recordCpu } from './cpu-time.js'
import { currentFile } from './current-file.js'

register('./group-hooks.js', import.meta.url)
t.setTimeout(0)
for (const file of (process.env['SLUICE_TEST_FILES'] ?? '').split(' ')) {
  const before = cpuSeconds()
  await t.test(file, async (t) => {
    currentFile.t = t
    await import(pathToFileURL(join(process.cwd(), file)).href)
  })
  recordCpu(file, cpuSeconds() - before)
}
