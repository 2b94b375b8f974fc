/** The tests of every engine for denied workload identities. */
import type { Test } from 'tap'
import type { AuditEntry } from '../../../src/store/audit-trail.js'
import type { Denial } from '../../../src/store/denials.js'
import { openStore } from '../../../src/store/open-store.js'
import type { Page } from '../../../src/store/store.js'

type NewUrl = (t: Test) => string | Promise<string>

function aDenial(id: string, more: Partial<Denial> = {}): Denial {
  const own = { identity: 'ci', sub: id, jti: null, reason: 'leaked', expiresAtMs: null }
  return { ...own, id, createdAtMs: 5, ...more }
}

function anEntry(id: string): AuditEntry {
  const own = { atMs: 1, accountId: '', actor: 'test', action: 'denial.create', detail: '' }
  return { ...own, id, target: id, address: null }
}

/** Denials are found by `sub` or `jti` of their identity until they expire or are removed. */
export async function denials(t: Test, newUrl: NewUrl): Promise<void> {
  const url = await newUrl(t)
  const store = await openStore(url, { capacity: { denials: 5 } })
  t.teardown(() => store.close())
  const other = await openStore(url, { capacity: { denials: 5 } })
  t.teardown(() => other.close())
  let changes = 0
  t.teardown(other.subscribe(({ digest }) => (changes += digest === null ? 1 : 0)))
  const isDenied = (sub: string | null, jti: string | null = null, nowMs = 10, identity = 'ci') =>
    other.denials.isDenied({ identity, sub, jti }, nowMs)

  t.equal(await isDenied('a', 'b'), false, 'a new store has none')
  t.equal(await isDenied(null), false)
  t.equal(await store.denials.byId('a'), null)
  const first = aDenial('a')
  t.equal(await store.denials.create(first, [anEntry('trail-1')]), 'created')
  for (let tries = 0; tries < 100 && changes === 0; tries += 1) {
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  t.ok(changes > 0, 'other processes are notified')
  const byJti = aDenial('j', { sub: null, jti: 'a b\0c', expiresAtMs: 20, reason: '' })
  t.equal(await store.denials.create(byJti), 'created')
  t.equal(await store.denials.create(aDenial('again', { sub: 'a', expiresAtMs: 20 })), 'created')
  t.same(await other.denials.byId('a'), first)
  t.same(
    await Promise.all([
      isDenied('a'),
      isDenied('x', 'a b\0c'),
      isDenied('x', 'a b\0c', 20),
      isDenied('a', null, 10, 'other'),
      isDenied(null, 'a'),
      isDenied('a b\0c'),
      isDenied('toString'),
    ]),
    [true, true, false, false, false, false, false],
  )
  const [entry] = await other.auditTrail.page({ accountId: null, after: null, limit: 5 })
  t.match(entry, { id: 'trail-1', action: 'denial.create' }, 'the audit entry')

  t.same(await store.denials.remove('a', ({ id }) => [anEntry(`removed-${id}`)]), first)
  t.equal(await store.denials.remove('a'), null, 'only once')
  t.equal(await isDenied('a'), true, 'another denial of the same subject stays')
  t.equal((await other.auditTrail.page({ accountId: null, after: null, limit: 5 })).length, 2)
  t.equal(await isDenied('a', null, 20), false)

  for (const id of ['n1', 'n2', 'n3']) await store.denials.create(aDenial(id))
  t.equal(await store.denials.create(aDenial('n4')), 'full')
  t.equal(await isDenied('n4'), false)
  for (const order of ['oldest_first', 'newest_first'] as const) {
    const listed: string[] = []
    for (let after: string | null = null, isFirst = true; isFirst || after !== null;) {
      isFirst = false
      const page: Page<Denial> = await other.denials.list({ order, after, limit: 2 })
      listed.push(...page.items.map(({ id }) => id))
      after = page.next
    }
    const inOrder = ['j', 'again', 'n1', 'n2', 'n3']
    t.same(listed, order === 'oldest_first' ? inOrder : inOrder.reverse(), order)
  }
  t.equal(await store.denials.sweep(19), 0)
  t.equal(await store.denials.sweep(20), 2)
  t.equal(await store.denials.sweep(20), 0)
  t.equal(await store.denials.create(aDenial('n4')), 'created', 'there is room again')
}
