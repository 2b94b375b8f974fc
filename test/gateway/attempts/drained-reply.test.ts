/**
 * Goal: a reply whose client has left is handled as the configuration sets: cancelled, read to its end, or
 * read until the counts have arrived, within the limits of number and time.
 * Method: gateways with each setting over the emulator, which sends replies slowly; clients that leave.
 */
import t, { type Test } from 'tap'
import type { LedgerEntry } from '../../../src/ledger/entry.js'
import {
  eventually,
  openClient,
  question,
  series,
  UPSTREAMS,
  watchProcess,
} from '../../faults/scene.js'
import { startGateway, type TestGateway } from '../../helpers/gateway.js'
import { rowsOf } from '../../helpers/ledger.js'

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
  await eventually(
    () => gateway.emulator.ledger.length > requestsBefore,
    'the upstream gets the request',
  )
  if (stream) await eventually(() => client.text().includes('"content":"'), 'content')
  client.socket.destroy()
}

async function rowAt(gateway: TestGateway, count: number): Promise<LedgerEntry> {
  const hasEnded = (): boolean =>
    gateway.lines.filter(({ msg }) => msg === 'exchange').length >= count
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

void t.test('drain_until_usage: reading ends when the counts have arrived', async (t) => {
  const gateway = await startGateway(t, { more: 'on_disconnect: drain_until_usage' })
  await leave(t, gateway, { model: 'gemini-2.5-flash' })
  const row = await rowAt(gateway, 1)
  t.match(row, { outcome: 'client_gone', source: 'reported' })
  await eventually(() => gateway.emulator.open() === 0, 'the upstream connection is closed')
  t.equal(gateway.emulator.ledger.at(-1)?.outcome, 'client_closed', 'before the end')
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
  t.match(await rowAt(plain, 1), { source: 'estimated', tokensAfterDisconnect: 0 })
  t.equal(plain.emulator.ledger.at(-1)?.outcome, 'client_closed')
})

void t.test('at most the allowed number at once, for at most the allowed time', async (t) => {
  const more = 'on_disconnect: drain\nafter_disconnect: { max_streams: 1, max_ms: 60 }'
  const gateway = await startGateway(t, { more })
  gateway.emulator.script({ times: 2, fault: { kind: 'stall', event: 20 } })
  await leave(t, gateway, { model: 'gpt-4o' })
  await leave(t, gateway, { model: 'gpt-4o' })
  const endedCount = (): number => gateway.lines.filter(({ msg }) => msg === 'exchange').length
  await eventually(() => endedCount() >= 1, 'the second is cancelled at once', 50)
  await eventually(() => endedCount() >= 2, 'the first when its time is over', 3000)
  for (const row of await rowsOf(gateway)) t.match(row, { source: 'estimated', status: 499 })
  await eventually(() => gateway.emulator.open() === 0, 'both connections are closed')
  await leave(t, gateway, { model: 'gemini-2.5-flash' })
  t.match(await rowAt(gateway, 3), { outcome: 'client_gone' }, 'the slot is free again')
})

void t.test('the end of the process ends them and writes their entries', async (t) => {
  const gateway = await startGateway(t, { more: 'on_disconnect: drain' })
  gateway.emulator.script({ times: 1, fault: { kind: 'stall', event: 20 } })
  await leave(t, gateway, { model: 'gpt-4o' })
  await gateway.plane.drain()
  t.match(await rowsOf(gateway), [{ source: 'estimated', outcome: 'client_gone' }])
})
