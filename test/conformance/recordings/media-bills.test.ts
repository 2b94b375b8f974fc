/**
 * Goal: no reply with pictures, sound, ranks or verdicts costs less than the price on the page of its vendor,
 * in each form of counts: without details, with empty ones, with zeros, as the counts of a chat.
 * Method: a vendor on a real socket whose replies have the forms of usage that public recordings and reports
 * of wrong bills show, in other numbers; the prices of the vendors' pages, read 2026-11-29.
 */
import t from 'tap'
import { wavOf } from '../../../src/formats/wire/media/sound.js'
import { startGateway } from '../../helpers/gateway.js'
import { rowsOf } from '../../helpers/ledger.js'
import { startRawUpstream } from '../../helpers/raw-upstream.js'

/** Five seconds. */
const WAV = wavOf(Buffer.alloc(5 * 8_000 * 2), 8_000)
const PICTURE = { b64_json: Buffer.from('picture').toString('base64') }
const SOUND = Buffer.alloc(40).toString('base64')

type Upstream = 'openai' | 'google' | 'mistral' | 'groq' | 'cohere' | 'jina' | 'voyage' | 'vllm'

const SETTINGS: Readonly<Record<Upstream, string>> = {
  openai: 'dialect: openai-chat',
  google: 'dialect: gemini',
  mistral: 'preset: mistral',
  groq: 'preset: groq',
  cohere: 'preset: cohere',
  jina: 'preset: jina',
  voyage: 'preset: voyage',
  vllm: 'preset: vllm',
}

/** Of each model, in YAML. */
const PRICES: Readonly<Record<string, string>> = {
  'gpt-image-2': 'input: 5, input_image: 8, output: 10, output_image: 30',
  'dall-e-3': 'per_image: { "1024x1024": 0.04, "hd/1024x1024": 0.08, "hd/*": 0.12, "*": 0.12 }',
  'gpt-4o-mini-tts': 'input: 0.6, output_audio: 12',
  'gpt-4o-transcribe': 'input: 2.5, input_audio: 6, output: 10',
  'whisper-1': 'per_second_audio: 0.0001',
  'whisper-large-v3': 'per_second_audio: 0.00003083, min_audio_seconds: 10',
  'voxtral-mini': 'per_second_audio: 0.00005',
  'gemini-3-pro-image': 'input: 2, output: 12, output_image: 120',
  'gemini-3-tts': 'input: 0.5, output_audio: 9',
  'gemini-3.5-transcribe': 'input: 1, input_audio: 2, output: 12',
  'rerank-v3.5': 'per_search: 0.002',
  'reranker-v2': 'input: 0.05',
  'text-embedding-3-small': 'input: 0.02, output: 0',
  'gemini-embedding-2': 'input: 0.2, output: 0',
}

interface Bill {
  readonly upstream: Upstream
  readonly model: string
  readonly path: string
  /** The fields; of transcriptions those of the form. */
  readonly body: Readonly<Record<string, unknown>>
  readonly reply: unknown
  /** What the vendor bills, in nano-dollars; null: it is unknown, and not nothing. */
  readonly nanoUsd: number | null
}

