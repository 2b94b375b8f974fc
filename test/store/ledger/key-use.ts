/** The tests of every ledger for usage: sums of one key or model, of all keys, and of each key. */
import type { Test } from 'tap'
import type { Ledger } from '../../../src/store/ledger.js'
import type { KeyUseQuery, SumQuery } from '../../../src/store/usage-queries.js'
import { aRow, DAY, HOUR, NOON, type LedgerUnderTest } from './sample-entries.js'

export async function narrowed(t: Test, { ledger }: LedgerUnderTest): Promise<void> {
  const rows = [
    aRow(),
    aRow({ keyId: 'key_two', costNanoUsd: null }),
    aRow({ keyId: 'key_two', model: 'other', atMs: NOON + HOUR }),
    aRow({ accountId: 'acc_bob', keyId: 'key_bob', model: 'an other', costNanoUsd: 7 }),
    aRow({ accountId: 'acc_bob', keyId: 'key_bob', atMs: NOON + 90 * DAY }),
    aRow({ atMs: NOON - DAY }),
  ]
  await Promise.all(rows.map((row) => ledger.settle(row)))
  const day = { by: 'day', fromMs: NOON, toMs: NOON } as const
  const shown = async (query: Omit<SumQuery, 'by' | 'fromMs' | 'toMs'>) =>
    (await ledger.sums({ ...day, ...query }))
      .map(({ accountId, keyId, model, requests }) => [accountId, keyId, model, requests].join(' '))
      .sort()
  const ada = 'acc_ada'
  t.same(await shown({ accountId: ada, keyId: 'key_one' }), ['acc_ada key_one gpt-5.4-mini 1'])
  t.same(await shown({ accountId: null, keyId: 'key_bob' }), ['acc_bob key_bob an other 1'])
  t.same(await shown({ accountId: ada, keyId: 'key_' }), [], 'a prefix of a key id selects nothing')
  t.same(await shown({ accountId: ada, keyId: 'key_two', model: 'other' }), ['acc_ada key_two other 1'])
  t.same(await shown({ accountId: null, model: 'other' }), ['acc_ada key_two other 1'])
  t.same(await shown({ accountId: ada, per: 'model' }), ['acc_ada  gpt-5.4-mini 2', 'acc_ada  other 1'])
  t.same(await shown({ accountId: null, per: 'model' }), ['  an other 1', '  gpt-5.4-mini 2', '  other 1'])
  t.same(await shown({ accountId: null, per: 'model', model: 'other' }), ['  other 1'])
  const whole = (await ledger.sums({ ...day, accountId: ada, per: 'model' })).find(
    ({ model }) => model === 'gpt-5.4-mini',
  )
  const parts = await ledger.sums({ ...day, accountId: ada, model: 'gpt-5.4-mini' })
  for (const name of ['inputTokens', 'costNanoUsd', 'unpriced', 'failed'] as const) {
    const sum = parts.reduce((total, part) => total + Number(part[name]), 0)
    t.equal(whole?.[name], sum, `${name} of all keys`)
  }
  t.equal(
    whole?.firstContent.reduce((sum, count) => sum + count, 0),
    2,
  )
  const hours = await ledger.sums({
    ...day,
    by: 'hour',
    toMs: NOON + HOUR,
    accountId: ada,
    per: 'model',
  })
  t.same(
    hours.map(({ startMs, requests }) => [startMs - NOON, requests]),
    [
      [0, 2],
      [HOUR, 1],
    ],
  )
  await used(t, ledger)
}

/** The usage of the keys in `narrowed`. */
async function used(t: Test, ledger: Ledger): Promise<void> {
  const shown = async (query: Omit<KeyUseQuery, 'fromMs' | 'toMs'>, days = 0) =>
    (await ledger.keyUse({ fromMs: NOON - days * DAY, toMs: NOON + days * DAY, ...query }))
      .map((use) => [use.keyId, use.requests, use.costNanoUsd, use.unpriced].join(' '))
      .sort()
  t.same(await shown({ accountId: 'acc_ada' }), ['key_one 1 1000 0', 'key_two 2 1000 1'])
  t.same(await shown({ accountId: 'acc_ada' }, 1), ['key_one 2 2000 0', 'key_two 2 1000 1'])
  t.same(
    await shown({ accountId: 'acc_ada', most: 1 }),
    ['key_two 2 1000 1'],
    'the key with the highest cost',
  )
  t.same(await shown({ accountId: null }), ['key_bob 1 7 0', 'key_one 1 1000 0', 'key_two 2 1000 1'])
  t.same(await shown({ accountId: 'acc_bob' }, 100), ['key_bob 2 1007 0'], 'the sum of many days')
  t.same(await shown({ accountId: 'acc_ada', model: 'other' }), ['key_two 1 1000 0'])
  t.same(await shown({ accountId: 'acc_ada', keyIds: ['key_one', 'key_none', 'key_bob', ''] }), [
    'key_one 1 1000 0',
  ])
  t.same(await shown({ accountId: 'acc_ada', keyIds: [] }), [])
  t.same(await shown({ accountId: 'acc_' }), [])
  t.same(await ledger.keyUse({ accountId: null, fromMs: NOON + DAY, toMs: NOON }), [])
}
