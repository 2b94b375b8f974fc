/**
 * Goal: the lines of a batch have the dimensions of the request that made it, and their own: in the ledger,
 * and by limits, which hold for a run that is spread over lines and direct requests.
 * Method: the OpenAI SDK against a gateway, with lines that run as requests of their own and with a vendor.
 */
import t from 'tap'
import type { BatchCreateParams } from 'openai/resources/batches'
import { openStore } from '../../../src/store/open-store.js'
import { rowsOf } from '../../helpers/ledger.js'
import { BatchProvider } from './batch-provider.js'
import { ended, openBatchStage, PLACES, resultsIn, textOf, uploaded, type BatchStage } from './batch-stage.js'
import { PLACES_OF_DAY } from './places-of-day.js'

t.setTimeout(120_000)

const MODEL = 'gpt-batch-5'
const PRICES = `prices: { ${MODEL}: { input: 5, output: 30, service_tiers: { batch: 0.5 } } }`
const DIMENSIONS = `
dimensions:
  - { name: end_user, from: [header:x-end-user, body:user] }
  - { name: run, from: [header:x-run-id, body:metadata.run], required: true }
limits:
  - { scope: 'dimension:run', usd_total: 0.01, requests_total: 3 }
`
const line = (more: object = {}): object => ({
  ...{ model: MODEL, messages: [{ role: 'user', content: 'hi' }], max_completion_tokens: 50 },
  ...more,
})
const ofRun = (run: string): object => line({ metadata: { run } })

async function made(
  { client }: BatchStage,
  lines: readonly object[],
  { headers = {}, ...more }: Partial<BatchCreateParams> & { readonly headers?: Record<string, string> } = {},
) {
  const id = await uploaded(client, textOf(lines))
  const { data, response } = await client.batches
    .create(
      { input_file_id: id, endpoint: '/v1/chat/completions', completion_window: '24h', ...more },
      { headers },
    )
    .withResponse()
  return { batch: data, status: response.status }
}

async function entriesOf({ gateway }: BatchStage): Promise<[string | null, string, number | null][]> {
  const rows = await rowsOf(gateway)
  return rows
    .filter(({ costNanoUsd, outcome }) => (costNanoUsd ?? 0) > 0 || outcome !== 'ok')
    .map(({ dimensions, outcome, costNanoUsd }) => [dimensions, outcome, costNanoUsd])
}

for (const place of PLACES_OF_DAY) {
  void t.test(`${place.store}: queued lines have the values of their batch and their own`, async (t) => {
    const stage = await openBatchStage(t, place, {
      upstreamOptions: `operations: { batch: queue }, ${PRICES}`,
      more: DIMENSIONS,
    })
    const { batch } = await made(
      stage,
      [line({ user: 'bob' }), line({ user: 'cy', metadata: { run: 'forged' } })],
      { headers: { 'x-run-id': 'r1' } },
    )
    t.match(await ended(stage.client, batch.id), { request_counts: { completed: 2 } })
    t.same((await entriesOf(stage)).map(([dimensions]) => dimensions).sort(), [
      'end_user=bob run=r1',
      'end_user=cy run=r1',
    ])
    const named = (await rowsOf(stage.gateway)).filter(({ requestId }) => requestId === batch.id)
    t.same(named[0]?.dimensions, 'run=r1', 'the batch itself')
    const second = await made(stage, [line()], { headers: { 'x-run-id': 'r1' } }).catch(
      (error: unknown) => error,
    )
    t.match(second, { status: 429, message: /run 'r1'/ }, 'the batch and two lines are three requests')
    const own = await made(stage, [ofRun('r2'), line()])
    t.match(await ended(stage.client, own.batch.id), { request_counts: { completed: 1, failed: 1 } })
    const [refused] = await resultsIn(stage.client, (await ended(stage.client, own.batch.id)).error_file_id)
    t.match(refused, { custom_id: 'c1', response: { status_code: 400 } })
    t.match(refused?.response?.body.error?.message, "no value of the dimension 'run'")
  })

  void t.test(`${place.store}: a vendor's batch is charged by the values of its lines`, async (t) => {
    const provider = await new BatchProvider().start(t)
    const stage = await openBatchStage(t, place, {
      upstreams: { openai: `${provider.origin}/v1` },
      upstreamOptions: PRICES,
      more: DIMENSIONS,
    })
    const { batch } = await made(stage, [ofRun('r1'), ofRun('r2'), ofRun('r1'), line(), ofRun('r2')])
    t.match(await ended(stage.client, batch.id), { request_counts: { completed: 3, failed: 2 } })
    // Two lines, and one (the vendor refuses c1), at half of 100 tokens at $5 and 10 at $30 a million.
    t.same((await entriesOf(stage)).sort(), [
      ['run=r1', 'ok', 800_000],
      ['run=r2', 'ok', 400_000],
    ])
    const all = await rowsOf(stage.gateway)
    t.same(all.filter(({ requestId }) => requestId.startsWith(batch.id)).length, 2)
    const large = line({ metadata: { run: 'r2' }, max_completion_tokens: 1_000 })
    const tooMuch = await made(stage, [ofRun('r4'), large]).catch((error: unknown) => error)
    t.match(tooMuch, { status: 402, message: /run 'r2'/ })
    const fine = await made(stage, [ofRun('r3')])
    t.match(await ended(stage.client, fine.batch.id), { request_counts: { completed: 1 } })
    const third = await made(stage, [ofRun('r3')])
    await ended(stage.client, third.batch.id)
    t.equal((await made(stage, [ofRun('r3')])).status, 200, 'of three')
    const more = ofRun('r4')
    t.equal(
      (await made(stage, [line({ ...more, max_completion_tokens: 600 })])).status,
      200,
      'a refusal takes no money',
    )
    const over = await made(stage, [ofRun('r3')]).catch((error: unknown) => error)
    t.match(over, { status: 429, message: /run 'r3'/ })
  })
}