const image = (usage: unknown, nanoUsd: number | null, more: object = {}): Bill => ({
  ...{
    upstream: 'openai',
    model: 'gpt-image-2',
    path: '/v1/images/generations',
    body: { prompt: 'a cat', ...more },
  },
  ...{ reply: { created: 1, data: [PICTURE], usage }, nanoUsd },
})
const transcript = (upstream: Upstream, model: string, reply: object, nanoUsd: number | null): Bill => ({
  ...{
    upstream,
    model,
    path: '/v1/audio/transcriptions',
    body: {},
    reply: { text: 'Hello.', ...reply },
    nanoUsd,
  },
})
const rank = (upstream: Upstream, model: string, reply: object, nanoUsd: number | null): Bill => ({
  ...{ upstream, model, path: '/v1/rerank', body: { query: 'q', documents: ['one', 'two'] } },
  ...{ reply: { results: [0, 1].map((index) => ({ index, relevance_score: 0.5 })), ...reply }, nanoUsd },
})
const embedded = (upstream: Upstream, model: string, reply: object, nanoUsd: number | null): Bill => ({
  ...{ upstream, model, path: '/v1/embeddings', body: { input: ['one', 'two'] } },
  reply: {
    object: 'list',
    data: [0, 1].map((index) => ({ object: 'embedding', index, embedding: [0.5, 0.25] })),
    ...reply,
  },
  nanoUsd,
})
/** Google's replies to texts have one vector each. */
const embeddedByGoogle = (usage: object, nanoUsd: number | null): Bill => ({
  ...embedded('google', 'gemini-embedding-2', {}, nanoUsd),
  reply: { embeddings: [{ values: [0.5] }, { values: [0.25] }], ...usage },
})
const drawn = (usageMetadata: object, nanoUsd: number | null): Bill => ({
  ...{
    upstream: 'google',
    model: 'gemini-3-pro-image',
    path: '/v1/images/generations',
    body: { prompt: 'a cat' },
  },
  reply: geminiReply({ inlineData: { mimeType: 'image/png', data: PICTURE.b64_json } }, usageMetadata),
  nanoUsd,
})
const speech = (usageMetadata: object, nanoUsd: number | null): Bill => ({
  ...{ upstream: 'google', model: 'gemini-3-tts', path: '/v1/audio/speech' },
  body: { input: 'Good morning.', voice: 'Kore', response_format: 'pcm' },
  reply: geminiReply({ inlineData: { mimeType: 'audio/L16;rate=24000', data: SOUND } }, usageMetadata),
  nanoUsd,
})
const transcribed = (usageMetadata: object, nanoUsd: number | null): Bill => ({
  ...{ upstream: 'google', model: 'gemini-3.5-transcribe', path: '/v1/audio/transcriptions', body: {} },
  ...{ reply: geminiReply({ text: 'Hello.' }, usageMetadata), nanoUsd },
})

function geminiReply(part: object, usageMetadata: object): object {
  return { candidates: [{ content: { parts: [part] }, finishReason: 'STOP' }], usageMetadata }
}

const of = (modality: string, tokenCount: number) => ({ modality, tokenCount })

