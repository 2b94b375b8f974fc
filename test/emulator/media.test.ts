/**
 * Goal: the emulator answers pictures, sound, moderations and ranks as vendors do, with faults, and a gateway
 * in front of it charges them.
 * Method: OpenAI's SDK against the emulator, and through a gateway.
 */
import { GoogleGenAI, Modality } from '@google/genai'
import OpenAI, { toFile } from 'openai'
import t from 'tap'
import { startEmulator } from '../../src/emulator/server.js'
import { wavOf } from '../../src/formats/wire/media/sound.js'
import { startGateway } from '../helpers/gateway.js'
import { rowsOf } from '../helpers/ledger.js'

void t.test("OpenAI's SDK gets pictures, sound, transcripts and verdicts", async (t) => {
  const emulator = await startEmulator({ models: 'any' })
  t.teardown(() => emulator.close())
  const client = new OpenAI({ baseURL: emulator.baseUrls.openai, apiKey: 'key', maxRetries: 0 })
  const model = 'gpt-image-2'
  const drawn = await client.images.generate({ model, prompt: 'a cat', n: 2, quality: 'low' })
  t.equal(drawn.data?.length, 2)
  t.equal(Buffer.from(drawn.data?.[0]?.b64_json ?? '', 'base64').toString('latin1', 1, 4), 'PNG')
  t.match(drawn.usage, { output_tokens: 544 })
  const stream = await client.images.generate({ model, prompt: 'a cat', stream: true, partial_images: 1 })
  const types = []
  for await (const event of stream) types.push(event.type)
  t.same(types, ['image_generation.partial_image', 'image_generation.completed'])
  const image = await toFile(Buffer.from('png'), 'a.png', { type: 'image/png' })
  t.equal((await client.images.edit({ model, prompt: 'a dog', image })).data?.length, 1)

  const voice = { model: 'gpt-4o-mini-tts', voice: 'alloy', input: 'Hello there.' } as const
  const wav = await client.audio.speech.create({ ...voice, response_format: 'wav' })
  const sound = Buffer.from(await wav.arrayBuffer())
  t.equal(sound.toString('latin1', 0, 4), 'RIFF')
  const file = await toFile(sound, 'a.wav')
  const transcript = await client.audio.transcriptions.create({ model: 'whisper-1', file })
  t.match(transcript, { text: /transcript/, usage: { type: 'duration', seconds: 2 } })
  const subtitles = await client.audio.transcriptions.create({
    model: 'whisper-1',
    file,
    response_format: 'vtt',
  })
  t.match(subtitles, /^WEBVTT\n/)

  const verdicts = await client.moderations.create({ input: ['a cat', 'kill it'] })
  t.same(
    verdicts.results.map(({ flagged }) => flagged),
    [false, true],
  )
  const body = JSON.stringify({ query: 'red cat', documents: ['a dog', 'a red cat', 'a cat'], top_n: 2 })
  const headers = { authorization: 'Bearer key', 'content-type': 'application/json' }
  const ranked = await fetch(`${emulator.origin}/v2/rerank`, { method: 'POST', headers, body })
  t.match(await ranked.json(), { results: [{ index: 1, relevance_score: 1 }, { index: 2 }] })

  emulator.script({ fault: { kind: 'status', code: 503 }, times: 1 })
  await t.rejects(client.images.generate({ model, prompt: 'a cat' }), /503/)
  await t.rejects(client.images.generate({ model, prompt: '' }), /400/)
})

void t.test('a gateway in front of it charges them', async (t) => {
  const gateway = await startGateway(t)
  const client = new OpenAI({ baseURL: gateway.baseUrl, apiKey: gateway.secret, maxRetries: 0 })
  await client.images.generate({ model: 'gpt-image-2', prompt: 'a cat', quality: 'low' })
  const rows = await rowsOf(gateway)
  t.match(rows, [{ status: 200, source: 'reported', units: 'image=1 output_image=272' }])
  t.ok((rows[0]?.costNanoUsd ?? 0) >= 272 * 30_000)
})

