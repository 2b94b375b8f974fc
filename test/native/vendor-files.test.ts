/**
 * Goal: Anthropic's and Google's clients upload, list, read and delete files at the gateway as at the vendor:
 * they go to the vendor's upstream, belong to the account, are free and without native access, and requests
 * name them there only.
 * Method: the vendors' SDKs of two accounts against a gateway and the emulator, on both stores.
 */
import { setTimeout as delay } from 'node:timers/promises'
import Anthropic, { toFile } from '@anthropic-ai/sdk'
import { createPartFromUri, createUserContent, GoogleGenAI } from '@google/genai'
import { AzureOpenAI } from 'openai'
import t, { type Test } from 'tap'
import { objectOf, stringOf, type JsonObject } from '../../src/base/json.js'
import { digestOf } from '../../src/accounts/key-secret.js'
import { startEmulator, type Emulator } from '../../src/emulator/server.js'
import { openBatchStage, PLACES, statusOf, type BatchStage } from '../gateway/batches/batch-stage.js'
import { PLACES_OF_DAY } from '../gateway/batches/places-of-day.js'
import { openStore } from '../../src/store/open-store.js'
import { rowsOf } from '../helpers/ledger.js'
import { endKey } from '../helpers/store-changes.js'

t.setTimeout(120_000)

interface Stage extends BatchStage {
  readonly emulator: Emulator
  readonly anthropic: (key: 'client' | 'other') => Anthropic
  readonly google: (key: 'client' | 'other') => GoogleGenAI
}

async function open(
  t: Test,
  place: (typeof PLACES)[number],
  { files = '', more = '' }: { readonly files?: string; readonly more?: string } = {},
): Promise<Stage> {
  const emulator = await startEmulator()
  t.teardown(() => emulator.close())
  const { openai, anthropic, gemini } = emulator.baseUrls
  const stage = await openBatchStage(t, place, { upstreams: { openai, anthropic, gemini }, files, more })
  const { origin } = stage.gateway
  return {
    ...stage,
    emulator,
    anthropic: (key) => new Anthropic({ apiKey: stage[key].apiKey, baseURL: origin, maxRetries: 0 }),
    google: (key) => new GoogleGenAI({ apiKey: stage[key].apiKey ?? '', httpOptions: { baseUrl: origin } }),
  }
}

/** The paths that the emulator received, without the cost of models. */
function seen({ emulator }: Stage): string[] {
  return emulator.ledger.map(({ method, path }) => `${method} ${path}`)
}

