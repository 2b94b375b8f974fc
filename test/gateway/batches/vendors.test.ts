/**
 * Goal: a batch of OpenAI's format runs at each vendor's API for batches: each line is translated there and
 * back, results come in the order of the lines, and it is charged once, at the price of batches.
 * Method: the OpenAI SDK against a gateway, and small providers with each API that answer in another order.
 */
import t from 'tap'
import { rowsOf } from '../../helpers/ledger.js'
import { BatchProvider } from './batch-provider.js'
import { batchOf, ended, openBatchStage, PLACES, resultsIn, textOf } from './batch-stage.js'
import { PLACES_OF_DAY } from './places-of-day.js'
import { ofToday } from '../../helpers/long-suite.js'

t.setTimeout(120_000)

const PRICES = (model: string): string =>
  `prices: { ${model}: { input: 5, output: 30, service_tiers: { batch: 0.5 } } }`

const MODELS = [
  ['gpt-batch-5', ''],
  ['claude-batch-5', ''],
  ['gemini-batch-5', ''],
  ['gpt-batch-m', 'operations: { batch: mistral }, '],
] as const

for (const [at, [model, more]] of ofToday(MODELS.entries(), 2)) {
  const place = PLACES[at % 2] ?? PLACES[0]
  void t.test(`${model}, ${place.store}: translated, in order, charged once at half the price`, async (t) => {
    const provider = await new BatchProvider().start(t)
    const { origin } = provider
    const { gateway, client } = await openBatchStage(t, place, {
      upstreams: { openai: `${origin}/v1`, anthropic: `${origin}/v1`, gemini: `${origin}/v1beta` },
      upstreamOptions: `${more}${PRICES(model)}`,
      more: 'limits: [{ scope: account, usd_per_day: 1 }]\n',
    })
    const chat = (own: object = {}): object => ({
      ...{ model, messages: [{ role: 'user', content: 'hi' }], max_completion_tokens: 50 },
      ...own,
    })
    const made = await batchOf(client, textOf([chat(), chat(), chat(), chat({ tools: 7 })]))
    t.equal(made.status, 'validating')
    const batch = await ended(client, made.id)
    t.match(batch, { status: 'completed', request_counts: { total: 4, completed: 2, failed: 2 } })
    const output = await resultsIn(client, batch.output_file_id)
    t.same(
      output.map(({ custom_id }) => custom_id),
      ['c0', 'c2'],
    )
    t.same(
      output.map(({ response }) => response?.body.choices?.[0]?.message.content),
      ['reply to c0', 'reply to c2'],
    )
    const errors = await resultsIn(client, batch.error_file_id)
    t.match(errors, [
      { custom_id: 'c1', response: { status_code: 400, body: { error: { message: /too hot/ } } } },
      { custom_id: 'c3', response: { status_code: 400, body: { error: { param: 'tools' } } } },
    ])
    t.equal(provider.created, 1, 'it was sent once')
    t.equal(provider.lines.length, 3, 'the refused line was not sent')
    for (let read = 0; read < 3; read += 1) await client.batches.retrieve(made.id)
    const rows = await rowsOf(gateway)
    const charged = rows.filter(({ costNanoUsd }) => (costNanoUsd ?? 0) > 0)
    t.equal(charged.length, 1)
    // Two lines at half of 100 tokens at $5 and 10 at $30 a million.
    t.match(charged[0], {
      requestId: made.id,
      costNanoUsd: 800_000,
      ingress: 'batches',
      source: 'reported',
      batch: made.id,
    })
    t.match(charged[0]?.usage, { input: 200, output: 20 })
    t.match(charged[0], { units: 'line=4', outcome: 'ok' })
    const { upstream } = charged[0] ?? {}
    const metrics = await gateway.metrics.text()
    for (const [result, lines] of [
      ['ok', 2],
      ['error', 1],
      ['refused', 1],
    ] as const) {
      const line = `sluice_batch_lines_total{upstream="${upstream}",result="${result}"} ${lines}\n`
      t.ok(metrics.includes(line), line)
    }
    t.match(metrics, new RegExp(`sluice_batch_polls_total\\{upstream="${upstream}",result="ok"\\} [2-9]\n`))
    t.match(metrics, /sluice_batches\{state="running"\} \d\n/)
  })
}

void t.test('a budget that is too small refuses the batch before anything is sent', async (t) => {
  const provider = await new BatchProvider().start(t)
  const { client } = await openBatchStage(t, PLACES[0], {
    upstreams: { openai: `${provider.origin}/v1` },
    upstreamOptions: PRICES('gpt-batch-5'),
    more: 'limits: [{ scope: account, usd_per_day: 0.002 }]\n',
  })
  const line = {
    model: 'gpt-batch-5',
    messages: [{ role: 'user', content: 'hi' }],
    max_completion_tokens: 50,
  }
  const refused: unknown = await batchOf(client, textOf([line, line])).catch((error: unknown) => error)
  t.match(refused, { status: 402 })
  t.equal(provider.created, 0)
  const made = await batchOf(client, textOf([line]))
  t.equal((await ended(client, made.id)).status, 'completed')
})

