/**
 * Goal: the cache of authorization headers saves parsing and changes no result.
 * Method: an authenticator with a fake store and a manual clock; the test counts how often a key is parsed.
 */
import t from 'tap'
import { newSecret } from '../../../src/accounts/key-secret.js'
import { KnownHeaders } from '../../../src/accounts/authentication/key-cache.js'
import { GatewayError } from '../../../src/errors.js'
import { newBench } from './authenticator-setup.js'

void t.test('a cached header is not parsed again and gets the same result', (t) => {
  const bench = newBench()
  const secret = bench.store.add({}, { expiresAtMs: 2_000 })
  bench.clock.wallMs = 1_000
  const header = `Bearer ${secret}`
  let parsed = 0
  const identify = (value: string | undefined): string => {
    try {
      const identified = bench.auth.identifyBy(value, (text) => {
        parsed += 1
        return text.slice('Bearer '.length)
      })
      return identified instanceof Promise ? 'later' : 'ok'
    } catch (error) {
      return error instanceof GatewayError ? error.kind : 'another error'
    }
  }
  t.equal(identify(undefined), 'unauthenticated')
  t.equal(identify(header), 'ok')
  t.equal(identify(header), 'ok')
  t.equal(parsed, 1, 'the header is parsed once')
  t.equal(identify(`Bearer ${newSecret()}`), 'unauthenticated')
  t.equal(identify(`Bearer ${secret.slice(0, -1)}`), 'unauthenticated')
  bench.clock.wallMs = 2_000
  t.equal(identify(header), 'unauthenticated', 'the key has expired')
  t.equal(parsed, 3)
  bench.clock.wallMs = 1_000
  bench.store.edit(secret, {}, { revokedAtMs: 1 })
  bench.store.notify(secret)
  t.equal(identify(header), 'unauthenticated', 'a revoked key is not accepted by its header')
  t.equal(identify(header), 'unauthenticated')
  t.equal(parsed, 5, 'headers without a valid key are not cached')
  t.end()
})

void t.test('a header in use stays cached, and others are dropped within two minutes', (t) => {
  const headers = new KnownHeaders()
  headers.dropOld(0)
  headers.put('header', 'digest')
  headers.dropOld(60_000)
  t.equal(headers.get('header'), 'digest', 'this use keeps it for longer')
  headers.dropOld(120_000)
  headers.dropOld(179_999)
  t.equal(headers.get('header'), 'digest')
  headers.dropOld(180_000)
  headers.dropOld(240_000)
  t.equal(headers.get('header'), undefined)
  t.end()
})
