/** The tests of every ledger for pages of entries and their filters. */
import type { Test } from 'tap'
import type { LedgerEntry } from '../../../src/ledger/entry.js'
import { ENTRY_COLUMNS, type EntryColumn } from '../../../src/store/entry-order.js'
import type { Ledger } from '../../../src/store/ledger.js'
import type { EntryQuery } from '../../../src/store/usage-queries.js'
import { aRow, HOUR, NOON, type LedgerUnderTest } from './sample-entries.js'

export async function pages(t: Test, { ledger }: LedgerUnderTest): Promise<void> {
  const rows = Array.from({ length: 60 }, (_, at) =>
    aRow({ atMs: NOON + Math.floor(at / 3), accountId: at % 2 === 0 ? 'acc_ada' : 'acc_bob' }),
  )
  await Promise.all(shuffled(rows).map((row) => ledger.settle(row)))
  for (const accountId of ['acc_ada', 'acc_bob', null]) {
    const own = rows.filter((row) => accountId === null || row.accountId === accountId)
    for (const limit of [1, 7, 30, 1_000]) {
      const found = await allPages(t, ledger, { accountId, limit })
      t.same(idsOf(found).sort(), idsOf(own).sort(), `pages of ${limit} have each entry once`)
      const times = found.map(({ atMs }) => atMs)
      t.same(
        times,
        [...times].sort((a, b) => b - a),
        'newest first',
      )
    }
  }
  t.same(await allPages(t, ledger, { accountId: 'acc_none', limit: 5 }), [])
  t.same(
    await allPages(t, ledger, { accountId: 'acc_', limit: 5 }),
    [],
    'a prefix of an account id selects nothing',
  )

  const first = await ledger.entries({ accountId: 'acc_ada', after: null, limit: 10 })
  await ledger.settle(aRow({ atMs: NOON + HOUR }))
  const second = await ledger.entries({ accountId: 'acc_ada', after: first.next, limit: 10 })
  t.same(
    idsOf([...first.entries, ...second.entries]).filter((id, at, all) => all.indexOf(id) !== at),
    [],
    'entries that arrive between two pages repeat none',
  )
  const theirs = await ledger.entries({ accountId: 'acc_bob', after: first.next, limit: 1_000 })
  t.ok(
    theirs.entries.every(({ accountId }) => accountId === 'acc_bob'),
    "a page's cursor selects no entries of other accounts",
  )
  for (const after of ['', 'x', '\0', '999999999999999999999', 'req_none', '{}', 'ü'.repeat(500)]) {
    const page = await ledger.entries({ accountId: 'acc_bob', after, limit: 1_000 })
    t.ok(
      page.entries.every(({ accountId }) => accountId === 'acc_bob'),
      'an invalid cursor selects nothing',
    )
  }
}

