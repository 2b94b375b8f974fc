/**
 * Goal: clients of OpenAI's transcriptions send the file before or after the model, and get JSON, text,
 * subtitles or events, charged by the seconds or the tokens of the vendor, else by the length of the file.
 * Method: a vendor written from OpenAI's documentation, on real sockets; OpenAI's SDK.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { readFileSync, writeFileSync } from 'node:fs'
import OpenAI, { toFile } from 'openai'
import t, { type Test } from 'tap'
import { wavOf } from '../../src/formats/wire/media/sound.js'
import { startGateway, type TestGateway } from '../helpers/gateway.js'
import { rowsOf } from '../helpers/ledger.js'

/** Three seconds. */
const WAV = wavOf(Buffer.alloc(3 * 8_000 * 2), 8_000)

interface Sent {
  readonly path: string
  readonly form: FormData
}

const sent: Sent[] = []
let answer: (res: ServerResponse) => void = () => undefined

async function formIn(req: IncomingMessage): Promise<FormData> {
  const chunks: Buffer[] = []
  for await (const chunk of req) chunks.push(chunk as Buffer)
  const headers = { 'content-type': req.headers['content-type'] ?? '' }
  // eslint-disable-next-line @typescript-eslint/no-deprecated -- another reader than the gateway's writer
  return new Response(Buffer.concat(chunks), { headers }).formData()
}

function json(value: unknown, status = 200): (res: ServerResponse) => void {
  return (res) => {
    res.writeHead(status, { 'content-type': 'application/json' })
    res.end(JSON.stringify(value))
  }
}

