/**
 * Goal: a body for an upstream of this format has all fields of the request; fields that it cannot express
 * are reported.
 * Method: hand-written canonical requests and facts with the expected bodies and losses.
 */
import t from 'tap'
import type { JsonObject } from '../../../../src/base/json.js'
import type { ModelFacts } from '../../../../src/formats/chat/model-facts.js'
import type { ChatRequest } from '../../../../src/formats/chat/request.js'
import { upstreamCodec, expectObject, refusalOf, request } from '../driver.js'

const PLAIN: ModelFacts = { id: 'm', family: 'openai', createdAtSeconds: 0 }

function encode(
  members: Partial<ChatRequest>,
  facts: Partial<ModelFacts> = {},
): { body: JsonObject; lost: string[] } {
  const lost: string[] = []
  const losses = { drop: (path: string, why: string): void => void lost.push(`${path} ${why}`) }
  const body = upstreamCodec.encodeRequest({ ...request(), ...members }, { ...PLAIN, ...facts }, losses)
  return { body, lost }
}

void t.test('target, credential and headers', (t) => {
  const accept = 'text/event-stream'
  t.same(upstreamCodec.target('m', true), { path: '/chat/completions', accept })
  t.equal(upstreamCodec.target('m', false).accept, 'application/json')
  t.same(upstreamCodec.credential('k'), { authorization: 'Bearer k' })
  t.same(upstreamCodec.headers({}), {})
  t.equal(upstreamCodec.framing, 'sse')
  t.end()
})

void t.test('a stream requests usage, a whole reply does not', (t) => {
  t.match(encode({ stream: true }).body, { stream: true, stream_options: { include_usage: true } })
  t.notOk('stream_options' in encode({}).body)
  t.end()
})

void t.test('the output limit has the name that the family accepts', (t) => {
  t.equal(encode({ maxOutputTokens: 5 }).body['max_completion_tokens'], 5)
  const { body } = encode({ maxOutputTokens: 5 }, { family: 'google' })
  t.equal(body['max_tokens'], 5)
  t.notOk('max_completion_tokens' in body)
  t.end()
})

void t.test('sampling fields are dropped and reported for reasoning models', (t) => {
  const facts = { reasoning: true, samplingParams: 'effort-none-only' } as const
  const sampling = { temperature: 0.5, topP: 1, frequencyPenalty: 1, presencePenalty: 0 }
  const { body, lost } = encode(sampling, facts)
  t.same(Object.keys(body), ['model', 'messages'])
  t.same(lost, ['temperature no-equivalent', 'frequency_penalty no-equivalent'])
  const off = encode({ temperature: 0.5, reasoningEffort: 'none' }, facts)
  t.equal(off.body['temperature'], 0.5)
  t.equal(encode({ temperature: 0.5 }, { samplingParams: 'always' }).body['temperature'], 0.5)
  t.end()
})

void t.test('an unsupported effort becomes the nearest lower one', (t) => {
  const reasoningEfforts = ['low', 'medium', 'high']
  const max = encode({ reasoningEffort: 'max' }, { reasoningEfforts })
  t.equal(max.body['reasoning_effort'], 'high')
  t.same(max.lost, ['reasoning_effort approximated'])
  t.equal(encode({ reasoningEffort: 'none' }, { reasoningEfforts }).body['reasoning_effort'], 'low')
  t.equal(encode({ reasoningEffort: 'max' }).body['reasoning_effort'], 'max')
  t.end()
})

void t.test('tools turn reasoning off on a model that cannot combine them', (t) => {
  const tools = [{ name: 'f' }]
  const facts = { chatToolsWithReasoning: false, reasoningEfforts: ['none', 'high'] }
  t.equal(encode({ tools }, facts).body['reasoning_effort'], 'none')
  t.same(encode({ tools }, facts).lost, ['reasoning_effort approximated'])
  const members = { tools, reasoningEffort: 'high' } as const
  t.match(
    refusalOf(() => encode(members, facts)),
    { kind: 'untranslatable', param: 'tools' },
  )
  t.end()
})

void t.test('the system role is the one that the model accepts', (t) => {
  const messages = [{ role: 'system', index: 0, parts: [{ type: 'text', text: 'S' }] }] as const
  const sent = (facts: Partial<ModelFacts>): unknown =>
    encode({ messages: messages.map((it) => ({ ...it, parts: [...it.parts] })) }, facts).body
  t.match(sent({}), { messages: [{ role: 'system', content: 'S' }] })
  t.match(sent({ systemRole: 'developer' }), { messages: [{ role: 'developer', content: 'S' }] })
  t.end()
})

void t.test(
  'media of tool results follow the turn; state of other providers is dropped; ids are shortened',
  (t) => {
    const id = `toolu_${'x'.repeat(80)}`
    const image = {
      type: 'image',
      source: { kind: 'url', url: 'https://a.example/x.png' },
    } as const
    const { body, lost } = encode({
      messages: [
        {
          role: 'assistant',
          index: 0,
          parts: [{ type: 'thinking', text: 'T', signature: 's', origin: 'anthropic' }],
          toolCalls: [
            { id, name: 'f', arguments: '{}' },
            { id: 'b', name: 'f', arguments: '{}' },
          ],
        },
        { role: 'tool', index: 1, callId: id, parts: [image], isError: true },
        { role: 'tool', index: 2, callId: 'b', parts: [{ type: 'text', text: 'R' }] },
      ],
    })
    const sent = JSON.stringify(body['messages'])
    const short = /toolu_x+_[0-9a-f]{8}/.exec(sent)?.[0] ?? ''
    t.equal(short.length, 40)
    t.match(body['messages'], [
      { role: 'assistant', content: null, tool_calls: [{ id: short }, { id: 'b' }] },
      { role: 'tool', tool_call_id: short, content: '' },
      { role: 'tool', tool_call_id: 'b', content: 'R' },
      { role: 'user', content: [{ type: 'image_url', image_url: { url: image.source.url } }] },
    ])
    t.same(lost, [
      'messages.thinking no-equivalent',
      'messages.is_error no-equivalent',
      'messages.tool_content approximated',
    ])
    t.end()
  },
)

void t.test('files: text becomes a text part, an image id of another provider is refused', (t) => {
  const source = { kind: 'base64', mediaType: 'text/plain', data: 'SMOp' } as const
  const actual = encode({
    messages: [{ role: 'user', index: 0, parts: [{ type: 'file', source }] }],
  })
  t.match(actual.body, { messages: [{ content: [{ type: 'text', text: 'Hé' }] }] })
  t.same(actual.lost, ['messages.file approximated'])
  const image = { type: 'image', source: { kind: 'file-id', id: 'x' } } as const
  const error = refusalOf(() => encode({ messages: [{ role: 'user', index: 4, parts: [image] }] }))
  t.match(error, { kind: 'untranslatable', param: 'messages[4].content' })
  t.end()
})

void t.test('fields of other formats are reported, not sent', (t) => {
  const { body, lost } = encode({ rest: { top_k: 5, logit_bias: { '1': 1 } }, serviceTier: 'x' })
  t.same(expectObject(body['logit_bias']), { '1': 1 })
  t.notOk('top_k' in body || 'service_tier' in body)
  t.same(lost, ['service_tier no-equivalent', 'top_k no-equivalent'])
  t.end()
})
