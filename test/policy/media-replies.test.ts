/**
 * Goal: guardrails judge the texts of transcripts and revised prompts as those of chats: masks reach
 * segments, words, subtitles and events alike, a refused reply is 400 and charged, and what no guardrail
 * reads is noted.
 * Method: a gateway with own rules and a guard server in front of a vendor that answers what the test sets.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { objectOf, type JsonObject } from '../../src/base/json.js'
import { wavOf } from '../../src/formats/wire/media/sound.js'
import { startGateway, type TestGateway } from '../helpers/gateway.js'
import { rowsOf } from '../helpers/ledger.js'
import { listen } from '../helpers/listen.js'

const WAV = wavOf(Buffer.alloc(8_000 * 2), 8_000)

/** Starts a server that reads each request and answers it. */
async function serve(
  t: Test,
  answer: (body: string, res: ServerResponse, req: IncomingMessage) => void,
): Promise<string> {
  const server = createServer((req, res) => {
    let body = ''
    req.setEncoding('latin1').on('data', (chunk: string) => (body += chunk))
    req.on('end', () => answer(body, res, req))
  })
  return `http://127.0.0.1:${await listen(t, server)}`
}

interface Scene {
  readonly gateway: TestGateway
  /** The reply of the vendor: a JSON value, or events. */
  reply: JsonObject | readonly JsonObject[]
  /** Requests that the vendor got. */
  requests: number
}

async function start(t: Test, guardrails: string): Promise<Scene> {
  const scene = { reply: {}, requests: 0 } as { -readonly [Key in keyof Scene]: Scene[Key] }
  const origin = await serve(t, (_, res) => {
    scene.requests += 1
    const { reply } = scene
    const type = Array.isArray(reply) ? 'text/event-stream' : 'application/json'
    res.writeHead(200, { 'content-type': type })
    const text = Array.isArray(reply)
      ? reply.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')
      : JSON.stringify(reply)
    res.end(text)
  })
  const prices = 'prices: { whisper-1: { per_second_audio: 0.0001 } }'
  scene.gateway = await startGateway(t, {
    upstreams: { openai: `${origin}/v1`, gemini: `${origin}/v1beta` },
    upstreamOptions: prices,
    routes:
      '  - { model: whisper-1, upstream: openai }\n  - { model: gpt-image-2, upstream: openai }\n  - { model: tts-1, upstream: openai }\n',
    more: `guardrails:\n${guardrails}`,
  })
  return scene
}

async function transcribe(
  { gateway }: Scene,
  fields: Record<string, string>,
  action = 'transcriptions',
): Promise<Response> {
  const body = new FormData()
  body.append('file', new Blob([WAV], { type: 'audio/wav' }), 'a.wav')
  for (const [name, value] of Object.entries({ model: 'whisper-1', ...fields })) body.append(name, value)
  const headers = { authorization: `Bearer ${gateway.secret}` }
  return fetch(`${gateway.origin}/v1/audio/${action}`, { method: 'POST', headers, body })
}

function post({ gateway }: Scene, path: string, body: object): Promise<Response> {
  const headers = { authorization: `Bearer ${gateway.secret}`, 'content-type': 'application/json' }
  return fetch(gateway.origin + path, { method: 'POST', headers, body: JSON.stringify(body) })
}

/** A recorded call with an address across two segments, as Whisper answers. */
const CALL = {
  task: 'transcribe',
  duration: 4,
  language: 'english',
  text: 'Call me on 212-555-0123 today or write to kim@example.org. Thank you.',
  segments: [
    { id: 0, start: 0, end: 2, text: ' Call me on 212-555-0123 today', tokens: [7, 8], avg_logprob: -0.1 },
    { id: 1, start: 2, end: 4, text: ' or write to kim@example.org. Thank you.', tokens: [9] },
  ],
  words: [
    { word: 'Call', start: 0, end: 0.2 },
    { word: 'me', start: 0.2, end: 0.4 },
    { word: 'on', start: 0.4, end: 0.6 },
    { word: '212', start: 0.6, end: 1 },
    { word: '555', start: 1, end: 1.4 },
    { word: '0123', start: 1.4, end: 1.8 },
    ...['today', 'or', 'write', 'to', 'kim@example.org', 'Thank', 'you'].map((word, at) => ({
      word,
      start: 2 + at,
      end: 2.5 + at,
    })),
  ],
  usage: { type: 'duration', seconds: 4 },
}

