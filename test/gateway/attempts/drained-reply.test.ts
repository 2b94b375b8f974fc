/**
 * Goal: a reply whose client has left is handled as the configuration sets: cancelled, read to its end, or
 * read until the counts have arrived, within the limits of number and time. Under a budget it is read until
 * then by default, and a request whose reply is not read is charged with the maximum that it may have cost.
 * Method: gateways with each setting over the emulator, which sends replies slowly; clients that leave.
 */
import t, { type Test } from 'tap'
import type { LedgerEntry } from '../../../src/ledger/entry.js'
import { eventually, openClient, question, series, UPSTREAMS, watchProcess } from '../../faults/scene.js'
import { createKey } from '../../helpers/keys.js'
import { loadConfig } from '../../../src/config/load-config.js'
import { openStore } from '../../../src/store/open-store.js'
import { startGateway, type TestGateway } from '../../helpers/gateway.js'
import { rowsOf } from '../../helpers/ledger.js'
import { freshDatabases, redisMissing, startRedis } from '../../helpers/redis.js'
import { anotherDay } from '../../helpers/long-suite.js'

/** About 150 chunks in 300 ms. */
const SLOW = 'Say it. [[words:150]] [[pace:2]]'

/** Leaves when content has arrived, or while the upstream processes a whole reply. */
async function leave(
  t: Test,
  gateway: TestGateway,
  { model, stream = true }: { model: string; stream?: boolean },
): Promise<void> {
  const requestsBefore = gateway.emulator.ledger.length
  if (!stream) gateway.emulator.script({ times: 1, fault: { kind: 'delay', ms: 150 } })
  const client = openClient(t, gateway, { body: question(model, stream, { text: SLOW }) })
  await eventually(() => gateway.emulator.ledger.length > requestsBefore, 'the upstream gets the request')
  if (stream) await eventually(() => client.text().includes('"content":"'), 'content')
  client.socket.destroy()
}

async function rowAt(gateway: TestGateway, count: number): Promise<LedgerEntry> {
  const hasEnded = (): boolean => gateway.lines.filter(({ msg }) => msg === 'exchange').length >= count
  await eventually(hasEnded, 'the exchange is over', 5000)
  const rows = await rowsOf(gateway)
  const row = rows.at(-1)
  if (row === undefined || rows.length !== count) throw new Error(`${rows.length} rows`)
  return row
}

void t.test('drain: the counts are those of the upstream', async (t) => {
  watchProcess(t)
  const gateway = await startGateway(t, { more: 'on_disconnect: drain' })
  let count = 0
  for (const { name, model } of UPSTREAMS) {
    for (const stream of [true, false]) {
      await leave(t, gateway, { model, stream })
      count += 1
      const row = await rowAt(gateway, count)
      const counted = gateway.emulator.ledger.at(-1)?.counted
      t.match(row, { outcome: 'client_gone', status: 499, source: 'reported' }, name)
      t.match(row.usage, { input: counted?.input, output: counted?.output }, name)
      const after = row.tokensAfterDisconnect
      t.ok(after > 0 && after <= (counted?.output ?? 0), `${name}: ${after} after`)
      t.equal(gateway.emulator.ledger.at(-1)?.outcome, 'done', 'read to the end')
    }
    const metric = `sluice_tokens_after_disconnect_total{upstream="${name}"}`
    t.ok((await series(gateway, metric)) > 0, metric)
    t.equal(await series(gateway, `sluice_inflight{upstream="${name}"}`), 0)
  }
})

void t.test('drain_until_usage: reading ends when the final counts have arrived', async (t) => {
  const gateway = await startGateway(t, { more: 'on_disconnect: drain_until_usage' })
  await leave(t, gateway, { model: 'gemini-2.5-flash' })
  const row = await rowAt(gateway, 1)
  t.match(row, { outcome: 'client_gone', source: 'reported' })
  await eventually(() => gateway.emulator.open() === 0, 'the upstream connection is closed')
  const { output } = gateway.emulator.ledger.at(-1)?.counted ?? {}
  t.equal(row.usage.output, output, 'Gemini reports counts in each event; the last ones are final')
  await leave(t, gateway, { model: 'gpt-4o' })
  const counted = gateway.emulator.ledger.at(-1)?.counted
  t.match((await rowAt(gateway, 2)).usage, { output: counted?.output }, 'which is the end here')
})

void t.test('cancel is the default, and an upstream may have its own', async (t) => {
  const gateway = await startGateway(t, { upstreamOptions: 'on_disconnect: drain' })
  await leave(t, gateway, { model: 'gpt-4o' })
  t.match(await rowAt(gateway, 1), { source: 'reported' }, 'drained')
  const plain = await startGateway(t)
  await leave(t, plain, { model: 'gpt-4o' })
  t.match(await rowAt(plain, 1), { source: 'assumed', tokensAfterDisconnect: 0 })
  t.equal(plain.emulator.ledger.at(-1)?.outcome, 'client_closed')
})

void t.test('at most the allowed number at once, for at most the allowed time', async (t) => {
  const more = 'on_disconnect: drain\nafter_disconnect: { max_streams: 1, max_ms: 1000 }'
  const gateway = await startGateway(t, { more })
  gateway.emulator.script({ times: 2, fault: { kind: 'stall', event: 20 } })
  await leave(t, gateway, { model: 'gpt-4o' })
  await leave(t, gateway, { model: 'gpt-4o' })
  const endedCount = (): number => gateway.lines.filter(({ msg }) => msg === 'exchange').length
  t.ok((await eventually(() => endedCount() >= 1, 'the second')) < 700, 'cancelled at once')
  await eventually(() => endedCount() >= 2, 'the first when its time is over')
  for (const row of await rowsOf(gateway)) t.match(row, { source: 'assumed', status: 499 })
  await eventually(() => gateway.emulator.open() === 0, 'both connections are closed')
  await leave(t, gateway, { model: 'gemini-2.5-flash' })
  t.match(await rowAt(gateway, 3), { outcome: 'client_gone' }, 'the slot is free again')
})

