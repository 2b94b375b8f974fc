/**
 * Goal: the emulator answers pictures, sound, moderations and ranks as vendors do, with faults, and a gateway
 * in front of it charges them.
 * Method: OpenAI's SDK against the emulator, and through a gateway.
 */
import OpenAI, { toFile } from 'openai'
import t from 'tap'
import { startEmulator } from '../../src/emulator/server.js'
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
