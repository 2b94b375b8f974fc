/**
 * Goal: keys are fetched when they are needed, never more often than configured, and used while the issuer is
 * away.
 * Method: a manual clock and an issuer that a test controls.
 */
import t from 'tap'
import { IssuerKeys } from '../../../src/accounts/workload-identity/issuer-keys.js'
import { readToken } from '../../../src/accounts/workload-identity/read-token.js'
import { GatewayError } from '../../../src/errors.js'
import { rawToken } from '../../helpers/issuer.js'

const JWKS = { max_age_seconds: 300, cooldown_seconds: 5, stale_seconds: 86_400 }
const ADDRESS = 'https://issuer.example/keys'

function aToken(kid?: string, alg = 'ES256') {
  return readToken(rawToken({ alg, kid }, { iss: 'x', exp: 2_000_000_000 }))
}

function aJwk(kid?: string, more: object = {}) {
  return { kty: 'EC', crv: 'P-256', x: 'x', y: `y of ${kid ?? ''}`, kid, ...more }
}

/** The clock starts at 1,000 s. */
function newBench(source: object = { jwks_uri: ADDRESS }) {
  const state = { ms: 1_000_000, fetched: [] as string[], set: [] as object[], isUp: true }
  const failures: string[] = []
  let held: (() => void) | null = null
  const gate = { isHeld: false, release: () => held?.() }
  const keys = new IssuerKeys(
    {
      issuer: 'https://issuer.example',
      jwks: JWKS,
      jwks_uri: undefined,
      jwks_file: undefined,
      ...source,
    },
    {
      now: () => state.ms,
      onFailure: (_issuer, reason) => failures.push(reason),
      get: async (url) => {
        state.fetched.push(url)
        if (gate.isHeld) await new Promise<void>((resolve) => (held = resolve))
        await Promise.resolve()
        if (!state.isUp) throw new Error('answers with status 503')
        return url.endsWith('configuration')
          ? JSON.stringify({ issuer: 'https://issuer.example', jwks_uri: ADDRESS })
          : JSON.stringify({ keys: state.set })
      },
    },
  )
  const find = async (kid?: string, alg?: string): Promise<string> => {
    try {
      return `found ${(await keys.find(aToken(kid, alg))).jwk.kid ?? ''}`
    } catch (error) {
      if (error instanceof GatewayError) return error.kind
      throw error
    }
  }
  return { keys, state, failures, gate, find }
}

void t.test('unknown keys cannot flood the issuer', async (t) => {
  const { state, find } = newBench()
  state.set = [aJwk('a')]
  t.equal(await find('a'), 'found a')
  t.equal(state.fetched.length, 1)
  const many = await Promise.all(Array.from({ length: 50 }, (_, at) => find(`unknown ${at}`)))
  t.same(new Set(many), new Set(['jwt_unknown_key']))
  t.equal(state.fetched.length, 2, 'one fetch for all of them')
  state.set.push(aJwk('b'))
  t.equal(await find('b'), 'jwt_unknown_key', 'within the cooldown')
  state.ms += 4_999
  t.equal(await find('b'), 'jwt_unknown_key')
  state.ms += 1
  t.equal(await find('b'), 'found b')
  t.equal(state.fetched.length, 3)
})

void t.test('requests wait for the fetch in progress', async (t) => {
  const { state, find, gate } = newBench()
  state.set = [aJwk('a')]
  gate.isHeld = true
  const first = Array.from({ length: 5 }, () => find('a'))
  await new Promise((resolve) => setImmediate(resolve))
  gate.release()
  t.same(new Set(await Promise.all(first)), new Set(['found a']))
  state.set.push(aJwk('b'))
  const next = Array.from({ length: 5 }, () => find('b'))
  await new Promise((resolve) => setImmediate(resolve))
  gate.release()
  t.same(new Set(await Promise.all(next)), new Set(['found b']), 'a new key')
  t.equal(state.fetched.length, 2)
})

void t.test('old keys are fetched in the background, and used while the issuer is away', async (t) => {
  const { state, find, keys, failures } = newBench()
  state.set = [aJwk('a'), aJwk('b')]
  const [a, b] = await Promise.all([keys.find(aToken('a')), keys.find(aToken('b'))])
  state.ms += 299_999
  t.equal(await find('a'), 'found a')
  t.equal(state.fetched.length, 1)
  state.ms += 1
  state.set = [aJwk('b')]
  t.equal(await find('a'), 'found a', 'does not wait')
  await new Promise((resolve) => setImmediate(resolve))
  t.equal(state.fetched.length, 2)
  t.same([a.isCurrent, b.isCurrent], [false, true], 'a key that left the set')
  t.equal(await keys.find(aToken('b')), b, 'an unchanged key stays the same object')
  state.isUp = false
  for (const ms of [300_000, 600_000, 85_000_000]) {
    state.ms += ms
    t.equal(await find('b'), 'found b', 'the issuer is away')
    await new Promise((resolve) => setImmediate(resolve))
  }
  t.ok(failures.every((reason) => reason === 'answers with status 503'))
  state.ms += 1_000_000
  t.equal(await find('b'), 'identity_unavailable', 'too old')
  const { length } = state.fetched
  t.equal(await find('b'), 'identity_unavailable')
  t.equal(state.fetched.length, length, 'a pause after a failure')
  state.isUp = true
  state.ms += 1_000
  t.equal(await find('b'), 'found b')
})

void t.test('selects the key', async (t) => {
  const { state, find } = newBench()
  const uses = [aJwk('enc', { use: 'enc' }), aJwk('sign', { key_ops: ['sign'] })]
  const algs = [aJwk('es384', { alg: 'ES384' }), aJwk('p384', { crv: 'P-384' })]
  state.set = [aJwk('a'), ...uses, ...algs, { kty: 'oct', k: 'c2VjcmV0', kid: 'oct' }]
  t.equal(await find('a'), 'found a')
  for (const kid of ['enc', 'sign', 'es384', 'p384', 'oct']) {
    t.equal(await find(kid), 'jwt_invalid', kid)
  }
  t.equal(await find('a', 'RS256'), 'jwt_invalid', 'another type of key')
  t.equal(await find(), 'found a', 'without kid, the only one that fits')
  state.set.push(aJwk('z'))
  state.ms += 400_000
  await find('a')
  await new Promise((resolve) => setImmediate(resolve))
  t.equal(await find(), 'jwt_unknown_key', 'two fit')
})

void t.test('discovery', async (t) => {
  const { state, find, failures } = newBench({ issuer: 'https://issuer.example' })
  state.set = [aJwk('a')]
  t.equal(await find('a'), 'found a')
  const metadata = 'https://issuer.example/.well-known/openid-configuration'
  t.same(state.fetched, [metadata, ADDRESS])
  const other = newBench({ issuer: 'https://issuer.example/' })
  other.state.set = [aJwk('a')]
  t.equal(await other.find('a'), 'identity_unavailable', 'metadata of another issuer')
  t.match(other.failures[0], /another issuer/)
  t.same(failures, [])
})

void t.test('a file', async (t) => {
  const folder = t.testdir({ 'keys.json': JSON.stringify({ keys: [aJwk('a')] }) })
  t.equal(await newBench({ jwks_file: `${folder}/keys.json` }).find('a'), 'found a')
  const missing = newBench({ jwks_file: `${folder}/missing.json` })
  t.equal(await missing.find('a'), 'identity_unavailable')
  t.same(missing.failures, ['ENOENT'])
})
