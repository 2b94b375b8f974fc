/**
 * Goal: a header that is known saves work and nothing else.
 * Method: an authenticator whose store and clock are set by hand; how often a key is read from its header is counted.
 */
import t from 'tap'
import { newSecret } from '../../src/accounts/key-secret.js'
import { KnownHeaders } from '../../src/auth/header-digests.js'
import { GatewayError } from '../../src/errors.js'
import { newBench } from './bench.js'

void t.test('a header that came lately is known by its text, and judged like any other', (t) => {
  const bench = newBench()
  const secret = bench.store.add({}, { expiresAtMs: 2_000 })
  bench.clock.wallMs = 1_000
  const header = `Bearer ${secret}`
  let read = 0
  const ask = (value: string | undefined): string => {
    try {
      const found = bench.auth.identifyBy(value, (text) => {
        read += 1
        return text.slice('Bearer '.length)
      })
      return found instanceof Promise ? 'later' : 'ok'
    } catch (error) {
      return error instanceof GatewayError ? error.kind : 'another error'
    }
  }
  t.equal(ask(undefined), 'unauthenticated')
  t.equal(ask(header), 'ok')
  t.equal(ask(header), 'ok')
  t.equal(read, 1, 'the key is found in it once')
  t.equal(ask(`Bearer ${newSecret()}`), 'unauthenticated')
  t.equal(ask(`Bearer ${secret.slice(0, -1)}`), 'unauthenticated')
  bench.clock.wallMs = 2_000
  t.equal(ask(header), 'unauthenticated', 'its time has come')
  t.equal(read, 3)
  bench.clock.wallMs = 1_000
  bench.store.edit(secret, {}, { revokedAtMs: 1 })
  bench.store.tell(secret)
  t.equal(ask(header), 'unauthenticated', 'a key that is revoked is not known by its header')
  t.equal(ask(header), 'unauthenticated')
  t.equal(read, 5, 'and what is no key is not remembered')
  t.end()
})

void t.test('what comes again is kept, and the rest forgotten within two minutes', (t) => {
  const shown = new KnownHeaders()
  shown.dropOld(0)
  shown.put('header', 'digest')
  shown.dropOld(60_000)
  t.equal(shown.get('header'), 'digest', 'and used, so kept for longer')
  shown.dropOld(120_000)
  shown.dropOld(179_999)
  t.equal(shown.get('header'), 'digest')
  shown.dropOld(180_000)
  shown.dropOld(240_000)
  t.equal(shown.get('header'), undefined)
  t.end()
})
