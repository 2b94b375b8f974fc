/**
 * Goal: reasoning state reaches the client whole, and is decoded the same from all forms that clients send.
 * Method: a reply of each provider is encoded whole and streamed; the message that a client builds from it is
 * decoded as history, in each form that clients use and in all of them together.
 */
import t from 'tap'
import { Fold, type Reply, type ReplyBlock } from '../../../src/formats/chat/fold.js'
import type { ChatEvent } from '../../../src/formats/chat/event.js'
import { arrayOf, type JsonObject, type JsonValue, objectOf, stringOf } from '../../../src/base/json.js'
import type { Message } from '../../../src/formats/chat/request.js'
import type { DialectName } from '../../../src/formats/dialect.js'
import type { ModelFacts } from '../../../src/formats/chat/model-facts.js'
import {
  decode,
  upstreamCodec,
  framesOf,
  clientCodec,
  expectObject,
  refusalOf,
  request,
  requestBody,
  SEED,
} from './driver.js'

const CALL: ReplyBlock = { type: 'tool', id: 'call_1', name: 'look', json: '{}' }

/** The message that a client has after a whole reply. */
function whole(origin: DialectName, blocks: ReplyBlock[]): JsonObject {
  const reply: Reply = { id: 'r', model: 'm', blocks, usage: {}, reason: 'stop', raw: 'stop' }
  const body = expectObject(JSON.parse(clientCodec.encodeReply(reply, request(), { ...SEED, origin }).text))
  return objectOf(objectOf(arrayOf(body.choices)[0]).message)
}

/** The message that a client assembles from a stream, as the SDKs do. */
function streamed(origin: DialectName, blocks: ReplyBlock[]): JsonObject {
  const encoder = clientCodec.newEncoder(request({ stream: true }), { ...SEED, origin })
  for (const event of eventsOf(blocks)) encoder.event(event)
  const message: JsonObject = {}
  const details: JsonValue[] = []
  const calls: JsonObject[] = []
  for (const data of framesOf(encoder.take())) {
    if (data === '[DONE]') continue
    const delta = objectOf(objectOf(arrayOf(expectObject(JSON.parse(data)).choices)[0]).delta)
    details.push(...arrayOf(delta.reasoning_details))
    for (const key of ['content', 'reasoning_content'] as const) {
      const fragment = delta[key]
      if (typeof fragment === 'string') message[key] = (stringOf(message[key]) ?? '') + fragment
    }
    if (delta.extra_content !== undefined) message.extra_content = delta.extra_content
    for (const item of arrayOf(delta.tool_calls)) {
      const { index, extra_content } = objectOf(item)
      calls[Number(index)] ??= {}
      if (extra_content !== undefined) Object.assign(calls[Number(index)] ?? {}, { extra_content })
    }
  }
  return { ...message, details, calls }
}

function eventsOf(blocks: ReplyBlock[]): ChatEvent[] {
  const events: ChatEvent[] = [{ type: 'start', id: 'r', model: 'm' }]
  blocks.forEach((block, index) => {
    const signature = 'signature' in block ? { signature: block.signature ?? '' } : {}
    switch (block.type) {
      case 'thinking':
        events.push(
          block.redacted === undefined
            ? { type: 'thinking-start', index }
            : { type: 'thinking-start', index, redacted: block.redacted },
        )
        if (block.text !== '') events.push({ type: 'thinking-delta', index, text: block.text })
        return events.push({ type: 'thinking-end', index, ...signature })
      case 'text':
        events.push({ type: 'text-start', index })
        if (block.text !== '') events.push({ type: 'text-delta', index, text: block.text })
        return events.push({ type: 'text-end', index, ...signature })
      case 'tool':
        events.push({ type: 'tool-start', index, id: block.id, name: block.name })
        events.push({ type: 'tool-delta', index, json: block.json })
        return events.push({ type: 'tool-end', index, ...signature })
      default:
        throw new Error(`not in these tests: ${block.type}`)
    }
  })
  events.push({ type: 'finish', reason: 'stop', raw: 'stop' })
  return events
}

/** The decoded assistant turn of a message, with the results that it requires. */
function history(message: JsonObject): Message | undefined {
  const results = arrayOf(message.tool_calls).map((call) => {
    return { role: 'tool', tool_call_id: objectOf(call).id ?? '', content: 'done' }
  })
  const messages: JsonValue[] = [{ role: 'user', content: 'q' }, message, ...results]
  return decode(requestBody({ messages })).messages[1]
}

interface Case {
  readonly origin: DialectName
  readonly blocks: ReplyBlock[]
  readonly details: JsonObject[]
  readonly parts: JsonObject[]
  readonly callSignature?: string
}

