/** What vendors of chat completions have of their own: names of tools, ids of calls, schemas. */
import t from 'tap'
import { arrayOf, objectOf, stringOf, type JsonObject } from '../../src/base/json.js'
import { Fold } from '../../src/formats/chat/fold.js'
import { decodeRequest } from '../../src/formats/codecs.js'
import { ordinaryModel, type UpstreamCodec } from '../../src/formats/dialect.js'
import { upstreamCodecOf } from '../../src/formats/index.js'

const LOSSES = { drop: () => undefined }
const FACTS = { ...ordinaryModel('m', 'openai-chat'), family: 'other' }

function codecOf(preset: string): UpstreamCodec {
  const codec = upstreamCodecOf('openai-chat', { platform: null, anthropicVersion: null, preset })
  if (codec === null) throw new Error('the format has no codec')
  return codec
}

function conversation(name: string, id: string): JsonObject {
  return {
    model: 'm',
    max_tokens: 9,
    tools: [{ name, input_schema: { type: 'object', properties: { view: { enum: ['a'] } } } }],
    messages: [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: [{ type: 'tool_use', id, name, input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: 'r' }] },
    ],
  }
}

void t.test('names of tools begin with a letter for Moonshot, and are changed back', (t) => {
  const codec = codecOf('moonshot')
  for (const [name, sent] of [
    ['21st_magic', 'f_21st_magic'],
    ['_private', 'f__private'],
    ['-dash', 'f_-dash'],
    ['plain', 'plain'],
  ] as const) {
    const request = decodeRequest({ dialect: 'anthropic', body: conversation(name, 'c') })
    const body = codec.encodeRequest(request, FACTS, LOSSES)
    const [tool] = arrayOf(body['tools']).map((each) => objectOf(objectOf(each)['function']))
    t.equal(tool?.['name'], sent)
    t.same(objectOf(objectOf(tool?.['parameters'])['properties'])['view'], { type: 'string', enum: ['a'] })
    const fold = new Fold()
    const call = { id: 'x', type: 'function', function: { name: sent, arguments: '{}' } }
    const message = { role: 'assistant', content: null, tool_calls: [call] }
    codec.decodeReply({ choices: [{ index: 0, message, finish_reason: 'tool_calls' }] }, request, fold)
    t.match(fold.reply()?.blocks, [{ type: 'tool', name }])
  }
  t.end()
})

const NINE = /^[A-Za-z0-9]{9}$/

void t.test('ids of calls of other models become those that Mistral takes', (t) => {
  const codec = codecOf('mistral')
  const sent = new Set<string>()
  for (const id of ['toolu_01AbC', 'call_PTLP8xhu3uwZk4l3nlnrrJha', 'search:0', 'abcDEF123']) {
    const request = decodeRequest({ dialect: 'anthropic', body: conversation('w', id) })
    const translated = arrayOf(codec.encodeRequest(request, FACTS, LOSSES)['messages']).map(objectOf)
    const own = {
      model: 'm',
      messages: [
        { role: 'user', content: 'Hi' },
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id, type: 'function', function: { name: 'w', arguments: '' } }],
        },
        { role: 'tool', tool_call_id: id, content: 'r' },
      ],
    }
    const edit = codec
      .edits(own, 'm', { model: FACTS, losses: LOSSES })
      .findLast(({ key }) => key === 'messages')
    const passed = (JSON.parse(String(edit?.json)) as JsonObject[]).map(objectOf)
    for (const [, call, result] of [translated, passed]) {
      const [each] = arrayOf(call?.['tool_calls']).map(objectOf)
      const found = stringOf(each?.['id']) ?? ''
      t.match(found, NINE)
      t.equal(result?.['tool_call_id'], found)
      t.equal(objectOf(each?.['function'])['arguments'], '{}')
      if (NINE.test(id)) t.equal(found, id)
      sent.add(found)
    }
  }
  t.equal(sent.size, 4)
  t.end()
})
