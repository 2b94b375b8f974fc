/**
 * Goal: a version of Node that the program does not run on is refused with one line.
 * Method: the entry is run with another `process.versions.node`, alone in a folder, so that any import before
 * the refusal would fail.
 */
import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { isObject, objectOf, stringOf } from '../../../src/base/json.js'
import { MAIN } from '../program.js'

/** Runs `node main.js --version` as if this were Node `version`. */
function runAs(version: string, main: string) {
  const preload = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } })`
  const url = `data:text/javascript,${encodeURIComponent(preload)}`
  const args = ['--import', url, main, '--version']
  return spawnSync(process.execPath, args, { encoding: 'utf8', timeout: 20_000 })
}

const manifest: unknown = JSON.parse(readFileSync('package.json', 'utf8'))
const engines = isObject(manifest) ? objectOf(manifest['engines']) : {}
const least = (stringOf(engines['node']) ?? '').replace('>=', '')

void t.test('an older Node is refused with one line, before anything is imported', (t) => {
  const folder = join(t.testdir(), 'alone')
  mkdirSync(folder)
  const main = join(folder, 'main.js')
  copyFileSync(MAIN, main)
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
  for (const version of ['12.22.12', '18.20.4', '20.9.0', '20.18.0']) {
    const { status, stdout, stderr } = runAs(version, main)
    t.equal(status, 1, version)
    t.equal(stdout, '')
    t.equal(stderr, `sluice: Needs Node.js ${least} or newer, this is ${version}\n`)
  }
  const { stderr } = runAs(least, main)
  t.match(stderr, /run-command-\w+\.js/, 'a supported version imports the program')
  t.end()
})

void t.test('the oldest supported Node and newer ones are accepted', (t) => {
  for (const version of [least, '20.20.0', '22.0.0', '26.1.0']) {
    const { status, stdout } = runAs(version, MAIN)
    t.equal(status, 0, version)
    t.match(stdout, /^sluice \d/)
  }
  t.end()
})
