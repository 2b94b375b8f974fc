/**
 * Goal: keys, headers and model names that clients and upstreams choose neither exhaust memory nor stall
 * the event loop.
 * Method: each cache with such keys gets more and longer entries than its limit.
 */
import t from 'tap'
import { AuthCache, KnownHeaders } from '../../../src/accounts/authentication/key-cache.js'
import { loadConfig } from '../../../src/config/load-config.js'
import { createSnapshot } from '../../../src/config/create-snapshot.js'
import { ModelList } from '../../../src/gateway/models/model-list.js'
import { Prices } from '../../../src/ledger/find-price.js'
import { createRouter } from '../../../src/gateway/routing/router.js'
import { cpuWatch } from '../../helpers/stopwatch.js'

void t.test('keys with long model lists count by their size', (t) => {
  const cache = new AuthCache(1_000, 10)
  const models = Array.from({ length: 100 }, (_, index) => `model-${index}`.padEnd(256, 'x'))
  const identity = { keyId: 'k', accountId: 'a', plan: 'max', expiresAtMs: null } as const
  for (let index = 0; index < 1_000; index += 1) {
    const digest = String(index)
    const result = {
      good: true,
      identity: { ...identity, digest, models, allowTools: null, limits: null, labels: {} },
    } as const
    cache.put(digest, result, 0)
  }
  t.ok(cache.size.good <= 12, `${cache.size.good} keys of 29 KB each in a cache of 300 KB`)
  t.not(cache.get('999', 0), null, 'the newest is there')
  t.end()
})

void t.test('a header above 512 characters is not cached', (t) => {
  const headers = new KnownHeaders()
  headers.put('x'.repeat(513), 'digest')
  headers.put('y'.repeat(512), 'digest')
  t.equal(headers.get('x'.repeat(513)), undefined)
  t.equal(headers.get('y'.repeat(512)), 'digest')
  t.end()
})

void t.test('looking up the price of a very long model name takes less than 50 ms', (t) => {
  const prices = new Prices([], [], 0)
  const watch = cpuWatch()
  t.equal(prices.find('one', 'gpt', 'a-'.repeat(5_000_000)), null)
  t.ok(watch() < 50)
  t.end()
})

void t.test('the model lists of all keys share one memory limit', (t) => {
  const loaded = loadConfig('config/gateway.yaml', { OPENAI_API_KEY: 'x' })
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.errors))
  const prices = { prices: new Prices(loaded.catalogue.models, [], Date.now()), version: '' }
  const list = new ModelList(createSnapshot(loaded, { generation: 1, loadedAtMs: 0 }), {
    router: createRouter(loaded.config),
    prices: () => prices,
    discovered: new Map(),
  })
  const of = (allowed: string[] | null): string => list.of({ allowed, dialect: 'openai-chat', query: '' })
  for (let index = 0; index < 2_000; index += 1) {
    of([`${index}`.padEnd(200, 'x'), '*'])
  }
  t.equal(of(['*']), of(null))
  t.ok(list.cachedChars > 0 && list.cachedChars <= 4 * 1024 * 1024)
  t.end()
})
