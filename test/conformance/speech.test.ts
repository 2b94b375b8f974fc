/**
 * Goal: clients of OpenAI's speech get sound from every form of upstream: as bytes that pass while they
 * arrive, or as events, charged by the characters or tokens of the vendor; a cut one never ends cleanly.
 * Method: a vendor of each form, written from its documentation, on real sockets; OpenAI's SDK.
 */
import { createServer, type ServerResponse } from 'node:http'
import { request as httpRequest } from 'node:http'
import OpenAI from 'openai'
import t, { type Test } from 'tap'
import { startGateway, type TestGateway } from '../helpers/gateway.js'
import { rowsOf } from '../helpers/ledger.js'
import { listen } from '../helpers/listen.js'
import { jsonBodyOf } from './vendor-replies.js'

const INPUT = 'Grüße 👋 von der Elbe.'
/** Code points. */
const CHARACTERS = 21
const SAMPLES = Buffer.from([1, 0, 2, 0, 3, 0, 4, 0])

interface Sent {
  readonly path: string
  readonly body: Record<string, unknown>
}

const sent: Sent[] = []
type Answer = (res: ServerResponse, body: Record<string, unknown>) => void
const answers = new Map<string, Answer>()

function events(res: ServerResponse, ...list: unknown[]): void {
  res.writeHead(200, { 'content-type': 'text/event-stream' })
  res.end(list.map((each) => `data: ${JSON.stringify(each)}\n\n`).join(''))
}

function json(res: ServerResponse, value: unknown, status = 200): void {
  res.writeHead(status, { 'content-type': 'application/json' })
  res.end(JSON.stringify(value))
}

const sound = (res: ServerResponse, type = 'audio/mpeg'): void => {
  res.writeHead(200, { 'content-type': type })
  res.end(SAMPLES)
}

function geminiReply(mimeType = 'audio/L16;codec=pcm;rate=24000'): unknown {
  const inlineData = { mimeType, data: SAMPLES.toString('base64') }
  return {
    candidates: [{ content: { role: 'model', parts: [{ inlineData }] }, finishReason: 'STOP' }],
    usageMetadata: {
      promptTokenCount: 10,
      candidatesTokenCount: 40,
      totalTokenCount: 50,
      candidatesTokensDetails: [{ modality: 'AUDIO', tokenCount: 40 }],
    },
    modelVersion: 'speaker',
  }
}

const UPSTREAMS = [
  'openai-tts: { dialect: openai-chat, prices: { tts-1: { per_character: 0.000015 } } }',
  'openai-mini: { dialect: openai-chat, prices: { gpt-4o-mini-tts: { input: 0.6, output_audio: 12 } } }',
  'voxtral: { preset: mistral, prices: { voxtral: { per_character: 0.000016 } } }',
  'speaker: { dialect: gemini, prices: { gemini-3-tts: { input: 0.5, output_audio: 9 } } }',
  'elsewhere: { dialect: anthropic }',
]
const ROUTES = ['openai-tts:tts-1', 'openai-mini:gpt-4o-mini-tts', 'voxtral:voxtral', 'speaker:gemini-3-tts']

