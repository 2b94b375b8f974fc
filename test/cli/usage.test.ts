/**
 * Goal: `sluice usage` prints every ledger entry once in both formats, request_id first, and correct sums.
 * A name that a client chose neither becomes a spreadsheet formula nor adds a line.
 * Method: entries settled in a store in a temporary folder; the built program for the exit status.
 */
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { createAccount } from '../../src/accounts/changes/change-accounts.js'
import { createKey } from '../helpers/keys.js'
import { sinceOf } from '../../src/cli/time-range.js'
import { command } from '../../src/cli/usage.js'
import { COLUMNS, csvLine, usd } from '../../src/ledger/export-columns.js'
import { openSqlite } from '../../src/store/sqlite/open-sqlite.js'
import { ledgerEntry } from '../ledger/build-entry.js'
import { argvOf, configFolder, newSession, runOn, sluice, sluiceHere } from './session.js'
import type { StoreSession } from '../../src/cli/with-store.js'
import { ofToday } from '../helpers/long-suite.js'

const NOW = Date.parse('2026-11-20T12:00:00Z')
const DAY = 86_400_000

function runUsage(
  session: StoreSession,
  action: string,
  options: Readonly<Record<string, unknown>>,
  nowMs: number,
): Promise<number> {
  return runOn(session, (open) => command(open, () => nowMs), [action, ...argvOf(options)])
}

void t.test('export prints each matching entry once, oldest first', async (t) => {
  const session = await newSession(t)
  const { ledger } = session.store
  const now = Date.now()
  for (const [id, ago] of [
    ['a', 3 * DAY],
    ['b', 2 * DAY],
    ['c', 1000],
  ] as const) {
    await ledger.settle(ledgerEntry(id, { atMs: now - ago }))
  }
  const asked = async (format: string, since?: string): Promise<string[]> => {
    t.equal(await runUsage(session, 'export', { format, since }, now), 0)
    return session.output().flatMap((text) => text.split('\n'))
  }
  const json = (await asked('jsonl')).map((line) => JSON.parse(line) as Record<string, unknown>)
  t.same(
    json.map(({ request_id: id }) => id),
    ['a', 'b', 'c'],
  )
  t.equal(Object.keys(json[0] ?? {})[0], 'request_id')
  t.match(json[0], {
    source: 'reported',
    input_tokens: 10,
    output_tokens: 20,
    cache_write_1h_tokens: 1,
    cost_nano_usd: 225_000,
    cost_usd: '0.000225000',
    first_content_ms: null,
  })
  const [head = '', ...lines] = await asked('csv')
  t.same(
    head.split(','),
    COLUMNS.map(([name]) => name),
  )
  t.same(
    lines.map((line) => line.split(',')[0]),
    ['a', 'b', 'c'],
  )
  t.equal((await asked('csv', '1h')).length, 2, 'the head and one row')
  t.same(await asked('jsonl', new Date(now + 1000).toISOString()), [], 'nothing yet')
  t.same(session.errors(), [])
})

void t.test('a name that a client chose is escaped', (t) => {
  for (const [model, cell] of [
    ['=HYPERLINK("x")', `"'=HYPERLINK(""x"")"`],
    ['@SUM', "'@SUM"],
    ['a,b', '"a,b"'],
    ['a\nb', '"a\nb"'],
    ['gpt-4o', 'gpt-4o'],
  ] as const) {
    t.ok(csvLine(ledgerEntry('a', { modelAsked: model })).includes(`,${cell},`), model)
  }
  t.equal(usd(1), '0.000000001')
  t.equal(usd(12_345_678_901), '12.345678901')
  t.equal(usd(0), '0.000000000')
  t.equal(usd(null), null)
  t.end()
})