void t.test('a batch has at most a hundred different values', async (t) => {
  const provider = await new BatchProvider().start(t)
  const stage = await openBatchStage(t, PLACES[0], {
    upstreams: { openai: `${provider.origin}/v1` },
    upstreamOptions: PRICES,
    more: DIMENSIONS,
  })
  const lines = Array.from({ length: 101 }, (_, at) => ofRun(`r${at}`))
  const refused = await made(stage, lines).catch((error: unknown) => error)
  t.match(refused, { status: 400, message: /Line 101: .*100 different values/ })
  t.equal(provider.created, 0)
  const { batch } = await made(stage, lines.slice(1), { metadata: { run: 'r0' } })
  t.match(await ended(stage.client, batch.id), { status: 'completed' })
})

void t.test('a value that no line can have is required of the batch', async (t) => {
  const stage = await openBatchStage(t, PLACES[0], {
    upstreamOptions: 'operations: { batch: queue }',
    more: 'dimensions: [{ name: run, from: [header:x-run-id], required: true }]\n',
  })
  const refused = await made(stage, [line({ model: 'gpt-5.5' })]).catch((error: unknown) => error)
  t.match(refused, { status: 400, message: /no value of the dimension 'run'/ })
})

void t.test('a batch at a vendor ends with its run', async (t) => {
  const provider = await new BatchProvider().start(t)
  const stage = await openBatchStage(t, PLACES[0], {
    upstreams: { openai: `${provider.origin}/v1` },
    upstreamOptions: PRICES,
    more: DIMENSIONS,
  })
  // The vendor does not end it by itself.
  provider.looks = -1_000
  const { batch } = await made(stage, [ofRun('r1'), ofRun('r1')])
  const other = await made(stage, [ofRun('r2')])
  while ((await stage.client.batches.retrieve(batch.id)).status !== 'in_progress')
    await new Promise((resolve) => setTimeout(resolve, 50))
  const store = await openStore(stage.gateway.store)
  t.teardown(() => store.close())
  const [account] = (
    await store.listAccounts({ order: 'newest_first', after: null, limit: 10 })
  ).items.filter(({ email }) => email !== 'other@example.com')
  const name = { accountId: account?.id ?? '', dimension: 'run', value: 'r1' }
  await store.dimensionValues.end(name, 3_600_000, Date.now())
  t.match(await ended(stage.client, batch.id), { status: 'cancelled' })
  t.ok(provider.cancels.length > 0, 'at the vendor, too')
  t.not((await stage.client.batches.retrieve(other.batch.id)).status, 'cancelled', 'of another run')
  const later = await made(stage, [ofRun('r1')])
  const end = await ended(stage.client, later.batch.id)
  t.match(end, { request_counts: { completed: 0, failed: 1 } })
  const [refused] = await resultsIn(stage.client, end.error_file_id)
  t.match(refused, { response: { status_code: 403, body: { error: { kind: 'run_ended' } } } })
})