for (const place of PLACES_OF_DAY) {
  void t.test(`${place.store}: Anthropic's files`, async (t) => {
    const stage = await open(t, place, { more: 'limits: [{ scope: account, usd_per_day: 50 }]\n' })
    const [own, foreign] = [stage.anthropic('client'), stage.anthropic('other')]
    const file = await own.files.upload({
      file: await toFile(Buffer.from('hello'), 'a.txt', { type: 'text/plain' }),
    })
    t.match(file, { id: /^file_/, type: 'file', filename: 'a.txt', mime_type: 'text/plain', size_bytes: 5 })
    t.match(await own.files.retrieveMetadata(file.id), file)
    const beta = await own.beta.files.list()
    t.strictSame(
      beta.data.map(({ id }) => id),
      [file.id],
    )
    t.strictSame((await foreign.files.list()).data, [])
    t.equal(await statusOf(own.files.download(file.id)), 400, "the vendor's own answer")
    const before = seen(stage).length
    for (const asked of [
      foreign.files.retrieveMetadata(file.id),
      foreign.files.download(file.id),
      foreign.files.delete(file.id),
    ]) {
      t.equal(await statusOf(asked), 404)
    }
    const message = (client: Anthropic): Promise<Anthropic.Message> =>
      client.messages.create({
        ...{ model: 'claude-sonnet-4-6', max_tokens: 50 },
        messages: [
          {
            role: 'user',
            content: [
              { type: 'document', source: { type: 'file', file_id: file.id } } as never,
              { type: 'text', text: 'read' },
            ],
          },
        ],
      })
    t.equal(await statusOf(message(foreign)), 404)
    t.equal(seen(stage).length, before, 'nothing of it reached the vendor')
    t.equal((await message(own)).type, 'message')
    t.match(stage.emulator.ledger.at(-1)?.body, {
      messages: [{ content: [{ source: { file_id: file.id } }, {}] }],
    })
    t.match(await own.files.delete(file.id), { id: file.id, type: 'file_deleted' })
    t.equal(await statusOf(own.files.retrieveMetadata(file.id)), 404)
    const rows = (await rowsOf(stage.gateway)).filter(({ ingress }) => ingress === 'files')
    t.ok(rows.length >= 2, 'entries of what was changed')
    t.ok(
      rows.every(({ costNanoUsd: cost }) => cost === 0),
      'files are free',
    )
  })

  void t.test(`${place.store}: Google's files`, async (t) => {
    const stage = await open(t, place)
    const [own, foreign] = [stage.google('client'), stage.google('other')]
    const bytes = Buffer.alloc(9 * 1024 * 1024, 'x')
    const file = await own.files.upload({
      file: new Blob([bytes]),
      config: { mimeType: 'text/plain', displayName: 'long' },
    })
    t.match(file, { name: /^files\//, displayName: 'long', sizeBytes: String(bytes.length), state: 'ACTIVE' })
    const name = file.name ?? ''
    t.equal((await own.files.get({ name })).uri, file.uri)
    const ids = async (client: GoogleGenAI): Promise<unknown[]> => {
      const all: unknown[] = []
      for await (const each of await client.files.list()) all.push(each.name)
      return all
    }
    t.strictSame(await ids(own), [name])
    t.strictSame(await ids(foreign), [])
    const ask = (client: GoogleGenAI): Promise<unknown> =>
      client.models.generateContent({
        model: 'gemini-2.5-flash',
        contents: createUserContent([
          createPartFromUri(`https://generativelanguage.googleapis.com/v1beta/${name}`, 'text/plain'),
          'read',
        ]),
      })
    for (const asked of [foreign.files.get({ name }), foreign.files.delete({ name }), ask(foreign)]) {
      t.equal(await statusOf(asked), 404)
    }
    t.match(await ask(own), { candidates: [{}] })
    await own.files.delete({ name })
    t.equal(await statusOf(own.files.get({ name })), 404)
  })
}

/** As Google's client for Python uploads: the bytes go to the given address, without a key. */
async function pythonUpload(
  { gateway }: Stage,
  type: string,
  change: (url: string) => string | Promise<string> = (url) => url,
): Promise<{ status: number; upload: string | null; file: JsonObject }> {
  const begun = await fetch(`${gateway.origin}/upload/v1beta/files`, {
    method: 'POST',
    headers: {
      ...{ 'x-goog-api-key': gateway.secret, 'content-type': 'application/json' },
      ...{ 'x-goog-upload-protocol': 'resumable', 'x-goog-upload-command': 'start' },
      ...{ 'x-goog-upload-header-content-length': '2', 'x-goog-upload-header-content-type': type },
    },
    body: '{"file":{"displayName":"of Python"}}',
  })
  await begun.text()
  const res = await fetch(await change(begun.headers.get('x-goog-upload-url') ?? ''), {
    method: 'POST',
    headers: { 'x-goog-upload-command': 'upload, finalize', 'x-goog-upload-offset': '0' },
    body: '{}',
  })
  const reply = objectOf(await res.json())
  const upload = res.headers.get('x-goog-upload-status')
  return { status: res.status, upload, file: objectOf(reply['file']) }
}

for (const [place, type, whose] of [
  [PLACES[0], 'text/plain', "the vendor's"],
  [PLACES[1], 'application/jsonl', "the gateway's"],
] as const) {
  void t.test(`${place.store}, files of ${whose}: bytes that are sent without a key`, async (t) => {
    const stage = await open(t, place)
    const done = await pythonUpload(stage, type)
    t.match(done, { status: 200, upload: 'final', file: { displayName: 'of Python' } })
    const name = stringOf(done.file['name']) ?? ''
    t.match(await stage.google('client').files.get({ name }), { name, sizeBytes: '2' })
    t.equal(await statusOf(stage.google('other').files.get({ name })), 404)
    t.notOk(
      stage.emulator.ledger.some(({ path }) => path.includes('upload_ticket')),
      'no upstream gets the ticket',
    )
    for (const change of [
      (url: string) => url.replace(/&upload_ticket=.*/, ''),
      (url: string) => url.replace('upload_ticket=A', 'upload_ticket=B'),
      (url: string) => url.replace(/upload_id=[\w-]+/, 'upload_id=another'),
      (url: string) => url.replace('/upload/v1beta/files', '/v1beta/models/gemini-3.5-flash:generateContent'),
    ]) {
      t.match(await pythonUpload(stage, type, change), { status: 401 })
    }
    const store = await openStore(stage.gateway.store)
    t.teardown(() => store.close())
    const refused = await pythonUpload(stage, type, async (url) => {
      const found = await store.findKey(digestOf(stage.gateway.secret))
      if (found !== null) await endKey(store, found.key, Date.now())
      // The gateway follows within a second.
      await delay(1_500)
      return url
    })
    t.match(refused, { status: 401 }, 'the key has ended meanwhile')
  })
}

void t.test('uploads of one request, limits, and refusals', async (t) => {
  const stage = await open(t, PLACES[0], { files: ', max_bytes: 20000' })
  const { gateway, client } = stage
  const headers = { 'x-goog-api-key': client.apiKey ?? '' }
  const related = 'multipart/related; boundary=b'
  const body = `--b\r\ncontent-type: application/json\r\n\r\n{"file":{"displayName":"two"}}\r\n--b\r\ncontent-type: text/plain\r\n\r\nhello\r\n--b--\r\n`
  const reply = await fetch(`${gateway.origin}/upload/v1beta/files`, {
    method: 'POST',
    headers: { ...headers, 'content-type': related, 'x-goog-upload-protocol': 'multipart' },
    body,
  })
  t.match(await reply.json(), { file: { name: /^files\//, displayName: 'two', sizeBytes: '5' } })
  const large = new Anthropic({ apiKey: client.apiKey, baseURL: gateway.origin, maxRetries: 0 })
  const file = await toFile(Buffer.alloc(30_000), 'a.txt')
  t.equal(await statusOf(large.files.upload({ file })), 413)
  for (const path of ['/v1beta/files/a%2fb', '/v1beta/files/..%2f..%2fmodels']) {
    t.equal((await fetch(gateway.origin + path, { headers })).status, 400, path)
  }
  t.equal((await fetch(`${gateway.origin}/v1beta/files`)).status, 401)
})

void t.test('two upstreams of a dialect, and none named: 400 with words', async (t) => {
  const emulator = await startEmulator()
  t.teardown(() => emulator.close())
  const { anthropic } = emulator.baseUrls
  const cloud = `base_url: ${anthropic}, dialect: anthropic, api_key: k`
  for (const [named, status] of [
    ['', 400],
    [', upstream_anthropic: cloud', 200],
  ] as const) {
    const stage = await openBatchStage(t, PLACES[0], {
      ...{ upstreams: { anthropic }, cloud, files: named },
    })
    const reply = await fetch(`${stage.gateway.origin}/v1/files`, {
      headers: { 'x-api-key': stage.client.apiKey ?? '', 'anthropic-version': '2023-06-01' },
    })
    t.equal(reply.status, status)
    if (status === 400) {
      t.match(await reply.json(), { type: 'error', error: { message: /set files\.upstream_anthropic/ } })
    }
  }
})

void t.test("paths of other gateways: below a vendor's name, and without a version", async (t) => {
  const emulator = await startEmulator()
  t.teardown(() => emulator.close())
  const { openai, anthropic, gemini } = emulator.baseUrls
  const upstreams = { openai, anthropic, gemini }
  for (const server of ['bare_paths: true', '']) {
    const stage = await openBatchStage(t, PLACES[0], {
      ...{ upstreams, server, upstreamOptions: 'operations: { batch: queue }' },
    })
    const { origin } = stage.gateway
    const apiKey = stage.client.apiKey ?? ''
    const own = new Anthropic({ apiKey, baseURL: `${origin}/anthropic`, maxRetries: 0 })
    const foreign = new Anthropic({
      ...{ apiKey: stage.other.apiKey, baseURL: `${origin}/anthropic`, maxRetries: 0 },
    })
    const upload = (): Promise<Anthropic.FileMetadata> =>
      toFile(Buffer.from('hello'), 'a.txt', { type: 'text/plain' }).then((file) => own.files.upload({ file }))
    if (server === '') {
      t.equal(await statusOf(upload()), 404)
      t.equal(await statusOf(own.models.list().then((page) => page.data)), 404)
      continue
    }
    const { id } = await upload()
    t.match(await own.files.retrieveMetadata(id), { id, filename: 'a.txt' })
    t.match((await own.files.list()).data, [{ id }])
    t.equal(await statusOf(own.files.download(id)), 400, "the vendor's own answer")
    t.equal(await statusOf(foreign.files.delete(id)), 404)
    // Without the header, as curl sends it.
    const listed = await fetch(`${origin}/anthropic/v1/files`, { headers: { 'x-api-key': apiKey } })
    t.match(await listed.json(), { data: [{ id, type: 'file' }] })
    const bare = await fetch(`${origin}/files/${id}`, {
      headers: { 'x-api-key': apiKey, 'anthropic-version': '2023-06-01' },
    })
    t.match(await bare.json(), { id, type: 'file' })
    t.match(await own.files.delete(id), { type: 'file_deleted' })
    t.match((await own.models.list()).data, [{ type: 'model' }])
    const batch = await own.messages.batches.create({
      requests: [
        {
          custom_id: 'a',
          params: {
            ...{ model: 'claude-sonnet-4-6', max_tokens: 50 },
            messages: [{ role: 'user', content: 'hi' }],
          },
        },
      ],
    })
    t.match(await own.messages.batches.retrieve(batch.id), { id: batch.id, type: 'message_batch' })
    const google = new GoogleGenAI({ apiKey, httpOptions: { baseUrl: origin, apiVersion: '' } })
    t.same((await google.batches.list()).page, [], 'no batches of Google’s form')

    const azure = new AzureOpenAI({
      ...{ apiKey, endpoint: origin, apiVersion: '2024-10-21', maxRetries: 0 },
    })
    const body = { model: 'gpt-5.4', messages: [{ role: 'user', content: 'hi' }] }
    const line = { custom_id: 'a', method: 'POST', url: '/v1/chat/completions', body }
    const lines = await azure.files.create({
      ...{ purpose: 'batch', file: await toFile(Buffer.from(JSON.stringify(line)), 'a.jsonl') },
    })
    const made = await azure.batches.create({
      ...{ input_file_id: lines.id, endpoint: '/v1/chat/completions', completion_window: '24h' },
    })
    t.match(await azure.batches.retrieve(made.id), { id: made.id, object: 'batch' })
    t.match((await azure.files.list()).data, [{ id: lines.id }])
    t.match(await azure.files.delete(lines.id), { deleted: true })
    t.match((await azure.models.list()).data, [{ object: 'model' }])
  }
})
