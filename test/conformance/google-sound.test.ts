/**
 * Goal: clients of Google get speech and transcripts from models of OpenAI's format by `generateContent`:
 * sound comes inline, whole and streamed, transcripts as text, charged as OpenAI's own requests, and what
 * cannot be expressed is refused with words or reported.
 * Method: Google's SDK on a running gateway, with the emulator's endpoints for sound, and vendors of other
 * forms on real sockets.
 */
import { createServer, type ServerResponse } from 'node:http'
import { ApiError, GoogleGenAI, Modality, type GenerateContentParameters } from '@google/genai'
import t, { type Test } from 'tap'
import { wavOf } from '../../src/formats/wire/media/sound.js'
import { startGateway, type TestGateway } from '../helpers/gateway.js'
import { rowsOf } from '../helpers/ledger.js'
import { listen } from '../helpers/listen.js'

const ROUTES =
  '  - { prefix: tts-, upstream: openai }\n  - { prefix: whisper-, upstream: openai }\n' +
  '  - { prefix: own-, upstream: openai }\n'
const SAMPLES = 'audio/L16;codec=pcm;rate=24000'
const AUDIO = [Modality.AUDIO]
const KORE = { voiceConfig: { prebuiltVoiceConfig: { voiceName: 'Kore' } } }

function clientOf(gateway: TestGateway): GoogleGenAI {
  return new GoogleGenAI({ apiKey: gateway.secret, httpOptions: { baseUrl: gateway.origin } })
}

async function refusal(client: GoogleGenAI, request: GenerateContentParameters): Promise<string> {
  const error: unknown = await client.models.generateContent(request).catch((cause: unknown) => cause)
  return error instanceof ApiError && error.status === 400 ? error.message : `not refused: ${String(error)}`
}

void t.test("Google's clients at OpenAI's speech", async (t) => {
  const gateway = await startGateway(t, { routes: ROUTES })
  const client = clientOf(gateway)

  for (const model of ['gpt-4o-mini-tts', 'tts-1', 'own-voice']) {
    const made = await client.models.generateContent({
      model,
      contents: 'Good morning.',
      config: { responseModalities: AUDIO, speechConfig: KORE },
    })
    t.match(made.candidates?.[0], { finishReason: 'STOP', content: { role: 'model' } }, model)
    const parts = made.candidates?.[0]?.content?.parts ?? []
    t.equal(parts.length, 1, `${model}: one part`)
    t.equal(parts[0]?.inlineData?.mimeType, SAMPLES)
    t.equal(Buffer.from(parts[0]?.inlineData?.data ?? '', 'base64').length, 48_000, `${model}: all samples`)
    const row = (await rowsOf(gateway)).at(-1)
    t.match(row, { ingress: 'gemini', outcome: 'ok', units: 'character=13' })
    t.same(row?.losses, ['generationConfig.speechConfig.voiceConfig'])
    t.match(gateway.emulator.ledger.at(-1), {
      path: '/audio/speech',
      body: { model, input: 'Good morning.', voice: 'alloy', response_format: 'pcm' },
    })
    if (model === 'tts-1') t.equal(row?.costNanoUsd, 13 * 15_000)
    if (model !== 'gpt-4o-mini-tts') continue
    t.match(row, { source: 'reported', usage: { output: 20 } })
    t.equal(row?.costNanoUsd, (row?.usage.input ?? 0) * 600 + 20 * 12_000)
    t.match(made.usageMetadata?.candidatesTokensDetails, [{ modality: 'AUDIO', tokenCount: 20 }])
  }

  for (const model of ['gpt-4o-mini-tts', 'tts-1']) {
    const chunks = []
    const request = { model, contents: 'Good morning.', config: { responseModalities: AUDIO } }
    for await (const chunk of await client.models.generateContentStream(request)) chunks.push(chunk)
    const data = chunks
      .flatMap(({ candidates }) => candidates?.[0]?.content?.parts ?? [])
      .flatMap(({ inlineData }) => (inlineData?.data === undefined ? [] : [inlineData.data]))
    const bytes = data.reduce((sum, each) => sum + Buffer.from(each, 'base64').length, 0)
    t.equal(bytes, 48_000, `${model}: all samples in a stream`)
    t.equal(data.length, model === 'tts-1' ? 1 : 2, `${model}: as they arrive`)
    t.equal(chunks.at(-1)?.candidates?.[0]?.finishReason, 'STOP')
  }

  const plain = await client.models.generateContent({ model: 'tts-1', contents: 'Hi.' })
  t.ok(plain.candidates?.[0]?.content?.parts?.[0]?.inlineData, 'a model for speech needs no modality')
  const named = { voiceConfig: { prebuiltVoiceConfig: { voiceName: 'marin' } } }
  await client.models.generateContent({
    model: 'gpt-4o-mini-tts',
    contents: 'Hi.',
    config: { speechConfig: named, temperature: 0.5 },
  })
  t.match(gateway.emulator.ledger.at(-1), { body: { voice: 'marin' } })
  t.same((await rowsOf(gateway)).at(-1)?.losses, ['generationConfig.temperature'])

  await client.models.generateContent({
    model: 'tts-1',
    contents: 'Hi.',
    config: { speechConfig: { languageCode: 'en' } },
  })
  t.same((await rowsOf(gateway)).at(-1)?.losses, ['generationConfig.speechConfig.languageCode'])

  const HI = { model: 'tts-1', contents: 'Hi.' }
  const two = { multiSpeakerVoiceConfig: { speakerVoiceConfigs: [] } }
  t.match(await refusal(client, { ...HI, config: { speechConfig: two } }), /has one voice/)
  t.match(await refusal(client, { ...HI, config: { systemInstruction: 'Whisper.' } }), /one user turn/)
  const tools = [{ functionDeclarations: [{ name: 'find', parametersJsonSchema: { type: 'object' } }] }]
  t.match(await refusal(client, { ...HI, config: { tools } }), /calls no tools/)
  t.match(await refusal(client, { ...HI, config: { candidateCount: 2 } }), /one request for each/)
  const picture = { inlineData: { mimeType: 'image/png', data: 'AAAA' } }
  t.match(await refusal(client, { ...HI, contents: [picture] }), /takes texts/)

  const chat = { model: 'gpt-5.6-sol', contents: 'A cat.', config: { responseModalities: AUDIO } }
  t.ok((await client.models.generateContent(chat)).text, 'a chat model of OpenAI answers in words')
})

