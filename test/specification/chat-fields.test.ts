/**
 * Goal: a request that breaks a rule of `POST /v1/chat/completions` gets a 400 that names the field, and
 * every allowed value passes.
 * Method: a table of requests to a running gateway over all three provider families.
 */
import t from 'tap'
import { stringOf, type JsonValue } from '../../src/base/json.js'
import { startGateway } from '../helpers/gateway.js'
import { ask, body, FAMILIES } from './exchange.js'

const USER = { role: 'user', content: 'Hi' }
const CALL = { id: 'c1', type: 'function', function: { name: 'f', arguments: '{}' } }
const TOOL = { type: 'function', function: { name: 'f', parameters: { type: 'object' } } }
const withMessages = (...messages: JsonValue[]) => ({ messages })

/** The members of a request, and the path that the error must name. */
type Row = [members: Record<string, JsonValue | undefined>, param: string]

const BROKEN: Readonly<Record<string, readonly Row[]>> = {
  model: [
    [{ model: undefined }, 'model'],
    [{ model: null }, 'model'],
    [{ model: '' }, 'model'],
    [{ model: 7 }, 'model'],
    [{ model: ['gpt-4o'] }, 'model'],
    [{ model: `gpt-${'x'.repeat(1_000_000)}` }, 'model'],
  ],
  messages: [
    [{ messages: undefined }, 'messages'],
    [{ messages: null }, 'messages'],
    [{ messages: [] }, 'messages'],
    [{ messages: 'Hi' }, 'messages'],
    [{ messages: {} }, 'messages'],
    [withMessages('Hi'), 'messages[0]'],
    [withMessages(null), 'messages[0]'],
    [withMessages(USER, 7), 'messages[1]'],
    [withMessages(...Array.from({ length: 10_001 }, () => USER)), 'messages'],
  ],
  role: [
    [withMessages({ content: 'Hi' }), 'messages[0].role'],
    [withMessages({ role: null, content: 'Hi' }), 'messages[0].role'],
    [withMessages({ role: 'User', content: 'Hi' }), 'messages[0].role'],
    [withMessages({ role: 'robot', content: 'Hi' }), 'messages[0].role'],
    [withMessages(USER, { role: 1, content: 'Hi' }), 'messages[1].role'],
  ],
  'turns without content': [
    [withMessages({ role: 'system', content: '' }), 'messages'],
    [withMessages({ role: 'user' }), 'messages'],
    [withMessages({ role: 'user', content: null }), 'messages'],
    [withMessages({ role: 'user', content: '' }), 'messages'],
    [withMessages({ role: 'user', content: [] }), 'messages'],
  ],
  content: [
    [withMessages({ role: 'user', content: 5 }), 'messages[0].content'],
    [withMessages({ role: 'user', content: {} }), 'messages[0].content'],
    [withMessages({ role: 'user', content: ['Hi'] }), 'messages[0].content[0]'],
    [withMessages({ role: 'user', content: [{ text: 'Hi' }] }), 'messages[0].content[0].type'],
    [withMessages({ role: 'user', content: [{ type: 'text' }] }), 'messages[0].content[0].text'],
    [withMessages({ role: 'user', content: [{ type: 'song' }] }), 'messages[0].content[0].type'],
    [
      withMessages({ role: 'user', content: [{ type: 'image_url', image_url: {} }] }),
      'messages[0].content[0].image_url.url',
    ],
    [
      withMessages({
        role: 'user',
        content: [{ type: 'image_url', image_url: { url: 'file:///etc' } }],
      }),
      'messages[0].content[0].image_url.url',
    ],
    [withMessages({ role: 'system', content: [{ type: 'image_url' }] }), 'messages[0].content[0].type'],
  ],
  stream: [
    [{ stream: 'true' }, 'stream'],
    [{ stream: 1 }, 'stream'],
    [{ stream: [] }, 'stream'],
  ],
  temperature: [
    [{ temperature: -0.01 }, 'temperature'],
    [{ temperature: 2.01 }, 'temperature'],
    [{ temperature: '1' }, 'temperature'],
    [{ temperature: true }, 'temperature'],
  ],
  top_p: [
    [{ top_p: -0.01 }, 'top_p'],
    [{ top_p: 1.01 }, 'top_p'],
    [{ top_p: '0.5' }, 'top_p'],
  ],
  max_tokens: [
    [{ max_tokens: 0 }, 'max_tokens'],
    [{ max_tokens: -1 }, 'max_tokens'],
    [{ max_tokens: 1.5 }, 'max_tokens'],
    [{ max_tokens: '10' }, 'max_tokens'],
  ],
  max_completion_tokens: [
    [{ max_completion_tokens: 0 }, 'max_completion_tokens'],
    [{ max_completion_tokens: 2.5 }, 'max_completion_tokens'],
    [{ max_completion_tokens: {} }, 'max_completion_tokens'],
  ],
  stop: [
    [{ stop: 5 }, 'stop'],
    [{ stop: {} }, 'stop'],
    [{ stop: ['a', 'b', 'c', 'd', 'e'] }, 'stop'],
    [{ stop: ['a', 7] }, 'stop[1]'],
  ],
  tools: [
    [{ tools: {} }, 'tools'],
    [{ tools: ['f'] }, 'tools[0]'],
    [{ tools: [{ type: 'robot' }] }, 'tools[0].type'],
    [{ tools: [{ type: 'function' }] }, 'tools[0].function'],
    [{ tools: [TOOL, { type: 'function', function: {} }] }, 'tools[1].function.name'],
    [{ tools: [{ type: 'function', function: { name: 'a b' } }] }, 'tools[0].function.name'],
    [
      { tools: [{ type: 'function', function: { name: 'f', parameters: 'x' } }] },
      'tools[0].function.parameters',
    ],
    [{ tools: Array.from({ length: 10_000 }, () => TOOL) }, 'tools'],
    [{ tool_choice: 'required' }, 'tool_choice'],
    [{ tools: [TOOL], tool_choice: 'maybe' }, 'tool_choice'],
    [{ tools: [TOOL], tool_choice: { type: 'function', function: { name: 'g' } } }, 'tool_choice'],
    [{ tools: [TOOL], parallel_tool_calls: 'no' }, 'parallel_tool_calls'],
  ],
  'tool calls and results': [
    [withMessages(USER, { role: 'tool', tool_call_id: 'c1', content: 'x' }), 'messages[1]'],
    [withMessages(USER, { role: 'assistant', tool_calls: [CALL] }), 'messages[1].tool_calls[0]'],
    [
      withMessages(USER, { role: 'assistant', tool_calls: [CALL] }, { role: 'tool', content: 'x' }),
      'messages[2].tool_call_id',
    ],
    [
      withMessages(
        USER,
        { role: 'assistant', tool_calls: [CALL] },
        { role: 'tool', tool_call_id: 'c2', content: 'x' },
      ),
      'messages[2].tool_call_id',
    ],
    [withMessages(USER, { role: 'assistant', tool_calls: [CALL, CALL] }), 'messages[1].tool_calls[0]'],
    [
      withMessages(USER, { role: 'assistant', tool_calls: [{ ...CALL, function: { name: 'f' } }] }),
      'messages[1].tool_calls[0]',
    ],
  ],
  'other fields': [
    [{ n: 0 }, 'n'],
    [{ seed: 'x' }, 'seed'],
    [{ frequency_penalty: 2.1 }, 'frequency_penalty'],
    [{ presence_penalty: -2.1 }, 'presence_penalty'],
    [{ logprobs: 1 }, 'logprobs'],
    [{ top_logprobs: 21 }, 'top_logprobs'],
    [{ logit_bias: { x: 1 } }, 'logit_bias'],
    [{ logit_bias: { '1': 101 } }, 'logit_bias.1'],
    [{ response_format: { type: 'yaml' } }, 'response_format.type'],
    [{ response_format: { type: 'json_schema' } }, 'response_format.json_schema'],
    [{ reasoning_effort: 'enormous' }, 'reasoning_effort'],
    [{ stream_options: true }, 'stream_options'],
    [{ stream: true, stream_options: { include_usage: 1 } }, 'stream_options.include_usage'],
    [{ user: 5 }, 'user'],
    [{ metadata: { a: 1 } }, 'metadata.a'],
  ],
  'destination and credential': [
    'api_base',
    'base_url',
    'api_key',
    'extra_headers',
    'custom_host',
    'organization',
    'fallbacks',
  ].map((field): Row => [{ [field]: 'http://127.0.0.1:1/' }, field]),
}

