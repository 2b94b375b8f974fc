/** Parts for video, sound and files that only some formats have: translated, or refused with words. */
import t from 'tap'
import type { JsonObject, JsonValue } from '../../src/base/json.js'
import { GatewayError } from '../../src/errors.js'
import { decodeRequest, encodeRequest, type DialectName } from '../../src/formats/codecs.js'
import { ordinaryModel } from '../../src/formats/dialect.js'
import { upstreamCodecOf } from '../../src/formats/index.js'

const UPSTREAMS: readonly DialectName[] = [
  'openai-chat',
  'openai-responses',
  'anthropic',
  'gemini',
  'converse',
]
const MP4 = Buffer.from('\0\0\0\x18ftypmp42\0\0\0\0mp42isom', 'latin1').toString('base64')
const WAV = Buffer.from('RIFF\x24\0\0\0WAVEfmt ', 'latin1').toString('base64')
const PDF = Buffer.from('%PDF-1.7 a document').toString('base64')
const CSV = Buffer.from('a,b\n1,2\n').toString('base64')
const VIDEO_URL = 'https://example.com/clip'

interface Client {
  readonly dialect: DialectName
  readonly body: JsonObject
}

function chat(part: JsonObject): Client {
  return { dialect: 'openai-chat', body: { model: 'm', messages: [{ role: 'user', content: [part] }] } }
}

function responses(part: JsonObject): Client {
  return { dialect: 'openai-responses', body: { model: 'm', input: [{ role: 'user', content: [part] }] } }
}

function messages(block: JsonObject): Client {
  const body = { model: 'm', max_tokens: 9, messages: [{ role: 'user', content: [block] }] }
  return { dialect: 'anthropic', body }
}

function gemini(part: JsonObject): Client {
  return { dialect: 'gemini', body: { contents: [{ role: 'user', parts: [part] }] } }
}

/** The content of the only turn as each upstream gets it; the words of the refusal if it is refused. */
function sent({ dialect, body }: Client, to: DialectName): JsonValue | string {
  try {
    const request = decodeRequest({ dialect, body, ...(dialect === 'gemini' && { model: 'm' }) })
    const wire = JSON.parse(encodeRequest({ from: dialect, to, request }).body) as JsonObject
    const [turn] = (wire['messages'] ?? wire['input'] ?? wire['contents']) as JsonObject[]
    return turn?.['content'] ?? turn?.['parts'] ?? null
  } catch (error) {
    if (error instanceof GatewayError) return `${error.kind}: ${error.message}`
    throw error
  }
}

const REFUSED = /^(?:untranslatable|malformed_request): /

interface Case {
  readonly name: string
  readonly client: Client
  /** What each upstream gets; absent: a refusal that names the part. */
  readonly sent: Readonly<Partial<Record<DialectName, JsonValue>>>
}

const DATA_VIDEO = `data:video/mp4;base64,${MP4}`
/** Responses and Anthropic get files of any kind, which the vendor judges. */
const INLINE_VIDEO: Case['sent'] = {
  'openai-responses': [{ type: 'input_file', filename: 'file.mp4', file_data: DATA_VIDEO }],
  'openai-chat': [{ type: 'video_url', video_url: { url: DATA_VIDEO } }],
  gemini: [{ inlineData: { mimeType: 'video/mp4', data: MP4 } }],
  converse: [{ video: { format: 'mp4', source: { bytes: MP4 } } }],
}
const LINKED: Case['sent'] = {
  'openai-responses': [{ type: 'input_file', file_url: VIDEO_URL }],
  anthropic: [{ type: 'document', source: { type: 'url', url: VIDEO_URL } }],
}
const LINKED_VIDEO: Case['sent'] = {
  ...LINKED,
  'openai-chat': [{ type: 'video_url', video_url: { url: VIDEO_URL } }],
}
const INLINE_SOUND: Case['sent'] = {
  'openai-chat': [{ type: 'input_audio', input_audio: { data: WAV, format: 'wav' } }],
  gemini: [{ inlineData: { mimeType: 'audio/wav', data: WAV } }],
  converse: [{ audio: { format: 'wav', source: { bytes: WAV } } }],
}
const INLINE_PDF: Case['sent'] = {
  'openai-chat': [{ type: 'file', file: { file_data: `data:application/pdf;base64,${PDF}` } }],
  'openai-responses': [
    { type: 'input_file', filename: 'file.pdf', file_data: `data:application/pdf;base64,${PDF}` },
  ],
  anthropic: [{ type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: PDF } }],
  gemini: [{ inlineData: { mimeType: 'application/pdf', data: PDF } }],
  converse: [
    { text: 'Attached: document' },
    { document: { format: 'pdf', name: 'document', source: { bytes: PDF } } },
  ],
}

