/**
 * Goal: Anthropic's clients make batches in their own form at any vendor: lines are translated there and
 * back, results have every line in its order, the batch is charged once, and other accounts see nothing.
 * Method: Anthropic's SDK against a gateway, and a provider with each vendor's API for batches; a queue.
 */
import Anthropic from '@anthropic-ai/sdk'
import type OpenAI from 'openai'
import t from 'tap'
import type { TestGateway } from '../../helpers/gateway.js'
import { rowsOf } from '../../helpers/ledger.js'
import { BatchProvider } from './batch-provider.js'
import { openBatchStage, PLACES, statusOf, type BatchStage } from './batch-stage.js'
import { PLACES_OF_DAY } from './places-of-day.js'
import { ofToday } from '../../helpers/long-suite.js'

t.setTimeout(120_000)

const MODELS = [
  ['gpt-batch-5', ''],
  ['claude-batch-5', ''],
  ['gemini-batch-5', ''],
  ['gpt-batch-m', 'operations: { batch: mistral }, '],
] as const

const PRICES = (model: string): string =>
  `prices: { ${model}: { input: 5, output: 30, service_tiers: { batch: 0.5 } } }`

/** The SDK of Anthropic for the account of another client. */
function anthropicOf({ origin }: TestGateway, { apiKey }: OpenAI): Anthropic {
  return new Anthropic({ apiKey, baseURL: origin, maxRetries: 0 })
}

function clientsOf({ gateway, client, other }: BatchStage): { own: Anthropic; foreign: Anthropic } {
  return { own: anthropicOf(gateway, client), foreign: anthropicOf(gateway, other) }
}

type Request = Anthropic.Messages.BatchCreateParams.Request

function requestsOf(model: string, count: number, more: object = {}): Request[] {
  return Array.from({ length: count }, (_, at) => ({
    custom_id: `c${at}`,
    params: { model, max_tokens: 50, messages: [{ role: 'user', content: `hi ${at}` }], ...more },
  }))
}

