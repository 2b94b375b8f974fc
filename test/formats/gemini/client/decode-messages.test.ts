/**
 * Goal: contents are decoded to messages: media, calls with their results, signatures of any provider.
 * Method: hand-written contents with the expected messages.
 */
import t from 'tap'
import type { JsonObject } from '../../../../src/base/json.js'
import type { ChatRequest } from '../../../../src/formats/chat/request.js'
import { writeReasoningToken } from '../../../../src/formats/wire/reasoning-token.js'
import { call, decoded, HELLO, modelContent, result } from './requests.js'

function configured(generationConfig: JsonObject): ChatRequest {
  return decoded({ generationConfig })
}

void t.test('media of each kind', (t) => {
  const inlineData = (mimeType: string): JsonObject => ({ inlineData: { mimeType, data: 'aGk' } })
  const { messages } = decoded({}, [
    {
      parts: [
        inlineData('image/PNG'),
        inlineData('audio/mpeg'),
        inlineData('audio/x-m4a'),
        inlineData('application/pdf'),
        { inline_data: { mime_type: 'text/plain', data: '-_-_', display_name: 'a.txt' } },
        { fileData: { fileUri: 'https://example.com/a.png', mimeType: 'image/png' } },
        { fileData: { fileUri: 'gs://bucket/a.pdf', mimeType: 'application/pdf' } },
      ],
    },
  ])
  t.match(messages[0]?.parts, [
    { type: 'image', source: { kind: 'base64', mediaType: 'image/png', data: 'aGk=' } },
    { type: 'audio', format: 'mp3', data: 'aGk=' },
    { type: 'audio', format: 'm4a', data: 'aGk=' },
    { type: 'file', source: { kind: 'base64', mediaType: 'application/pdf' } },
    { type: 'file', filename: 'a.txt', source: { kind: 'base64', data: '+/+/' } },
    { type: 'image', source: { kind: 'url', url: 'https://example.com/a.png' } },
    { type: 'file', source: { kind: 'url', url: 'gs://bucket/a.pdf' } },
  ])
  const detail = configured({ mediaResolution: 'MEDIA_RESOLUTION_LOW' })
  t.equal(detail.native, undefined)
  t.end()
})

void t.test('calls and results are paired by id, or by name and order', (t) => {
  const pairs = (...contents: JsonObject[]): unknown =>
    decoded({}, [HELLO, ...contents])
      .messages.slice(1)
      .map((message) => {
        if (message.role === 'assistant') return message.toolCalls.map(({ id, name }) => [id, name])
        return message.role === 'tool' ? [message.callId, message.parts] : message.role
      })
  const text = (value: string): unknown[] => [{ type: 'text', text: value }]
  t.same(
    pairs(modelContent(call('a'), call('b'), call('a')), {
      role: 'function',
      parts: [result('a', { output: '1' }), result('a', { output: '3' }), result('b', { x: 2 })],
    }),
    [
      [
        ['call_fn_1', 'a'],
        ['call_fn_1_1', 'b'],
        ['call_fn_1_2', 'a'],
      ],
      ['call_fn_1', text('1')],
      ['call_fn_1_1', text('{"x":2}')],
      ['call_fn_1_2', text('3')],
    ],
  )
  t.same(
    pairs(modelContent(call('a', { id: 'x' })), modelContent(call('a', { id: 'y' })), {
      parts: [
        result('a', { output: 'y' }, { id: 'y' }),
        result('a', { error: 'bad' }, { id: 'x' }),
        { text: 'And?' },
      ],
    }),
    [
      [
        ['x', 'a'],
        ['y', 'a'],
      ],
      ['x', text('bad')],
      ['y', text('y')],
      'user',
    ],
    'chunks of a stream are one turn',
  )
  t.end()
})

void t.test('parts of the model keep their signatures', (t) => {
  const own = 'AAAAgoogle'
  const foreign = writeReasoningToken({ origin: 'anthropic', thoughts: [{ signature: 'sig' }] })
  const carrier = writeReasoningToken({
    origin: 'anthropic',
    thoughts: [{ text: 'hidden', signature: 'sig' }],
    of: { call: 'toolu_1' },
  })
  const assistant = (...parts: JsonObject[]): unknown => {
    const results = parts.flatMap(({ functionCall }) => (functionCall === undefined ? [] : [result('a', {})]))
    return decoded({}, [HELLO, modelContent(...parts), { parts: results }]).messages[1]
  }
  t.match(
    assistant(
      { text: 'x', thought: true },
      { text: 'y', thought: true, thoughtSignature: own },
      { text: 'z' },
    ),
    {
      parts: [
        { type: 'thinking', text: 'xy', signature: own, origin: 'gemini' },
        { type: 'text', text: 'z' },
      ],
    },
  )
  t.match(assistant({ text: 'x', thought: true }, { text: 'y', thought: true, thought_signature: foreign }), {
    parts: [{ type: 'thinking', text: 'xy', signature: 'sig', origin: 'anthropic' }],
  })
  t.match(assistant({ functionCall: { name: 'a' }, thoughtSignature: carrier }), {
    parts: [{ type: 'thinking', text: 'hidden', signature: 'sig', origin: 'anthropic' }],
    toolCalls: [{ id: 'toolu_1', name: 'a' }],
  })
  const standIn = { ...call('a'), thoughtSignature: 'skip_thought_signature_validator' }
  t.match(assistant(standIn), { toolCalls: [{ signature: undefined }] })
  t.match(assistant({ ...call('a'), thoughtSignature: own }), { toolCalls: [{ signature: own }] })
  t.match(assistant({ text: 'a' }, { text: 'b' }, { text: '', thoughtSignature: own }), {
    parts: [{ type: 'text', text: 'ab', signature: own }],
  })
  const executableCode = { language: 'PYTHON', code: '1' }
  t.match(assistant({ executableCode }), {
    parts: [{ type: 'opaque', provider: 'gemini', block: { executableCode } }],
  })
  t.end()
})
