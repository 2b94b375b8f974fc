/**
 * Goal: sound and pictures are charged at their own prices, budgets reserve the most expensive kind that a
 * request may use, and a kind without a price is never charged as text.
 * Method: a gateway over an upstream that reports tokens by kind, in the forms of several providers, whole
 * and streamed.
 */
import t, { type Test } from 'tap'
import { rowsOf } from '../helpers/ledger.js'
import { redisMissing, startRedis } from '../helpers/redis.js'
import { anotherDay } from '../helpers/long-suite.js'
import { chat, gemini, setUp, user, type Asked } from './hosted-upstream.js'

const FLASH = '/v1beta/models/gemini-2.5-flash'
/** A spent budget has this status, or the one that `limiting.budget_status` sets. */
const OVER = [402, 429]
const HI = { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] }
/** A second of silence. */
const WAV = wav(1)

function wav(seconds: number): string {
  const bytes = Buffer.alloc(44 + seconds * 16_000)
  bytes.write('RIFF', 0)
  bytes.writeUInt32LE(bytes.length - 8, 4)
  bytes.write('WAVEfmt ', 8)
  bytes.writeUInt32LE(16, 16)
  bytes.writeUInt16LE(1, 20)
  bytes.writeUInt16LE(1, 22)
  bytes.writeUInt32LE(8_000, 24)
  bytes.writeUInt32LE(16_000, 28)
  bytes.writeUInt16LE(2, 32)
  bytes.writeUInt16LE(16, 34)
  bytes.write('data', 36)
  bytes.writeUInt32LE(bytes.length - 44, 40)
  return bytes.toString('base64')
}

/** A reply of Gemini with these counts. */
function counted(metadata: object): object {
  return {
    candidates: [{ index: 0, content: { role: 'model', parts: [{ text: 'Hi' }] }, finishReason: 'STOP' }],
    usageMetadata: metadata,
    modelVersion: 'gemini-2.5-flash',
  }
}

const M = 1_000_000
const kind = (modality: string, tokenCount: number): object => ({ modality, tokenCount })

/** Counts of a reply, and what they cost at the shipped prices; null: unknown. */
const COUNTED: readonly (readonly [what: string, metadata: object, usd: number | null])[] = [
  [
    'sound',
    { promptTokenCount: M, candidatesTokenCount: 1, promptTokensDetails: [kind('AUDIO', M)] },
    1.0000025,
  ],
  [
    'text and sound',
    {
      promptTokenCount: M,
      candidatesTokenCount: 100_000,
      promptTokensDetails: [kind('TEXT', 600_000), kind('AUDIO', 400_000)],
    },
    0.18 + 0.4 + 0.25,
  ],
  [
    'cached sound',
    {
      promptTokenCount: M,
      candidatesTokenCount: 1,
      cachedContentTokenCount: 500_000,
      promptTokensDetails: [kind('AUDIO', M)],
      cacheTokensDetails: [kind('AUDIO', 500_000)],
    },
    0.5 + 0.05 + 0.0000025,
  ],
  [
    'pictures and video as input cost as much as text',
    {
      promptTokenCount: M,
      candidatesTokenCount: 1,
      promptTokensDetails: [kind('IMAGE', 400_000), kind('VIDEO', 600_000)],
    },
    0.3 + 0.0000025,
  ],
  [
    'a picture without a price',
    { promptTokenCount: 10, candidatesTokenCount: 1_290, candidatesTokensDetails: [kind('IMAGE', 1_290)] },
    null,
  ],
  [
    'a kind that is not known',
    { promptTokenCount: 10, candidatesTokenCount: 1_290, candidatesTokensDetails: [kind('VIDEO', 1_290)] },
    null,
  ],
]

void t.test('Gemini: kinds of tokens have their own prices, passed on and translated', async (t) => {
  const { upstream, key, ask, gateway } = await setUp(t)
  const secret = await key()
  for (const [what, metadata, usd] of COUNTED) {
    const reply = counted({ totalTokenCount: 1, ...metadata })
    const requests: readonly [string, Asked, string][] = [
      ['whole', { path: `${FLASH}:generateContent`, body: HI }, JSON.stringify(reply)],
      [
        'stream',
        { path: `${FLASH}:streamGenerateContent?alt=sse`, body: HI },
        `data: ${JSON.stringify(reply)}\n\n`,
      ],
      ['translated', chat({ model: 'gemini-2.5-flash' }), JSON.stringify(reply)],
    ]
    for (const [form, asked, body] of requests) {
      const type = form === 'stream' ? 'text/event-stream' : 'application/json'
      upstream.answer = () => ({ type, chunks: [body] })
      t.equal((await ask(secret, asked)).status, 200, `${what}, ${form}`)
      const cost = (await rowsOf(gateway)).at(-1)?.costNanoUsd ?? null
      t.equal(cost, usd === null ? null : Math.round(usd * 1e9), `${what}, ${form}`)
    }
  }
})