export async function bounded(t: Test, { ledger }: LedgerUnderTest): Promise<void> {
  const rows = Array.from({ length: 48 }, (_, at) =>
    aRow({
      atMs: NOON + at * 1_000,
      keyId: at % 3 === 0 ? 'key_three' : 'key_one',
      model: at % 4 === 0 ? 'other' : 'gpt-5.4-mini',
      outcome: at % 5 === 0 ? 'upstream_timeout' : 'ok',
      status: at % 5 === 0 ? 504 : 200,
      upstream: at % 7 === 0 ? 'anthropic' : 'openai',
      modelAsked: at % 6 === 0 ? 'fast' : 'gpt-5.4-mini',
      accountId: at % 2 === 0 ? 'acc_ada' : 'acc_bob',
      ingress: at % 3 === 0 ? 'messages' : 'chat',
      labels: at % 4 === 0 ? 'env=ci team=research' : at % 4 === 1 ? 'team=res' : null,
      clientRequestId: at % 8 === 0 ? `mine-${at}` : null,
      accountPath: at % 3 === 0 ? 'top/team/web' : null,
      ...(at % 15 === 1 ? { outcome: 'rate_limited', status: 429 } : {}),
    }),
  )
  await Promise.all(rows.map((row) => ledger.settle(row)))
  const queries: Omit<EntryQuery, 'after' | 'limit'>[] = [
    { accountId: null, keyId: 'key_three' },
    { accountId: 'acc_ada', keyId: 'key_three' },
    { accountId: null, model: 'other' },
    { accountId: null, failed: true },
    { accountId: 'acc_bob', failed: false },
    { accountId: null, fromMs: NOON + 5_000 },
    { accountId: 'acc_ada', toMs: NOON + 6_000 },
    { accountId: 'acc_bob', fromMs: NOON + 5_000, toMs: NOON + 6_000 },
    { accountId: null, fromMs: NOON + 6_000, toMs: NOON + 6_000 },
    { accountId: null, keyId: 'key_three', model: 'other', failed: true, fromMs: NOON + 1_000 },
    { accountId: null, keyId: 'key_' },
    { accountId: null, status: 504 },
    { accountId: 'acc_ada', status: 200, upstream: 'anthropic' },
    { accountId: null, upstream: 'anthropic', failed: true },
    { accountId: 'acc_bob', modelAsked: 'gpt-5.4-mini', keyId: 'key_three' },
    { accountId: null, modelAsked: 'fas' },
    { accountId: null, ingress: 'messages' },
    { accountId: 'acc_ada', ingress: 'messages', failed: true },
    { accountId: null, label: 'team=research' },
    { accountId: null, label: 'team=res' },
    { accountId: null, label: '%' },
    { accountId: null, clientRequestId: 'mine-8' },
    { accountId: 'acc_bob', clientRequestId: 'mine-8' },
    { accountId: null, outcome: 'ok' },
    { accountId: null, outcome: 'upstream_timeout' },
    { accountId: null, cause: 'limits' },
    { accountId: 'acc_bob', cause: 'provider' },
    { accountId: null, cause: 'gateway' },
    { accountId: null, model: ['other', 'gpt-none'], status: [504, 429] },
    { accountId: null, keyId: ['key_three', 'key_none'], upstream: ['anthropic', 'openai'] },
    { accountId: 'acc_bob', keyId: ['key_three', 'key_one'], outcome: ['ok', 'rate_limited'] },
    { accountId: null, cause: ['limits', 'provider'], ingress: ['chat'] },
    { accountId: null, label: ['team=res', 'env=ci'], modelAsked: ['fast'] },
    { accountId: null, keyId: [] },
    { accountId: null, within: { accountId: 'acc_ada', name: 'ada' } },
    { accountId: null, within: { accountId: 'acc_none', name: 'top' } },
    { accountId: null, within: { accountId: 'acc_none', name: 'top', sinceMs: NOON + 5_000 } },
    { accountId: null, within: { accountId: 'acc_none', name: 'web' } },
    { accountId: null, within: { accountId: 'acc_none', name: 'to' } },
  ]
  for (const query of queries) {
    const wanted = rows.filter((row) => matches(row, query))
    for (const limit of [2, 100]) {
      const found = await allPages(t, ledger, { ...query, limit })
      t.same(idsOf(found), idsOf(wanted).reverse(), JSON.stringify(query))
    }
  }
}

/** Reads all pages. Some may be short, none exceeds the limit. */
export async function allPages(
  t: Test,
  ledger: Ledger,
  query: Omit<EntryQuery, 'after'>,
): Promise<LedgerEntry[]> {
  const rows: LedgerEntry[] = []
  let after: string | null = null
  for (let page = 0; page < 500; page += 1) {
    const found = await ledger.entries({ ...query, after })
    if (found.entries.length > query.limit) t.fail('a page longer than asked')
    rows.push(...found.entries)
    if (found.next === null) return rows
    after = found.next
  }
  throw new Error('the pages have no end')
}

function matches(row: LedgerEntry, query: Omit<EntryQuery, 'after' | 'limit'>): boolean {
  const { accountId, failed, fromMs, toMs, cause, label, within } = query
  const same = [
    ...['keyId', 'model', 'status', 'upstream', 'modelAsked', 'ingress', 'outcome'],
    'clientRequestId',
  ] as const as readonly (keyof LedgerEntry & keyof typeof query)[]
  const kinds = {
    provider: ['upstream_timeout'],
    limits: ['rate_limited'],
    gateway: [],
    client: [],
  }
  const labels = row.labels?.split(' ') ?? []
  return (
    same.every((name) => query[name] === undefined || [query[name]].flat().includes(row[name])) &&
    (label === undefined || [label].flat().some((each) => labels.includes(each))) &&
    (cause === undefined ||
      [cause].flat().some((each) => kinds[each].some((kind) => kind === row.outcome))) &&
    (accountId === null || row.accountId === accountId) &&
    (failed === undefined || (row.outcome !== 'ok') === failed) &&
    (fromMs === undefined || row.atMs >= fromMs) &&
    (toMs === undefined || row.atMs < toMs) &&
    (within === undefined ||
      row.accountId === within.accountId ||
      (row.atMs >= (within.sinceMs ?? 0) &&
        // The last name is that of the entry's own account, which has another id.
        (row.accountPath ?? '').split('/').slice(0, -1).includes(within.name)))
  )
}

