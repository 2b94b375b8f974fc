/**
 * `npm run bench`: runs the chosen suites, prints their figures, and writes or checks the baseline.
 */
import { parseArgs } from 'node:util'
import { shown, type Figure, type Pace, type SuiteResult } from './report/figures.js'
import { stamp, type Stamp } from './processes/machine.js'
import { breaches, readBaseline, writeBaseline, type SuiteRecord } from './report/baseline.js'

/** Suites by name, loaded when they are chosen. */
const SUITES: Readonly<Record<string, () => Promise<(pace: Pace) => Promise<SuiteResult>>>> = {
  archive: async () => (await import('./suites/archive.js')).runArchive,
  codec: async () => (await import('./suites/codec.js')).runCodec,
  fleet: async () => (await import('./suites/fleet.js')).runFleet,
  hedge: async () => (await import('./suites/hedge.js')).runHedge,
  hostile: async () => (await import('./suites/hostile.js')).runHostile,
  ledger: async () => (await import('./suites/ledger.js')).runLedger,
  load: async () => (await import('./suites/load.js')).runLoad,
  peers: async () => (await import('./suites/peers.js')).runPeers,
  relay: async () => (await import('./suites/relay.js')).runRelay,
  route: async () => (await import('./suites/route.js')).runRoute,
  splice: async () => (await import('./suites/splice.js')).runSplice,
  start: async () => (await import('./suites/start.js')).runStart,
  usage: async () => (await import('./suites/usage.js')).runUsage,
}
/** The suites of `all`: those whose ratios need no program that may be missing. */
const ALL = ['codec', 'ledger', 'load', 'relay', 'splice']

const HELP = `Usage: npm run bench -- SUITE... [OPTIONS]

Suites:
  archive  the database that ARCHIVE_URL names: rows a second while entries that wait are copied, and reads over
           both
  codec    ns per frame of framing, decoding and encoding, in this process
  fleet    Redis, two gateways, HAProxy: requests that fail in outages, kills, restarts, reloads and rotations, and
           ledger entries that differ; exits 1 if a requirement fails
  hedge    time to first content of a bimodal provider, without and with hedges, and what the hedges cost
  hostile  ordinary requests beside hostile ones: failures, latency, event loop, memory; exits 1 on a breach
  ledger   admissions and settlements at the embedded store, in one to four processes
  load     whole replies and burst streams at saturation, whole replies at 1,000 a second, against nginx and
           the plainest proxy in the same run
  peers    whole replies, paced streams and 1 MB prompts: other gateways by turns with this one
  relay    paced streams: cpu per fragment, against nginx in the same run
  route    whole replies through a plain route, and with targets, fallback, retries and breakers, with AWS
           signatures, with tokens, and answered by the cache
  splice   1 MB prompts, same dialect: cpu per request, against nginx in the same run
  start    time from start to ready and idle memory of one worker
  usage    reads of usage over 10,000 keys and a million entries, and the cost of the writes; --only redis: in Redis
  all      codec, ledger, load, relay and splice

Options:
  --rounds N      rounds of each peer, alternating (codec 7, ledger 3, peers 3, route 7, the others 5)
  --seconds N     seconds without Redis in fleet (10); of each round of hedge (20), ledger (6), load, peers, route and splice (4), relay (5); of
                  hostile, the length of the run (60); of start, the idle time before memory is read (10); a round
                  of codec takes 0.2
  --streams N     concurrent streams of relay (400) and peers (100); thousands of entries that archive copies (60)
  --archived N    archive: thousands of entries that the database has besides (0); usage: thousands of entries (1,000)
  --commit C      also measure an older commit of Sluice, by turns: peers, splice and start. C is a commit, which
                  is built under build/bench-trees, or the folder of a build
  --only NAMES    peers or classes of hostile requests, separated by commas: measure only these
  --install       peers: install those that are missing (pip, npm, cargo; the Rust builds take up to an hour)
  --json          print JSON instead of a table
  --check         exit 1 if a ratio is more than 15 % worse than in bench/baseline.json
  --write         put the figures into bench/baseline.json and the table of bench/README.md, and draw the chart of
                  hedge beside it

All but codec and ledger need Linux; nginx, wrk and taskset are reported if they are missing. Run the suites on an
idle machine: the load average is printed with the figures.

Example:
  npm run bench -- load --rounds 5 --seconds 4
  npm run bench -- splice start --commit 924e320
`
/** Time limit of all suites together; the first build of gateways in Rust takes an hour. */
const MAX_MINUTES = 120
/** The load average above which the machine counts as busy. */
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
      archived: { type: 'string' },
      commit: { type: 'string' },
      only: { type: 'string' },
      install: { type: 'boolean', default: false },
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
    archived: count(values.archived, '--archived'),
    commit: values.commit ?? null,
    only: values.only?.split(',') ?? null,
    install: values.install,
  }
  const records: SuiteRecord[] = []
  const failures: string[] = []
  for (const name of positionals.includes('all') ? ALL : positionals) {
    const load = Object.hasOwn(SUITES, name) ? SUITES[name] : undefined
    if (load === undefined) throw new TypeError(`there is no suite '${name}'; see --help`)
    const run = await load()
    const before = stamp()
    const result = await run(pace)
    const remarks = [...busyRemark(before), ...result.remarks]
    const { figures, chart } = result
    const record: SuiteRecord = {
      suite: name,
      ...before,
      figures,
      remarks,
      ...(chart && { chart }),
    }
    records.push(record)
    failures.push(...(result.failures ?? []))
    if (!values.json) print(record)
  }
  if (values.json) console.log(JSON.stringify(records, null, 2))
  if (values.write) writeBaseline(records)
  const failed = report(failures)
  return values.check ? Math.max(failed, report(breaches(records, readBaseline()))) : failed
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

function line({ name, unit, median, low, high, helpers, goal }: Figure): string {
  const spread = `(${shown(low)} to ${shown(high)})`
  const ofHelpers = helpers === undefined ? '' : `, helper threads ${shown(helpers)}`
  const wanted = goal === undefined ? '' : `  goal ${goal}`
  return `  ${name.padEnd(40)} ${shown(median).padStart(9)} ${unit.padEnd(10)} ${spread}${ofHelpers}${wanted}`
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
