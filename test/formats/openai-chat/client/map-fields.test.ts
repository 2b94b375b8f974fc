/**
 * Goal: each field of a request becomes its canonical member.
 * Method: hand-written bodies with the expected canonical requests.
 */
import t from 'tap'
import type { JsonObject } from '../../../../src/base/json.js'
import { decode, clientCodec, expectObject, refusalOf, request } from '../driver.js'

const long = (length: number): string => 'x'.repeat(length)

void t.test('each field is decoded to its canonical member', (t) => {
  const decoded = request({
    stream: true,
    stream_options: { include_usage: true },
    temperature: 0.5,
    top_p: 0.9,
    max_tokens: 10,
    max_completion_tokens: 20,
    stop: 'END',
    n: 2,
    seed: 7,
    frequency_penalty: 1,
    presence_penalty: -1,
    logprobs: true,
    top_logprobs: 3,
    parallel_tool_calls: false,
    reasoning_effort: 'low',
    verbosity: 'high',
    user: 'u',
    safety_identifier: 's',
    service_tier: 'flex',
    logit_bias: { '1': 1 },
    provider: { order: ['a'] },
    unheard_of: 1,
    metadata: null,
  })
  t.match(decoded, {
    model: 'gpt-test',
    stream: true,
    includeUsage: true,
    temperature: 0.5,
    topP: 0.9,
    maxOutputTokens: 20,
    stop: ['END'],
    candidates: 2,
    seed: 7,
    frequencyPenalty: 1,
    presencePenalty: -1,
    logprobs: true,
    topLogprobs: 3,
    parallelToolCalls: false,
    reasoningEffort: 'low',
    verbosity: 'high',
    userId: 's',
    serviceTier: 'flex',
  })
  t.same(decoded.rest, { logit_bias: { '1': 1 }, provider: { order: ['a'] }, unheard_of: 1 })
  t.equal(request({ stream_options: { include_usage: true } }).includeUsage, false)
  t.end()
})

void t.test('the last of max_tokens and max_completion_tokens wins in either order', (t) => {
  t.equal(request({ max_completion_tokens: 5, max_tokens: 9 }).maxOutputTokens, 5)
  t.equal(request({ max_tokens: 9, max_completion_tokens: 5 }).maxOutputTokens, 5)
  t.equal(request({ safety_identifier: 's', user: 'u' }).userId, 's')
  t.end()
})

void t.test('the effort of a reasoning object is decoded; its other members are kept', (t) => {
  const read = (members: JsonObject): unknown[] => {
    const { reasoningEffort, rest } = request(members)
    return [reasoningEffort, rest]
  }
  t.same(read({ reasoning: { effort: 'high' } }), ['high', {}])
  t.same(read({ reasoning: { effort: 'high' }, reasoning_effort: 'low' }), ['low', {}])
  t.same(read({ reasoning_effort: 'low', reasoning: { effort: 'high' } }), ['low', {}])
  t.same(read({ reasoning: {} }), [undefined, {}])
  for (const reasoning of [
    { effort: 'high', exclude: true },
    { max_tokens: 2000 },
    { effort: 'default' },
    'high',
  ]) {
    t.same(read({ reasoning })[1], { reasoning })
  }
  t.end()
})

void t.test('a key that would set the prototype is refused', (t) => {
  const body = expectObject(JSON.parse('{"__proto__":{"x":1},"model":"m"}'))
  body['messages'] = [{ role: 'user', content: 'x' }]
  const { param, message } = refusalOf(() => decode(body))
  t.equal(param, '__proto__')
  t.equal(message, '__proto__ is not the name of a field')
  t.end()
})

void t.test('peek validates model and stream by the same rules', (t) => {
  const at = { operation: 'chat' } as const
  t.same(clientCodec.peek({ model: 'm' }, at), { model: 'm', stream: false })
  t.same(clientCodec.peek({ model: 'm', stream: true }, at), { model: 'm', stream: true })
  t.same(clientCodec.peek({ model: 'm', stream: null }, at), { model: 'm', stream: false })
  for (const stream of ['true', 1, {}, []]) {
    t.equal(refusalOf(() => clientCodec.peek({ model: 'm', stream }, at)).param, 'stream')
  }
  for (const model of [undefined, null, '', 5, long(257)]) {
    t.equal(refusalOf(() => clientCodec.peek({ model }, at)).param, 'model')
  }
  t.end()
})