/** The value of each column, null for unknown. */
const VALUES: Readonly<Record<EntryColumn, (row: LedgerEntry) => string | number | null>> = {
  atMs: ({ atMs }) => atMs,
  status: ({ status }) => status,
  model: ({ model, modelAsked }) => (model === 'other' ? modelAsked : model),
  // There is no record of them: their ids are their names.
  account: ({ accountId }) => accountId,
  upstream: ({ upstream }) => upstream,
  key: ({ keyId }) => keyId,
  tokens: ({ usage: { input, output } }) =>
    input === undefined && output === undefined ? null : (input ?? 0) + (output ?? 0),
  costNanoUsd: ({ costNanoUsd }) => costNanoUsd,
  firstTokenMs: ({ hops }) => hops.firstContent ?? null,
  durationMs: ({ durationMs }) => durationMs,
}

/** Every column in both directions, over several pages, with filters and ranges. */
export async function sorted(t: Test, { ledger }: LedgerUnderTest): Promise<void> {
  const rows = Array.from({ length: 60 }, (_, at) =>
    aRow({
      // Three requests in each millisecond.
      atMs: NOON + Math.floor(at / 3),
      accountId: ['acc_ada', 'acc_bob', 'acc_cy'][at % 3] ?? '',
      keyId: `key_${at % 7}`,
      status: at % 5 === 0 ? 504 : 200,
      outcome: at % 5 === 0 ? 'upstream_timeout' : 'ok',
      model: at % 4 === 0 ? 'other' : `gpt-${at % 3}`,
      modelAsked: at % 8 === 0 ? 'zeta' : 'alpha',
      upstream: at % 6 === 0 ? null : (['openai', 'anthropic'][at % 2] ?? null),
      usage: at % 9 === 0 ? {} : { input: at % 11, ...(at % 2 === 0 ? { output: at % 3 } : {}) },
      costNanoUsd: at % 10 === 0 ? null : (at * 7) % 13,
      durationMs: ((at * 31) % 17) + 0.125,
      hops: at % 4 === 1 ? {} : { firstContent: ((at * 5) % 23) + 0.5 },
    }),
  )
  await Promise.all(shuffled(rows).map((row) => ledger.settle(row)))
  const queries: Omit<EntryQuery, 'after' | 'limit'>[] = [
    { accountId: null },
    { accountId: 'acc_bob' },
    { accountId: null, failed: true, fromMs: NOON + 2, toMs: NOON + 17 },
    { accountId: 'acc_ada', keyId: 'key_3' },
    { accountId: null, keyId: ['key_1', 'key_2', 'key_none'], model: ['gpt-1', 'other'] },
    { accountId: null, upstream: 'nothing' },
  ]
  for (const column of ENTRY_COLUMNS) {
    for (const isDescending of [true, false]) {
      for (const [at, query] of queries.entries()) {
        const wanted = rows.filter((row) => matches(row, query)).sort(by(column, isDescending))
        const order = { column, isDescending }
        // Pages end within requests of the same value.
        const found = await allPages(t, ledger, { ...query, order, limit: at === 0 ? 13 : 100 })
        t.same(idsOf(found), idsOf(wanted), `${column} ${isDescending} ${JSON.stringify(query)}`)
      }
    }
  }
  const order = { column: 'costNanoUsd', isDescending: true } as const
  for (const after of ['', 'x', '{}', '[1,2]', '[{},1,"x"]']) {
    t.same(await ledger.entries({ accountId: null, order, after, limit: 5 }), NO_PAGE, after)
  }
}

const NO_PAGE = { entries: [], next: null }

/** Null is last; the same values are newest first, which is the order of time reversed if it ascends. */
function by(column: EntryColumn, isDescending: boolean) {
  const sign = isDescending ? -1 : 1
  const timeSign = column === 'atMs' ? sign : -1
  return (a: LedgerEntry, b: LedgerEntry): number => {
    const [one, other] = [VALUES[column](a), VALUES[column](b)]
    if (one !== other) {
      if (one === null || other === null) return one === null ? 1 : -1
      return one < other ? -sign : sign
    }
    if (a.atMs !== b.atMs) return a.atMs < b.atMs ? -timeSign : timeSign
    return a.requestId < b.requestId ? -timeSign : timeSign
  }
}

/** The ids of entries, in their order. */
export function idsOf(rows: readonly LedgerEntry[]): string[] {
  return rows.map(({ requestId }) => requestId)
}

/** A fixed order: a step that shares no factor with the length visits every item. */
export function shuffled<T>(items: readonly T[]): T[] {
  const step = 89
  return items.flatMap((_, at) => {
    const item = items[(at * step) % items.length]
    return item === undefined ? [] : [item]
  })
}
