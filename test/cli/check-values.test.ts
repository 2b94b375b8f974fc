/**
 * Goal: `sluice check` notes values in another unit, models that are listed nowhere and dialects that do not
 * fit their host, and explains names of other gateways; losses of fallbacks are notes only with `--losses`.
 * Method: the command in this process on files.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { sluiceHere } from './session.js'

const MODELS = `as_of: 2026-11-20
models:
  - { id: claude-opus-5-5, family: anthropic, price: { input: 5, output: 25 } }
  - { id: gpt-5.4, family: openai, price: { input: 2.5, output: 15, cache_read: 0.25 } }
`

async function check(t: Test, config: string, args: readonly string[] = [], models = MODELS) {
  const cwd = t.testdir({ 'gateway.yaml': config, 'models.yaml': models })
  const env = { KEY: 'k' }
  const { out, status } = await sluiceHere(['check', ...args, '--config', 'gateway.yaml'], { cwd, env })
  return { out, status, notes: out.split('\n').filter((line) => line.startsWith('note: ')) }
}

/** A file with these lines in an upstream of OpenAI, and more sections. */
function fileWith(lines: string, sections = ''): string {
  const indented = lines.replaceAll(/^(?=.)/gm, '    ')
  return `upstreams:
  one:
    dialect: openai
    base_url: https://api.openai.com/v1
    api_key: \${KEY}
${indented}
routes:
  - { prefix: gpt-, upstream: one }
${sections}`
}

void t.test('units: seconds for milliseconds, and milliseconds for seconds', async (t) => {
  const { notes } = await check(
    t,
    fileWith(
      'timeouts: { connect_ms: 10, idle_ms: 60, total_ms: 600 }',
      'server: { drain_ms: 30, client_stall_ms: 120 }\nauth: { stale_seconds: 60000 }\n',
    ),
  )
  t.same(notes, [
    'note: upstreams.one.timeouts.connect_ms (line 6) is 10 milliseconds: for 10 seconds write 10000',
    'note: upstreams.one.timeouts.idle_ms (line 6) is 60 milliseconds: for 60 seconds write 60000',
    'note: upstreams.one.timeouts.total_ms (line 6) is 600 milliseconds: for 600 seconds write 600000',
    'note: server.drain_ms (line 9) is 30 milliseconds: for 30 seconds write 30000',
    'note: server.client_stall_ms (line 9) is 120 milliseconds: for 120 seconds write 120000',
    'note: auth.stale_seconds (line 10) is 60000 seconds: for 60000 milliseconds write 60',
  ])
  for (const [lines, sections, expected] of [
    ['breaker: { open_seconds: 3000, window_seconds: 2000 }', '', ['3000', '2000']],
    ['', 'server: { headers_timeout_ms: 600, keep_alive_ms: 620 }\n', ['600', '620']],
    ['', 'log: { slow_ms: 5 }\n', ['5']],
    ['', 'server: { overload: { rise_ms: 1, hold_ms: 5 } }\n', ['1', '5']],
    ['probe: { interval_ms: 300 }', '', ['300']],
    ['', "dimensions: [{ name: u, from: ['header:x-u'], keep_seconds: 3600000 }]\n", ['3600000']],
    ['', 'responses: { store_seconds: 600000 }\n', ['600000']],
  ] as const) {
    const all = (await check(t, fileWith(lines, sections))).notes
    t.match(
      all.map((note) => / is (\d+) (?:milli)?seconds: for /.exec(note)?.[1]),
      expected,
    )
  }
  const short = await check(t, fileWith('probe: { interval_ms: 30 }'))
  t.match(short.out, 'interval_ms: must be at least 100: for 30 seconds write 30000')
  const refused = await check(t, fileWith('breaker: { open_seconds: 30000 }'))
  t.match(refused.out, 'open_seconds: must be at most 3600: for 30000 milliseconds write 30')
  const usual = 'timeouts: { connect_ms: 500, idle_ms: 5000 }\nbreaker: { open_seconds: 300 }'
  t.same((await check(t, fileWith(usual, 'responses: { store_seconds: 2592000 }\n'))).notes, [])
})

void t.test('prices for one token', async (t) => {
  const prices = 'prices: { gpt-5.4: { input: 0.0000025, output: 0.000015, calls: { web_search: 0.0001 } } }'
  const { notes } = await check(t, fileWith(prices))
  t.match(notes, [
    /prices\S*\.input \(line 6\) is 0\.0000025 dollars for a million tokens: if .* of one token, write 2\.5$/,
    /prices\S*\.output \(line 6\) is 0\.000015 dollars .*, write 15$/,
  ])
  t.equal(notes.length, 2, notes.join('\n'))
  const own = MODELS.replace('input: 5,', 'input: 0.000005,')
  t.match((await check(t, fileWith(''), [], own)).notes, [
    /^note: the price of claude-opus-5-5 in the catalogue: input is 0\.000005 dollars .* write 5$/,
  ])
  t.same((await check(t, fileWith('prices: { gpt-5.4: { input: 0, output: 0.02 } }'))).notes, [])
})

