/** Members of parts and tools that no decoder reads are reported by a translation, unless they are empty. */
import t from 'tap'
import type { JsonObject } from '../../src/base/json.js'
import { decodeRequest, encodeRequest, type DialectName } from '../../src/formats/codecs.js'

const PNG = 'data:image/png;base64,iVBORw0KGgo='

function chat(part: JsonObject): JsonObject {
  return { model: 'm', messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }, part] }] }
}

function messages(block: JsonObject, more: JsonObject = {}): JsonObject {
  const content = [{ type: 'text', text: 'Hi' }, block]
  return { model: 'm', max_tokens: 9, messages: [{ role: 'user', content }], ...more }
}

function responses(part: JsonObject): JsonObject {
  return { model: 'm', input: [{ role: 'user', content: [{ type: 'input_text', text: 'Hi' }, part] }] }
}

function gemini(part: JsonObject): JsonObject {
  return { contents: [{ role: 'user', parts: [{ text: 'Hi' }, part] }] }
}

/** What is reported for an upstream. */
function lost(from: DialectName, body: JsonObject, to: DialectName): readonly string[] {
  const request = decodeRequest({ dialect: from, body, ...(from === 'gemini' && { model: 'm' }) })
  return encodeRequest({ from, to, request }).losses
}

const CASES: readonly [from: DialectName, body: JsonObject, to: DialectName, paths: readonly string[]][] = [
  [
    'openai-chat',
    chat({ type: 'video_url', video_url: { url: 'data:video/mp4;base64,AAAA', fps: 2 }, min_pixels: 4 }),
    'gemini',
    ['messages.video_url.fps', 'messages.min_pixels'],
  ],
  [
    'openai-chat',
    chat({ type: 'image_url', image_url: { url: PNG, detail: 'high', max_pixels: 9 } }),
    'anthropic',
    ['messages.image_url.max_pixels'],
  ],
  ['openai-chat', chat({ type: 'image_url', image_url: { url: PNG, detail: 'auto' } }), 'anthropic', []],
  [
    'openai-chat',
    chat({ type: 'image_url', image_url: { url: PNG, detail: 'high' } }),
    'openai-responses',
    [],
  ],
  ['openai-chat', chat({ type: 'text', text: 'x', note: null, list: [], flag: false }), 'anthropic', []],
  [
    'openai-responses',
    responses({ type: 'input_image', image_url: PNG, detail: 'low', frames: 3 }),
    'gemini',
    ['input.frames'],
  ],
  [
    'anthropic',
    messages(
      { type: 'text', text: 'x', weight: 2 },
      { tools: [{ name: 'w', input_schema: {}, timeout: 3 }] },
    ),
    'openai-chat',
    ['messages.weight', 'tools.timeout'],
  ],
  [
    'gemini',
    gemini({ inline_data: { mime_type: 'image/png', data: 'iVBORw0KGgo=' }, video_metadata: { fps: 1 } }),
    'openai-chat',
    ['contents.videoMetadata'],
  ],
]

for (const [from, body, to, paths] of CASES) {
  void t.test(`${from} to ${to}: ${paths.join(', ') || 'nothing'}`, (t) => {
    t.same(lost(from, body, to), paths)
    t.end()
  })
}
