/**
 * Goal: known bugs of other gateways in tool calls do not occur here; each test is one edge case of
 * `docs/reference/test-cases/edge-cases.md`, by its number.
 * Method: a provider's frames, or a client's body, through the codecs.
 */
import t from 'tap'
import { arrayOf, objectOf, type JsonObject } from '../../src/base/json.js'
import { chatRequest, factsOf, history, sent, streamed, tool, upstream, whole } from './drive-codecs.js'
import {
  block,
  callItem,
  candidate,
  chunk,
  created,
  fragment,
  messageEnd,
  messageStart,
  responseEnd,
  textBlock,
  toolBlock,
} from './provider-frames.js'

void t.test('1: a tool without arguments came out as no JSON at all', (t) => {
  // https://github.com/BerriAI/litellm/issues/5063, /5064, /5091; https://github.com/langchain-ai/langchain/issues/23911
  const frames = [
    messageStart(),
    ...toolBlock(0, ['toolu_1', 'now'], { fragments: [''] }),
    ...messageEnd('tool_use'),
  ]
  const received = streamed('anthropic', frames)
  t.same(received.calls, [{ id: 'toolu_1', name: 'now', json: '{}' }])
  t.equal(received.bytes.split('"arguments":"{}"').length, 2, 'once')
  t.end()
})

void t.test("2: the empty input of the block's start came before the fragments", (t) => {
  // https://github.com/BerriAI/litellm/issues/4537
  const fragments = ['', '{"a":', '1}']
  const call = toolBlock(0, ['toolu_1', 'add'], { fragments })
  const received = streamed('anthropic', [messageStart(), ...call, ...messageEnd('tool_use')])
  t.same(received.calls, [{ id: 'toolu_1', name: 'add', json: '{"a":1}' }])
  const early = block(0, { type: 'tool_use', id: 'toolu_2', name: 'add', input: { a: 2 } })
  const given = streamed('anthropic', [messageStart(), ...early, ...messageEnd('tool_use')])
  t.equal(given.calls[0]?.json, '{"a":2}', 'and it is used if no fragment follows')
  t.end()
})

void t.test('3: an empty string for arguments in the history went upstream', (t) => {
  // https://github.com/BerriAI/litellm/issues/5064
  const messages = history([{ id: 'call_1', name: 'now', json: '' }])
  const claude = JSON.stringify(sent('anthropic', { messages, tools: [tool('now')] }).body)
  t.match(claude, '"name":"now","input":{}')
  const gemini = JSON.stringify(sent('gemini', { messages, tools: [tool('now')] }).body)
  t.match(gemini, '"name":"now","args":{}')
  t.end()
})

void t.test("4: an empty delta of Responses' arguments killed the stream", (t) => {
  // https://github.com/BerriAI/litellm/issues/39288
  const call = callItem(0, ['call_1', 'add'], ['', '{"a":', '', '1}'])
  const received = streamed('openai-responses', [created(), ...call, responseEnd('completed', {})])
  t.same(received.calls, [{ id: 'call_1', name: 'add', json: '{"a":1}' }])
  t.equal(received.finishes.at(-1), 'tool_calls')
  t.end()
})

void t.test("5: Gemini's calls, which arrive whole, lost their arguments in a stream", (t) => {
  // https://github.com/BerriAI/litellm/issues/25390, /25836
  const call = { functionCall: { name: 'tide', args: { at: 'Ness' } } }
  const received = streamed('gemini', [candidate([call]), candidate([{ text: '' }], 'STOP')])
  t.equal(received.calls[0]?.json, '{"at":"Ness"}')
  t.match(received.bytes, '"function":{"arguments":"{\\"at\\":\\"Ness\\"}"}', 'in its own fragment')
  t.end()
})

void t.test('6: parallel calls of Gemini in several chunks all had index 0', (t) => {
  // https://github.com/BerriAI/litellm/issues/16194; https://github.com/su-kaka/gcli2api/issues/406
  const one = candidate([{ functionCall: { name: 'a', args: { n: 1 } } }])
  const two = candidate([
    { functionCall: { name: 'b', args: { n: 2 } } },
    { functionCall: { name: 'a', args: { n: 3 } } },
  ])
  const received = streamed('gemini', [one, two, candidate([{ text: '' }], 'STOP')])
  t.same(
    received.calls.map(({ name, json }) => [name, json]),
    [
      ['a', '{"n":1}'],
      ['b', '{"n":2}'],
      ['a', '{"n":3}'],
    ],
  )
  t.end()
})

