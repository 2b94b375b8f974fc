/**
 * Goal: the runner counts what a process of tests has passed, failed and skipped, and prints what failed; a
 * process that ends early, with any exit code, or that does not end at all, has failed.
 * Method: test files of a temporary folder, each run as the suite runs them.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { runUnit, type Ended } from './run-unit.js'
import { failedFilesIn, failuresIn } from './test-output.js'

/** Blocks a process that waits for its first element, without using a core. */
const FOREVER = 'new Int32Array(new SharedArrayBuffer(4))'
const TAP = JSON.stringify(import.meta.resolve('tap'))

function runs(t: Test, body: string, limitMs = 60_000): Promise<Ended> {
  const file = join(t.testdir(), 'a.test.mjs')
  writeFileSync(file, `import t from ${TAP}\n${body}`)
  const env = { ...process.env, NODE_OPTIONS: undefined, TAP_TIMEOUT: '60' }
  return runUnit({ name: file, files: [file] }, { args: [file], env, limitMs, isShown: false })
}

void t.test('what passed and what was left out', async (t) => {
  const body =
    "t.test('a', async (t) => { t.ok(1, 'one'); t.ok(0, 'later', { todo: true }) })\nt.ok(1, 'no', { skip: 'why' })"
  const ended = await runs(t, `${body}\nconsole.error('a warning')`)
  t.match(ended, { isPassed: true, end: 0, counts: { pass: 1, fail: 0, skip: 1 }, written: 'a warning\n' })
  t.strictSame(failuresIn(ended.tap), [])
})

void t.test('what failed, with its difference, in the test of its file', async (t) => {
  const file =
    "t.test('a.test.js', async (t) => { await t.test('b', async (t) => { t.equal(1, 2, 'sum') }) })"
  const ended = await runs(t, `${file}\nt.test('b.test.js', async (t) => { t.ok(1, 'fine') })`)
  t.match(ended, { isPassed: false, end: 1, counts: { pass: 1, fail: 1, skip: 0 } })
  const reported = failuresIn(ended.tap)
  t.match(reported.join('\n'), /-2\n.*\+1\n/)
  const names = reported.filter((line) => line.includes('not ok')).map((line) => line.trim().split(' # ')[0])
  t.strictSame(names, ['not ok 1 - sum', 'not ok 1 - b', 'not ok 1 - a.test.js'])
  t.strictSame(failedFilesIn(ended.tap, ['b.test.js', 'a.test.js']), ['a.test.js'])
})

void t.test('a process that ends before its tests', async (t) => {
  const ended = await runs(t, "t.ok(1, 'one')\nprocess.kill(process.pid, 'SIGKILL')")
  t.match(ended, { isPassed: false, end: 'SIGKILL' })
})

void t.test('a process that takes too long, and does not end its tests', async (t) => {
  const ended = await runs(t, `t.ok(1, 'one')\nAtomics.wait(${FOREVER}, 0, 0)`, 500)
  t.match(ended, { isPassed: false, end: 'SIGKILL' })
  t.ok(ended.seconds < 60)
})
