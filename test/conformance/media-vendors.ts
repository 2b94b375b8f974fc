/**
 * A vendor for each form in which upstreams serve ranking, moderation, pictures and sound, written from its
 * documentation: small replies with counts. One server answers them all, below the name of the form.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Test } from 'tap'
import type { TaskName } from '../../src/formats/chat/operations.js'
import { listen } from '../helpers/listen.js'

/** The sound that vendors make, and their transcript. */
export const SAMPLES = Buffer.from([1, 0, 2, 0, 3, 0, 4, 0])
export const WORDS = 'Hello world.'
/** The order in which vendors rank three documents. */
export const ORDER = [1, 0, 2]

/** One form of an upstream. */
export interface MediaVendor {
  readonly task: TaskName
  /** Unique; the model has the same name, unless `model` is set. */
  readonly name: string
  /** The preset or the settings of the upstream, in YAML. */
  readonly settings: string
  /** The path of `base_url` after the vendor's own prefix. */
  readonly base: string
  readonly price: string
  readonly model?: string
  readonly reply: unknown
}

const SCORES = [0.3, 0.9, 0.1]
const ranked = ORDER.map((index) => ({ index, relevance_score: SCORES[index] }))
const PICTURE = Buffer.from('picture').toString('base64')
const imageUsage = { input_tokens: 10, output_tokens: 1000, total_tokens: 1010 }
const geminiReply = (part: object, modality: string): object => ({
  candidates: [{ content: { role: 'model', parts: [part] }, finishReason: 'STOP' }],
  usageMetadata: {
    promptTokenCount: 10,
    candidatesTokenCount: 40,
    totalTokenCount: 50,
    ...(modality !== 'TEXT' && { candidatesTokensDetails: [{ modality, tokenCount: 40 }] }),
  },
})
const rank = (name: string, settings: string, base: string, reply: unknown, model?: string): MediaVendor => {
  const price = 'per_search: 0.002'
  return { task: 'rerank', name, settings, base, price, reply, ...(model !== undefined && { model }) }
}
const CATEGORIES = { violence: true, harassment: false }
const ALL_CATEGORIES = [
  ...['harassment', 'harassment/threatening', 'hate', 'hate/threatening', 'illicit', 'illicit/violent'],
  ...['self-harm', 'self-harm/intent', 'self-harm/instructions', 'sexual', 'sexual/minors'],
  ...['violence', 'violence/graphic'],
]
const ofCategories = <Value>(value: (name: string) => Value): Record<string, Value> =>
  Object.fromEntries(ALL_CATEGORIES.map((name) => [name, value(name)]))
const VERDICT = JSON.stringify({
  categories: ofCategories((name) => name === 'violence'),
  category_scores: ofCategories((name) => (name === 'violence' ? 0.9 : 0.1)),
})