void t.test('formats of sound that the client names', async (t) => {
  const gateway = await startGateway(t, { routes: ROUTES })
  const made = async (mimeType: string): Promise<unknown> => {
    const reply = await fetch(`${gateway.origin}/v1beta/models/tts-1:generateContent`, {
      method: 'POST',
      headers: { 'x-goog-api-key': gateway.secret, 'content-type': 'application/json' },
      body: JSON.stringify({
        contents: [{ parts: [{ text: 'Hi.' }] }],
        generationConfig: {
          responseModalities: ['AUDIO'],
          responseFormat: [{ audio: { mimeType, sampleRate: 24_000 } }],
        },
      }),
    })
    return reply.json()
  }
  for (const type of ['audio/mp3', 'audio/ogg_opus', 'audio/wav']) {
    t.match(await made(type), {
      candidates: [{ content: { parts: [{ inlineData: { mimeType: type } }] } }],
    })
  }
  t.same((await rowsOf(gateway)).at(-1)?.losses, ['generationConfig.responseFormat'])
  t.match(await made('audio/mulaw'), { error: { code: 400, message: /Use audio\/l16/ } })
})

void t.test("Google's clients at OpenAI's transcriptions", async (t) => {
  const gateway = await startGateway(t, { routes: ROUTES })
  const client = clientOf(gateway)
  const data = wavOf(Buffer.alloc(24_000 * 2 * 3), 24_000).toString('base64')
  const sound = { inlineData: { mimeType: 'audio/wav', data } }

  for (const model of ['gpt-transcribe', 'whisper-1', 'own-whisper-large']) {
    const reply = await client.models.generateContent({ model, contents: [sound, { text: 'Transcribe.' }] })
    t.equal(reply.text, 'This is a transcript of the emulator.', model)
    t.equal(reply.candidates?.[0]?.finishReason, 'STOP')
    t.match(gateway.emulator.ledger.at(-1), {
      path: '/audio/transcriptions',
      body: { model, prompt: 'Transcribe.', file: { name: 'sound.wav', seconds: 3.001 } },
    })
    const row = (await rowsOf(gateway)).at(-1)
    t.match(row, { ingress: 'gemini', outcome: 'ok', units: 'audio_second=4', losses: ['contents'] })
    if (model === 'whisper-1') t.equal(row?.costNanoUsd, 4 * 100_000)
  }

  let text = ''
  const config = { audioTranscriptionConfig: { languageCodes: ['en-US'], diarization: true } }
  const request = { model: 'gpt-transcribe', contents: [sound], config }
  for await (const chunk of await client.models.generateContentStream(request)) text += chunk.text ?? ''
  t.equal(text, 'This is a transcript of the emulator.')
  t.match(gateway.emulator.ledger.at(-1), { body: { language: 'en', prompt: undefined } })
  t.same((await rowsOf(gateway)).at(-1)?.losses, ['generationConfig.audioTranscriptionConfig.diarization'])

  const SOUND = { model: 'whisper-1', contents: [sound] }
  t.match(await refusal(client, { ...SOUND, contents: 'Hi.' }), /must have one sound/)
  t.match(await refusal(client, { ...SOUND, contents: [sound, sound] }), /must have one sound/)
  t.match(await refusal(client, { ...SOUND, config: { systemInstruction: 'Listen.' } }), /one user turn/)
  const uri = { fileData: { mimeType: 'audio/wav', fileUri: 'gs://bucket/a.wav' } }
  t.match(await refusal(client, { ...SOUND, contents: [uri] }), /./)
})

