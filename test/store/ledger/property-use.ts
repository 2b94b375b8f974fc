/** The tests of every engine for sums by property, and for the totals of groups. */
import type { Test } from 'tap'
import type { Ledger } from '../../../src/store/ledger.js'
import type { GroupUseQuery, SumQuery, UsageSum } from '../../../src/store/usage-queries.js'
import { aRow, DAY, HOUR, NOON, type LedgerUnderTest } from './sample-entries.js'

const MIDNIGHT = NOON - 12 * HOUR

/** Each entry counts once for each of its properties, also after it is pruned, exactly. */
export async function summedByProperty(t: Test, { ledger }: LedgerUnderTest): Promise<void> {
  const bob = { accountId: 'acc_bob', keyId: 'key_bob', accountPath: 'acme/bob' } as const
  const rows = [
    aRow({ accountPath: 'acme/ada', ingress: 'chat', labels: 'app=a team=web', costNanoUsd: 3 }),
    aRow({ accountPath: 'ada', ingress: 'messages', labels: 'team=w', costNanoUsd: 2 ** 50 + 1 }),
    aRow({ upstream: null, outcome: 'not_found', status: 404, costNanoUsd: 0, source: 'none' }),
    aRow({ ...bob, upstream: 'anthropic', labels: 'team=web', costNanoUsd: null }),
    aRow({ ...bob, model: 'other', shadowOf: 'req_x', costNanoUsd: 9, atMs: NOON + HOUR }),
    aRow({ ...bob, ingress: 'chat', costNanoUsd: 11, atMs: NOON + 2 * DAY }),
  ]
  await Promise.all(rows.map((row) => ledger.settle(row)))
  const day = { by: 'day', fromMs: NOON, toMs: NOON } as const
  const shown = async (query: Partial<SumQuery>): Promise<string[]> =>
    (await ledger.sums({ ...day, accountId: null, ...query })).map(textOf).sort()
  const checked = async (): Promise<void> => {
    t.same(await shown({ property: 'upstream' }), [
      ' *upstream=anthropic gpt-5.4-mini 1 0',
      ` *upstream=openai gpt-5.4-mini 2 ${2 ** 50 + 4}`,
      ' *upstream=openai other 1 9',
    ])
    t.same(await shown({ property: 'upstream=openai', accountId: 'acc_bob' }), [
      'acc_bob *upstream=openai other 1 9',
    ])
    t.same(await shown({ property: 'upstream', accountId: 'acc_bob', model: 'gpt-5.4-mini' }), [
      'acc_bob *upstream=anthropic gpt-5.4-mini 1 0',
    ])
    t.same(await shown({ property: 'label=team=web' }), [' *label=team=web gpt-5.4-mini 2 3'])
    t.same(await shown({ property: 'label=team=' }), [
      ` *label=team=w gpt-5.4-mini 1 ${2 ** 50 + 1}`,
      ' *label=team=web gpt-5.4-mini 2 3',
    ])
    t.same(await shown({ property: 'shadow' }), [' *shadow=openai other 1 9'])
    t.same(await shown({ property: 'format' }), [
      ' *format=chat gpt-5.4-mini 1 3',
      ` *format=messages gpt-5.4-mini 1 ${2 ** 50 + 1}`,
    ])
    const ofAda = [
      'acc_ada *account=acc_ada  gpt-5.4-mini 1 0',
      'acc_ada *account=acc_ada acme/ada gpt-5.4-mini 1 3',
      `acc_ada *account=acc_ada ada gpt-5.4-mini 1 ${2 ** 50 + 1}`,
    ]
    t.same(await shown({ property: 'account', accountId: 'acc_ada' }), ofAda)
    t.same(await shown({ property: 'account' }), [
      ...ofAda,
      'acc_bob *account=acc_bob acme/bob gpt-5.4-mini 1 0',
      'acc_bob *account=acc_bob acme/bob other 1 9',
    ])
    const accounts = ['acc_ada ', 'acc_ada ada', 'acc_bob acme/bob', 'acc_none x']
    for (const by of ['hour', 'day'] as const) {
      t.same(await shown({ by, accounts, toMs: NOON + HOUR }), [
        `  gpt-5.4-mini 3 ${2 ** 50 + 1}`,
        '  other 1 9',
      ])
    }
    const offsets = [{ fromMs: 0, offsetMs: 12 * HOUR }]
    const local = await ledger.sums({
      ...{ accountId: null, by: 'day', fromMs: NOON - HOUR, toMs: NOON + 2 * DAY },
      ...{ property: 'upstream=openai', model: 'gpt-5.4-mini', offsets },
    })
    t.same(
      local.map(({ startMs, requests }) => [startMs, requests]),
      [
        [NOON + 12 * HOUR, 2],
        [NOON + 12 * HOUR + 2 * DAY, 1],
      ],
      'days of another zone',
    )
    t.same(await shown({ by: 'hour', toMs: NOON + HOUR, property: 'shadow' }), [
      ' *shadow=openai other 1 9',
    ])
    t.equal((await shown({})).length, 3, 'sums of keys have none of them')
    t.same(await shown({ per: 'model' }), [`  gpt-5.4-mini 4 ${2 ** 50 + 4}`, '  other 1 9'])
  }
  await checked()
  await groups(t, { ledger })
  await ledger.prune({ entriesBeforeMs: NOON + DAY, hoursBeforeMs: 0, daysBeforeMs: 0 })
  await checked()
  await ofLaterEntries(t, ledger)
}

