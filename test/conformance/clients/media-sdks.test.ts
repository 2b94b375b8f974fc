/**
 * Goal: the vendors' own clients use every endpoint beside chat at every form of upstream: the SDKs
 * of OpenAI, Cohere, Groq, Mistral and Google in JavaScript and in Python.
 * Method: the SDKs in exact versions on a running gateway in front of a vendor of each form. Each pair of a
 * client and a form is one call; the result is that of the vendor, and the ledger has a price.
 */
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { GoogleGenAI, Modality } from '@google/genai'
import OpenAI, { toFile } from 'openai'
import t, { type Test } from 'tap'
import type { TaskName } from '../../../src/formats/chat/operations.js'
import { wavOf } from '../../../src/formats/wire/media/sound.js'
import { startGateway, type TestGateway } from '../../helpers/gateway.js'
import { rowsOf } from '../../helpers/ledger.js'
import { MEDIA_VENDORS, mediaConfig, ORDER, SAMPLES, startMediaVendors, WORDS } from '../media-vendors.js'

const CLIENTS = resolve('build/clients')
const PYTHON = process.env['SLUICE_PYTHON'] ?? resolve(CLIENTS, 'python/bin/python3')
const DOCUMENTS = ['The Elbe is a river.', 'The Nile is the longest river.', 'Bread is baked.']
/** A second. */
const WAV = wavOf(Buffer.alloc(8_000 * 2), 8_000)
const PICTURE = Buffer.from('picture').toString('base64')

/** What a call gives at any form of the operation. */
const EXPECTED: Readonly<Record<TaskName, unknown>> = {
  rerank: ORDER,
  moderations: true,
  images: PICTURE,
  image_edits: PICTURE,
  transcriptions: WORDS,
  translations: WORDS,
  speech: SAMPLES.toString('base64'),
}

/** Calls one client; the task is the last word of its name. */
type Call = (model: string) => Promise<unknown>

async function start(t: Test): Promise<TestGateway> {
  const { upstreams, routes } = mediaConfig(await startMediaVendors(t))
  const gateway = await startGateway(t)
  gateway.add(upstreams, routes)
  return gateway
}

function taskOf(client: string): TaskName {
  const task = client.slice(client.lastIndexOf(' ') + 1)
  return task as TaskName
}

/** The samples at the end of sound, which may have a header of WAV; the result itself if it is no sound. */
function samplesIn(result: unknown): string {
  const sound = Buffer.from(String(result), 'base64')
  const samples = sound.subarray(-SAMPLES.length)
  return samples.equals(SAMPLES) ? samples.toString('base64') : String(result)
}

/** Google's clients become such requests only at forms of OpenAI and Mistral; at Gemini they are chats. */
function vendorsFor(client: string): string[] {
  const isGoogle = client.startsWith('google')
  return MEDIA_VENDORS.filter(({ task }) => task === taskOf(client)).flatMap(({ name }) =>
    isGoogle && name.endsWith('gemini') ? [] : [name],
  )
}

async function checkPairs(
  t: Test,
  gateway: TestGateway,
  clients: readonly string[],
  call: (client: string, model: string) => Promise<unknown>,
): Promise<void> {
  for (const client of clients) {
    for (const model of vendorsFor(client)) {
      const result = await call(client, model).catch((error: unknown) => String(error))
      const pair = `${client} at ${model}`
      t.same(taskOf(client) === 'speech' ? samplesIn(result) : result, EXPECTED[taskOf(client)], pair)
      const row = (await rowsOf(gateway)).at(-1)
      t.match(row, { modelAsked: model, outcome: 'ok' }, `${pair}: in the ledger`)
      t.not(row?.costNanoUsd ?? null, null, `${pair}: has a price`)
    }
  }
}

interface Ranked {
  readonly results: readonly { readonly index: number }[]
}
interface Ranker {
  rerank(request: { model: string; query: string; documents: string[] }): Promise<Ranked>
}
interface CohereSdk {
  readonly CohereClient: new (options: object) => Ranker
  readonly CohereClientV2: new (options: object) => Ranker
}
interface MistralSdk {
  readonly Mistral: new (options: object) => {
    readonly classifiers: {
      moderate(request: object): Promise<{ readonly results: { categories?: Record<string, boolean> }[] }>
    }
  }
}

/** A package of `build/clients`; null if it is not installed. */
async function installed<Sdk>(name: string): Promise<Sdk | null> {
  try {
    const path = createRequire(resolve(CLIENTS, 'package.json')).resolve(name)
    return (await import(path)) as Sdk
  } catch {
    return null
  }
}

/** OpenAI's client, and Groq's, which is generated from the same source. */
function openAiCalls(name: string, client: OpenAI, format: 'pcm' | 'wav'): [string, Call][] {
  const file = (): Promise<File> => toFile(WAV, 'a.wav')
  return [
    [
      `${name} transcriptions`,
      async (model) => (await client.audio.transcriptions.create({ file: await file(), model })).text,
    ],
    [
      `${name} translations`,
      async (model) => (await client.audio.translations.create({ file: await file(), model })).text,
    ],
    [
      `${name} speech`,
      async (model) => {
        const request = { input: 'Hi.', model, voice: 'alloy', response_format: format }
        return Buffer.from(await (await client.audio.speech.create(request)).arrayBuffer()).toString('base64')
      },
    ],
  ]
}

