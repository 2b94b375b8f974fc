/** The tests of every engine for the use of accounts by month. */
import type { Test } from 'tap'
import { newRequestId } from '../../../src/http/request-id.js'
import type { LedgerEntry } from '../../../src/ledger/entry.js'
import { monthOf } from '../../../src/store/limit-arithmetic.js'
import { AccountUses, useOfEntry, type AccountUse } from '../../../src/store/usage-queries.js'
import { labelGroups } from '../../../src/usage/label-groups.js'
import { sumOfTotals, type Totals } from '../../../src/usage/totals.js'
import { DAY as TODAY, IS_LONG } from '../../helpers/long-suite.js'
import { dice } from '../../helpers/seeded-random.js'
import { aRow, DAY, HOUR, NOON, type LedgerUnderTest } from './sample-entries.js'

const NOVEMBER = Date.UTC(2026, 10)
const DECEMBER = Date.UTC(2026, 11)
/** Random ranges of a store; at least two thirds of this number have sums of labels. */
const CHECKS = IS_LONG ? 12 : 6

/** Each entry counts once, under the path and labels that it has, before and after it is pruned. */
export async function usedByAccounts(t: Test, { ledger }: LedgerUnderTest): Promise<void> {
  const rows = [
    aRow({ atMs: NOVEMBER, accountPath: 'acme/ada', costNanoUsd: 3, units: 'audio_second=0.5 search=2' }),
    aRow({ atMs: NOON, accountPath: 'acme/ada', costNanoUsd: 4, labels: 'app=a', units: 'search=1' }),
    aRow({ atMs: NOON, accountPath: 'acme/ada', costNanoUsd: 5, keyId: 'kubernetes/a b\u00e9' }),
    aRow({ atMs: DECEMBER - 1, accountPath: 'other/ada', costNanoUsd: 2 ** 50 + 1 }),
    aRow({
      atMs: DECEMBER - 1,
      accountPath: 'acme',
      accountId: 'acc_bob',
      outcome: 'bug',
      status: 500,
    }),
    aRow({ atMs: DECEMBER, accountPath: 'acme/ada', costNanoUsd: null }),
    aRow({ atMs: NOVEMBER - 1, costNanoUsd: null, source: 'none', usage: {} }),
    ...Array.from({ length: 600 }, (_, at) =>
      aRow({
        atMs: NOON - DAY + at,
        accountPath: 'acme/ada',
        model: 'many',
        costNanoUsd: 7,
        ...(at % 2 === 0 ? { units: 'image=1' } : {}),
      }),
    ),
  ]
  await Promise.all(rows.map((row) => ledger.settle(row)))
  const read = async (fromMs: number, toMs: number) => {
    const byLabels = (await ledger.accountUse({ fromMs, toMs })).map(textOf).sort()
    const all = await ledger.accountUse({ fromMs, toMs, by: 'keys' })
    t.same(all.map(textOf).sort(), withoutLabels(byLabels), 'the same without labels')
    return byLabels
  }
  const months = { october: 681, november: 682, december: 683 }
  const november = [
    `${months.november} acc_ada acme/ada key_one gpt-5.4-mini app=a 1 0 100 20 4 0 0/0/1`,
    `${months.november} acc_ada acme/ada key_one gpt-5.4-mini - 1 0 100 20 3 0 0/500/2`,
    `${months.november} acc_ada acme/ada key_one many - 600 0 60000 12000 4200 0 300/0/0`,
    `${months.november} acc_ada acme/ada kubernetes/a b\u00e9 gpt-5.4-mini - 1 0 100 20 5 0 0/0/0`,
    `${months.november} acc_ada other/ada key_one gpt-5.4-mini - 1 0 100 20 ${2 ** 50 + 1} 0 0/0/0`,
    `${months.november} acc_bob acme key_one gpt-5.4-mini - 1 1 100 20 1000 0 0/0/0`,
  ].sort()
  const december = [`${months.december} acc_ada acme/ada key_one gpt-5.4-mini - 1 0 100 20 0 1 0/0/0`]
  const october = [`${months.october} acc_ada - key_one gpt-5.4-mini - 1 0 0 0 0 0 0/0/0`]
  t.same(await read(NOVEMBER, DECEMBER), november)
  t.same(await read(NOVEMBER - 1, DECEMBER + 1), [...october, ...november, ...december])
  t.same(await ledger.prunedUse(), [])
  const nothing = { hoursBeforeMs: 0, daysBeforeMs: 0 }
  for (const entriesBeforeMs of [NOON - DAY + 300, NOON + 1, DECEMBER + 1]) {
    await ledger.prune({ ...nothing, entriesBeforeMs })
    t.same(await read(NOVEMBER, DECEMBER), november, 'a closed month stays the same')
  }
  t.same(await read(NOVEMBER - 1, DECEMBER + 1), [...october, ...november, ...december])
  await ledger.settle(aRow({ atMs: NOON, accountPath: 'acme/ada', labels: 'app=a', costNanoUsd: 6 }))
  await ledger.prune({ ...nothing, entriesBeforeMs: DECEMBER })
  const late = `${months.november} acc_ada acme/ada key_one gpt-5.4-mini app=a 2 0 200 40 10 0 0/0/1`
  t.ok((await read(NOVEMBER, DECEMBER)).includes(late), 'a late entry is added')
  const pruned = await ledger.prunedUse()
  await ledger.putAccountUse(pruned.slice(0, 3))
  t.same((await ledger.prunedUse()).map(textOf).sort(), pruned.map(textOf).sort(), 'idempotent')
  await ledger.prune({ entriesBeforeMs: 0, hoursBeforeMs: 0, daysBeforeMs: DECEMBER })
  t.same(await read(NOVEMBER - 1, DECEMBER + 1), december, 'months end with the daily sums')
}

