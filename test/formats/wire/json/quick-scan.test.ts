/**
 * Goal: the quick scan accepts only documents that the full scan accepts, with the same members.
 * Method: one example per rule, then seeded documents whose members are sliced and parsed again.
 */
import t from 'tap'
import { quickScan, type Member } from '../../../../src/formats/wire/json/quick-scan.js'
import { atOnce } from '../../../../src/base/steps.js'
import { dice } from '../../../helpers/seeded-random.js'

const BLANKS = ['', ' ', '\n', '\t \r\n']
const TEXTS = ['', 'a', 'é ü', 'x'.repeat(40), '\\"', '\\\\', 'a,b:c{d}[e]\\"', '\\n']
const WORDS = ['0', '-1', '12.5', 'true', 'false', 'null']

function look(text: string, maxDepth = 64, maxTokens = 200_000): readonly Member[] | null {
  const bytes = Buffer.from(text)
  const caps = { maxDepth, maxTokens, maxTextBytes: 8 * 1024 * 1024 }
  return atOnce(quickScan(bytes, caps))?.members ?? null
}

void t.test('an ordinary request is accepted with the offsets of its members', (t) => {
  const text =
    ' {"model" : "m-1",\n"messages":[{"role":"user","content":"é \\"{[,:\\\\"}], "n":-1.5 ,"x":null} '
  const found = look(text) ?? []
  const bytes = Buffer.from(text)
  t.same(
    found.map(({ key, memberStart, valueStart, valueEnd }) => [
      key,
      bytes.toString('utf8', memberStart, valueStart),
      bytes.toString('utf8', valueStart, valueEnd),
    ]),
    [
      ['model', '"model" : ', '"m-1"'],
      ['messages', '"messages":', '[{"role":"user","content":"é \\"{[,:\\\\"}]'],
      ['n', '"n":', '-1.5'],
      ['x', '"x":', 'null'],
    ],
  )
  t.same(look('{}'), [])
  t.end()
})

void t.test('documents that need the full scan are not accepted', (t) => {
  const needy: readonly (readonly [string, string])[] = [
    ['a key twice', '{"a":1,"b":2,"a":3}'],
    ['a key twice, further in', '{"a":[{"b":{"c":1,"c":2}}]}'],
    ['a key that may be another', '{"\\u0061":1}'],
    ['a key beyond ASCII', '{"é":1}'],
    ['an exponent', '{"a":1e400}'],
    ['a long number', `{"a":${'1'.repeat(301)}}`],
    ['many keys', `{${Array.from({ length: 65 }, (_, n) => `"k${n}":0`).join(',')}}`],
    ['a string without an end', '{"a":"b'],
    ['a bracket too many', '{}}'],
  ]
  for (const [name, text] of needy) t.equal(look(text), null, name)
  t.ok(look(`{"a":${'1'.repeat(300)}}`))
  t.ok(look('{"a":{"b":1},"c":{"b":1},"b":[{"a":0},{"a":0}]}'), 'the same key in several objects')
  t.end()
})

void t.test('the limits of containers and tokens equal those of the full scan', (t) => {
  const nested = `{"a":${'['.repeat(9)}${']'.repeat(9)}}`
  t.ok(look(nested, 10))
  t.equal(look(nested, 9), null)
  // Two braces, a colon, two brackets and a comma.
  t.ok(look('{"a":["b","c"]}', 64, 6))
  t.equal(look('{"a":["b","c"]}', 64, 5), null)
  t.end()
})

void t.test('accepted seeded documents have unique keys and correct offsets', (t) => {
  const rng = dice(41)
  let passed = 0
  for (let round = 0; round < 2_000; round += 1) {
    const text = documentOf(rng, 0)
    const members = look(text)
    if (members === null) continue
    passed += 1
    const value = JSON.parse(text) as Record<string, unknown>
    const bytes = Buffer.from(text)
    const again = members.map(({ memberStart, valueEnd }) => bytes.toString('utf8', memberStart, valueEnd))
    t.same(JSON.parse(`{${again.join(',')}}`), value)
    // A duplicate key would be present once.
    t.equal(JSON.stringify(value).length, withoutBlanks(text).length)
    t.same(
      members.map(({ key }) => key),
      Object.keys(value),
    )
  }
  t.ok(passed > 500, `${passed} of 2000 pass`)
  t.ok(passed < 1_950, 'some have duplicate keys')
  t.end()
})

function documentOf(rng: () => number, depth: number): string {
  const pick = (items: readonly string[]): string => items[Math.floor(rng() * items.length)] ?? ''
  const value = (): string => {
    const kind = rng()
    if (depth < 4 && kind < 0.3) return documentOf(rng, depth + 1)
    if (depth < 4 && kind < 0.5) {
      const items = Array.from({ length: Math.floor(rng() * 4) }, () => pick(BLANKS) + value())
      return `[${items.join(`${pick(BLANKS)},`)}${pick(BLANKS)}]`
    }
    return kind < 0.8 ? `"${pick(TEXTS)}"` : pick(WORDS)
  }
  const members = Array.from({ length: Math.floor(rng() * 5) }, () => {
    const key = `key-${Math.floor(rng() * 20)}${rng() < 0.2 ? '-that-is-longer' : ''}`
    return `${pick(BLANKS)}"${key}"${pick(BLANKS)}:${pick(BLANKS)}${value()}${pick(BLANKS)}`
  })
  return `{${members.join(',')}${pick(BLANKS)}}`
}

/** The text of `JSON.stringify`. */
function withoutBlanks(text: string): string {
  return text.replace(/("(?:[^"\\]|\\.)*")|\s+/gs, (_, string: string | undefined) => string ?? '')
}
