/** The tests of every ledger for pages of entries and their filters. */
import type { Test } from 'tap'
import type { LedgerEntry } from '../../../src/ledger/entry.js'
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
  const { accountId, keyId, model, failed, fromMs, toMs, status, upstream, modelAsked } = query
  const { cause, ingress, label, clientRequestId, outcome } = query
  const kinds = {
    provider: ['upstream_timeout'],
    limits: ['rate_limited'],
    gateway: [],
    client: [],
  }
  return (
    (ingress === undefined || row.ingress === ingress) &&
    (outcome === undefined || row.outcome === outcome) &&
    (clientRequestId === undefined || row.clientRequestId === clientRequestId) &&
    (label === undefined || (row.labels?.split(' ') ?? []).includes(label)) &&
    (cause === undefined || kinds[cause].some((kind) => kind === row.outcome)) &&
    (status === undefined || row.status === status) &&
    (upstream === undefined || row.upstream === upstream) &&
    (modelAsked === undefined || row.modelAsked === modelAsked) &&
    (accountId === null || row.accountId === accountId) &&
    (keyId === undefined || row.keyId === keyId) &&
    (model === undefined || row.model === model) &&
    (failed === undefined || (row.outcome !== 'ok') === failed) &&
    (fromMs === undefined || row.atMs >= fromMs) &&
    (toMs === undefined || row.atMs < toMs)
  )
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
