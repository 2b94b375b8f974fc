/** The tests of every ledger for settled requests: entries, sums, export and pruning. */
import type { Test } from 'tap'
import { openStore } from '../../../src/store/open-store.js'
import type { Ledger } from '../../../src/store/ledger.js'
import { FIRST_CONTENT_BOUNDS_MS } from '../../../src/store/first-content.js'
import type { SumQuery, UsageSum } from '../../../src/store/usage-queries.js'
import { anAdmission, aRow, DAY, HOUR, NOON, places, type LedgerUnderTest } from './sample-entries.js'
import { allPages, idsOf, shuffled } from './pages.js'

export async function settled(t: Test, { ledger }: LedgerUnderTest): Promise<void> {
  const full = aRow({
    modelAsked: 'Ünïcode "quoted"\\ 🔑\n\u{1}',
    usage: { input: 1, output: 2, cacheRead: 3, cacheWrite: 4, reasoning: 5 },
    losses: ['logit_bias', 'top_logprobs'],
    tokensAfterDisconnect: 7,
    ingress: 'messages',
    errorMessage: 'The "upstream" failed: ü\n',
    limit: 'key:one;own requests_per_minute',
    upstreamStatus: 529,
    upstreamRequestId: 'req_011C',
    attempted: 'anthropic:upstream_busy, openai:ok',
    shadowOf: 'req_shadowed',
    labels: 'team=research env=prod',
    clientRequestId: 'client-1',
    hops: {
      authenticate: 0.1,
      receive: 0.2,
      route: 0.3,
      admit: 0.4,
      connect: 0.5,
      firstByte: 0.6,
      translate: 0.7,
      relay: 0.8,
      firstContent: 0.9,
      overhead: 1.5,
    },
  })
  const bare = aRow({
    modelAsked: null,
    modelAnswered: null,
    model: 'other',
    upstream: null,
    dialect: null,
    attempts: 0,
    stream: false,
    status: 400,
    outcome: 'malformed_request',
    finish: null,
    usage: {},
    source: 'none',
    costNanoUsd: null,
    hops: {},
    durationMs: 0.25,
    losses: [],
  })
  const zero = aRow({ usage: { input: 0, output: 0 }, costNanoUsd: 0 })
  const large = aRow({ costNanoUsd: Number.MAX_SAFE_INTEGER, usage: { input: 2 ** 40 } })
  for (const row of [full, bare, zero, large]) {
    t.equal(await ledger.settle(row), 'settled', 'settles without a reservation')
    t.same(await ledger.entry('acc_ada', row.requestId), row, 'returns every field')
    t.same(await ledger.entry(null, row.requestId), row, 'finds the entry without an account')
    t.equal(await ledger.entry('acc_bob', row.requestId), null, "not as another account's")
    t.equal(await ledger.settle(row), 'already')
  }
  for (const id of ['', 'req_none', '*', full.requestId.slice(0, -1), `${full.requestId}0`]) {
    t.equal(await ledger.entry(null, id), null, `there is no entry '${id}'`)
  }
  const { entries: rows } = await ledger.entries({ accountId: null, after: null, limit: 10 })
  t.equal(rows.length, 4, 'each entry once')

  const twins = [aRow(), aRow()].map((row) => ({ ...row, requestId: 'req_twin' }))
  const outcomes = await Promise.all(twins.map((row) => ledger.settle(row)))
  t.same(outcomes.sort(), ['already', 'settled'], 'one of two concurrent settlements succeeds')

  t.same(await ledger.lastUse('acc_none'), new Map())
  await ledger.settle(aRow({ keyId: 'key_used', accountId: 'acc_use', atMs: NOON + 5 }))
  await ledger.settle(aRow({ keyId: 'key_used', accountId: 'acc_use', atMs: NOON - 5 * DAY }))
  await ledger.settle(aRow({ keyId: 'key_old', accountId: 'acc_use', atMs: NOON - 3 * DAY }))
  const uses = await ledger.lastUse('acc_use')
  t.same([...uses].sort(), [
    ['key_old', NOON - 3 * DAY],
    ['key_used', NOON + 5],
  ])
  await ledger.settle(aRow({ keyId: 'key_older', accountId: 'acc_use', atMs: NOON - 300 * DAY }))
  const wanted = ['key_used', 'key_older', 'key_none', '', '\0']
  t.same(
    [...(await ledger.lastUse('acc_use', wanted))].sort(),
    [
      ['key_older', NOON - 300 * DAY],
      ['key_used', NOON + 5],
    ],
    'returns the last use of the given keys',
  )
  t.same(await ledger.lastUse('acc_use', []), new Map())
  t.same(await ledger.lastUse('acc_ada', ['key_used']), new Map(), 'returns no key of another account')
}

