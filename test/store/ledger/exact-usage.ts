/** The tests of every engine for cells, and for the usage of ranges that begin and end within an hour. */
import type { Test } from 'tap'
import type { LedgerEntry } from '../../../src/ledger/entry.js'
import { addedUp, addToSum, newSum, sumFromCounters } from '../../../src/store/records/count-usage.js'
import type { GroupUse, UsageSum } from '../../../src/store/usage-queries.js'
import { ExactUsage } from '../../../src/usage/exact-usage.js'
import { rangeOf, type AskedRange } from '../../../src/usage/ranges.js'
import { aRow, DAY, HOUR, MINUTE, NOON, type LedgerUnderTest } from './sample-entries.js'

/** Past noon by a time that is no whole second. */
const NOW = NOON + 23 * MINUTE + 17_345
const KEPT = { entriesMs: NOW - 40 * DAY, hoursMs: NOW - 60 * DAY }
const OUTCOMES = ['ok', 'ok', 'ok', 'upstream_failed', 'rate_limited'] as const

function entries(): LedgerEntry[] {
  const around = [15 * MINUTE, HOUR, 6 * HOUR, DAY, 7 * DAY, 30 * DAY]
  const edges = around.flatMap((span) => [-1, 0, 1, 1_000, 40 * MINUTE].map((ms) => NOW - span + ms))
  const spread = Array.from({ length: 150 }, (_, at) => NOW - 1 - ((at * 7_919 * MINUTE) % (32 * DAY)))
  return [...edges, ...spread]
    .filter((atMs) => atMs < NOW)
    .map((atMs, at) =>
      aRow({
        atMs,
        ...(at % 3 === 0 ? { accountId: 'acc_bob', keyId: 'key_bob', accountPath: 'acme/bob' } : {}),
        ...(at % 4 === 0 ? { upstream: 'anthropic', ingress: 'messages', labels: 'app=a team=web' } : {}),
        ...(at % 5 === 0 ? { model: 'other', shadowOf: 'req_x', labels: 'team=web' } : {}),
        ...{ costNanoUsd: at % 7 === 0 ? null : 2 ** 40 + at * at },
        outcome: OUTCOMES[at % OUTCOMES.length] ?? 'ok',
      }),
    )
}

const SELECTIONS = [
  { accountId: null, per: 'model' },
  { accountId: null },
  { accountId: 'acc_bob' },
  { accountId: 'acc_ada', keyId: 'key_one', model: 'other' },
  { accountId: null, property: 'upstream' },
  { accountId: null, property: 'label=team=web' },
  { accountId: 'acc_bob', property: 'format' },
  { accountId: null, accounts: ['acc_bob acme/bob'] },
] as const
const GROUPS = ['key', 'model', 'upstream', 'format', 'label', 'label=team=', 'shadow', 'account'] as const

/** The entries of a range, and no other, are in its sums and groups, whole and by each unit. */
export async function exactRanges(t: Test, { ledger, clock }: LedgerUnderTest): Promise<void> {
  clock.atMs = NOW
  const all = entries()
  await Promise.all(all.map((entry) => ledger.settle(entry)))
  const custom = { fromMs: NOW - 3 * DAY - 50 * MINUTE, toMs: NOW - DAY - 10 * MINUTE }
  const asked: AskedRange[] = [
    ...(['15m', '1h', '6h', '24h', '7d', '30d'] as const).map((range) => ({ range })),
    { range: '30d', zone: 'Europe/Berlin' },
    { range: '1h', by: 'hour' },
    { range: '24h', by: 'day' },
    { ...custom, by: 'hour' },
    { ...custom, by: 'day' },
    { ...custom, by: 'day', zone: 'Asia/Kolkata' },
    { fromMs: NOW - HOUR - 5 * MINUTE, toMs: NOW - HOUR - MINUTE, by: 'day' },
  ]
  const checked = async (what: string): Promise<void> => {
    for (const each of asked) {
      const range = rangeOf(each, NOW, KEPT)
      const usage = new ExactUsage(ledger, range)
      const inside = all.filter(({ atMs }) => atMs >= range.fromMs && atMs < range.toMs)
      const name = `${what}: ${JSON.stringify(each)}`
      for (const selection of SELECTIONS) {
        const sums = await usage.sums(selection)
        const starts = [...range.starts.values()]
        t.ok(
          sums.every(({ startMs }) => starts.includes(startMs)),
          `${name}: sums begin with a bar`,
        )
        t.same(
          shownSums(sums),
          shownSums(wantedSums(inside, selection)),
          `${name} ${JSON.stringify(selection)}`,
        )
      }
      for (const by of GROUPS) {
        const groups = await usage.groups({ accountId: null, by })
        t.same(shownGroups(groups), wantedGroups(inside, by), `${name} by ${by}`)
      }
    }
  }
  await checked('as written')
  // Days include the hours that are over.
  await ledger.prune({ entriesBeforeMs: 0, hoursBeforeMs: NOW - 50 * DAY, daysBeforeMs: 0 })
  await checked('days added up')
}

