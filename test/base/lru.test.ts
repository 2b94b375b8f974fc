/** Goal: a bounded map keeps what was used last within its capacity; what leaves releases its weight. */
import t from 'tap'
import { Lru } from '../../src/base/lru.js'

void t.test('the least recently used entries leave, at least half of the capacity stays', (t) => {
  const lru = new Lru<number>(100)
  lru.set('used', 1)
  for (let index = 0; index < 1_000; index += 1) {
    lru.set(String(index), index)
    lru.get('used')
    t.ok(lru.size <= 100, 'never above the capacity')
  }
  t.equal(lru.get('used'), 1, 'what is used stays')
  t.equal(lru.get('950'), 950, 'the newest half is there')
  t.equal(lru.get('0'), undefined)
  lru.dropUnused()
  lru.get('used')
  lru.dropUnused()
  t.equal(lru.size, 1, 'unused entries leave with the second call')
  t.end()
})

void t.test('a replaced or deleted entry releases its weight', (t) => {
  const lru = new Lru<number>(20, (weight) => weight)
  for (let index = 0; index < 100; index += 1) {
    lru.set('same', 5)
    lru.set('gone', 4)
    lru.delete('gone')
  }
  t.equal(lru.get('same'), 5)
  t.equal(lru.size, 1)
  t.end()
})