export async function appended(t: Test, { ledger, url, clock }: LedgerUnderTest): Promise<void> {
  const rows = Array.from({ length: 300 }, (_, at) => aRow({ atMs: NOON + at, costNanoUsd: 2 }))
  await Promise.all(rows.map((row) => ledger.append(row)))
  const [first = aRow(), second = aRow()] = rows
  t.same(await ledger.entry('acc_ada', first.requestId), first, 'finds the entry at once, with every field')
  const query = { accountId: 'acc_ada', by: 'day', fromMs: NOON, toMs: NOON } as const
  const sums = async (): Promise<[number, number]> => {
    const found = await ledger.sums(query)
    return [
      found.reduce((sum, { requests }) => sum + requests, 0),
      found.reduce((sum, { costNanoUsd }) => sum + Number(costNanoUsd), 0),
    ]
  }
  t.same(await sums(), [300, 600])
  await ledger.append({ ...first, costNanoUsd: 5 })
  await ledger.settle({ ...second, costNanoUsd: 5 })
  await Promise.all([
    ledger.append(aRow({ requestId: 'req_two' })),
    ledger.append(aRow({ requestId: 'req_two' })),
  ])
  t.same((await sums())[0], 301, 'counts a repeated request once')
  t.same(await ledger.entry('acc_ada', second.requestId), second, 'keeps the first entry')

  const other = await openStore(url, { nowMs: clock.now })
  t.teardown(() => other.close())
  const late = aRow()
  await ledger.append(late)
  t.same(await other.ledger.entry('acc_ada', late.requestId), late, 'another process finds it')

  const held = anAdmission([places(1)])
  t.ok((await ledger.admit(held)).admitted)
  await ledger.append(aRow({ requestId: held.requestId }))
  await ledger.entry('acc_ada', held.requestId)
  t.ok((await ledger.admit(anAdmission([places(1)]))).admitted, 'its slot is free')
  t.ok((await ledger.admit(held)).admitted, 'the same request id takes no slot again')
}

