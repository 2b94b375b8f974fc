/**
 * Goal: no input makes the translation throw, hang, lose content or write output that other readers refuse.
 * Method: numbered inputs: each day 200 others of the first 2,000, in the long suite 60 s; and every input
 * that has failed before, from `corpus/`. `npm run fuzz` starts at other numbers.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { DAY, IS_LONG } from '../helpers/long-suite.js'
import { faultOf } from './check-input.js'
import { inputOf, UPSTREAM_DIALECTS } from './generate-inputs.js'
import { fromFile, toFile } from './fuzz-input.js'
import { fuzz } from './run.js'
import { shrink } from './shrink-input.js'

const CORPUS = join(process.cwd(), 'test/fuzz/corpus')
const EACH = 200
const EXTENT = IS_LONG ? { seed: 1, seconds: 60 } : { seed: 1 + EACH * (DAY % 10), inputs: EACH }

void t.test('inputs that failed before do not fail', (t) => {
  const files = readdirSync(CORPUS).filter((file) => file.endsWith('.json'))
  t.ok(files.length > 0)
  for (const file of files) {
    t.equal(faultOf(fromFile(readFileSync(join(CORPUS, file), 'utf8'))), null, file)
  }
  t.end()
})

void t.test('numbered inputs keep all properties', async (t) => {
  const { inputs, kinds, failure } = await fuzz(EXTENT)
  t.comment(`${inputs} inputs: ${JSON.stringify(kinds)}`)
  t.equal(failure?.why, undefined, `--seed ${failure?.seed ?? ''} ${failure?.file ?? ''}`)
})

void t.test('a number identifies the same input in every process, also after a file', (t) => {
  const kinds = new Set<string>()
  for (let seed = 1; seed <= 200; seed += 1) {
    const input = inputOf(seed)
    kinds.add(input.kind)
    t.same(inputOf(seed), input)
    t.same(fromFile(toFile(input, 'why')), input)
  }
  t.same([...kinds].sort(), ['pair', 'refusal', 'reply', 'request', 'stream'])
  for (const dialect of UPSTREAM_DIALECTS) {
    const own = Array.from({ length: 50 }, (_, seed) => inputOf(seed, [dialect]))
    t.ok(own.every((input) => input.kind === 'request' || input.dialect === dialect))
  }
  t.end()
})

void t.test('a fault is detected and its input reduced', (t) => {
  const request = '{"model":"m","messages":[{"role":"user","content":"x"}],"stream":true}'
  const lie = { kind: 'pair', dialect: 'gemini', request, cuts: [3] } as const
  const whole = '{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}]}'
  t.match(faultOf({ ...lie, whole, text: `data: ${whole.replace('"a"', '"b"')}\n\n` }), /^pair: /)
  t.equal(faultOf({ ...lie, whole, text: `data: ${whole}\n\n` }), null)
  t.match(faultOf({ ...lie, request: '{}', whole, text: '' }), /^throws Error: the request/)
  const long = { kind: 'request', text: 'aaaaaaaaaaXaaaaaaaaaaaYaaaaa' } as const
  const small = shrink(long, ({ text }) => text.includes('X') && text.includes('Y'))
  t.equal(small.text, 'XY')
  t.end()
})