/** Cells have every property, and are read for one account too. */
export async function cellsOfEntries(t: Test, { ledger }: LedgerUnderTest): Promise<void> {
  const web = { upstream: 'openai', ingress: 'chat', labels: 'team=web', accountPath: 'acme/ada' }
  const rows = [
    aRow({ ...web, atMs: NOON + 1 }),
    aRow({ ...web, atMs: NOON + MINUTE - 1 }),
    aRow({ ...web, atMs: NOON + MINUTE, shadowOf: 'req_x' }),
    aRow({ accountId: 'acc_bob', atMs: NOON + MINUTE, upstream: null }),
    aRow({ atMs: NOON + 2 * MINUTE }),
  ]
  await Promise.all(rows.map((row) => ledger.settle(row)))
  const span = { fromMs: NOON + 1, toMs: NOON + 2 * MINUTE, stepMs: MINUTE }
  const shown = async (accountId: string | null) =>
    (await ledger.cells({ ...span, accountId }))
      .map((cell) => {
        const { startMs, accountId: of, keyId, requests, costNanoUsd } = cell
        const { accountPath, upstream, ingress, labels, isShadow } = cell
        const properties = [accountPath, upstream, ingress, labels, isShadow]
        return [(startMs - NOON) / MINUTE, of, keyId, requests, costNanoUsd, ...properties].join(' ')
      })
      .sort()
  const ada = [
    '0 acc_ada key_one 2 2000 acme/ada openai chat team=web false',
    '1 acc_ada key_one 1 1000 acme/ada openai chat team=web true',
  ]
  t.same(await shown('acc_ada'), ada)
  t.same(await shown(null), [...ada, '1 acc_bob key_one 1 1000     false'].sort())
  t.same(await shown('acc_none'), [])
}

type Selection = (typeof SELECTIONS)[number]

function namesOf(entry: LedgerEntry): string[] {
  const { accountId, accountPath, upstream, ingress, labels, shadowOf } = entry
  return [
    `account=${accountId} ${accountPath ?? ''}`,
    ...(upstream === null ? [] : [`upstream=${upstream}`]),
    ...(upstream === null || shadowOf === null ? [] : [`shadow=${upstream}`]),
    ...(ingress === null ? [] : [`format=${ingress}`]),
    ...(labels ?? '').split(' ').flatMap((label) => (label === '' ? [] : [`label=${label}`])),
  ]
}

/** The sum of the entries for each owner that the selection names, without times. */
function wantedSums(all: readonly LedgerEntry[], selection: Selection): UsageSum[] {
  const { accountId } = selection
  const of = all.filter((entry) => accountId === null || entry.accountId === accountId)
  return of.flatMap((entry): UsageSum[] => {
    const counters = newSum()
    addToSum(counters, entry)
    const { keyId, model } = entry
    const sum = sumFromCounters(counters, { startMs: 0, accountId: entry.accountId, keyId, model })
    if ('per' in selection) return [{ ...sum, accountId: '', keyId: '' }]
    if ('keyId' in selection) return keyId === selection.keyId && model === selection.model ? [sum] : []
    const names = namesOf(entry)
    if ('accounts' in selection) {
      const isMeant = selection.accounts.some((account) => names.includes(`account=${account}`))
      return isMeant ? [{ ...sum, accountId: '', keyId: '' }] : []
    }
    if (!('property' in selection)) return [sum]
    const { property } = selection
    const meant = names.filter((name) => name === property || name.startsWith(`${property}=`))
    return meant.map((name) => ({ ...sum, keyId: `*${name}`, accountId: accountId ?? '' }))
  })
}

function shownSums(sums: readonly UsageSum[]): string[] {
  return addedUp(sums, (sum) => ({ ...sum, startMs: 0 }))
    .map((sum) => JSON.stringify(Object.entries(sum).sort()))
    .sort()
}

function wantedGroups(all: readonly LedgerEntry[], by: (typeof GROUPS)[number]): string[] {
  const groups = new Map<string, [requests: number, errors: number, cost: bigint]>()
  for (const entry of all) {
    const names = namesOf(entry).filter((name) =>
      by.endsWith('=') ? name.startsWith(by) : name.startsWith(`${by}=`),
    )
    const owners =
      by === 'key'
        ? [`${entry.accountId} ${entry.keyId}`]
        : by === 'model'
          ? [` ${entry.model}`]
          : names.map((name) => ` ${name.slice(name.indexOf('=') + 1)}`)
    for (const owner of owners) {
      const [requests, errors, cost] = groups.get(owner) ?? [0, 0, 0n]
      groups.set(owner, [
        requests + 1,
        errors + (entry.outcome === 'ok' ? 0 : 1),
        cost + BigInt(entry.costNanoUsd ?? 0),
      ])
    }
  }
  return Array.from(groups, ([owner, figures]) => [owner, ...figures].join(' ')).sort()
}

function shownGroups(groups: readonly GroupUse[]): string[] {
  return groups
    .map(({ accountId, keyId, requests, failed, costNanoUsd }) =>
      [`${accountId} ${keyId}`, requests, failed, costNanoUsd].join(' '),
    )
    .sort()
}
