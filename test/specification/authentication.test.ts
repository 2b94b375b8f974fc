/**
 * Goal: only the documented forms of a key pass, every other form gets the same 401, and no key is ever in
 * the log.
 * Method: sends raw header values to a running gateway.
 */
import t from 'tap'
import { startGateway } from '../helpers/gateway.js'
import { newSecret } from '../../src/accounts/key-secret.js'
import { body, post, read } from './exchange.js'

const GOOD = JSON.stringify(body())
const LENGTH = { 'content-length': String(Buffer.byteLength(GOOD)) }

void t.test('S6: every invalid key gets the same reply', async (t) => {
  const gateway = await startGateway(t)
  const { secret } = gateway
  const wrong: (string | null)[] = [
    null,
    '',
    'Bearer',
    'Bearer ',
    `Bearer  ${secret}`,
    `Bearer\t${secret}`,
    `Bearer${secret}`,
    `Basic ${Buffer.from(`user:${secret}`).toString('base64')}`,
    `Basic ${secret}`,
    secret,
    `Bearer ${secret},`,
    `Bearer ${secret}, Bearer ${secret}`,
    `Bearer ${secret} x`,
    `Bearer "${secret}"`,
    `Bearer '${secret}'`,
    `Bearer ${secret}\u00e9`,
    `Bearer ${secret.slice(0, -1)}`,
    `Bearer ${secret}a`,
    `Bearer ${secret.toUpperCase()}`,
    `Bearer sk-${secret.slice(3)}`,
    `Bearer ${newSecret()}`,
    'Bearer sk_short',
    `Bearer sk_${'a'.repeat(8_000)}`,
    "Bearer sk_' OR 1=1 --",
    'Bearer sk_*',
    'Bearer sk_{hash}tag',
    'Bearer null',
    'Bearer undefined',
  ]
  const bodies = new Set<string>()
  for (const value of wrong) {
    const headers = new Headers({ 'content-type': 'application/json' })
    if (value !== null) headers.set('authorization', value)
    const answer = await read(
      await fetch(`${gateway.origin}/v1/chat/completions`, { method: 'POST', headers, body: GOOD }),
    )
    const name = (value ?? 'none').replaceAll(secret, '<key>').slice(0, 60)
    t.equal(answer.status, 401, JSON.stringify(name))
    t.equal(answer.headers.get('www-authenticate'), 'Bearer')
    t.match(answer.error, { type: 'authentication_error', code: 401, kind: 'unauthenticated' })
    // Another text names what is wrong with the form; it never has the value.
    if (value !== null && /^Bearer sk_[A-Za-z0-9]+$/.test(value)) bodies.add(answer.text)
    t.notOk(answer.text.includes(secret.slice(3, 20)), 'no key in the reply')
  }
  t.equal(bodies.size, 1, 'the same words for all of the right form')
  t.match([...bodies][0], 'Authorization: Bearer <key>', 'the advice is not redacted')
  t.equal(gateway.emulator.ledger.length, 0)
  const log = JSON.stringify(gateway.lines)
  t.notOk(log.includes(secret) || log.includes(secret.slice(3, 20)), 'no key in the log')
})

void t.test('S6: the scheme in any case, and white space around the value', async (t) => {
  const gateway = await startGateway(t)
  for (const value of ['Bearer KEY', 'bearer KEY', 'BEARER KEY', ' Bearer KEY \t']) {
    const authorization = value.replace('KEY', gateway.secret)
    t.equal((await post(gateway, { ...LENGTH, authorization }, [GOOD])).status, 200, value)
  }
  const log = JSON.stringify(gateway.lines)
  t.notOk(log.includes(gateway.secret))
  t.match(gateway.lines.at(-1), { key_id: /^key_/, account_id: /./ }, 'the log has its id instead')
})

void t.test('S6: a key is read from three headers only', async (t) => {
  const { origin, secret } = await startGateway(t)
  for (const [path, headers, status] of [
    ['', { 'x-api-key': secret }, 200],
    ['', { 'x-goog-api-key': secret }, 200],
    ['', { 'x-api-key': secret, authorization: `Bearer ${newSecret()}` }, 400],
    ['', { cookie: `key=${secret}` }, 401],
    [`?key=${secret}`, {}, 401],
    [`?api_key=${secret}`, {}, 401],
  ] as const) {
    const init = { method: 'POST', body: GOOD }
    const all = { 'content-type': 'application/json', ...headers }
    const answer = await read(await fetch(`${origin}/v1/chat/completions${path}`, { ...init, headers: all }))
    t.equal(answer.status, status)
    t.notOk(answer.text.includes(secret))
  }
})

void t.test('S6: the key is checked before the body is read', async (t) => {
  const gateway = await startGateway(t)
  const authorization = `Bearer ${newSecret()}`
  const promised = { 'content-length': '1000000', authorization }
  const { status, text } = await post(gateway, promised, ['{"model":'])
  t.equal(status, 401)
  t.match(text, /authentication_error/)
})