/** Uses that are in memory are those of the entries so far, also for entries of days that have ended. */
async function ofLaterEntries(t: Test, ledger: Ledger): Promise<void> {
  const nowMs = Date.now()
  const used = async (by: GroupUseQuery['by']): Promise<number[]> => {
    const span = { fromMs: NOON - HOUR, toMs: nowMs }
    const [all, own] = await Promise.all(
      [null, 'acc_bob'].map((accountId) => ledger.groupUse({ ...span, accountId, by })),
    )
    return [all, own].map((uses = []) => uses.reduce((sum, { requests }) => sum + requests, 0))
  }
  for (const by of ['key', 'model', 'account'] as const) t.same(await used(by), [6, 3], by)
  const bob = { accountId: 'acc_bob', keyId: 'key_bob' }
  await ledger.settle(aRow({ ...bob, atMs: NOON }))
  for (const by of ['key', 'model', 'account'] as const) t.same(await used(by), [7, 4], by)
  await ledger.settle(aRow({ ...bob, atMs: nowMs - 1 }))
  for (const by of ['key', 'model', 'account'] as const) t.same(await used(by), [8, 5], by)
}

async function groups(t: Test, { ledger }: Pick<LedgerUnderTest, 'ledger'>): Promise<void> {
  const used = async (query: Partial<GroupUseQuery> & Pick<GroupUseQuery, 'by'>) =>
    (
      await ledger.groupUse({
        ...{ accountId: null, fromMs: NOON, toMs: NOON + 2 * DAY + HOUR },
        ...query,
      })
    )
      .map((use) => {
        const figures = [use.requests, use.errors, use.inputTokens, use.outputTokens]
        return [use.accountId, use.keyId, ...figures, use.costNanoUsd, use.unpriced].join(' ')
      })
      .sort()
  const bobs = 'acc_bob key_bob 3 0 300 60 20 1'
  const ones = `acc_ada key_one 3 1 300 60 ${2 ** 50 + 4} 0`
  t.same(await used({ by: 'key' }), [ones, bobs])
  t.same(await used({ by: 'key', accountId: 'acc_bob' }), [bobs])
  t.same(await used({ by: 'key', keyId: 'key_bob', model: 'other' }), [
    'acc_bob key_bob 1 0 100 20 9 0',
  ])
  t.same(await used({ by: 'model' }), [
    ` gpt-5.4-mini 5 1 500 100 ${2 ** 50 + 15} 1`,
    ' other 1 0 100 20 9 0',
  ])
  t.same(await used({ by: 'model', keyId: 'key_bob' }), [
    ' gpt-5.4-mini 2 0 200 40 11 1',
    ' other 1 0 100 20 9 0',
  ])
  t.same(await used({ by: 'label=team=' }), [
    ` team=w 1 0 100 20 ${2 ** 50 + 1} 0`,
    ' team=web 2 0 200 40 3 1',
  ])
  t.same(await used({ by: 'upstream', accountId: 'acc_bob' }), [
    ' anthropic 1 0 100 20 0 1',
    ' openai 2 0 200 40 20 0',
  ])
  t.same(await used({ by: 'upstream', fromMs: NOON + HOUR, toMs: NOON + 2 * HOUR }), [
    ' openai 1 0 100 20 9 0',
  ])
  t.same(await used({ by: 'account', accountId: 'acc_bob' }), [' acc_bob acme/bob 3 0 300 60 20 1'])
  const before = await used({ by: 'key', fromMs: MIDNIGHT, toMs: NOON })
  t.same(before, [], 'hours before the first entry')
  const whole = { fromMs: MIDNIGHT - HOUR, toMs: MIDNIGHT + 3 * DAY } as const
  t.same(await used({ by: 'key', ...whole }), [ones, bobs], 'hours, then whole days')
  t.same(await used({ by: 'key', fromMs: NOON + HOUR }), ['acc_bob key_bob 2 0 200 40 20 0'])
}

function textOf({ accountId, keyId, model, requests, costNanoUsd }: UsageSum): string {
  return [accountId, keyId, model, requests, costNanoUsd].join(' ')
}
