/** The tests of every engine for sums by property, and for the totals of groups. */
import type { Test } from 'tap'
import type { Ledger } from '../../../src/store/ledger.js'
import type { LedgerEntry } from '../../../src/ledger/entry.js'
import { unitFiguresIn } from '../../../src/base/unit-counts.js'
import { addUse } from '../../../src/store/records/count-usage.js'
import type { GroupUse, GroupUseQuery, SumQuery, UsageSum } from '../../../src/store/usage-queries.js'
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
    t.same(await shown({ by: 'hour', toMs: NOON + HOUR, property: 'shadow' }), [' *shadow=openai other 1 9'])
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
        const figures = [use.requests, use.failed, use.inputTokens, use.outputTokens]
        return [use.accountId, use.keyId, ...figures, use.costNanoUsd, use.unpriced].join(' ')
      })
      .sort()
  const bobs = 'acc_bob key_bob 3 0 300 60 20 1'
  const ones = `acc_ada key_one 3 1 300 60 ${2 ** 50 + 4} 0`
  t.same(await used({ by: 'key' }), [ones, bobs])
  t.same(await used({ by: 'key', accountId: 'acc_bob' }), [bobs])
  t.same(await used({ by: 'key', keyId: 'key_bob', model: 'other' }), ['acc_bob key_bob 1 0 100 20 9 0'])
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

/** Near spans of ended days, and changes of such days: all as added up from entries. */
export async function groupedInEndedDays(t: Test, { ledger }: LedgerUnderTest): Promise<void> {
  const [first, days] = [MIDNIGHT - 40 * DAY, 38]
  const rows = Array.from({ length: 3 * days }, (_, at) =>
    aRow({
      ...{ atMs: first + (at % days) * DAY + at * 1_000, costNanoUsd: 1 + at * at },
      ...(at % 5 === 0 ? { outcome: 'bug', status: 500, costNanoUsd: null } : {}),
      ...(at % 4 === 0 ? { units: `audio_second=${at}.5 image=${at}` } : {}),
      ...(at % 2 === 0 ? { keyId: 'key_even' } : { accountId: 'acc_bob', keyId: 'key_odd' }),
      model: at % 3 === 0 ? 'third' : 'other',
    } as const),
  )
  // A key of one day, which leaves the span.
  rows.push(aRow({ keyId: 'key_first', atMs: first }))
  await Promise.all(rows.map((row) => ledger.settle(row)))
  const nothing = { entriesBeforeMs: 0, hoursBeforeMs: 0, daysBeforeMs: 0 }
  await ledger.prune({ ...nothing, hoursBeforeMs: first + days * DAY })
  const spans = ['0 30', '1 31', '30 38', '0 1', '0 100', '4 30'].map((text) => text.split(' '))
  const selections: Pick<GroupUseQuery, 'by' | 'accountId' | 'model'>[] = [
    { by: 'key', accountId: null },
    { by: 'key', accountId: null, model: 'third' },
    { by: 'key', accountId: 'acc_bob' },
    { by: 'account', accountId: null },
  ]
  const checked = async (what: string): Promise<void> => {
    for (const [from, to] of spans) {
      const span = { fromMs: first + Number(from) * DAY, toMs: first + Number(to) * DAY }
      for (const selection of selections) {
        const query = { ...span, ...selection }
        const wanted = usedBy(rows, query)
        const name = `${what}: ${JSON.stringify(selection)}, days ${from} to ${to}`
        t.same((await ledger.groupUse(query)).map(figuresOf).sort(), wanted, name)
      }
    }
  }
  await checked('ended')
  rows.push(aRow({ atMs: first + 3 * DAY, keyId: 'key_late' }), aRow({ atMs: first + 20 * DAY }))
  await Promise.all(rows.slice(-2).map((row) => ledger.settle(row)))
  await checked('late')
  await ledger.prune({ ...nothing, entriesBeforeMs: first + 9 * DAY })
  await checked('entries removed')
  await ledger.prune({ ...nothing, daysBeforeMs: first + 4 * DAY })
  rows.splice(0, rows.length, ...rows.filter(({ atMs }) => atMs >= first + 4 * DAY))
  await checked('days removed')
}

function figuresOf(use: GroupUse): string {
  const { keyId, requests, failed, outputTokens, costNanoUsd, unpriced, images, audioMs } = use
  return [keyId, requests, failed, outputTokens, costNanoUsd, unpriced, images, audioMs].join(' ')
}

/** The same of entries, by key or account. */
function usedBy(
  rows: readonly LedgerEntry[],
  { by, accountId, model, fromMs, toMs }: GroupUseQuery,
): string[] {
  const uses = new Map<string, GroupUse>()
  for (const row of rows) {
    if (row.atMs < fromMs || row.atMs >= toMs) continue
    if (accountId !== null && row.accountId !== accountId) continue
    if (model !== undefined && row.model !== model) continue
    const { outcome, usage, costNanoUsd } = row
    addUse(uses, {
      ...{ accountId: '', keyId: by === 'key' ? row.keyId : `${row.accountId} `, requests: 1 },
      ...{ failed: outcome === 'ok' ? 0 : 1, inputTokens: usage.input ?? 0 },
      ...{ outputTokens: usage.output ?? 0, costNanoUsd: costNanoUsd ?? 0 },
      unpriced: costNanoUsd === null ? 1 : 0,
      ...unitFiguresIn(row.units),
    })
  }
  return [...uses.values()].map(figuresOf).sort()
}

function textOf({ accountId, keyId, model, requests, costNanoUsd }: UsageSum): string {
  return [accountId, keyId, model, requests, costNanoUsd].join(' ')
}
