/**
 * Goal: with `server.bare_paths`, apps that called another gateway or Azure change only the host: the paths
 * without `/v1`, Azure's forms with the model in the path, and the headers of their keys; without it only
 * OpenAI's paths below `/openai` are served.
 * Method: requests at each path to a gateway with and without the setting.
 */
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