/** All forms. */
export const MEDIA_VENDORS: readonly MediaVendor[] = [
  rank('rank-cohere', 'preset: cohere', '/v1', {
    id: 'x',
    results: ranked,
    meta: { billed_units: { search_units: 1 } },
  }),
  rank('rank-together', 'preset: together', '/v1', { results: ranked, usage: { total_tokens: 40 } }),
  rank('rank-azure', 'preset: azure', '/openai/v1', { results: ranked }),
  rank('rank-jina', 'preset: jina', '/v1', { results: ranked, usage: { total_tokens: 40 } }),
  rank('rank-voyage', 'preset: voyage', '/v1', { data: ranked, usage: { total_tokens: 40 } }),
  rank('rank-vllm', 'preset: vllm', '/v1', { results: ranked, usage: { total_tokens: 40 } }),
  rank(
    'rank-tei',
    'preset: tei',
    '',
    SCORES.map((score, index) => ({ index, score })),
  ),
  rank(
    'rank-sglang',
    'preset: sglang',
    '/v1',
    SCORES.map((score, index) => ({ index, score, meta_info: { prompt_tokens: 10 } })),
  ),
  rank('rank-deepinfra', 'preset: deepinfra', '/v1/openai', { scores: SCORES, input_tokens: 40 }),
  rank(
    'rank-bedrock',
    'dialect: converse, platform: bedrock, region: eu-central-1',
    '',
    { results: ranked },
    'cohere.rank',
  ),
  {
    ...{ task: 'moderations', name: 'judge-openai', settings: 'preset: openai', base: '/v1' },
    price: 'input: 0',
    reply: {
      id: 'modr-1',
      model: 'judge-openai',
      results: [
        {
          flagged: true,
          categories: CATEGORIES,
          category_scores: { violence: 0.9, harassment: 0.1 },
          category_applied_input_types: { violence: ['text'], harassment: ['text'] },
        },
      ],
    },
  },
  {
    ...{ task: 'moderations', name: 'judge-mistral', settings: 'preset: mistral', base: '/v1' },
    price: 'input: 0',
    reply: {
      id: 'm',
      model: 'judge-mistral',
      results: [
        { categories: { violence_and_threats: true }, category_scores: { violence_and_threats: 0.9 } },
      ],
    },
  },
  {
    ...{ task: 'moderations', name: 'judge-chat', base: '/v1', price: 'input: 1, output: 2' },
    settings: 'dialect: openai-chat, operations: { moderations: chat }',
    reply: {
      ...{ id: 'c', object: 'chat.completion', created: 1, model: 'judge-chat' },
      choices: [{ index: 0, message: { role: 'assistant', content: VERDICT }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 20, completion_tokens: 10, total_tokens: 30 },
    },
  },
  ...(['images', 'image_edits'] as const).flatMap((task): MediaVendor[] => [
    {
      ...{ task, name: `${task}-openai`, settings: 'preset: openai', base: '/v1' },
      price: 'input: 5, output_image: 30, input_image: 8',
      reply: { created: 1, data: [{ b64_json: PICTURE }], usage: imageUsage },
    },
    {
      ...{ task, name: `${task}-azure`, settings: 'preset: azure', base: '/openai/v1' },
      price: 'input: 5, output_image: 30, input_image: 8',
      reply: { created: 1, data: [{ b64_json: PICTURE }], usage: imageUsage },
    },
    {
      ...{ task, name: `${task}-gemini`, settings: 'dialect: gemini', base: '/v1beta' },
      price: 'input: 2, output_image: 120',
      reply: geminiReply({ inlineData: { mimeType: 'image/png', data: PICTURE } }, 'IMAGE'),
    },
  ]),
  ...(['transcriptions', 'translations'] as const).map((task): MediaVendor => ({
    ...{ task, name: `${task}-openai`, settings: 'preset: openai', base: '/v1' },
    price: 'per_second_audio: 0.0001',
    reply: { text: WORDS, usage: { type: 'duration', seconds: 3 } },
  })),
  {
    ...{ task: 'transcriptions', name: 'words-groq', settings: 'preset: groq', base: '/openai/v1' },
    price: 'per_second_audio: 0.00003, min_audio_seconds: 10',
    reply: { text: WORDS, x_groq: { id: 'r' } },
  },
  {
    ...{ task: 'transcriptions', name: 'words-mistral', settings: 'preset: mistral', base: '/v1' },
    price: 'per_second_audio: 0.00005',
    reply: {
      ...{ model: 'words-mistral', text: WORDS, language: 'en', segments: [] },
      usage: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3, prompt_audio_seconds: 3 },
    },
  },
  {
    ...{ task: 'transcriptions', name: 'words-gemini', settings: 'dialect: gemini', base: '/v1beta' },
    price: 'input_audio: 2, output: 12',
    reply: geminiReply({ text: WORDS }, 'TEXT'),
  },
  {
    ...{ task: 'speech', name: 'voice-openai', settings: 'preset: openai', base: '/v1' },
    ...{ price: 'per_character: 0.000015', reply: SAMPLES },
  },
  {
    ...{ task: 'speech', name: 'gpt-voice-openai', settings: 'preset: openai', base: '/v1' },
    price: 'input: 0.6, output_audio: 12',
    reply: [
      { type: 'speech.audio.delta', audio: SAMPLES.toString('base64') },
      { type: 'speech.audio.done', usage: { input_tokens: 5, output_tokens: 20, total_tokens: 25 } },
    ],
  },
  {
    ...{ task: 'speech', name: 'voice-groq', settings: 'preset: groq', base: '/openai/v1' },
    ...{ price: 'per_character: 0.000022', reply: SAMPLES },
  },
  {
    ...{ task: 'speech', name: 'voice-mistral', settings: 'preset: mistral', base: '/v1' },
    price: 'per_character: 0.000016',
    reply: { audio_data: SAMPLES.toString('base64') },
  },
  {
    ...{ task: 'speech', name: 'voice-gemini', settings: 'dialect: gemini', base: '/v1beta' },
    price: 'input: 0.5, output_audio: 9',
    reply: geminiReply(
      { inlineData: { mimeType: 'audio/L16;codec=pcm;rate=24000', data: SAMPLES.toString('base64') } },
      'AUDIO',
    ),
  },
]

/** The name by which the route and the upstream know the vendor's model. */
export function mediaModel({ name, model = name }: MediaVendor): string {
  return model
}

function answer({ task, reply }: MediaVendor, res: ServerResponse): void {
  if (Buffer.isBuffer(reply)) {
    res.writeHead(200, { 'content-type': 'audio/mpeg' })
    res.end(reply)
  } else if (task === 'speech' && Array.isArray(reply)) {
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    res.end(reply.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(''))
  } else {
    res.writeHead(200, { 'content-type': 'application/json', 'x-compute-tokens': '40' })
    res.end(JSON.stringify(reply))
  }
}

/** Starts the server; returns its origin. Requests are read to their end before they are answered. */
export async function startMediaVendors(t: Test): Promise<string> {
  const byName = new Map(MEDIA_VENDORS.map((vendor) => [vendor.name, vendor]))
  const server = createServer((req: IncomingMessage, res) => {
    req.resume()
    req.on('end', () => {
      const [, name = ''] = (req.url ?? '').split('/')
      const vendor = byName.get(name)
      if (vendor === undefined) res.writeHead(404).end()
      else answer(vendor, res)
    })
  })
  return `http://127.0.0.1:${await listen(t, server)}`
}

/** The upstreams and routes of all forms at this origin, in YAML. */
export function mediaConfig(origin: string): { readonly upstreams: string; readonly routes: string } {
  const upstreams = MEDIA_VENDORS.map((vendor) => {
    const { name, settings, base, price } = vendor
    const to = `base_url: "${origin}/${name}${base}", api_key: vendor-key`
    return `  at-${name}: { ${settings}, ${to}, prices: { "${mediaModel(vendor)}": { ${price} } } }\n`
  })
  const routes = MEDIA_VENDORS.map((vendor) => {
    const targets = `targets: [{ upstream: at-${vendor.name}, model: "${mediaModel(vendor)}" }]`
    return `  - { model: "${vendor.name}", ${targets} }\n`
  })
  return { upstreams: upstreams.join(''), routes: routes.join('') }
}
