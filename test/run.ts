/**
 * `node build/test/run.js [PART...]` runs the suite, or the files whose path contains one of the parts: each
 * in a process of its own, several at a time, and more while the cores are idle; in the whole suite small
 * files share processes. Journeys run only if a part names them. `--long` runs the long suite, `--long
 * --changed` its files whose sources have changed. Prints a line per process and all failures; the complete
 * TAP output goes to `build/results.tap`, from which `.ci/run` takes its last lines, and the CPU time of each
 * file to `build/cpu.tsv`.
 *
 * Up to five processes of the whole suite that fail run again, file by file, and so do journeys. A file that
 * passes then is printed as FLAKY, and is a failure unless the load of other work was above twice the cores.
 */
import { spawn, type StdioOptions } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, createWriteStream, readdirSync, readFileSync, rmSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import t, { type Spawn } from 'tap'
import { stringify } from 'yaml'
import { DAY } from './helpers/long-suite.js'
import { CPU_TIMES, cpuSeconds, recordedCpu, UNIT_NAME } from './runner/cpu-time.js'
import { inGroups, isAlone, type Unit } from './runner/groups.js'
import { longFiles } from './runner/long-files.js'
import { OtherLoad } from './runner/other-load.js'
import { coreTimes, Slots } from './runner/slots.js'

const FOLDER = 'build/test'
const GROUP = 'build/node_modules/tap/group.js'
const RESULTS = 'build/results.tap'
/** Two for each core, because many tests mostly wait; up to four while the cores are idle. */
const LEAST_AT_A_TIME = Math.max(3, 2 * availableParallelism())
const MOST_AT_A_TIME = 2 * LEAST_AT_A_TIME
const LIMIT_MS = 240_000
/** ESLint and Prettier read every file: two minutes of one core, more on a busy machine. */
const LINT = 'architecture/lint'
const LINT_LIMIT_MS = 900_000
/** They install programs and build images. */
const JOURNEYS = 'journeys/'
const JOURNEY_LIMIT_MS = 1_500_000
/** For each further file of a group. */
const MORE_MS = 60_000
/** In the long suite. */
const LONG_LIMIT_MS = 1_800_000
/** The files that take longest start first: one that starts last would run alone. */
const FIRST = [
  LINT,
  ...['grafana/alerts', 'docs/snippets', 'hostile/stalls', 'outage/archive-away', 'outage/batch-kills'],
  ...['process/broken-file', 'dashboard/browser/browser-states', 'dashboard/browser/browser-dialogs'],
  ...['process/life-cycle/rolling-restart', 'faults/clients/slow-clients', 'process/generations'],
  'cli/rehearse/',
]
/** Then folders that mostly wait: the files of the others, which only compute, fill the cores at the end. */
const EARLY = [
  ...['process/', 'gateway/attempts/', 'store/', 'cluster/', 'control/sign-in/', 'dashboard/'],
  ...['control/dashboard/', 'cli/', 'policy/', 'outage/', 'faults/', 'accounts/', 'grafana/', 'limits/'],
  'specification/',
]
const TURNS = [...FIRST, ...EARLY].map((part) => `${FOLDER}/${part}`)

const MOST_AGAIN = 5
/** The argument before the files of the second run. */
const AGAIN = '--again'

const isAgain = process.argv[2] === AGAIN
const words = process.argv.slice(isAgain ? 3 : 2)
/** `--long`: the files of the long suite, in their long form; with `--changed` those of changed sources. */
const isLong = words.includes('--long')
const onlyChanged = words.includes('--changed')
const parts = words.filter((word) => !word.startsWith('--'))
/** Whether this is a run of everything: then small files share processes, and files that fail run again. */
const isWhole = parts.length === 0 && !isLong
/** Whether files that fail run again, alone. */
const isRepeated = isWhole || (parts.length > 0 && parts.every((part) => part.startsWith(JOURNEYS)))
/**
 * Removes tap's coverage hook, which costs a second in each test and in each process that a test starts. The
 * whole suite runs without source maps, which cost a tenth of its CPU time: run the failed file alone to see
 * the lines of the sources.
 */
