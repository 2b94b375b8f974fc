/**
 * Goal: no test is left to the long suite without a row in its table, and each row names files that exist.
 * Method: reads the imports of every test file, also those of its helpers.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { LONG_FILES, longFiles } from '../runner/long-files.js'

const HELPER = join('test', 'helpers', 'long-suite.ts')
const usesHelper = new Map<string, boolean>()

function uses(path: string): boolean {
  const known = usesHelper.get(path)
  if (known !== undefined) return known
  usesHelper.set(path, false)
  const imports = [...readFileSync(path, 'utf8').matchAll(/ from '(\.[^']*)\.js'/g)]
    .map(([, name = '']) => `${join(dirname(path), name)}.ts`)
    .filter((name) => name.startsWith('test/') && existsSync(name))
  const found = path === HELPER || imports.some(uses)
  usesHelper.set(path, found)
  return found
}

const files = readdirSync('test', { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.test.ts'))
  .map((name) => join('test', name))

void t.test('each test file that leaves something to the long suite is in its table', (t) => {
  const chosen = new Set(longFiles(files, false))
  t.same(
    files.filter((path) => uses(path) && !chosen.has(path)),
    [],
  )
  t.end()
})

void t.test('each row has a file that leaves something, and sources that exist', (t) => {
  for (const [part, sources] of Object.entries(LONG_FILES)) {
    t.ok(
      files.some((path) => path.includes(part) && uses(path)),
      part,
    )
    for (const source of sources) t.ok(existsSync(source), `${part}: ${source}`)
  }
  t.end()
})