export async function summed(t: Test, { ledger }: LedgerUnderTest): Promise<void> {
  const rows = [
    aRow({
      hops: { firstContent: 50 },
      cacheHit: true,
      savedNanoUsd: 700,
      units: 'audio_second=61.5 image=2',
    }),
    aRow({ hops: { firstContent: 50.1 }, costNanoUsd: null, units: 'document=9 image=1 output_image=1120' }),
    aRow({ hops: { firstContent: 1e9 }, source: 'estimated', usage: { output: 7, cacheWrite: 2 } }),
    aRow({ outcome: 'upstream_failed', status: 502, usage: {}, source: 'none', costNanoUsd: null }),
    aRow({ model: 'other', hops: {}, source: 'assumed' }),
    aRow({ keyId: 'key_two' }),
    aRow({ accountId: 'acc_bob' }),
    aRow({ atMs: NOON + HOUR - 1 }),
    aRow({ atMs: NOON + HOUR }),
    aRow({ atMs: NOON + DAY }),
  ]
  await Promise.all(rows.map((row) => ledger.settle(row)))
  const hours = await sumsOf(ledger, {
    accountId: 'acc_ada',
    by: 'hour',
    fromMs: NOON,
    toMs: NOON + DAY,
  })
  t.same(
    hours.map(({ startMs, keyId, model, requests }) => [startMs - NOON, keyId, model, requests]),
    [
      [0, 'key_one', 'gpt-5.4-mini', 5],
      [0, 'key_one', 'other', 1],
      [0, 'key_two', 'gpt-5.4-mini', 1],
      [HOUR, 'key_one', 'gpt-5.4-mini', 1],
      [DAY, 'key_one', 'gpt-5.4-mini', 1],
    ],
    'by hour, key and model',
  )
  const times = [50, 50.1, 1e9, 420, 420]
  const firstContent = [0, ...FIRST_CONTENT_BOUNDS_MS].map((overMs, at) => {
    const upToMs = FIRST_CONTENT_BOUNDS_MS[at] ?? Infinity
    return times.filter((ms) => ms > overMs && ms <= upToMs).length
  })
  const expected: UsageSum = {
    startMs: NOON,
    accountId: 'acc_ada',
    keyId: 'key_one',
    model: 'gpt-5.4-mini',
    requests: 5,
    failed: 1,
    inputTokens: 300,
    outputTokens: 67,
    cacheReadTokens: 120,
    cacheWriteTokens: 2,
    reasoningTokens: 15,
    costNanoUsd: 3_000,
    unpriced: 1,
    estimated: 1,
    assumed: 0,
    firstContent,
    byCause: { client: 0, limits: 0, gateway: 0, provider: 1 },
    ...{ cacheHits: 1, savedNanoUsd: 700 },
    ...{ images: 3, audioMs: 61_500, characters: 0, pages: 0, searches: 0, documents: 9, lines: 0 },
  }
  t.same(hours[0], expected, 'counts match the entries; an entry without tokens is not unpriced')
  t.match(hours[1], { requests: 1, estimated: 0, assumed: 1 })

  const days = await sumsOf(ledger, { accountId: 'acc_ada', by: 'day', fromMs: NOON, toMs: NOON })
  t.equal(days.find(({ model, keyId }) => model !== 'other' && keyId === 'key_one')?.requests, 6)
  t.equal(days[0]?.startMs, NOON - 12 * HOUR, 'a day begins at midnight UTC')
  t.equal(
    (await sumsOf(ledger, { accountId: null, by: 'hour', fromMs: NOON + 59, toMs: NOON + 60 })).length,
    4,
    'sums of all accounts',
  )
  t.equal((await sumsOf(ledger, { accountId: 'acc_bob', by: 'hour', fromMs: 0, toMs: NOON + DAY })).length, 1)
  t.equal(
    (
      await sumsOf(ledger, {
        accountId: 'acc_ada',
        by: 'hour',
        fromMs: NOON + 2 * HOUR,
        toMs: NOON + 5 * HOUR,
      })
    ).length,
    0,
  )
  t.equal(
    (await sumsOf(ledger, { accountId: 'acc_ada', by: 'hour', fromMs: NOON + HOUR, toMs: NOON })).length,
    0,
    'an end before the start selects nothing',
  )
  t.same(
    await sumsOf(ledger, { accountId: 'acc_', by: 'day', fromMs: 0, toMs: NOON + DAY }),
    [],
    'a prefix of an account id selects nothing',
  )
  for (const by of ['hour', 'day'] as const) {
    const all = await sumsOf(ledger, { accountId: null, by, fromMs: 0, toMs: NOON + 2 * DAY })
    t.equal(
      all.reduce((sum, each) => sum + each.requests, 0),
      rows.length,
      `the ${by}s together are all rows`,
    )
  }
}