void t.test('models of routes that are listed nowhere', async (t) => {
  const routes = `  - { model: fast, targets: [{ upstream: one, model: gpt-5.5 }] }
  - { model: gpt-6.4, upstream: one }
  - { prefix: claude-, upstream: one, fallback: [{ upstream: one, model: gpt-5.4-2026-01-01 }] }
`
  const { notes } = await check(t, `${fileWith('')}${routes}`)
  t.same(notes, [
    'note: routes[1].targets[0].model: neither the catalogue nor upstream one lists gpt-5.5 (did you mean "gpt-5.4"?): check the name, or list it in upstreams.one.models',
    'note: routes[2].model: neither the catalogue nor upstream one lists gpt-6.4 (did you mean "gpt-5.4"?): check the name, or list it in upstreams.one.models',
  ])
  for (const lines of [
    'models: [gpt-5.5, gpt-6.4]',
    'discover: true',
    "prices: { '*': { input: 1, output: 1 } }",
  ]) {
    const { notes } = await check(t, `${fileWith(lines)}${routes}`)
    t.notMatch(notes.join('\n'), /neither the catalogue/, lines)
  }
  const words =
    '  - { model: gpt-5.4-nope, upstream: one }\n  - { model: gpt-5.4-preview-2, upstream: one }\n'
  t.match((await check(t, `${fileWith('')}${words}`)).notes, [
    /routes\[1\]\.model: .* lists gpt-5\.4-nope: check/,
  ])
  const local = 'upstreams:\n  a: { dialect: openai-chat, base_url: http://127.0.0.1:1/v1 }\nroutes:\n'
  t.same(
    (await check(t, `${local}  - { model: qwen3, upstream: a }\n`)).notes,
    [],
    'of a server of any vendor',
  )
  t.match((await check(t, `${local}  - { model: gpt-5.3, upstream: a }\n`)).notes, [
    /did you mean "gpt-5\.4"/,
  ])
})

void t.test('dialects that do not fit their host', async (t) => {
  for (const [dialect, url, better] of [
    ['openai-chat', 'https://api.anthropic.com/v1', 'anthropic'],
    ['anthropic', 'https://api.openai.com/v1', 'openai'],
    ['gemini', 'https://api.anthropic.com/v1', 'anthropic'],
    ['openai', 'https://generativelanguage.googleapis.com/v1beta', 'gemini'],
    ['anthropic', 'https://api.mistral.ai/v1', 'openai-chat'],
    ['gemini', 'https://api.groq.com/openai/v1', 'openai-chat'],
    ['anthropic', 'https://api.cerebras.ai/v1', 'openai-chat'],
    ['gemini', 'https://api.moonshot.ai/v1', 'openai-chat'],
    ['gemini', 'https://openrouter.ai/api/v1', 'openai-chat'],
    ['anthropic', 'https://openrouter.ai/api/v1', null],
    [
      'openai',
      'https://us-central1-aiplatform.googleapis.com/v1/projects/p/locations/l/endpoints/openapi',
      null,
    ],
    ['openai', 'https://acme.openai.azure.com/openai/v1', null],
    ['anthropic', 'https://api.deepseek.com/anthropic', null],
    ['openai-chat', 'https://generativelanguage.googleapis.com/v1beta/openai', null],
    ['openai-responses', 'https://api.openai.com/v1', null],
    ['anthropic', 'https://llm.example.com/v1', null],
  ] as const) {
    const config = `upstreams:\n  a: { dialect: ${dialect}, base_url: '${url}' }\nroutes:\n  - { prefix: m-, upstream: a }\n`
    const { notes } = await check(t, config)
    const fits = notes.filter((note) => note.includes('does not fit'))
    const host = new URL(url).hostname
    const text = `note: upstream a: the dialect ${dialect} does not fit ${host}: write dialect: ${better ?? ''}`
    t.same(fits, better === null ? [] : [text])
  }
})

