/**
 * Goal: who may pass, and that no fault of the store ever reads as a wrong key.
 * Method: a clock that is set by hand and a store whose answers, delays and failures are.
 */
import t from 'tap'
import { digestOf, newSecret } from '../../src/accounts/key-secret.js'
import { Authenticator } from '../../src/auth/authenticator.js'
import { AuthCache } from '../../src/auth/cache.js'
import { GatewayError } from '../../src/errors.js'
import { kind, newBench, outcome } from './bench.js'

void t.test('a good key, once looked up, is known from memory and at once', (t) => {
  const bench = newBench()
  const secret = bench.store.add({ id: 'acc_1', plan: 'pro' }, { id: 'key_1', accountId: 'acc_1' })
  const digest = digestOf(secret)
  const free = { expiresAtMs: null, models: null, limits: null, labels: {} }
  const identity = { keyId: 'key_1', accountId: 'acc_1', plan: 'pro', digest, ...free }
  for (let round = 0; round < 3; round += 1) t.same(bench.auth.identify(secret), identity)
  t.same(bench.store.asked, [digestOf(secret)], 'asked once, with the digest')
  t.same(bench.results, ['ok', 'ok', 'ok'])
  t.end()
})

void t.test('a key carries its limits, and ends at its time, remembered or not', async (t) => {
  const bench = newBench()
  const limits = { concurrent: 2 }
  const secret = bench.store.add({}, { expiresAtMs: 2_000, models: ['gpt-5*'], limits })
  const identity = await outcome(bench, secret)
  t.match(identity, { expiresAtMs: 2_000, models: ['gpt-5*'], limits })
  bench.clock.wallMs = 1_999
  t.equal(await kind(bench, secret), 'ok')
  bench.clock.wallMs = 2_000
  t.same(await outcome(bench, secret), await outcome(bench, null), 'as if there were no key')
  t.equal(bench.store.asked.length, 1, 'and without asking for it again')
  t.same(bench.results, ['ok', 'ok', 'expired', 'missing'])
})

void t.test('a key that ends at its time ends what runs with it', async (t) => {
  const bench = newBench()
  const ending = digestOf(bench.store.add({}, { expiresAtMs: 2_000 }))
  const lasting = digestOf(bench.store.add())
  bench.clock.wallMs = 1_999
  const digests = new Set([ending, lasting])
  const [digest, why] = await new Promise<[string, GatewayError]>((resolve) => {
    let looks = 0
    bench.auth.watch({
      digests: () => {
        looks += 1
        if (looks === 2) bench.clock.wallMs = 2_000
        return digests
      },
      end: (digest, why) => resolve([digest, why]),
    })
    // What the authenticator keeps time with does not keep a process alive.
    const awake = setInterval(() => undefined, 1_000)
    t.teardown(() => clearInterval(awake))
  })
  t.equal(digest, ending, 'and nothing else')
  t.match([why.kind, why.message], ['unauthenticated', /expired/])
  t.equal(bench.store.asked.length, 2, 'each was looked up once')
  bench.auth.close()
})

void t.test('one message for every wrong key, and no look-up for a malformed one', async (t) => {
  const bench = newBench()
  const revoked = bench.store.add({}, { revokedAtMs: 5 })
  const good = bench.store.add()
  const forms = [null, '', 'sk_', 'Bearer', ` ${good}`, `${good} `, `${good}\t`, `"${good}"`]
  forms.push(`${good},${good}`, good.slice(0, -1), good.toUpperCase(), 'k'.repeat(8_192), 'sk_é')
  forms.push("sk_' OR 1=1 --", '*3\r\n$3\r\nSET\r\n', '{hash}tag}', 'sk_\0', 'sk_*', '__proto__')
  const first = await outcome(bench, null)
  for (const mode of ['sync', 'down', 'down-sync'] as const) {
    bench.store.mode = mode
    for (const form of forms) t.same(await outcome(bench, form), first, 'the same answer')
  }
  t.equal(bench.store.asked.length, 0, 'the store was not asked, up or down')
  bench.store.mode = 'sync'
  for (const secret of [newSecret(), revoked]) t.same(await outcome(bench, secret), first)
  t.match(first, { kind: 'unauthenticated' })
  t.ok(
    bench.store.asked.every((digest) => /^[0-9a-f]{64}$/.test(digest)),
    'and then with digests only',
  )
  t.same(new Set(bench.results), new Set(['missing', 'malformed', 'unknown', 'revoked']))
  t.same(bench.results.slice(-2), ['unknown', 'revoked'], 'the operator sees which it was')
})

