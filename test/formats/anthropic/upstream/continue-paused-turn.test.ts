/**
 * Goal: after a pause, Anthropic receives its content back unchanged, whole or streamed.
 * Method: recorded pairs of a paused reply and the request that continued it, and hand-written replies.
 */
import t from 'tap'
import type { ChatEvent } from '../../../../src/formats/chat/event.js'
import { arrayOf, isObject, objectOf, type JsonObject, type JsonValue } from '../../../../src/base/json.js'
import { SseFramer } from '../../../../src/formats/wire/frames/sse-framer.js'
import { fixtures, skipWithoutFixtures } from '../../../helpers/fixtures.js'
import { upstreamCodec, request } from '../driver.js'

const { continuation } = upstreamCodec

function next(body: JsonObject, resume: JsonObject): JsonObject {
  if (continuation === null) throw new Error('Anthropic has lost its continuation')
  return continuation.next(body, resume)
}

/** The `resume` member of the paused reply's `finish`. */
function resumeOf(run: (sink: { event(event: ChatEvent): void }) => void): JsonObject {
  let resume: JsonObject | undefined
  run({
    event: (event) => {
      if (event.type === 'finish') resume = event.resume
    },
  })
  if (resume === undefined) throw new Error('no pause')
  return resume
}

function decoded(stream: boolean, body: string): JsonObject {
  return resumeOf((sink) => {
    if (!stream) return upstreamCodec.decodeReply(objectOf(JSON.parse(body)), request(), sink)
    const decoder = upstreamCodec.newDecoder(request(), sink, true)
    const framer = new SseFramer(decoder)
    framer.write(Buffer.from(body))
    framer.end()
    decoder.end()
  })
}

/** Removes nulls, empty lists and punctuation, in which the recorded requests differ from the replies. */
function bare(value: JsonValue | undefined): JsonValue {
  if (typeof value === 'string') return value.replace(/[^A-Za-z0-9]/g, '')
  if (Array.isArray(value)) return value.map(bare)
  if (!isObject(value)) return value ?? null
  const members = Object.entries(value).filter(
    ([, it]) => it !== null && it !== undefined && !(Array.isArray(it) && it.length === 0),
  )
  return Object.fromEntries(members.map(([key, it]) => [key, bare(it)]))
}

void t.test('recorded pauses are continued like in the recorded request', skipWithoutFixtures(), (t) => {
  const all = fixtures({ provider: 'anthropic', api: 'messages', status: 200 })
  const paused = all.filter(({ response_body }) => response_body.includes('"pause_turn"'))
  for (const { name, stream, request_body, response_body } of paused) {
    const after = all.find((it) => it.name === name.replace(/\.1$/, '.2'))
    if (after === undefined) continue
    const continued = next(objectOf(request_body), decoded(stream, response_body))
    const sent = objectOf(arrayOf(continued.messages).at(-1))
    const expected = objectOf(arrayOf(objectOf(after.request_body).messages).at(-1))
    t.equal(sent.role, 'assistant')
    const types = (message: JsonObject): unknown[] =>
      arrayOf(message.content).map((block) => objectOf(block).type)
    t.same(types(sent), types(expected), name)
    for (const [at, block] of arrayOf(sent.content).entries()) {
      t.match(bare(block), bare(arrayOf(expected.content)[at]), `${name}, block ${at}`)
    }
  }
  t.ok(paused.length > 0)
  t.end()
})

void t.test("only bodies with Anthropic's server tools can pause", (t) => {
  const may = (body: JsonObject): boolean => continuation?.mayPause(body) ?? false
  t.equal(may({}), false)
  t.equal(may({ tools: [{ name: 'f', input_schema: {} }] }), false)
  t.equal(may({ tools: [{ type: 'custom', name: 'f' }] }), false)
  t.equal(may({ tools: [{ name: 'f' }, { type: 'web_search_20250305', name: 'w' }] }), true)
  t.equal(may({ mcp_servers: [{ type: 'url' }] }), true)
  t.end()
})

void t.test("a stream's blocks are sent back like those of a whole message", (t) => {
  const citation = { type: 'web_search_result_location', url: 'u', encrypted_index: 'e' }
  const events: [number, JsonObject, JsonObject[]][] = [
    [
      0,
      { type: 'thinking', thinking: '', signature: '' },
      [
        { type: 'thinking_delta', thinking: 'Hm' },
        { type: 'thinking_delta', thinking: '.' },
        { type: 'signature_delta', signature: 'sig' },
      ],
    ],
    [1, { type: 'redacted_thinking', data: 'd' }, []],
    [2, { type: 'text', text: '' }, []],
    [
      3,
      { type: 'text', text: '' },
      [
        { type: 'citations_delta', citation },
        { type: 'text_delta', text: 'A' },
        { type: 'text_delta', text: 'B' },
      ],
    ],
    [
      4,
      { type: 'server_tool_use', id: 's', name: 'web_search', input: {} },
      [
        { type: 'input_json_delta', partial_json: '' },
        { type: 'input_json_delta', partial_json: '{"q":' },
        { type: 'input_json_delta', partial_json: '"x"}' },
      ],
    ],
    [5, { type: 'web_search_tool_result', tool_use_id: 's', content: [] }, []],
  ]
  const frames: JsonObject[] = [{ type: 'message_start', message: { id: 'm' } }]
  for (const [index, content_block, deltas] of events) {
    frames.push({ type: 'content_block_start', index, content_block })
    for (const delta of deltas) frames.push({ type: 'content_block_delta', index, delta })
    frames.push({ type: 'content_block_stop', index })
  }
  const delta = { stop_reason: 'pause_turn', container: { id: 'c', expires_at: 'later' } }
  frames.push({ type: 'message_delta', delta }, { type: 'message_stop' })
  const text = frames.map((it) => `data: ${JSON.stringify(it)}\n\n`).join('')
  const body = { messages: [{ role: 'user', content: 'Hi' }], max_tokens: 9 }
  t.same(next(body, decoded(true, text)), {
    messages: [
      { role: 'user', content: 'Hi' },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'Hm.', signature: 'sig' },
          { type: 'redacted_thinking', data: 'd' },
          { type: 'text', text: 'AB', citations: [citation] },
          { type: 'server_tool_use', id: 's', name: 'web_search', input: { q: 'x' } },
          { type: 'web_search_tool_result', tool_use_id: 's', content: [] },
        ],
      },
    ],
    max_tokens: 9,
    container: 'c',
  })
  t.same(body, { messages: [{ role: 'user', content: 'Hi' }], max_tokens: 9 }, 'untouched')
  t.end()
})
