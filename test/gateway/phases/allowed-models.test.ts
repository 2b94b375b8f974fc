/**
 * Goal: a key with a list of models or an expiry time is refused for other models and after that time.
 * Method: keys that are created in the store of a running gateway, and requests with them.
 */
import t from 'tap'
import { createKey } from '../../helpers/keys.js'
import { type NewKeySettings } from '../../helpers/keys.js'
import { namesModel } from '../../../src/accounts/allowed-models.js'
import { arrayOf, objectOf, stringOf } from '../../../src/base/json.js'
import { loadConfig } from '../../../src/config/load-config.js'
import { openStore } from '../../../src/store/open-store.js'
import { startGateway, type TestGateway } from '../../helpers/gateway.js'

type KeyWish = NewKeySettings & { readonly now?: () => number }

async function keyWith(gateway: TestGateway, rest: KeyWish): Promise<string> {
  const loaded = loadConfig(gateway.configFile, {})
  if (!loaded.ok) throw new Error('the configuration is no good')
  const store = await openStore(loaded.config.store)
  try {
    const account = await store.accountByEmail('test@example.com')
    if (account === null) throw new Error('no account')
    return (await createKey(store, { plans: loaded.config.plans, account, name: 'limited', ...rest })).secret
  } finally {
    await store.close()
  }
}

function ask(gateway: TestGateway, secret: string, model: string): Promise<Response> {
  const messages = [{ role: 'user', content: 'Name a colour.' }]
  const headers = { authorization: `Bearer ${secret}` }
  return gateway.chat({ model, messages }, { headers })
}

void t.test('a key may use the models of its list, and no other', async (t) => {
  const gateway = await startGateway(t)
  const secret = await keyWith(gateway, { models: ['gpt-5.4-mini', 'claude-*'] })
  for (const model of ['gpt-5.4-mini', 'claude-sonnet-4-5', 'claude-haiku-4-5']) {
    t.equal((await ask(gateway, secret, model)).status, 200, model)
  }
  const requestsBefore = gateway.emulator.ledger.length
  for (const model of ['gpt-5.4', 'gpt-5.4-mini-2026-01-01', 'gemini-2.5-flash']) {
    const answer = await ask(gateway, secret, model)
    t.equal(answer.status, 403, model)
    const error = objectOf(objectOf(await answer.json())['error'])
    t.match(error, { kind: 'forbidden', param: 'model', message: new RegExp(`'${model}'`) })
  }
  t.equal(gateway.emulator.ledger.length, requestsBefore, 'no upstream got a request')
  t.equal((await ask(gateway, secret, 'no-such-model')).status, 404, 'a model without a route is unknown')
})

void t.test('control characters in a model id are refused with 400 in each format', async (t) => {
  const gateway = await startGateway(t)
  const { origin } = new URL(gateway.baseUrl)
  const headers = { authorization: `Bearer ${gateway.secret}`, 'content-type': 'application/json' }
  const messages = [{ role: 'user', content: 'Hello' }]
  const contents = [{ role: 'user', parts: [{ text: 'Hello' }] }]
  for (const control of ['\u001b', '\u007f', '\u009b', '\u202e', '\u2066', '\u200f', '\u2028']) {
    const model = `gpt-4.1${control}[2J`
    const inPath = encodeURIComponent(model)
    const requests: [path: string, body: object | null][] = [
      ['/v1/chat/completions', { model, messages }],
      ['/v1/completions', { model, prompt: 'Hello' }],
      ['/v1/embeddings', { model, input: 'Hello' }],
      ['/v1/responses', { model, input: 'Hello' }],
      ['/v1/messages', { model, messages, max_tokens: 5 }],
      ['/v1/messages/count_tokens', { model, messages }],
      [`/v1beta/models/${inPath}:generateContent`, { contents }],
      [`/v1beta/models/${inPath}:streamGenerateContent`, { contents }],
      [`/v1/models/${inPath}:countTokens`, { contents }],
      [`/v1beta/models/${inPath}:embedContent`, { content: contents[0] }],
      [`/v1/models/${inPath}`, null],
      [`/v1beta/models/${inPath}`, null],
    ]
    for (const [path, body] of requests) {
      const response = await fetch(`${origin}${path}`, {
        method: body === null ? 'GET' : 'POST',
        headers,
        ...(body === null ? {} : { body: JSON.stringify(body) }),
      })
      const text = await response.text()
      t.equal(response.status, 400, `${path}: ${text.slice(0, 200)}`)
      t.notOk(text.includes(control), `${path} does not repeat it`)
    }
  }
  t.equal(gateway.emulator.ledger.length, 0, 'no upstream got a request')
})

void t.test('a key expires at its time', async (t) => {
  const gateway = await startGateway(t)
  const expiredKey = await keyWith(gateway, { expiresAtMs: Date.now() - 1, now: () => Date.now() - 60_000 })
  const future = await keyWith(gateway, { expiresAtMs: Date.now() + 60_000 })
  t.equal((await ask(gateway, expiredKey, 'gpt-5.4-mini')).status, 401)
  t.equal((await ask(gateway, future, 'gpt-5.4-mini')).status, 200)
})

void t.test('a pattern is an id or a prefix of ids', (t) => {
  t.ok(namesModel(['*'], 'anything'))
  t.ok(namesModel(['a', 'gpt-*'], 'gpt-'))
  for (const pattern of ['gpt-*', 'gpt-5', 'g*-5', '']) t.notOk(namesModel([pattern], 'gpt'))
  t.notOk(namesModel([], 'gpt'))
  t.end()
})

/** Status and body of a GET with the key. */
async function get(
  gateway: TestGateway,
  secret: string,
  path: string,
): Promise<{ status: number; ids: (string | undefined)[] }> {
  const headers = { authorization: `Bearer ${secret}` }
  const res = await fetch(`${gateway.origin}${path}`, { headers })
  const { data } = objectOf(await res.json())
  return { status: res.status, ids: arrayOf(data).map((one) => stringOf(objectOf(one)['id'])) }
}

void t.test('the model list has the models that the key may use', async (t) => {
  const gateway = await startGateway(t)
  const all = await get(gateway, gateway.secret, '/v1/models')
  const patterns = ['gpt-5.4-mini', 'claude-*', 'no-such-model', '']
  const secret = await keyWith(gateway, { models: patterns.filter((one) => one !== '') })
  const some = await get(gateway, secret, '/v1/models')
  t.ok(all.ids.length > some.ids.length)
  t.same(
    some.ids,
    all.ids.filter((id) => namesModel(patterns, id ?? '')),
  )
  t.ok(some.ids.length > 2)
  t.same(await get(gateway, secret, '/v1/models'), some, 'and again')
  const one = await get(gateway, secret, '/v1/models/claude-sonnet-4-5')
  t.equal(one.status, 200)
  t.equal((await get(gateway, secret, '/v1/models/gemini-2.5-flash')).status, 403)
  t.equal((await get(gateway, secret, '/v1/models/no-such-model')).status, 404)
})
