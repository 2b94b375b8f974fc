/**
 * Goal: integers of any length and numbers of any size are parsed and serialized unchanged; everything else
 * is like in plain JSON. Method: round trips; texts without long integers compared with `JSON.parse`.
 */
import t from 'tap'
import { parseExact, stringifyExact } from '../../../../src/formats/wire/json/exact-numbers.js'

void t.test('integers beyond 2^53 are unchanged at any position', (t) => {
  for (const text of [
    '{"id":9007199254740993}',
    '{"id":-9007199254740993,"list":[12345678901234567890,1]}',
    '12345678901234567890123456789012345678901234567890',
    '{"a":{"b":[{"c":18446744073709551615}]},"s":"18446744073709551615"}',
  ]) {
    t.equal(stringifyExact(parseExact(text)), text)
  }
  t.end()
})

void t.test('a number beyond the range of a double is unchanged', (t) => {
  for (const text of [
    '{"a":1e400}',
    '{"a":-1E+400,"b":[2.5e309,1]}',
    '{"a":{"b":1e0000400}}',
    `{"a":${'9'.repeat(400)}.5}`,
    `{"a":1${'0'.repeat(250)}e99}`,
    '{"s":"1e400","a":1e999}',
  ]) {
    t.equal(stringifyExact(parseExact(text)), text)
  }
  t.same(parseExact('[1e308, 1e-400, "1e400", 1E+0003]'), [1e308, 0, '1e400', 1000])
  t.end()
})

void t.test('a number within the precision of a double is a number', (t) => {
  for (const [text, value] of [
    ['9007199254740992', 2 ** 53],
    ['1234567890123456', 1234567890123456],
    ['[0.123456789012345678, 1e21, -0]', [0.12345678901234568, 1e21, -0]],
    ['"a \\"9007199254740993\\" b"', 'a "9007199254740993" b'],
    ['{"9007199254740993":"x"}', { '9007199254740993': 'x' }],
  ] as const) {
    t.same(parseExact(text), value, text)
    t.same(parseExact(text), JSON.parse(text), text)
  }
  t.end()
})

void t.test('digits in keys, escapes and long strings are ignored', (t) => {
  const long = 'x\\"1234567890123456789,'.repeat(100_000)
  const text = `{"s":"${long}","__proto__":9007199254740993}`
  t.equal(stringifyExact(parseExact(text)), text)
  t.end()
})

void t.test('invalid JSON is refused like by JSON.parse', (t) => {
  for (const text of [
    '',
    '{',
    '1234567890123456789x',
    '"1234567890123456789',
    '01234567890123456789',
    '-01e400',
    '1e400e5',
    '1.e400',
  ]) {
    t.throws(() => parseExact(text), SyntaxError, text)
  }
  t.end()
})

void t.test('a long integer is found at every offset', (t) => {
  for (let before = 0; before < 40; before += 1) {
    const text = `{"a":"${'x'.repeat(before)}","id":9007199254740993,"b":123456789012345}`
    t.equal(stringifyExact(parseExact(text)), text, `behind ${before} characters`)
  }
  t.same(parseExact('123456789012345'), 123456789012345)
  t.equal(stringifyExact(parseExact('9007199254740993')), '9007199254740993')
  t.end()
})
