/**
 * Goal: clients of OpenAI's transcriptions get them from Mistral and Gemini, whole and streamed,
 * charged by what these vendors count; what they cannot express is refused or reported.
 * Method: a vendor of each form, written from its documentation, on real sockets; OpenAI's SDK.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import OpenAI, { toFile } from 'openai'
import t, { type Test } from 'tap'
import { startGateway, type TestGateway } from '../helpers/gateway.js'
import { rowsOf } from '../helpers/ledger.js'
import { listen } from '../helpers/listen.js'
import { json, events } from './vendor-replies.js'

const SOUND = Buffer.from('ID3 not really a sound')

interface Sent {
  readonly path: string
  /** A body of JSON, or the names and values of a form's fields. */
  readonly body: unknown
}

const sent: Sent[] = []
let answer: (res: ServerResponse) => void = () => undefined

async function bodyOf(req: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = []
  for await (const chunk of req) chunks.push(chunk as Buffer)
  const body = Buffer.concat(chunks)
  const type = req.headers['content-type'] ?? ''
  if (!type.startsWith('multipart/')) return JSON.parse(body.toString())
  // eslint-disable-next-line @typescript-eslint/no-deprecated -- another reader than the gateway's writer
  const form = await new Response(body, { headers: { 'content-type': type } }).formData()
  return [...form.entries()].map(([name, value]) => [name, typeof value === 'string' ? value : value.name])
}

async function start(t: Test): Promise<TestGateway> {
  const server = createServer((req, res) => {
    void (async () => {
      sent.push({ path: req.url ?? '', body: await bodyOf(req) })
      answer(res)
    })()
  })
  const origin = `http://127.0.0.1:${await listen(t, server)}`
  const gateway = await startGateway(t)
  const to = 'api_key: vendor-key, base_url'
  const second = 'voxtral-mini: { per_second_audio: 0.00005 }'
  const tokens = 'gemini-3.5-transcribe: { input_audio: 2, output: 12 }'
  const upstreams =
    `  voxtral: { preset: mistral, ${to}: "${origin}/v1", prices: { ${second} } }\n` +
    `  google-ear: { dialect: gemini, ${to}: "${origin}/v1beta", prices: { ${tokens} } }\n`
  const routes =
    '  - { model: voxtral-mini, upstream: voxtral }\n' +
    ['gemini-3.5-transcribe', 'gemini-3-flash']
      .map((m) => `  - { model: ${m}, upstream: google-ear }\n`)
      .join('')
  gateway.add(upstreams, routes)
  sent.length = 0
  return gateway
}

async function transcribe(
  gateway: TestGateway,
  fields: readonly (readonly [string, string])[],
  { name = 'a.mp3', type = '' } = {},
): Promise<Response> {
  const body = new FormData()
  body.append('file', new Blob([SOUND], { type }), name)
  for (const [field, value] of fields) body.append(field, value)
  const headers = { authorization: `Bearer ${gateway.secret}` }
  return fetch(`${gateway.origin}/v1/audio/transcriptions`, { method: 'POST', headers, body })
}

const MISTRAL = {
  model: 'voxtral-mini',
  text: 'Hello world.',
  language: 'en',
  segments: [{ type: 'transcription_segment', text: 'Hello world.', start: 0, end: 1.5, speaker_id: 'a' }],
  usage: { prompt_tokens: 40, completion_tokens: 5, total_tokens: 45, prompt_audio_seconds: 3 },
}

void t.test('Mistral gets its own fields, and the client the format that it requested', async (t) => {
  const gateway = await start(t)
  answer = json(MISTRAL)
  const fields = [
    ['model', 'voxtral-mini'],
    ['language', 'en'],
    ['keywords[]', 'Sluice'],
    ['prompt', 'a greeting'],
    ['include[]', 'logprobs'],
    ['response_format', 'diarized_json'],
  ] as const
  const reply = await transcribe(gateway, fields)
  t.equal(reply.headers.get('x-sluice-lost'), 'prompt, include')
  t.same(await reply.json(), {
    task: 'transcribe',
    duration: 3,
    text: 'Hello world.',
    segments: [
      {
        type: 'transcript.text.segment',
        id: 'seg_0',
        start: 0,
        end: 1.5,
        speaker: 'a',
        text: 'Hello world.',
      },
    ],
    usage: { type: 'duration', seconds: 3 },
  })
  t.same(sent[0]?.body, [
    ['diarize', 'true'],
    ['file', 'a.mp3'],
    ['model', 'voxtral-mini'],
    ['language', 'en'],
    ['context_bias', 'Sluice'],
  ])
  t.match((await rowsOf(gateway))[0], { source: 'reported', costNanoUsd: 150_000 })
  const srt = await transcribe(gateway, [
    ['model', 'voxtral-mini'],
    ['response_format', 'srt'],
  ])
  t.equal(await srt.text(), '1\n00:00:00,000 --> 00:00:01,500\nHello world.\n\n')
  t.same((sent[1]?.body as unknown[])[0], ['timestamp_granularities', 'segment'])
  const two = [
    ['model', 'voxtral-mini'],
    ['languages[]', 'en'],
    ['languages[]', 'de'],
  ] as const
  t.match(await (await transcribe(gateway, two)).json(), {
    error: { kind: 'untranslatable', param: 'languages' },
  })
})

