/**
 * Goal: known bugs of other gateways in token counts do not occur here; each test is one edge case of
 * `docs/reference/test-cases/edge-cases.md`, by its number.
 * Method: a provider's frames or reply through the codecs.
 */
import t from 'tap'
import { arrayOf, objectOf, type JsonObject } from '../../src/base/json.js'
import { clientCodecOf } from '../../src/formats/index.js'
import { SseFramer } from '../../src/formats/wire/frames/sse-framer.js'
import { chatRequest, factsOf, fed, framed, sent, streamed, upstream, whole } from './drive-codecs.js'
import { candidate, chunk, counts, messageEnd, messageStart, textBlock } from './provider-frames.js'

const USER = { role: 'user', content: 'Hello' }
const COUNTS = { prompt_tokens: 11, completion_tokens: 4, total_tokens: 15 }

/** A reply of Claude with these counts in its start and end. */
function claude(start: JsonObject, end: JsonObject): JsonObject {
  const frames = [messageStart(start), ...textBlock(0, 'Hi'), ...messageEnd('end_turn', end)]
  return streamed('anthropic', frames).usage
}

void t.test('15: the usage chunk, which has no choice, crashed the reader', (t) => {
  // https://github.com/Portkey-AI/gateway/issues/1072
  const frames = [chunk({ content: 'Hi' }), chunk({}, 'stop'), counts(COUNTS), '[DONE]']
  t.match(streamed('openai-chat', frames), { outcome: 'complete', text: 'Hi', usage: COUNTS })
  const bare = [{ id: 'x', model: 'y' }, ...frames]
  t.match(streamed('openai-chat', bare), { outcome: 'complete', text: 'Hi' }, 'nor no choices')
  const watcher = upstream('openai-chat').newWatcher?.({ includeUsage: false })
  for (const frame of frames) watcher?.frame('', typeof frame === 'string' ? frame : JSON.stringify(frame))
  t.match(watcher, { isComplete: true, usage: { input: 11, output: 4 } }, 'nor if bytes pass unchanged')
  t.end()
})

void t.test('16: streams had no usage, or lost it', (t) => {
  // https://github.com/Portkey-AI/gateway/issues/1259
  const body = { stream: true }
  t.match(sent('openai-chat', body).body, { stream_options: { include_usage: true } })
  const edits = upstream('openai-chat').edits({ model: 'gpt-4o', messages: [], stream: true }, 'gpt-4o', {
    model: factsOf('gpt-4o'),
    losses: { drop: () => undefined },
  })
  const edit = edits.find(({ key }) => key === 'stream_options')
  t.match(
    JSON.parse(edit?.json?.toString() ?? 'null'),
    { include_usage: true },
    'also if bytes pass unchanged',
  )
  for (const received of [
    streamed('anthropic', [messageStart(), ...textBlock(0, 'Hi'), ...messageEnd('end_turn')]),
    streamed('gemini', [candidate([{ text: 'Hi' }], 'STOP')]),
  ]) {
    const last = received.chunks.at(-1)
    t.same(last?.['choices'], [], 'the last chunk is the counts')
    const { prompt_tokens, completion_tokens, total_tokens } = objectOf(last?.['usage'])
    t.equal(Number(prompt_tokens) + Number(completion_tokens), total_tokens)
    t.ok(Number(total_tokens) > 0)
  }
  t.end()
})

void t.test('17: a usage chunk after the finish was ignored', (t) => {
  // https://github.com/musistudio/claude-code-router/issues/1587
  const frames = [chunk({ content: 'Hi' }), chunk({}, 'stop'), counts(COUNTS), '[DONE]']
  const stream = framed('openai-chat', frames).split(/(?<=\n\n)/)
  const received = fed(
    'openai-chat',
    stream.map((frame) => Buffer.from(frame)),
  )
  t.match(received.usage, COUNTS)
  t.same(arrayOf(received.chunks.at(-1)?.['choices']), [], 'and the client gets it last')
  t.end()
})