/** A month without labels, also of accounts that were moved in it, and with a part of its days removed. */
export async function usedInMonths(t: Test, { ledger }: LedgerUnderTest): Promise<void> {
  const of = (at: number) => ({ atMs: NOVEMBER + at * DAY, costNanoUsd: 1 + at * at })
  const rows = Array.from({ length: 60 }, (_, at) =>
    aRow({
      ...of(at % 30),
      ...(at % 3 === 0 ? { accountId: 'acc_bob', keyId: 'key_bob', accountPath: 'acme/bob' } : {}),
      ...(at % 3 === 1 ? { accountPath: at < 20 ? 'acme/ada' : 'other/ada' } : {}),
      ...(at % 3 === 2 ? { accountId: 'acc_eve', keyId: 'key_eve', accountPath: 'eve', model: 'other' } : {}),
      labels: `n=${at % 2}`,
    }),
  )
  await Promise.all(rows.map((row) => ledger.settle(row)))
  const checked = async (toMs: number, what: string): Promise<void> => {
    const [labelled = [], all = []] = await Promise.all(
      (['labels', 'keys'] as const).map((by) => ledger.accountUse({ fromMs: NOVEMBER, toMs, by })),
    )
    t.same(all.map(textOf).sort(), withoutLabels(labelled.map(textOf)), what)
  }
  await checked(DECEMBER, 'the month')
  await checked(NOVEMBER + 29 * DAY + 1, 'to its last entry')
  await checked(NOVEMBER + 12 * DAY, 'a part of it')
  const nothing = { entriesBeforeMs: 0, hoursBeforeMs: 0, daysBeforeMs: 0 }
  await ledger.prune({ ...nothing, entriesBeforeMs: NOVEMBER + 8 * DAY })
  await checked(DECEMBER, 'entries removed')
  await ledger.prune({ ...nothing, daysBeforeMs: NOVEMBER + 6 * DAY })
  await checked(DECEMBER, 'days removed')
  await ledger.settle(aRow({ ...of(20), accountPath: 'acme/ada' }))
  await checked(DECEMBER, 'a late entry')
}

/** The uses in such texts added up without their labels. */
function withoutLabels(texts: readonly string[]): string[] {
  const sums = new Map<string, number[]>()
  for (const text of texts) {
    const words = text.split(' ')
    const figures = words.slice(-7).flatMap((word) => word.split('/').map(Number))
    const key = [...words.slice(0, -8), '-'].join(' ')
    const known = sums.get(key) ?? figures.map(() => 0)
    sums.set(
      key,
      known.map((sum, at) => sum + (figures[at] ?? 0)),
    )
  }
  return Array.from(sums, ([key, figures]) => {
    return [key, ...figures.slice(0, 6), figures.slice(6).join('/')].join(' ')
  }).sort()
}