async function streamed(gateway: TestGateway, model: string): Promise<unknown[]> {
  const client = new OpenAI({ baseURL: gateway.baseUrl, apiKey: gateway.secret, maxRetries: 0 })
  const file = await toFile(SOUND, 'a.mp3')
  const list: unknown[] = []
  for await (const event of await client.audio.transcriptions.create({ file, model, stream: true }))
    list.push(event)
  return list
}

void t.test("streams of both vendors are OpenAI's events", async (t) => {
  const gateway = await start(t)
  answer = events(
    { type: 'transcription.language', audio_language: 'en' },
    { type: 'transcription.text.delta', text: 'Hello' },
    { type: 'transcription.text.delta', text: ' world.' },
    { ...MISTRAL, type: 'transcription.done' },
  )
  const usage = { type: 'duration', seconds: 3 }
  t.same(await streamed(gateway, 'voxtral-mini'), [
    { type: 'transcript.text.delta', delta: 'Hello' },
    { type: 'transcript.text.delta', delta: ' world.' },
    { type: 'transcript.text.done', text: 'Hello world.', usage },
  ])
  answer = events(
    { candidates: [{ content: { parts: [{ text: 'Hello' }] } }] },
    { ...GEMINI, candidates: [{ content: { parts: [{ text: ' world.' }] }, finishReason: 'STOP' }] },
  )
  t.match(await streamed(gateway, 'gemini-3.5-transcribe'), [
    { type: 'transcript.text.delta', delta: 'Hello' },
    { type: 'transcript.text.delta', delta: ' world.' },
    { type: 'transcript.text.done', text: 'Hello world.', usage: { type: 'tokens', input_tokens: 96 } },
  ])
  t.same(
    (await rowsOf(gateway)).map(({ costNanoUsd, stream }) => [costNanoUsd, stream]),
    [
      [150_000, true],
      [96 * 2_000 + 10 * 12_000, true],
    ],
  )
  answer = events({ type: 'transcription.text.delta', text: 'Hello' })
  await t.rejects(streamed(gateway, 'voxtral-mini'), 'a stream without its end')
})

const GEMINI = {
  candidates: [
    {
      content: {
        parts: [
          {
            audioTranscription: {
              text: 'Hello world.',
              languageCode: 'en',
              words: [
                { text: 'Hello', startOffset: '0s', endOffset: '0.5s' },
                { text: 'world.', startOffset: '0.6s', endOffset: '1.5s' },
              ],
            },
          },
        ],
      },
      finishReason: 'STOP',
    },
  ],
  usageMetadata: {
    promptTokenCount: 96,
    candidatesTokenCount: 10,
    totalTokenCount: 106,
    promptTokensDetails: [{ modality: 'AUDIO', tokenCount: 96 }],
  },
}

void t.test("Gemini's models for transcription get settings, others an instruction", async (t) => {
  const gateway = await start(t)
  answer = json(GEMINI)
  const fields = [
    ['model', 'gemini-3.5-transcribe'],
    ['language', 'en'],
    ['keywords[]', 'Sluice'],
    ['prompt', 'a greeting'],
    ['response_format', 'vtt'],
  ] as const
  const reply = await transcribe(gateway, fields)
  t.equal(await reply.text(), 'WEBVTT\n\n00:00:00.000 --> 00:00:01.500\nHello world.\n\n')
  t.equal(reply.headers.get('x-sluice-lost'), 'prompt')
  const inlineData = { mimeType: 'audio/mp3', data: SOUND.toString('base64') }
  t.same(sent[0], {
    path: '/v1beta/models/gemini-3.5-transcribe:generateContent',
    body: {
      contents: [{ role: 'user', parts: [{ inlineData }] }],
      generationConfig: {
        audioTranscriptionConfig: {
          languageCodes: ['en'],
          customVocabulary: ['Sluice'],
          wordTimestamp: true,
        },
      },
    },
  })
  t.match((await rowsOf(gateway))[0], { source: 'reported', costNanoUsd: 96 * 2_000 + 10 * 12_000 })
  const words = await transcribe(gateway, [
    ['model', 'gemini-3-flash'],
    ['prompt', 'a greeting'],
  ])
  t.match(await words.json(), { text: 'Hello world.' })
  t.match(sent[1]?.body, {
    contents: [{ parts: [{ inlineData }, { text: /^Write down[^]*\na greeting$/ }] }],
  })
  for (const [more, param] of [
    [['response_format', 'srt'], 'response_format'],
    [['known_speaker_names[]', 'Ann'], 'known_speaker_names'],
  ] as const) {
    const refused = await transcribe(gateway, [['model', 'gemini-3-flash'], more])
    t.match(await refused.json(), { error: { kind: 'untranslatable', param } })
  }
  const unknown = await transcribe(gateway, [['model', 'gemini-3-flash']], { name: 'sound' })
  t.match(await unknown.json(), { error: { kind: 'untranslatable', param: 'file' } })
})
