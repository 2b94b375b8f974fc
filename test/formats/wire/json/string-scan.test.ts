/**
 * Goal: the scan accepts exactly the strings that `JSON.parse` accepts, and counts their decoded bytes.
 * Method: seeded strings of plain text, escapes and invalid bytes, at every alignment; strings of more than
 * the program's memory, with each escape at each place of the boundary, two at a time.
 */
import t from 'tap'
import { PAUSED, STEP_BYTES, StringScan } from '../../../../src/formats/wire/json/string-scan.js'
import { dice } from '../../../helpers/seeded-random.js'
import { cpuWatch } from '../../../helpers/stopwatch.js'

const GOOD = [
  'a',
  'plain text ',
  'é',
  '船',
  '🚢',
  '\\n',
  '\\"',
  '\\\\',
  '\\/',
  '\\u0041',
  '\\u0416',
  '\\u8239',
]
const PAIR = '\\ud83d\\udea2'
const BAD = ['\u0001', '\n', '\t', '\\x', '\\u12g4', '\\u', '\\']

function parsed(json: string): string | null {
  try {
    return String(JSON.parse(json))
  } catch {
    return null
  }
}

/** Scans the string at an offset in a larger buffer, so that every alignment of machine words occurs. */
function scanned(json: string, offset: number): { end: number; savedBytes: number; length: number } {
  const inside = Buffer.from(json).subarray(1)
  const all = Buffer.concat([Buffer.alloc(offset, 120), inside, Buffer.from(',"more":1}')])
  const scan = new StringScan(all.subarray(offset))
  return { end: scan.end(0), savedBytes: scan.savedBytes, length: inside.length - 1 }
}

void t.test('accepts the strings that JSON.parse accepts, and counts their decoded bytes', (t) => {
  const chance = dice(20261122)
  const roll = (sides: number): number => Math.floor(chance() * sides)
  let refused = 0
  for (let round = 0; round < 4_000; round += 1) {
    let inside = ''
    for (let count = roll(40); count >= 0; count -= 1) {
      const pool = roll(60) === 0 ? BAD : [...GOOD, PAIR]
      inside += (pool[roll(pool.length)] ?? '').repeat(roll(3) === 0 ? 1 + roll(30) : 1)
    }
    const json = `"${inside}"`
    const text = parsed(json)
    const { end, savedBytes, length } = scanned(json, roll(8))
    if (text === null) {
      refused += 1
      // A backslash before the quote makes the string end later or never, and the whole body is refused.
      if (end === length) t.fail(`takes ${JSON.stringify(json)}`)
      continue
    }
    if (end !== length) t.fail(`ends at ${end}, not at ${length}: ${json}`)
    if (length - savedBytes !== Buffer.byteLength(text)) t.fail(`counts ${savedBytes} saved: ${json}`)
  }
  t.ok(refused > 100 && refused < 3_000, `${refused} refused`)
  t.end()
})

void t.test('scans strings of more than a step, two at a time', (t) => {
  const ends = ['\\n', '\\\\', '\\u0416', PAIR, 'é', '']
  for (let before = 0; before < 14; before += 1) {
    const scans = ends.map((escape) => {
      const inside = `${'x'.repeat(STEP_BYTES - before)}${escape}${'y'.repeat(99)}`
      const bytes = Buffer.from(`${inside}",`)
      const textBytes = Buffer.byteLength(String(JSON.parse(`"${inside}"`)))
      const scan = new StringScan(bytes)
      return { escape, bytes, textBytes, scan, end: scan.end(0) }
    })
    for (const { escape, bytes, textBytes, scan, end: first } of scans) {
      const end = first === PAUSED ? scan.resume() : first
      t.equal(end, bytes.length - 2, `${escape} ${before} bytes before the boundary`)
      t.equal(end - scan.savedBytes, textBytes)
    }
  }
  t.end()
})

void t.test('finds no end of an unterminated string', (t) => {
  for (const inside of ['', 'a', 'a'.repeat(100), '\\', '\\"', `${'a'.repeat(99)}\\`, '\\u00']) {
    t.equal(new StringScan(Buffer.from(inside)).end(0), -1, JSON.stringify(inside))
  }
  t.end()
})

void t.test('takes linear time over escaped quotes', (t) => {
  const bytes = Buffer.from('\\"'.repeat(4_000_000))
  let pauses = 0
  const watch = cpuWatch()
  const scan = new StringScan(bytes)
  let end = scan.end(0)
  for (; end === PAUSED; end = scan.resume()) pauses += 1
  t.equal(end, -1)
  t.equal(pauses, 7, 'pauses after each megabyte')
  t.ok(watch() < 2_000)
  t.end()
})
