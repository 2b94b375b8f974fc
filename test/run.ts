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
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { DAY } from './helpers/long-suite.js'
import { CPU_TIMES, cpuSeconds, recordedCpu, UNIT_NAME } from './runner/cpu-time.js'
import { inGroups, isAlone, type Unit } from './runner/groups.js'
import { longFiles } from './runner/long-files.js'
import { OtherLoad } from './runner/other-load.js'
import { runUnit, type Ended, type Launch } from './runner/run-unit.js'
import { coreTimes, Slots } from './runner/slots.js'
import {
  failedFilesIn,
  failuresIn,
  NOTHING,
  totalsIn,
  totalsLine,
  type Counts,
} from './runner/test-output.js'

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
 * The whole suite runs without source maps, which cost a tenth of its CPU time: run the failed file alone to
 * see the lines of the sources.
 */
const sourceMaps = parts.length === 0 ? [] : ['--enable-source-maps']
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

/** Prints the result of a unit: its counts, its other output, and each failed assertion. */
function report({ unit, isPassed, tap, written, end, counts, seconds }: Ended): void {
  const cpu = (recordedCpu().get(unit.name) ?? 0).toFixed(1)
  const skipped = counts.skip > 0 ? `, ${String(counts.skip)} skipped` : ''
  say(
    `${isPassed ? 'PASS' : 'FAIL'}  ${unit.name}  ${String(counts.pass)} OK${skipped}, ${seconds.toFixed(1)} s, CPU ${cpu} s`,
  )
  if (written.trim() !== '') say(written.trim().replaceAll(/^/gm, '    '))
  if (isPassed) return
  say(`    exit ${String(end)}`)
  for (const line of failuresIn(tap)) say(`    ${line}`)
}

function sayTotals({ pass, fail, skip }: Counts): void {
  const { idle, all } = coreTimes()
  const machine = (all - atStart.all - (idle - atStart.idle)) / 1_000
  // A child whose parent was killed, as those of a browser, is in the machine's figure alone.
  say(`CPU: ${cpuSeconds().toFixed(0)} s, of each file in ${CPU_TIMES}; the machine ${machine.toFixed(0)} s`)
  say(`${String(pass)} passed, ${String(fail)} failed, ${String(skip)} skipped`)
}

/** The files of a group in which something failed; all of them if the group itself did. */
function failedFiles({ unit: { files }, tap }: Ended): readonly string[] {
  const inside = failedFilesIn(tap, files)
  return inside.length === 0 ? files : inside
}

function sum(counts: readonly Counts[]): Counts {
  const all = (name: keyof Counts): number => counts.reduce((total, each) => total + each[name], 0)
  return { pass: all('pass'), fail: all('fail'), skip: all('skip') }
}

/**
 * Repeats what failed, file by file; its first results no longer count. A file that passes alone depends on
 * the work beside it: a failure, unless the machine had other work, so that the tests' limits were no
 * longer fair.
 */
async function runAgain(): Promise<void> {
  const names = failed.flatMap(({ unit }) => unit.files)
  const child = spawn(process.execPath, [process.argv[1] ?? '', AGAIN, ...names], { stdio: 'inherit' })
  const [code] = (await once(child, 'exit')) as [number | null]
  const second = totalsIn(readFileSync(RESULTS, 'utf8')) ?? NOTHING
  const { pass, skip } = sum([...passed, second])
  const flaky = code === 0 ? failed.flatMap(failedFiles) : []
  const excused = busiest > 2 * availableParallelism()
  const fail = code === 0 ? (excused ? 0 : flaky.length) : Math.max(second.fail, 1)
  for (const name of flaky) {
    const load = `load of other work ${busiest.toFixed(1)} on ${String(availableParallelism())} cores`
    const line = `FLAKY ${name}: passed alone (${excused ? `excused: ${load}` : `a failure: ${load}`})`
    say(line)
    appendFileSync(RESULTS, `# ${line}\n`)
  }
  appendFileSync(RESULTS, `${totalsLine({ pass, fail, skip })}\n`)
  sayTotals({ pass, fail, skip })
  process.exitCode = fail > 0 ? (code ?? 1) || 1 : 0
}

/** How a unit runs. */
function launchOf({ name, files }: Unit): Launch {
  const limitMs = limitOf(name) + (files.length - 1) * MORE_MS
  const program = files.length > 1 ? GROUP : name
  const flags = files.some(isAlone) ? [] : [OPTIMIZE_LATER]
  return {
    args: [...sourceMaps, ...flags, ...PRELOADED, program],
    env: {
      ...process.env,
      NODE_OPTIONS: undefined,
      TAP_TIMEOUT: String(limitMs / 1000),
      SLUICE_TEST_FILES: files.join(' '),
      [UNIT_NAME]: name,
      ...(isLong && { SLUICE_LONG: '1' }),
    },
    limitMs,
    // What journeys print is progress.
    isShown: name.includes(JOURNEYS),
  }
}

/** Adds the output of a unit to the results, as a subtest. */
function keep({ unit: { name }, tap, isPassed }: Ended): void {
  const inside = tap.replaceAll(/^(?=.)/gm, '    ')
  appendFileSync(RESULTS, `# Subtest: ${name}\n${inside}${isPassed ? 'ok' : 'not ok'} - ${name}\n\n`)
}

/** The highest load of other work while files failed. */
let busiest = 0
const otherLoad = new OtherLoad()
otherLoad.follow()
const atStart = coreTimes()
const passed: Counts[] = []
const failed: Ended[] = []

async function run(unit: Unit): Promise<void> {
  const ended = await runUnit(unit, launchOf(unit))
  slots.release()
  if (ended.isPassed) passed.push(ended.counts)
  else {
    failed.push(ended)
    busiest = Math.max(busiest, otherLoad.now())
  }
  keep(ended)
  report(ended)
}

if (!isAgain) {
  for (const path of [CPU_TIMES, RESULTS]) rmSync(path, { force: true })
  say(`day ${String(DAY)}: SLUICE_DAY=${String(DAY)} repeats its part of the long loops`)
}
const slots = isAgain ? new Slots(1, 1) : new Slots(LEAST_AT_A_TIME, MOST_AT_A_TIME)
const running: Promise<void>[] = []
for (const unit of units) {
  await slots.take()
  running.push(run(unit))
}
await Promise.all(running)
if (units.length === 0) say('no source of the long suite has changed')
const { pass, fail, skip } = sum([...passed, ...failed.map(({ counts }) => counts)])
// A process that ended without its totals has failed without a failed assertion.
const counts = { pass, fail: Math.max(fail, failed.length), skip }
appendFileSync(RESULTS, `${totalsLine(counts)}\n`)
process.exitCode = failed.length > 0 ? 1 : 0
const isFew = failed.length > 0 && failed.length <= MOST_AGAIN
if (isRepeated && !isAgain && isFew) await runAgain()
else if (!isAgain) sayTotals(counts)
