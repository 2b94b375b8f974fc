/**
 * Goal: `sluice explain` prints which OpenAI endpoint the gateway uses for a model, and why.
 * Method: the command in this process on the shipped catalogue, with text and JSON output.
 */
import { join } from 'node:path'
import t from 'tap'
import { sluiceHere } from './session.js'

const CONFIG = join(process.cwd(), 'config/gateway.yaml')

function explain(...args: string[]): Promise<string> {
  return explainIn(CONFIG, ...args)
}

async function explainIn(file: string, ...args: string[]): Promise<string> {
  return (await sluiceHere(['explain', ...args, '--config', file])).out
}

void t.test('the line of the dialect names the endpoint', async (t) => {
  t.match(await explain('gpt-5.5-pro'), 'dialect    openai-responses: the model has no chat endpoint')
  t.match(
    await explain('gpt-4o'),
    'dialect    openai-chat: the model supports all features in chat completions',
  )
  t.match(
    await explain('gpt-6-luna'),
    'dialect    openai-chat, with tools openai-responses: chat completions refuses tools for this model while it reasons',
  )
  t.match(await explain('claude-opus-5-5'), 'dialect    anthropic: set in the configuration')
})

void t.test('the JSON names the endpoint in `wire_format`', async (t) => {
  const answer = JSON.parse(await explain('gpt-6-astra', '--json')) as Record<string, unknown>
  t.match(answer, {
    dialect: 'openai',
    wire_format: { plain: 'openai-chat', with_tools: 'openai-responses' },
  })
  t.match(JSON.parse(await explain('unrouted', '--json')), { route: null, wire_format: null })
})

void t.test('the platform is printed, and what it refuses beyond its dialect', async (t) => {
  const folder = t.testdir({
    'gateway.yaml': `store: sqlite:./data/sluice.db
upstreams:
  bedrock: { platform: bedrock, dialect: anthropic, region: eu-west-1, auth: { aws: default } }
  vertex: { platform: vertex, dialect: anthropic, project: p, location: global, auth: { google: default } }
routes:
  - { prefix: eu.anthropic., upstream: bedrock }
  - { prefix: claude-, upstream: vertex }
`,
  })
  const file = join(folder, 'gateway.yaml')
  const bedrock = await explainIn(file, 'eu.anthropic.claude-sonnet-4-5-20250929-v1:0')
  t.match(bedrock, 'bedrock (https://bedrock-runtime.eu-west-1.amazonaws.com, platform bedrock)')
  t.match(bedrock, 'key        none: the identity of the gateway at aws')
  t.match(bedrock, /refuses .*images by https address/)
  const vertex = await explainIn(file, 'claude-sonnet-4-5@20250929')
  t.match(vertex, /platform vertex/)
  t.match(vertex, /refuses .*images by https address/)
})

void t.test('an operation: the upstream and the form that serve it, or why none does', async (t) => {
  const folder = t.testdir({
    'gateway.yaml': `store: sqlite:./data/sluice.db
upstreams:
  claude: { dialect: anthropic, base_url: "https://api.anthropic.com/v1", api_key: k }
  openai: { preset: openai, api_key: k }
  mistral: { preset: mistral, api_key: k, operations: { speech: none } }
  ranker: { preset: tei, base_url: "http://ranker:8080", api_key: k }
routes:
  - { model: voice, targets: [{ upstream: claude }], fallback: [{ upstream: mistral, model: voxtral }] }
  - { model: rank, targets: [{ upstream: ranker }] }
  - { prefix: gpt-, upstream: openai }
`,
  })
  const file = join(folder, 'gateway.yaml')
  const voice = await explainIn(file, 'voice', '--operation', 'transcription')
  t.match(voice, 'operation  transcriptions (POST /v1/audio/transcriptions)')
  t.match(voice, 'claude, model voice: does not serve it')
  t.match(
    voice,
    'mistral, model voxtral, fallback: form mistral, sends POST https://api.mistral.ai/v1/audio/transcriptions',
  )
  const none = await sluiceHere(['explain', 'voice', '--operation', 'speech', '--config', file])
  t.equal(none.status, 1)
  t.match(none.out, 'clients get 400: No upstream of the model "voice" serves speech')
  const ranked = await explainIn(file, 'rank', '--operation', 'rerank', '--json')
  t.match(JSON.parse(ranked), {
    operation: {
      name: 'rerank',
      paths: ['POST /v1/rerank', 'POST /v2/rerank'],
      served_by: 'ranker',
      refusal: null,
      upstreams: [{ form: 'tei', sends: 'POST http://ranker:8080/rerank' }],
    },
  })
  const chat = await explainIn(file, 'gpt-4o', '--operation', 'chat')
  t.match(chat, 'form openai-chat, sends POST https://api.openai.com/v1/chat/completions')
  t.match(await explainIn(file, 'gpt-image-2', '--operation', 'image_generation'), 'v1/images/generations')
  const unknown = await sluiceHere(['explain', 'gpt-4o', '--operation', 'video', '--config', file])
  t.equal(unknown.status, 2)
})