const MASKED = 'Call me on [phone] today or write to [email]. Thank you.'

const MASKED_REPLY = {
  ...CALL,
  text: MASKED,
  segments: [
    { id: 0, start: 0, end: 2, text: ' Call me on [phone] today', avg_logprob: -0.1 },
    { id: 1, start: 2, end: 4, text: ' or write to [email]. Thank you.' },
  ],
  words: [
    ...CALL.words.slice(0, 3),
    { word: '[phone]', start: 0.6, end: 1.8 },
    ...CALL.words.slice(6).map((each) => (each.word.includes('@') ? { ...each, word: '[email]' } : each)),
  ],
}

void t.test('own rules mask text, segments, words, subtitles and events alike', async (t) => {
  const scene = await start(t, '  pii: { detect: [email, phone], action: mask, apply_to: { all: true } }\n')
  scene.reply = CALL
  const verbose = await transcribe(scene, { response_format: 'verbose_json' })
  t.match(verbose.headers.get('x-sluice-guardrails'), /pii:mask/)
  t.same(await verbose.json(), MASKED_REPLY)
  t.equal(await (await transcribe(scene, { response_format: 'text' })).text(), `${MASKED}\n`)
  const srt = await (await transcribe(scene, { response_format: 'srt' })).text()
  t.match(srt, 'Call me on [phone] today\n')
  t.match(srt, 'or write to [email]. Thank you.\n')
  t.notMatch(srt, /0123|kim/)
  scene.reply = [
    { type: 'transcript.text.delta', delta: 'Write to kim@exam' },
    { type: 'transcript.text.delta', delta: 'ple.org.' },
    {
      type: 'transcript.text.done',
      text: 'Write to kim@example.org.',
      usage: { type: 'duration', seconds: 4 },
    },
  ]
  const streamed = await transcribe(scene, { stream: 'true' })
  t.match(streamed.headers.get('content-type'), /^text\/event-stream/)
  const events = (await streamed.text()).split('\n\n').filter((line) => line !== '')
  t.same(
    events.map((line) => objectOf(JSON.parse(line.replace('data: ', '')))),
    [
      { type: 'transcript.text.delta', delta: 'Write to [email].' },
      { type: 'transcript.text.done', text: 'Write to [email].', usage: { type: 'duration', seconds: 4 } },
    ],
  )
  const clean = {
    text: 'Nothing to hide.',
    logprobs: [{ token: 'Nothing', logprob: -0.1 }],
    usage: CALL.usage,
  }
  scene.reply = clean
  t.same(
    await (await transcribe(scene, {})).json(),
    clean,
    'a reply that passes is the own one of the vendor',
  )
  const rows = await rowsOf(scene.gateway)
  t.equal(rows.length, 5)
  t.same(
    rows.map(({ costNanoUsd, outcome }) => [costNanoUsd, outcome]),
    rows.map(() => [400_000, 'ok']),
  )
})

void t.test('a refused transcript is 400 before its first byte, and charged', async (t) => {
  const scene = await start(t, '  pii: { detect: [phone], action: block, apply_to: { all: true } }\n')
  scene.reply = { text: 'Call 212-555-0123.', usage: { type: 'duration', seconds: 4 } }
  const whole = await transcribe(scene, {})
  t.equal(whole.status, 400)
  t.match(await whole.json(), { error: { kind: 'guardrail_blocked' } })
  t.equal((await transcribe(scene, { response_format: 'vtt' })).status, 400)
  scene.reply = [
    { type: 'transcript.text.delta', delta: 'Call 212-555-' },
    { type: 'transcript.text.delta', delta: '0123.' },
    { type: 'transcript.text.done', text: 'Call 212-555-0123.', usage: { type: 'duration', seconds: 4 } },
  ]
  const streamed = await transcribe(scene, { stream: 'true' })
  t.equal(streamed.status, 400)
  t.notMatch(await streamed.text(), /0123/)
  t.equal(scene.requests, 3, 'a refusal is not repeated')
  const rows = await rowsOf(scene.gateway)
  t.same(
    rows.map(({ costNanoUsd, outcome }) => [costNanoUsd, outcome]),
    rows.map(() => [400_000, 'guardrail_blocked']),
  )
})

