/**
 * Goal: what is taken of a subject's limits is read as it was written, also by the version before, and what is damaged is said.
 * Method: records as bytes.
 */
import t from 'tap'
import {
  FORMER_NUMBERS,
  LIMIT_NUMBERS,
  PLACE_OF,
  readLimits,
  copyLimits,
  writeLimits,
} from '../../src/store/lmdb-limits.js'

const VERSION = 2

function bytesOf(numbers: readonly number[]): Buffer {
  return Buffer.from(Float64Array.from(numbers).buffer)
}

void t.test('as it was written', (t) => {
  const record = readLimits(undefined, 'a')
  t.same([...record], [VERSION, ...Array.from({ length: LIMIT_NUMBERS - 1 }, () => 0)])
  record[PLACE_OF.daySpent] = 2 ** 53
  record[PLACE_OF.dayReserved] = 7
  t.same([...readLimits(Buffer.from(writeLimits(record)), 'a')], [...record])
  t.end()
})

void t.test('of the version before: nothing is reserved', (t) => {
  const former = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
  const now = [VERSION, ...former.slice(1), 0, 0]
  t.equal(former.length, FORMER_NUMBERS)
  t.same([...readLimits(bytesOf(former), 'a')], now)
  const record = new Float64Array(LIMIT_NUMBERS).fill(9)
  copyLimits(record, Float64Array.from([0, ...former, 5, 5]), 1, FORMER_NUMBERS)
  t.same([...record], now)
  t.end()
})

void t.test('damaged', (t) => {
  for (const numbers of [[], [1], [VERSION, 2, 3, 4, 5, 6, 7, 8, 9, 10], [1, ...now().slice(1)]]) {
    t.throws(() => readLimits(bytesOf(numbers), 'a key'), /the limits of 'a key'/)
  }
  t.doesNotThrow(() => readLimits(bytesOf(now()), 'a key'))
  t.end()
})

function now(): number[] {
  return [VERSION, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]
}
