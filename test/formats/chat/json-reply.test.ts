/**
 * Goal: a JSON reply in a code fence loses its fence; other texts stay unchanged. A reply that violates its
 * schema is reported. Method: whole replies with texts as models write them.
 */
import t from 'tap'
import type { Reply } from '../../../src/formats/chat/fold.js'
import { withoutCodeFence, violatesSchema } from '../../../src/formats/chat/json-schema.js'
import type { ChatRequest, ResponseFormat } from '../../../src/formats/chat/request.js'
import { startGateway } from '../../helpers/gateway.js'

function request(responseFormat?: ResponseFormat): ChatRequest {
  const base = { model: 'm', messages: [], stream: false, includeUsage: false, tools: [], rest: {} }
  return responseFormat === undefined ? base : { ...base, responseFormat }
}

function withoutFence(text: string, format?: ResponseFormat): unknown {
  const blocks: Reply['blocks'] = [
    { type: 'thinking', text: '```\n1\n```' },
    { type: 'text', text, citations: [] },
  ]
  const reply: Reply = { id: 'r', model: 'm', blocks, usage: {}, reason: 'stop', raw: null }
  const [thinking, content] = withoutCodeFence(reply, request(format)).blocks
  t.same(thinking, blocks[0], 'thinking is unchanged')
  return content?.type === 'text' ? content.text : undefined
}

const JSON_OBJECT: ResponseFormat = { type: 'json-object' }

void t.test('a fence around the whole text is removed', (t) => {
  t.equal(withoutFence('```json\n{"a":\n1}\n```\n', JSON_OBJECT), '{"a":\n1}')
  t.equal(withoutFence('```\r\n{}\r\n```', JSON_OBJECT), '{}')
  const noSchema: ResponseFormat = { type: 'json-schema', name: 'any', schema: {} }
  t.equal(withoutFence('```\n{}\n```', noSchema), '{}')
  t.end()
})

void t.test('other text is unchanged', (t) => {
  t.equal(withoutFence('Here: ```json\n{}\n```', JSON_OBJECT), 'Here: ```json\n{}\n```')
  t.equal(withoutFence('{"a":1}', JSON_OBJECT), '{"a":1}')
  t.equal(withoutFence('```json\n{}\n```'), '```json\n{}\n```')
  t.equal(withoutFence('```json\n{}\n```', { type: 'text' }), '```json\n{}\n```')
  t.end()
})

const SHIP: ResponseFormat = {
  type: 'json-schema',
  name: 'ship',
  strict: true,
  schema: { type: 'object', properties: { crew: { type: 'integer', minimum: 1 } } },
}

function violates(text: string, format = SHIP, reason: Reply['reason'] = 'stop'): boolean {
  const blocks: Reply['blocks'] = [{ type: 'text', text, citations: [] }]
  const reply: Reply = { id: 'r', model: 'm', blocks, usage: {}, reason, raw: null }
  return violatesSchema(reply, request(format))
}

void t.test('a reply that violates its strict schema is detected', (t) => {
  t.equal(violates('{"crew":3}'), false)
  t.equal(violates('{"crew":0}'), true)
  t.equal(violates('no JSON'), true)
  t.equal(violates('{"crew":0}', { ...SHIP, strict: false }), false, 'the schema is not strict')
  t.equal(violates('{"crew":0}', JSON_OBJECT), false)
  t.equal(violates('{"cre', SHIP, 'length'), false, 'a truncated reply has the reason length')
  t.end()
})

void t.test('a violation is reported in a header, and the reply is unchanged', async (t) => {
  const gateway = await startGateway(t)
  const reply = {
    candidates: [{ content: { role: 'model', parts: [{ text: '{"crew":0}' }] }, finishReason: 'STOP' }],
  }
  const headers = { 'content-type': 'application/json' }
  gateway.emulator.replay({ status: 200, headers, body: JSON.stringify(reply) })
  const { type, ...json_schema } = SHIP
  const response = await gateway.chat({
    model: 'gemini-2.5-flash',
    messages: [{ role: 'user', content: 'A ship.' }],
    response_format: { type: type.replace('-', '_'), json_schema },
  })
  t.equal(response.status, 200)
  t.equal(response.headers.get('x-sluice-lost'), 'response_format.json_schema')
  t.match(await response.json(), { choices: [{ message: { content: '{"crew":0}' } }] })
})
