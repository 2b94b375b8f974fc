/** The tests of every engine for audit entries that are stored with a change of no account. */
import type { Test } from 'tap'
import { openStore } from '../../../src/store/open-store.js'
import { anAccount, anEntry } from './sample-records.js'

const NOW_MS = 1_000
const LATER_MS = 9_000_000_000_000

/** Ends of values, changes of records and new sign-in tokens leave their entry exactly if they are made. */
export async function auditedChanges(t: Test, newUrl: (t: Test) => string | Promise<string>): Promise<void> {
  const store = await openStore(await newUrl(t))
  t.teardown(() => store.close())
  const { dimensionValues, sealedRecords, signInTokens, auditTrail } = store
  const entry = (target: string) => [anEntry('acc_a', { action: 'x', target })]
  const targets = async () => {
    const entries = await auditTrail.page({ accountId: null, after: null, limit: 100 })
    return entries.map(({ target }) => target).sort()
  }

  const run = { accountId: 'acc_a', dimension: 'run', value: 'r-1' }
  await dimensionValues.end(run, LATER_MS, NOW_MS, entry('run'))
  await dimensionValues.end(run, LATER_MS, NOW_MS, entry('run again'))
  t.same(await targets(), ['run'], 'a value ends once')

  const record = {
    ...{ kind: 'batch' as const, id: 'batch_1', accountId: 'acc_a', keyId: 'key_a', model: 'm' },
    ...{ atMs: 1, expiresAtMs: LATER_MS, info: '{"n":1}', value: Buffer.from([0, 255]) },
  }
  t.equal(await sealedRecords.replace(record, null, entry('record')), true)
  t.equal(await sealedRecords.replace(record, '{"n":0}', entry('record of before')), false)
  t.same(Buffer.from((await sealedRecords.find('batch', 'batch_1', 1))?.value ?? []), record.value)
  t.same(await targets(), ['record', 'run'], 'a record that has changed meanwhile stays')

  const token = { kind: 'reset' as const, accountId: 'acc_a', expiresAtMs: LATER_MS, text: 'x' }
  const [former, other] = [
    { ...token, id: 'former' },
    { ...token, id: 'other' },
  ]
  for (const each of [former, other]) await signInTokens.add(each)
  const change = { auditEntries: entry('link'), replaces: [former] }
  t.equal(await signInTokens.add({ ...token, id: 'new' }, change), true)
  const left = (await signInTokens.tokensOf('reset', 'acc_a', NOW_MS)).map(({ id }) => id).sort()
  t.same(left, ['new', 'other'], 'a token replaces others')
  t.equal(await signInTokens.add({ ...token, id: 'new' }, { auditEntries: entry('again') }), false)
  t.same(await targets(), ['link', 'record', 'run'])

  for (const kind of ['session', 'login', 'access', 'device'] as const) {
    for (let at = 0; at < 100; at += 1) await signInTokens.add({ ...token, kind, id: `${kind} ${at}` })
  }
  const ended: number[] = []
  const noted = (kinds: readonly unknown[]) => {
    ended.push(kinds.length)
    return entry('ended')
  }
  const kinds = ['session', 'login', 'access'] as const
  t.equal(await signInTokens.end(kinds, 'acc_a', 'session 7', noted), 299, 'ends all of these kinds but one')
  t.equal(await signInTokens.end(kinds, 'acc_a', 'session 7', noted), 0)
  t.same(ended, [299, 0])
  t.same(await targets(), ['ended', 'ended', 'link', 'record', 'run'], 'with one entry each')
  const kept = await Promise.all(kinds.map((kind) => signInTokens.tokensOf(kind, 'acc_a', NOW_MS)))
  t.same(
    kept.flat().map(({ id }) => id),
    ['session 7'],
  )
  t.equal((await signInTokens.tokensOf('device', 'acc_a', NOW_MS)).length, 100)
}

/** A change of an account makes the link of a new member, and signs those out who have no role any more. */
export async function linksAndSessions(
  t: Test,
  newUrl: (t: Test) => string | Promise<string>,
): Promise<void> {
  const store = await openStore(await newUrl(t))
  t.teardown(() => store.close())
  const { signInTokens } = store
  const account = anAccount({ id: 'acc_a', name: 'a' })
  const session = { kind: 'session' as const, expiresAtMs: LATER_MS, text: '' }
  for (const [id, accountId] of [
    ['one', 'usr_a'],
    ['two', 'usr_b'],
  ] as const) {
    await signInTokens.add({ ...session, id, accountId })
  }
  const former = {
    kind: 'reset' as const,
    accountId: 'usr_a',
    expiresAtMs: LATER_MS,
    text: 'x',
    id: 'former',
  }
  await signInTokens.add(former)
  const link = { token: { ...former, id: 'new' }, replaces: [former] }
  const change = { accountId: account.id, nowMs: NOW_MS }
  const made = await store.transact({
    ...change,
    decide: () => ({
      write: { account, ends: [{ kinds: ['session'], accountId: 'usr_a' }], link, audit: [] },
    }),
  })
  t.equal(made.kind, 'written')
  const idsOf = async (kind: 'session' | 'reset', userId: string) =>
    (await signInTokens.tokensOf(kind, userId, NOW_MS)).map(({ id }) => id)
  t.same(await idsOf('session', 'usr_a'), [])
  t.same(await idsOf('session', 'usr_b'), ['two'])
  t.same(await idsOf('reset', 'usr_a'), ['new'])
  const other = anAccount({ id: 'acc_b', name: 'a' })
  const refused = await store.transact({
    ...{ accountId: other.id, nowMs: NOW_MS },
    decide: () => ({
      write: { account: other, link: { token: { ...former, id: 'late' }, replaces: [] }, audit: [] },
    }),
  })
  t.match(refused, { kind: 'conflict', conflict: 'name_taken' })
  t.same(await idsOf('reset', 'usr_a'), ['new'], 'a refused change leaves no link')
}
