/**
 * Goal: a valid key is accepted in every place where clients of the four formats send it, and two different
 * keys are refused.
 * Method: values of the Authorization header; then a running gateway, with the key in each place.
 */
import t from 'tap'
import { objectOf } from '../../../src/base/json.js'
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

/** Headers of a request without a valid key, and what the message names. */
const FAULTS: readonly (readonly [headers: Record<string, string>, words: RegExp, query?: string])[] = [
  [{}, /^The request has no API key\. Send the key as "Authorization: Bearer <key>"/],
  [{ 'api-key': 'KEY' }, /header api-key is not read/],
  [{ 'x-auth-token': 'KEY' }, /header x-auth-token is not read/],
  [{ 'ocp-apim-subscription-key': 'KEY' }, /ocp-apim-subscription-key is not read/],
  [{}, /api_key in the query is not read/, '?api_key=KEY'],
  [{ authorization: 'KEY' }, /has no scheme: write "Bearer"/],
  [{ authorization: 'sk-proj-SECRET' }, /key of a provider \(sk-proj-… of OpenAI\)/],
  [{ authorization: 'Basic SECRET' }, /scheme Basic, which is not accepted/],
  [{ authorization: 'basic SECRET' }, /scheme Basic, which is not accepted/],
  [{ authorization: 'Token KEY' }, /scheme Token/],
  [{ authorization: 'SECRET KEY' }, /another scheme than Bearer/],
  [{ authorization: 'Bearer' }, /scheme "Bearer" without a key/],
  [{ authorization: 'Bearer "KEY"' }, /Authorization has white space or quotes around the key/],
  [{ authorization: 'Bearer   KEY' }, /Authorization has white space or quotes around the key/],
  [{ authorization: 'Bearer Bearer KEY' }, /has the word "Bearer" in the key/],
  [{ 'x-api-key': 'Bearer KEY' }, /header x-api-key has the word "Bearer" in the key/],
  [
    { authorization: 'Bearer sk-ant-SECRET' },
    /Authorization has a key of a provider \(sk-ant-… of Anthropic\)/,
  ],
  [{ 'x-api-key': 'sk-ant-SECRET' }, /x-api-key has a key of a provider \(sk-ant-…/],
  [{ 'x-goog-api-key': 'AIzaSECRET' }, /x-goog-api-key has a key of a provider \(AIza… of Google\)/],
  [{ authorization: 'Bearer sk-SECRET' }, /a key of a provider \(sk-…/],
  [{ authorization: 'Bearer gsk_SECRET' }, /of Groq/],
  [{ authorization: 'Bearer sat_SECRET' }, /token of the admin API/],
  [{ authorization: 'Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJTRUNSRVQifQ.c2ln' }, /JSON Web Token/],
  [{ authorization: 'Bearer ${SLUICE_KEY}' }, /a variable is not set/],
  [{ authorization: 'Bearer undefined' }, /a variable is not set/],
  [{ authorization: 'Bearer SECRET' }, /no key of this gateway: those begin with sk_/],
  [{ authorization: 'Basic SECRET', 'x-api-key': 'AIzaSECRET' }, /x-api-key has a key of a provider/],
  [{ authorization: `Bearer sk_${'0'.repeat(44)}` }, /^No valid API key was given/],
]

void t.test('a 401 names what is wrong with the form of the key, in each format', async (t) => {
  const gateway = await startGateway(t, { server: 'trusted_proxies: [127.0.0.1/32]' })
  // Of the right form, and unknown: only its form may be described.
  const unknown = `sk_${'aB3'.repeat(14)}xx`
  const paths = ['/v1/chat/completions', '/v1/responses', '/v1/messages', '/v1beta/models/m:generateContent']
  for (const [at, [headers, words, query = '']] of FAULTS.entries()) {
    // An address may send 30 wrong keys at once.
    const address = `203.0.113.${at + 1}`
    const sent = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name, value.replace('KEY', unknown)]),
    )
    // The last place is that of an endpoint without a format.
    for (const path of [...paths, '/native/openai/v1/files']) {
      const response = await fetch(gateway.origin + path + query.replace('KEY', unknown), {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-forwarded-for': address, ...sent },
        body: '{}',
      })
      const text = await response.text()
      t.equal(response.status, 401, path)
      const error = objectOf(objectOf(JSON.parse(text))['error'])
      t.match(error['message'], words, `${path} ${JSON.stringify(headers)}`)
      t.notMatch(text, /SECRET|U0VDUkVU|aB3aB3/, 'never with its value')
    }
  }
  t.notMatch(JSON.stringify(gateway.lines), /SECRET|aB3aB3/)
  const inQuery = async (path: string): Promise<unknown> => (await fetch(gateway.origin + path)).json()
  t.match(await inQuery('/v1beta/models?key=AIzaSECRET'), {
    error: { status: 'UNAUTHENTICATED', message: /^The query has a key of/ },
  })
  const empty = /^The request has no API key: key in the query is empty\./
  t.match(await inQuery('/v1beta/models?key='), { error: { message: empty } })
})
