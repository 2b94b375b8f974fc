/**
 * Goal: a client that asked for JSON gets JSON, where the model put it into a fence; nothing else changes.
 * Method: whole answers with the texts that models write.
 */
import t from 'tap'
import type { Reply } from '../../src/chat/fold.js'
import { jsonAnswer } from '../../src/chat/json-answer.js'
import type { ChatRequest, ResponseFormat } from '../../src/chat/request.js'

function request(responseFormat?: ResponseFormat): ChatRequest {
  const base = { model: 'm', messages: [], stream: false, includeUsage: false, tools: [], rest: {} }
  return responseFormat === undefined ? base : { ...base, responseFormat }
}

function answer(text: string, format?: ResponseFormat): unknown {
  const blocks: Reply['blocks'] = [
    { type: 'thinking', text: '```\n1\n```' },
    { type: 'text', text, citations: [] },
  ]
  const reply: Reply = { id: 'r', model: 'm', blocks, usage: {}, reason: 'stop', raw: null }
  const [thinking, said] = jsonAnswer(reply, request(format)).blocks
  t.same(thinking, blocks[0], 'thinking stays')
  return said?.type === 'text' ? said.text : undefined
}

const JSON_OBJECT: ResponseFormat = { type: 'json-object' }

void t.test('a fence around the whole text goes', (t) => {
  t.equal(answer('```json\n{"a":\n1}\n```\n', JSON_OBJECT), '{"a":\n1}')
  t.equal(answer('```\r\n{}\r\n```', JSON_OBJECT), '{}')
  t.end()
})

void t.test('anything else stays', (t) => {
  t.equal(answer('Here: ```json\n{}\n```', JSON_OBJECT), 'Here: ```json\n{}\n```')
  t.equal(answer('{"a":1}', JSON_OBJECT), '{"a":1}')
  t.equal(answer('```json\n{}\n```'), '```json\n{}\n```')
  t.equal(answer('```json\n{}\n```', { type: 'text' }), '```json\n{}\n```')
  t.end()
})
