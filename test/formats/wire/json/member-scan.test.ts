/**
 * Goal: members are found at any depth, in any chunks, also if they are escaped or repeated; only strict JSON
 * is accepted; a large body takes little time in each turn.
 */
import t from 'tap'
import { MemberScan } from '../../../../src/formats/wire/json/member-scan.js'

function scanned(text: string | Buffer, isLines = false, chunkBytes = 7): string[] | null {
  const found: string[] = []
  const scan = new MemberScan({
    isLines,
    selects: (name) => name === 'id' || name === 'ids' || name === 'prompt',
    skips: (name) => name === 'args',
    found: ({ name, parent, depth }, value) => found.push(`${depth} ${parent}.${name}=${value}`),
  })
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; at += chunkBytes) {
    if (!scan.write(bytes.subarray(at, at + chunkBytes))) return null
  }
  return scan.end() ? found : null
}

void t.test('finds members by name, place and depth', (t) => {
  const text = JSON.stringify({
    id: 'a"\\b',
    other: { id: 1, deep: [{ id: true }, [{ id: null }]] },
    ids: ['x', 'y', { z: 'no' }],
    prompt: { id: 'p', version: '2' },
    args: { id: 'skipped' },
  })
  for (const chunkBytes of [1, 2, 7, 1_000]) {
    t.strictSame(scanned(text, false, chunkBytes), [
      '1 .id=a"\\b',
      '2 other.id=1',
      '4 .id=true',
      '5 .id=null',
      '2 .ids=x',
      '2 .ids=y',
      '2 prompt.id=p',
      '2 prompt.version=2',
    ])
  }
  t.strictSame(scanned('{"\\u0069d":"\\u0061","id":"b"}'), ['1 .id=a', '1 .id=b'])
  t.strictSame(scanned(`{"id":"${'x'.repeat(2_000)}"}`), ['1 .id=null'], 'too long')
  t.strictSame(scanned('{"id":1}\n\n{"id":2}\n', true), ['1 .id=1', '1 .id=2'], 'lines')
  t.end()
})

void t.test('accepts strict JSON only', (t) => {
  for (const text of [
    ...['', '{', '{"a":1', "{'id':1}", '{id:1}', '{"a":1,}', '[1,]', '{"a":01}', '{"a":NaN}'],
    ...['{"a":1} {"b":2}', '{"a" 1}', '{"a":1 2}', '/**/{}', '{"id":"\\x"}', '{"id":"\n"}'],
    ...['[}', '{]', '"a', '{"a":tru}', '{,}', '[,]', '{"a"}', '['.repeat(200)],
  ]) {
    t.equal(scanned(text), null, text.slice(0, 40))
  }
  t.equal(scanned(Buffer.from('{"id":"a"}', 'utf16le')), null, 'UTF-16')
  t.equal(scanned('{"a":\n1}', true), null, 'a line must be complete')
  t.equal(scanned('{"a":"x\ny"}', true), null, 'also within a string')
  t.strictSame(scanned('{"a":[],"b":{},"c":[[],{}],"d":-1.5e+9} \r\n\t'), [])
  t.end()
})

void t.test('the time of a chunk does not grow with the text', (t) => {
  const hostile = [
    `{"a":"${'\\"'.repeat(4_000_000)}"}`,
    `{"a":[${'{"id":"x"},'.repeat(700_000)}0]}`,
    `{"a":"${'A'.repeat(8_000_000)}"}`,
  ]
  for (const text of hostile) {
    const scan = new MemberScan({ isLines: false, selects: () => true, found: () => undefined })
    const bytes = Buffer.from(text)
    const ms: number[] = []
    let isValid = true
    for (let at = 0; at < bytes.length; at += 65_536) {
      const before = process.cpuUsage()
      isValid &&= scan.write(bytes.subarray(at, at + 65_536))
      const { user, system } = process.cpuUsage(before)
      ms.push((user + system) / 1_000)
    }
    t.ok(isValid && scan.end())
    // The collector may run in any of them.
    const median = ms.sort((a, b) => a - b)[Math.floor(ms.length / 2)] ?? 0
    t.ok(median < 20, `${median} ms`)
  }
  t.end()
})
