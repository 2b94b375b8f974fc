/**
 * Goal: with `server.bare_paths`, apps that called another gateway or Azure change only the host: the paths
 * without `/v1`, Azure's forms with the model in the path, and the headers of their keys; without it only
 * OpenAI's paths below `/openai` are served.
 * Method: requests at each path to a gateway with and without the setting.
 */
import { AzureOpenAI, toFile } from 'openai'
import t from 'tap'
import { startGateway, type TestGateway } from '../helpers/gateway.js'

const messages = [{ role: 'user', content: 'Hi' }]
const CHAT = { model: 'gpt-5.4', messages }
const CLAUDE = { model: 'claude-sonnet-5-5', messages, max_tokens: 9 }

/** The paths, with a body. */
const PATHS: readonly (readonly [path: string, body: object])[] = [
  ['/chat/completions', CHAT],
  ['/embeddings', { model: 'text-embedding-3-small', input: 'a' }],
  ['/responses', { model: 'gpt-5.4', input: 'Hi' }],
  ['/openai/v1/responses', { model: 'gpt-5.4', input: 'Hi' }],
  ['/messages', CLAUDE],
  ['/messages/count_tokens', CLAUDE],
  ['/anthropic/v1/messages', CLAUDE],
  ['/openai/deployments/gpt-5.4/chat/completions?api-version=2024-10-21', { messages }],
  ['/engines/gpt-5.4/chat/completions', { messages, model: 'other' }],
  ['/openai/deployments/text-embedding-3-small/embeddings', { input: 'a' }],
]

async function post(
  { origin, secret }: TestGateway,
  path: string,
  {
    body,
    headers = { authorization: `Bearer ${secret}` },
  }: { body: object; headers?: Record<string, string> },
) {
  const reply = await fetch(`${origin}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
  return { status: reply.status, model: reply.headers.get('x-sluice-model'), text: await reply.text() }
}

void t.test('with the setting', async (t) => {
  const gateway = await startGateway(t, { server: 'bare_paths: true' })
  for (const [path, body] of PATHS) {
    const { status, text } = await post(gateway, path, { body })
    t.equal(status, 200, `${path}: ${text.slice(0, 200)}`)
    t.equal((await post(gateway, path, { body, headers: {} })).status, 401, `${path} needs a key`)
  }
  const [engine] = PATHS.filter(([path]) => path.startsWith('/engines'))
  const { model } = await post(gateway, engine?.[0] ?? '', { body: engine?.[1] ?? {} })
  t.match(model, 'gpt-5.4', 'the model of the path wins')
  for (const headers of [
    { 'api-key': gateway.secret },
    { 'x-litellm-api-key': `Bearer ${gateway.secret}` },
    { authorization: `Bearer ${gateway.secret}`, 'api-key': gateway.secret },
  ]) {
    t.equal((await post(gateway, '/chat/completions', { body: CHAT, headers })).status, 200)
  }
  const two = { authorization: `Bearer ${gateway.secret}`, 'api-key': 'sk_other' }
  t.equal((await post(gateway, '/chat/completions', { body: CHAT, headers: two })).status, 400)
  const list = await fetch(`${gateway.origin}/models`, {
    headers: { authorization: `Bearer ${gateway.secret}` },
  })
  t.match(await list.json(), { object: 'list' })
  const get = await fetch(`${gateway.origin}/chat/completions`)
  t.equal(get.status, 405)
  t.equal(get.headers.get('allow'), 'POST')
})

void t.test('without it', async (t) => {
  const gateway = await startGateway(t)
  for (const [path, body] of PATHS) {
    const status = path.startsWith('/openai/v1/') ? 200 : 404
    t.equal((await post(gateway, path, { body })).status, status, path)
  }
  const headers = { 'api-key': gateway.secret }
  t.equal((await post(gateway, '/v1/chat/completions', { body: CHAT, headers })).status, 401)
})

void t.test("Azure's SDK requests pictures and sound at the paths of deployments", async (t) => {
  const routes = ['tts-', 'whisper-']
    .map((prefix) => `  - { prefix: ${prefix}, upstream: openai }`)
    .join('\n')
  const hold = 'upload_hold_bytes: 200000'
  const gateway = await startGateway(t, { server: `bare_paths: true, ${hold}`, routes })
  const client = new AzureOpenAI({
    ...{ endpoint: gateway.origin, apiKey: gateway.secret, apiVersion: '2025-04-01-preview', maxRetries: 0 },
  })
  const asked = (): unknown => gateway.emulator.ledger.at(-1)
  const drawn = await client.images.generate({ model: 'gpt-image-2', prompt: 'a cat' })
  t.ok(drawn.data?.[0]?.b64_json)
  t.match(asked(), { path: '/images/generations', body: { model: 'gpt-image-2' } })
  const image = await toFile(Buffer.from('picture'), 'a.png', { type: 'image/png' })
  t.ok((await client.images.edit({ model: 'gpt-image-2', image, prompt: 'a hat' })).data?.[0]?.b64_json)
  const sound = await client.audio.speech.create({ model: 'tts-1', input: 'Hi.', voice: 'alloy' })
  t.ok((await sound.arrayBuffer()).byteLength > 0)
  const file = await toFile(Buffer.alloc(1000), 'a.wav', { type: 'audio/wav' })
  t.ok((await client.audio.transcriptions.create({ model: 'whisper-1', file })).text)
  t.ok((await client.audio.translations.create({ model: 'whisper-1', file })).text)
  // Azure's clients without an SDK name the model in the path alone.
  const post = (fields: readonly (readonly [string, string | Blob])[]): Promise<Response> => {
    const body = new FormData()
    for (const [name, value] of fields) body.append(name, value)
    return fetch(`${gateway.origin}/openai/deployments/whisper-1/audio/transcriptions`, {
      ...{ method: 'POST', headers: { 'api-key': gateway.secret }, body },
    })
  }
  const small = ['file', new Blob([Buffer.alloc(1000)], { type: 'audio/wav' })] as const
  t.equal((await post([small])).status, 200)
  t.equal((await post([small, ['model', 'other']])).status, 200, 'the model of the path wins')
  const large = ['file', new Blob([Buffer.alloc(300_000)], { type: 'audio/wav' })] as const
  t.equal((await post([['model', 'other'], large])).status, 200, 'also in a form that is passed on')
  t.match(await (await post([large])).json(), { error: { param: 'model' } })
})