void t.test("Google's SDK gets pictures, sound and transcripts, with faults", async (t) => {
  const emulator = await startEmulator({ models: 'any' })
  t.teardown(() => emulator.close())
  const client = new GoogleGenAI({ apiKey: 'key', httpOptions: { baseUrl: emulator.origin } })
  const picture = await client.models.generateContent({
    model: 'gemini-3-pro-image',
    contents: 'A cat.',
    config: { responseModalities: [Modality.IMAGE] },
  })
  t.equal(picture.candidates?.[0]?.content?.parts?.[0]?.inlineData?.mimeType, 'image/png')
  t.match(picture.usageMetadata?.candidatesTokensDetails, [{ modality: 'IMAGE', tokenCount: 1290 }])
  const request = {
    model: 'gemini-3-tts',
    contents: 'Good morning.',
    config: { responseModalities: [Modality.AUDIO] },
  }
  let bytes = 0
  for await (const { data = '' } of await client.models.generateContentStream(request)) {
    bytes += Buffer.from(data, 'base64').length
  }
  t.equal(bytes, 48_000)
  const sound = {
    inlineData: { mimeType: 'audio/wav', data: wavOf(Buffer.alloc(48_000), 24_000).toString('base64') },
  }
  const transcript = await client.models.generateContent({
    model: 'gemini-3.5-transcribe',
    contents: [sound],
  })
  t.match(transcript.candidates?.[0]?.content?.parts, [{ audioTranscription: { text: /transcript/ } }])
  t.match(transcript.usageMetadata?.promptTokensDetails, [{}, { modality: 'AUDIO', tokenCount: 33 }])
  emulator.script({ fault: { kind: 'status', code: 503 }, times: 1 })
  await t.rejects(client.models.generateContent(request), /503/)
})

void t.test('a gateway translates pictures, sound and ranks of other forms', async (t) => {
  const emulator = await startEmulator({ models: 'any' })
  t.teardown(() => emulator.close())
  const presets = ['jina', 'voyage', 'vllm', 'cohere', 'tei', 'deepinfra', 'together'] as const
  const rankers = await Promise.all(
    presets.map(async (preset) => {
      const base = preset === 'deepinfra' ? '/v1/openai' : '/v1'
      const routes = '  - { prefix: own-, upstream: cloud }\n'
      const cloud = `preset: ${preset}, base_url: "${emulator.origin}${base}", api_key: k, prices: { "*": { input: 1, per_search: 1 } }`
      return { preset, gateway: await startGateway(t, { cloud, routes }) }
    }),
  )
  for (const { preset, gateway } of rankers) {
    const reply = await fetch(`${gateway.origin}/v2/rerank`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.secret}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        model: 'own-rank',
        query: 'red cat',
        documents: ['a dog', 'a red cat', 'a cat'],
        top_n: 2,
      }),
    })
    t.match(await reply.json(), { results: [{ index: 1, relevance_score: 1 }, { index: 2 }] }, preset)
  }
  const gateway = await startGateway(t)
  const client = new OpenAI({ baseURL: gateway.baseUrl, apiKey: gateway.secret, maxRetries: 0 })
  const drawn = await client.images.generate({ model: 'gemini-3-pro-image', prompt: 'a cat' })
  t.ok(drawn.data?.[0]?.b64_json)
  const voice = { model: 'gemini-2.5-flash-preview-tts', voice: 'alloy', input: 'Hi.' } as const
  const pcm = await client.audio.speech.create({ ...voice, response_format: 'pcm' })
  t.equal((await pcm.arrayBuffer()).byteLength, 48_000)
  const file = await toFile(wavOf(Buffer.alloc(48_000), 24_000), 'a.wav', { type: 'audio/wav' })
  const transcript = await client.audio.transcriptions.create({ model: 'gemini-3.5-transcribe', file })
  t.match(transcript, { text: /transcript/ })
})