void t.test('summary sums by model, key and account', async (t) => {
  const session = await newSession(t)
  const now = Date.now()
  const over = [
    { model: 'gpt-4o' },
    { model: 'gpt-4o', outcome: 'upstream_failed', keyId: 'key_2' },
    { model: 'o1', accountId: 'acc_bob', costNanoUsd: null },
  ] as const
  for (const [index, each] of over.entries()) {
    await session.store.ledger.settle(ledgerEntry(String(index), { atMs: now, ...each }))
  }
  for (const [by, names] of [
    ['model', ['gpt-4o', 'o1']],
    ['key', ['key_1', 'key_2']],
    ['account', ['acc_ada', 'acc_bob']],
  ] as const) {
    await runUsage(session, 'summary', { by, json: true }, now)
    const lines = JSON.parse(session.output().join('\n')) as Record<string, unknown>[]
    t.same(
      lines.map((line) => line[by]),
      names,
    )
    t.equal(
      lines.reduce((sum, { requests }) => sum + Number(requests), 0),
      3,
    )
  }
  await runUsage(session, 'summary', {}, now)
  t.match(session.output().join('\n'), /gpt-4o +2 +1 +20 +40 +0\.000450000 +0 +0/)
})

void t.test('a summary begins with the highest cost; equal costs are sorted by name', async (t) => {
  const session = await newSession(t)
  const now = Date.now()
  const costs = { 'gpt-4o': 5, 'gpt-5.4': 1_000_000_000, o1: 20, o3: 20, unpriced: null }
  for (const [model, costNanoUsd] of Object.entries(costs)) {
    await session.store.ledger.settle(ledgerEntry(model, { atMs: now, model, costNanoUsd }))
  }
  for (const since of ['1h', '1d']) {
    await runUsage(session, 'summary', { by: 'model', json: true, since }, now)
    const lines = JSON.parse(session.output().join('\n')) as { model: string }[]
    const models = lines.map(({ model }) => model)
    t.same(models, ['gpt-5.4', 'o1', 'o3', 'gpt-4o', 'unpriced'])
  }
})

void t.test('--until limits an export and a summary', async (t) => {
  const session = await newSession(t)
  for (const [id, atMs] of [
    ['a', NOW - 2 * DAY],
    ['b', NOW - DAY],
    ['c', NOW - 1000],
  ] as const) {
    await session.store.ledger.settle(ledgerEntry(id, { atMs }))
  }
  const exported = async (until: string): Promise<number> => {
    await runUsage(session, 'export', { format: 'jsonl', until }, NOW)
    return (
      session
        .output()
        .join('\n')
        .match(/"request_id"/g)?.length ?? 0
    )
  }
  t.equal(await exported('2026-11-19T12:00:00Z'), 1, 'the end itself is not included')
  t.equal(await exported('1m'), 2)
  t.equal(await exported('2026-11-21'), 3)
  await runUsage(session, 'summary', { until: '2026-11-20', json: true }, NOW)
  t.match(JSON.parse(session.output().join('\n')), [{ requests: 2 }], 'not the day that begins')
  await t.rejects(
    async () => runUsage(session, 'export', { format: 'csv', until: 'soon' }, NOW),
    /--until must be/,
  )
})

