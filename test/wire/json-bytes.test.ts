/** Bytes that are put one by one, against what JSON and `String` make of the same. */
import t from 'tap'
import { putAscii, putDigits, putNumber, putQuoted } from '../../src/wire/json-bytes.js'
import { dice } from '../helpers/dice.js'

const bytes = Buffer.alloc(512)
const MARK = 0x21

/** What `put` writes between marks; with a mark that is gone, more than that. */
function written(put: (at: number) => number): string {
  const from = 3
  bytes.fill(MARK)
  const end = put(from)
  const isAlone = bytes.subarray(0, from).every(isMark) && bytes.subarray(end).every(isMark)
  return bytes.toString('utf8', from, end) + (isAlone ? '' : ' and more')
}

const isMark = (byte: number) => byte === MARK

void t.test('numbers', (t) => {
  const edges = [
    0,
    1,
    9,
    10,
    99,
    100,
    999_999_999,
    1e9,
    1e9 + 1,
    10_000_000_007,
    2 ** 31,
    2 ** 53 - 1,
  ]
  const odd = [-0, -1, 0.5, -2.25, 1e21, 2 ** 53, 1.5e300]
  const chance = dice(5)
  const some = Array.from({ length: 500 }, () => Math.floor(10 ** (chance() * 15.9)))
  for (const value of [...edges, ...odd, ...some]) {
    t.equal(
      written((at) => putNumber(bytes, at, value)),
      String(value),
    )
  }
  for (const none of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
    t.equal(
      written((at) => putNumber(bytes, at, none)),
      '0',
    )
  }
  for (const value of [0, 7, 10, 123_456_789, 999_999_999]) {
    t.equal(
      written((at) => putDigits(bytes, at, value)),
      String(value),
    )
  }
  t.end()
})

void t.test('texts', (t) => {
  const chance = dice(6)
  const characters = ['a', 'Z', '0', ' ', '~', '!', '"', '\\', '/', '\n', '\0', '\u007f', '\u0080']
  characters.push('é', '\u2028', '漢', '😀', '\ud800')
  const some = Array.from({ length: 500 }, () =>
    Array.from({ length: Math.floor(chance() * 12) }, () => {
      return chance() < 0.7 ? 'x' : (characters[Math.floor(chance() * characters.length)] ?? '')
    }).join(''),
  )
  for (const text of ['', 'plain', ...characters, ...some]) {
    t.equal(
      written((at) => putQuoted(bytes, at, text)),
      JSON.stringify(text),
    )
  }
  t.equal(
    written((at) => putAscii(bytes, at, ',"a":null')),
    ',"a":null',
  )
  t.end()
})