void t.test('a disabled account is forbidden, which is not the same as unknown', async (t) => {
  const bench = newBench()
  const secret = bench.store.add({ disabled: true })
  t.equal(await kind(bench, secret), 'forbidden')
  t.equal(await kind(bench, secret), 'forbidden', 'from memory too')
  t.same(bench.results, ['disabled', 'disabled'])
  t.equal(bench.store.asked.length, 1)
})

void t.test('a key in use is looked up behind the requests before its time is over', (t) => {
  const bench = newBench()
  const secret = bench.store.add()
  void bench.auth.identify(secret)
  bench.clock.ms += 19_000
  void bench.auth.identify(secret)
  t.equal(bench.store.asked.length, 1, 'not in the first two thirds')
  bench.clock.ms += 2_000
  bench.store.mode = 'held'
  t.notOk(bench.auth.identify(secret) instanceof Promise, 'nobody waits for it')
  t.notOk(bench.auth.identify(secret) instanceof Promise)
  t.equal(bench.store.asked.length, 2, 'and it is asked once')
  bench.store.release()
  t.end()
})

void t.test(
  'a lost revocation is noticed when the fresh time is over, at the latest',
  async (t) => {
    for (const mode of ['sync', 'async'] as const) {
      const bench = newBench()
      const secret = bench.store.add()
      bench.store.mode = mode
      t.equal(await kind(bench, secret), 'ok')
      bench.store.edit(secret, {}, { revokedAtMs: 1 })
      bench.clock.ms += 30_000
      t.equal(await kind(bench, secret), 'unauthenticated', mode)
    }
  },
)

void t.test('a changed setting counts at once', async (t) => {
  const bench = newBench()
  const secret = bench.store.add()
  await kind(bench, secret)
  bench.settings.freshSeconds = 1
  bench.clock.ms += 1_000
  await kind(bench, secret)
  t.equal(bench.store.asked.length, 2)
})

void t.test('a revocation that is told counts for the next request', async (t) => {
  for (const told of ['the key', 'anything'] as const) {
    const bench = newBench()
    const secret = bench.store.add()
    const other = bench.store.add()
    await kind(bench, secret)
    await kind(bench, other)
    bench.store.edit(secret, {}, { revokedAtMs: 1 })
    t.equal(await kind(bench, secret), 'ok', 'nobody has been told yet')
    bench.store.tell(told === 'the key' ? secret : null)
    t.equal(await kind(bench, secret), 'unauthenticated', told)
    t.equal(await kind(bench, other), 'ok')
    t.equal(bench.store.asked.length, told === 'the key' ? 3 : 4)
  }
})

void t.test('a plan that changed is seen after "anything may have"', async (t) => {
  const bench = newBench()
  const secret = bench.store.add({ plan: 'starter' })
  await kind(bench, secret)
  bench.store.edit(secret, { plan: 'max' }, {})
  bench.store.tell(null)
  t.match(await outcome(bench, secret), { plan: 'max' })
})

void t.test('an unknown key is remembered for five seconds, or until it is made', async (t) => {
  const bench = newBench()
  const unknown = newSecret()
  for (let round = 0; round < 10; round += 1) await kind(bench, unknown)
  t.equal(bench.store.asked.length, 1)
  bench.clock.ms += 4_999
  await kind(bench, unknown)
  t.equal(bench.store.asked.length, 1)
  bench.clock.ms += 1
  await kind(bench, unknown)
  t.equal(bench.store.asked.length, 2)

  for (const told of ['the key', 'anything'] as const) {
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
    t.equal(await kind(empty, secret), 'unauthenticated', 'remembered')
    bench.store.tell(told === 'the key' ? secret : null)
    t.equal(await kind(empty, secret), 'ok', `forgotten when told of ${told}`)
  }
})