void t.test('a cancelled batch is cancelled at the vendor, and what ran is charged', async (t) => {
  const provider = await new BatchProvider().start(t)
  const { client, gateway } = await openBatchStage(t, PLACES[0], {
    upstreams: { openai: `${provider.origin}/v1` },
    upstreamOptions: PRICES('gpt-batch-5'),
  })
  provider.looks = -1_000
  const line = {
    model: 'gpt-batch-5',
    messages: [{ role: 'user', content: 'hi' }],
    max_completion_tokens: 50,
  }
  const made = await batchOf(client, textOf([line, line]))
  while ((await client.batches.retrieve(made.id)).status !== 'in_progress')
    await new Promise((resolve) => setTimeout(resolve, 50))
  t.equal((await client.batches.cancel(made.id)).status, 'cancelling')
  const batch = await ended(client, made.id)
  t.match(batch, { status: 'cancelled', request_counts: { completed: 1, failed: 1 } })
  t.same(provider.cancels, ['/v1/batches/batch_up/cancel'])
  const charged = (await rowsOf(gateway)).filter(({ costNanoUsd }) => (costNanoUsd ?? 0) > 0)
  t.same(
    charged.map(({ costNanoUsd, outcome }) => ({ costNanoUsd, outcome })),
    [{ costNanoUsd: 400_000, outcome: 'cancelled' }],
  )
})

for (const place of PLACES_OF_DAY) {
  void t.test(
    `${place.store}: a reply that belongs to no line is charged at the maximum, and logged`,
    async (t) => {
      const provider = await new BatchProvider().start(t)
      const { client, gateway } = await openBatchStage(t, place, {
        upstreams: { openai: `${provider.origin}/v1` },
        upstreamOptions: PRICES('gpt-batch-5'),
        more: 'limits: [{ scope: account, usd_per_day: 1 }]\n',
      })
      const body = { model: 'gpt-batch-5', messages: [{ role: 'user', content: 'hi' }] }
      provider.strays = ['c7', 'c1'].map((key) => ({ key, body }))
      const made = await batchOf(client, textOf([{ ...body, max_completion_tokens: 50 }]))
      t.match(await ended(client, made.id), {
        status: 'completed',
        request_counts: { completed: 1, failed: 0 },
      })
      const [own] = (await rowsOf(gateway)).filter(({ requestId }) => requestId === made.id)
      // Its own reply, and 50 tokens of output and those of its input at half the price.
      t.match(own, { source: 'assumed', outcome: 'ok' })
      t.match(own?.usage, { output: 60 })
      t.ok((own?.costNanoUsd ?? 0) > 400_000 + 750_000, String(own?.costNanoUsd))
      const logged = gateway.lines.filter(({ msg }) => msg === 'a batch has results of unknown lines')
      t.equal(logged.length, 1)
      t.match(logged[0]?.['reason'], `${made.id}: 2 results, 1 of them charged`)
    },
  )
}

const FAULTS = [
  ['reorder', 'completed', { total: 4, completed: 4, failed: 0 }],
  ['expire', 'expired', { total: 4, completed: 2, failed: 2 }],
  ['lose-result', 'completed', { total: 4, completed: 3, failed: 1 }],
] as const

for (const [at, [fault, status, counts]] of ofToday(FAULTS.entries(), 3)) {
  const place = PLACES[at % 2] ?? PLACES[0]
  void t.test(`a job of Mistral with the fault ${fault}, ${place.store}`, async (t) => {
    const { gateway, client } = await openBatchStage(t, place, {
      upstreamOptions: 'operations: { batch: mistral }',
    })
    gateway.emulator.script({
      match: ({ method, path }) => method === 'POST' && path === '/batch/jobs',
      times: 1,
      fault: { kind: fault },
    })
    const line = { model: 'gpt-5.4', messages: [{ role: 'user', content: 'hi' }] }
    const made = await batchOf(client, textOf([line, line, line, line]))
    const batch = await ended(client, made.id)
    t.match(batch, { status, request_counts: counts })
    const output = await resultsIn(client, batch.output_file_id)
    t.same(
      output.map(({ custom_id }) => custom_id),
      ['c0', 'c1', 'c2', 'c3'].slice(0, counts.completed),
    )
    const own = (await rowsOf(gateway)).filter(({ requestId }) => requestId === made.id)
    t.match(own, [{ units: 'line=4', batch: made.id }])
    t.equal(own.length, 1)
  })
}
