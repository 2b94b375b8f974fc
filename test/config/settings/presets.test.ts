/**
 * Goal: a preset supplies omitted settings, and settings of the file are added to it.
 * Method: every preset through the loader, alone and with every key that a preset sets.
 */
import t from 'tap'
import { PRESET_NAMES, PRESETS } from '../../../src/config/presets.js'
import { loadText } from '../sample.js'

void t.test('a preset supplies omitted settings', (t) => {
  const vendor = (more: string) => {
    const loaded = loadText(`
upstreams: { it: { ${more} } }
routes: [{ prefix: a, upstream: it }]
`)
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.errors))
    return loaded.config.upstreams['it']
  }
  for (const name of PRESET_NAMES) {
    const preset = PRESETS[name]
    const address = preset.baseUrl === null ? ', base_url: "https://a.example/openai"' : ''
    t.match(vendor(`preset: ${name}${address}`), {
      preset: name,
      dialect: 'openai-chat',
      baseUrl: preset.baseUrl ?? 'https://a.example/openai',
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
