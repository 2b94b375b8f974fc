/**
 * Goal: valid keys are accepted, all others refused, and a failure of the store is never reported as a
 * wrong key.
 * Method: a manual clock and a fake store with delays and failures.
 */
import t from 'tap'
import { digestOf, newSecret } from '../../../src/accounts/key-secret.js'
import { Authenticator } from '../../../src/accounts/authentication/authenticator.js'
import { AuthCache } from '../../../src/accounts/authentication/key-cache.js'
import { GatewayError } from '../../../src/errors.js'
import { kind, newBench, outcome } from './authenticator-setup.js'

void t.test('a valid key is looked up once, then cached', (t) => {
  const bench = newBench()
  const secret = bench.store.add(
    { id: 'acc_1', plan: 'pro', email: 'ada@example.com', name: 'ada' },
    { id: 'key_1', accountId: 'acc_1' },
  )
  const digest = digestOf(secret)
  const free = { expiresAtMs: null, models: null, allowTools: null, limits: null, labels: {} }
  const account = { accountId: 'acc_1', email: 'ada@example.com', plan: 'pro', accountPath: 'ada' }
  const identity = { keyId: 'key_1', ...account, digest, ...free }
  for (let round = 0; round < 3; round += 1) t.same(bench.auth.identify(secret), identity)
  t.same(bench.store.lookedUp, [digestOf(secret)], 'one lookup, with the digest')
  t.same(bench.results, ['ok', 'ok', 'ok'])
  t.end()
})

void t.test('an identity has the limits and the expiry of its key', async (t) => {
  const bench = newBench()
  const limits = { concurrent: 2 }
  const secret = bench.store.add({}, { expiresAtMs: 2_000, models: ['gpt-5*'], limits })
  const identity = await outcome(bench, secret)
  t.match(identity, { expiresAtMs: 2_000, models: ['gpt-5*'], limits })
  bench.clock.wallMs = 1_999
  t.equal(await kind(bench, secret), 'ok')
  bench.clock.wallMs = 2_000
  t.same(await outcome(bench, secret), await outcome(bench, null), 'the same error as without a key')
  t.equal(bench.store.lookedUp.length, 1, 'without a second lookup')
  t.same(bench.results, ['ok', 'ok', 'expired', 'missing'])
})

void t.test('requests of a key are ended when it expires', async (t) => {
  const bench = newBench()
  const ending = digestOf(bench.store.add({}, { expiresAtMs: 2_000 }))
  const lasting = digestOf(bench.store.add())
  bench.clock.wallMs = 1_999
  const digests = new Set([ending, lasting])
  const [digest, error] = await new Promise<[string, GatewayError]>((resolve) => {
    let scans = 0
    bench.auth.watch({
      digests: () => {
        scans += 1
        if (scans === 2) bench.clock.wallMs = 2_000
        return digests
      },
      end: (digest, error) => resolve([digest, error]),
    })
    // The timers of the authenticator do not prevent the process from exiting.
    const timer = setInterval(() => undefined, 1_000)
    t.teardown(() => clearInterval(timer))
  })
  t.equal(digest, ending, 'only this key')
  t.match([error.kind, error.message], ['unauthenticated', /expired/])
  t.equal(bench.store.lookedUp.length, 2, 'each was looked up once')
  bench.auth.close()
})

void t.test('every wrong key gets the same error; malformed ones are not looked up', async (t) => {
  const bench = newBench()
  const revoked = bench.store.add({}, { revokedAtMs: 5 })
  const good = bench.store.add()
  const forms = [null, '', 'sk_', 'Bearer', ` ${good}`, `${good} `, `${good}\t`, `"${good}"`]
  forms.push(`${good},${good}`, good.slice(0, -1), good.toUpperCase(), 'k'.repeat(8_192), 'sk_é')
  forms.push("sk_' OR 1=1 --", '*3\r\n$3\r\nSET\r\n', '{hash}tag}', 'sk_\0', 'sk_*', '__proto__')
  const first = await outcome(bench, null)
  for (const mode of ['sync', 'down', 'down-sync'] as const) {
    bench.store.mode = mode
    for (const form of forms) t.same(await outcome(bench, form), first, 'the same error')
  }
  t.equal(bench.store.lookedUp.length, 0, 'no lookup, also while the store fails')
  bench.store.mode = 'sync'
  for (const secret of [newSecret(), revoked]) t.same(await outcome(bench, secret), first)
  t.match(first, { kind: 'unauthenticated' })
  t.ok(
    bench.store.lookedUp.every((digest) => /^[0-9a-f]{64}$/.test(digest)),
    'lookups with digests only',
  )
  t.same(new Set(bench.results), new Set(['missing', 'malformed', 'unknown', 'revoked']))
  t.same(bench.results.slice(-2), ['unknown', 'revoked'], 'the metric has the reason')
})

