/**
 * Goal: `sluice check` notes base URLs that are probably wrong, and none that are right.
 * Method: base URLs with typical mistakes, and those of vendors and all presets.
 */
import t from 'tap'
import { baseUrlNote } from '../../../src/config/resolve-upstream.js'
import { PRESETS } from '../../../src/config/presets.js'

const noteOn = (baseUrl: string, path: string | null = null): string | null => baseUrlNote({ baseUrl, path })

const WRONG: readonly (readonly [string, RegExp])[] = [
  ['https://api.openai.com', /not end with "\/v1"/],
  ['https://api.openai.com/v1/chat/completions', /ends with "\/chat\/completions"/],
  ['https://api.anthropic.com/v1/messages', /ends with "\/messages"/],
  ['https://generativelanguage.googleapis.com', /not end with "\/v1beta"/],
  ['https://api.groq.com/v1', /not end with "\/openai\/v1"/],
  ['http://127.0.0.1:9000', /no path/],
  ['http://127.0.0.1:9000/v1/v1', /twice/],
]

void t.test('base URLs with typical mistakes get a note', (t) => {
  for (const [url, note] of WRONG) t.match(noteOn(url), note, url)
  t.end()
})

void t.test('base URLs of vendors and presets get no note', (t) => {
  const presets = Object.values(PRESETS).flatMap(({ baseUrl }) => baseUrl ?? [])
  const vendors = [
    'https://api.openai.com/v1',
    'https://api.anthropic.com/v1',
    'https://generativelanguage.googleapis.com/v1beta',
    'https://generativelanguage.googleapis.com/v1beta/openai',
    'https://RESOURCE.openai.azure.com/openai/v1',
    'http://127.0.0.1:9000/v1',
    'http://proxy.internal/llm',
  ]
  for (const url of [...presets, ...vendors]) t.equal(noteOn(url), null, url)
  t.equal(noteOn('http://127.0.0.1:9000', '/chat'), null, 'a path of its own')
  t.end()
})
