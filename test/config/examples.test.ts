/**
 * Goal: the examples that users copy are valid: the contract's example, the documentation and the shipped
 * files.
 * Method: texts through the loader; the shipped files from disk.
 */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { loadConfig } from '../../src/config/load-config.js'
import { problemsOf } from './sample.js'

void t.test("the contract's example of upstreams and routes loads", (t) => {
  const example = `
upstreams:
  openai:
    dialect: openai                # openai picks openai-chat or openai-responses per model; naming one forces it
    base_url: https://api.openai.com/v1
    api_keys: [ '\${OPENAI_API_KEY}', '\${OPENAI_API_KEY_2}' ]   # or api_key; each has its own cool-down after 401 or 429
    timeouts: { connect_ms: 3000, first_byte_ms: 60000, idle_ms: 60000, total_ms: 900000 }
    max_connections: 1024
    http2: false
    proxy: env
    native: [ 'POST /v1/files', 'GET /v1/files/*', 'GET /v1/realtime' ]
    breaker: { failures: 5, error_rate: 0.5, min_requests: 20, window_seconds: 10, open_seconds: 30 }
    probe: { path: /models, interval_ms: 10000 }               # optional active health check
  anthropic: { dialect: anthropic, base_url: https://api.anthropic.com/v1, api_key: '\${ANTHROPIC_API_KEY}' }
  anthropic-eu: { dialect: anthropic, base_url: https://eu.example/v1, api_key: '\${ANTHROPIC_API_KEY}' }
  anthropic-research: { dialect: anthropic, base_url: https://api.anthropic.com/v1, api_key: '\${ANTHROPIC_API_KEY}' }
  candidate: { dialect: anthropic, base_url: https://candidate.example/v1, api_key: '\${CANDIDATE_API_KEY}' }
  google: { dialect: gemini, base_url: https://generativelanguage.googleapis.com/v1beta, api_key: '\${GEMINI_API_KEY}' }
routes:                            # exact model first, then the longest prefix
  - { prefix: gpt-, upstream: openai }
  - prefix: claude-
    when: { labels: { team: research }, images: true, tools: true, min_prompt_tokens: 100000 }
    upstream: anthropic-research
  - prefix: claude-
    targets:                       # weights; sticky makes the choice stable
      - { upstream: anthropic, weight: 9 }
      - { upstream: anthropic-eu, weight: 1 }
    sticky: conversation           # none | conversation | key
    balance: weighted              # weighted | least_latency
    fallback:                      # in order, when the targets failed or their breakers are open
      - { upstream: openai, model: gpt-5.4 }
    retry: { attempts: 3, budget: 0.2, max_wait_ms: 5000, non_idempotent: false }   # attempts on one target before the next
    hedge: { after_ms: 1500, extra_spend: 0.02 }
    shadow: { upstream: candidate, model: claude-next, percent: 1 }
  - model: fast                    # an alias: clients ask for "fast"
    targets: [ { upstream: google, model: gemini-2.5-flash }, { upstream: openai, model: gpt-5.4-mini } ]
`
  t.same(problemsOf(example, {}), [])
  t.end()
})

void t.test('the examples of the how-to page and the README load', (t) => {
  const page = ['fallback-and-retries', 'canary-and-shadow']
    .map((name) => readFileSync(`docs/how-to/${name}.md`, 'utf8'))
    .join('\n')
  const readme = readFileSync('README.md', 'utf8')
  const own = readme.slice(readme.indexOf('## Fallback and retries'), readme.indexOf('## Limits and budgets'))
  const blocks = [...(page + own).matchAll(/```yaml\n([^]*?)```/g)].map(([, text = '']) => text)
  t.ok(blocks.length >= 10, String(blocks.length))
  const names = ['anthropic', 'anthropic-eu', 'openai', 'google']
  const upstreams = names.map(
    (name) => `  ${name}: { dialect: openai, base_url: https://${name}.example/v1 }\n`,
  )
  for (const block of blocks) {
    const rest = block.startsWith('upstreams:')
      ? `routes: [{ prefix: x, upstream: ${/^ {2}(\w+):/m.exec(block)?.[1] ?? ''} }]\n`
      : `upstreams:\n${upstreams.join('')}`
    t.same(problemsOf(block + rest, {}), [], block)
  }
  t.end()
})

void t.test('the shipped files are valid, and the example has every key', (t) => {
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