void t.test('the key of a disabled account is unauthenticated', async (t) => {
  const bench = newBench()
  const secret = bench.store.add({ disabled: true })
  t.equal(await kind(bench, secret), 'unauthenticated')
  t.equal(await kind(bench, secret), 'unauthenticated', 'from the cache too')
  t.same(bench.results, ['disabled', 'disabled'])
  t.equal(bench.store.lookedUp.length, 1)
})

void t.test('a key in use is looked up in the background before its cache entry expires', (t) => {
  const bench = newBench()
  const secret = bench.store.add()
  void bench.auth.identify(secret)
  bench.clock.ms += 19_000
  void bench.auth.identify(secret)
  t.equal(bench.store.lookedUp.length, 1, 'not in the first two thirds')
  bench.clock.ms += 2_000
  bench.store.mode = 'held'
  t.notOk(bench.auth.identify(secret) instanceof Promise, 'requests do not wait for it')
  t.notOk(bench.auth.identify(secret) instanceof Promise)
  t.equal(bench.store.lookedUp.length, 2, 'one lookup')
  bench.store.release()
  t.end()
})

void t.test('a revocation without notification applies after fresh_seconds', async (t) => {
  for (const mode of ['sync', 'async'] as const) {
    const bench = newBench()
    const secret = bench.store.add()
    bench.store.mode = mode
    t.equal(await kind(bench, secret), 'ok')
    bench.store.edit(secret, {}, { revokedAtMs: 1 })
    bench.clock.ms += 30_000
    t.equal(await kind(bench, secret), 'unauthenticated', mode)
  }
})

void t.test('a changed setting applies at once', async (t) => {
  const bench = newBench()
  const secret = bench.store.add()
  await kind(bench, secret)
  bench.settings.freshSeconds = 1
  bench.clock.ms += 1_000
  await kind(bench, secret)
  t.equal(bench.store.lookedUp.length, 2)
})

void t.test('a revocation with a notification applies to the next request', async (t) => {
  for (const changed of ['the key', 'anything'] as const) {
    const bench = newBench()
    const secret = bench.store.add()
    const other = bench.store.add()
    await kind(bench, secret)
    await kind(bench, other)
    bench.store.edit(secret, {}, { revokedAtMs: 1 })
    t.equal(await kind(bench, secret), 'ok', 'not notified yet')
    bench.store.notify(changed === 'the key' ? secret : null)
    t.equal(await kind(bench, secret), 'unauthenticated', changed)
    t.equal(await kind(bench, other), 'ok')
    t.equal(bench.store.lookedUp.length, changed === 'the key' ? 3 : 4)
  }
})

void t.test('a changed plan applies after a notification of an unspecified change', async (t) => {
  const bench = newBench()
  const secret = bench.store.add({ plan: 'starter' })
  await kind(bench, secret)
  bench.store.edit(secret, { plan: 'max' }, {})
  bench.store.notify(null)
  t.match(await outcome(bench, secret), { plan: 'max' })
})

void t.test('an unknown key is cached for five seconds, or until it is created', async (t) => {
  const bench = newBench()
  const unknown = newSecret()
  for (let round = 0; round < 10; round += 1) await kind(bench, unknown)
  t.equal(bench.store.lookedUp.length, 1)
  bench.clock.ms += 4_999
  await kind(bench, unknown)
  t.equal(bench.store.lookedUp.length, 1)
  bench.clock.ms += 1
  await kind(bench, unknown)
  t.equal(bench.store.lookedUp.length, 2)

  for (const changed of ['the key', 'anything'] as const) {
    const secret = bench.store.add()
    const late = new Authenticator({
      store: bench.store,
      settings: () => bench.settings,
      now: () => bench.clock.ms,
    })
    const empty = { ...bench, auth: late }
    bench.store.hide(secret, true)
    t.equal(await kind(empty, secret), 'unauthenticated')
    bench.store.hide(secret, false)
    t.equal(await kind(empty, secret), 'unauthenticated', 'cached')
    bench.store.notify(changed === 'the key' ? secret : null)
    t.equal(await kind(empty, secret), 'ok', `dropped after a notification of ${changed}`)
  }
})

void t.test('a failing store is 503 with retry-after, never 401', async (t) => {
  for (const mode of ['down', 'down-sync'] as const) {
    const bench = newBench()
    const secret = bench.store.add()
    const unknown = newSecret()
    bench.store.mode = mode
    const expected = { kind: 'store_unavailable', retryAfterSeconds: 1 }
    t.match(await outcome(bench, secret), expected)
    t.match(await outcome(bench, unknown), expected, 'an unknown key too')
    t.same(bench.results, ['store_unavailable', 'store_unavailable'])
    bench.store.mode = 'sync'
    t.equal(await kind(bench, secret), 'ok', 'failures are not cached')
    t.equal(await kind(bench, unknown), 'unauthenticated')
  }
})