function textOf(use: AccountUse): string {
  const { month, accountId, accountPath, keyId, model, labels } = use
  const { requests, failed, inputTokens, outputTokens, costNanoUsd, unpriced } = use
  const units = [use.images, use.audioMs, use.searches].join('/')
  const key = [month, accountId, accountPath || '-', keyId, model, labels || '-']
  return [...key, requests, failed, inputTokens, outputTokens, costNanoUsd, unpriced, units].join(' ')
}

/** Days that ended long ago are read again if their entries changed. */
export async function usedInEndedDays(t: Test, { ledger }: LedgerUnderTest): Promise<void> {
  const [from, to] = [Date.UTC(2020, 1), Date.UTC(2020, 2)]
  const at = (day: number, ms = 0): number => from + (day - 1) * DAY + ms
  const settle = (atMs: number, costNanoUsd: number) =>
    ledger.settle(aRow({ atMs, costNanoUsd, labels: `app=${costNanoUsd % 3}` }))
  for (let day = 1; day <= 29; day += 7) {
    await Promise.all([settle(at(day), day), settle(at(day + 1) - 1, 100 * day)])
  }
  const cost = async (fromMs = from, toMs = to): Promise<number> => {
    const [uses = [], all = []] = await Promise.all(
      (['labels', 'keys'] as const).map((by) => ledger.accountUse({ fromMs, toMs, by })),
    )
    const total = uses.reduce((sum, { costNanoUsd }) => sum + Number(costNanoUsd), 0)
    t.ok(new Set(all.map(textOf)).size === all.length && all.every(({ labels }) => labels === ''))
    t.equal(
      all.reduce((sum, { costNanoUsd }) => sum + Number(costNanoUsd), 0),
      total,
      'without labels',
    )
    return total
  }
  const days = 1 + 8 + 15 + 22 + 29
  for (let reads = 0; reads < 2; reads += 1) {
    t.equal(await cost(), 101 * days)
    t.equal(await cost(at(8, 1)), 101 * (days - 1) - 8, 'from within a day')
    t.equal(await cost(from, at(9, -1)), 1 + 100 + 8, 'until within a day')
  }
  await Promise.all([settle(at(8, 5), 7), settle(at(10), 3)])
  t.equal(await cost(), 101 * days + 10, 'late entries are added')
  const nothing = { hoursBeforeMs: 0, daysBeforeMs: 0 }
  for (const entriesBeforeMs of [at(8, 3), at(16), to]) {
    await ledger.prune({ ...nothing, entriesBeforeMs })
    t.equal(await cost(), 101 * days + 10, 'removed entries stay in the month')
    // As many as were removed, or fewer.
    await settle(at(29, 7), 0)
    t.equal(await cost(), 101 * days + 10)
  }
  await Promise.all([settle(at(20), 5), ledger.prune({ ...nothing, entriesBeforeMs: 0 })])
  t.equal(await cost(), 101 * days + 15)
  await Promise.all([settle(at(22), 6), ledger.prune({ ...nothing, entriesBeforeMs: at(21) })])
  t.equal(await cost(), 101 * days + 21, 'as many are added as are removed')
}

/**
 * In any range, the use is the sum of its entries, and of the whole months of those that are pruned: read
 * from sums of hours and days, of accounts that were moved, at the edges of hours and of months, with late
 * entries and amounts above 2^53.
 */
