/**
 * Goal: the scan of a reply names the limit that a text exceeds, and its outline has the usage, regardless of
 * the boundaries of chunks.
 * Method: texts at and beyond each limit, in chunks of every size.
 */
import t from 'tap'
import { mayBeDeep, ReplyScan } from '../../../../src/formats/wire/json/reply-scan.js'

function scanOf(text: string, size = text.length): ReplyScan {
  const scan = new ReplyScan()
  for (let at = 0; at < text.length; at += size) scan.add(text.slice(at, at + size), true)
  return scan
}

const REPLY = JSON.stringify({
  id: 'a "quoted" \\ id',
  choices: [{ index: 0, message: { content: 'Hi', tool_calls: [] }, finish_reason: 'stop' }],
  empty: {},
  numbers: [-1.5e3, true, false, null],
  usage: { prompt_tokens: 1, completion_tokens: 2 },
})

void t.test('the outline of a small text is the text', (t) => {
  for (let size = 1; size < 40; size += 1) {
    const scan = scanOf(REPLY, size)
    t.equal(scan.outline, REPLY, `in chunks of ${size}`)
    t.equal(scan.isComplete, true)
    t.equal(scan.excess, null)
  }
  t.same(JSON.parse(scanOf(` {"a" : [ 1 , "b" ] }\n`, 3).outline), { a: [1, 'b'] })
  t.end()
})

void t.test('the outline leaves out what is long, deep or frequent, and keeps the usage', (t) => {
  const usage = { input_tokens: 5, output_tokens: 7 }
  const deep = JSON.parse('['.repeat(40) + ']'.repeat(40)) as unknown
  const many = Array.from({ length: 5_000 }, (_, at) => [at])
  const long = '"\\я'.repeat(5_000)
  const large = { content: [{ text: long }], deep, many, ['k'.repeat(3_000)]: 1, usage }
  const text = Buffer.from(JSON.stringify(large)).toString('latin1')
  for (const size of [1, 7, 1_000, text.length]) {
    const scan = scanOf(text, size)
    const outline = JSON.parse(scan.outline) as Record<string, unknown>
    t.same(outline['usage'], usage)
    t.same(outline['content'], [{ text: '' }])
    t.same(Object.keys(outline), ['content', 'deep', 'many', 'usage'])
    t.equal((outline['many'] as unknown[]).length, 64)
    t.equal(scan.omittedText, Buffer.byteLength(JSON.stringify(long)) - 2, 'text counts')
    t.ok(scan.outline.length < 32 * 1024, `${scan.outline.length} characters`)
  }
  t.end()
})

void t.test('usage behind a million members', (t) => {
  const text = `{${'"a":{"b":1},'.repeat(10_000)}"response":{${'"c":[],'.repeat(10)}"usage":{"output":1}}}`
  const outline = JSON.parse(scanOf(text, 4_096).outline) as Record<string, unknown>
  t.same(Object.keys(outline), ['a'], 'a reply has at most 256 members')
  const events = `{"many":[${'[],'.repeat(100_000)}0],"usage":{"output":1}}`
  t.match(JSON.parse(scanOf(events, 4_096).outline), { usage: { output: 1 } })
  t.end()
})

void t.test('each limit is named', (t) => {
  const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth)
  t.equal(scanOf(nested(64)).excess, null)
  t.equal(scanOf(nested(65)).excess, 'more than 64 levels')
  const items = (count: number): string => `[${'0,'.repeat(count)}0]`
  t.equal(scanOf(items(199_998)).excess, null)
  t.equal(scanOf(items(199_999)).excess, 'more than 200000 structural tokens')
  const names = (count: number): string =>
    `{${Array.from({ length: count }, (_, at) => `"k${at}":0`).join()}}`
  t.equal(scanOf(names(16_384)).excess, null)
  t.equal(scanOf(names(16_385)).excess, 'more than 16384 different names')
  const string = (unit: string): string => `["${unit.repeat((3 * 1024 * 1024) / unit.length)}"]`
  t.equal(scanOf(string('A')).excess, null, 'inline data')
  t.same(scanOf(string('A'), 1_000).data, [{ start: 2, end: 2 + 3 * 1024 * 1024 }])
  t.equal(scanOf(string('\\n')).excess, 'more than 2097152 bytes beside inline data')
  t.equal(scanOf(`["${'A'.repeat(17 * 1024 * 1024)}"]`).excess, 'more than 16777216 bytes')
  t.end()
})

void t.test('an incomplete or broken text is not complete', (t) => {
  for (const text of ['', '{', '{"a":1', '{"a":"b}', '{"a":[1}', '{}{}', '[]]', 'nul']) {
    t.equal(scanOf(text).isComplete, false, text)
  }
  t.equal(mayBeDeep(REPLY), false)
  t.equal(mayBeDeep('{}'.repeat(65)), true)
  t.end()
})