void t.test('hosts of clouds need their platform', async (t) => {
  for (const [dialect, url, platform] of [
    ['openai', 'https://bedrock-runtime.us-east-1.amazonaws.com', 'bedrock'],
    ['gemini', 'https://aiplatform.googleapis.com/v1', 'vertex'],
    ['anthropic', 'https://europe-west1-aiplatform.googleapis.com/v1', 'vertex'],
    ['openai', 'https://acme.openai.azure.com', 'azure'],
  ] as const) {
    const config = `upstreams:\n  a: { dialect: ${dialect}, base_url: '${url}' }\nroutes:\n  - { prefix: m-, upstream: a }\n`
    const expected = `note: upstream a: the dialect ${dialect} does not fit ${new URL(url).hostname}: write platform: ${platform} beside it`
    const { notes } = await check(t, config)
    t.ok(notes.includes(expected), url)
    t.notOk(
      notes.some((note) => note.includes('base_url has no path')),
      `${url} has no path`,
    )
  }
})

void t.test('names of LiteLLM and vendors in the wrong key are explained', async (t) => {
  const start = 'routes: [{ prefix: m-, upstream: a }]\nupstreams:\n  a: '
  for (const [upstream, expected] of [
    ['{ dialect: openai, api_base: https://a.example/v1 }', /api_base.*did you mean "base_url"/],
    ['{ custom_llm_provider: openai }', /custom_llm_provider.*did you mean "dialect"/],
    ['{ dialect: openai, rpm: 5 }', /"rpm": here it is requests_per_minute of limits/],
    ['{ dialect: openai, model_name: m }', /"model_name": here it is model of a route/],
    ['{ dialect: mistral }', /dialect: must be one of .*; for this value write preset: mistral/],
    ['{ dialect: lm_studio }', /for this value write preset: lm-studio/],
    ['{ dialect: x-ai }', /for this value write preset: xai/],
    ['{ dialect: azure-openai }', /for this value write preset: azure/],
    ['{ preset: groq, max_retries: 2 }', /"max_retries": here it is retry: \{ attempts \} of a route/],
    ['{ preset: groq, aws_region_name: x }', /aws_region_name.*did you mean "region"/],
    ['{ preset: groq, weight: 2 }', /"weight": it belongs to a target of a route/],
    ['{ preset: groq, virtual_key: k }', /virtual_key.*did you mean "api_key"/],
    ['{ preset: converse }', /preset: must be one of .*; for this value write dialect: converse/],
    ['{ dialect: vertex_ai }', /for this value write platform: vertex/],
    ['{ dialect: Bedrock }', /for this value write platform: bedrock/],
    ['{ dialect: antropic }', /dialect: must be one of .*did you mean "anthropic"/],
  ] as const) {
    const { out, status } = await check(t, `${start}${upstream}\n`)
    t.equal(status, 1)
    t.match(out, expected, upstream)
  }
  const limits = `${start}{ preset: groq }\nlimits: [{ rpm: 5 }]\n`
  t.match((await check(t, limits)).out, /"rpm" \(did you mean "requests_per_minute"/)
  for (const [line, expected] of [
    ['retries: 3', /"retries": here it is retry: \{ attempts \} of a route/],
    ['routing_strategy: simple-shuffle', /"routing_strategy": here it is balance of a route/],
    ['base_url: https://a.example/v1', /"base_url": it belongs to an upstream/],
    ['telemetry: { url: http://127.0.0.1:4318 }', /"url": use one of otlp, capture_content/],
  ] as const) {
    t.match((await check(t, `${start}{ preset: groq }\n${line}\n`)).out, expected)
  }
  t.match((await check(t, 'model_list: []\n')).out, /"model_list": here it is upstreams and routes/)
})

void t.test('losses of a fallback to another vendor are notes with --losses only', async (t) => {
  const config = `upstreams:
  openai: { dialect: openai, base_url: https://api.openai.com/v1, api_key: '\${KEY}' }
  anthropic: { dialect: anthropic, base_url: https://api.anthropic.com/v1, api_key: '\${KEY}' }
routes:
  - { prefix: gpt-, upstream: openai, fallback: [{ upstream: anthropic, model: claude-opus-5-5 }] }
`
  t.match(await check(t, config, ['--strict']), { status: 0, notes: [] })
  const shown = await check(t, config, ['--losses'])
  t.equal(shown.status, 0)
  t.match(shown.notes.join('\n'), /fallback\[0\]: anthropic \(anthropic\) loses .*logit_bias/)
  t.match(await check(t, config, ['--losses', '--strict']), { status: 1, out: /error: .* loses/ })
})

void t.test('the shipped configurations have no such notes', async (t) => {
  for (const name of ['gateway.yaml', 'gateway.example.yaml', 'gateway.redis.yaml']) {
    const text = readFileSync(join('config', name), 'utf8')
    const models = readFileSync('config/models.yaml', 'utf8')
    const { out } = await check(t, text, ['--no-store'], models)
    t.notMatch(out, /milliseconds:|one token|neither the catalogue|does not fit/, name)
  }
})
