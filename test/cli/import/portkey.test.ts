/**
 * Goal: `sluice import portkey` makes a route from a config object of Portkey.
 * Method: objects of each strategy; one is served over the emulator.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { parse } from 'yaml'
import { arrayOf, isObject } from '../../../src/base/json.js'
import { sluiceHere } from '../session.js'
import { dotenv, imported, type Imported } from './imported-gateway.js'

t.setTimeout(60_000)

async function made(t: Test, config: object): Promise<Imported & { gateway: unknown }> {
  t.testdir()
  const file = join(t.testdirName, 'portkey.json')
  writeFileSync(file, JSON.stringify(config, null, 2))
  const result = await imported(t, ['portkey', file], { OPENAI_API_KEY: 'set' })
  t.equal(result.status, 0, result.err)
  const path = join(result.folder, 'gateway.yaml')
  const check = await sluiceHere(['check', '--no-store', '--config', path], {
    env: { OPENAI_API_KEY: 'set', ...dotenv(result.folder) },
  })
  t.equal(check.status, 0, check.err + check.out)
  return { ...result, gateway: parse(readFileSync(path, 'utf8')) }
}

function outcomeOf({ summary }: Imported, path: string): unknown {
  return arrayOf(summary['items'])
    .filter(isObject)
    .find((item) => item['path'] === path)?.['outcome']
}

void t.test('load balancing', async (t) => {
  const result = await made(t, {
    strategy: { mode: 'loadbalance' },
    targets: [
      {
        provider: 'openai',
        api_key: 'sk-plain-text-key-1',
        weight: 0.7,
        override_params: { model: 'gpt-5.4-mini' },
      },
      { provider: 'anthropic', weight: 0.3, override_params: { model: 'claude-haiku-4-5', top_k: 5 } },
      { virtual_key: 'openai-team-1' },
    ],
    retry: { attempts: 2, on_status_codes: [429] },
    cache: { mode: 'simple', max_age: 600 },
    request_timeout: 20000,
  })
  t.match(result.gateway, {
    server: { bare_paths: true },
    upstreams: {
      openai: { preset: 'openai', api_key: '${OPENAI_API_KEY}', timeouts: { first_byte_ms: 20000 } },
      anthropic: { quirks: { set: { top_k: 5 } } },
    },
    routes: [
      {
        model: '*',
        targets: [
          { upstream: 'openai', model: 'gpt-5.4-mini', weight: 0.7 },
          { upstream: 'anthropic', weight: 0.3 },
        ],
        retry: { attempts: 3 },
        cache: { ttl_seconds: 600 },
      },
    ],
  })
  t.equal(dotenv(result.folder)['OPENAI_API_KEY'], 'sk-plain-text-key-1')
  t.notMatch(result.out, /plain-text/)
  t.equal(outcomeOf(result, 'targets[2]'), 'not_carried')
  t.equal(outcomeOf(result, 'request_timeout'), 'carried')
})

void t.test('fallbacks, conditions and addresses', async (t) => {
  const fallback = await made(t, {
    strategy: { mode: 'fallback', on_status_codes: [500] },
    targets: [
      { provider: 'openai', override_params: { model: 'gpt-5.4-mini' } },
      { provider: 'house', custom_host: 'http://10.0.0.5:8000/v1', override_params: { model: 'own' } },
    ],
  })
  t.match(fallback.gateway, {
    upstreams: { 'openai-chat': { base_url: 'http://10.0.0.5:8000/v1' } },
    routes: [{ targets: [{ upstream: 'openai' }], fallback: [{ upstream: 'openai-chat', model: 'own' }] }],
  })
  const conditional = await made(t, {
    strategy: {
      mode: 'conditional',
      conditions: [
        { query: { 'metadata.plan': { $eq: 'paid' } }, then: 'good' },
        { query: { 'metadata.age': { $gt: 4 } }, then: 'good' },
      ],
      default: 'usual',
    },
    targets: [
      { name: 'good', provider: 'openai', override_params: { model: 'gpt-5.4' } },
      { name: 'usual', provider: 'openai', override_params: { model: 'gpt-5.4-mini' } },
    ],
  })
  t.match(conditional.gateway, {
    routes: [
      { model: '*', when: { labels: { plan: 'paid' } }, targets: [{ model: 'gpt-5.4' }] },
      { model: '*', targets: [{ model: 'gpt-5.4-mini' }] },
    ],
  })
  t.match(conditional.summary['items'], [{ line: Number }])
  const single = await made(t, { provider: 'groq', api_key: 'gsk-plain-text-2' })
  t.match(single.gateway, {
    upstreams: { groq: { preset: 'groq', api_key: '${GROQ_API_KEY}' } },
    routes: [{ model: '*' }],
  })
})

void t.test('strategies in each other', async (t) => {
  const target = (provider: string, model: string, weight?: number) => ({
    ...{ provider, override_params: { model } },
    ...(weight === undefined ? {} : { weight }),
  })
  const shares = {
    strategy: { mode: 'loadbalance' },
    targets: [target('openai', 'gpt-5.4', 3), target('openai', 'gpt-5.4-mini', 1)],
  }
  const outer = await made(t, {
    strategy: { mode: 'fallback' },
    targets: [shares, target('groq', 'llama-3.3-70b-versatile')],
    input_guardrails: ['no-secrets'],
  })
  t.match(outer.gateway, {
    routes: [
      {
        targets: [
          { model: 'gpt-5.4', weight: 3 },
          { model: 'gpt-5.4-mini', weight: 1 },
        ],
        fallback: [{ upstream: 'groq' }],
      },
    ],
  })
  t.equal(outcomeOf(outer, 'targets[0].strategy'), 'carried')
  t.equal(outcomeOf(outer, 'input_guardrails'), 'not_carried')
  const inner = await made(t, {
    strategy: { mode: 'loadbalance' },
    targets: [
      { ...shares, weight: 0.8 },
      {
        strategy: { mode: 'fallback' },
        weight: 0.2,
        targets: [target('groq', 'llama-3.3-70b-versatile'), target('anthropic', 'claude-haiku-4-5')],
      },
    ],
  })
  const [route] = isObject(inner.gateway) ? arrayOf(inner.gateway['routes']).filter(isObject) : []
  const weights = arrayOf(route?.['targets']).map((each) => (isObject(each) ? each['weight'] : null))
  t.strictSame(
    weights.map((weight) => Math.round(Number(weight) * 100)),
    [60, 20, 20],
  )
  t.match(route, { fallback: [{ upstream: 'anthropic', model: 'claude-haiku-4-5' }] })
  const last = await made(t, {
    strategy: { mode: 'fallback' },
    targets: [target('groq', 'llama-3.3-70b-versatile'), shares],
  })
  t.match(last.gateway, {
    routes: [
      { targets: [{ upstream: 'groq' }], fallback: [{ model: 'gpt-5.4' }, { model: 'gpt-5.4-mini' }] },
    ],
  })
  t.equal(outcomeOf(last, 'targets[1].strategy'), 'changed')
})
