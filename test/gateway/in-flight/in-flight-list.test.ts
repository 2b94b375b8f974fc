/**
 * Goal: the list contains exactly the items that were added and not removed, in any order of calls.
 * Method: random additions and removals compared with a Set, also during a visit.
 */
import t from 'tap'
import { InFlightList, NOT_LISTED } from '../../../src/gateway/in-flight-list.js'
import { dice } from '../../helpers/seeded-random.js'

interface Plane {
  listIndex: number
  readonly name: number
}

function visited(list: InFlightList<Plane>): number[] {
  const names: number[] = []
  list.each(({ name }) => names.push(name))
  return names.sort((a, b) => a - b)
}

void t.test('it agrees with a Set', (t) => {
  const roll = dice(7)
  const planes = Array.from({ length: 50 }, (_, name): Plane => ({ listIndex: NOT_LISTED, name }))
  const list = new InFlightList<Plane>()
  const model = new Set<number>()
  for (let step = 0; step < 5_000; step += 1) {
    const plane = planes[Math.floor(roll() * planes.length)]
    if (plane === undefined) continue
    if (roll() < 0.5) {
      list.add(plane)
      model.add(plane.name)
    } else {
      list.remove(plane)
      model.delete(plane.name)
    }
    if (list.size !== model.size) t.fail(`step ${step}: ${list.size} and not ${model.size}`)
    if (step % 100 === 0)
      t.same(
        visited(list),
        [...model].sort((a, b) => a - b),
      )
  }
  t.end()
})

void t.test('an item that is removed during a visit is not visited, and all others are', (t) => {
  const list = new InFlightList<Plane>()
  const planes = Array.from({ length: 5 }, (_, name): Plane => ({ listIndex: NOT_LISTED, name }))
  for (const plane of planes) list.add(plane)
  const seen: number[] = []
  list.each((plane) => {
    seen.push(plane.name)
    list.remove(plane)
    // Two other items, one before and one after it in the list.
    for (const other of planes) if (other.name === 1) list.remove(other)
  })
  t.same([...seen].sort(), [0, 2, 3, 4])
  t.equal(list.size, 0)
  t.ok(planes.every(({ listIndex }) => listIndex === NOT_LISTED))
  t.end()
})

void t.test('an item that is added during a visit is visited by the next one', (t) => {
  const list = new InFlightList<Plane>()
  const late: Plane = { listIndex: NOT_LISTED, name: 2 }
  list.add({ listIndex: NOT_LISTED, name: 1 })
  const seen: number[] = []
  list.each(({ name }) => {
    seen.push(name)
    list.add(late)
  })
  t.same(seen, [1])
  t.same(visited(list), [1, 2])
  t.end()
})
