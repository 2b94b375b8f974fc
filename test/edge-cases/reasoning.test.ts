/**
 * Goal: known bugs of other gateways in reasoning state do not occur here; each test is one edge case of
 * `docs/reference/test-cases/edge-cases.md`, by its number.
 * Method: a provider's frames to the client, and the client's history back to the provider, through the
 * codecs.
 */
import t from 'tap'
import type { ChatEvent } from '../../src/formats/chat/event.js'
import { Fold } from '../../src/formats/chat/fold.js'
import { Grammar } from '../../src/formats/chat/grammar.js'
import { arrayOf, objectOf, type JsonObject } from '../../src/base/json.js'
import { chatRequest, history, sent, streamed, tool, upstream, whole } from './drive-codecs.js'
import { candidate } from './provider-frames.js'

const TOOLS = [tool('f', { type: 'object', properties: { n: { type: 'integer' } } })]
const CALL = { id: 'toolu_1', name: 'f', json: '{"n":1}' }

/** The events of a stream of Gemini. */
function eventsOf(frames: readonly JsonObject[]): ChatEvent[] {
  const events: ChatEvent[] = []
  const decoder = upstream('gemini').newDecoder(chatRequest(), {
    event: (it) => void events.push(it),
  })
  for (const frame of frames) decoder.frame('', JSON.stringify(frame))
  decoder.end()
  return events
}

void t.test("33: Gemini's signature was lost in a stream, and the next turn refused", (t) => {
  // https://github.com/BerriAI/litellm/issues/16893; https://github.com/theopenco/llmgateway/issues/1267; https://github.com/simonw/llm-gemini/issues/119
  const call = { functionCall: { name: 'f', args: { n: 1 } }, thoughtSignature: 'c2ln' }
  const frames = [candidate([call]), candidate([{ text: '' }], 'STOP')]
  const { chunks, calls } = streamed('gemini', frames)
  const extra = { google: { thought_signature: 'c2ln' } }
  t.match(JSON.stringify(chunks), JSON.stringify({ extra_content: extra }).slice(1, -1))
  const [sentCall] = calls
  if (sentCall === undefined) throw new Error('no call')
  // The history of a client that sends all received members back.
  const messages = history([sentCall]).map((message) =>
    message['role'] === 'assistant'
      ? {
          ...message,
          tool_calls: arrayOf(message['tool_calls']).map((it) => ({
            ...objectOf(it),
            extra_content: extra,
          })),
        }
      : message,
  )
  const { body } = sent('gemini', { messages, tools: TOOLS })
  t.match(JSON.stringify(body), '"thoughtSignature":"c2ln"')
  t.end()
})

void t.test('34: a signature on a thought, on text or on an empty part was ignored', (t) => {
  // https://github.com/BerriAI/litellm/issues/25322
  const parts: [parts: JsonObject[], block: 'text' | 'thinking'][] = [
    [[{ text: 'Hm.', thought: true, thoughtSignature: 'c2ln' }, { text: 'Hi' }], 'thinking'],
    [[{ text: 'Hi', thoughtSignature: 'c2ln' }], 'text'],
    [[{ text: 'Hi' }, { text: '', thoughtSignature: 'c2ln' }], 'text'],
    [[{ text: '', thoughtSignature: 'c2ln' }], 'text'],
  ]
  for (const [given, where] of parts) {
    const cut = [...given.map((part) => candidate([part])), candidate([], 'STOP')]
    for (const frames of [cut, [candidate(given, 'STOP')]]) {
      const fold = new Fold()
      const grammar = new Grammar(fold)
      for (const event of eventsOf(frames)) grammar.event(event)
      const signed = fold.reply()?.blocks.find((it) => 'signature' in it && it.signature === 'c2ln')
      t.equal(signed?.type, where, JSON.stringify(given))
    }
  }
  t.end()
})

void t.test("35: a signature in the call's id broke the next provider's limit on ids", (t) => {
  // https://github.com/BerriAI/litellm/issues/16895, /17343; https://github.com/dyad-sh/dyad/issues/4304; https://github.com/vercel/ai/issues/5171
  const signature = 'c2ln'.repeat(100)
  const call = { functionCall: { id: 'x'.repeat(90), name: 'f' }, thoughtSignature: signature }
  for (const received of [
    streamed('gemini', [candidate([call], 'STOP')]),
    whole('gemini', candidate([call], 'STOP')),
  ]) {
    t.match(received.calls[0]?.id, /^[A-Za-z0-9_-]{1,40}$/)
  }
  const long = [`toolu_${'a'.repeat(60)}1`, `toolu_${'a'.repeat(60)}2`]
  const messages = history(long.map((id) => ({ ...CALL, id })))
  const { body } = sent('openai-chat', { messages, tools: TOOLS })
  const [, assistantTurn, ...results] = arrayOf(body['messages']).map(objectOf)
  const ids = arrayOf(assistantTurn?.['tool_calls']).map((it) => objectOf(it)['id'])
  t.equal(new Set(ids).size, 2, 'two calls stay two')
  for (const id of ids) t.match(id, /^[A-Za-z0-9_-]{1,40}$/)
  t.same(
    results.map((it) => it['tool_call_id']),
    ids,
    'and the results have the same ids',
  )
  t.same(sent('openai-chat', { messages, tools: TOOLS }).body, body, 'the same each time')
  const items = arrayOf(sent('openai-responses', { messages }).body['input']).map(objectOf)
  const [one, two, ...outputs] = items.slice(1).map((item) => item['call_id'])
  t.match(one, /^[A-Za-z0-9_-]{1,64}$/)
  t.not(one, two)
  t.same(outputs, [one, two], 'with another limit in Responses')
  t.end()
})

