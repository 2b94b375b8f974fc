/** The tests of every engine for the owners of providers' objects. */
import type { Test } from 'tap'
import { openStore } from '../../../src/store/open-store.js'
import type { ProviderObject } from '../../../src/store/provider-objects.js'
import type { StoreCapacity } from '../../../src/store/store.js'

type NewUrl = (t: Test) => string | Promise<string>

function anObject(id: string, more: Partial<ProviderObject> = {}): ProviderObject {
  const own = { upstream: 'openai', accountId: 'acc_a', keyId: 'key_a', facts: '' }
  return { ...own, id, expiresAtMs: null, ...more }
}

async function opened(t: Test, url: string, capacity: Partial<StoreCapacity> = {}) {
  const store = await openStore(url, { capacity })
  t.teardown(() => store.close())
  const { providerObjects: objects } = store
  const owners = async (ids: string[], nowMs = 0, upstream = 'openai') =>
    (await objects.find(upstream, ids, nowMs)).map((object) => object?.accountId ?? null)
  return { store, objects, owners }
}

/** Objects belong to the first account that stores them, per upstream, until they expire or are removed. */
export async function providerObjects(t: Test, newUrl: NewUrl): Promise<void> {
  const url = await newUrl(t)
  const { objects, owners } = await opened(t, url)
  const other = await opened(t, url)
  t.same(await owners(['file-1']), [null], 'a new store has none')
  t.same(await owners([]), [])
  const batch = anObject('batch_1', { facts: '{"a":1}', expiresAtMs: 1_000.5 })
  await objects.put([anObject('file-1'), batch], 0)
  t.same(await objects.find('openai', ['batch_1', 'x', 'file-1'], 0), [batch, null, anObject('file-1')])
  t.same(await owners(['file-1'], 0, 'azure'), [null], 'upstreams are separate')
  await other.objects.put([anObject('file-1', { accountId: 'acc_b' })], 0)
  t.same(await owners(['file-1']), ['acc_a'], 'the first owner stays')
  await objects.put([anObject('file-1', { facts: 'new' })], 0)
  t.equal((await other.objects.find('openai', ['file-1'], 0))[0]?.facts, 'new')
  t.same(await owners(['batch_1'], 1_001), [null], 'it has expired')
  await other.objects.put([anObject('batch_1', { accountId: 'acc_b' })], 1_001)
  t.same(await owners(['batch_1'], 1_001), ['acc_b'], 'the id of an expired object is free')
  await objects.put([anObject('files/a', { expiresAtMs: 50, upstream: 'google' })], 0)
  t.equal(await objects.sweep(49), 0)
  t.equal(await objects.sweep(50), 1)
  await objects.remove('openai', 'file-1')
  await objects.remove('openai', 'file-1')
  t.same(await owners(['file-1']), [null], 'removed')
  t.same(await owners(['', 'a b', '\0', 'x'.repeat(401)]), [null, null, null, null])
  await objects.put([anObject('a b')], 0)
  t.same(await owners(['a b']), [null], 'a text that is no name is not stored')
  const many = Array.from({ length: 600 }, (_, at) => anObject(`many-${at}`))
  await objects.put(many, 0)
  const all: string[] = []
  for await (const page of objects.all()) all.push(...page.map(({ id }) => id))
  t.same(all.sort(), ['batch_1', ...many.map(({ id }) => id)].sort(), 'lists every object')
}

/** An account that exceeds a maximum loses its own objects. */
export async function providerObjectsCapacity(t: Test, newUrl: NewUrl): Promise<void> {
  const capacity = { providerObjectsPerAccount: 3, providerObjects: 5 }
  const { objects, owners } = await opened(t, await newUrl(t), capacity)
  await objects.put([anObject('late', { expiresAtMs: 9_000 })], 0)
  await objects.put([anObject('soon', { expiresAtMs: 10 }), anObject('ever')], 0)
  await objects.put([anObject('new')], 0)
  t.same(await owners(['soon', 'late', 'ever', 'new']), [null, 'acc_a', 'acc_a', 'acc_a'])
  const ofB = ['b1', 'b2', 'b3'].map((id) => anObject(id, { accountId: 'acc_b' }))
  for (const object of ofB) await objects.put([object], 0)
  t.same(await owners(['late', 'ever', 'new']), ['acc_a', 'acc_a', 'acc_a'], 'none of another')
  t.same((await owners(['b1', 'b2', 'b3'])).filter(Boolean), ['acc_b', 'acc_b'])
}