void t.test('any other exception of an engine is 503 too', async (t) => {
  const bench = newBench()
  bench.store.failure = () => new GatewayError('bug', 'x')
  bench.store.mode = 'down'
  t.match(await outcome(bench, newSecret()), { kind: 'store_unavailable', retryAfterSeconds: 1 })
})

void t.test('while the store fails, cached keys are accepted for stale_seconds', async (t) => {
  for (const mode of ['down', 'down-sync'] as const) {
    const bench = newBench()
    const secret = bench.store.add()
    await kind(bench, secret)
    bench.store.mode = mode
    bench.clock.ms += 31_000
    t.equal(await kind(bench, secret), 'ok', 'after fresh_seconds')
    const lookups = bench.store.lookedUp.length
    t.notOk(bench.auth.identify(secret) instanceof Promise, 'requests do not wait for the next failure')
    bench.clock.ms += 999
    await kind(bench, secret)
    t.equal(bench.store.lookedUp.length, lookups, 'no lookup for a second after a failure')
    bench.clock.ms += 1
    await kind(bench, secret)
    t.equal(bench.store.lookedUp.length, lookups + 1, 'then the next lookup')
    bench.store.notify(null)
    t.equal(await kind(bench, secret), 'ok', 'a notification of a lost connection changes nothing')
    bench.clock.ms += 300_000 - 32_000
    t.equal(await kind(bench, secret), 'ok', 'at the end of stale_seconds')
    bench.clock.ms += 1_000
    t.equal(await kind(bench, secret), 'store_unavailable', 'after stale_seconds')

    bench.store.mode = 'sync'
    bench.store.edit(secret, {}, { revokedAtMs: 1 })
    t.equal(await kind(bench, secret), 'unauthenticated', 'the revocation applies after the recovery')
  }
})

void t.test('with stale_seconds 0 no key is accepted while the store fails', async (t) => {
  const bench = newBench()
  bench.settings.staleSeconds = 0
  const secret = bench.store.add()
  await kind(bench, secret)
  bench.store.mode = 'down'
  bench.clock.ms += 30_000
  t.equal(await kind(bench, secret), 'store_unavailable')
})

void t.test('a key is never accepted after its revocation was notified', async (t) => {
  const bench = newBench()
  const secret = bench.store.add()
  await kind(bench, secret)
  bench.store.edit(secret, {}, { revokedAtMs: 1 })
  bench.store.notify(secret)
  bench.store.mode = 'down'
  t.equal(await kind(bench, secret), 'store_unavailable', 'not accepted from the cache')

  const waiting = newBench()
  const other = waiting.store.add()
  await kind(waiting, other)
  waiting.clock.ms += 31_000
  waiting.store.mode = 'held'
  const result = kind(waiting, other)
  waiting.store.notify(other)
  waiting.store.mode = 'down'
  waiting.store.release()
  t.equal(await result, 'store_unavailable', 'also if the notification arrives during the lookup')
})

void t.test('the result of a lookup that began before a change is not cached', async (t) => {
  for (const changed of ['the key', 'anything'] as const) {
    const bench = newBench()
    const secret = bench.store.add()
    bench.store.mode = 'held'
    const early = kind(bench, secret)
    bench.store.edit(secret, {}, { revokedAtMs: 1 })
    bench.store.notify(changed === 'the key' ? secret : null)
    const after = kind(bench, secret)
    bench.store.release()
    t.equal(await early, 'ok', 'the lookup began before')
    t.equal(await after, 'unauthenticated', 'a request after the change causes a new lookup')
    t.equal(await kind(bench, secret), 'unauthenticated')

    const alone = newBench()
    const only = alone.store.add()
    alone.store.mode = 'held'
    const late = kind(alone, only)
    alone.store.edit(only, {}, { revokedAtMs: 1 })
    alone.store.notify(changed === 'the key' ? only : null)
    alone.store.release()
    t.equal(await late, 'ok')
    alone.store.mode = 'sync'
    t.equal(await kind(alone, only), 'unauthenticated', 'also without another request')
  }
})

void t.test('a thousand concurrent requests with one key share one lookup', async (t) => {
  const bench = newBench()
  const secret = bench.store.add()
  bench.store.mode = 'held'
  const results = Array.from({ length: 1_000 }, () => kind(bench, secret))
  bench.store.release()
  t.same(new Set(await Promise.all(results)), new Set(['ok']))
  t.equal(bench.store.lookedUp.length, 1)
  t.equal(bench.results.length, 1_000, 'each is counted')

  const failing = newBench()
  failing.store.mode = 'down'
  const unlucky = newSecret()
  const failures = Array.from({ length: 1_000 }, () => kind(failing, unlucky))
  t.same(new Set(await Promise.all(failures)), new Set(['store_unavailable']))
  t.equal(failing.store.lookedUp.length, 1)
})