const CASES: Readonly<Record<string, Case>> = {
  'Claude: signed, empty and redacted thinking around text': {
    origin: 'anthropic',
    blocks: [
      { type: 'thinking', text: 'Hm, ', signature: 'c2ln+/==' },
      { type: 'thinking', text: '', signature: 'omitted' },
      { type: 'thinking', text: '', redacted: 'cmVk' },
      { type: 'text', text: 'So.', citations: [] },
      CALL,
    ],
    details: [
      { type: 'reasoning.text', text: 'Hm, ', signature: 'c2ln+/==' },
      { type: 'reasoning.text', text: '', signature: 'omitted' },
      { type: 'reasoning.encrypted', data: 'cmVk' },
    ],
    parts: [
      { type: 'thinking', text: 'Hm, ', signature: 'c2ln+/==', origin: 'anthropic' },
      { type: 'thinking', text: '', signature: 'omitted', origin: 'anthropic' },
      { type: 'thinking', text: '', redacted: 'cmVk', origin: 'anthropic' },
      { type: 'text', text: 'So.' },
    ],
  },
  'Gemini: a thought, signed text and a signed call': {
    origin: 'gemini',
    blocks: [
      { type: 'thinking', text: 'Hm.' },
      { type: 'text', text: 'So.', citations: [], signature: 'dGV4dA==' },
      { ...CALL, signature: 'Y2FsbA==' },
    ],
    details: [
      { type: 'reasoning.text', text: 'Hm.' },
      { type: 'reasoning.encrypted', data: 'dGV4dA==' },
      { type: 'reasoning.encrypted', data: 'Y2FsbA==', id: 'call_1' },
    ],
    parts: [
      { type: 'thinking', text: 'Hm.', origin: 'gemini' },
      { type: 'text', text: 'So.', signature: 'dGV4dA==' },
    ],
    callSignature: 'Y2FsbA==',
  },
  'Gemini: a signature on an empty text part': {
    origin: 'gemini',
    blocks: [{ type: 'text', text: '', citations: [], signature: 'dGV4dA==' }, CALL],
    details: [{ type: 'reasoning.encrypted', data: 'dGV4dA==' }],
    parts: [{ type: 'text', text: '', signature: 'dGV4dA==' }],
  },
  'Responses: a summary with its sealed text, and one without a summary': {
    origin: 'openai-responses',
    blocks: [
      { type: 'thinking', text: 'Sum.', signature: 'gAAA1' },
      { type: 'thinking', text: '', signature: 'gAAA2' },
      { type: 'text', text: 'So.', citations: [] },
    ],
    details: [
      { type: 'reasoning.summary', summary: 'Sum.' },
      { type: 'reasoning.encrypted', data: 'gAAA1' },
      { type: 'reasoning.encrypted', data: 'gAAA2' },
    ],
    parts: [
      { type: 'thinking', text: 'Sum.', signature: 'gAAA1', origin: 'openai-responses' },
      { type: 'thinking', text: '', signature: 'gAAA2', origin: 'openai-responses' },
      { type: 'text', text: 'So.' },
    ],
  },
}

const FORMATS = {
  anthropic: 'anthropic-claude-v1',
  gemini: 'google-gemini-v1',
  'openai-responses': 'openai-responses-v1',
  'openai-chat': '',
  converse: '',
}

for (const [name, { origin, blocks, details, parts, callSignature }] of Object.entries(CASES)) {
  void t.test(name, (t) => {
    const fold = new Fold()
    for (const event of eventsOf(blocks)) fold.event(event)
    t.same(fold.reply()?.blocks, blocks, 'the events of the test have these blocks')
    const expected = details.map((detail, index) => {
      return { ...detail, format: FORMATS[origin], index }
    })
    const message = whole(origin, blocks)
    t.strictSame(message.reasoning_details, expected, 'whole, in order')
    const live = streamed(origin, blocks)
    t.strictSame(live.details, expected, 'a stream results in the same message')
    t.equal(live.reasoning_content, message.reasoning_content)
    t.same(live.extra_content, message.extra_content)
    t.same(
      objectOf(arrayOf(live.calls)[0]).extra_content ?? null,
      objectOf(arrayOf(message.tool_calls)[0]).extra_content ?? null,
    )

    const turn = history(message)
    t.match(turn, { role: 'assistant' })
    if (turn?.role === 'assistant') {
      t.strictSame(turn.parts, parts, 'a client that sends the message back')
      t.equal(turn.toolCalls[0]?.signature, callSignature)
    }
    t.end()
  })
}

void t.test('reasoning of an upstream of this format has no details of the gateway', (t) => {
  const message = whole('openai-chat', [{ type: 'thinking', text: 'Hm.' }])
  t.equal(message.reasoning_content, 'Hm.')
  t.notOk('reasoning_details' in message)
  t.end()
})

const THINKING_BLOCKS = [
  { type: 'thinking', thinking: 'B', signature: 'b' },
  { type: 'redacted_thinking', data: 'r' },
]