const sourceMaps = parts.length === 0 ? [] : ['--enable-source-maps']
const WITHOUT_COVERAGE = ['-u', 'NODE_OPTIONS', process.execPath, ...sourceMaps]
/** By their whole paths, because programs that a test forks inherit them. */
const PRELOADED = ['./without-async-hooks.js', './runner/cpu-time.js'].flatMap((path) => [
  '--import',
  import.meta.resolve(path),
])
/**
 * For files that do not measure their process, and the programs that they start: V8 optimizes a function
 * after four times as much use (67584 in Node 20). What its compiler costs is a fifth of the CPU time of
 * tests, which mostly end before it pays.
 */
const OPTIMIZE_LATER = '--interrupt-budget=250000'
const found = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' })
  .map((name) => join(FOLDER, name))
  .filter((path) => path.endsWith('.test.js'))
  .filter((path) =>
    parts.length === 0 ? !path.includes(JOURNEYS) : parts.some((part) => path.includes(part)),
  )
  .sort((a, b) => turnOf(a) - turnOf(b) || (a < b ? -1 : 1))
const files = isLong ? longFiles(found, onlyChanged) : found
const units = isWhole
  ? inGroups(files, (file) => turnOf(file) < FIRST.length)
  : files.map((file) => ({ name: file, files: [file] }))

function turnOf(path: string): number {
  const turn = TURNS.findIndex((start) => path.startsWith(start))
  return turn < 0 ? TURNS.length : turn
}