void t.test('OpenAI: sound in and out, whole and streamed', async (t) => {
  const { upstream, key, ask, gateway } = await setUp(t)
  const secret = await key()
  const usage = {
    prompt_tokens: 110_000,
    completion_tokens: 60_000,
    total_tokens: 170_000,
    prompt_tokens_details: { audio_tokens: 100_000, text_tokens: 10_000 },
    completion_tokens_details: { audio_tokens: 50_000, text_tokens: 10_000 },
  }
  const usd = 0.1 * 32 + 0.01 * 2.5 + 0.05 * 64 + 0.01 * 10
  const message = { role: 'assistant', content: 'Hi' }
  const choices = [{ index: 0, message, finish_reason: 'stop' }]
  const whole = { id: 'c', object: 'chat.completion', created: 1, model: 'gpt-audio', choices, usage }
  upstream.answer = () => ({ type: 'application/json', chunks: [JSON.stringify(whole)] })
  t.equal((await ask(secret, chat({ model: 'gpt-audio' }))).status, 200)
  t.equal((await rowsOf(gateway)).at(-1)?.costNanoUsd, Math.round(usd * 1e9))
  const base = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'gpt-audio' }
  const choice = { index: 0, delta: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }
  const chunks = [
    { ...base, choices: [choice] },
    { ...base, choices: [], usage },
  ]
  const frames = [...chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`), 'data: [DONE]\n\n']
  upstream.answer = () => ({ type: 'text/event-stream', chunks: frames })
  t.equal((await ask(secret, chat({ model: 'gpt-audio', stream: true }))).status, 200)
  t.equal((await rowsOf(gateway)).at(-1)?.costNanoUsd, Math.round(usd * 1e9))
})

const sound = (data = WAV): object => ({ type: 'input_audio', input_audio: { data, format: 'wav' } })

async function checkReservations(t: Test, store?: string): Promise<void> {
  const { key, ask } = await setUp(t, store === undefined ? {} : { store })
  const voice = { modalities: ['text', 'audio'], audio: { voice: 'alloy', format: 'wav' } }
  const asked: readonly (readonly [string, Asked, number])[] = [
    // 16,384 reply tokens of sound are $1.05, of text $0.16.
    ['voice reply', chat({ model: 'gpt-audio', ...voice }), 1.04],
    ['written reply', chat({ model: 'gpt-audio' }), 0.16],
    ['sound in', chat({ model: 'gpt-audio', max_tokens: 100, messages: [user(sound())] }), 0.01],
    ['earlier sound', chat({ model: 'gpt-audio', max_tokens: 100, messages: soundBefore() }), 4],
  ]
  for (const [what, request, usd] of asked) {
    const small = await key({ limits: { nanoUsdPerDay: Math.round(usd * 1e9 * 0.95) } })
    const over = await ask(small, { ...request, body: { ...request.body, max_completion_tokens: 16_384 } })
    t.ok(OVER.includes(over.status), `${what}: ${over.status} ${over.text}`)
    const large = await key({ limits: { nanoUsdPerDay: 6e9 } })
    t.equal((await ask(large, request)).status, 200, what)
  }
}

function soundBefore(): object[] {
  return [user({ type: 'text', text: 'hi' }), { role: 'assistant', audio: { id: 'audio_1' } }, user()]
}

const [notSqlite, notRedis] = [anotherDay(0, 2), anotherDay(1, 2) || redisMissing()]
void t.test('budgets reserve the most expensive kind: SQLite', { skip: notSqlite }, (t) =>
  checkReservations(t),
)
void t.test('budgets reserve the most expensive kind: Redis', { skip: notRedis }, async (t) => {
  const redis = await startRedis(t)
  await checkReservations(t, redis.url())
})

void t.test('a kind without a price is refused under a budget', async (t) => {
  const prices = 'prices: { "*": { input: 1, output: 10, cache_read: 0.1 } }'
  const { key, ask } = await setUp(t, { upstreamOptions: prices })
  const budgeted = await key({ limits: { nanoUsdPerDay: 1000e9 } })
  const free = await key()
  const inline = (mimeType: string): object => ({
    contents: [{ role: 'user', parts: [{ inlineData: { mimeType, data: 'AAAA' } }] }],
  })
  const refused: readonly (readonly [name: string, asked: Asked])[] = [
    ['input_audio', chat({ messages: [user(sound())] })],
    ['output_audio', chat({ modalities: ['text', 'audio'], audio: { voice: 'alloy', format: 'wav' } })],
    ['input_audio', gemini(inline('audio/wav'))],
    ['input_audio', gemini(inline('audio/ogg'))],
    ['input_audio', gemini(inline('video/mp4'))],
    ['output_image', gemini({ ...HI, generationConfig: { responseModalities: ['TEXT', 'IMAGE'] } })],
    ['output_audio', gemini({ ...HI, generationConfig: { responseModalities: ['AUDIO'] } })],
    ['output_audio', gemini({ ...HI, generationConfig: { responseModalities: ['TEXT', 'VIDEO'] } })],
  ]
  for (const [name, asked] of refused) {
    const answer = await ask(budgeted, asked)
    t.match(answer, { status: 403, text: new RegExp(`unknown_price.*|.*${name}`) }, name)
    t.ok(answer.text.includes(name) && answer.text.includes('unknown_price'), answer.text)
    t.equal((await ask(free, asked)).status, 200, `${name}: served without a budget`)
  }
  t.equal((await ask(budgeted, gemini(inline('image/png')))).status, 200, 'pictures cost as much as text')
  t.equal((await ask(budgeted, gemini(HI))).status, 200)
})

void t.test('kinds that a request leaves open are reserved as pictures, too', async (t) => {
  const { key, ask } = await setUp(t)
  const path = '/v1beta/models/gemini-2.5-flash-image:generateContent'
  for (const responseModalities of [undefined, [], ['MODALITY_UNSPECIFIED'], ['IMAGE']]) {
    const generationConfig = { maxOutputTokens: 10_000, responseModalities }
    const secret = await key({ limits: { nanoUsdPerDay: 0.1e9 } })
    const { status, text } = await ask(secret, { path, body: { ...HI, generationConfig } })
    t.ok(OVER.includes(status), `${JSON.stringify(responseModalities)}: ${text}`)
  }
  const textOnly = { maxOutputTokens: 10_000, responseModalities: ['TEXT', 'MODALITY_UNSPECIFIED'] }
  const secret = await key({ limits: { nanoUsdPerDay: 0.1e9 } })
  t.equal((await ask(secret, { path, body: { ...HI, generationConfig: textOnly } })).status, 200)
})

async function checkCompletions(t: Test, store?: string): Promise<void> {
  const { upstream, key, ask } = await setUp(t, store === undefined ? {} : { store })
  upstream.answer = () => ({
    type: 'application/json',
    chunks: [
      JSON.stringify({ id: 'c', object: 'text_completion', created: 1, model: 'gpt-5.4-mini', choices: [] }),
    ],
  })
  // A reply of 1000 tokens costs $0.0045.
  const prompts: readonly (readonly [prompt: unknown, count: number])[] = [
    ['hi', 1],
    [['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j'], 10],
    [[1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 1],
    [Array.from({ length: 10 }, () => [1, 2]), 10],
    [['a', ...Array.from({ length: 9 }, () => [1])], 10],
  ]
  for (const [prompt, count] of prompts) {
    const body = { model: 'gpt-5.4-mini', prompt, max_tokens: 1_000 }
    const secret = await key({ limits: { nanoUsdPerDay: 0.02e9 } })
    const { status, text } = await ask(secret, { path: '/v1/completions', body })
    t.equal(OVER.includes(status), count > 1, `${count} prompts: ${status} ${text}`)
    const both = await key({ limits: { nanoUsdPerDay: 0.02e9 } })
    const several = await ask(both, { path: '/v1/completions', body: { ...body, n: 10 } })
    t.ok(OVER.includes(several.status), `${count} prompts with n: ${several.status}`)
  }
}

void t.test('every form of prompts of a completion is counted: SQLite', { skip: notSqlite }, (t) =>
  checkCompletions(t),
)
void t.test('every form of prompts is counted: Redis', { skip: notRedis }, async (t) => {
  const redis = await startRedis(t)
  await checkCompletions(t, redis.url())
})
