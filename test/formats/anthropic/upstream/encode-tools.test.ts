/**
 * Goal: tools and the tool choice keep their meaning, for models that accept a forced choice and for others.
 * Method: each form of tool and choice, compared with the members of the body.
 */
import t from 'tap'
import { arrayOf, objectOf } from '../../../../src/base/json.js'
import type { ModelFacts } from '../../../../src/formats/chat/model-facts.js'
import type { ChatRequest, Tool, ToolChoice } from '../../../../src/formats/chat/request.js'
import { GatewayError } from '../../../../src/errors.js'
import { assistant, encode, OLDER, result, stringOrEmpty, user } from '../driver.js'

const A: Tool = {
  name: 'a',
  description: 'Does a.',
  parameters: { type: 'object', properties: {} },
}
const B: Tool = { name: 'b' }

function chosen(choice: ToolChoice, model: Partial<ModelFacts>, over: Partial<ChatRequest> = {}): unknown[] {
  const { body, lost } = encode({ tools: [A, B], toolChoice: choice, ...over }, model)
  const names = Array.isArray(body.tools) ? body.tools.map((tool) => stringOrEmpty(objectOf(tool).name)) : []
  return [body.tool_choice, names.join(''), lost.length]
}

void t.test('tools keep their order and always have an object schema', (t) => {
  const { body } = encode({
    tools: [
      A,
      { name: 'b', description: '', cache: { ttl: '5m' } },
      { name: 'c', parameters: {} },
      { name: 'd', parameters: { properties: { x: {} } } },
    ],
  })
  t.same(body.tools, [
    { name: 'a', description: 'Does a.', input_schema: { type: 'object', properties: {} } },
    {
      name: 'b',
      input_schema: { type: 'object', properties: {} },
      cache_control: { type: 'ephemeral' },
    },
    { name: 'c', input_schema: { type: 'object', properties: {} } },
    { name: 'd', input_schema: { properties: { x: {} }, type: 'object' } },
  ])
  t.equal(body.tool_choice, undefined)
  t.end()
})

void t.test('every choice for a model that accepts a forced choice', (t) => {
  t.same(chosen({ mode: 'auto' }, OLDER), [undefined, 'ab', 0])
  t.same(chosen({ mode: 'none' }, OLDER), [{ type: 'none' }, 'ab', 0])
  t.same(chosen({ mode: 'required' }, OLDER), [{ type: 'any' }, 'ab', 0])
  t.same(chosen({ mode: 'named', name: 'b' }, OLDER), [{ type: 'tool', name: 'b' }, 'ab', 0])
  t.same(chosen({ mode: 'allowed', required: false, names: ['b', 'a'] }, OLDER), [undefined, 'ab', 0])
  t.same(chosen({ mode: 'allowed', required: true, names: ['b'] }, OLDER), [{ type: 'any' }, 'b', 0])
  t.end()
})

void t.test('a choice without allowed tools sends no tools', (t) => {
  t.same(chosen({ mode: 'allowed', required: true, names: [] }, OLDER), [undefined, '', 0])
  t.end()
})

void t.test('a forced choice that the model rejects is relaxed and reported', (t) => {
  t.same(chosen({ mode: 'required' }, {}), [undefined, 'ab', 1])
  t.same(chosen({ mode: 'named', name: 'b' }, {}), [undefined, 'b', 1])
  t.same(chosen({ mode: 'allowed', required: true, names: ['a'] }, {}), [undefined, 'a', 1])
  const forced = chosen({ mode: 'required' }, OLDER, { reasoningEffort: 'high' })
  t.same(forced, [{ type: 'any' }, 'ab', 1], 'thinking with a budget is disabled for the call')
  const adaptive = { ...OLDER, thinkingTypes: ['adaptive'] }
  t.same(chosen({ mode: 'required' }, adaptive, { reasoningEffort: 'high' }), [{ type: 'any' }, 'ab', 0])
  t.end()
})

void t.test('parallel_tool_calls: false allows one call', (t) => {
  const single = { parallelToolCalls: false }
  const flag = { disable_parallel_tool_use: true }
  t.same(chosen({ mode: 'auto' }, OLDER, single)[0], { type: 'auto', ...flag })
  t.same(chosen({ mode: 'required' }, OLDER, single)[0], { type: 'any', ...flag })
  t.same(chosen({ mode: 'none' }, OLDER, single)[0], { type: 'none' })
  t.equal(encode({ parallelToolCalls: false }).body.tool_choice, undefined)
  t.equal(chosen({ mode: 'auto' }, OLDER, { parallelToolCalls: true })[0], undefined)
  t.end()
})

void t.test('a strict tool stays strict if its schema allows it', (t) => {
  const closed = {
    type: 'object',
    properties: { n: { type: 'integer' } },
    required: ['n'],
  }
  const bounded = { ...closed, properties: { n: { type: 'integer', minimum: 0 } } }
  const strict = (parameters: Tool['parameters'], model: Partial<ModelFacts> = {}): unknown[] => {
    const tool: Tool =
      parameters === undefined ? { name: 's', strict: true } : { name: 's', strict: true, parameters }
    const { body, lost } = encode({ tools: [tool] }, model)
    return [objectOf(arrayOf(body.tools)[0]).strict, lost]
  }
  const dropped = ['tools.strict: approximated']
  t.same(strict(closed), [true, []])
  t.same(strict(bounded), [true, ['tools.parameters: approximated']], 'a bound is only described')
  t.same(strict(undefined), [true, []])
  t.same(strict({ type: 'object', additionalProperties: { type: 'string' } }), [undefined, dropped])
  t.same(strict(closed, { structuredOutput: false }), [undefined, dropped])
  t.end()
})

void t.test('a custom tool is a function with one string; a grammar is refused', (t) => {
  const input_schema = {
    type: 'object',
    properties: { input: { type: 'string' } },
    required: ['input'],
    additionalProperties: false,
  }
  const shell: Tool = { name: 'shell', custom: {} }
  t.same(encode({ tools: [shell] }).body.tools, [{ name: 'shell', input_schema }])
  t.same(encode({ tools: [{ name: 'shell', custom: { format: { type: 'text' } } }] }).lost, [])
  const grammar: Tool = { name: 'g', custom: { format: { type: 'grammar', syntax: 'lark' } } }
  t.throws(() => encode({ tools: [shell, grammar] }), {
    name: 'GatewayError',
    wire: { kind: 'untranslatable', param: 'tools[1].custom.format' },
  })
  t.throws(() => encode({ tools: [grammar] }), GatewayError)
  t.end()
})

void t.test('calls in the history get definitions, in the order of their first use', (t) => {
  const messages = [
    user(0, 'q'),
    assistant(1, '', 'c1:zeta:{}', 'c2:alpha:{}'),
    result(2, 'c1', 'r'),
    result(3, 'c2', 'r'),
    assistant(4, '', 'c3:zeta:{}'),
    result(5, 'c3', 'r'),
  ]
  const { body } = encode({ messages })
  t.same(body.tools, [
    { name: 'zeta', input_schema: { type: 'object' } },
    { name: 'alpha', input_schema: { type: 'object' } },
  ])
  t.same(body.tool_choice, { type: 'none' })
  t.end()
})
