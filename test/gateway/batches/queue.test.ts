/**
 * Goal: a batch onto an upstream without an API for batches runs as requests of their own, each checked and
 * charged like a direct one, and its results come in the order of its lines.
 * Method: the OpenAI SDK against a gateway with an emulated upstream, with both stores.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type OpenAI from 'openai'
import t from 'tap'
import { rowsOf } from '../../helpers/ledger.js'
import {
  batchOf,
  ended,
  openBatchStage,
  PLACES,
  statusOf,
  resultsIn,
  textOf,
  uploaded,
} from './batch-stage.js'
import { PLACES_OF_DAY } from './places-of-day.js'

t.setTimeout(120_000)

const QUEUE = 'operations: { batch: queue }'
const chat = (content: string, more: object = {}): object => ({
  model: 'gpt-5.5',
  messages: [{ role: 'user', content }],
  max_completion_tokens: 50,
  ...more,
})

const REPLY = {
  ...{ id: 'chatcmpl-1', object: 'chat.completion', created: 1, model: 'gpt-5.5' },
  choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'Yes.' } }],
  usage: { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 },
}

for (const place of PLACES_OF_DAY) {
  void t.test(`${place.store}: lines run, in order, with errors by line`, async (t) => {
    const { gateway, client, other } = await openBatchStage(t, place, { upstreamOptions: QUEUE })
    const bodies = [chat('one'), chat('two', { temperature: 'hot' }), chat('three'), chat('four')]
    const made = await batchOf(client, textOf(bodies))
    t.match(made, {
      object: 'batch',
      status: 'validating',
      request_counts: { total: 4, completed: 0, failed: 0 },
    })
    t.match(made, { emulated: 'queue' })
    const batch = await ended(client, made.id)
    t.match(batch, { status: 'completed', request_counts: { total: 4, completed: 3, failed: 1 } })
    const output = await resultsIn(client, batch.output_file_id)
    t.same(
      output.map(({ custom_id }) => custom_id),
      ['c0', 'c2', 'c3'],
      'in the order of the lines',
    )
    t.ok(output.every(({ response, error }) => response?.status_code === 200 && error === null))
    t.ok(output.every(({ response }) => (response?.body.choices?.[0]?.message.content ?? '') !== ''))
    const [failed] = await resultsIn(client, batch.error_file_id)
    t.match(failed, {
      custom_id: 'c1',
      response: { status_code: 400, body: { error: { param: 'temperature' } } },
    })
    const rows = await rowsOf(gateway)
    const charged = rows.filter(({ costNanoUsd }) => (costNanoUsd ?? 0) > 0)
    t.equal(charged.length, 3, 'one entry for each line')
    t.ok(charged.every(({ ingress }) => ingress === 'chat'))
    t.equal(rows.filter(({ requestId }) => requestId === made.id).length, 1, 'and one for the batch')
    const others = rows.filter(({ ingress }) => ingress !== 'chat' && ingress !== 'batches')
    t.equal(rows.filter(({ ingress }) => ingress === 'batches').length, 2, 'reading its state leaves none')
    t.equal(others.length, 1, 'the upload')
    const found = await client.batches.list()
    t.same(
      found.data.map(({ id }) => id),
      [made.id],
    )
    t.same((await other.batches.list()).data, [])
    t.equal(await statusOf(other.batches.retrieve(made.id)), 404)
    t.equal(await statusOf(other.batches.cancel(made.id)), 404)
    t.equal(await statusOf(other.files.content(batch.output_file_id ?? '')), 404)
    t.equal(await statusOf(client.batches.cancel(made.id)), 400)
  })

  void t.test(`${place.store}: a batch that is not valid is refused, and leaves nothing`, async (t) => {
    const { client, other, gateway } = await openBatchStage(t, place, { upstreamOptions: QUEUE })
    const refusal = async (text: string, of: OpenAI = client): Promise<unknown> =>
      batchOf(of, text).catch((error: unknown) => error)
    const line = { custom_id: 'a', method: 'POST', url: '/v1/chat/completions', body: chat('x') }
    const cases: readonly (readonly [text: string, message: RegExp])[] = [
      ['nonsense\n', /Line 1: /],
      [
        `${JSON.stringify(line)}\n${JSON.stringify(line)}\n`,
        /Line 2: custom_id "a" is used twice \(line 1\)/,
      ],
      [JSON.stringify({ ...line, custom_id: '' }), /Line 1: custom_id/],
      [JSON.stringify({ ...line, method: 'GET' }), /Line 1: method/],
      [JSON.stringify({ ...line, url: '/v1/embeddings' }), /Line 1: url/],
      [JSON.stringify({ ...line, body: chat('x', { stream: true }) }), /Line 1: body\.stream/],
      [JSON.stringify({ ...line, body: undefined }), /Line 1: body/],
      [textOf([chat('x'), chat('y', { model: 'gpt-5.4' })]), /Line 2: body\.model/],
      ['\n', /no lines/],
    ]
    for (const [text, message] of cases) {
      t.match(await refusal(text), { status: 400, message, param: 'input_file_id' }, String(message))
    }
    const unknown = textOf([chat('x', { model: 'unknown-1' })])
    t.match(await refusal(unknown), { status: 404, code: 'model_not_found' })
    const id = await uploaded(client, textOf([chat('x')]))
    const create = async (of: OpenAI, input_file_id: string): Promise<unknown> =>
      of.batches
        .create({ input_file_id, endpoint: '/v1/chat/completions', completion_window: '24h' })
        .catch((error: unknown) => error)
    t.match(await create(other, id), { status: 404 }, 'of another account')
    t.match(await create(client, 'file-x'), { status: 404 })
    t.same((await client.batches.list()).data, [])
    t.ok((await rowsOf(gateway)).every(({ costNanoUsd }) => costNanoUsd === 0))
  })
}

void t.test('a line that a limit refuses for the whole time is not sent again, also with 429', async (t) => {
  for (const [limit, kind] of [
    ['usd_total: 0.0000001', 'budget_exceeded'],
    ['tokens_total: 10', 'rate_limited'],
  ] as const) {
    const more = `limiting: { budget_status: 429 }\nlimits: [{ scope: key, ${limit} }]`
    const { gateway, client } = await openBatchStage(t, PLACES[0], { upstreamOptions: QUEUE, more })
    const { id } = await batchOf(client, textOf([chat('one'), chat('two')]))
    const batch = await ended(client, id)
    t.match(batch, { status: 'completed', request_counts: { completed: 0, failed: 2 } }, kind)
    const failed = await resultsIn(client, batch.error_file_id)
    t.same(
      failed.map(({ response }) => [response?.status_code, response?.body.error?.kind]),
      [
        [429, kind],
        [429, kind],
      ],
    )
    const lines = (await rowsOf(gateway)).filter(({ outcome }) => outcome === kind)
    t.equal(lines.length, 2, 'each line was sent once')
  }
})

void t.test('a batch is cancelled: what ran is kept, the rest does not run', async (t) => {
  const { client } = await openBatchStage(t, PLACES[0], {
    upstreamOptions: QUEUE,
    more: '',
  })
  const bodies = Array.from({ length: 40 }, (_, at) => chat(`[[delay=200]] line ${at}`))
  const made = await batchOf(client, textOf(bodies))
  const stopped = await client.batches.cancel(made.id)
  t.equal(stopped.status, 'cancelling')
  const batch = await ended(client, made.id)
  t.equal(batch.status, 'cancelled')
  const errors = await resultsIn(client, batch.error_file_id)
  const output = await resultsIn(client, batch.output_file_id)
  t.equal(errors.length + output.length, 40)
  t.ok(errors.length > 0 && errors.every(({ error }) => error?.code === 'batch_cancelled'))
})

void t.test('two gateways of a store share the work: each line runs once', async (t) => {
  const place = PLACES[1]
  const first = await openBatchStage(t, place, { upstreamOptions: QUEUE })
  const second = await openBatchStage(t, place, { upstreamOptions: QUEUE, with: first })
  const bodies = Array.from({ length: 20 }, (_, at) => chat(`line ${at}`))
  const made = await Promise.all([first, second].map(({ client }) => batchOf(client, textOf(bodies))))
  for (const { id } of made) {
    t.match(await ended(second.client, id), { status: 'completed', request_counts: { completed: 20 } })
  }
  const rows = await rowsOf(first.gateway)
  t.equal(rows.filter(({ costNanoUsd }) => (costNanoUsd ?? 0) > 0).length, 40)
})

for (const place of PLACES_OF_DAY) {
  void t.test(
    `${place.store}: a line that is sent again after a failure is charged for its reply`,
    async (t) => {
      const keys: string[] = []
      const server = createServer((req, res) => {
        req.resume().once('end', () => {
          keys.push(String(req.headers['idempotency-key']))
          // More often than the gateway itself tries a request.
          const isRefused = keys.length <= 4
          res.writeHead(isRefused ? 429 : 200, { 'content-type': 'application/json' })
          res.end(JSON.stringify(isRefused ? { error: { message: 'slow down' } } : REPLY))
        })
      }).listen(0, '127.0.0.1')
      t.teardown(() => server.close())
      await once(server, 'listening')
      const { client, gateway } = await openBatchStage(t, place, {
        upstreams: { openai: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1` },
        upstreamOptions: `${QUEUE}, prices: { gpt-5.5: { input: 5, output: 30 } }`,
        more: 'limits: [{ scope: account, usd_per_day: 1 }]\n',
      })
      const made = await batchOf(client, textOf([chat('one')]))
      t.match(await ended(client, made.id), {
        status: 'completed',
        request_counts: { completed: 1, failed: 0 },
      })
      t.equal(new Set(keys).size, 1, 'with the same idempotency-key, so that the upstream may run it once')
      const rows = (await rowsOf(gateway)).filter(({ ingress }) => ingress === 'chat')
      t.ok(rows.length >= 2, `${rows.length} requests`)
      t.match(rows[0], { costNanoUsd: 0 })
      t.match(rows.at(-1), { outcome: 'ok', costNanoUsd: 800_000 })
      t.ok(rows.every(({ batch }) => batch === made.id))
    },
  )
}
