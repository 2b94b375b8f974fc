/**
 * Goal: what people copy is good: the contract's example, and the files that are shipped.
 * Method: the text through the loader; the shipped files from disk.
 */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { loadConfig } from '../../src/config/load.js'
import { problemsOf } from './sample.js'

void t.test('the contract’s example loads without the keys of later versions', (t) => {
  const example = `
server:
  host: 0.0.0.0
  port: 8080
  ops_host: 127.0.0.1
  ops_port: 9464
  workers: auto               # processes that share the port: a number, or auto = cores
  drain_ms: 30000
  max_body_bytes: 33554432
store: sqlite:./data/sluice.db
auth: { fresh_seconds: 30, stale_seconds: 300 }
on_loss: report               # report | reject
on_disconnect: cancel         # cancel | drain | drain_until_usage
upstreams:
  openai:
    dialect: openai
    base_url: https://api.openai.com/v1
    api_key: \${OPENAI_API_KEY}
    timeouts: { connect_ms: 3000, first_byte_ms: 60000, idle_ms: 60000, total_ms: 900000 }
    max_connections: 1024
    breaker: { failures: 5, error_rate: 0.5, min_requests: 20, window_seconds: 10, open_seconds: 30 }
  anthropic: { dialect: anthropic, base_url: https://api.anthropic.com/v1, api_key: \${ANTHROPIC_API_KEY} }
  google: { dialect: gemini, base_url: https://generativelanguage.googleapis.com/v1beta, api_key: \${GEMINI_API_KEY} }
routes:                       # first by exact model, then by longest prefix
  - { prefix: gpt-, upstream: openai }
  - { model: o1, upstream: openai }
  - prefix: claude-
    targets: [ { upstream: anthropic, weight: 9 }, { upstream: anthropic-eu, weight: 1 } ]
    fallback: [ { upstream: openai, model: gpt-5.4 } ]
    retry: { attempts: 2, budget: 0.2 }
    hedge: { after_ms: 1500, extra_spend: 0.02 }
  - { prefix: gemini-, upstream: google }
models: models.yaml
plans:
  starter: { price_usd: 20, max_keys: 5 }
  pro:     { price_usd: 50, max_keys: 20 }
  max:     { price_usd: 100, max_keys: unlimited }
limits: []
`
  const paths = problemsOf(example, {}).map((line) => line.split(': ')[1])
  t.same(paths, [
    'upstreams.openai.breaker',
    'routes[2].targets',
    'routes[2].targets[1].upstream',
    'routes[2].fallback',
    'routes[2].retry',
    'routes[2].hedge',
  ])
  const supported = example
    .replace(/ +(breaker|fallback|retry|hedge):.*\n/g, '')
    .replace(', { upstream: anthropic-eu, weight: 1 }', '')
  t.same(problemsOf(supported, {}), [])
  t.end()
})

void t.test('the shipped files are good, and the example has every key', (t) => {
  for (const file of ['config/gateway.yaml', 'config/gateway.example.yaml']) {
    const loaded = loadConfig(file, {})
    t.same(loaded.ok ? [] : loaded.errors, [], file)
  }
  const example = readFileSync('config/gateway.example.yaml', 'utf8')
  const schema = readFileSync('config/schema.json', 'utf8')
  const keys = new Set<string>()
  const collect = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return
    if ('properties' in value && typeof value.properties === 'object') {
      for (const key of Object.keys(value.properties ?? {})) keys.add(key)
    }
    for (const part of Object.values(value)) collect(part)
  }
  collect(JSON.parse(schema))
  t.ok(keys.size > 50, String(keys.size))
  for (const key of keys) t.match(example, new RegExp(`\\b${key}:`), key)
  t.end()
})