async function start(t: Test, more = ''): Promise<TestGateway> {
  const server = createServer((req, res) => {
    void (async () => {
      const [, name = '', ...rest] = (req.url ?? '').split('/')
      const body = await jsonBodyOf(req)
      sent.push({ path: `/${rest.join('/')}`, body })
      const answer = answers.get(name)
      if (answer === undefined) json(res, { error: { message: 'nothing' } }, 500)
      else answer(res, body)
    })()
  })
  const origin = `http://127.0.0.1:${await listen(t, server)}`
  const gateway = await startGateway(t, { more })
  const upstreams = UPSTREAMS.map((line) => {
    const name = line.slice(0, line.indexOf(':'))
    return `  ${line.replace('{ ', `{ base_url: "${origin}/${name}/v1", api_key: vendor-key, `)}\n`
  })
  const routes = ROUTES.map((model) => {
    const [upstream, name] = model.split(':')
    return `  - { model: "${model}", targets: [{ upstream: ${upstream}, model: ${name} }] }\n`
  })
  routes.push('  - { model: elsewhere, targets: [{ upstream: elsewhere, model: claude-x }] }\n')
  const chain = 'targets: [{ upstream: elsewhere, model: claude-x }], fallback: [{ upstream: voxtral }]'
  routes.push(`  - { model: voxtral, ${chain} }\n`)
  gateway.add(upstreams.join(''), routes.join(''))
  return gateway
}

async function synthesize(gateway: TestGateway, body: Record<string, unknown>): Promise<Response> {
  return fetch(`${gateway.origin}/v1/audio/speech`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.secret}`, 'content-type': 'application/json' },
    body: JSON.stringify({ input: INPUT, voice: 'alloy', ...body }),
  })
}

async function bytesOf(reply: Response): Promise<Buffer> {
  return Buffer.from(await reply.arrayBuffer())
}

function dataOf(text: string): Record<string, unknown>[] {
  return text
    .split('\n\n')
    .filter((frame) => frame.startsWith('data: '))
    .map((frame) => JSON.parse(frame.slice(6)) as Record<string, unknown>)
}

void t.test('passes the bytes of OpenAI, priced by exact characters, to its SDK', async (t) => {
  const gateway = await start(t)
  answers.set('openai-tts', (res) => sound(res))
  sent.length = 0
  const client = new OpenAI({ baseURL: gateway.baseUrl, apiKey: gateway.secret, maxRetries: 0 })
  const reply = await client.audio.speech.create({ model: 'openai-tts:tts-1', input: INPUT, voice: 'alloy' })
  t.equal(reply.headers.get('content-type'), 'audio/mpeg')
  t.same(await bytesOf(reply), SAMPLES)
  t.match(sent[0], { path: '/v1/audio/speech', body: { model: 'tts-1', input: INPUT, voice: 'alloy' } })
  t.equal(sent[0]?.body['stream_format'], undefined)
  const [row] = await rowsOf(gateway)
  t.match(row, { ingress: 'speech', outcome: 'ok', stream: false, source: 'reported' })
  t.equal(row?.costNanoUsd, CHARACTERS * 15_000)
})

void t.test('requests events from models that count tokens, and sends their bytes on', async (t) => {
  const gateway = await start(t)
  answers.set('openai-mini', (res) =>
    events(
      res,
      { type: 'speech.audio.delta', audio: SAMPLES.subarray(0, 4).toString('base64') },
      { type: 'speech.audio.delta', audio: SAMPLES.subarray(4).toString('base64') },
      { type: 'speech.audio.done', usage: { input_tokens: 10, output_tokens: 40, total_tokens: 50 } },
    ),
  )
  sent.length = 0
  const reply = await synthesize(gateway, { model: 'openai-mini:gpt-4o-mini-tts', response_format: 'wav' })
  t.equal(reply.headers.get('content-type'), 'audio/wav')
  t.same(await bytesOf(reply), SAMPLES)
  t.equal(sent[0]?.body['stream_format'], 'sse')
  const [row] = await rowsOf(gateway)
  t.match(row, { source: 'reported', usage: { input: 10, output: 40 } })
  t.equal(row?.costNanoUsd, 10 * 600 + 40 * 12_000)
  const streamed = await synthesize(gateway, { model: 'openai-mini:gpt-4o-mini-tts', stream_format: 'sse' })
  t.match(streamed.headers.get('content-type'), /^text\/event-stream/)
  const data = dataOf(await streamed.text())
  t.same(
    data.map(({ type }) => type),
    ['speech.audio.delta', 'speech.audio.delta', 'speech.audio.done'],
  )
  t.same(data.at(-1)?.['usage'], { input_tokens: 10, output_tokens: 40, total_tokens: 50 })
  t.match((await rowsOf(gateway))[1], { stream: true, costNanoUsd: 10 * 600 + 40 * 12_000 })
})

void t.test('makes events of bytes, and bytes of JSON with base64', async (t) => {
  const gateway = await start(t)
  answers.set('openai-tts', (res) => sound(res))
  const streamed = await synthesize(gateway, { model: 'openai-tts:tts-1', stream_format: 'sse' })
  const data = dataOf(await streamed.text())
  t.equal(data[0]?.['audio'], SAMPLES.toString('base64'))
  t.same(data.at(-1), { type: 'speech.audio.done' })
  answers.set('voxtral', (res) => json(res, { audio_data: SAMPLES.toString('base64') }))
  sent.length = 0
  const reply = await synthesize(gateway, { model: 'voxtral:voxtral', speed: 2, instructions: 'Whisper.' })
  t.equal(reply.headers.get('content-type'), 'audio/mpeg')
  t.same(await bytesOf(reply), SAMPLES)
  t.same(sent[0], {
    path: '/v1/audio/speech',
    body: { model: 'voxtral', input: INPUT, voice_id: 'alloy', response_format: 'mp3' },
  })
  t.same(reply.headers.get('x-sluice-lost')?.split(/, ?/).sort(), ['instructions', 'speed'])
  t.equal((await rowsOf(gateway)).at(-1)?.costNanoUsd, CHARACTERS * 16_000)
  const refused = await synthesize(gateway, { model: 'voxtral:voxtral', response_format: 'aac' })
  t.equal(refused.status, 400)
  t.match(await refused.json(), { error: { param: 'response_format', kind: 'untranslatable' } })
})

void t.test("uses Gemini: similar voices, WAV's header, sound at its own rate", async (t) => {
  const gateway = await start(t)
  answers.set('speaker', (res) => json(res, geminiReply()))
  sent.length = 0
  const model = 'speaker:gemini-3-tts'
  const reply = await synthesize(gateway, { model, response_format: 'wav' })
  t.equal(reply.headers.get('content-type'), 'audio/wav')
  const wav = await bytesOf(reply)
  t.equal(wav.length, 44 + SAMPLES.length)
  t.equal(wav.toString('latin1', 0, 4), 'RIFF')
  t.equal(wav.readUInt32LE(40), SAMPLES.length)
  t.equal(wav.readUInt32LE(24), 24_000)
  t.same(wav.subarray(44), SAMPLES)
  t.equal(sent[0]?.path, '/v1/models/gemini-3-tts:generateContent')
  t.match(sent[0]?.body, {
    contents: [{ parts: [{ text: INPUT }] }],
    generationConfig: {
      responseModalities: ['AUDIO'],
      speechConfig: { voiceConfig: { prebuiltVoiceConfig: { voiceName: 'Kore' } } },
    },
  })
  t.equal(reply.headers.get('x-sluice-lost'), 'voice')
  const [row] = await rowsOf(gateway)
  t.match(row, { source: 'reported', usage: { input: 10, output: 40 } })
  t.equal(row?.costNanoUsd, 10 * 500 + 40 * 9_000)
  const own = await synthesize(gateway, { model, voice: 'Puck', response_format: 'pcm' })
  t.same(await bytesOf(own), SAMPLES)
  t.equal(own.headers.get('x-sluice-lost'), null)
  for (const [field, body] of [
    ['voice', { voice: { id: 'voice_1' } }],
    ['response_format', { response_format: 'flac' }],
  ] as const) {
    const refused = await synthesize(gateway, { model, ...body })
    t.match(await refused.json(), { error: { param: field, kind: 'untranslatable' } })
  }
  answers.set('speaker', (res) => events(res, geminiReply()))
  const streamed = await synthesize(gateway, { model, response_format: 'pcm', stream_format: 'sse' })
  const data = dataOf(await streamed.text())
  t.equal(data[0]?.['audio'], SAMPLES.toString('base64'))
  t.same(data.at(-1)?.['usage'], { input_tokens: 10, output_tokens: 40, total_tokens: 50 })
  t.equal(sent.at(-1)?.path, '/v1/models/gemini-3-tts:streamGenerateContent?alt=sse')
  const blocked = { candidates: [{ finishReason: 'SAFETY' }], usageMetadata: { promptTokenCount: 4 } }
  answers.set('speaker', (res) => json(res, blocked))
  const filtered = await synthesize(gateway, { model, response_format: 'pcm' })
  t.equal(filtered.status, 400)
  t.match(await filtered.json(), { error: { code: 'content_filter' } })
})

void t.test('passes sound while it arrives, and resets the connection if it is cut', async (t) => {
  const gateway = await start(t)
  let finish: () => void = () => undefined
  answers.set('openai-tts', (res) => {
    res.writeHead(200, { 'content-type': 'audio/mpeg' })
    res.write(SAMPLES)
    finish = () => res.destroy()
  })
  const outcome = await new Promise<{ first: Buffer; isComplete: boolean }>((resolve, reject) => {
    const req = httpRequest(`${gateway.origin}/v1/audio/speech`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.secret}`, 'content-type': 'application/json' },
    })
    req.on('error', reject)
    req.on('response', (res) => {
      let first = Buffer.alloc(0)
      res.on('data', (chunk: Buffer) => {
        first = Buffer.concat([first, chunk])
        // The upstream has not ended when the client has the first bytes.
        finish()
      })
      res.on('error', () => undefined)
      res.on('close', () => resolve({ first, isComplete: res.complete }))
    })
    req.end(JSON.stringify({ model: 'openai-tts:tts-1', input: INPUT, voice: 'alloy' }))
  })
  t.same(outcome.first, SAMPLES)
  t.equal(outcome.isComplete, false, 'never a clean end')
  const [row] = await rowsOf(gateway)
  t.match(row, { source: 'assumed', costNanoUsd: CHARACTERS * 15_000 })
  t.not(row?.outcome, 'ok')
})

