/**
 * Goal: ESLint and Prettier find nothing in the repository; each rule that needs types finds its violation.
 * Method: both as `npm run check` starts them, on the changed files and on a part of the others each day,
 * because all of them take two minutes of one core; SLUICE_LONG=1 reads all. And a sample that violates each
 * typed rule, because tsgolint runs these: every third day, and when the rules or the packages have changed.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { plugin } from 'typescript-eslint'
import * as z from 'zod'
import { anotherDay, IS_LONG, isToday } from '../helpers/long-suite.js'
import { changedPaths, repositoryFiles } from '../runner/repository-files.js'

/** Violates each typed rule of the configuration; compiles. */
const SAMPLE = `
declare const anything: any
declare const text: string
declare const flag: boolean
declare const list: number[]
declare function later(): Promise<number>
enum Color { Red = 1, Blue = 2 }
enum Mixed { A = 1, B = 'b' }
declare const color: Color
class Point { x = 0; move() { this.x++ } }
class Fluent { a(): Fluent { return this } }
class Pair { #v = 0; get v(): string { return String(this.#v) } set v(n: number) { this.#v = n } }
/** @deprecated */
declare function old(): void
declare const point: Point
type Twice = string | string
type Redundant = unknown | string
type Empty = Omit<{ a: 1 }, 'a'>

await text
delete list[0]
String({})
old()
later()
for (const i in list) i
setTimeout('x()')
void console.log()
if (later()) console.log()
console.log({ ...later() })
if (flag === true) console.log()
if (list) console.log()
console.log(\`\${text}\`)
function generic<T = number>(t: T): T { return t }
generic<number>(1)
text as string
String(text)
function once<T>(t: T): void { console.log(t) }
function argument(s: string): void { console.log(s) }
argument(anything)
const assigned = anything
anything()
console.log(color === 1)
anything.member
function returned(): string { return anything }
const negative = -text
function defaulted({ a = 1 }: { a: number }): number { return a }
function thrown(): never { throw 'x' }
void Promise.reject('x')
list.reduce((a, b) => a.concat(b), [] as number[])
async function nothing(): Promise<void> { console.log() }
console.log(1 + text)
console.log(\`\${flag ? [] : {}}\`)
async function caught(): Promise<number> { try { return later() } catch { return 0 } }
const unbound = point.move
later().catch((e) => { console.log(e) })
const painted: Color = 5 as number
const other: Point = { x: 1, move() {} }
`
const COMPILER = { strict: true, target: 'es2022', lib: ['es2023'], types: ['node'] }

const Results = z.array(z.object({ messages: z.array(z.object({ ruleId: z.string(), line: z.number() })) }))
const Rules = z.record(
  z.string(),
  z.object({
    meta: z.object({ docs: z.object({ requiresTypeChecking: z.boolean().optional() }) }),
  }),
)
const Configuration = z.object({ rules: z.record(z.string(), z.tuple([z.number()], z.unknown())) })

/** The exit code and the output of a development tool; if it fails, with what it writes to standard error. */
async function run(...command: readonly string[]): Promise<[number | null, string]> {
  const [program = '', ...args] = command
  // ESLint makes much garbage: with a larger young generation, collecting it costs a tenth less of the whole.
  const options = program === 'eslint' ? { NODE_OPTIONS: '--max-semi-space-size=64' } : {}
  const child = spawn(`node_modules/.bin/${program}`, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...options },
  })
  const [output, errors, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close') as Promise<[number | null]>,
  ])
  return [code, code === 0 ? output : output + errors]
}

/** Of the files that no change touches, each day has one. */
const PARTS = 80

const changed = new Set(changedPaths() ?? [])

/** The changed files, and those of the day; in the long suite, or without git, all. */
function filesOfToday(): readonly string[] {
  const files = IS_LONG ? [] : repositoryFiles()
  if (files.length === 0) return ['.']
  return files.filter((path, index) => (isToday(index, PARTS) || changed.has(path)) && existsSync(path))
}

const FILES = filesOfToday()

await t.test('every file has the format of Prettier', async (t) => {
  t.same(await run('prettier', '--check', '--log-level', 'warn', '--ignore-unknown', ...FILES), [0, ''])
})

await t.test('ESLint finds nothing', async (t) => {
  const sources = FILES.filter((path) => path === '.' || /\.(?:[mc]?js|tsx?)$/.test(path))
  t.ok(sources.length > 0)
  t.same(await run('eslint', ...sources), [0, ''])
})

const hasNewRules = ['eslint.config.js', 'package-lock.json', 'scripts/typed-rules.mjs'].some((path) =>
  changed.has(path),
)
const skip = !hasNewRules && anotherDay(2, 3)
await t.test('every rule that needs types finds its violation', { skip }, async (t) => {
  const tsconfig = JSON.stringify({ compilerOptions: COMPILER })
  const folder = t.testdir({ 'sample.ts': SAMPLE, 'tsconfig.json': tsconfig })
  const [, printed] = await run('eslint', '--print-config', 'src/main.ts')
  const { rules } = Configuration.parse(JSON.parse(printed))
  const typed = Object.entries(z.object({ rules: Rules }).parse(plugin).rules)
    .filter(([, { meta }]) => meta.docs.requiresTypeChecking === true)
    .map(([name]) => `@typescript-eslint/${name}`)
    .filter((name) => (rules[name]?.[0] ?? 0) > 0)
  t.ok(typed.length > 40, `${String(typed.length)} rules`)
  const file = join(folder, 'sample.ts')
  const [code, output] = await run('eslint', '--no-ignore', '--format', 'json', file)
  t.equal(code, 1)
  const found = Results.parse(JSON.parse(output)).flatMap(({ messages }) => messages)
  t.same(
    typed.filter((name) => !found.some(({ ruleId }) => ruleId === name)),
    [],
  )
  const deprecated = found.filter(({ ruleId }) => ruleId.endsWith('/no-deprecated'))
  t.same(deprecated, [{ ruleId: '@typescript-eslint/no-deprecated', line: 23 }], 'at its line')
})