const USED = { type: 'tool_use', id: 'toolu_1', name: 'f', input: { n: 1 } }

/** The assistant messages for Claude after a client has sent its reply back, and the losses. */
function replayed(
  content: JsonObject[],
  keeps: (message: JsonObject) => JsonObject = (message) => message,
): { turns: unknown[]; thinking: unknown; lost: string[] } {
  const reply = { id: 'msg_1', model: 'm', stop_reason: 'tool_use', usage: {}, content }
  const { message } = whole('anthropic', reply, { tools: TOOLS })
  const result = { role: 'tool', tool_call_id: 'toolu_1', content: 'ok' }
  const messages = [{ role: 'user', content: 'Hello' }, keeps(message), result]
  const { body, lost } = sent('anthropic', { messages, tools: TOOLS, reasoning_effort: 'low' })
  const turns = arrayOf(body['messages']).filter((it) => objectOf(it)['role'] === 'assistant')
  return { turns, thinking: body['thinking'], lost }
}

void t.test('36: thinking before a call was dropped: “Expected thinking, but found tool_use”', (t) => {
  // https://github.com/openai/openai-agents-python/issues/1704; https://github.com/pydantic/pydantic-ai/issues/2075
  const thinking = { type: 'thinking', thinking: 'Hm.', signature: 'c2ln' }
  const kept = replayed([thinking, USED])
  t.same(kept.turns, [{ role: 'assistant', content: [thinking, USED] }])
  t.match(kept.thinking, { type: 'enabled' })
  t.same(kept.lost, [])
  const lost = replayed([thinking, USED], ({ role, content, tool_calls }) => {
    return { role: role ?? '', content: content ?? null, tool_calls: tool_calls ?? [] }
  })
  t.same(lost.turns, [{ role: 'assistant', content: [USED] }])
  t.same(lost.thinking, { type: 'disabled' }, 'a turn without it must not ask for more')
  t.same(lost.lost, ['reasoning_effort'])
  t.end()
})

void t.test('37: thinking with a signature and no text, or redacted, was dropped', (t) => {
  // https://github.com/openai/openai-agents-python/issues/4155; https://github.com/maximhq/bifrost/issues/4970
  const content = [
    { type: 'thinking', thinking: '', signature: 'c2ln+/==' },
    { type: 'redacted_thinking', data: 'cmVk+/==' },
    USED,
  ]
  t.same(replayed(content).turns, [{ role: 'assistant', content }], 'to the letter')
  t.end()
})

void t.test("38: an assistant's turn became two messages, and thinking no longer led", (t) => {
  // https://github.com/CopilotKit/CopilotKit/issues/2191
  const content = [
    { type: 'thinking', thinking: 'Hm.', signature: 'c2ln' },
    { type: 'text', text: 'I will look.' },
    USED,
    { ...USED, id: 'toolu_2' },
  ]
  const another = { role: 'tool', tool_call_id: 'toolu_2', content: 'ok' }
  const reply = { id: 'msg_1', model: 'm', stop_reason: 'tool_use', usage: {}, content }
  const { message } = whole('anthropic', reply, { tools: TOOLS })
  const result = { role: 'tool', tool_call_id: 'toolu_1', content: 'ok' }
  const messages = [{ role: 'user', content: 'Hello' }, message, result, another]
  const { body } = sent('anthropic', { messages, tools: TOOLS })
  t.match(body['messages'], [{ role: 'user' }, { role: 'assistant', content }, { role: 'user' }])
  t.equal(arrayOf(body['messages']).length, 3)
  t.end()
})

void t.test('39: reasoning_content that the upstream requires was dropped', (t) => {
  // https://github.com/QuantumNous/new-api/issues/4795, /4577
  const messages = history([CALL], { reasoning_content: 'Hm.' })
  const { body } = sent('openai-chat', { messages, tools: TOOLS }, 'deepseek-reasoner')
  t.match(body['messages'], [{}, { role: 'assistant', reasoning_content: 'Hm.' }, {}])
  const { body: claude } = sent('anthropic', { messages, tools: TOOLS })
  t.notMatch(JSON.stringify(claude), 'Hm.', 'unsigned, it is not sent to another vendor')
  t.end()
})
