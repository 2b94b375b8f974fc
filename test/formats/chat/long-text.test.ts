/**
 * Goal: a long text behaves like any other string, and is decoded only when it is read.
 * Method: bodies with long texts in several members, read, copied, edited, decoded and estimated.
 */
import t from 'tap'
import { objectOf, type JsonObject } from '../../../src/base/json.js'
import { longTextOf } from '../../../src/formats/chat/long-text.js'
import type { ModelFacts } from '../../../src/formats/chat/model-facts.js'
import { edits } from '../../../src/formats/openai-chat/passthrough.js'
import { decodeRequest } from '../../../src/formats/openai-chat/client/decode-request.js'
import { promptSizeOf } from '../../../src/ledger/estimate-tokens.js'
import { parseObject } from '../../../src/formats/wire/json/parse-body.js'
import { splice } from '../../../src/formats/wire/json/splice.js'

const LONG = 'Он сказал: "船" \\ and\n'.repeat(2_000)
const ASCII = 'The reply: "no"\tand more.\n'.repeat(2_000)
const BODIES: readonly JsonObject[] = [LONG, ASCII].map((text) => ({
  model: 'gpt-4o-mini',
  messages: [
    { role: 'system', content: text },
    {
      role: 'user',
      content: [
        { type: 'text', text },
        { type: 'text', text: 'Short.' },
      ],
    },
    { role: 'assistant', content: text, tool_calls: [call('call_1')] },
    { role: 'tool', tool_call_id: 'call_1', content: text },
    { role: 'user', content: 'Go on.' },
  ],
  metadata: { note: 'x' },
}))

const FACTS: ModelFacts = { id: 'm', family: 'openai', createdAtSeconds: 0, endpoints: ['chat'] }

function call(id: string): JsonObject {
  return { id, type: 'function', function: { name: 'look', arguments: '{}' } }
}

function messageOf(value: JsonObject, at: number): JsonObject {
  const { messages } = value
  return objectOf(Array.isArray(messages) ? messages[at] : undefined)
}

void t.test('a long text reads like a string', (t) => {
  for (const body of BODIES) {
    const { value } = parseObject(Buffer.from(JSON.stringify(body)))
    t.ok(longTextOf(messageOf(value, 0), 'content'), 'a long text is not decoded')
    t.equal(longTextOf(messageOf(value, 4), 'content'), null, 'a short text is decoded')
    t.equal(messageOf(value, 0)['content'], messageOf(body, 0)['content'])
    t.equal(JSON.stringify(value), JSON.stringify(body))
    const copy = { ...messageOf(value, 0) }
    t.equal(longTextOf(copy, 'content'), null)
    t.equal(copy['content'], messageOf(body, 0)['content'], 'a copy has the text')
  }
  t.end()
})

void t.test('a long text is decoded and counted like a string', (t) => {
  for (const body of BODIES) {
    const lazy = decodeRequest(parseObject(Buffer.from(JSON.stringify(body))).value)
    const eager = decodeRequest(body)
    t.same(promptSizeOf(lazy), promptSizeOf(eager), 'the estimate is the same')
    const whole = JSON.stringify(lazy, (key, value: unknown) => (key === 'textBytes' ? undefined : value))
    t.equal(whole, JSON.stringify(eager))
  }
  t.end()
})

void t.test('a long text is not decoded for an upstream of the same format', (t) => {
  for (const body of BODIES) {
    const bytes = Buffer.from(JSON.stringify(body))
    const { value, members } = parseObject(bytes)
    for (const at of [0, 2, 3]) {
      const long = longTextOf(messageOf(value, at), 'content')
      t.ok(long, `message ${at} has a long text`)
      Object.defineProperty(long, 'text', { get: () => t.fail(`message ${at} is decoded`) })
    }
    t.ok(promptSizeOf(decodeRequest(value)).textBytes > 40_000)
    const allEdits = edits(value, 'gpt-4o', {
      model: FACTS,
      losses: { drop: (path) => t.fail(`drops ${path}`) },
    })
    t.equal(splice(bytes, members, allEdits).toString(), JSON.stringify({ ...body, model: 'gpt-4o' }))
  }
  t.end()
})

void t.test('a long text is serialized if the messages change', (t) => {
  const text = LONG
  const marked = { role: 'user', content: 'Hi.', cache_control: { type: 'ephemeral' } }
  const body = { model: 'gpt-4o', messages: [{ role: 'user', content: text }, marked] }
  const bytes = Buffer.from(JSON.stringify(body))
  const { value, members } = parseObject(bytes)
  const allEdits = edits(value, 'gpt-4o', {
    model: FACTS,
    losses: { drop: (path) => t.fail(`drops ${path}`) },
  })
  const sent = objectOf(JSON.parse(splice(bytes, members, allEdits).toString()))
  t.same(sent['messages'], [body.messages[0], { role: 'user', content: 'Hi.' }])
  t.end()
})

void t.test('an invalid long text is refused with its path', (t) => {
  const filler = 'x'.repeat(10_000)
  for (const wrong of ['\\x', '\\u12', '\n', '\u0000']) {
    const json = `{"model":"m","messages":[{"role":"user","content":"é${filler}${wrong}${filler}"}]}`
    t.throws(() => parseObject(Buffer.from(json)), /messages\[0\]\.content is a string/)
  }
  t.throws(
    () => parseObject(Buffer.from(`{"model":"m","messages":["${filler}\\n"],"model":"n"}`)),
    /given twice/,
  )
  t.end()
})