function limitOf(path: string): number {
  if (isLong || process.env['SLUICE_LONG'] === '1') return LONG_LIMIT_MS
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
  const cpu = (recordedCpu().get(file.name) ?? 0).toFixed(1)
  const skipped = counts.skip > 0 ? `, ${String(counts.skip)} skipped` : ''
  say(
    `${results?.ok === true ? 'PASS' : 'FAIL'}  ${file.name}  ${String(counts.pass)} OK${skipped}, ${seconds} s, CPU ${cpu} s`,
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
  readonly skip: number
}

/** The totals in the last line of the results. */
function totals(): Counts {
  const found = [...readFileSync(RESULTS, 'utf8').matchAll(/^# \{ total: .*\}$/gm)].at(-1)?.[0] ?? ''
  const figure = (name: string): number => Number(new RegExp(`${name}: (\\d+)`).exec(found)?.[1] ?? 0)
  return { pass: figure('pass'), fail: figure('fail'), skip: figure('skip') }
}

function sayTotals({ pass, fail, skip }: Counts): void {
  const { idle, all } = coreTimes()
  const machine = (all - atStart.all - (idle - atStart.idle)) / 1_000
  // A child whose parent was killed, as those of a browser, is in the machine's figure alone.
  say(`CPU: ${cpuSeconds().toFixed(0)} s, of each file in ${CPU_TIMES}; the machine ${machine.toFixed(0)} s`)
  say(`${String(pass)} passed, ${String(fail)} failed, ${String(skip)} skipped`)
}

/** A unit that failed. */
interface Failed {
  readonly unit: Unit
  readonly file: Spawn
}

/** The files of a group in which something failed; all of them if the group itself did. */
function failedFiles({ unit, file }: Failed): readonly string[] {
  const inside = unit.files.filter((name) => file.lists.fail.some(({ fullname }) => fullname.includes(name)))
  return inside.length === 0 ? unit.files : inside
}

/**
 * Repeats what failed, file by file; its first results no longer count. A file that passes alone depends on
 * the work beside it: a failure, unless the machine had other work, so that the tests' limits were no
 * longer fair.
 */
async function runAgain(failed: readonly Failed[]): Promise<void> {
  const first = totals()
  const names = failed.flatMap(({ unit }) => unit.files)
  const child = spawn(process.execPath, [process.argv[1] ?? '', AGAIN, ...names], { stdio: 'inherit' })
  const [code] = (await once(child, 'exit')) as [number | null]
  const second = totals()
  const replaced = (name: 'pass' | 'skip'): number =>
    first[name] - failed.reduce((sum, { file: { counts } }) => sum + counts[name], 0) + second[name]
  const flaky = code === 0 ? failed.flatMap(failedFiles) : []
  const excused = busiest > 2 * availableParallelism()
  const fail = code === 0 ? (excused ? 0 : flaky.length) : Math.max(second.fail, 1)
  const [pass, skip] = [replaced('pass'), replaced('skip')]
  for (const name of flaky) {
    const load = `load of other work ${busiest.toFixed(1)} on ${String(availableParallelism())} cores`
    const line = `FLAKY ${name}: passed alone (${excused ? `excused: ${load}` : `a failure: ${load}`})`
    say(line)
    appendFileSync(RESULTS, `# ${line}\n`)
  }
  appendFileSync(RESULTS, `# { total: ${pass + fail + skip}, pass: ${pass}, fail: ${fail}, skip: ${skip} }\n`)
  sayTotals({ pass, fail, skip })
  process.exitCode = fail > 0 ? (code ?? 1) || 1 : 0
}

/** The highest load of other work while files failed. */
let busiest = 0
const otherLoad = new OtherLoad()
otherLoad.follow()
const atStart = coreTimes()
const failed: Failed[] = []
t.setTimeout(0)
t.jobs = isAgain ? 1 : MOST_AT_A_TIME
t.register()
const results = createWriteStream(RESULTS, { flags: isAgain ? 'a' : 'w' })
t.pipe(results)
t.plan(units.length, units.length === 0 ? 'no source of the long suite has changed' : '')
if (!isAgain) rmSync(CPU_TIMES, { force: true })
if (!isAgain) say(`day ${String(DAY)}: SLUICE_DAY=${String(DAY)} repeats its tenth of the long loops`)
const slots = new Slots(isAgain ? 1 : LEAST_AT_A_TIME, t.jobs)
for (const unit of units) {
  await slots.take()
  const { name } = unit
  const timeout = limitOf(name) + (unit.files.length - 1) * MORE_MS
  // Tap applies the same limit in the file, and then reports the subtest that did not end.
  const env = {
    ...process.env,
    TAP_TIMEOUT: String(timeout / 1000),
    SLUICE_TEST_FILES: unit.files.join(' '),
    [UNIT_NAME]: name,
    ...(isLong && { SLUICE_LONG: '1' }),
  }
  // What journeys print is progress, and is shown at once.
  const stdio: StdioOptions = name.includes(JOURNEYS) ? ['ignore', 'pipe', 'inherit'] : 'pipe'
  const options = { name, buffered: true, stdio, env, timeout }
  const program = unit.files.length > 1 ? GROUP : name
  const preloaded = unit.files.some(isAlone) ? PRELOADED : [OPTIMIZE_LATER, ...PRELOADED]
  const spawned = t.spawn('env', [...WITHOUT_COVERAGE, ...preloaded, program], options)
  const file = spawned.subtest
  void spawned.then(() => {
    slots.release()
  })
  if (file === null) continue
  let written = Promise.resolve(Buffer.alloc(0))
  file.on('process', ({ stderr }) => {
    if (stderr !== null) written = buffer(stderr)
  })
  void spawned.then(async () => {
    if (file.results?.ok !== true) {
      failed.push({ unit, file })
      busiest = Math.max(busiest, otherLoad.now())
    }
    report(file, (await written).toString())
  })
}
results.once('finish', () => {
  const isFew = failed.length > 0 && failed.length <= MOST_AGAIN
  if (isRepeated && !isAgain && isFew) void runAgain(failed)
  else if (!isAgain) sayTotals(totals())
})
