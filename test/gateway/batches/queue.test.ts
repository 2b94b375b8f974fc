/**
 * Goal: a batch onto an upstream without an API for batches runs as requests of their own, each checked and
 * charged like a direct one, and its results come in the order of its lines.
 * Method: the OpenAI SDK against a gateway with an emulated upstream, with both stores.
 */
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

t.setTimeout(120_000)

const QUEUE = 'operations: { batch: queue }'
const chat = (content: string, more: object = {}): object => ({
  model: 'gpt-5.5',
  messages: [{ role: 'user', content }],
  max_completion_tokens: 50,
  ...more,
})

for (const place of PLACES) {
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
