/**
 * `npm run bench`: picks the suites, prints what they found, keeps or checks the baseline.
 * Knows no measurement.
 */
import { parseArgs } from 'node:util'
import { shown, type Figure, type Pace, type SuiteResult } from './figures.js'
import { stamp, type Stamp } from './machine.js'
import { breaches, readBaseline, writeBaseline, type SuiteRecord } from './baseline.js'

/** Suites by name, loaded when asked for. */
const SUITES: Readonly<Record<string, () => Promise<(pace: Pace) => Promise<SuiteResult>>>> = {
  codec: async () => (await import('./codec.js')).runCodec,
  ledger: async () => (await import('./ledger.js')).runLedger,
  load: async () => (await import('./load.js')).runLoad,
  relay: async () => (await import('./relay.js')).runRelay,
}

const HELP = `Usage: npm run bench -- SUITE... [OPTIONS]

Suites:
  codec   ns per frame of framing, decoding and encoding, in this process
  ledger  admissions and settlements at the embedded store, in one to four processes
  load    whole replies and burst streams at saturation, against nginx in the same run
  relay   paced streams: cpu per fragment, against nginx in the same run
  all     the four of them

Options:
  --rounds N    rounds of each peer, alternating (codec 7, ledger 3, load and relay 5)
  --seconds N   seconds of each round of ledger (5), load (4) and relay (5); a round of codec takes 0.2
  --streams N   concurrent streams of relay (400)
  --json        print JSON instead of a table
  --check       exit with 1 where a ratio is more than 15 % worse than in bench/baseline.json
  --write       put the figures into bench/baseline.json and the table of bench/README.md

load and relay need Linux, nginx, wrk and taskset; what is missing is reported. Run them on an idle
machine: the load average stands beside the numbers.

Example:
  npm run bench -- load --rounds 5 --seconds 4
`
/** The longest that all suites together may take, so that nothing hangs unwatched. */
const MAX_MINUTES = 45
/** The load average above which something else was running. */
const CALM = 0.5

function count(text: string | undefined, option: string): number | null {
  if (text === undefined) return null
  const value = Number(text)
  if (Number.isInteger(value) && value > 0) return value
  throw new TypeError(`${option} takes a whole number above 0, not '${text}'`)
}

async function main(argv: readonly string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args: [...argv],
    allowPositionals: true,
    options: {
      rounds: { type: 'string' },
      seconds: { type: 'string' },
      streams: { type: 'string' },
      json: { type: 'boolean', default: false },
      check: { type: 'boolean', default: false },
      write: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  })
  if (values.help || positionals.length === 0) {
    console.log(HELP)
    return values.help ? 0 : 2
  }
  const pace: Pace = {
    seconds: count(values.seconds, '--seconds'),
    rounds: count(values.rounds, '--rounds'),
    streams: count(values.streams, '--streams'),
  }
  const records: SuiteRecord[] = []
  for (const name of positionals.includes('all') ? Object.keys(SUITES) : positionals) {
    const load = Object.hasOwn(SUITES, name) ? SUITES[name] : undefined
    if (load === undefined) throw new TypeError(`there is no suite '${name}'; see --help`)
    const run = await load()
    const before = stamp()
    const result = await run(pace)
    const remarks = [...busyRemark(before), ...result.remarks]
    const record: SuiteRecord = { suite: name, ...before, figures: result.figures, remarks }
    records.push(record)
    if (!values.json) print(record)
  }
  if (values.json) console.log(JSON.stringify(records, null, 2))
  if (values.write) writeBaseline(records)
  return values.check ? report(breaches(records, readBaseline())) : 0
}

function busyRemark({ loadAverage }: Stamp): string[] {
  if (loadAverage <= CALM) return []
  return [`The machine was busy (load average ${loadAverage}): these are orders of magnitude.`]
}

function print(record: SuiteRecord): void {
  const { suite, machine, node, commit, date, loadAverage } = record
  console.log(`${suite}: ${machine}, Node ${node}, ${commit}, ${date} UTC, load ${loadAverage}\n`)
  for (const each of record.figures) console.log(line(each))
  for (const remark of record.remarks) console.log(`  ! ${remark}`)
  console.log('')
}

function line({ name, unit, median, low, high, goal }: Figure): string {
  const spread = `(${shown(low)} to ${shown(high)})`
  const wanted = goal === undefined ? '' : `  goal ${goal}`
  return `  ${name.padEnd(40)} ${shown(median).padStart(9)} ${unit.padEnd(10)} ${spread}${wanted}`
}

function report(found: readonly string[]): number {
  for (const each of found) console.error(`bench: ${each}`)
  return found.length > 0 ? 1 : 0
}

const watchdog = setTimeout(() => {
  console.error(`bench: not done after ${MAX_MINUTES} minutes`)
  process.exit(1)
}, MAX_MINUTES * 60_000)
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))
try {
  process.exitCode = await main(process.argv.slice(2))
} catch (error) {
  console.error(`bench: ${error instanceof Error ? error.message : String(error)}`)
  process.exitCode = error instanceof TypeError ? 2 : 1
} finally {
  clearTimeout(watchdog)
}