void t.test('7: two calls of one tool had one id, made from its name', (t) => {
  // https://github.com/brainlid/langchain/issues/620
  const same = { functionCall: { name: 'a', args: {} } }
  const ids = (received: { calls: { id: string }[] }): Set<string> =>
    new Set(received.calls.map(({ id }) => id))
  const parts = [
    same,
    same,
    { functionCall: { id: 'x', name: 'a' } },
    { functionCall: { id: 'x', name: 'a' } },
  ]
  t.equal(ids(streamed('gemini', [candidate(parts, 'STOP')])).size, 4)
  t.equal(ids(whole('gemini', candidate(parts, 'STOP'))).size, 4)
  const twice = [0, 1].map((index) => fragment(index, '{}', { id: 'call_1', name: 'a' }))
  t.equal(ids(streamed('openai-chat', [...twice, chunk({}, 'tool_calls'), '[DONE]'])).size, 2)
  t.end()
})

void t.test('8: the index moved on while the fragments of one call went on', (t) => {
  // https://github.com/Portkey-AI/gateway/issues/1537
  const received = streamed('openai-chat', [
    fragment(0, '', { id: 'call_1', name: 'a' }),
    fragment(1, '{"n":'),
    fragment(2, '1}'),
    fragment(3, '', { id: 'call_2', name: 'b' }),
    fragment(4, '{}'),
    chunk({}, 'tool_calls'),
    '[DONE]',
  ])
  t.same(received.calls, [
    { id: 'call_1', name: 'a', json: '{"n":1}' },
    { id: 'call_2', name: 'b', json: '{}' },
  ])
  t.end()
})

void t.test("10: Gemini's STOP beside a call became `stop`", (t) => {
  // https://github.com/Portkey-AI/gateway/issues/1534; https://github.com/brekkylab/ailoy/issues/334
  const reply = candidate([{ functionCall: { name: 'a', args: {} } }], 'STOP')
  t.same(whole('gemini', reply).finishes, ['tool_calls'])
  t.equal(streamed('gemini', [reply]).finishes.at(-1), 'tool_calls')
  t.end()
})

void t.test('11: a finish in a later chunk than the call lost the call', (t) => {
  // https://github.com/envoyproxy/ai-gateway/issues/2399
  const call = candidate([{ functionCall: { name: 'a', args: {} } }])
  const last = candidate([{ text: '' }], 'STOP')
  t.equal(streamed('gemini', [call, last]).finishes.at(-1), 'tool_calls')
  const empty = { candidates: [{ finishReason: 'STOP' }] }
  t.equal(streamed('gemini', [call, empty]).finishes.at(-1), 'tool_calls')
  t.end()
})

void t.test('12: the chunks of the calls had a finish_reason', (t) => {
  // https://github.com/BerriAI/litellm/issues/31634
  const streams = [
    streamed('gemini', [
      candidate([{ functionCall: { name: 'a', args: {} } }], 'STOP'),
      candidate([{ functionCall: { name: 'b', args: {} } }], 'STOP'),
    ]),
    streamed('openai-chat', [
      { ...fragment(0, '{}', { id: 'c', name: 'a' }) },
      chunk({ tool_calls: [{ index: 1, id: 'd', function: { name: 'b', arguments: '{}' } }] }, 'tool_calls'),
      '[DONE]',
    ]),
    streamed('anthropic', [
      messageStart(),
      ...toolBlock(0, ['toolu_1', 'a'], { fragments: ['{}'] }),
      ...messageEnd('tool_use'),
    ]),
  ]
  for (const { finishes, chunks } of streams) {
    t.equal(finishes.filter((it) => it !== null).length, 1)
    t.equal(finishes.at(-1), 'tool_calls')
    const last = chunks.find((it) => objectOf(arrayOf(it['choices'])[0])['finish_reason'] !== null)
    t.same(objectOf(objectOf(arrayOf(last?.['choices'])[0])['delta']), {}, 'alone in its chunk')
  }
  t.end()
})