async function start(t: Test): Promise<TestGateway> {
  const server = createServer((req, res) => {
    void (async () => {
      sent.push({ path: req.url ?? '', form: await formIn(req) })
      answer(res)
    })()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const gateway = await startGateway(t)
  const prices =
    'whisper-1: { per_second_audio: 0.0001 }, gpt-4o-transcribe: { input: 2.5, input_audio: 6, output: 10 }'
  const to = `base_url: "${origin}/v1", api_key: vendor-key`
  const upstream = `  scribe: { dialect: openai-chat, ${to}, prices: { ${prices} } }\n`
  const targets = 'targets: [{ upstream: scribe, model: whisper-1 }]'
  const routes = `  - { model: scribe, ${targets} }\n  - { model: gpt-4o-transcribe, upstream: scribe }\n`
  const text = readFileSync(gateway.configFile, 'utf8')
  writeFileSync(gateway.configFile, text.replace('routes:\n', `${upstream}routes:\n${routes}`))
  gateway.reload()
  return gateway
}

async function transcribe(
  gateway: TestGateway,
  fields: Record<string, string>,
  { path = '/v1/audio/transcriptions', file = new Blob([WAV], { type: 'audio/wav' }) } = {},
): Promise<Response> {
  const body = new FormData()
  body.append('file', file, 'a.wav')
  for (const [name, value] of Object.entries(fields)) body.append(name, value)
  return fetch(gateway.origin + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.secret}` },
    body,
  })
}

const REPLY = { text: 'Hello world.', usage: { type: 'duration', seconds: 3 } }

void t.test("OpenAI's SDK sends the file before the model", async (t) => {
  const gateway = await start(t)
  answer = json(REPLY)
  sent.length = 0
  const client = new OpenAI({ baseURL: gateway.baseUrl, apiKey: gateway.secret, maxRetries: 0 })
  const file = await toFile(WAV, 'Grüße "1".wav', { type: 'audio/wav' })
  const reply = await client.audio.transcriptions.create({ file, model: 'scribe', language: 'en' })
  t.same(reply, REPLY)
  const [{ path, form }] = sent as [Sent]
  t.equal(path, '/v1/audio/transcriptions')
  t.same([...form.keys()], ['file', 'model', 'language'])
  t.equal(form.get('model'), 'whisper-1')
  const got = form.get('file')
  if (got === null || typeof got === 'string') throw new Error('the upstream got no file')
  t.match(got, { name: 'Grüße "1".wav', type: 'audio/wav' })
  t.same(Buffer.from(await got.arrayBuffer()), WAV)
  t.match((await rowsOf(gateway))[0], {
    ...{ ingress: 'transcriptions', source: 'reported', costNanoUsd: 300_000, stream: false },
  })
  const english = await client.audio.translations.create({ file, model: 'scribe' })
  t.equal(english.text, 'Hello world.')
  t.equal(sent[1]?.path, '/v1/audio/translations')
  t.match((await rowsOf(gateway))[1], { ingress: 'translations', costNanoUsd: 300_000 })
})

void t.test('makes text and subtitles of formats that have usage', async (t) => {
  const gateway = await start(t)
  answer = json(REPLY)
  sent.length = 0
  const text = await transcribe(gateway, { model: 'scribe', response_format: 'text' })
  t.match(text.headers.get('content-type'), /^text\/plain/)
  t.equal(await text.text(), 'Hello world.\n')
  t.equal(sent[0]?.form.get('response_format'), 'json')
  const segments = [
    { id: 0, start: 0, end: 1.5, text: ' Hello' },
    { id: 1, start: 1.5, end: 3661.25, text: ' world.' },
  ]
  answer = json({ task: 'transcribe', duration: 3, text: 'Hello world.', segments })
  const srt = await transcribe(gateway, { model: 'scribe', response_format: 'srt' })
  t.equal(
    await srt.text(),
    '1\n00:00:00,000 --> 00:00:01,500\nHello\n\n2\n00:00:01,500 --> 01:01:01,250\nworld.\n\n',
  )
  t.equal(sent[1]?.form.get('response_format'), 'verbose_json')
  const vtt = await transcribe(gateway, { model: 'scribe', response_format: 'vtt' })
  t.match(await vtt.text(), /^WEBVTT\n\n00:00:00\.000 --> 00:00:01\.500\nHello\n/)
  const rows = await rowsOf(gateway)
  t.same(
    rows.map(({ costNanoUsd, source }) => [costNanoUsd, source]),
    [1, 2, 3].map(() => [300_000, 'reported']),
  )
})

void t.test('charges tokens by kind, and the length of a WAV file if nothing is counted', async (t) => {
  const gateway = await start(t)
  answer = json({
    text: 'Hi.',
    usage: {
      type: 'tokens',
      input_tokens: 40,
      input_token_details: { audio_tokens: 30, text_tokens: 10 },
      output_tokens: 5,
      total_tokens: 45,
    },
  })
  await (await transcribe(gateway, { model: 'gpt-4o-transcribe' })).text()
  t.equal((await rowsOf(gateway))[0]?.costNanoUsd, 10 * 2_500 + 30 * 6_000 + 5 * 10_000)
  answer = json({ text: 'Hi.' })
  await (await transcribe(gateway, { model: 'scribe' })).text()
  t.match((await rowsOf(gateway))[1], { source: 'estimated', costNanoUsd: 300_000 })
  const file = new Blob([Buffer.alloc(1000, 'OggS')], { type: 'audio/ogg' })
  await (await transcribe(gateway, { model: 'scribe' }, { file })).text()
  t.match((await rowsOf(gateway))[2], { source: 'assumed', costNanoUsd: 14_400 * 100_000 })
})

void t.test('streams transcripts', async (t) => {
  const gateway = await start(t)
  const done = { type: 'transcript.text.done', text: 'Hello world.', usage: REPLY.usage }
  const list = [
    { type: 'transcript.text.delta', delta: 'Hello' },
    { type: 'transcript.text.delta', delta: ' world.' },
    done,
  ]
  answer = (res) => {
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    res.end(list.map((each) => `data: ${JSON.stringify(each)}\n\n`).join(''))
  }
  const client = new OpenAI({ baseURL: gateway.baseUrl, apiKey: gateway.secret, maxRetries: 0 })
  const file = await toFile(WAV, 'a.wav')
  const stream = await client.audio.transcriptions.create({ file, model: 'scribe', stream: true })
  const types: string[] = []
  for await (const event of stream) types.push(event.type)
  t.same(types, ['transcript.text.delta', 'transcript.text.delta', 'transcript.text.done'])
  t.match((await rowsOf(gateway))[0], { stream: true, source: 'reported', costNanoUsd: 300_000 })
  answer = json(REPLY)
  const whole = await transcribe(gateway, { model: 'scribe', stream: 'true' })
  t.match(await whole.text(), /"delta":"Hello world\."[^]*transcript\.text\.done/)
})

void t.test('refuses forms that are wrong, with words', async (t) => {
  const gateway = await start(t)
  answer = json(REPLY)
  const post = (body: FormData | string, headers: Record<string, string> = {}): Promise<Response> =>
    fetch(`${gateway.origin}/v1/audio/transcriptions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.secret}`, ...headers },
      body,
    })
  const media = await post('{}', { 'content-type': 'application/json' })
  t.equal(media.status, 415)
  const damaged = await post('--x\r\nnonsense', { 'content-type': 'multipart/form-data; boundary=x' })
  t.equal(damaged.status, 400)
  t.match(await damaged.json(), { error: { message: /not a valid multipart form/ } })
  const twice = new FormData()
  twice.append('model', 'scribe')
  twice.append('model', 'scribe')
  twice.append('file', new Blob([WAV]), 'a.wav')
  t.match(await (await post(twice)).json(), { error: { param: 'model', message: /twice/ } })
  const none = new FormData()
  none.append('model', 'scribe')
  t.match(await (await post(none)).json(), { error: { param: 'file' } })
  t.match(await (await transcribe(gateway, { model: '' })).json(), { error: { param: 'model' } })
  t.match(await (await transcribe(gateway, { model: 'scribe', response_format: 'x' })).json(), {
    error: { param: 'response_format' },
  })
  const large = new Blob([Buffer.alloc(26_300_000)])
  t.equal((await transcribe(gateway, { model: 'scribe' }, { file: large })).status, 413)
})
