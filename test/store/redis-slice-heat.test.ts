/**
 * Goal: what is asked for all the time is known to be, second after second, whatever crowd of others comes by.
 * Method: the counts alone, told what time it is.
 */
import t from 'tap'
import { Heat, HOT, WINDOW_MS } from '../../src/store/redis/limits/slice-heat.js'

function ask(heat: Heat, subject: string, times: number, nowMs: number): boolean {
  let isHot = false
  for (let time = 0; time < times; time += 1) isHot = heat.add(subject, nowMs)
  return isHot
}

void t.test(
  'a subject is hot in the window that it is asked for often in, and in the next',
  (t) => {
    const heat = new Heat()
    t.notOk(ask(heat, 'key:a', HOT - 1, 0))
    t.ok(heat.add('key:a', 1), 'the one that makes it many')
    t.notOk(heat.isHot('key:b', 1), 'nobody else')
    t.ok(heat.isHot('key:a', WINDOW_MS + 1), 'in the next window')
    t.ok(heat.add('key:a', WINDOW_MS + 2))
    t.notOk(heat.isHot('key:a', 2 * WINDOW_MS + 3), 'and no longer, with one request')
    t.end()
  },
)

void t.test('a pause forgets', (t) => {
  const heat = new Heat()
  t.ok(ask(heat, 'key:a', HOT, 0))
  t.notOk(heat.isHot('key:a', 2 * WINDOW_MS), 'two windows later')
  t.notOk(heat.add('key:a', 2 * WINDOW_MS + 1))
  t.end()
})

void t.test('a crowd takes no room from what is hot', (t) => {
  const heat = new Heat()
  t.ok(ask(heat, 'key:a', HOT, 0))
  for (let each = 0; each < 20_000; each += 1) heat.add(`key:${each}`, 1)
  t.notOk(ask(heat, 'key:late', HOT, 2), 'there is room for so many in a window')
  t.ok(ask(heat, 'key:a', 1, WINDOW_MS + 1), 'it is counted on')
  t.ok(ask(heat, 'key:late', HOT, WINDOW_MS + 2), 'and there is room again')
  t.end()
})