void t.test('18: counts of 0 in the first event of an Anthropic stream showed an empty context', (t) => {
  // https://github.com/envoyproxy/ai-gateway/issues/2352
  const clientCodec = clientCodecOf('anthropic')
  const body = { model: 'gpt-4o', max_tokens: 9, stream: true, messages: [USER] }
  const request = clientCodec.decodeRequest(body, { operation: 'chat' })
  const encoder = clientCodec.newEncoder(request, {
    id: 'msg_1',
    createdAtSeconds: 0,
    model: 'gpt-4o',
  })
  const framer = new SseFramer(upstream('openai-chat').newDecoder(request, encoder))
  const frames = [chunk({ content: 'Hi' }), chunk({}, 'stop'), counts(COUNTS), '[DONE]']
  framer.write(Buffer.from(framed('openai-chat', frames)))
  framer.end()
  const events = encoder.take().split('\n\n')
  const end = events.find((event) => event.startsWith('event: message_delta'))
  t.match(end, /"input_tokens":11,.*"output_tokens":4\b/, 'the end has the counts of all')
  t.match(events.at(-2), /^event: message_stop/, 'and waits for them')
  t.end()
})

void t.test('19: the counts of the start were added to those of the end', (t) => {
  // https://github.com/langchain-ai/langchainjs/issues/10249
  const start = { input_tokens: 43, output_tokens: 1, cache_read_input_tokens: 5 }
  const usage = claude(start, { input_tokens: 61, output_tokens: 7, cache_read_input_tokens: 5 })
  t.match(usage, { prompt_tokens: 66, completion_tokens: 7, total_tokens: 73 })
  const older = claude(start, { output_tokens: 7 })
  t.match(older, { prompt_tokens: 48, completion_tokens: 7 }, 'counts that the end omits are kept')
  const twice = [candidate([{ text: 'a' }]), candidate([{ text: 'b' }], 'STOP')]
  t.match(streamed('gemini', twice).usage, { prompt_tokens: 7, completion_tokens: 3 })
  t.end()
})

void t.test('20: cache reads and writes were billed twice, or not at all', (t) => {
  // https://github.com/BerriAI/litellm/issues/9812, /11789, /11364, /6576, /26919; https://github.com/mozilla-ai/any-llm/issues/622
  const usage = {
    input_tokens: 10,
    cache_creation_input_tokens: 200,
    cache_read_input_tokens: 3000,
    output_tokens: 5,
  }
  const expected = {
    prompt_tokens: 3210,
    completion_tokens: 5,
    total_tokens: 3215,
    prompt_tokens_details: { cached_tokens: 3000, cache_write_tokens: 200 },
  }
  t.match(claude(usage, { output_tokens: 5 }), expected)
  const message = {
    id: 'm',
    type: 'message',
    role: 'assistant',
    model: 'c',
    stop_reason: 'end_turn',
  }
  const reply = { ...message, content: [{ type: 'text', text: 'Hi' }], usage }
  t.match(whole('anthropic', reply).usage, expected)
  const gemini = {
    promptTokenCount: 50,
    cachedContentTokenCount: 40,
    candidatesTokenCount: 2,
    thoughtsTokenCount: 3,
  }
  const read = streamed('gemini', [candidate([{ text: 'Hi' }], 'STOP', gemini)]).usage
  t.match(read, { prompt_tokens: 50, completion_tokens: 5, total_tokens: 55 })
  t.match(read, { prompt_tokens_details: { cached_tokens: 40 } }, 'included, not added')
  t.match(read, { completion_tokens_details: { reasoning_tokens: 3 } })
  t.end()
})

void t.test('21: cached_tokens counted the writes too', (t) => {
  // https://github.com/maximhq/bifrost/issues/4970
  const usage = claude({ input_tokens: 1, cache_creation_input_tokens: 9 }, { output_tokens: 2 })
  const details = objectOf(usage['prompt_tokens_details'])
  t.not(details['cached_tokens'], 9)
  t.equal(details['cache_write_tokens'], 9)
  t.equal(usage['prompt_tokens'], 10)
  t.end()
})

void t.test('65: a reply of another model was priced as the requested one', (t) => {
  // From 2026-12-01 on newer models serve requests for gemini-2.5-pro and -flash.
  const reply = { ...candidate([{ text: 'Hi' }], 'STOP'), modelVersion: 'gemini-3.5-flash' }
  const body = { model: 'gemini-2.5-flash' }
  for (const received of [streamed('gemini', [reply], body), whole('gemini', reply, body)]) {
    t.equal(received.model, 'gemini-3.5-flash', 'the model that replied is reported')
    t.equal(received.outcome, 'complete')
  }
  t.equal(chatRequest(body).model, 'gemini-2.5-flash')
  t.end()
})
