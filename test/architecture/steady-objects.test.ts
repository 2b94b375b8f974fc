/**
 * Goal: objects of one literal have one hidden class in what is built, also where it begins with a spread:
 * Node 20 would make one for each object.
 * Method: literals run before and after the plugin of the build, with V8's own comparison of classes.
 */
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'

/** The part of the plugin that is tested. */
interface Plugin {
  readonly withSteadyObjects: (text: string) => string
}

const { withSteadyObjects } = (await import(
  pathToFileURL('scripts/steady-objects.mjs').href
)) as unknown as Plugin

void t.test('literals keep their meaning, and their lines', (t) => {
  const source = `// A line
const a = { c: 0, x: 1 }
const rest = ({ ...all }) => all
export const list = [
  { ...a, b: 2 },
  { ...{ b: 1, c: 2 }, d: 3 },
  {
    ...{ b: 1,
      c: 2, },
    // Between.
    ...a,
  },
  { ...{ get b() { return 4 } }, c: 5 },
  { ...{ ...a, b: 6 }, c: 7 },
  { ...{ ...a }, c: 8 },
  { ...{ '__proto__': { d: 9 } }, e: 9 },
  { a, ...a, ...{ b: 10 } },
  rest({ ...a }),
  '{ ...a, b }',
]
export const text = JSON.stringify([list, Object.getOwnPropertyDescriptors(list[3])])
`
  const made = withSteadyObjects(source)
  t.equal(made.split('\n').length, source.split('\n').length)
  t.equal(
    made.split('\n').findIndex((line) => line.includes('// Between.')),
    9,
  )
  t.match(made, /\{ \.\.\.null, \.\.\.a, b: 2 \},\n {2}\{ b: 1, c: 2, d: 3 \},/)
  t.match(made, "'{ ...a, b }',")
  t.match(made, 'rest({ ...a })')
  const before = run(t.testdir(), source, 'console.log(own.text)')
  t.equal(run(t.testdir(), made, 'console.log(own.text)'), before)
  t.match(before, /"b":4/)
  t.end()
})

void t.test('objects of a literal have one class', (t) => {
  const source = `export const made = [
  (a, b) => ({ ...a, b }),
  (a, b) => ({ ...{ a, b: 1 }, c: b }),
  (a, b) => ({ ...{ ...a, b }, ...{ c: b } }),
]
`
  const check = `const of = { x: 1, y: 'z' }
for (const make of own.made) {
  let last = make(of, 0)
  let same = 0
  for (let at = 1; at <= 1000; at += 1) {
    const next = make(of, at)
    if (%HaveSameMap(last, next)) same += 1
    last = next
  }
  console.log(same > 990)
}`
  t.equal(run(t.testdir(), withSteadyObjects(source), check), 'true\ntrue\ntrue\n')
  t.end()
})

/** What a program prints that has the module as `own`. */
function run(folder: string, module: string, program: string): string {
  writeFileSync(join(folder, 'own.mjs'), module)
  writeFileSync(join(folder, 'program.mjs'), `import * as own from './own.mjs'\n${program}`)
  const { stdout, stderr } = spawnSync(process.execPath, ['--allow-natives-syntax', 'program.mjs'], {
    cwd: folder,
    encoding: 'utf8',
  })
  if (stderr !== '') throw new Error(stderr)
  return stdout
}
