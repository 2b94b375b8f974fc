/**
 * Goal: Google's clients make batches in their own form at any vendor: the requests are in the body, and
 * the results in the batch, in their order; it is charged once, and other accounts see nothing.
 * Method: Google's SDK against a gateway, and a provider with each vendor's API for batches; a queue.
 */
import { GoogleGenAI, JobState, type BatchJob, type InlinedRequest } from '@google/genai'
import type OpenAI from 'openai'
import { readFile } from 'node:fs/promises'
import t from 'tap'
import { objectOf, type JsonObject } from '../../../src/base/json.js'
import type { TestGateway } from '../../helpers/gateway.js'
import { rowsOf } from '../../helpers/ledger.js'
import { BatchProvider } from './batch-provider.js'
import { openBatchStage, PLACES, statusOf, uploaded, type BatchStage } from './batch-stage.js'
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

/** The SDK of Google for the account of another client. */
function googleOf({ origin }: TestGateway, { apiKey }: OpenAI): GoogleGenAI {
  const httpOptions = { baseUrl: origin, retryOptions: { attempts: 1 } }
  return new GoogleGenAI({ apiKey: String(apiKey), httpOptions })
}

function clientsOf({ gateway, client, other }: BatchStage): { own: GoogleGenAI; foreign: GoogleGenAI } {
  return { own: googleOf(gateway, client), foreign: googleOf(gateway, other) }
}

function requestsOf(model: string, count: number): InlinedRequest[] {
  return Array.from({ length: count }, (_, at) => ({
    model,
    contents: [{ role: 'user', parts: [{ text: `hi ${at}` }] }],
    config: { maxOutputTokens: 50 },
    metadata: { key: `c${at}`, note: `note ${at}` },
  }))
}

