/**
 * Goal: a preset supplies omitted settings, and settings of the file are added to it.
 * Method: every preset through the loader, alone and with every key that a preset sets.
 */
import t from 'tap'
import { PRESET_NAMES, PRESETS } from '../../../src/config/presets.js'
import type { Env } from '../../../src/config/load-config.js'
import { loadText, problemsOf } from '../sample.js'

void t.test('a preset supplies omitted settings', (t) => {
  const vendor = (more: string) => {
    const loaded = loadText(
      `
upstreams: { it: { ${more} } }
routes: [{ prefix: a, upstream: it }]
`,
      { CLOUDFLARE_ACCOUNT_ID: 'acc' },
    )
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.errors))
    return loaded.config.upstreams['it']
  }
  for (const name of PRESET_NAMES) {
    const preset = PRESETS[name]
    const address = preset.baseUrl === null ? ', base_url: "https://a.example/openai"' : ''
    t.match(vendor(`preset: ${name}${address}`), {
      preset: name,
      dialect: preset.dialect ?? 'openai-chat',
      baseUrl: preset.baseUrl?.replace('${CLOUDFLARE_ACCOUNT_ID}', 'acc') ?? 'https://a.example/openai',
      keyHeader: preset.keyHeader,
      quirks: preset.quirks,
    })
  }
  const own = `preset: mistral, base_url: "https://eu.example/v1", key_header: x-key, query: { a: b },
    path: "/x/{model}", quirks: { keep: [user, seed], drop: [n], rename: { a: b }, set: { c: 1 },
    messages: { drop: [extra], roles: { system: user } }, replies: pass }`
  const { quirks } = PRESETS.mistral
  t.match(vendor(own), {
    baseUrl: 'https://eu.example/v1',
    keyHeader: 'x-key',
    path: '/x/{model}',
    query: { a: 'b' },
    quirks: {
      drop: [...quirks.drop.filter((key) => key !== 'user'), 'n'],
      rename: { max_completion_tokens: 'max_tokens', a: 'b' },
      set: { c: 1 },
      messages: {
        drop: [...quirks.messages.drop, 'extra'],
        roles: { developer: 'system', system: 'user' },
      },
      replies: 'pass',
    },
  })
  t.notOk('seed' in (vendor(own)?.quirks.rename ?? {}), 'a kept key is not renamed')
  t.end()
})

void t.test('a preset alone is a whole upstream', (t) => {
  const vendor = (settings: string, env: Env) => {
    const loaded = loadText(
      `upstreams: { it: { ${settings} } }\nroutes: [{ prefix: a, upstream: it }]\n`,
      env,
    )
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.errors))
    const { apiKeys, apiKeySource } = loaded.config.upstreams['it'] ?? {}
    return { apiKeys, apiKeySource }
  }
  const second = { TOGETHERAI_API_KEY: 'k2' }
  t.same(vendor('preset: groq', { GROQ_API_KEY: 'k' }), { apiKeys: ['k'], apiKeySource: 'GROQ_API_KEY' })
  t.same(vendor('preset: together', second), { apiKeys: ['k2'], apiKeySource: 'TOGETHERAI_API_KEY' })
  t.same(
    vendor('preset: together', {}),
    { apiKeys: [], apiKeySource: 'TOGETHER_API_KEY' },
    'named as missing',
  )
  const own = 'preset: groq, api_key: "${OWN}"'
  t.same(vendor(own, { OWN: 'o', GROQ_API_KEY: 'k' }), { apiKeys: ['o'], apiKeySource: 'OWN' })
  const none = { apiKeys: [], apiKeySource: null }
  t.same(vendor('preset: ollama', {}), none, 'a local server needs none')
  t.same(vendor('preset: ollama', { OLLAMA_API_KEY: 'k' }).apiKeys, ['k'])
  t.same(vendor('preset: groq, base_url: "https://eu.example/v1"', {}), none)
  t.same(vendor('preset: groq, headers: { Authorization: Basic x }', { GROQ_API_KEY: 'k' }), none)
  const azure =
    'platform: azure, preset: azure, base_url: "https://a.openai.azure.com", auth: { azure: default }'
  t.same(vendor(azure, { AZURE_API_KEY: 'k' }), none, 'the identity of the machine')
  t.end()
})

void t.test('what a preset cannot supply is named', (t) => {
  const problems = (settings: string) =>
    problemsOf(`upstreams:\n  it: { ${settings} }\nroutes: [{ prefix: a, upstream: it }]\n`, {}).join('\n')
  t.match(problems('preset: cloudflare'), /CLOUDFLARE_ACCOUNT_ID is not set/)
  t.match(problems('preset: databricks'), /base_url: is required/)
  t.match(problems('preset: anthropic, dialect: openai'), /the preset anthropic uses anthropic/)
  t.equal(problems('preset: openai, dialect: openai-responses'), '')
  t.end()
})