/** The secret of another key of the gateway's account. */
async function anotherKey({ configFile }: TestGateway): Promise<string> {
  const loaded = loadConfig(configFile, process.env)
  if (!loaded.ok) throw new Error('the configuration does not load')
  const { plans, store: url } = loaded.config
  const store = await openStore(url)
  try {
    const account = await store.accountByEmail('test@example.com')
    if (account === null) throw new Error('no account')
    return (await createKey(store, { plans, account, name: 'other' })).secret
  } finally {
    await store.close()
  }
}

const BUDGET = 'limits: [ { scope: account, usd_per_day: 1 } ]'

async function underBudget(t: Test, stores: () => string | undefined): Promise<void> {
  const from = (more: string, upstreamOptions?: string): Promise<TestGateway> => {
    const store = stores()
    const options = upstreamOptions === undefined ? {} : { upstreamOptions }
    const onStore = store === undefined ? {} : { store }
    return startGateway(t, { more: `${BUDGET}\n${more}`, ...options, ...onStore })
  }
  const gateway = await from('')
  await leave(t, gateway, { model: 'gpt-4o' })
  const drained = await rowAt(gateway, 1)
  t.match(drained, { source: 'reported', outcome: 'client_gone' }, 'drained by default')
  t.match(drained.usage, { output: gateway.emulator.ledger.at(-1)?.counted?.output })
  const cancelling = await from('', 'on_disconnect: cancel')
  await leave(t, cancelling, { model: 'gpt-4o' })
  const cancelled = await rowAt(cancelling, 1)
  t.match(cancelled, { source: 'assumed', usage: { output: 16_384 } }, 'an own setting holds')
  t.equal(cancelling.emulator.ledger.at(-1)?.outcome, 'client_closed')

  const few = await from('after_disconnect: { max_streams_per_key: 1, max_ms: 5000 }')
  const other = { ...few, secret: await anotherKey(few) }
  few.emulator.script({ times: 1, fault: { kind: 'stall', event: 20 } })
  await leave(t, few, { model: 'gpt-4o' })
  await leave(t, few, { model: 'gpt-4o' })
  t.match(await rowAt(few, 1), { source: 'assumed', usage: { output: 16_384 } }, 'no place left')
  await leave(t, other, { model: 'gpt-4o' })
  t.match(await rowAt(few, 2), { source: 'reported' }, 'another key has places of its own')
}

void t.test('under a budget, sqlite', { skip: anotherDay(0, 2) }, (t) => underBudget(t, () => undefined))

void t.test('under a budget, redis', { skip: anotherDay(1, 2) || redisMissing() }, async (t) => {
  await underBudget(t, freshDatabases(await startRedis(t)))
})

/** Sends requests whose clients leave before the content until the budget is used. */
async function abortAll(t: Test, store: string | undefined): Promise<void> {
  const gateway = await startGateway(t, {
    more: `on_disconnect: cancel\n${BUDGET}`,
    ...(store === undefined ? {} : { store }),
  })
  gateway.emulator.script({ fault: { kind: 'hang' } })
  const body = question('o3', true, { text: 'Think.', max_completion_tokens: 20_000 })
  for (let sent = 0; sent < 8; sent += 1) {
    const { length } = gateway.lines
    const before = gateway.emulator.ledger.length
    const client = openClient(t, gateway, { body })
    const isOver = (): boolean => gateway.lines.length > length
    await eventually(() => gateway.emulator.ledger.length > before || isOver(), 'sent or refused')
    client.socket.destroy()
    await eventually(isOver, 'its line')
  }
  const rows = await rowsOf(gateway)
  const charged = rows.filter(({ source }) => source === 'assumed')
  const refused = rows.filter(({ status }) => status === 402)
  t.equal(charged.length, 6, 'each may have cost 0.16 dollars')
  t.equal(refused.length, 2, 'then the budget is used')
  for (const { usage, outcome, costNanoUsd } of charged) {
    t.equal(usage.output, 20_000, 'hidden reasoning up to the limit')
    t.equal(outcome, 'client_gone')
    t.equal(costNanoUsd, (usage.input ?? 0) * 2_000 + 20_000 * 8_000)
  }
}

void t.test('aborted reasoning uses the budget, sqlite', { skip: anotherDay(1, 2) }, (t) =>
  abortAll(t, undefined),
)

void t.test(
  'aborted reasoning uses the budget, redis',
  { skip: anotherDay(0, 2) || redisMissing() },
  async (t) => {
    await abortAll(t, freshDatabases(await startRedis(t))())
  },
)

void t.test('the end of the process ends them and writes their entries', async (t) => {
  const gateway = await startGateway(t, { more: 'on_disconnect: drain' })
  gateway.emulator.script({ times: 1, fault: { kind: 'stall', event: 20 } })
  await leave(t, gateway, { model: 'gpt-4o' })
  await gateway.plane.drain()
  t.match(await rowsOf(gateway), [{ source: 'assumed', outcome: 'client_gone' }])
})