async function linesIn(path: string): Promise<JsonObject[]> {
  for (;;) {
    // The SDK does not wait for the end of the file.
    const text = await readFile(path, 'utf8').catch(() => '')
    if (text.endsWith('\n')) {
      return text
        .trimEnd()
        .split('\n')
        .map((line) => objectOf(JSON.parse(line)))
    }
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

/** The batch when it has ended. */
async function ended(client: GoogleGenAI, name: string): Promise<BatchJob> {
  const ends = [JobState.JOB_STATE_SUCCEEDED, JobState.JOB_STATE_FAILED, JobState.JOB_STATE_CANCELLED]
  for (;;) {
    const batch = await client.batches.get({ name })
    if (ends.some((state) => state === batch.state)) return batch
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
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
    const made = await own.batches.create({
      ...{ model, src: requestsOf(model, 3) },
      config: { displayName: 'three' },
    })
    t.match(made, { state: 'JOB_STATE_PENDING', displayName: 'three', model: `models/${model}` })
    const name = made.name ?? ''
    const batch = await ended(own, name)
    t.equal(batch.state, 'JOB_STATE_SUCCEEDED')
    const responses = batch.dest?.inlinedResponses ?? []
    t.same(
      responses.map(({ metadata }) => metadata),
      [0, 1, 2].map((each) => ({ key: `c${each}`, note: `note ${each}` })),
    )
    const texts = responses.map(({ response }) => response?.candidates?.[0]?.content?.parts?.[0]?.text)
    t.same(texts, ['reply to c0', undefined, 'reply to c2'])
    t.match(responses[1]?.error, { code: 3, message: /too hot/ })
    t.equal(provider.created, 1, 'it was sent once')
    const rows = await rowsOf(stage.gateway)
    const charged = rows.filter(({ costNanoUsd }) => (costNanoUsd ?? 0) > 0)
    t.equal(charged.length, 1)
    const id = name.replace('batches/', '')
    t.match(charged[0], { requestId: id, costNanoUsd: 800_000, ingress: 'gemini', units: 'line=3' })

    const raw = await fetch(`${stage.gateway.origin}/v1beta/${name}`, {
      headers: { 'x-goog-api-key': stage.gateway.secret },
    })
    const operation = (await raw.json()) as { response: unknown; metadata: JsonObject }
    t.match(operation, { done: true, metadata: { state: 'BATCH_STATE_SUCCEEDED' } })
    t.same(operation.response, operation.metadata['output'], 'the results are in both places')
    t.match(operation.metadata['batchStats'], { requestCount: '3', successfulRequestCount: '2' })

    for (const of of [
      () => foreign.batches.get({ name }),
      () => foreign.batches.cancel({ name }),
      () => foreign.batches.delete({ name }),
    ]) {
      t.equal(await statusOf(of()), 404)
    }
    t.equal(await statusOf(stage.client.batches.retrieve(id)), 404, 'it is none of OpenAI’s form')
    t.match((await own.batches.list()).page, [{ name, displayName: 'three' }])
    t.same((await foreign.batches.list()).page, [])
    t.equal(await statusOf(own.batches.cancel({ name })), 400, 'it has ended')
    await own.batches.delete({ name })
    t.equal(await statusOf(own.batches.get({ name })), 404)
  })
}

/** Lines of a batch, as Google's documentation has them. */
function linesOf(count: number, text = 'hi'): string {
  return Array.from({ length: count }, (_, at) => {
    const contents = [{ parts: [{ text: `${text} ${at}` }] }]
    return `${JSON.stringify({ key: `c${at}`, request: { contents } })}\n`
  }).join('')
}

for (const place of PLACES_OF_DAY) {
  void t.test(`${place.store}: lines uploaded by the SDK's file API, in parts`, async (t) => {
    const provider = await new BatchProvider().start(t)
    const { origin } = provider
    const stage = await openBatchStage(t, place, {
      upstreams: { openai: `${origin}/v1`, anthropic: `${origin}/v1`, gemini: `${origin}/v1beta` },
      files: ', max_line_bytes: 12000000',
    })
    const { own, foreign } = clientsOf(stage)
    // The SDK sends parts of 8 MiB.
    const long = linesOf(3, 'x'.repeat(4_000_000))
    const file = await own.files.upload({
      file: new Blob([long]),
      config: { mimeType: 'jsonl', displayName: 'my requests' },
    })
    t.match(file, { displayName: 'my requests', state: 'ACTIVE', sizeBytes: String(long.length) })
    const name = file.name ?? ''
    t.match(await own.files.get({ name }), { name, mimeType: 'application/jsonl' })
    t.equal(await statusOf(foreign.files.get({ name })), 404)
    t.equal(await statusOf(foreign.batches.create({ model: 'gpt-batch-5', src: { fileName: name } })), 404)
    const made = await own.batches.create({ model: 'gpt-batch-5', src: { fileName: name } })
    const batch = await ended(own, made.name ?? '')
    t.match(batch, { state: 'JOB_STATE_SUCCEEDED', error: undefined })
    const responses = batch.dest?.fileName ?? ''
    const folder = t.testdir()
    await own.files.download({ file: responses, downloadPath: `${folder}/results.jsonl` })
    const keys = await linesIn(`${folder}/results.jsonl`)
    t.same(
      keys.map(({ key }) => key),
      ['c0', 'c1', 'c2'],
    )
    await own.files.delete({ name })
    t.equal(await statusOf(own.files.get({ name })), 404)
  })

  void t.test(
    `${place.store}: parts of an upload that are refused, repeated, asked for, cancelled`,
    async (t) => {
      const stage = await openBatchStage(t, place, {
        files: ', max_line_bytes: 2000, max_bytes: 10000',
        // Two upstreams of Google: none of them has the files of its clients.
        cloud: 'dialect: gemini, base_url: "http://127.0.0.1:9/v1beta", api_key: other',
      })
      const { gateway } = stage
      const send = async (
        url: string,
        headers: Record<string, string>,
        body = '',
      ): Promise<{
        status: number
        upload: string | null
        url: string
        received: string | null
        text: string
      }> => {
        const res = await fetch(url, {
          method: 'POST',
          headers: { 'x-goog-api-key': gateway.secret, ...headers },
          body,
        })
        return {
          status: res.status,
          upload: res.headers.get('x-goog-upload-status'),
          url: res.headers.get('x-goog-upload-url') ?? '',
          received: res.headers.get('x-goog-upload-size-received'),
          text: await res.text(),
        }
      }
      const begin = (length: number, body = '{}') =>
        send(
          `${gateway.origin}/upload/v1beta/files`,
          {
            ...{ 'x-goog-upload-protocol': 'resumable', 'x-goog-upload-command': 'start' },
            'x-goog-upload-header-content-length': String(length),
            'x-goog-upload-header-content-type': 'application/jsonl',
          },
          body,
        )
      const part = (command: string, offset: number): Record<string, string> => ({
        'x-goog-upload-command': command,
        'x-goog-upload-offset': String(offset),
      })
      t.match(await begin(10_001), { status: 413, text: /10000 bytes/ })
      t.match(await begin(10, '{"file":{"name":"files/mine"}}'), { status: 400, text: /file.name/ })
      const lines = linesOf(2)
      const begun = await begin(lines.length)
      t.match(begun, {
        status: 200,
        upload: 'active',
        url: `${gateway.origin}/upload/v1beta/files?upload_id=file-`,
      })
      t.match(await send(begun.url, part('upload', 5), 'late'), { status: 400, text: /must be 0/ })
      t.match(await send(begun.url, part('upload', 0), lines.slice(0, 7)), { status: 200, upload: 'active' })
      t.match(await send(begun.url, part('query', 0)), { status: 200, upload: 'active', received: '7' })
      t.match(await send(begun.url, part('upload', 0), lines), { status: 400, text: /must be 7/ })
      t.match(await send(begun.url, part('stop', 7)), { status: 400, text: /x-goog-upload-command/ })
      t.match(
        await send(begun.url.replace('file-', 'other-'), part('upload', 7), 'a'),
        { status: 400 },
        'it is no upload of the gateway',
      )
      const done = await send(begun.url, part('upload, finalize', 7), lines.slice(7))
      t.match(done, { status: 200, upload: 'final', text: new RegExp(`"sizeBytes":"${lines.length}"`) })
      t.match(await send(begun.url, part('upload', lines.length), 'x'), { status: 400, text: /complete/ })

      const cancelled = await begin(100)
      t.match(await send(cancelled.url, part('cancel', 0)), { status: 200, upload: 'cancelled' })
      t.match(await send(cancelled.url, part('upload', 0), 'x'), { status: 404 })
      const long = await begin(3_000)
      const refused = await send(long.url, part('upload, finalize', 0), `{}\n${'x'.repeat(2_001)}`)
      t.match(refused, { status: 400, text: /Line 2: must not be longer than 2000 bytes/ })
      t.match(await send(long.url, part('query', 0)), { status: 404 }, 'nothing of it is left')
      const listed = await fetch(`${gateway.origin}/v1beta/files`, {
        headers: { 'x-goog-api-key': gateway.secret },
      })
      const { files } = (await listed.json()) as { files: JsonObject[] }
      t.equal(files.length, 1, 'complete files alone')
    },
  )

  void t.test(`${place.store}: a queue, requests without names, a cancellation, pages`, async (t) => {
    const stage = await openBatchStage(t, place, { upstreamOptions: 'operations: { batch: queue }' })
    const { own } = clientsOf(stage)
    const src = requestsOf('gpt-5.5', 3).map(({ contents }) => (contents === undefined ? {} : { contents }))
    const made = await own.batches.create({ model: 'gpt-5.5', src })
    const batch = await ended(own, made.name ?? '')
    const responses = batch.dest?.inlinedResponses ?? []
    t.equal(responses.length, 3)
    t.ok(responses.every(({ response, metadata }) => response !== undefined && metadata === undefined))
    const second = await own.batches.create({ model: 'gpt-5.5', src })
    await ended(own, second.name ?? '')
    const listed: unknown[] = []
    for await (const { name } of await own.batches.list({ config: { pageSize: 1 } })) listed.push(name)
    t.same(listed, [second.name, made.name])
  })

  void t.test(`${place.store}: bodies that are refused leave nothing`, async (t) => {
    const stage = await openBatchStage(t, place, { files: ', max_line_bytes: 2000' })
    const { gateway } = stage
    const post = async (body: unknown, model = 'gemini-3.5-flash'): Promise<unknown> => {
      const headers = { 'x-goog-api-key': gateway.secret, 'content-type': 'application/json' }
      const url = `${gateway.origin}/v1beta/models/${model}:batchGenerateContent`
      const res = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })
      const reply: unknown = await res.json()
      return Object.assign({ status: res.status }, reply)
    }
    const request = { contents: [{ parts: [{ text: 'hi' }] }] }
    const batchOf = (...requests: unknown[]): object => ({
      batch: { inputConfig: { requests: { requests } } },
    })
    for (const [body, expected] of [
      [batchOf(), /no lines/],
      [batchOf({ request: 7 }), /requests\[0\]: request must be an object/],
      [batchOf({ request, metadata: 7 }), /metadata must be an object/],
      [batchOf({ request, metadata: { key: 7 } }), /metadata\.key must be a text/],
      [
        batchOf({ request, metadata: { key: 'a' } }, { request, metadata: { key: 'a' } }),
        /requests\[1\]: metadata\.key "a" is used twice/,
      ],
      [batchOf({ request: { ...request, model: 'models/other' } }), /request\.model must be/],
      [{ batch: { inputConfig: { fileName: 'files/file-0' } } }, /file-0/],
      [{ batch: { inputConfig: { fileName: 'files/abc123' } } }, /Files of other types are at Google/],
    ] as const) {
      t.match(await post(body), { error: { message: expected } })
    }
    t.match(await post(batchOf({ request }), 'no-such'), { status: 404 })
    t.match(await post({ batch: { displayName: 7, inputConfig: {} } }), { error: { message: /displayName/ } })
  })
}