void t.test('filters select the entries of an export and of a summary', async (t) => {
  const session = await newSession(t)
  const { ledger } = session.store
  const wanted = { email: 'ada@x.org', plan: 'pro', role: 'owner', password: null } as const
  const { account } = await createAccount(session.store, wanted)
  const [now, accountId] = [Date.now(), account.id]
  const entries = [
    { requestId: 'a', accountId, upstream: 'openai', labels: 'team=research env=prod' },
    { requestId: 'b', upstream: 'openai', status: 429, outcome: 'rate_limited', keyId: 'key_2' },
    { requestId: 'c', upstream: 'google', modelAsked: 'fast', labels: 'team=web', ingress: 'image_edits' },
  ] as const
  for (const { requestId, ...entry } of entries) {
    await ledger.settle(ledgerEntry(requestId, { atMs: now - 1000, ...entry }))
  }
  const idsOf = async (filter: object): Promise<unknown[]> => {
    t.equal(await runUsage(session, 'export', { format: 'jsonl', ...filter }, now), 0)
    const lines = session.output().flatMap((text) => text.split('\n'))
    return lines.map((line) => (JSON.parse(line) as Record<string, unknown>)['request_id'])
  }
  for (const [filter, ids] of [
    [{ status: '429' }, ['b']],
    [{ upstream: 'openai' }, ['a', 'b']],
    [{ model: 'fast' }, ['c']],
    [{ 'request-id': 'c' }, ['c']],
    [{ 'request-id': 'c', upstream: 'openai' }, []],
    [{ key: 'key_2' }, ['b']],
    [{ 'client-format': 'image_edits' }, ['c']],
    [{ 'client-format': 'image_edits', upstream: 'openai' }, []],
    [{ account: accountId }, ['a']],
    [{ account: 'ada@x.org' }, ['a']],
    [{ upstream: 'openai', status: '200' }, ['a']],
  ] as const) {
    t.strictSame(await idsOf(filter), ids, JSON.stringify(filter))
    await runUsage(session, 'summary', { json: true, ...filter }, now)
    const lines = JSON.parse(session.output().join('\n')) as Record<string, unknown>[]
    const requests = lines.reduce((sum, line) => sum + Number(line['requests']), 0)
    t.equal(requests, ids.length, 'the summary counts the same')
  }
  const groupsOf = async (by: string): Promise<unknown[]> => {
    await runUsage(session, 'summary', { by, json: true }, now)
    const lines = JSON.parse(session.output().join('\n')) as Record<string, unknown>[]
    return lines.map((line) => [line[by], line['requests']])
  }
  const upstreams = [
    ['openai', 2],
    ['google', 1],
  ]
  t.strictSame(await groupsOf('upstream'), upstreams)
  t.strictSame((await groupsOf('client_format')).at(-1), ['image_edits', 1])
  const teams = [
    ['(none)', 1],
    ['research', 1],
    ['web', 1],
  ]
  t.strictSame(await groupsOf('label:team'), teams)
  for (const wrong of [{ status: 'many' }, { account: 'bob@x.org' }]) {
    await t.rejects(runUsage(session, 'export', { format: 'csv', ...wrong }, now), /--(status|account)/)
  }
  await t.rejects(runOn(session, command, ['summary', '--by', 'colour']), /--by must be/)
  await t.rejects(runOn(session, command, ['summary', '--by', 'label:']), /--by must be/)
})

void t.test('a summary shows names of keys and e-mail addresses beside ids', async (t) => {
  const session = await newSession(t)
  const { store, plans } = session
  const wanted = { email: 'ada@x.org', plan: 'pro', role: 'owner', password: null } as const
  const { account } = await createAccount(store, wanted)
  const { key } = await createKey(store, { plans, account, name: 'nightly build' })
  const now = Date.now()
  await store.ledger.settle(ledgerEntry('a', { atMs: now, accountId: account.id, keyId: key.id }))
  await store.ledger.settle(ledgerEntry('b', { atMs: now, accountId: account.id, keyId: 'key_gone' }))
  await runUsage(session, 'summary', { by: 'key', json: true }, now)
  const known = { key: key.id, name: 'nightly build', email: 'ada@x.org', requests: 1 }
  const gone = { key: 'key_gone', name: null, email: 'ada@x.org', requests: 1 }
  const lines = JSON.parse(session.output().join('\n')) as { key: string }[]
  t.match(
    lines.sort((a, b) => a.key.localeCompare(b.key)),
    [known, gone].sort((a, b) => a.key.localeCompare(b.key)),
  )
  await runUsage(session, 'summary', { by: 'account' }, now)
  t.match(session.output().join('\n'), new RegExp(`${account.id} +ada@x.org +2 `))
})