void t.test('budgets reserve the sound before it is sent', async (t) => {
  const more = 'limits: [{ scope: key, usd_per_day: 0.0001 }]'
  const gateway = await startGateway(t, { more, routes: ROUTES })
  const client = clientOf(gateway)
  const long = { model: 'tts-1', contents: 'x'.repeat(100) }
  const sound = {
    inlineData: { mimeType: 'audio/wav', data: wavOf(Buffer.alloc(96_000), 24_000).toString('base64') },
  }
  for (const request of [long, { model: 'whisper-1', contents: [sound] }]) {
    const refused: unknown = await client.models.generateContent(request).catch((cause: unknown) => cause)
    t.match(refused, { status: 402 }, request.model)
  }
  t.equal(gateway.emulator.ledger.length, 0)
})

type Answer = (path: string, res: ServerResponse) => void

async function startVendor(t: Test, answer: Answer): Promise<string> {
  const server = createServer((req, res) => {
    req.resume()
    req.on('end', () => answer(req.url ?? '', res))
  })
  return `http://127.0.0.1:${await listen(t, server)}/v1`
}

void t.test('Mistral, and WAV in place of samples', async (t) => {
  const wav = wavOf(Buffer.from([1, 0, 2, 0]), 48_000)
  const origin = await startVendor(t, (path, res) => {
    if (path.endsWith('/transcriptions')) {
      res.writeHead(200, { 'content-type': 'application/json' })
      res.end(JSON.stringify({ model: 'own-ear', text: 'Hallo.', usage: { prompt_audio_seconds: 3 } }))
    } else if (path.startsWith('/v1/wav')) {
      res.writeHead(200, { 'content-type': 'audio/wav' })
      res.end(wav)
    } else {
      res.writeHead(200, { 'content-type': 'application/json' })
      res.end(JSON.stringify({ audio_data: Buffer.from([1, 0]).toString('base64') }))
    }
  })
  const prices = '{ own-voice: { per_character: 0.00001 }, own-whisper: { per_second_audio: 0.0001 } }'
  const gateway = await startGateway(t, {
    cloud: `preset: mistral, base_url: "${origin}", api_key: k, prices: ${prices}`,
    routes:
      '  - { model: own-voice, upstream: cloud }\n  - { model: own-whisper, upstream: cloud }\n' +
      '  - { model: own-orpheus, upstream: openai }\n',
    upstreams: { openai: `${origin}/wav` },
  })
  const client = clientOf(gateway)
  const config = { responseModalities: AUDIO }
  const made = await client.models.generateContent({ model: 'own-voice', contents: 'Hi.', config })
  t.match(made.candidates?.[0]?.content?.parts, [{ inlineData: { mimeType: SAMPLES, data: 'AQA=' } }])
  const sound = { inlineData: { mimeType: 'audio/mpeg', data: Buffer.from('ID3').toString('base64') } }
  const reply = await client.models.generateContent({ model: 'own-whisper', contents: [sound] })
  t.equal(reply.text, 'Hallo.')
  t.match((await rowsOf(gateway)).at(-1), { units: 'audio_second=3', costNanoUsd: 300_000 })
  const other = await client.models.generateContent({ model: 'own-orpheus', contents: 'Hi.', config })
  t.match(other.candidates?.[0]?.content?.parts, [
    { inlineData: { mimeType: 'audio/L16;codec=pcm;rate=48000', data: 'AQACAA==' } },
  ])
})

void t.test('errors and cut sound', async (t) => {
  const answers: Answer[] = [
    (_path, res) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      res.write('data: {"type":"speech.audio.delta","audio":"AQA="}\n\n')
      setTimeout(() => res.destroy(), 50)
    },
    (_path, res) => {
      res.writeHead(200, { 'content-type': 'audio/pcm', 'content-length': '100' })
      res.write('ab')
      setTimeout(() => res.destroy(), 50)
    },
    (_path, res) => {
      res.writeHead(200, { 'content-type': 'application/json' })
      res.end('{"error":{"message":"no such voice","type":"invalid_request_error"}}')
    },
    (_path, res) => {
      res.writeHead(200, { 'content-type': 'application/json' })
      res.end('{"audio":{}}')
    },
  ]
  let answer: Answer | undefined
  const origin = await startVendor(t, (path, res) => answer?.(path, res))
  const gateway = await startGateway(t, { upstreams: { openai: origin }, routes: ROUTES })
  for (const [at, each] of answers.entries()) {
    answer = each
    const model = at === 1 ? 'tts-1' : 'gpt-4o-mini-tts'
    const error: unknown = await clientOf(gateway)
      .models.generateContent({ model, contents: 'Hi.' })
      .catch((cause: unknown) => cause)
    t.ok(error instanceof ApiError, `answer ${at} is an error: ${String(error)}`)
    const row = (await rowsOf(gateway)).at(-1)
    t.not(row?.outcome, 'ok')
    if (at < 2) t.match(row, { source: 'assumed' }, `answer ${at} is charged`)
    if (at < 2) t.ok((row?.costNanoUsd ?? 0) > 0)
  }
})