void t.test('50: tool names of more than 64 characters broke the request', (t) => {
  // https://github.com/BerriAI/litellm/issues/17904
  const long = 'mcp__a_server_with_a_long_name__'.repeat(3)
  // They are shortened for the upstream and restored in the reply.
  const upstreamCodec = upstream('openai-chat')
  const request = chatRequest({ tools: [tool(`${long}one`), tool(`${long}two`)] })
  const body = upstreamCodec.encodeRequest(request, factsOf('gpt-4o'), { drop: () => undefined })
  const names = arrayOf(body['tools']).map((it) => objectOf(objectOf(it)['function'])['name'])
  for (const name of names) t.match(name, /^[A-Za-z0-9_-]{1,64}$/)
  t.equal(new Set(names).size, 2)
  const collected: string[] = []
  const decoder = upstreamCodec.newDecoder(request, {
    event: (event) => {
      if (event.type === 'tool-start') collected.push(event.name)
    },
  })
  decoder.frame('', JSON.stringify(fragment(0, '{}', { id: 'c', name: names[1] })))
  decoder.end()
  t.same(collected, [`${long}two`])
  t.end()
})

void t.test('51: the order of the tools changed from turn to turn', (t) => {
  // https://github.com/maximhq/bifrost/issues/2347
  const names = ['zeta', 'alpha', 'm10', 'm9', 'beta']
  const tools = names.map((name) => tool(name, { type: 'object', properties: { z: {}, a: {} } }))
  for (const dialect of ['openai-chat', 'anthropic', 'gemini'] as const) {
    const { body } = sent(dialect, { tools })
    const text = JSON.stringify(body)
    const places = names.map((name) => text.indexOf(`"name":"${name}"`))
    t.same(
      places,
      [...places].sort((a, b) => a - b),
      dialect,
    )
    t.ok(places.every((place) => place > 0))
    t.notOk(/"a":\{[^}]*\},"z"/.test(text), 'nor that of the properties')
    t.equal(JSON.stringify(sent(dialect, { tools }).body), text, 'and it is the same each time')
  }
  t.end()
})

void t.test('68: integers beyond 2^53 in arguments lost their last digits', (t) => {
  // JavaScript parses every number as a double; the arguments are passed as text instead.
  const json = '{"id":12345678901234567890}'
  const fragments = [json.slice(0, 9), json.slice(9)]
  const call = toolBlock(1, ['toolu_1', 'find'], { fragments })
  const claude = [messageStart(), ...textBlock(0, 'ok'), ...call, ...messageEnd('tool_use')]
  t.equal(streamed('anthropic', claude).calls[0]?.json, json, 'fragments pass unchanged')
  const openai = [
    fragment(0, fragments[0] ?? '', { id: 'c', name: 'find' }),
    fragment(0, fragments[1] ?? ''),
    chunk({}, 'tool_calls'),
    '[DONE]',
  ]
  t.equal(streamed('openai-chat', openai).calls[0]?.json, json)
  const message = {
    role: 'assistant',
    tool_calls: [{ id: 'c', type: 'function', function: { name: 'find', arguments: json } }],
  }
  const reply = {
    id: 'x',
    model: 'y',
    choices: [{ index: 0, message, finish_reason: 'tool_calls' }],
  }
  t.equal(whole('openai-chat', reply).calls[0]?.json, json)
  const messages = history([{ id: 'c', name: 'find', json }])
  t.match(JSON.stringify(sent('openai-chat', { messages }).body), JSON.stringify(json))
  t.end()
})

void t.test('69: −0, duplicate keys and `__proto__` in arguments caused errors', (t) => {
  // Text that JSON.parse and JSON.stringify would change, or that would pollute a prototype.
  const json = '{"n":-0,"a":1,"a":2,"__proto__":{"polluted":true}}'
  const received = streamed('openai-chat', [
    fragment(0, json, { id: 'c', name: 'f' }),
    chunk({}, 'tool_calls'),
    '[DONE]',
  ])
  t.equal(received.calls[0]?.json, json, 'not parsed at all between chat and chat')
  const messages = history([{ id: 'c', name: 'f', json }])
  t.match(JSON.stringify(sent('openai-chat', { messages }).body), JSON.stringify(json))
  for (const dialect of ['anthropic', 'gemini'] as const) {
    t.match(JSON.stringify(sent(dialect, { messages }).body), '"__proto__":{"polluted":true}')
  }
  const args: unknown = JSON.parse('{"__proto__":{"polluted":true}}')
  const call = { functionCall: { name: 'f', args: objectOf(args) } } satisfies JsonObject
  t.equal(whole('gemini', candidate([call], 'STOP')).calls[0]?.json, '{"__proto__":{"polluted":true}}')
  t.equal(objectOf({})['polluted'], undefined, 'and nothing is polluted')
  t.end()
})