const JUDGED: ReadonlySet<string> = new Set(['tool calls and results', 'turns without content'])

void t.test('S1: each rule, broken once, is a 400 that names the field', async (t) => {
  const gateway = await startGateway(t)
  for (const [rule, rows] of Object.entries(BROKEN)) {
    for (const [members, param] of rows) {
      // Between equal formats the provider judges these.
      const translated = JUDGED.has(rule) ? { model: 'claude-sonnet-5-5' } : {}
      const { status, error } = await ask(gateway, body({ ...members, ...translated }))
      const sent = JSON.stringify(members).slice(0, 80)
      t.equal(status, 400, `${rule}: ${sent}`)
      t.match(error, {
        type: 'invalid_request_error',
        code: null,
        kind: 'malformed_request',
        param,
      })
      const message = stringOf(error.message) ?? ''
      t.ok(message.startsWith(`${param} `), message.slice(0, 100))
    }
  }
  t.equal(gateway.emulator.ledger.length, 0, 'none of them went to an upstream')
})

const KEPT: readonly Record<string, JsonValue | undefined>[] = [
  { stream: false },
  { stream: null },
  { temperature: 0 },
  { temperature: 2 },
  { temperature: null },
  { max_tokens: 1 },
  { max_tokens: 100_000 },
  { max_completion_tokens: 1 },
  { top_p: 0 },
  { top_p: 1 },
  { stop: 'END' },
  { stop: ['END'] },
  { stop: ['a', 'b', 'c', 'd'] },
  { stop: [] },
  { stop: null },
  withMessages({ role: 'system', content: 'Be brief.' }, USER),
  withMessages(USER, { role: 'assistant', content: 'Hello.' }, USER),
  withMessages({ role: 'user', content: [{ type: 'text', text: 'Hi' }] }),
  withMessages({ role: 'user', content: '\u0000\u2028\uFEFFé😀' }),
  { tools: [TOOL] },
  { user: 'someone' },
]

void t.test('S1: every allowed value passes with every provider', async (t) => {
  const gateway = await startGateway(t)
  for (const { model } of FAMILIES) {
    for (const members of KEPT) {
      const { status, text } = await ask(gateway, body({ model, ...members }))
      const sent = `${model}: ${JSON.stringify(members).replace(/[^ -~]/g, '?')}`
      t.equal(status, 200, status === 200 ? sent : `${sent}: ${text.slice(0, 200)}`)
    }
  }
})
