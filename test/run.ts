/**
 * `node build/test/run.js [PART...]` runs the suite, or the files whose path contains one of the parts: each
 * in a process of its own, several at a time. Journeys run only if a part names them. Prints a line per file
 * and all failures; the complete TAP output goes to `build/results.tap`, from which `.ci/run` takes its last
 * lines.
 *
 * Up to five files of the whole suite that fail run again, alone, and this result counts: a file that fails
 * only beside others depends on their work, which is no fault of Sluice. It is printed as FLAKY, because the
 * test is to be fixed.
 */
import { spawn, type StdioOptions } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, createWriteStream, readdirSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import t, { type Spawn } from 'tap'
import { stringify } from 'yaml'

const FOLDER = 'build/test'
const RESULTS = 'build/results.tap'
/** Two for each core, because many tests mostly wait. */
const AT_A_TIME = Math.max(3, 2 * availableParallelism())
const LIMIT_MS = 240_000
/** ESLint and Prettier read every file: two minutes of one core, more on a busy machine. */
const LINT = 'architecture/lint'
const LINT_LIMIT_MS = 900_000
/** They install programs and build images. */
const JOURNEYS = 'journeys/'
const JOURNEY_LIMIT_MS = 1_500_000
/** The files that take longest start first: one that starts last would run alone. */
const FIRST = [
  LINT,
  ...['grafana/alerts', 'docs/snippets', 'hostile/replies-memory', 'hostile/stalls'],
  ...[
    'process/broken-file',
    'gateway/report/ledger-entry',
    'dashboard/browser/browser-states',
    'dashboard/browser/browser-dialogs',
  ],
  ...['conformance/recordings/', 'conformance/gemini-replies', 'process/life-cycle/rolling-restart'],
  ...['faults/clients/slow-clients', 'process/generations', 'cli/rehearse/'],
]

const MOST_AGAIN = 5
/** The argument before the files of the second run. */
const AGAIN = '--again'

const isAgain = process.argv[2] === AGAIN
const parts = process.argv.slice(isAgain ? 3 : 2)
/**
 * Removes tap's coverage hook, which costs a second in each test and in each process that a test starts. The
 * whole suite runs without source maps, which cost a tenth of its CPU time: run the failed file alone to see
 * the lines of the sources.
 */
const sourceMaps = parts.length === 0 ? [] : ['--enable-source-maps']
const WITHOUT_COVERAGE = ['-u', 'NODE_OPTIONS', process.execPath, ...sourceMaps]
/** By its whole path, because programs that a test forks inherit it. */
const WITHOUT_ASYNC_HOOKS = ['--import', import.meta.resolve('./without-async-hooks.js')]
const files = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' })
  .map((name) => join(FOLDER, name))
  .filter((path) => path.endsWith('.test.js'))
  .filter((path) =>
    parts.length === 0 ? !path.includes(JOURNEYS) : parts.some((part) => path.includes(part)),
  )
  .sort((a, b) => turnOf(a) - turnOf(b) || (a < b ? -1 : 1))

function turnOf(path: string): number {
  const turn = FIRST.findIndex((name) => path.includes(name))
  return turn < 0 ? FIRST.length : turn
}

function limitOf(path: string): number {
  if (path.includes(JOURNEYS)) return JOURNEY_LIMIT_MS
  return path.includes(LINT) ? LINT_LIMIT_MS : LIMIT_MS
}

function say(text: string): void {
  process.stdout.write(`${text}\n`)
}

/** Prints the result of a file: its counts, its other output, and each failed assertion. */
function report(file: Spawn, written: string): void {
  const { counts, lists, options, results } = file
  const seconds = (file.time / 1000).toFixed(1)
  const skipped = counts.skip > 0 ? `, ${String(counts.skip)} skipped` : ''
  say(
    `${results?.ok === true ? 'PASS' : 'FAIL'}  ${file.name}  ${String(counts.pass)} OK${skipped}, ${seconds} s`,
  )
  if (written.trim() !== '') say(written.trim().replaceAll(/^/gm, '    '))
  if (results?.ok === true) return
  const { exitCode = null, signal = null } = options
  say(`    exit ${String(signal ?? exitCode)}`)
  for (const failure of lists.fail) {
    say(`    not ok - ${failure.fullname}`)
    say(stringify(failure.diag).trim().replaceAll(/^/gm, '        '))
  }
}

interface Counts {
  readonly pass: number
  readonly fail: number
}

/** The totals in the last line of the results. */
function totals(): Counts {
  const found = [...readFileSync(RESULTS, 'utf8').matchAll(/^# \{ total: .*\}$/gm)].at(-1)?.[0] ?? ''
  const figure = (name: string): number => Number(new RegExp(`${name}: (\\d+)`).exec(found)?.[1] ?? 0)
  return { pass: figure('pass'), fail: figure('fail') }
}

/** Repeats the files that failed, one by one; their first results no longer count. */
async function runAgain(failed: readonly Spawn[]): Promise<void> {
  const first = totals()
  const child = spawn(process.execPath, [process.argv[1] ?? '', AGAIN, ...failed.map(({ name }) => name)], {
    stdio: 'inherit',
  })
  const [code] = (await once(child, 'exit')) as [number | null]
  const second = totals()
  const replaced = failed.reduce((sum, { counts }) => sum + counts.pass, 0)
  const pass = first.pass - replaced + second.pass
  const fail = code === 0 ? 0 : Math.max(second.fail, 1)
  appendFileSync(RESULTS, `# { total: ${pass + fail}, pass: ${pass}, fail: ${fail} }\n`)
  process.exitCode = code ?? 1
  if (code !== 0) return
  for (const { name } of failed) {
    say(`FLAKY ${name}: passed alone`)
    appendFileSync(RESULTS, `# FLAKY ${name}: passed alone\n`)
  }
}

const failed: Spawn[] = []
t.setTimeout(0)
t.jobs = isAgain ? 1 : AT_A_TIME
t.register()
const results = createWriteStream(RESULTS, { flags: isAgain ? 'a' : 'w' })
t.pipe(results)
t.plan(files.length)
for (const name of files) {
  const timeout = limitOf(name)
  // Tap applies the same limit in the file, and then reports the subtest that did not end.
  const env = { ...process.env, TAP_TIMEOUT: String(timeout / 1000) }
  // What journeys print is progress, and is shown at once.
  const stdio: StdioOptions = name.includes(JOURNEYS) ? ['ignore', 'pipe', 'inherit'] : 'pipe'
  const options = { name, buffered: true, stdio, env, timeout }
  const spawned = t.spawn('env', [...WITHOUT_COVERAGE, ...WITHOUT_ASYNC_HOOKS, name], options)
  const file = spawned.subtest
  if (file === null) continue
  let written = Promise.resolve(Buffer.alloc(0))
  file.on('process', ({ stderr }) => {
    if (stderr !== null) written = buffer(stderr)
  })
  void spawned.then(async () => {
    if (file.results?.ok !== true) failed.push(file)
    report(file, (await written).toString())
  })
}
results.once('finish', () => {
  const isFew = failed.length > 0 && failed.length <= MOST_AGAIN
  if (parts.length === 0 && isFew) void runAgain(failed)
})