void t.test('a store that fails is 503 with a time to try again, and never 401', async (t) => {
  for (const mode of ['down', 'down-sync'] as const) {
    const bench = newBench()
    const secret = bench.store.add()
    const unknown = newSecret()
    bench.store.mode = mode
    const wanted = { kind: 'store_unavailable', retryAfterSeconds: 1 }
    t.match(await outcome(bench, secret), wanted)
    t.match(await outcome(bench, unknown), wanted, 'an unknown key cannot be judged either')
    t.same(bench.results, ['store_unavailable', 'store_unavailable'])
    bench.store.mode = 'sync'
    t.equal(await kind(bench, secret), 'ok', 'and no failure is remembered as an answer')
    t.equal(await kind(bench, unknown), 'unauthenticated')
  }
})

void t.test('any other exception of an engine is 503 as well', async (t) => {
  const bench = newBench()
  bench.store.failure = () => new GatewayError('bug', 'x')
  bench.store.mode = 'down'
  t.match(await outcome(bench, newSecret()), { kind: 'store_unavailable', retryAfterSeconds: 1 })
})

void t.test('while the store fails, known keys pass up to the stale time', async (t) => {
  for (const mode of ['down', 'down-sync'] as const) {
    const bench = newBench()
    const secret = bench.store.add()
    await kind(bench, secret)
    bench.store.mode = mode
    bench.clock.ms += 31_000
    t.equal(await kind(bench, secret), 'ok', 'past fresh')
    const asked = bench.store.asked.length
    t.notOk(bench.auth.identify(secret) instanceof Promise, 'nobody waits for the next failure')
    bench.clock.ms += 999
    await kind(bench, secret)
    t.equal(bench.store.asked.length, asked, 'a failing store is left alone for a second')
    bench.clock.ms += 1
    await kind(bench, secret)
    t.equal(bench.store.asked.length, asked + 1, 'and then tried again')
    bench.store.tell(null)
    t.equal(await kind(bench, secret), 'ok', 'the news that the link was lost changes nothing')
    bench.clock.ms += 300_000 - 32_000
    t.equal(await kind(bench, secret), 'ok', 'at the end of the stale time')
    bench.clock.ms += 1_000
    t.equal(await kind(bench, secret), 'store_unavailable', 'past it')

    bench.store.mode = 'sync'
    bench.store.edit(secret, {}, { revokedAtMs: 1 })
    t.equal(await kind(bench, secret), 'unauthenticated', 'recovery revives nothing')
  }
})

void t.test('with a stale time of zero nothing passes a failing store', async (t) => {
  const bench = newBench()
  bench.settings.staleSeconds = 0
  const secret = bench.store.add()
  await kind(bench, secret)
  bench.store.mode = 'down'
  bench.clock.ms += 30_000
  t.equal(await kind(bench, secret), 'store_unavailable')
})

void t.test('a key whose revocation was told never passes, whatever fails then', async (t) => {
  const bench = newBench()
  const secret = bench.store.add()
  await kind(bench, secret)
  bench.store.edit(secret, {}, { revokedAtMs: 1 })
  bench.store.tell(secret)
  bench.store.mode = 'down'
  t.equal(await kind(bench, secret), 'store_unavailable', 'not judged, but not let in')

  const waiting = newBench()
  const other = waiting.store.add()
  await kind(waiting, other)
  waiting.clock.ms += 31_000
  waiting.store.mode = 'held'
  const answer = kind(waiting, other)
  waiting.store.tell(other)
  waiting.store.mode = 'down'
  waiting.store.release()
  t.equal(await answer, 'store_unavailable', 'nor where it was told while we waited')
})