void t.test('a missing store is reported and not created', async (t) => {
  const { good } = configFolder(t)
  const summary = ['usage', 'summary', '--config', good]
  for (const args of [summary, ['keys', 'list', '--config', good, '--account', 'a']]) {
    const { status, err } = await sluiceHere(args)
    t.equal(status, 1)
    t.match(err, /cannot be opened.*data\/sluice\.db' does not exist/)
  }
  t.notOk(existsSync(join(dirname(good), 'data', 'sluice.db')))
})

void t.test('ledger.md describes every column, in order', (t) => {
  const page = readFileSync('docs/reference/ledger.md', 'utf8')
  let at = page.indexOf('### Columns of the export')
  for (const [name, means] of COLUMNS) {
    const next = page.indexOf(`\n| \`${name}\``, at)
    t.ok(next > at, name)
    t.ok(page.slice(next, page.indexOf('\n', next + 1)).includes(means), means)
    at = next
  }
  t.end()
})

void t.test('unknown arguments are reported by name', async (t) => {
  const session = await newSession(t)
  const wrong: [string[], RegExp][] = [
    [[], /needs one of/],
    [['export'], /needs --format/],
    [['export', '--format', 'xml'], /needs --format/],
    [['export', '--format', 'csv', '--by', 'key'], /does not accept --by/],
    [
      ['summary', '--by', 'colour'],
      /model, key, account, upstream, program, user, parent, root, member, month, label/,
    ],
    [['export', 'all', '--format', 'csv'], /accepts only options/],
  ]
  for (const [argv, message] of wrong) {
    await t.rejects(runOn(session, command, argv), message, argv.join(' '))
  }
  t.equal(sinceOf('24h', NOW), NOW - DAY)
  t.equal(sinceOf('2026-11-20', NOW), NOW - DAY / 2)
  for (const text of ['yesterday', '24', '-1h', '2026-13-01']) {
    t.throws(() => sinceOf(text, NOW), /--since must be/, text)
  }
})

void t.test('a closed standard output (`| head`) ends a command without an error', async (t) => {
  const { good } = configFolder(t)
  const path = join(dirname(good), 'data', 'sluice.db')
  mkdirSync(dirname(path))
  const store = await openSqlite(path)
  const entries = Array.from({ length: 3000 }, (_, n) => ledgerEntry(`r${n}`, { atMs: NOW + n }))
  await Promise.all(entries.map((entry) => store.ledger.settle(entry)))
  await store.close()
  const exportAll = ['usage', 'export', '--config', good, '--format', 'csv']
  const summary = ['usage', 'summary', '--config', good, '--by', 'upstream', '--since', '2026-01-01']
  const readers = [
    [exportAll, 'first chunk'],
    [exportAll, 'none'],
    [summary, 'none'],
  ] as const
  // Each day has one of them.
  for (const [args, reader] of ofToday(readers, 3)) {
    const { status, err } = await sluice(args, '', reader)
    // A slow machine prints its progress.
    const errors = err.split('\n').filter((line) => line !== '' && !line.endsWith('so far'))
    t.same({ status, errors }, { status: 141, errors: [] }, `${args[1] ?? ''}, reads ${reader}`)
  }
})

void t.test('refuses a range that ends before it begins', async (t) => {
  const session = await newSession(t)
  const range = { since: '1h', until: '2h' }
  const wrong = { message: '--until 2h must be later than --since 1h' }
  await t.rejects(runUsage(session, 'summary', range, NOW), wrong)
  await t.rejects(runUsage(session, 'export', { format: 'csv', ...range }, NOW), wrong)
  t.equal(await runUsage(session, 'summary', { since: '2h', until: '1h' }, NOW), 0)
})

void t.test('export waits for its reader after each batch', async (t) => {
  const session = await newSession(t)
  const entries = Array.from({ length: 1200 }, (_, n) => ledgerEntry(`r${n}`, { atMs: NOW + n }))
  await Promise.all(entries.map((entry) => session.store.ledger.settle(entry)))
  const rows: number[] = []
  const ready = (): Promise<void> => {
    rows.push(session.output().flatMap((text) => text.split('\n')).length)
    return Promise.resolve()
  }
  const slow = { ...session, terminal: { ...session.terminal, ready } }
  t.equal(await runUsage(slow, 'export', { format: 'jsonl' }, NOW), 0)
  t.same(rows, [500, 500, 200])
})

void t.test('a summary of the last hour has its requests, and not those of the whole day', async (t) => {
  const session = await newSession(t)
  const now = Date.now()
  for (const [index, minutes] of [1, 59, 61, 300, 3_000].entries()) {
    await session.store.ledger.settle(ledgerEntry(String(index), { atMs: now - minutes * 60_000 }))
  }
  for (const [since, requests] of [
    ['1h', 2],
    ['6h', 4],
    ['10m', 1],
    ['7d', 5],
  ] as const) {
    for (const by of ['model', 'key']) {
      await runUsage(session, 'summary', { since, by, json: true }, now)
      t.match(JSON.parse(session.output().join('\n')), [{ requests }], `${since} by ${by}`)
    }
  }
})