const BILLS: Readonly<Record<string, Bill>> = {
  'pictures without details of the output': image(
    {
      input_tokens: 31,
      input_tokens_details: { image_tokens: 0, text_tokens: 31 },
      output_tokens: 1568,
      total_tokens: 1599,
    },
    31 * 5_000 + 1568 * 30_000,
  ),
  'pictures beside zeros of a chat and empty details': image(
    {
      ...{ completion_tokens: 0, prompt_tokens: 0, total_tokens: 1591, completion_tokens_details: null },
      ...{ prompt_tokens_details: null, input_tokens: 23, output_tokens: 1568, output_tokens_details: null },
      input_tokens_details: { image_tokens: 0, text_tokens: 23 },
    },
    23 * 5_000 + 1568 * 30_000,
  ),
  'pictures as the counts of a chat': image(
    {
      ...{ prompt_tokens: 22, completion_tokens: 1372, total_tokens: 1394 },
      prompt_tokens_details: { text_tokens: 22, image_tokens: 0 },
      completion_tokens_details: { text_tokens: 0, image_tokens: 1372 },
    },
    22 * 5_000 + 1372 * 30_000,
  ),
  'pictures with details alone': image(
    {
      prompt_tokens_details: { text_tokens: 22, image_tokens: 0 },
      completion_tokens_details: { text_tokens: 0, image_tokens: 1372 },
    },
    22 * 5_000 + 1372 * 30_000,
  ),
  'pictures whose details count less than the whole': image(
    {
      ...{
        input_tokens: 30,
        input_tokens_details: { text_tokens: 10, image_tokens: 20 },
        total_tokens: 1430,
      },
      ...{ output_tokens: 1400, output_tokens_details: { image_tokens: 1400 } },
    },
    10 * 5_000 + 20 * 8_000 + 1400 * 30_000,
  ),
  'pictures of text and thoughts': image(
    {
      ...{ input_tokens: 10, output_tokens: 1500, total_tokens: 1510 },
      output_tokens_details: { text_tokens: 100, image_tokens: 1400 },
    },
    10 * 5_000 + 100 * 10_000 + 1400 * 30_000,
  ),
  'pictures with a sum alone': image({ total_tokens: 1599 }, 1568 * 30_000),
  'pictures with zeros': image({ input_tokens: 0, output_tokens: 0, total_tokens: 0 }, null),
  'pictures with a prompt alone': image({ input_tokens: 31 }, null),
  'an edit without details of the prompt': {
    ...{ upstream: 'openai', model: 'gpt-image-2', path: '/v1/images/edits' },
    body: { prompt: 'a hat', images: [{ image_url: 'https://example.com/1.png' }] },
    reply: {
      created: 1,
      data: [PICTURE],
      usage: { input_tokens: 323, output_tokens: 1056, total_tokens: 1379 },
    },
    nanoUsd: 323 * 8_000 + 1056 * 30_000,
  },
  'tokens of sound without output': transcript(
    'openai',
    'gpt-4o-transcribe',
    { usage: { type: 'tokens', input_tokens: 64, input_token_details: { audio_tokens: 64 } } },
    null,
  ),
  'tokens where seconds are priced': transcript(
    'openai',
    'whisper-1',
    { usage: { type: 'tokens', input_tokens: 64, output_tokens: 7, total_tokens: 71 } },
    500_000,
  ),
  'pictures without counts': image(undefined, null),
  'two pictures by size': {
    ...{ upstream: 'openai', model: 'dall-e-3', path: '/v1/images/generations' },
    body: { prompt: 'a cat', n: 2, size: '1024x1024', quality: 'hd' },
    ...{ reply: { created: 1, data: [{ url: 'https://example.com/1' }, { url: 'https://example.com/2' }] } },
    nanoUsd: 160_000_000,
  },
  'a picture of Google with thoughts': drawn(
    {
      ...{ promptTokenCount: 10, candidatesTokenCount: 1120, thoughtsTokenCount: 225, totalTokenCount: 1355 },
      candidatesTokensDetails: [of('IMAGE', 1120)],
    },
    10 * 2_000 + 1120 * 120_000 + 225 * 12_000,
  ),
  'a picture of Google without details': drawn(
    { promptTokenCount: 12, candidatesTokenCount: 1290, totalTokenCount: 1302 },
    12 * 2_000 + 1290 * 120_000,
  ),
  'a picture of Google with zeros': drawn(
    { promptTokenCount: 0, candidatesTokenCount: 0, totalTokenCount: 0 },
    null,
  ),
  'a picture of Google without counts': drawn({}, null),
  'speech of Google': speech(
    {
      promptTokenCount: 9,
      candidatesTokenCount: 61,
      totalTokenCount: 70,
      candidatesTokensDetails: [of('AUDIO', 61)],
    },
    9 * 500 + 61 * 9_000,
  ),
  'speech of Google without details': speech(
    { promptTokenCount: 9, candidatesTokenCount: 61, totalTokenCount: 70 },
    9 * 500 + 61 * 9_000,
  ),
  'speech of Google with a prompt alone': speech({ promptTokenCount: 9, totalTokenCount: 9 }, null),
  'sound at Google': transcribed(
    {
      ...{ promptTokenCount: 171, candidatesTokenCount: 4, totalTokenCount: 175 },
      promptTokensDetails: [of('AUDIO', 160), of('TEXT', 11)],
    },
    11 * 1_000 + 160 * 2_000 + 4 * 12_000,
  ),
  'sound at Google without details': transcribed(
    { promptTokenCount: 171, candidatesTokenCount: 4, totalTokenCount: 175 },
    171 * 2_000 + 4 * 12_000,
  ),
  'seconds of sound': transcript('openai', 'whisper-1', { usage: { type: 'duration', seconds: 6 } }, 600_000),
  'a duration as text': transcript('openai', 'whisper-1', { duration: '5.0' }, 500_000),
  'a duration of zero': transcript('openai', 'whisper-1', { duration: 0 }, 500_000),
  'seconds of zero': transcript('openai', 'whisper-1', { usage: { type: 'duration', seconds: 0 } }, 500_000),
  'tokens of sound': transcript(
    'openai',
    'gpt-4o-transcribe',
    {
      usage: {
        ...{ type: 'tokens', input_tokens: 64, output_tokens: 7, total_tokens: 71 },
        input_token_details: { text_tokens: 14, audio_tokens: 50 },
      },
    },
    14 * 2_500 + 50 * 6_000 + 7 * 10_000,
  ),
  'tokens of sound without details': transcript(
    'openai',
    'gpt-4o-transcribe',
    { usage: { type: 'tokens', input_tokens: 64, output_tokens: 7, total_tokens: 71 } },
    64 * 6_000 + 7 * 10_000,
  ),
  'tokens of sound as zeros': transcript(
    'openai',
    'gpt-4o-transcribe',
    { usage: { type: 'tokens', input_tokens: 0, output_tokens: 0, total_tokens: 0 } },
    null,
  ),
  'a short sound at Groq': transcript(
    'groq',
    'whisper-large-v3',
    { duration: 1.5, x_groq: { id: 'r' } },
    308_300,
  ),
  'a sound at Groq without a length': transcript(
    'groq',
    'whisper-large-v3',
    { x_groq: { id: 'r' } },
    308_300,
  ),
  'sound at Mistral': transcript(
    'mistral',
    'voxtral-mini',
    {
      usage: {
        ...{ prompt_audio_seconds: 12, prompt_tokens: 3, total_tokens: 419, completion_tokens: 41 },
        prompt_tokens_details: { cached_tokens: 0, audio_tokens: 375 },
      },
    },
    600_000,
  ),
  'sound at Mistral without tokens': transcript(
    'mistral',
    'voxtral-mini',
    { usage: { prompt_audio_seconds: 32, total_tokens: 89, request_count: 1 } },
    1_600_000,
  ),
  'sound at Mistral without seconds': transcript(
    'mistral',
    'voxtral-mini',
    { usage: { prompt_audio_seconds: null, prompt_tokens: 3, total_tokens: 9 } },
    250_000,
  ),
  'searches of Cohere': rank(
    'cohere',
    'rerank-v3.5',
    { meta: { api_version: { version: '2' }, billed_units: { search_units: 3 } } },
    6_000_000,
  ),
  'no searches of Cohere': rank(
    'cohere',
    'rerank-v3.5',
    { meta: { billed_units: { search_units: 0 } } },
    2_000_000,
  ),
  'tokens where searches are priced': rank(
    'cohere',
    'rerank-v3.5',
    { meta: { tokens: { input_tokens: 54, output_tokens: 0 }, billed_units: { input_tokens: 54 } } },
    2_000_000,
  ),
  'tokens of Jina': rank('jina', 'reranker-v2', { usage: { total_tokens: 815 } }, 815 * 50),
  'zeros of Jina': rank('jina', 'reranker-v2', { usage: { total_tokens: 0, prompt_tokens: 0 } }, null),
  'a sum of zero beside a prompt': rank(
    'vllm',
    'reranker-v2',
    { usage: { total_tokens: 0, prompt_tokens: 64 } },
    64 * 50,
  ),
  'tokens in meta alone': rank('jina', 'reranker-v2', { meta: { tokens: { input_tokens: 54 } } }, null),
  'tokens of vectors': embedded(
    'openai',
    'text-embedding-3-small',
    { usage: { prompt_tokens: 8, total_tokens: 8 } },
    8 * 20,
  ),
  'vectors without counts': embedded('openai', 'text-embedding-3-small', {}, null),
  'vectors with zeros': embedded(
    'openai',
    'text-embedding-3-small',
    { usage: { prompt_tokens: 0, total_tokens: 0 } },
    null,
  ),
  'vectors of Mistral': embedded(
    'mistral',
    'text-embedding-3-small',
    { usage: { prompt_tokens: 16, completion_tokens: 0, total_tokens: 16, request_count: null } },
    16 * 20,
  ),
  'vectors of Jina': embedded(
    'jina',
    'text-embedding-3-small',
    { usage: { total_tokens: 12, prompt_tokens: 12 } },
    12 * 20,
  ),
  'vectors of Voyage': embedded('voyage', 'text-embedding-3-small', { usage: { total_tokens: 10 } }, 10 * 20),
  'vectors of Google': embeddedByGoogle(
    { usageMetadata: { promptTokenCount: 6, promptTokensDetails: [of('TEXT', 6)] } },
    6 * 200,
  ),
  'vectors of Google without counts': embeddedByGoogle({}, null),
  'tokens of Voyage': rank('voyage', 'reranker-v2', { usage: { total_tokens: 26 } }, 26 * 50),
}

