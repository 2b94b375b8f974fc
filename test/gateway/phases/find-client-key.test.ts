/**
 * Goal: a valid key is accepted in every place where clients of the four formats send it, and two different
 * keys are refused.
 * Method: values of the Authorization header; then a running gateway, with the key in each place.
 */
import t from 'tap'
import { bearerIn } from '../../../src/gateway/phases/authenticate.js'
import { startGateway } from '../../helpers/gateway.js'

void t.test('only a bearer sk_ key is a credential', (t) => {
  const key = `sk_${'aB3'.repeat(14)}`
  const read = (authorization?: string): string | null =>
    authorization === undefined ? null : bearerIn(authorization)
  for (const scheme of ['Bearer', 'bearer', 'BEARER', 'bEaReR']) {
    t.equal(read(`${scheme} ${key}`), key)
  }
  const none = [
    undefined,
    '',
    'Bearer',
    'Bearer ',
    `Bearer  ${key}`,
    `Bearer\t${key}`,
    `Bearer ${key} `,
    `Bearer ${key}\t`,
    ` Bearer ${key}`,
    `Bearer ${key},`,
    `Bearer "${key}"`,
    `Basic ${key}`,
    key,
    'Bearer sk_',
    'Bearer sk-abc',
    'Bearer SK_abc',
    'Bearer sk_é',
    `Bearer sk_${'x'.repeat(8_192)}`,
    `Bearer ${key}\n`,
  ]
  for (const value of none) t.equal(read(value), null, (value ?? 'none').slice(0, 40))
  t.end()
})

void t.test('one key in any place', async (t) => {
  const gateway = await startGateway(t)
  const { secret } = gateway
  const models = async (path: string, headers: Record<string, string>): Promise<Response> => {
    const res = await fetch(gateway.origin + path, { headers })
    await res.clone().arrayBuffer()
    return res
  }
  const bearer = { authorization: `Bearer ${secret}` }
  const xApiKey = { 'x-api-key': secret }
  const google = { 'x-goog-api-key': secret }
  for (const headers of [
    bearer,
    xApiKey,
    google,
    { ...bearer, ...xApiKey },
    { ...xApiKey, ...google },
    { authorization: 'Basic eDp5', ...xApiKey },
    { authorization: 'Bearer ', ...google },
  ]) {
    for (const path of ['/v1/models', '/v1beta/models', '/v1/models/gpt-4o']) {
      t.equal((await models(path, headers)).status, 200, `${path} ${Object.keys(headers).join()}`)
    }
    const body = JSON.stringify({ model: 'gpt-4o', messages: [{ role: 'user', content: 'hi' }] })
    const chat = await fetch(`${gateway.baseUrl}/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body,
    })
    await chat.arrayBuffer()
    t.equal(chat.status, 200)
  }
  for (const path of ['/v1/models', '/v1beta/models', '/v1beta/models/gpt-4o']) {
    t.equal((await models(`${path}?pageSize=5&key=${secret}`, {})).status, 200, path)
    t.equal((await models(`${path}?key=${secret}`, google)).status, 200, path)
    t.equal((await models(`${path}?key=sk_wrong`, {})).status, 401, path)
  }
  const elsewhere = await gateway.chat({ model: 'gpt-4o', messages: [] }, { headers: { authorization: '' } })
  t.equal(elsewhere.status, 401)
})

void t.test('two different keys in one request are refused', async (t) => {
  const gateway = await startGateway(t)
  const { secret } = gateway
  const other = `${secret.slice(0, -1)}x`
  const cases: [string, Record<string, string>][] = [
    ['/v1/models', { authorization: `Bearer ${secret}`, 'x-api-key': other }],
    ['/v1/models', { authorization: `Bearer ${other}`, 'x-goog-api-key': secret }],
    ['/v1/models', { 'x-api-key': secret, 'x-goog-api-key': other }],
    [`/v1/models?key=${other}`, { authorization: `Bearer ${secret}` }],
    [`/v1/models?key=${other}&key=${secret}`, {}],
    ['/native/openai/v1/files', { authorization: `Bearer ${secret}`, 'x-api-key': other }],
  ]
  for (const [path, headers] of cases) {
    const res = await fetch(gateway.origin + path, { headers })
    const text = await res.text()
    t.equal(res.status, 400, path)
    t.match(text, 'two different API keys')
    t.notOk(text.includes(secret.slice(4)) || text.includes(other.slice(4)))
  }
  t.notOk(JSON.stringify(gateway.lines).includes(secret.slice(4)), 'no key in the log')
})

void t.test('a key in the query counts only on the paths of Google', async (t) => {
  const gateway = await startGateway(t)
  const res = await fetch(`${gateway.baseUrl}/chat/completions?key=${gateway.secret}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{}',
  })
  await res.arrayBuffer()
  t.equal(res.status, 401)
})