async function javascriptCalls(t: Test, gateway: TestGateway): Promise<Map<string, Call>> {
  const { origin, secret: apiKey } = gateway
  const openai = new OpenAI({ apiKey, baseURL: gateway.baseUrl, maxRetries: 0 })
  const google = new GoogleGenAI({ apiKey, httpOptions: { baseUrl: origin } })
  const png = (): Promise<File> => toFile(Buffer.from('png'), 'a.png', { type: 'image/png' })
  const calls: [string, Call][] = [
    ...openAiCalls('openai', openai, 'pcm'),
    [
      'openai moderations',
      async (model) => (await openai.moderations.create({ model, input: 'A text.' })).results[0]?.flagged,
    ],
    [
      'openai images',
      async (model) => (await openai.images.generate({ model, prompt: 'a cat' })).data?.[0]?.b64_json,
    ],
    [
      'openai image_edits',
      async (model) => {
        const reply = await openai.images.edit({ image: await png(), model, prompt: 'a hat' })
        return reply.data?.[0]?.b64_json
      },
    ],
    [
      'google speech',
      async (model) => {
        const config = { responseModalities: [Modality.AUDIO] }
        const reply = await google.models.generateContent({ model, contents: 'Hi.', config })
        return reply.candidates?.[0]?.content?.parts?.[0]?.inlineData?.data
      },
    ],
    [
      'google transcriptions',
      async (model) => {
        const sound = { inlineData: { mimeType: 'audio/wav', data: WAV.toString('base64') } }
        const config = { audioTranscriptionConfig: {} }
        return (await google.models.generateContent({ model, contents: [sound], config })).text
      },
    ],
  ]
  const groq = await installed<{ default: typeof OpenAI }>('groq-sdk')
  if (groq === null) t.comment('build/test/setup.js installs groq-sdk')
  else calls.push(...openAiCalls('groq', new groq.default({ apiKey, baseURL: origin, maxRetries: 0 }), 'wav'))
  const cohere = await installed<CohereSdk>('cohere-ai')
  if (cohere === null) t.comment('build/test/setup.js installs cohere-ai')
  else {
    const options = { token: apiKey, environment: origin }
    for (const name of ['CohereClient', 'CohereClientV2'] as const) {
      const client = new cohere[name](options)
      calls.push([
        `${name} rerank`,
        async (model) => {
          const { results } = await client.rerank({ model, query: 'Which river?', documents: DOCUMENTS })
          return results.map(({ index }) => index)
        },
      ])
    }
  }
  const mistral = await installed<MistralSdk>('@mistralai/mistralai')
  if (mistral === null) t.comment('build/test/setup.js installs @mistralai/mistralai')
  else {
    const client = new mistral.Mistral({ apiKey, serverURL: origin })
    // Its transcriptions demand the members of Mistral's own reply, which OpenAI's format does not have.
    calls.push([
      'mistral moderations',
      async (model) => {
        const { results } = await client.classifiers.moderate({ model, inputs: ['A text.'] })
        return results[0]?.categories?.['violence']
      },
    ])
  }
  return new Map(calls)
}

void t.test('JavaScript', { timeout: 120_000 }, async (t) => {
  const gateway = await start(t)
  const calls = await javascriptCalls(t, gateway)
  const call = async (client: string, model: string): Promise<unknown> => calls.get(client)?.(model)
  await checkPairs(t, gateway, [...calls.keys()], call)
})

const PYTHON_CLIENTS = [
  ...['cohere ClientV2 rerank', 'cohere Client rerank', 'openai moderations', 'mistralai moderations'],
  ...['openai images', 'openai image_edits', 'openai transcriptions', 'groq transcriptions'],
  ...['google-genai transcriptions', 'openai translations'],
  ...['groq translations', 'openai speech', 'groq speech', 'google-genai speech'],
]

void t.test(
  'Python',
  existsSync(PYTHON) ? { timeout: 120_000 } : { skip: 'build/test/setup.js installs the clients' },
  async (t) => {
    const gateway = await start(t)
    const child = spawn(PYTHON, ['test/conformance/clients/media_clients.py'], {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: {
        PATH: process.env['PATH'],
        SLUICE_URL: gateway.origin,
        SLUICE_KEY: gateway.secret,
        SLUICE_WAV: WAV.toString('base64'),
      },
    })
    t.teardown(() => child.kill())
    const lines: AsyncIterator<string, undefined> = createInterface({ input: child.stdout })[
      Symbol.asyncIterator
    ]()
    const call = async (client: string, model: string): Promise<unknown> => {
      child.stdin.write(`${JSON.stringify({ client, model })}\n`)
      const { value } = await lines.next()
      const { result, error } = JSON.parse(String(value)) as { result?: unknown; error?: string }
      return result ?? error
    }
    await checkPairs(t, gateway, PYTHON_CLIENTS, call)
    child.stdin.end()
  },
)
