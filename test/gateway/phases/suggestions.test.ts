/**
 * Goal: errors for endpoints and models that the gateway does not have name the way that works.
 * Method: requests as the vendors' SDKs make them, and misspelt names, to a running gateway.
 */
import t from 'tap'
import { createKey } from '../../helpers/keys.js'
import { loadConfig } from '../../../src/config/load-config.js'
import { openStore } from '../../../src/store/open-store.js'
import { startGateway, type TestGateway } from '../../helpers/gateway.js'

async function errorOf(
  { origin, secret }: TestGateway,
  method: string,
  path: string,
  model?: string,
): Promise<{ status: number; message: string; text: string }> {
  const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
  const messages = [{ role: 'user', content: 'hi' }]
  const body = method === 'POST' ? JSON.stringify({ model, messages, max_tokens: 9 }) : null
  const response = await fetch(`${origin}${path}`, { method, headers, body })
  const text = await response.text()
  const { error } = JSON.parse(text) as { error: { message: string } }
  return { status: response.status, message: error.message, text }
}

/** A key that may use only these models. */
async function keyFor({ configFile }: TestGateway, models: readonly string[]): Promise<string> {
  const loaded = loadConfig(configFile, process.env)
  if (!loaded.ok) throw new Error('the configuration is not good')
  const store = await openStore(loaded.config.store)
  const account = await store.accountByEmail('test@example.com')
  if (account === null) throw new Error('there is no account')
  const { plans } = loaded.config
  const { secret } = await createKey(store, { plans, account, name: 'narrow', models })
  await store.close()
  return secret
}

void t.test("vendors' endpoints that are not translated name native access", async (t) => {
  const gateway = await startGateway(t)
  const rows = [
    ['POST', '/v1/images/variations'],
    ['POST', '/v1/audio/voices'],
    ['POST', '/v1/fine_tuning/jobs'],
    ['GET', '/v1/realtime'],
    ['GET', '/v1/vector_stores'],
    ['POST', '/v1beta/files'],
    ['POST', '/v1beta/cachedContents'],
    ['POST', '/v1beta/models/veo-4:predictLongRunning'],
  ] as const
  for (const [method, path] of rows) {
    const { status, message } = await errorOf(gateway, method, path)
    t.equal(status, 404, path)
    t.ok(message.includes(`${method} /native/{upstream}${path}`), message)
    t.notMatch(message, 'Did you mean')
  }
  for (const [method, path] of [
    ['POST', '/v1/files'],
    ['GET', '/v1/files/file-1/content'],
    ['POST', '/v1/batches'],
    ['POST', '/v1/messages/batches'],
    ['GET', '/v1beta/batches'],
    ['POST', '/upload/v1beta/files'],
    ['GET', '/v1beta/files'],
  ] as const) {
    const { status, message } = await errorOf(gateway, method, path)
    t.equal(status, 400, path)
    t.match(message, 'set files.to', path)
  }
})

void t.test('a misspelt method of a Gemini model is an unknown endpoint', async (t) => {
  const gateway = await startGateway(t)
  for (const base of ['/v1beta', '/v1']) {
    const path = `${base}/models/gemini-3.5-flash:generatContent`
    const { status, message } = await errorOf(gateway, 'POST', path)
    t.equal(status, 404, path)
    t.match(message, `Did you mean POST ${base}/models/{model}:generateContent?`)
  }
  const known = '/v1beta/models/gemini-3.5-flash:generateContent'
  t.equal((await errorOf(gateway, 'GET', known)).status, 405, 'a known method takes POST')
})

void t.test('an unknown model is answered with a similar one that the key may use', async (t) => {
  const gateway = await startGateway(t, {
    routes: '  - { model: fast-lane, targets: [{ upstream: openai, model: gpt-5.4-mini }] }',
  })
  const rows: [string, string][] = [
    ['gpt4o', 'gpt-4o'],
    ['openai/gpt-4o', 'gpt-4o'],
    ['cluade-sonnet-5-5', 'claude-sonnet-5-5'],
    ['fastlane', 'fast-lane'],
    ['emini-3.5-flash', 'gemini-3.5-flash'],
  ]
  for (const [model, similar] of rows) {
    for (const path of ['/v1/chat/completions', '/v1/messages']) {
      const { status, message } = await errorOf(gateway, 'POST', path, model)
      t.equal(status, 404, model)
      t.ok(message.endsWith(`Did you mean '${similar}'?`), message)
    }
    const { message } = await errorOf(gateway, 'GET', `/v1/models/${encodeURIComponent(model)}`)
    t.ok(message.endsWith(`Did you mean '${similar}'?`), message)
  }
  const far = await errorOf(gateway, 'POST', '/v1/chat/completions', 'llama-3-70b')
  t.notMatch(far.message, 'Did you mean')
  const secret = await keyFor(gateway, ['claude-*'])
  const narrow = await errorOf({ ...gateway, secret }, 'POST', '/v1/chat/completions', 'gpt4o')
  t.equal(narrow.status, 404)
  t.notMatch(narrow.text, 'gpt-4o', 'a model that the key may not use is not named')
})
