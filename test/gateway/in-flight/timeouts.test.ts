/**
 * Goal: all items in flight are checked on every tick, and no others.
 * Method: the real clock; the test counts ticks instead of milliseconds.
 */
import t from 'tap'
import { Timeouts, TICK_MS } from '../../../src/gateway/timeouts.js'
import { NOT_LISTED } from '../../../src/gateway/in-flight-list.js'
import { until } from '../../helpers/upstream.js'

void t.test('every item in flight gets ticks with increasing times', async (t) => {
  const timeouts = new Timeouts()
  t.teardown(() => timeouts.close())
  const seen: number[] = []
  const before = performance.now()
  timeouts.add({ listIndex: NOT_LISTED, tick: (nowMs) => void seen.push(nowMs) })
  await until(() => seen.length >= 3)
  t.same(
    seen,
    [...seen].sort((a, b) => a - b),
  )
  const [first = 0, , third = 0] = seen
  t.ok(first >= before)
  t.ok(third - first >= TICK_MS, 'three ticks are two intervals')
})

void t.test('removed items get no ticks, also if removed during a tick', async (t) => {
  const timeouts = new Timeouts()
  t.teardown(() => timeouts.close())
  let ticks = 0
  let once = 0
  const short = {
    listIndex: NOT_LISTED,
    tick: () => {
      once += 1
      timeouts.remove(short)
      timeouts.remove(other)
    },
  }
  const other = { listIndex: NOT_LISTED, tick: () => t.fail('was removed before its turn') }
  timeouts.add(other)
  timeouts.add(short)
  timeouts.add({ listIndex: NOT_LISTED, tick: () => void (ticks += 1) })
  await until(() => ticks >= 2)
  t.equal(once, 1)
})

void t.test('no ticks after close; an item that is added twice is in flight once', async (t) => {
  const timeouts = new Timeouts()
  let ticks = 0
  const timed = { listIndex: NOT_LISTED, tick: () => void (ticks += 1) }
  timeouts.add(timed)
  timeouts.add(timed)
  const other = new Timeouts()
  t.teardown(() => other.close())
  let beats = 0
  await until(() => ticks === 1)
  timeouts.close()
  other.add({ listIndex: NOT_LISTED, tick: () => void (beats += 1) })
  await until(() => beats >= 2)
  t.equal(ticks, 1)
})