void t.test('at most 32 lookups run, 256 wait, and the others are refused', async (t) => {
  const bench = newBench()
  bench.store.mode = 'held'
  const secrets = Array.from({ length: 400 }, () => bench.store.add())
  const results = secrets.map((secret) => kind(bench, secret))
  t.equal(bench.store.running, 32)
  const releasing = setInterval(() => bench.store.release(), 1)
  const counted = (await Promise.all(results)).reduce<Record<string, number>>((sum, result) => {
    return { ...sum, [result]: (sum[result] ?? 0) + 1 }
  }, {})
  clearInterval(releasing)
  t.same(counted, { ok: 32 + 256, store_unavailable: 400 - 32 - 256 })
  t.equal(bench.store.mostRunning, 32)
  t.equal(bench.store.running, 0)
  bench.store.mode = 'down'
  bench.clock.ms += 10_000
  const failures = Array.from({ length: 200 }, () => kind(bench, newSecret()))
  t.same(new Set(await Promise.all(failures)), new Set(['store_unavailable']))
  bench.store.mode = 'async'
  const again = secrets.slice(-100).map((secret) => kind(bench, secret))
  t.same(new Set(await Promise.all(again)), new Set(['ok']), 'failed lookups release their slots')
})

void t.test('keys with a common prefix never share an identity', async (t) => {
  const cache = new AuthCache()
  for (const length of [8, 16, 20, 40, 63]) {
    const digest = 'a'.repeat(64)
    const near = 'a'.repeat(length) + 'b'.repeat(64 - length)
    const free = { expiresAtMs: null, models: null, allowTools: null, limits: null, labels: {} }
    const keyId = `key_${length}`
    const identity = { keyId, accountId: 'acc', plan: 'pro', digest, ...free } as const
    cache.put(digest, { good: true, identity }, 0)
    t.equal(cache.get(near, 0), null, `${length} equal characters`)
  }
  const bench = newBench(cache)
  const start = newSecret().slice(0, 41)
  const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
  const good = bench.store.add()
  await kind(bench, good)
  for (const letter of alphabet) {
    t.equal(await kind(bench, good.slice(0, -1) + letter), good.endsWith(letter) ? 'ok' : 'unauthenticated')
    t.equal(await kind(bench, start + letter + good.slice(42)), 'unauthenticated')
  }
})

void t.test('a reply of the store for another key or account is refused', async (t) => {
  const bench = newBench()
  const wrongKey = bench.store.add({}, { digest: digestOf(newSecret()) })
  const wrongAccount = bench.store.add({}, { accountId: 'acc_other' })
  for (const secret of [wrongKey, wrongAccount]) {
    for (const mode of ['sync', 'async'] as const) {
      bench.store.mode = mode
      t.match(await outcome(bench, secret), { kind: 'store_unavailable', retryAfterSeconds: 1 })
    }
  }
})

void t.test('the cache is bounded and keeps recently used keys', async (t) => {
  const cache = new AuthCache(20, 10)
  const bench = newBench(cache)
  const hot = bench.store.add()
  const cold = bench.store.add()
  await kind(bench, hot)
  await kind(bench, cold)
  for (let round = 0; round < 200; round += 1) {
    await kind(bench, bench.store.add())
    await kind(bench, newSecret())
    await kind(bench, hot)
    t.ok(cache.size.good <= 20 && cache.size.bad <= 10)
  }
  const lookups = bench.store.lookedUp.length
  t.equal(lookups, 2 + 400, 'one lookup of the key in use')
  t.equal(await kind(bench, cold), 'ok')
  t.equal(bench.store.lookedUp.length, lookups + 1, 'a second lookup of the unused key')

  bench.store.notify(hot)
  bench.store.hide(hot, true)
  t.equal(await kind(bench, hot), 'unauthenticated', 'a change removes it from every cache')
})

void t.test('close removes the subscription', (t) => {
  const bench = newBench()
  t.equal(bench.store.listeners, 1)
  bench.auth.close()
  t.equal(bench.store.listeners, 0)
  t.end()
})

void t.test('no error contains the secret', async (t) => {
  const bench = newBench()
  const secret = newSecret()
  bench.store.mode = 'down'
  for (const form of [secret, `${secret}x`]) {
    const error: unknown = await Promise.resolve()
      .then(() => bench.auth.identify(form))
      .catch((cause: unknown) => cause)
    t.ok(error instanceof GatewayError)
    const text = error instanceof Error ? `${error.stack ?? ''}${JSON.stringify(error)}` : ''
    t.notOk(text.includes(secret.slice(3, 20)))
  }
})
