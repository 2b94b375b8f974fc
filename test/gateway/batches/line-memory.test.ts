/**
 * Goal: what a batch keeps of each line in memory is small and does not depend on its names: a table of
 * names, and places of results.
 * Method: tables with 100,000 lines, compared with maps, and their sizes in memory.
 */
import t from 'tap'
import { KeyNumbers } from '../../../src/gateway/batches/key-numbers.js'
import { ResultPlaces } from '../../../src/gateway/batches/result-places.js'

const LINES = 100_000

/** The bytes of typed arrays that a step leaves in memory. */
function bytesOf<Result>(step: () => Result): { readonly result: Result; readonly bytes: number } {
  const before = process.memoryUsage().arrayBuffers
  const result = step()
  return { result, bytes: process.memoryUsage().arrayBuffers - before }
}

void t.test('names have the numbers of their first lines', (t) => {
  const table = new KeyNumbers()
  const map = new Map<string, number>()
  for (let number = 1; number <= 5_000; number += 1) {
    // Every third name is used again.
    const name = `${number % 3 === 0 ? 'again' : 'once'} ${number % 3 === 0 ? number % 700 : number}`
    const known = map.get(name)
    if (known === undefined) map.set(name, number)
    t.equal(table.add(name, number), known ?? number)
  }
  t.equal(table.size, map.size)
  t.ok([...map].every(([name, number]) => table.find(name) === number))
  t.equal(table.find('no line'), null)
  t.end()
})

void t.test('a long batch has 7 MiB of names of any length, and 3 MiB of places', (t) => {
  const names = bytesOf(() => {
    const table = new KeyNumbers()
    for (let number = 1; number <= LINES; number += 1) table.add(`${'name'.repeat(120)}${number}`, number)
    return table
  })
  t.equal(names.result.size, LINES)
  const places = bytesOf(() => {
    const table = new ResultPlaces()
    for (let number = LINES; number > 0; number -= 1) {
      table.set(number, { chunk: number * 2 ** 20, begin: number, end: number + 1 })
    }
    return table
  })
  t.equal(places.result.has(0), false)
  t.equal(places.result.find(LINES + 1), null)
  t.same(places.result.find(LINES), { chunk: LINES * 2 ** 20, begin: LINES, end: LINES + 1 })
  t.same(places.result.find(1), { chunk: 2 ** 20, begin: 1, end: 2 })
  // The tables before they grew are still to be collected.
  t.ok(names.bytes < 14 * 2 ** 20, String(names.bytes))
  t.ok(places.bytes < 6 * 2 ** 20, String(places.bytes))
  t.end()
})
