/** The tests of every engine for encrypted records of requests. */
import type { Test } from 'tap'
import { openStore } from '../../../src/store/open-store.js'
import type { SealedRecord } from '../../../src/store/sealed-records.js'

function aRecord(id: string, more: Partial<SealedRecord> = {}): SealedRecord {
  return {
    kind: 'reply',
    id,
    accountId: 'acc_a',
    keyId: 'key_a',
    model: 'm',
    atMs: 100,
    expiresAtMs: 1_000,
    info: '{"upstream":"openai"}',
    value: Buffer.from(`value of ${id} \u0000\u00ff`, 'latin1'),
    ...more,
  }
}

const ROOM = 1_000_000

/** Records are replaced, found, listed, removed by their owners, and expire. */
export async function sealedRecords(t: Test, newUrl: (t: Test) => string | Promise<string>): Promise<void> {
  const url = await newUrl(t)
  const [one, two] = [await openStore(url), await openStore(url)]
  t.teardown(() => Promise.all([one.close(), two.close()]))
  const { sealedRecords: records } = one
  const others = two.sealedRecords
  const ids = async (filter = {}, nowMs = 0) =>
    (await others.list('reply', filter, nowMs)).map(({ id }) => id)
  t.equal(await records.find('reply', 'a', 0), null, 'a new store has none')
  t.same(await ids(), [])
  await records.put(aRecord('a'), ROOM, 0)
  const found = await others.find('reply', 'a', 999)
  t.same(Buffer.from(found?.value ?? []), aRecord('a').value, 'any process finds it at once')
  t.match(found, {
    accountId: 'acc_a',
    keyId: 'key_a',
    model: 'm',
    atMs: 100,
    info: aRecord('a').info,
  })
  t.equal(await others.find('reply', 'a', 1_000), null, 'it has expired')
  t.equal(await others.find('recording', 'a', 0), null, 'kinds are separate')
  await records.put(aRecord('a', { value: Buffer.from('new'), atMs: 50 }), ROOM, 0)
  t.equal(Buffer.from((await others.find('reply', 'a', 0))?.value ?? []).toString(), 'new')
  const changed = aRecord('a', { info: '{"n":2}', value: Buffer.from('next'), atMs: 50 })
  t.equal(await records.replace(changed, '{}'), false, 'another one has changed it')
  t.equal(await others.replace(changed, aRecord('a').info), true)
  t.equal(await records.replace(changed, aRecord('a').info), false, 'only one of two changes takes effect')
  t.equal((await records.find('reply', 'a', 0))?.info, '{"n":2}')
  t.equal(await records.replace(aRecord('x'), aRecord('x').info), false, 'there is none')
  t.equal(await records.replace(aRecord('x'), null), true)
  t.equal(await others.replace(aRecord('x'), null), false, 'only one of two is added')
  const entry = { id: 'aud-x', atMs: 5, accountId: 'acc_a', actor: 'ada', action: 'recording.delete' }
  const entries = [{ ...entry, target: 'x', detail: '', address: null }]
  t.equal(await records.take('reply', 'y', entries), false, 'there is none')
  const trailOf = () => two.auditTrail.page({ accountId: 'acc_a', after: null, limit: 9 })
  t.same(await trailOf(), [], 'and no entry then')
  t.equal(await others.take('reply', 'x', entries), true, 'it is removed')
  t.equal(await records.take('reply', 'x', entries), false, 'once')
  t.match(await trailOf(), [{ id: 'aud-x', target: 'x' }], 'with its entry')
  t.equal(await records.replace(aRecord('x'), null), true)
  t.equal(await records.remove('reply', { id: 'x' }), 1)
  await records.put(aRecord('a', { value: Buffer.from('new'), atMs: 50 }), ROOM, 0)
  await records.put(aRecord('b', { atMs: 200, keyId: 'key_b' }), ROOM, 0)
  await records.put(aRecord('c', { atMs: 300, accountId: 'acc_b', model: 'n' }), ROOM, 0)
  await records.put(aRecord('c', { kind: 'recording' }), ROOM, 0)
  t.same(await ids(), ['c', 'b', 'a'], 'newest first')
  t.same(await ids({ accountId: 'acc_a' }), ['b', 'a'])
  t.same(await ids({ sinceMs: 200 }), ['c', 'b'])
  t.same(await ids({ model: 'n' }), ['c'])
  t.same(await ids({}, 1_000), [], 'expired ones are not listed')
  t.equal((await others.list('reply', { id: 'a' }, 0))[0]?.bytes, 3)
  t.equal(await others.remove('reply', { keyId: 'key_b' }), 1)
  t.equal(await others.remove('reply', { id: 'x' }), 0)
  t.equal(await others.remove('reply', { accountId: 'acc_b', model: 'm' }), 0)
  t.equal(await others.remove('reply', {}), 2)
  t.same(await ids(), [])
  t.equal((await others.list('recording', {}, 0)).length, 1)
  for (let at = 0; at < 300; at += 1) {
    await records.put(aRecord(`many-${at}`, { expiresAtMs: 1_000 + at }), ROOM, 0)
  }
  t.equal(await records.sweep(1_099), 101, 'of all kinds')
  t.equal(await records.remove('reply', { accountId: 'acc_a' }), 200)
  const large = Buffer.alloc(400)
  for (const id of ['1', '2', '3']) {
    await records.put(aRecord(id, { value: large, expiresAtMs: 5_000 - Number(id) }), 1_000, 0)
  }
  t.same((await ids()).sort(), ['1', '2'], 'the first to expire is removed for others')
}
