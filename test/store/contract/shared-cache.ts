/**
 * The tests of every engine for the shared cache.
 */
import type { Test } from 'tap'
import { openStore } from '../../../src/store/open-store.js'
import type { NamedValue, SharedCache } from '../../../src/store/store.js'
import { otherProcess } from '../processes/start-processes.js'

type NewUrl = (t: Test) => string | Promise<string>

/** A capacity that no test reaches. */
export const CAPACITY = { entries: 1_000, bytes: 1_000_000 }

/** A value with this name and text. */
export function aValue(name: string, text: string, expiresAtMs: number): NamedValue {
  return { name, value: Buffer.from(text), expiresAtMs }
}

/** Values are stored, replaced and expire, in two processes. */
export async function sharedCache(t: Test, newUrl: NewUrl): Promise<void> {
  const url = await newUrl(t)
  const cache = await openedCache(t, url)
  const other = await otherProcess(t, url)
  const texts = async (names: string[], nowMs = 0): Promise<(string | null)[]> => {
    const found = await cache.get(names, nowMs)
    return found.map((item) => (item === null ? null : Buffer.from(item.value).toString()))
  }

  t.same(await texts(['a', 'b']), [null, null], 'a new store has no value')
  await cache.put(aValue('a', 'one', 100), CAPACITY, 0)
  await cache.put(aValue('b', 'two', 200), CAPACITY, 0)
  t.same(await texts(['b', 'x', 'a', 'b']), ['two', null, 'one', 'two'], 'in the order of the names')
  t.same(await cache.get([], 0), [])
  t.equal((await cache.get(['b'], 0))[0]?.expiresAtMs, 200)
  t.same(await texts(['a', 'b'], 99), ['one', 'two'])
  t.same(await texts(['a', 'b'], 100), [null, 'two'], 'an expired value is not returned before a sweep')

  await cache.put(aValue('b', 'three', 50), CAPACITY, 0)
  t.same(await texts(['b'], 49), ['three'], 'a later value replaces value and time')
  t.same(await texts(['b'], 50), [null])
  t.equal(await cache.sweep(CAPACITY, 60), 1, 'removes the expired value')
  t.equal(await cache.sweep(CAPACITY, 60), 0)
  t.same(await texts(['a', 'b'], 0), ['one', null])

  const bytes = Buffer.from(Array.from({ length: 70_000 }, (_, at) => at & 0xff))
  await cache.put({ name: 'bytes', value: bytes, expiresAtMs: 2_000_000_000_000.5 }, CAPACITY, 0)
  await cache.put(aValue('empty', '', 200), CAPACITY, 0)
  const [big, empty] = await cache.get(['bytes', 'empty'], 100)
  t.ok(bytes.equals(big?.value ?? Buffer.alloc(0)), 'returns any bytes, more than a page of the file')
  t.equal(big?.expiresAtMs, 2_000_000_000_000.5)
  t.equal(empty?.value.length, 0)

  await cache.put(aValue('mine', 'm', 300), CAPACITY, 0)
  t.same(await other.tell({ op: 'get', names: ['mine', 'none'] }), ['m', null], 'there as here')
  await other.tell({ op: 'put', name: 'theirs', text: 't', expiresAtMs: 300 })
  t.same(await texts(['theirs', 'mine']), ['t', 'm'], 'each process reads values of the other')

  const kept = async (name: string, text: string, expiresAtMs: number, nowMs = 0): Promise<void> =>
    cache.put(aValue(name, text, expiresAtMs), CAPACITY, nowMs, 'kept')
  await kept('secret', 'first', 300)
  await kept('secret', 'second', 500)
  t.same(await texts(['secret']), ['first'], 'a value is kept')
  t.equal((await cache.get(['secret'], 0))[0]?.expiresAtMs, 300, 'and its time')
  await kept('secret', 'third', 500, 300)
  t.same(await texts(['secret'], 300), ['third'], 'unless it has expired')
  const races = Array.from({ length: 20 }, (_, at) => `race-${at}`)
  const putByBoth = async (name: string): Promise<unknown[]> => {
    const ours = kept(name, 'ours', 400).then(() => texts([name]))
    const theirs = other
      .tell({ op: 'put', name, text: 'theirs', expiresAtMs: 400, existing: 'kept' })
      .then(() => other.tell({ op: 'get', names: [name] }))
    return [...new Set((await Promise.all([ours, theirs])).map(String))]
  }
  const read = await Promise.all(races.map(putByBoth))
  t.ok(
    read.every(([text, another]) => another === undefined && /^(ours|theirs)$/.test(String(text))),
    'two processes that put a value read the same one',
  )

  const many = Array.from({ length: 100 }, (_, at) => `many-${at}`)
  await Promise.all(
    many.map((name, at) =>
      at % 2 === 0
        ? cache.put(aValue(name, name, 400), CAPACITY, 0)
        : other.tell({ op: 'put', name, text: name, expiresAtMs: 400 }),
    ),
  )
  t.same(await texts(many), many, '100 concurrent values of two processes')
  t.ok((await cache.sweep(CAPACITY, 400)) >= 100)
  t.same(await texts(['bytes', 'mine'], 0), [bytes.toString(), null], 'a sweep removes expired values')
}

/** The values that are removed beyond the capacity. */
export async function sharedCacheCapacity(t: Test, newUrl: NewUrl): Promise<void> {
  const cache = await openedCache(t, await newUrl(t))
  const there = async (...names: string[]): Promise<string> => {
    const found = await cache.get(names, 0)
    return names.filter((_, at) => found[at] !== null).join('')
  }
  const three = { entries: 3, bytes: 1_000 }
  for (const [name, expiresAtMs] of [
    ['a', 300],
    ['b', 100],
    ['c', 200],
  ] as const) {
    await cache.put(aValue(name, 'x', expiresAtMs), three, 0)
  }
  t.equal(await there('a', 'b', 'c'), 'abc', 'n')
  await cache.put(aValue('d', 'x', 400), three, 0)
  t.equal(await there('a', 'b', 'c', 'd'), 'acd', 'removes the value that expires first')
  await cache.put(aValue('a', 'y', 500), three, 0)
  t.equal(await there('a', 'c', 'd'), 'acd', 'a replaced value counts once')
  await cache.put(aValue('e', 'x', 1_000), three, 350)
  t.equal(await there('a', 'c', 'd', 'e'), 'ade', 'removes expired values first')

  await cache.put(aValue('f', 'x'.repeat(95), 2_000), { entries: 9, bytes: 101 }, 0)
  t.equal(await there('a', 'd', 'e', 'f'), 'aef', 'counts the bytes of names and values')
  t.equal(
    await cache.sweep({ entries: 1, bytes: 1_000 }, 0),
    2,
    'a sweep removes values beyond a smaller capacity',
  )
  t.equal(await there('a', 'e', 'f'), 'f')
  await cache.put(aValue('g', 'x'.repeat(100), 3_000), { entries: 9, bytes: 50 }, 0)
  t.equal(await there('f', 'g'), '', 'does not keep a value larger than the capacity')
  t.equal(await cache.sweep({ entries: 0, bytes: 0 }, 0), 0)

  const crowd = { entries: 10_000, bytes: 1_000_000 }
  await Promise.all(Array.from({ length: 600 }, (_, at) => cache.put(aValue(`n${at}`, 'x', 100), crowd, 0)))
  t.equal(await cache.sweep(crowd, 100), 600, 'one sweep removes all 600')
}

async function openedCache(t: Test, url: string): Promise<SharedCache> {
  const store = await openStore(url)
  t.teardown(() => store.close())
  return store.cache
}