void t.test('an answer that is older than a change is not remembered', async (t) => {
  for (const told of ['the key', 'anything'] as const) {
    const bench = newBench()
    const secret = bench.store.add()
    bench.store.mode = 'held'
    const early = kind(bench, secret)
    bench.store.edit(secret, {}, { revokedAtMs: 1 })
    bench.store.tell(told === 'the key' ? secret : null)
    const after = kind(bench, secret)
    bench.store.release()
    t.equal(await early, 'ok', 'it was asked before')
    t.equal(await after, 'unauthenticated', 'who comes after the change does not share it')
    t.equal(await kind(bench, secret), 'unauthenticated')

    const alone = newBench()
    const only = alone.store.add()
    alone.store.mode = 'held'
    const late = kind(alone, only)
    alone.store.edit(only, {}, { revokedAtMs: 1 })
    alone.store.tell(told === 'the key' ? only : null)
    alone.store.release()
    t.equal(await late, 'ok')
    alone.store.mode = 'sync'
    t.equal(await kind(alone, only), 'unauthenticated', 'nor where nobody else asked')
  }
})

void t.test('a thousand requests with one key are one look-up', async (t) => {
  const bench = newBench()
  const secret = bench.store.add()
  bench.store.mode = 'held'
  const answers = Array.from({ length: 1_000 }, () => kind(bench, secret))
  bench.store.release()
  t.same(new Set(await Promise.all(answers)), new Set(['ok']))
  t.equal(bench.store.asked.length, 1)
  t.equal(bench.results.length, 1_000, 'each is counted')

  const failing = newBench()
  failing.store.mode = 'down'
  const unlucky = newSecret()
  const failures = Array.from({ length: 1_000 }, () => kind(failing, unlucky))
  t.same(new Set(await Promise.all(failures)), new Set(['store_unavailable']))
  t.equal(failing.store.asked.length, 1)
})

void t.test('at most 32 look-ups run, a bounded number waits, the rest is told so', async (t) => {
  const bench = newBench()
  bench.store.mode = 'held'
  const secrets = Array.from({ length: 400 }, () => bench.store.add())
  const answers = secrets.map((secret) => kind(bench, secret))
  t.equal(bench.store.running, 32)
  const releasing = setInterval(() => bench.store.release(), 1)
  const counted = (await Promise.all(answers)).reduce<Record<string, number>>((sum, answer) => {
    return { ...sum, [answer]: (sum[answer] ?? 0) + 1 }
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
  t.same(new Set(await Promise.all(again)), new Set(['ok']), 'failures give their places back')
})

void t.test('keys that begin alike never share an identity', async (t) => {
  const cache = new AuthCache()
  for (const length of [8, 16, 20, 40, 63]) {
    const digest = 'a'.repeat(64)
    const near = 'a'.repeat(length) + 'b'.repeat(64 - length)
    const free = { expiresAtMs: null, models: null, limits: null, labels: {} }
    const identity = {
      keyId: `key_${length}`,
      accountId: 'acc',
      plan: 'pro',
      digest,
      ...free,
    } as const
    cache.put(digest, { good: true, identity }, 0)
    t.equal(cache.get(near, 0), null, `${length} characters alike`)
  }
  const bench = newBench(cache)
  const start = newSecret().slice(0, 41)
  const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
  const good = bench.store.add()
  await kind(bench, good)
  for (const letter of alphabet) {
    t.equal(
      await kind(bench, good.slice(0, -1) + letter),
      good.endsWith(letter) ? 'ok' : 'unauthenticated',
    )
    t.equal(await kind(bench, start + letter + good.slice(42)), 'unauthenticated')
  }
})

void t.test('an answer to another question is no answer', async (t) => {
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

void t.test('memory is bounded, and what was used lately stays', async (t) => {
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
  const asked = bench.store.asked.length
  t.equal(asked, 2 + 400, 'the one in use was asked for once')
  t.equal(await kind(bench, cold), 'ok')
  t.equal(bench.store.asked.length, asked + 1, 'the one not used for long is asked for again')

  bench.store.tell(hot)
  bench.store.hide(hot, true)
  t.equal(await kind(bench, hot), 'unauthenticated', 'a change forgets it wherever it is held')
})

void t.test('close stops listening', (t) => {
  const bench = newBench()
  t.equal(bench.store.listeners, 1)
  bench.auth.close()
  t.equal(bench.store.listeners, 0)
  t.end()
})

void t.test('no secret is in what is thrown', async (t) => {
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