void t.test('details take precedence over blocks, and blocks over plain text', (t) => {
  const detail = { type: 'reasoning.text', text: 'D', signature: 'd', format: FORMATS.anthropic }
  const plain = { role: 'assistant', content: 'x', reasoning_content: 'P' }
  const blocks = { ...plain, thinking_blocks: THINKING_BLOCKS }
  const everything = { ...blocks, reasoning_details: [detail] }
  const text = { type: 'text', text: 'x' }
  const origin = 'anthropic'
  t.match(history(everything), {
    parts: [{ type: 'thinking', text: 'D', signature: 'd', origin }, text],
  })
  t.match(history(blocks), {
    parts: [
      { type: 'thinking', text: 'B', signature: 'b', origin },
      { type: 'thinking', text: '', redacted: 'r', origin },
      text,
    ],
  })
  const only = history(plain)
  t.match(only, { parts: [{ type: 'thinking', text: 'P', origin: 'openai-chat' }, text] })
  t.notMatch(only, { parts: [{ signature: /./ }] }, 'plain text is not signed thinking')
  t.end()
})

void t.test(
  "Google's own form, on a call and on the message, is decoded if the details have no signature",
  (t) => {
    const extra = (thought_signature: string): JsonObject => ({ google: { thought_signature } })
    const call = { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } }
    const message = {
      role: 'assistant',
      content: null,
      extra_content: extra('m'),
      tool_calls: [{ ...call, extra_content: extra('c') }],
    }
    const turn = { parts: [{ type: 'text', text: '', signature: 'm' }] }
    t.match(history(message), { ...turn, toolCalls: [{ signature: 'c' }] })
    const format = FORMATS.gemini
    const named = [{ type: 'reasoning.encrypted', data: 'd', id: 'call_1', format }]
    const both = history({ ...message, reasoning_details: named })
    t.match(both, { ...turn, toolCalls: [{ signature: 'd' }] })
    const several = ['one', 'two'].map((data) => ({ type: 'reasoning.encrypted', data, format }))
    t.match(history({ role: 'assistant', content: 'x', reasoning_details: several }), {
      parts: [
        { text: '', signature: 'one' },
        { text: 'x', signature: 'two' },
      ],
    })
    t.end()
  },
)

void t.test("an item's id beside its encrypted content becomes part of its state", (t) => {
  const format = FORMATS['openai-responses']
  const item = { type: 'reasoning.encrypted', data: 'gAAA', id: 'rs_1', format }
  t.match(history({ role: 'assistant', content: 'x', reasoning_details: [item] }), {
    parts: [{ type: 'thinking', signature: 'rs_1:gAAA', origin: 'openai-responses' }, {}],
  })
  t.end()
})

void t.test('an unknown form keeps its name for the report of losses', (t) => {
  const reasoning_details = [{ type: 'reasoning.encrypted', data: 'x', format: 'xai-responses-v1' }]
  t.match(history({ role: 'assistant', content: 'x', reasoning_details }), {
    parts: [{ type: 'thinking', redacted: 'x', origin: 'xai-responses-v1' }, {}],
  })
  const wrong: JsonObject[] = [
    { reasoning_details: 'x' },
    { reasoning_details: [7] },
    { thinking_blocks: {} },
    { reasoning_content: 7 },
  ]
  for (const members of wrong) {
    const messages = [
      { role: 'user', content: 'q' },
      { role: 'assistant', content: 'x', ...members },
    ]
    const error = refusalOf(() => decode(requestBody({ messages })))
    t.match(error.param, `messages[1].${Object.keys(members).join()}`)
  }
  t.end()
})

void t.test('models of OpenAI receive no members that they refuse, other models receive all', (t) => {
  const unknown: ModelFacts = { id: 'm', family: 'openai', createdAtSeconds: 0 }
  const mine: ModelFacts = { ...unknown, reasoning: true, endpoints: ['chat'] }
  const call = { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } }
  const bare = { role: 'assistant', content: 'x', tool_calls: [call] }
  const extra_content = { google: { thought_signature: 's' } }
  const full = {
    ...bare,
    tool_calls: [{ ...call, extra_content }],
    extra_content,
    reasoning_content: 'r',
    reasoning: 'r',
    reasoning_details: [],
    thinking_blocks: [],
  }
  const user = { role: 'user', content: 'q' }
  const losses = { drop: (): void => undefined }
  const edits = (message: JsonObject, facts: ModelFacts): unknown =>
    upstreamCodec.edits({ model: 'm', messages: [user, message] }, 'm', { model: facts, losses })
  t.same(edits(full, mine), [{ key: 'messages', json: JSON.stringify([user, bare]) }])
  t.same(edits(bare, mine), [], 'unchanged bytes are not serialised again')
  t.same(edits(full, unknown), [])
  t.end()
})