void t.test('skips upstreams without speech, and names them if none is left', async (t) => {
  const gateway = await start(t)
  answers.set('voxtral', (res) => json(res, { audio_data: SAMPLES.toString('base64') }))
  t.equal((await synthesize(gateway, { model: 'voxtral' })).status, 200)
  const refused = await synthesize(gateway, { model: 'elsewhere' })
  t.equal(refused.status, 400)
  t.match(await refused.json(), {
    error: {
      kind: 'untranslatable',
      message: 'No upstream of the model "elsewhere" serves speech; elsewhere does not',
    },
  })
  answers.set('openai-tts', (res) => json(res, { error: { message: 'no such voice', param: 'voice' } }, 400))
  const wrong = await synthesize(gateway, { model: 'openai-tts:tts-1' })
  t.equal(wrong.status, 400)
  t.match(await wrong.json(), { error: { message: /no such voice/ } })
  for (const [param, body] of [
    ['input', { input: 3 }],
    ['voice', { voice: 3 }],
    ['speed', { speed: 9 }],
    ['response_format', { response_format: 'midi' }],
    ['stream_format', { stream_format: 'x' }],
  ] as const) {
    const reply = await synthesize(gateway, { model: 'openai-tts:tts-1', ...body })
    t.equal(reply.status, 400, param)
    t.match(await reply.json(), { error: { param } })
  }
})
