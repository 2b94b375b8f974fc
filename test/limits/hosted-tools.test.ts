/**
 * Goal: tools and options that a provider runs or bills by itself obey `allow_tools` of the key and of the
 * upstream, in all client formats.
 * Method: a gateway over an upstream that sends prepared replies; keys with and without a budget, a list of
 * models and a list of tools.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { BUDGET, chat, gemini, messages, responses, RESPONSES, setUp, type Asked } from './hosted-upstream.js'

/** Requests with a hosted tool or option, its name, and its path in the request. */
const HOSTED: readonly (readonly [name: string, param: string, asked: Asked])[] = [
  ['web_search', 'web_search_options', chat({ web_search_options: {} })],
  ['service_tier', 'service_tier', chat({ service_tier: 'priority' })],
  ['web_search', 'tools[0]', responses({ tools: [{ type: 'web_search' }] })],
  ['web_search', 'tools[0]', responses({ tools: [{ type: 'web_search_preview' }] })],
  ['web_search', 'tools[0]', responses({ tools: [{ type: 'web_search_preview_2025_03_11' }] })],
  ['code_interpreter', 'tools[0]', responses({ tools: [{ type: 'code_interpreter' }] })],
  ['file_search', 'tools[0]', responses({ tools: [{ type: 'file_search' }] })],
  ['image_generation', 'tools[0]', responses({ tools: [{ type: 'image_generation' }] })],
  [
    'mcp',
    'tools[0]',
    responses({ tools: [{ type: 'mcp', server_label: 'a', server_url: 'https://example.com' }] }),
  ],
  ['shell', 'tools[0]', responses({ tools: [{ type: 'shell', environment: { type: 'container_auto' } }] })],
  ['service_tier', 'service_tier', responses({ service_tier: 'priority' })],
  ['web_search', 'tools[0]', messages({ tools: [{ type: 'web_search_20250305', name: 'web_search' }] })],
  ['web_fetch', 'tools[0]', messages({ tools: [{ type: 'web_fetch_20250910', name: 'web_fetch' }] })],
  [
    'code_execution',
    'tools[0]',
    messages({ tools: [{ type: 'code_execution_20250825', name: 'code_execution' }] }),
  ],
  [
    'advisor',
    'tools[0]',
    messages({ tools: [{ type: 'advisor_20260301', name: 'advisor', model: 'claude-opus-4-6' }] }),
  ],
  ['mcp', 'mcp_servers', messages({ mcp_servers: [{ type: 'url', url: 'https://example.com' }] })],
  ['speed', 'speed', messages({ speed: 'fast' })],
  ['inference_geo', 'inference_geo', messages({ inference_geo: 'us' })],
  ['web_search', 'tools[0].googleSearch', gemini({ tools: [{ googleSearch: {} }] })],
  ['web_search', 'tools[0].googleSearchRetrieval', gemini({ tools: [{ googleSearchRetrieval: {} }] })],
  ['code_execution', 'tools[0].codeExecution', gemini({ tools: [{ codeExecution: {} }] })],
  ['url_context', 'tools[0].urlContext', gemini({ tools: [{ urlContext: {} }] })],
  ['service_tier', 'serviceTier', gemini({ serviceTier: 'priority' })],
]

/** Requests that need no entry: tools that the client runs, and options that cost nothing extra. */
const HARMLESS: readonly Asked[] = [
  chat({ service_tier: 'auto' }),
  chat({ service_tier: 'flex' }),
  responses({ tools: [{ type: 'local_shell' }, { type: 'apply_patch' }, { type: 'shell' }] }),
  messages({
    tools: [
      { type: 'bash_20250124', name: 'bash' },
      { type: 'text_editor_20250728', name: 'str_replace_based_edit_tool' },
      { type: 'memory_20250818', name: 'memory' },
      { type: 'computer_20251124', name: 'computer', display_width_px: 1, display_height_px: 1 },
    ],
  }),
  messages({ speed: 'standard' }),
  messages({ inference_geo: 'global' }),
]

for (const restriction of [BUDGET, { models: ['*'] }]) {
  void t.test(`by default not for keys with ${Object.keys(restriction)[0]}`, async (t) => {
    const { key, ask, upstream } = await setUp(t)
    const restricted = await key(restriction)
    for (const [name, param, asked] of HOSTED) {
      const answer = await ask(restricted, asked)
      t.equal(answer.status, 403, `${name} at ${param}`)
      t.ok(answer.text.includes(`'${name}'`), `names ${name}`)
      t.match(answer.text, /allow_tools/, 'names allow_tools')
    }
    t.equal(upstream.requests.length, 0, 'nothing was sent')
    for (const asked of HARMLESS) {
      const answer = await ask(restricted, asked)
      t.equal(answer.status, 200, `${JSON.stringify(asked.body)}: ${answer.text}`)
    }
    const free = await key()
    for (const [name, , asked] of HOSTED) {
      t.equal((await ask(free, asked)).status, 200, `${name}: as before for other keys`)
    }
  })
}

