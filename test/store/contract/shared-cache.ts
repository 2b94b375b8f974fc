/**
 * What every engine's shelf must do: the part of the suite that is about values which need not last.
 */
import type { Test } from 'tap'
import { openStore } from '../../../src/store/open-store.js'
import type { SharedCache, CachedValue } from '../../../src/store/store.js'
import { otherProcess } from '../processes/start-processes.js'

type NewUrl = (t: Test) => string | Promise<string>

/** Room enough. */
export const ROOM = { entries: 1_000, bytes: 1_000_000 }

/** A value that is a text. */
export function shelved(text: string, expiresAtMs: number): CachedValue {
  return { value: Buffer.from(text), expiresAtMs }
}

/** Putting, getting, replacing, expiring, and all that between processes. */
export async function shelf(t: Test, newUrl: NewUrl): Promise<void> {
  const url = await newUrl(t)
  const shelf = await openedShelf(t, url)
  const other = await otherProcess(t, url)
  const texts = async (names: string[], nowMs = 0): Promise<(string | null)[]> => {
    const found = await shelf.get(names, nowMs)
    return found.map((item) => (item === null ? null : Buffer.from(item.value).toString()))
  }

  t.same(await texts(['a', 'b']), [null, null], 'nothing is there yet')
  await shelf.put('a', shelved('one', 100), ROOM, 0)
  await shelf.put('b', shelved('two', 200), ROOM, 0)
  t.same(await texts(['b', 'x', 'a', 'b']), ['two', null, 'one', 'two'], 'in the order asked')
  t.same(await shelf.get([], 0), [])
  t.equal((await shelf.get(['b'], 0))[0]?.expiresAtMs, 200)
  t.same(await texts(['a', 'b'], 99), ['one', 'two'])
  t.same(await texts(['a', 'b'], 100), [null, 'two'], 'gone at its time, swept or not')

  await shelf.put('b', shelved('three', 50), ROOM, 0)
  t.same(await texts(['b'], 49), ['three'], 'the later value and time replace the earlier')
  t.same(await texts(['b'], 50), [null])
  t.equal(await shelf.sweep(ROOM, 60), 1, 'one has expired')
  t.equal(await shelf.sweep(ROOM, 60), 0)
  t.same(await texts(['a', 'b'], 0), ['one', null])

  const bytes = Buffer.from(Array.from({ length: 70_000 }, (_, at) => at & 0xff))
  await shelf.put('bytes', { value: bytes, expiresAtMs: 2_000_000_000_000.5 }, ROOM, 0)
  await shelf.put('empty', shelved('', 200), ROOM, 0)
  const [big, empty] = await shelf.get(['bytes', 'empty'], 100)
  t.ok(bytes.equals(big?.value ?? Buffer.alloc(0)), 'any bytes, beyond a page')
  t.equal(big?.expiresAtMs, 2_000_000_000_000.5)
  t.equal(empty?.value.length, 0)

  await shelf.put('mine', shelved('m', 300), ROOM, 0)
  t.same(await other.tell({ op: 'get', names: ['mine', 'none'] }), ['m', null], 'there as here')
  await other.tell({ op: 'put', name: 'theirs', text: 't', expiresAtMs: 300 })
  t.same(await texts(['theirs', 'mine']), ['t', 'm'], 'and the other way round')

  const many = Array.from({ length: 100 }, (_, at) => `many-${at}`)
  await Promise.all(
    many.map((name, at) =>
      at % 2 === 0
        ? shelf.put(name, shelved(name, 400), ROOM, 0)
        : other.tell({ op: 'put', name, text: name, expiresAtMs: 400 }),
    ),
  )
  t.same(await texts(many), many, 'a hundred at once from two processes')
  t.ok((await shelf.sweep(ROOM, 400)) >= 100)
  t.same(await texts(['bytes', 'mine'], 0), [bytes.toString(), null], 'a sweep takes what is over')
}

/** Who has to go where the room is short. */
export async function shelfRoom(t: Test, newUrl: NewUrl): Promise<void> {
  const shelf = await openedShelf(t, await newUrl(t))
  const there = async (...names: string[]): Promise<string> => {
    const found = await shelf.get(names, 0)
    return names.filter((_, at) => found[at] !== null).join('')
  }
  const three = { entries: 3, bytes: 1_000 }
  for (const [name, expiresAtMs] of [
    ['a', 300],
    ['b', 100],
    ['c', 200],
  ] as const) {
    await shelf.put(name, shelved('x', expiresAtMs), three, 0)
  }
  t.equal(await there('a', 'b', 'c'), 'abc', 'n')
  await shelf.put('d', shelved('x', 400), three, 0)
  t.equal(await there('a', 'b', 'c', 'd'), 'acd', 'n + 1: what would expire first went')
  await shelf.put('a', shelved('y', 500), three, 0)
  t.equal(await there('a', 'c', 'd'), 'acd', 'one replaced is not one more')
  await shelf.put('e', shelved('x', 1_000), three, 350)
  t.equal(await there('a', 'c', 'd', 'e'), 'ade', 'what has expired goes before the rest')

  await shelf.put('f', shelved('x'.repeat(95), 2_000), { entries: 9, bytes: 101 }, 0)
  t.equal(await there('a', 'd', 'e', 'f'), 'aef', 'three times two bytes and 96 are one too many')
  t.equal(await shelf.sweep({ entries: 1, bytes: 1_000 }, 0), 2, 'a smaller room is swept')
  t.equal(await there('a', 'e', 'f'), 'f')
  await shelf.put('g', shelved('x'.repeat(100), 3_000), { entries: 9, bytes: 50 }, 0)
  t.equal(await there('f', 'g'), '', 'what has no room at all does not stay')
  t.equal(await shelf.sweep({ entries: 0, bytes: 0 }, 0), 0)

  const crowd = { entries: 10_000, bytes: 1_000_000 }
  await Promise.all(
    Array.from({ length: 600 }, (_, at) => shelf.put(`n${at}`, shelved('x', 100), crowd, 0)),
  )
  t.equal(await shelf.sweep(crowd, 100), 600, 'one sweep takes them all, however many')
}

async function openedShelf(t: Test, url: string): Promise<SharedCache> {
  const store = await openStore(url)
  t.teardown(() => store.close())
  return store.cache
}