const PNG = Buffer.from('\x89PNG\r\n\x1a\n\0\0\0\rIHDR', 'latin1').toString('base64')
const INLINE_PNG: Case['sent'] = {
  'openai-chat': [{ type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}` } }],
  'openai-responses': [{ type: 'input_image', image_url: `data:image/png;base64,${PNG}` }],
  anthropic: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG } }],
  gemini: [{ inlineData: { mimeType: 'image/png', data: PNG } }],
  converse: [{ image: { format: 'png', source: { bytes: PNG } } }],
}

const CASES: readonly Case[] = [
  {
    name: 'an image as base64 alone',
    client: chat({ type: 'image_url', image_url: { url: PNG } }),
    sent: INLINE_PNG,
  },
  {
    name: 'an image as base64 alone in Responses',
    client: responses({ type: 'input_image', image_url: PNG }),
    sent: INLINE_PNG,
  },
  {
    name: 'an image in the form of chat completions in Responses',
    client: responses({ type: 'input_image', image_url: { url: `data:image/png;base64,${PNG}` } }),
    sent: INLINE_PNG,
  },
  {
    name: 'video_url, inline',
    client: chat({ type: 'video_url', video_url: { url: DATA_VIDEO } }),
    sent: INLINE_VIDEO,
  },
  {
    name: 'video_url, a text',
    client: chat({ type: 'video_url', video_url: DATA_VIDEO }),
    sent: INLINE_VIDEO,
  },
  {
    name: 'input_video',
    client: responses({ type: 'input_video', video_url: DATA_VIDEO }),
    sent: INLINE_VIDEO,
  },
  {
    name: 'video by URL',
    client: chat({ type: 'video_url', video_url: { url: VIDEO_URL } }),
    sent: LINKED_VIDEO,
  },
  {
    name: 'video by URL from Gemini',
    client: gemini({ fileData: { fileUri: VIDEO_URL, mimeType: 'video/mp4' } }),
    sent: LINKED_VIDEO,
  },
  {
    name: 'a video that YouTube has',
    client: chat({ type: 'video_url', video_url: { url: 'https://www.youtube.com/watch?v=x' } }),
    sent: {
      'openai-responses': [{ type: 'input_file', file_url: 'https://www.youtube.com/watch?v=x' }],
      anthropic: [{ type: 'document', source: { type: 'url', url: 'https://www.youtube.com/watch?v=x' } }],
      'openai-chat': [{ type: 'video_url', video_url: { url: 'https://www.youtube.com/watch?v=x' } }],
      gemini: [{ fileData: { fileUri: 'https://www.youtube.com/watch?v=x' } }],
    },
  },
  {
    name: 'a video as bytes of any kind',
    client: chat({ type: 'video_url', video_url: { url: `data:application/octet-stream;base64,${MP4}` } }),
    sent: INLINE_VIDEO,
  },
  {
    name: 'audio_url',
    client: chat({ type: 'audio_url', audio_url: { url: `data:audio/wav;base64,${WAV}` } }),
    sent: INLINE_SOUND,
  },
  { name: 'sound by URL', client: chat({ type: 'audio_url', audio_url: { url: VIDEO_URL } }), sent: LINKED },
  {
    name: 'input_audio by URL',
    client: chat({ type: 'input_audio', input_audio: { data: VIDEO_URL } }),
    sent: LINKED,
  },
  {
    name: 'a file by URL',
    client: chat({ type: 'file', file: { file_url: 'https://example.com/a.pdf' } }),
    sent: {
      'openai-responses': [{ type: 'input_file', file_url: 'https://example.com/a.pdf' }],
      anthropic: [{ type: 'document', source: { type: 'url', url: 'https://example.com/a.pdf' } }],
    },
  },
  {
    name: 'a PDF as bytes of any kind',
    client: chat({ type: 'file', file: { file_data: `data:application/octet-stream;base64,${PDF}` } }),
    sent: INLINE_PDF,
  },
  {
    name: 'a text document as base64',
    client: messages({ type: 'document', source: { type: 'base64', media_type: 'text/csv', data: CSV } }),
    sent: {
      'openai-chat': [{ type: 'text', text: 'a,b\n1,2\n' }],
      'openai-responses': [
        { type: 'input_file', filename: 'file.csv', file_data: `data:text/csv;base64,${CSV}` },
      ],
      anthropic: [
        { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'a,b\n1,2\n' } },
      ],
      gemini: [{ inlineData: { mimeType: 'text/csv', data: CSV } }],
      converse: [
        { text: 'Attached: document' },
        { document: { format: 'csv', name: 'document', source: { bytes: CSV } } },
      ],
    },
  },
  {
    name: 'a file of Anthropic',
    client: messages({ type: 'document', source: { type: 'file', file_id: 'file_1' } }),
    sent: {},
  },
]

for (const { name, client, sent: wanted } of CASES) {
  void t.test(name, (t) => {
    for (const to of UPSTREAMS.filter((each) => each !== client.dialect || wanted[each] !== undefined)) {
      const found = sent(client, to)
      if (wanted[to] === undefined) t.match(found, REFUSED, `${to} refuses it`)
      else t.same(found, wanted[to], to)
    }
    t.end()
  })
}

void t.test('bytes of any kind with a name have the type of the name', (t) => {
  const file = { filename: 'a.csv', file_data: `data:application/octet-stream;base64,${CSV}` }
  t.match(sent(chat({ type: 'file', file }), 'gemini'), [{ inlineData: { mimeType: 'text/csv' } }])
  t.end()
})

void t.test('Claude on Vertex AI has no files', (t) => {
  const platform = { name: 'vertex' as const, apiVersion: null, deployments: {} }
  const codec = upstreamCodecOf('anthropic', { platform, anthropicVersion: null, preset: null })
  const block = { type: 'document', source: { type: 'file', file_id: 'file_1' } }
  const edits = (content: JsonValue): unknown =>
    codec?.edits({ messages: [{ role: 'user', content }] }, 'm', {
      model: ordinaryModel('m', 'anthropic'),
      losses: { drop: () => undefined },
    })
  const nested = { type: 'tool_result', tool_use_id: 't', content: [block] }
  for (const content of [[block], [nested]]) {
    t.throws(() => edits(content), {
      kind: 'untranslatable',
      message: /has no files\. Send the bytes as base64/,
    })
  }
  t.doesNotThrow(() => edits([{ type: 'document', source: { type: 'base64', data: PDF } }]))
  t.end()
})