void t.test('the error has the path of the tool', async (t) => {
  const { key, ask } = await setUp(t)
  const restricted = await key(BUDGET)
  for (const [, param, asked] of HOSTED.filter(({ 2: { path } }) => path === RESPONSES)) {
    t.match(await ask(restricted, asked), { kind: 'forbidden', param })
  }
})

void t.test('the list of the key, then the list of the upstream', async (t) => {
  const { key, ask } = await setUp(t, { upstreamOptions: 'allow_tools: [web_search, mcp]' })
  const search = responses({ tools: [{ type: 'web_search_preview' }] })
  const code = responses({ tools: [{ type: 'code_interpreter' }] })
  const mcp = messages({ mcp_servers: [{ type: 'url', url: 'https://example.com' }] })
  const plain = await key(BUDGET)
  t.equal((await ask(plain, search)).status, 200, 'allowed by the upstream')
  t.equal((await ask(plain, mcp)).status, 200)
  const refused = await ask(plain, code)
  t.match(refused, { status: 403, text: /allow_tools of the upstream 'openai'/ })
  const unlimited = await key()
  t.equal((await ask(unlimited, code)).status, 403, 'the list holds for every key')
  const own = await key({ ...BUDGET, allowTools: ['code_interpreter'] })
  t.equal((await ask(own, code)).status, 200, 'the list of the key comes first')
  t.match(await ask(own, search), { status: 403, text: /allow_tools of the key/ })
  const none = await key({ allowTools: [] })
  t.match(await ask(none, search), { status: 403, text: /allow_tools of the key/ })
  const all = await key({ ...BUDGET, allowTools: ['*'] })
  for (const [name, , asked] of HOSTED) {
    t.equal((await ask(all, asked)).status, 200, `* allows ${name}`)
  }
})

void t.test('"*" of an upstream allows all', async (t) => {
  const { key, ask } = await setUp(t, { upstreamOptions: 'allow_tools: "*"' })
  const secret = await key(BUDGET)
  for (const [name, , asked] of HOSTED) t.equal((await ask(secret, asked)).status, 200, name)
})

void t.test('a tool that a translated request leaves out is not refused', async (t) => {
  const { key, ask } = await setUp(t)
  const secret = await key(BUDGET)
  const body = { model: 'claude-sonnet-4-6', input: 'Hi', tools: [{ type: 'web_search' }] }
  t.equal((await ask(secret, { path: RESPONSES, body })).status, 200)
})

void t.test('candidates whose upstream does not allow a tool are left out', async (t) => {
  const { key, ask, gateway, upstream } = await setUp(t)
  const text = readFileSync(gateway.configFile, 'utf8')
  const options = `dialect: openai-responses, base_url: '${upstream.origin}/open/v1', api_key: emulated`
  const changed = text
    .replace('upstreams:', `upstreams:\n  open: { ${options}, allow_tools: [web_search] }`)
    .replace(
      'routes:',
      'routes:\n  - { model: gpt-5.4-mini, targets: [{ upstream: openai }, { upstream: open }] }',
    )
  writeFileSync(gateway.configFile, changed)
  gateway.reload()
  const secret = await key(BUDGET)
  const search = responses({ tools: [{ type: 'web_search' }] })
  for (let index = 0; index < 8; index += 1) t.equal((await ask(secret, search)).status, 200)
  t.ok(upstream.requests.every(({ url }) => url.startsWith('/open/')))
})

void t.test('the model of a tool obeys the list of the key', async (t) => {
  const { key, ask } = await setUp(t)
  const secret = await key({ models: ['gpt-*', 'claude-sonnet-*'], allowTools: ['*'] })
  const image = (model: string) => responses({ tools: [{ type: 'image_generation', model }] })
  t.equal((await ask(secret, image('gpt-image-1'))).status, 200)
  const refused = await ask(secret, image('dall-e-3'))
  t.match(refused, { status: 403, kind: 'forbidden', param: 'tools[0].model', text: /dall-e-3/ })
  const advisor = { type: 'advisor_20260301', name: 'advisor', model: 'claude-opus-4-6' }
  t.match(await ask(secret, messages({ tools: [advisor] })), { status: 403, text: /claude-opus/ })
})
