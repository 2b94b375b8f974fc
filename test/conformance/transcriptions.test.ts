/**
 * Goal: clients of OpenAI's transcriptions send the file before or after the model, and get JSON, text,
 * subtitles or events, charged by the seconds or the tokens of the vendor, else by the length of the file.
 * Method: a vendor written from OpenAI's documentation, on real sockets; OpenAI's SDK.
 */
import { createServer, request as send, type IncomingMessage, type ServerResponse } from 'node:http'
import { readFileSync, writeFileSync } from 'node:fs'
import OpenAI, { toFile } from 'openai'
import t, { type Test } from 'tap'
import { wavOf } from '../../src/formats/wire/media/sound.js'
import { startGateway, type TestGateway } from '../helpers/gateway.js'
import { rowsOf } from '../helpers/ledger.js'
import { listen } from '../helpers/listen.js'
import { json } from './vendor-replies.js'

/** Three seconds. */
const WAV = wavOf(Buffer.alloc(3 * 8_000 * 2), 8_000)

interface Sent {
  readonly path: string
  readonly form: FormData
  readonly length: string | undefined
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

async function start(t: Test, settings = ''): Promise<TestGateway> {
  const server = createServer((req, res) => {
    void (async () => {
      const form = await formIn(req).catch(() => null)
      if (form === null) return
      sent.push({ path: req.url ?? '', form, length: req.headers['content-length'] })
      answer(res)
    })()
  })
  const origin = `http://127.0.0.1:${await listen(t, server)}`
  const gateway = await startGateway(t, settings === '' ? {} : { server: settings })
  const prices =
    'whisper-1: { per_second_audio: 0.0001 }, gpt-4o-transcribe: { input: 2.5, input_audio: 6, output: 10 }'
  const to = `base_url: "${origin}/v1", api_key: vendor-key`
  const upstream = `  scribe: { dialect: openai-chat, ${to}, prices: { ${prices} } }\n`
  const targets = 'targets: [{ upstream: scribe, model: whisper-1 }]'
  const routes = `  - { model: scribe, ${targets} }\n  - { model: gpt-4o-transcribe, upstream: scribe }\n`
  gateway.add(upstream, routes)
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

void t.test('a budget reserves the longest sound that the model or the configuration allows', async (t) => {
  const gateway = await start(t)
  const text = `${readFileSync(gateway.configFile, 'utf8')}limits:\n  - { scope: account, usd_total: 0.3 }\n`
  writeFileSync(gateway.configFile, text)
  gateway.reload()
  answer = json({ text: 'Hi.' })
  const file = new Blob([Buffer.alloc(1000, 'OggS')], { type: 'audio/ogg' })
  const refused = await transcribe(gateway, { model: 'scribe' }, { file })
  t.equal(refused.status, 402)
  t.match(await refused.text(), /\$1\.44 for up to 14400 s of sound/)
  writeFileSync(gateway.configFile, `${text}limiting: { unknown_audio_seconds: 2000 }\n`)
  gateway.reload()
  t.equal((await transcribe(gateway, { model: 'scribe' }, { file })).status, 200)
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
})

/** The reply to a form of raw parts: the headers of each, and its content. */
async function sendParts(
  gateway: TestGateway,
  parts: readonly (readonly [head: string, content: string | Buffer])[],
): Promise<Response> {
  const chunks = parts.map(([head, content]) =>
    Buffer.concat([
      Buffer.from(`--${BOUNDARY}\r\n${head}\r\n\r\n`),
      Buffer.from(content),
      Buffer.from('\r\n'),
    ]),
  )
  return fetch(`${gateway.origin}/v1/audio/transcriptions`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${gateway.secret}`,
      'content-type': `multipart/form-data; boundary=${BOUNDARY}`,
    },
    body: new Uint8Array(Buffer.concat([...chunks, Buffer.from(`--${BOUNDARY}--\r\n`)])),
  })
}

const named = (name: string): string => `content-disposition: form-data; name="${name}"`

void t.test('names of files in RFC 5987, and brackets of fields that are no lists', async (t) => {
  const gateway = await start(t)
  answer = json(REPLY)
  sent.length = 0
  const model = [named('model'), 'scribe'] as const
  const nameOf = (): string | undefined => {
    const got = sent.at(-1)?.form.get('file')
    return typeof got === 'object' ? got?.name : undefined
  }
  for (const [parameters, name] of [
    ["filename*=UTF-8''Gr%C3%BC%C3%9Fe%20%221%22.wav", 'Grüße "1".wav'],
    ["filename=plain.wav; filename*=utf-8'de'other.wav", 'plain.wav'],
  ] as const) {
    const reply = await sendParts(gateway, [model, [`${named('file')}; ${parameters}`, WAV]])
    t.equal(reply.status, 200, parameters)
    t.equal(nameOf(), name)
  }
  const file = [`${named('file')}; filename=a.wav`, WAV] as const
  const listed = await sendParts(gateway, [[named('model[]'), 'scribe'], file])
  t.equal(listed.status, 400)
  t.match(await listed.json(), { error: { param: 'model' } })
})

void t.test('a file cannot contain the boundaries that the gateway chooses', async (t) => {
  const gateway = await start(t)
  answer = json(REPLY)
  sent.length = 0
  const lines = Array.from({ length: 300_000 }, (_, at) => `\r\n--sluice-form-${at}--`).join(
    '\r\n--sluice-form--',
  )
  const file = Buffer.from(lines)
  const beganMs = performance.now()
  const reply = await sendParts(gateway, [
    [named('model'), 'scribe'],
    [`${named('file')}; filename=a.wav`, file],
  ])
  t.equal(reply.status, 200)
  t.ok(performance.now() - beganMs < 10_000, 'it takes no time that grows with their number')
  const got = sent.at(-1)?.form.get('file')
  if (got === null || got === undefined || typeof got === 'string')
    throw new Error('the upstream got no file')
  t.ok(Buffer.from(await got.arrayBuffer()).equals(file))
})

const HOLD = 100_000
const BOUNDARY = 'a-boundary-of-the-client'

/** A form of these parts; a number is the size of the file `a.wav`. */
function formOf(parts: readonly (readonly [string, string | Buffer])[]): Buffer {
  const chunks = parts.map(([name, value]) => {
    const head = `--${BOUNDARY}\r\ncontent-disposition: form-data; name="${name}"`
    const file = '; filename="a.wav"\r\ncontent-type: audio/wav'
    return [
      Buffer.from(`${head}${typeof value === 'string' ? '' : file}\r\n\r\n`),
      Buffer.from(value),
      Buffer.from('\r\n'),
    ]
  })
  return Buffer.concat([...chunks.flat(), Buffer.from(`--${BOUNDARY}--\r\n`)])
}

interface Answered {
  readonly status: number
  readonly text: string
  readonly connection: string | undefined
}

/** Sends a form, with its length or in chunks; `cut`: leaves after this many bytes. */
function upload(
  gateway: TestGateway,
  body: Buffer,
  { chunked = false, cut = body.length, path = '/v1/audio/transcriptions' } = {},
): Promise<Answered> {
  return new Promise((resolve, reject) => {
    const headers = {
      authorization: `Bearer ${gateway.secret}`,
      'content-type': `multipart/form-data; boundary=${BOUNDARY}`,
      ...(!chunked && { 'content-length': String(body.length) }),
    }
    const { origin } = gateway
    const req = send(`${origin}${path}`, { method: 'POST', headers }, (res) => {
      let text = ''
      res.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
      res.on('end', () => resolve({ status: res.statusCode ?? 0, text, connection: res.headers.connection }))
      res.on('error', reject)
    })
    req.on('error', reject)
    for (let at = 0; at < cut; at += 10_000) req.write(body.subarray(at, Math.min(cut, at + 10_000)))
    if (cut === body.length) req.end()
    else setTimeout(() => req.destroy(), 200)
  })
}

const LONG_WAV = wavOf(Buffer.alloc(20 * 8_000 * 2, 'sound'), 8_000)

void t.test('a form that is too large to be held is passed on while it arrives', async (t) => {
  const gateway = await start(t, `upload_hold_bytes: ${HOLD}, max_upload_bytes: 1000000`)
  answer = json({ text: 'Hello world.' })
  sent.length = 0
  const form = formOf([
    ['model', 'scribe'],
    ['response_format', 'text'],
    ['file', LONG_WAV],
    ['language', 'en'],
  ])
  for (const chunked of [false, true]) {
    const reply = await upload(gateway, form, { chunked })
    t.equal(reply.status, 200)
    t.equal(reply.text, 'Hello world.\n')
    const { form: got, length } = sent.at(-1) as Sent
    t.same([...got.keys()], ['model', 'response_format', 'file', 'language'])
    t.equal(got.get('model'), 'whisper-1')
    t.equal(got.get('response_format'), 'json')
    const file = got.get('file')
    if (file === null || typeof file === 'string') throw new Error('the upstream got no file')
    t.same(Buffer.from(await file.arrayBuffer()), LONG_WAV)
    t.equal(length, chunked ? undefined : String(form.length + 'whisper-1'.length - 'scribe'.length))
  }
  const rows = await rowsOf(gateway)
  t.match(rows[0], { source: 'estimated' })
  t.ok(Math.abs((rows[0]?.costNanoUsd ?? 0) - 2_000_000) < 10_000, 'the length of the WAV file')
  t.match(rows[1], { source: 'assumed', costNanoUsd: 14_400 * 100_000 })
  const late = formOf([
    ['model', 'scribe'],
    ['file', LONG_WAV],
    ['response_format', 'text'],
  ])
  const text = await upload(gateway, late)
  t.equal(text.text, 'Hello world.\n', 'the format may come after the file')
  t.equal(sent.at(-1)?.form.get('response_format'), 'json')
})

void t.test('a form that is passed on must name its model first', async (t) => {
  const gateway = await start(t, `upload_hold_bytes: ${HOLD}, max_upload_bytes: 1000000`)
  answer = json(REPLY)
  sent.length = 0
  const last = formOf([
    ['file', LONG_WAV],
    ['model', 'scribe'],
  ])
  for (const chunked of [false, true]) {
    const reply = await upload(gateway, last, { chunked })
    t.equal(reply.status, 400)
    t.equal(reply.connection, 'close')
    const { error } = JSON.parse(reply.text) as { error: Record<string, string> }
    t.equal(error['param'], 'model')
    t.match(
      error['message'],
      /^The field `model` must come before the file in an upload of more than 0\.1 MiB\./,
    )
  }
  const twice = formOf([
    ['model', 'scribe'],
    ['file', LONG_WAV],
    ['model', 'other'],
  ])
  const reply = await upload(gateway, twice)
  t.match(JSON.parse(reply.text), { error: { param: 'model' } })
  const small = formOf([
    ['file', WAV],
    ['model', 'scribe'],
  ])
  t.equal((await upload(gateway, small)).status, 200, 'a form that is held')
  const large = formOf([
    ['model', 'scribe'],
    ['file', Buffer.alloc(1_000_000)],
  ])
  t.equal((await upload(gateway, large)).status, 413)
  t.equal((await upload(gateway, large, { chunked: true })).status, 413)
  t.equal(sent.length, 1)
})

void t.test('a client that leaves in the middle of a form pays nothing', async (t) => {
  const gateway = await start(t, `upload_hold_bytes: ${HOLD}`)
  answer = json(REPLY)
  sent.length = 0
  const form = formOf([
    ['model', 'scribe'],
    ['file', LONG_WAV],
  ])
  await t.rejects(upload(gateway, form, { cut: 200_000 }))
  await t.rejects(upload(gateway, form, { cut: 200_000, chunked: true }))
  // The entries are written after the clients have left.
  let rows = await rowsOf(gateway)
  for (let tries = 0; tries < 100 && rows.length < 2; tries += 1) {
    await new Promise((resolve) => setTimeout(resolve, 50))
    rows = await rowsOf(gateway)
  }
  t.same(
    rows.map(({ costNanoUsd }) => costNanoUsd),
    [0, 0],
  )
  t.equal(sent.length, 0)
})

void t.test('a client that stops sending a form gets 408', async (t) => {
  const gateway = await start(t, `upload_hold_bytes: ${HOLD}, client_stall_ms: 300`)
  const form = formOf([
    ['model', 'scribe'],
    ['file', LONG_WAV],
  ])
  const headers = {
    authorization: `Bearer ${gateway.secret}`,
    'content-type': `multipart/form-data; boundary=${BOUNDARY}`,
    'content-length': String(form.length),
  }
  const status = await new Promise<number>((resolve, reject) => {
    const req = send(`${gateway.origin}/v1/audio/transcriptions`, { method: 'POST', headers }, (res) => {
      resolve(res.statusCode ?? 0)
      req.destroy()
    })
    req.on('error', reject)
    req.write(form.subarray(0, 200_000))
  })
  t.equal(status, 408)
})