void t.test('a batch from a file of the gateway: its results are a file for Google’s clients', async (t) => {
  const stage = await openBatchStage(t, PLACES[0], { upstreamOptions: 'operations: { batch: queue }' })
  const { own, foreign } = clientsOf(stage)
  const request = { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] }
  const id = await uploaded(stage.client, `${JSON.stringify({ key: 'k', request })}\n`)
  const made = await own.batches.create({ model: 'gemini-2.5-flash', src: { fileName: `files/${id}` } })
  const { dest } = await ended(own, made.name ?? '')
  const name = dest?.fileName ?? ''
  t.match(await own.files.get({ name }), { name, mimeType: 'application/jsonl', source: 'GENERATED' })
  const download = (key: string | null): Promise<Response> =>
    fetch(`${stage.gateway.origin}/v1beta/${name}:download?alt=media`, {
      headers: { 'x-goog-api-key': key ?? '' },
    })
  t.match(await (await download(stage.client.apiKey)).text(), /^\{"key":"k","response":/)
  t.equal((await download(stage.other.apiKey)).status, 404)
  t.equal(await statusOf(foreign.files.delete({ name })), 404)
  await own.files.delete({ name })
  t.equal(await statusOf(own.files.get({ name })), 404)
})

void t.test('version v1 of Google’s paths, which OpenAI’s clients share', async (t) => {
  const stage = await openBatchStage(t, PLACES[0], { upstreamOptions: 'operations: { batch: queue }' })
  const httpOptions = { baseUrl: stage.gateway.origin, apiVersion: 'v1' }
  const own = new GoogleGenAI({ apiKey: stage.client.apiKey ?? '', httpOptions })
  const src = [{ contents: [{ role: 'user', parts: [{ text: 'hi' }] }] }]
  const made = await own.batches.create({ model: 'gemini-2.5-flash', src })
  const name = made.name ?? ''
  t.equal((await ended(own, name)).dest?.inlinedResponses?.length, 1)
  await own.batches.delete({ name })
  t.equal(await statusOf(own.batches.get({ name })), 404)
  const cancelled = await own.batches.create({ model: 'gemini-2.5-flash', src })
  t.not(await statusOf(own.batches.cancel({ name: cancelled.name ?? '' })), 404)
  const file = await own.files.upload({ file: new Blob(['hi']), config: { mimeType: 'text/plain' } })
  t.match(await own.files.get({ name: file.name ?? '' }), { sizeBytes: '2' })
  t.strictSame((await stage.client.batches.list()).data, [], 'no batches of OpenAI’s form')
  await own.files.delete({ name: file.name ?? '' })
  const rows = (await rowsOf(stage.gateway)).filter(({ batch }) => batch === null)
  t.ok(rows.length >= 5, 'entries of what was changed')
  t.same([...new Set(rows.map(({ ingress }) => ingress))], ['gemini'], 'as below /v1beta')
})
