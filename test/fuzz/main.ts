/**
 * `npm run fuzz -- --seconds 60 [--seed N] [--dialect D]`; 0 seconds: until it is interrupted.
 */
import { parseArgs } from 'node:util'
import { UPSTREAM_DIALECTS } from './generate-inputs.js'
import { fuzz } from './run.js'

const USAGE = `npm run fuzz -- [--seconds S] [--seed N] [--dialect D]

  --seconds S   how long; 0 is until it is interrupted (default 60)
  --seed N      the number of the first input (default: the time)
  --dialect D   one of ${UPSTREAM_DIALECTS.join(', ')} (default: all)
`

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

function whole(name: string, text: string): number {
  const value = Number(text)
  if (text !== '' && Number.isInteger(value) && value >= 0) return value
  process.stderr.write(`--${name} must be a whole number, not ${text}\n${USAGE}`)
  process.exit(2)
}

const string = { type: 'string' } as const
const options = {
  seconds: string,
  seed: string,
  dialect: string,
  help: { type: 'boolean' },
} as const
const { values } = parseArgs({ options })
if (values.help === true) {
  print(USAGE)
  process.exit(0)
}
const seconds = whole('seconds', values.seconds ?? '60')
const seed = whole('seed', values.seed ?? String(Date.now() % 1_000_000_000))
const dialect = UPSTREAM_DIALECTS.find((name) => name === values.dialect)
if (values.dialect !== undefined && dialect === undefined) {
  process.stderr.write(`--dialect: unknown dialect "${values.dialect}"\n${USAGE}`)
  process.exit(2)
}
print(`from seed ${seed}`)
const { inputs, kinds, failure } = await fuzz({
  seed,
  seconds: seconds === 0 ? Infinity : seconds,
  ...(dialect === undefined ? {} : { dialect }),
  progress: print,
})
print(`${inputs} inputs: ${JSON.stringify(kinds)}`)
if (failure !== null) {
  print(`--seed ${failure.seed} fails: ${failure.why}`)
  print(`${failure.file} is the smallest input found; test/fuzz/corpus is where the suite looks for it`)
  process.exitCode = 1
}