export async function exported(t: Test, { ledger }: LedgerUnderTest): Promise<void> {
  const rows = Array.from({ length: 1_200 }, (_, at) =>
    aRow({ atMs: NOON + at * 10, accountId: at % 2 === 0 ? 'acc_ada' : 'acc_bob' }),
  )
  await Promise.all(shuffled(rows).map((row) => ledger.settle(row)))
  const ids: string[] = []
  const writes: Promise<unknown>[] = []
  for await (const batch of ledger.export(NOON + 1_000)) {
    t.ok(batch.length > 0)
    ids.push(...idsOf(batch))
    writes.push(...[1, 2, 3].map((at) => ledger.settle(aRow({ atMs: NOON + HOUR + at }))))
  }
  await Promise.all(writes)
  const wanted = idsOf(rows.slice(100))
  t.same(ids.slice(0, wanted.length), wanted, 'exports every entry, oldest first, during writes')
  t.equal(new Set(ids).size, ids.length, 'each entry once')
  const none: unknown[] = []
  for await (const batch of ledger.export(NOON + DAY)) none.push(...batch)
  t.same(none, [])
  for await (const batch of ledger.export(0)) {
    t.ok(batch.length > 0)
    break
  }
}

export async function pruned(t: Test, { ledger }: LedgerUnderTest): Promise<void> {
  const rows = Array.from({ length: 700 }, (_, at) =>
    aRow({ atMs: NOON + at * 100, accountId: at % 2 === 0 ? 'acc_ada' : 'acc_bob' }),
  )
  const old = [aRow({ atMs: NOON - 40 * DAY }), aRow({ atMs: NOON - 2 * DAY })]
  await Promise.all([...rows, ...old].map((row) => ledger.settle(row)))
  const nothing = { entriesBeforeMs: 0, hoursBeforeMs: 0, daysBeforeMs: 0 }
  t.equal(await ledger.prune(nothing), 0)
  t.equal(await ledger.prune({ ...nothing, entriesBeforeMs: NOON + 30_000 }), 302)
  t.equal(await ledger.prune({ ...nothing, entriesBeforeMs: NOON + 30_000 }), 0)
  const left = await allPages(t, ledger, { accountId: null, limit: 1_000 })
  t.same(idsOf(left).reverse(), idsOf(rows.slice(300)), 'keeps newer entries')
  t.equal((await allPages(t, ledger, { accountId: 'acc_ada', limit: 1_000 })).length, 200)
  t.equal(await ledger.entry(null, rows[0]?.requestId ?? ''), null)
  t.notSame(await ledger.entry(null, rows[300]?.requestId ?? ''), null)
  t.equal(await count(ledger, 'hour'), 702, 'keeps sums longer than entries')
  await ledger.prune({ ...nothing, hoursBeforeMs: NOON - DAY })
  t.equal(await count(ledger, 'hour'), 700)
  t.equal(await count(ledger, 'hour', 'model'), 700, 'the same for sums by model')
  t.equal(await count(ledger, 'day'), 702)
  await ledger.prune({ ...nothing, daysBeforeMs: NOON - 39 * DAY })
  t.equal(await count(ledger, 'day'), 701)
  await ledger.prune({ ...nothing, daysBeforeMs: NOON })
  t.equal(await count(ledger, 'day'), 700, 'removes a day when all of it is older')
  t.equal(await count(ledger, 'day', 'model'), 700)
}

async function count(ledger: Ledger, by: 'hour' | 'day', per: 'key' | 'model' = 'key'): Promise<number> {
  const sums = await ledger.sums({ accountId: null, by, fromMs: 0, toMs: NOON + DAY, per })
  return sums.reduce((sum, { requests }) => sum + requests, 0)
}

/** Sorted, because engines return the sums of an hour in any order. */
async function sumsOf(ledger: Ledger, query: Omit<SumQuery, 'per'>): Promise<UsageSum[]> {
  const sums = await ledger.sums(query)
  const starts = sums.map(({ startMs }) => startMs)
  if (starts.some((start, at) => start < (starts[at - 1] ?? 0))) throw new Error('not in order')
  const nameOf = (sum: UsageSum) => `${sum.accountId} ${sum.keyId} ${sum.model}`
  return [...sums].sort((a, b) => a.startMs - b.startMs || (nameOf(a) < nameOf(b) ? -1 : 1))
}