export async function usedInAnyRange(t: Test, { ledger, clock }: LedgerUnderTest): Promise<void> {
  const chance = dice(TODAY)
  const whole = (below: number): number => Math.floor(chance() * below)
  const of = <Of>(all: readonly Of[]): Of => all[whole(all.length)] ?? (all[0] as Of)
  const [from, to] = [DECEMBER - 9 * DAY, DECEMBER + 9 * DAY]
  clock.atMs = to + 5 * HOUR
  /** Any time, often at the edge of an hour. */
  const anyTime = (): number => {
    const atMs = from + whole(to - from)
    return chance() < 0.5 ? atMs : Math.round(atMs / HOUR) * HOUR + of([-251, -1, 0, 0, 1, 250])
  }
  const anEntry = (atMs: number): LedgerEntry => {
    const [accountId, ...paths] = of([
      ['acc_ada', 'acme/ada', 'other/ada'],
      ['acc_bob', 'acme/bob'],
      ['acc_eve', ''],
    ] as const)
    const isUnpriced = chance() < 0.1
    return aRow({
      // The clock of an id may differ from that of the entry.
      requestId: newRequestId(Math.max(0, atMs + of([0, 0, -250, 249]))),
      ...{ atMs, accountId, accountPath: of(paths) || null, keyId: `key_${accountId}_${whole(3)}` },
      ...{ model: of(['one', 'two']), labels: of([null, 'app=a', 'app=b']) },
      ...(chance() < 0.1 ? { outcome: 'bug' as const, status: 500 } : {}),
      costNanoUsd: isUnpriced ? null : chance() < 0.1 ? 2 ** 52 + whole(1_000) : whole(1_000_000),
      units: chance() < 0.2 ? 'image=1 audio_second=0.5' : null,
    })
  }
  const rows = Array.from({ length: 400 }, () => anEntry(anyTime()))
  await Promise.all(rows.map((row) => ledger.settle(row)))
  let pruned: readonly AccountUse[] = []
  let fromSums = 0
  const totalsOf = (groups: readonly (Totals & { readonly keyId: string })[]): string[] => {
    const names = [...new Set(groups.map(({ keyId }) => keyId))].sort()
    return names.flatMap((name) => {
      const { requests, failed, inputTokens, costNanoUsd, unpriced, images, audioMs } = sumOfTotals(
        groups.filter(({ keyId }) => keyId === name),
      )
      const figures = [requests, failed, inputTokens, costNanoUsd, unpriced, images, audioMs]
      return requests === 0 ? [] : [`${name} ${figures.join(' ')}`]
    })
  }
  const checked = async (kept: readonly LedgerEntry[], what: string): Promise<void> => {
    for (let at = 0; at < CHECKS; at += 1) {
      const [fromMs = 0, toMs = 0] = [anyTime(), of([anyTime(), DECEMBER, to + HOUR])].sort((a, b) => a - b)
      if (fromMs === toMs) continue
      const by = of(['keys', 'accounts'] as const)
      const wanted = new AccountUses(by)
      for (const entry of kept) {
        if (entry.atMs >= fromMs && entry.atMs < toMs) wanted.add(useOfEntry(entry, monthOf(entry.atMs)))
      }
      for (const use of pruned) {
        if (use.month >= monthOf(fromMs) && use.month <= monthOf(toMs - 1)) wanted.add(use)
      }
      const found = await ledger.accountUse({ fromMs, toMs, by })
      t.strictSame(found.map(textOf).sort(), wanted.all().map(textOf).sort(), `${what}: ${fromMs} to ${toMs}`)
      const labelled = new AccountUses('labels')
      for (const entry of kept) {
        if (entry.atMs >= fromMs && entry.atMs < toMs) labelled.add(useOfEntry(entry, monthOf(entry.atMs)))
      }
      for (const use of pruned) {
        if (use.month >= monthOf(fromMs) && use.month <= monthOf(toMs - 1)) labelled.add(use)
      }
      const nowMs = of([clock.atMs, DECEMBER + 90 * 60_000])
      const groups = await labelGroups(ledger, 'label=app=', { fromMs, toMs }, nowMs)
      if (groups === null) continue
      fromSums += 1
      const ofLabels = labelled.all().map((use) => ({ ...use, keyId: use.labels || '(none)' }))
      t.strictSame(totalsOf(groups), totalsOf(ofLabels), `${what}: labels, ${fromMs} to ${toMs}`)
    }
  }
  await checked(rows, 'all')
  const more = Array.from({ length: 20 }, () => anEntry(anyTime()))
  await Promise.all(more.map((row) => ledger.settle(row)))
  await checked([...rows, ...more], 'late entries')
  // Short names have the time of the id.
  const beforeMs = from + 3 * DAY + 17 * 60_000 + 500
  await ledger.prune({ entriesBeforeMs: beforeMs, hoursBeforeMs: 0, daysBeforeMs: 0 })
  pruned = await ledger.prunedUse()
  const kept = [...rows, ...more].filter(({ atMs }) => atMs >= beforeMs)
  t.ok(pruned.length > 0 && kept.length < rows.length, 'some are pruned')
  await checked(kept, 'pruned')
  const late = anEntry(beforeMs - DAY)
  await ledger.settle(late)
  await checked([...kept, late], 'a late entry beside pruned ones')
  t.ok(fromSums > (2 * CHECKS) / 3, `${fromSums} reports by label are made of sums`)
}