void t.test('no reply costs less than its vendor bills', async (t) => {
  let reply: unknown = null
  const upstream = await startRawUpstream(t, () => ({
    ...{ status: 200, type: 'application/json', chunks: [JSON.stringify(reply)] },
  }))
  const gateway = await startGateway(t)
  const names = Object.keys(SETTINGS) as Upstream[]
  const prices = Object.entries(PRICES).map(([model, price]) => `"${model}": { ${price} }`)
  const upstreams = names.map((name) => {
    const to = `base_url: "${upstream.origin}/v1", api_key: vendor-key`
    return `  at-${name}: { ${SETTINGS[name]}, ${to}, prices: { ${prices.join(', ')} } }\n`
  })
  const routes = names.flatMap((name) =>
    Object.keys(PRICES).map(
      (model) =>
        `  - { model: "${name}/${model}", targets: [{ upstream: at-${name}, model: "${model}" }] }\n`,
    ),
  )
  gateway.add(upstreams.join(''), routes.join(''))
  for (const [name, bill] of Object.entries(BILLS)) {
    reply = bill.reply
    const fields = { model: `${bill.upstream}/${bill.model}`, ...bill.body }
    const isForm = bill.path.endsWith('/transcriptions')
    const form = new FormData()
    if (isForm) {
      form.append('file', new Blob([WAV], { type: 'audio/wav' }), 'a.wav')
      form.append('model', fields.model)
    }
    const answered = await fetch(gateway.origin + bill.path, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${gateway.secret}`,
        ...(isForm ? {} : { 'content-type': 'application/json' }),
      },
      body: isForm ? form : JSON.stringify(fields),
    })
    await answered.arrayBuffer()
    t.equal(answered.status, 200, name)
    const row = (await rowsOf(gateway)).at(-1)
    const cost = row?.costNanoUsd ?? 0
    const shown = `${name}: ${cost} of ${bill.nanoUsd ?? 'unknown'} (${row?.source ?? ''})`
    if (bill.nanoUsd === null) {
      t.ok(cost > 0, shown)
      t.not(row?.source, 'reported', shown)
    } else t.ok(cost >= bill.nanoUsd, shown)
    if (row?.source === 'reported' && bill.nanoUsd !== null)
      t.equal(cost, bill.nanoUsd, `${name}: and not more`)
  }
})
