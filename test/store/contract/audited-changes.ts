/** The tests of every engine for audit entries that are stored with a change of no account. */
import type { Test } from 'tap'
import { openStore } from '../../../src/store/open-store.js'
import { anEntry } from './sample-records.js'

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
}