/** The batch when it has ended. */
async function ended(client: Anthropic, id: string): Promise<Anthropic.Messages.MessageBatch> {
  for (;;) {
    const batch = await client.messages.batches.retrieve(id)
    if (batch.processing_status === 'ended') return batch
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

async function resultsOf(
  client: Anthropic,
  id: string,
): Promise<Anthropic.Messages.MessageBatchIndividualResponse[]> {
  const results: Anthropic.Messages.MessageBatchIndividualResponse[] = []
  for await (const result of await client.messages.batches.results(id)) results.push(result)
  return results
}

for (const [at, [model, more]] of ofToday(MODELS.entries(), 2)) {
  const place = PLACES[at % 2] ?? PLACES[0]
  void t.test(`${model}, ${place.store}: translated, in order, charged once at half the price`, async (t) => {
    const provider = await new BatchProvider().start(t)
    const { origin } = provider
    const stage = await openBatchStage(t, place, {
      upstreams: { openai: `${origin}/v1`, anthropic: `${origin}/v1`, gemini: `${origin}/v1beta` },
      upstreamOptions: `${more}${PRICES(model)}`,
      more: 'limits: [{ scope: account, usd_per_day: 1 }]\n',
    })
    const { own, foreign } = clientsOf(stage)
    const requests = requestsOf(model, 4)
    Object.assign(requests[3]?.params ?? {}, { messages: 7 })
    const made = await own.messages.batches.create({ requests })
    t.match(made, {
      ...{ type: 'message_batch', processing_status: 'in_progress', results_url: null, ended_at: null },
      request_counts: { processing: 4, succeeded: 0, errored: 0, canceled: 0, expired: 0 },
    })
    t.match(made.id, /^msgbatch_/)
    await t.rejects(own.messages.batches.results(made.id), 'there are none yet')
    const batch = await ended(own, made.id)
    t.match(batch.request_counts, { processing: 0, succeeded: 2, errored: 2, canceled: 0, expired: 0 })
    t.equal(batch.results_url, `${stage.gateway.origin}/v1/messages/batches/${made.id}/results`)
    const results = await resultsOf(own, made.id)
    t.same(
      results.map(({ custom_id, result: { type } }) => `${custom_id} ${type}`),
      ['c0 succeeded', 'c1 errored', 'c2 succeeded', 'c3 errored'],
    )
    t.match(results[0]?.result, {
      message: { type: 'message', content: [{ type: 'text', text: 'reply to c0' }] },
    })
    t.match(results[1]?.result, { error: { type: 'error', error: { message: /too hot/ } } })
    t.match(results[3]?.result, {
      error: { type: 'error', error: { type: 'invalid_request_error', message: /messages/ } },
    })
    t.equal(provider.created, 1, 'it was sent once')
    t.equal(provider.lines.length, 3, 'the refused line was not sent')
    const rows = await rowsOf(stage.gateway)
    const charged = rows.filter(({ costNanoUsd }) => (costNanoUsd ?? 0) > 0)
    t.equal(charged.length, 1)
    t.match(charged[0], { requestId: made.id, costNanoUsd: 800_000, ingress: 'messages', batch: made.id })
    t.match(charged[0], { units: 'line=4', outcome: 'ok', source: 'reported' })

    for (const of of [
      () => foreign.messages.batches.retrieve(made.id),
      () => foreign.messages.batches.cancel(made.id),
      () => foreign.messages.batches.delete(made.id),
      () => foreign.get(`/v1/messages/batches/${made.id}/results`),
    ]) {
      t.equal(await statusOf(of()), 404)
    }
    t.same((await foreign.messages.batches.list()).data, [])
    t.equal(await statusOf(stage.client.batches.retrieve(made.id)), 404, 'it is none of OpenAI’s form')
    t.same((await stage.client.batches.list()).data, [])
    t.match((await own.messages.batches.list()).data, [{ id: made.id }])
    t.equal(await statusOf(own.messages.batches.cancel(made.id)), 400, 'it has ended')
    t.match(await own.messages.batches.delete(made.id), { id: made.id, type: 'message_batch_deleted' })
    t.equal(await statusOf(own.messages.batches.retrieve(made.id)), 404)
    t.same(
      (await stage.client.files.list()).data.filter(({ purpose }) => purpose !== 'batch_output'),
      [],
    )
  })
}

for (const place of PLACES_OF_DAY) {
  void t.test(`${place.store}: beta features, a cancellation, pages`, async (t) => {
    const provider = await new BatchProvider().start(t)
    const stage = await openBatchStage(t, place, {
      upstreams: { anthropic: `${provider.origin}/v1` },
      upstreamOptions: PRICES('claude-batch-5'),
    })
    const { own } = clientsOf(stage)
    provider.looks = -1_000
    const requests = requestsOf('claude-batch-5', 2)
    const made = await own.beta.messages.batches.create({
      requests,
      betas: ['output-300k-2026-03-24'],
    })
    while (provider.created === 0) await new Promise((resolve) => setTimeout(resolve, 50))
    t.match(String(provider.betas), /output-300k-2026-03-24/, 'the vendor gets the feature')
    t.equal((await own.messages.batches.cancel(made.id)).processing_status, 'canceling')
    t.ok((await own.messages.batches.retrieve(made.id)).cancel_initiated_at)
    t.equal(await statusOf(own.messages.batches.delete(made.id)), 400, 'it runs')
    provider.looks = 10
    await ended(own, made.id)
    const ids = [made.id]
    for (let at = 0; at < 3; at += 1) {
      ids.unshift((await own.messages.batches.create({ requests })).id)
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    const listed: string[] = []
    for await (const { id } of own.messages.batches.list({ limit: 2 })) listed.push(id)
    t.same(listed, ids, 'the SDK reads all pages')
    const before = await own.messages.batches.list({ limit: 1, before_id: ids[2] ?? '' })
    t.same([before.data.map(({ id }) => id), before.has_more], [[ids[1]], true])
  })

  void t.test(`${place.store}: onto a queue, with an upstream that has no batches`, async (t) => {
    const stage = await openBatchStage(t, place, { upstreamOptions: 'operations: { batch: queue }' })
    const { own } = clientsOf(stage)
    const made = await own.messages.batches.create({ requests: requestsOf('gpt-5.5', 3) })
    t.match(made, { emulated: 'queue' })
    const batch = await ended(own, made.id)
    t.match(batch.request_counts, { succeeded: 3, errored: 0 })
    const results = await resultsOf(own, made.id)
    for (const { result } of results) t.match(result, { type: 'succeeded', message: { role: 'assistant' } })
    t.same(
      results.map(({ custom_id }) => custom_id),
      ['c0', 'c1', 'c2'],
    )
  })

  void t.test(`${place.store}: bodies that are refused leave nothing`, async (t) => {
    const provider = await new BatchProvider().start(t)
    const stage = await openBatchStage(t, place, {
      upstreams: { anthropic: `${provider.origin}/v1` },
      files: ', max_bytes: 20000, max_line_bytes: 2000',
    })
    const { gateway } = stage
    const post = async (body: string | Buffer, more: Record<string, string> = {}): Promise<unknown> => {
      const headers = { 'x-api-key': gateway.secret, 'content-type': 'application/json', ...more }
      const res = await fetch(`${gateway.origin}/v1/messages/batches`, { method: 'POST', headers, body })
      const reply: unknown = await res.json()
      return Object.assign({ status: res.status }, reply)
    }
    const [one] = requestsOf('claude-batch-5', 1)
    const text = JSON.stringify(one)
    const long = text.replace('hi 0', 'a'.repeat(2_000))
    const other = JSON.stringify(requestsOf('claude-batch-4', 2)[1])
    for (const [body, expected] of [
      ['{"requests":[]}', /no lines/],
      ['{}', /no lines/],
      ['[]', /object/],
      ['{"requests":[', /not valid JSON/],
      [`{"requests":[${text},]}`, /not valid JSON/],
      [`{"requests":[${text},7]}`, /requests\[1\]: must be an object/],
      [`{"requests":[${text},{}]}`, /requests\[1\]: params must be an object/],
      [`{"requests":[${text},[${text}]]}`, /requests\[1\]: must be an object/],
      [`{"requests":[${text},${text}]}`, /requests\[1\]: custom_id "c0" is used twice \(requests\[0\]\)/],
      [`{"requests":[${text},${other}]}`, /requests\[1\]: params\.model must be "claude-batch-5"/],
      [`{"requests":[${text}],"requests":[${text}]}`, /requests/],
      [`{"requests":[${long}]}`, /requests\[0\]: must not be longer than 2000 bytes/],
      [`{"requests":[${text.replace('"c0"', '""')}]}`, /custom_id must be a text/],
      [`{"requests":[${text.replace('"max_tokens"', '"stream":true,"max_tokens"')}]}`, /stream/],
      [`{"requests":[${text.replace('"claude-batch-5"', '"no-such"')}]}`, /no-such/],
    ] as const) {
      t.match(await post(body), { type: 'error', error: { message: expected } }, body.slice(0, 80))
    }
    t.match(await post(`{"requests":[${' '.repeat(20_000)}]}`), { status: 413 })
    t.match(await post('{}', { 'content-type': 'text/plain' }), { status: 415 })
    t.match(await post('{}', { 'content-encoding': 'gzip' }), { status: 415 })
    t.equal(provider.created, 0)
    t.same((await stage.client.files.list()).data, [])
    const pretty = JSON.stringify({ requests: [one] }, null, 2)
    t.match(await post(pretty), { status: 200, request_counts: { processing: 1 } }, 'lines within a request')
  })
}