void t.test('transcripts of another format, and translations', async (t) => {
  const scene = await start(t, '  pii: { detect: [email], action: mask, apply_to: { all: true } }\n')
  const received = { text: 'Write to kim@example.org.', startOffset: '0s', endOffset: '4s' }
  const gemini = {
    candidates: [{ content: { parts: [{ audioTranscription: received }] }, finishReason: 'STOP' }],
    usageMetadata: { promptTokenCount: 9, candidatesTokenCount: 3, totalTokenCount: 12 },
  }
  const model = 'gemini-3.5-transcribe'
  scene.reply = gemini
  const vtt = await (await transcribe(scene, { model, response_format: 'vtt' })).text()
  t.equal(vtt, 'WEBVTT\n\n00:00:00.000 --> 00:00:04.000\nWrite to [email].\n\n')
  scene.reply = [gemini]
  const streamed = await (await transcribe(scene, { model, stream: 'true' })).text()
  t.match(streamed, '"text":"Write to [email]."')
  t.notMatch(streamed, 'kim@')
  scene.reply = { text: 'In English: kim@example.org', usage: { type: 'duration', seconds: 4 } }
  t.match(await (await transcribe(scene, {}, 'translations')).json(), { text: 'In English: [email]' })
  const long = 'word '.repeat(60_000)
  scene.reply = { text: `${long}kim@example.org`, segments: [{ start: 0, end: 4, text: long }] }
  const masked = objectOf(await (await transcribe(scene, {})).json())
  t.ok(masked['text'] === `${long}[email]`, 'a large transcript')
})

void t.test('a guard server gets the transcript and masks it', async (t) => {
  const seen: string[] = []
  const guard = await serve(t, (body, res, req) => {
    if (req.url === '/response') seen.push(body)
    res.writeHead(200, { 'content-type': 'application/json' })
    const masked = body.replaceAll('Falcon', 'bird')
    const parsed = objectOf(JSON.parse(masked))
    const isMask = req.url === '/response' && masked !== body
    const action = isMask ? { body: parsed['body'], reason: 'a name' } : { reason: 'fine' }
    res.end(JSON.stringify({ action }))
  })
  const scene = await start(t, `  names: { url: '${guard}', protocol: webhook, apply_to: { all: true } }\n`)
  scene.reply = { text: 'The Falcon lands.', usage: { type: 'duration', seconds: 4 } }
  t.match(await (await transcribe(scene, {})).json(), { text: 'The bird lands.' })
  t.match(seen, [/The Falcon lands/])
})

void t.test('revised prompts are judged; pictures and sound are unseen', async (t) => {
  const scene = await start(t, '  pii: { detect: [email], action: mask, apply_to: { all: true } }\n')
  scene.reply = {
    created: 1,
    data: [{ b64_json: 'AAAA', revised_prompt: 'A letter to kim@example.org.' }],
    usage: { input_tokens: 1, output_tokens: 2, total_tokens: 3 },
  }
  const drawn = await post(scene, '/v1/images/generations', { model: 'gpt-image-2', prompt: 'a letter' })
  t.same(await drawn.json(), {
    ...scene.reply,
    data: [{ b64_json: 'AAAA', revised_prompt: 'A letter to [email].' }],
  })
  t.match(drawn.headers.get('x-sluice-guardrails'), /pii:unseen/)
})

void t.test(
  'with `unseen: block` replies of pictures and sound are refused before they are paid',
  async (t) => {
    const scene = await start(
      t,
      '  blind: { patterns: [zzz], on: [response], action: block, unseen: block, apply_to: { all: true } }\n',
    )
    const drawn = await post(scene, '/v1/images/generations', { model: 'gpt-image-2', prompt: 'a letter' })
    t.equal(drawn.status, 400)
    t.match(await drawn.json(), { error: { kind: 'guardrail_blocked' } })
    const sound = await post(scene, '/v1/audio/speech', { model: 'tts-1', input: 'Hi.', voice: 'alloy' })
    t.equal(sound.status, 400)
    t.equal(scene.requests, 0)
  },
)
