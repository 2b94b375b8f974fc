/**
 * Goal: numbers are formatted with at most three decimals and rounded correctly.
 * Method: edge cases, then random values compared with V8's rounding.
 */
import t from 'tap'
import { decimal } from '../../../../src/gateway/phases/reply-headers.js'

void t.test('edge cases', (t) => {
  const cases: [number, string][] = [
    [0, '0'],
    [17, '17'],
    [-3, '-3'],
    [0.0004, '0'],
    [0.0005, '0.001'],
    [0.042, '0.042'],
    [1.25, '1.25'],
    [1.9996, '2'],
    [-0.5, '-0.5'],
    [2 ** 40 + 0.5, String(2 ** 40 + 0.5)],
    [Number.NaN, 'null'],
    [Infinity, 'null'],
  ]
  for (const [value, text] of cases) t.equal(decimal(value), text, String(value))
  t.end()
})

void t.test('random durations', (t) => {
  for (let i = 0; i < 20_000; i++) {
    const value = Math.random() * 10 ** (i % 9)
    const text = decimal(value)
    if (Number(text) === Math.round(value * 1000) / 1000) continue
    t.fail(`${value} became ${text}`)
  }
  t.pass('all agree')
  t.end()
})
