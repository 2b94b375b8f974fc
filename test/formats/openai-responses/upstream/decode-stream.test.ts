/**
 * Goal: any sequence of the format's events decodes to a whole reply or an error.
 * Method: small streams, each with one deviation of real upstreams.
 */
import t from 'tap'
import type { JsonObject } from '../../../../src/base/json.js'
import { frames, decodeWhole, decodeStream, type Decoded } from '../driver.js'

const BEGUN: JsonObject = {
  type: 'response.created',
  response: { id: 'resp_1', model: 'gpt-test', status: 'in_progress' },
}
const DONE: JsonObject = { type: 'response.completed', response: { id: 'resp_1', output: [] } }

function decode(...events: JsonObject[]): Decoded {
  return decodeStream(frames(BEGUN, ...events))
}

function added(place: number, item: JsonObject): JsonObject {
  return { type: 'response.output_item.added', output_index: place, item }
}

function done(place: number, item: JsonObject): JsonObject {
  return { type: 'response.output_item.done', output_index: place, item }
}

function textDelta(place: number, delta: string, more: JsonObject = {}): JsonObject {
  return {
    type: 'response.output_text.delta',
    output_index: place,
    content_index: 0,
    delta,
    ...more,
  }
}

function args(place: number, delta: string): JsonObject {
  return { type: 'response.function_call_arguments.delta', output_index: place, delta }
}

function call(id: string, json = ''): JsonObject {
  return { type: 'function_call', id: `fc_${id}`, call_id: id, name: 'look', arguments: json }
}

function text(decoded: Decoded): string | undefined {
  return decoded.reply?.blocks.map((block) => (block.type === 'text' ? block.text : '?')).join('|')
}

function calls(received: Decoded): string[] | undefined {
  return received.reply?.blocks.map((it) => (it.type === 'tool' ? `${it.id}=${it.json}` : '?'))
}

void t.test('an item that has another index in the last event is emitted once', (t) => {
  const item = (content: JsonObject[]): JsonObject => ({ type: 'message', id: 'msg_1', content })
  const whole = item([{ type: 'output_text', text: 'One two' }])
  const last: JsonObject = {
    type: 'response.completed',
    response: { id: 'resp_1', output: [{ type: 'reasoning', id: 'rs_1', summary: [] }, whole] },
  }
  t.equal(text(decode(added(0, item([])), textDelta(0, 'One two'), last)), 'One two')
  t.equal(
    text(decode(added(0, item([])), textDelta(0, 'One'), last)),
    'One two',
    'the rest of the item is emitted',
  )
  t.equal(text(decode(added(0, item([])), textDelta(0, 'One two'), done(0, whole), last)), 'One two')
  t.end()
})

void t.test('empty deltas of arguments do not end a call', (t) => {
  const recorder = decode(
    added(0, call('a')),
    args(0, ''),
    args(0, '{"x":'),
    args(0, ''),
    args(0, '1}'),
    done(0, call('a', '{"x":1}')),
    DONE,
  )
  t.same(calls(recorder), ['a={"x":1}'])
  t.equal(recorder.reply?.reason, 'tool-use')
  t.end()
})

void t.test('text and arguments that are only in the last event are emitted once', (t) => {
  const whole = { type: 'response.function_call_arguments.done', output_index: 0, arguments: '{}' }
  t.same(calls(decode(added(0, call('a')), whole, whole, done(0, call('a', '{}')), DONE)), ['a={}'])
  t.same(calls(decode(done(0, call('a', '{}')), DONE)), ['a={}'], 'no start')
  const last = { type: 'response.completed', response: { output: [call('a', '{}')] } }
  t.same(calls(decode(last)), ['a={}'], 'only the last event')
  const cut = decode(added(0, call('a')), args(0, '{"x"'), done(0, call('a', '{"x":1}')), DONE)
  t.same(calls(cut), ['a={"x":1}'], 'the rest')
  t.end()
})

void t.test('interleaved items are emitted in sequence', (t) => {
  const recorder = decode(
    added(0, call('a')),
    added(1, call('b')),
    args(1, '{"b":'),
    args(0, '{"a":'),
    args(1, '2}'),
    args(0, '1}'),
    done(1, call('b', '{"b":2}')),
    done(0, call('a', '{"a":1}')),
    DONE,
  )
  t.equal(recorder.breach, null)
  t.same(calls(recorder), ['a={"a":1}', 'b={"b":2}'])
  t.end()
})

void t.test('an item without a done event is closed at the end', (t) => {
  t.equal(text(decode(textDelta(0, 'Hel'), textDelta(0, 'lo'), DONE)), 'Hello', 'no start and no end')
  const recorder = decode(added(0, call('a')), args(0, '{}'), textDelta(1, 'Hi'), DONE)
  t.match(recorder.reply?.blocks, [{ type: 'tool' }, { type: 'text', text: 'Hi' }])
  t.end()
})

void t.test('an item with another id in each event is one item', (t) => {
  const message = (id: string, actual: string): JsonObject => {
    return {
      type: 'message',
      id,
      content: [{ type: 'output_text', text: actual, annotations: [] }],
    }
  }
  const recorder = decode(
    added(0, message('x1', '')),
    textDelta(0, 'Hel', { item_id: 'x2' }),
    textDelta(0, 'lo', { item_id: 'x3' }),
    done(0, message('x4', 'Hello')),
    { type: 'response.completed', response: { output: [message('x5', 'Hello')] } },
  )
  t.equal(text(recorder), 'Hello')
  t.end()
})

void t.test('events without an index belong to the item with their id, or to the latest item', (t) => {
  const bare = (event: JsonObject): JsonObject => {
    const { output_index, ...rest } = event
    return output_index === undefined ? event : rest
  }
  const events = [added(0, call('a')), args(0, '{}'), done(0, call('a', '{}'))]
  const last = { type: 'response.completed', response: { output: [call('a', '{}')] } }
  t.same(calls(decode(...events.map(bare), last)), ['a={}'])
  const named = events.map((event) => ({ ...bare(event), item_id: 'fc_a' }))
  t.same(calls(decode(...named, last)), ['a={}'])
  t.end()
})

void t.test('each part of a message is a block', (t) => {
  const part = (at: number, delta: string): JsonObject => textDelta(0, delta, { content_index: at })
  const no = {
    type: 'response.refusal.delta',
    output_index: 0,
    content_index: 2,
    delta: 'No.',
  }
  const recorder = decode(part(0, 'One'), part(1, 'Two'), no, DONE)
  t.match(recorder.reply?.blocks, [
    { type: 'text', text: 'One' },
    { type: 'text', text: 'Two' },
    { type: 'refusal', text: 'No.' },
  ])
  t.equal(text(decode(part(0, 'One'), part(1, 'Two'), part(0, ' late'), DONE)), 'One|Two| late')
  t.end()
})

void t.test('reasoning is one block, with the encrypted content of its last event', (t) => {
  const summary = (at: number, delta: string): JsonObject => {
    const type = 'response.reasoning_summary_text.delta'
    return { type, output_index: 0, summary_index: at, delta }
  }
  const item = { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'early' }
  const last = { ...item, encrypted_content: 'late' }
  t.match(decode(added(0, item), summary(0, 'A'), summary(1, 'B'), done(0, last), DONE).reply, {
    blocks: [{ type: 'thinking', text: 'A\n\nB', signature: 'rs_1:late' }],
  })
  t.match(decode(added(0, item), done(0, last), textDelta(1, 'Hi'), DONE).reply?.blocks, [
    { type: 'thinking', text: '', signature: 'rs_1:late' },
    { type: 'text' },
  ])
  const open = { type: 'reasoning', id: 'rs_2', summary: [] }
  t.same(decode(added(0, open), done(0, open), DONE).reply?.blocks, [], 'neither text nor encrypted content')
  t.end()
})

void t.test('a citation is emitted once, from any of its events', (t) => {
  const note = {
    type: 'url_citation',
    url: 'https://a.example/',
    title: 'A',
    start_index: 0,
    end_index: 2,
  }
  const file = { type: 'file_citation', filename: 'log.pdf', file_id: 'f', index: 1 }
  const message = {
    type: 'message',
    id: 'm',
    content: [{ type: 'output_text', text: 'Hi', annotations: [note, file] }],
  }
  const reported = {
    type: 'response.output_text.annotation.added',
    output_index: 0,
    content_index: 0,
    annotation: note,
  }
  const citations = [{ url: 'https://a.example/', title: 'A', start: 0, end: 2 }, { title: 'log.pdf' }]
  const blocks = [{ type: 'text', text: 'Hi', citations }]
  t.same(decode(textDelta(0, 'Hi'), reported, done(0, message), DONE).reply?.blocks, blocks)
  t.same(decodeWhole({ output: [message] }).reply?.blocks, blocks)
  t.end()
})

void t.test('an incomplete response has the reason length', (t) => {
  const end = (reason: string | null): JsonObject => ({
    type: 'response.incomplete',
    response: { output: [], incomplete_details: reason === null ? null : { reason } },
  })
  const reasons: [raw: string | null, reason: string][] = [
    ['max_output_tokens', 'length'],
    ['max_messages', 'length'],
    ['content_filter', 'filter'],
    ['steered', 'stop'],
    ['something_new', 'length'],
    [null, 'length'],
  ]
  for (const [raw, reason] of reasons) {
    const recorder = decode(textDelta(0, 'Hi'), end(raw))
    t.match(recorder.reply, { reason, raw: raw ?? 'incomplete' })
    const whole = { status: 'incomplete', output: [], incomplete_details: { reason: raw } }
    t.equal(decodeWhole(whole).reply?.reason, reason)
  }
  t.end()
})

void t.test('a failed response is an error', (t) => {
  const error = { code: 'server_error', message: 'It broke.' }
  const failed = {
    type: 'response.failed',
    response: { status: 'failed', error, usage: { input_tokens: 7 } },
  }
  t.match(decode(textDelta(0, 'Hi'), failed), {
    reply: null,
    error: { kind: 'upstream_failed', message: 'It broke.', upstreamCode: 'server_error' },
  })
  t.match(decode(failed).events.slice(-2), [{ type: 'usage', usage: { input: 7 } }, { type: 'error' }])
  for (const status of ['failed', 'cancelled']) {
    t.equal(decode({ ...DONE, response: { status } }).error?.kind, 'upstream_failed', status)
    t.equal(decodeWhole({ status, output: [] }).error?.kind, 'upstream_failed', status)
  }
  t.end()
})

void t.test('an error is recognized in flat, nested and untyped frames', (t) => {
  const error = { code: 'rate_limit_exceeded', message: 'Later.', param: null }
  for (const event of [
    { type: 'error', ...error },
    { type: 'error', error: { type: 'requests', ...error } },
    { error },
  ]) {
    t.match(decode(event), { reply: null, error: { kind: 'upstream_busy', message: 'Later.' } })
  }
  t.end()
})

void t.test('a stream without a last event is truncated', (t) => {
  t.equal(decode(textDelta(0, 'Hi')).error?.kind, 'upstream_truncated')
  t.equal(decodeStream([]).error?.kind, 'upstream_truncated')
  const early = [...frames(BEGUN, textDelta(0, 'Hi')), { name: '', data: '[DONE]' }]
  t.equal(decodeStream(early).error?.kind, 'upstream_truncated')
  for (const status of ['in_progress', 'queued']) {
    t.equal(decodeWhole({ status, output: [] }).error?.kind, 'upstream_truncated', status)
  }
  t.end()
})

void t.test('frames of another format are malformed', (t) => {
  for (const data of ['{', '[]', '1', 'null', '"x"']) {
    t.equal(decodeStream([{ name: '', data }]).error?.kind, 'upstream_malformed', data)
  }
  t.equal(decodeWhole({}).error?.kind, 'upstream_malformed')
  t.equal(decodeWhole({ choices: [] }).error?.kind, 'upstream_malformed')
  const nameless = { type: 'function_call', id: 'fc_1', call_id: 'a', arguments: '{}' }
  t.equal(decode(done(0, nameless), DONE).error?.kind, 'upstream_malformed', 'a call without a name')
  t.equal(decode(args(0, '{}'), DONE).error?.kind, 'upstream_malformed', 'arguments without a call')
  t.end()
})

void t.test('unknown events are ignored', (t) => {
  const recorder = decode(
    { type: 'response.future', depth: { of: 'it' } },
    textDelta(0, 'Hi'),
    { type: 'response.web_search_call.searching', output_index: 4 },
    DONE,
    textDelta(0, ' again'),
    { type: 'error', message: 'late' },
  )
  t.equal(text(recorder), 'Hi')
  t.equal(recorder.events.at(-1)?.type, 'finish')
  t.end()
})

void t.test('items of hosted tools are kept whole', (t) => {
  const item = { type: 'web_search_call', id: 'ws_1', status: 'completed' }
  const recorder = decode(
    added(0, { ...item, status: 'in_progress' }),
    done(0, item),
    textDelta(1, 'Hi'),
    DONE,
  )
  t.match(recorder.reply?.blocks, [
    { type: 'opaque', provider: 'openai-responses', block: item },
    { type: 'text', text: 'Hi' },
  ])
  t.equal(recorder.reply?.reason, 'stop')
  t.end()
})

void t.test('the name of the event replaces a missing type', (t) => {
  const rest = { output_index: 0, content_index: 0, delta: 'Hi' }
  const recorder = decodeStream([
    { name: 'response.output_text.delta', data: JSON.stringify(rest) },
    ...frames(DONE),
  ])
  t.equal(text(recorder), 'Hi')
  t.end()
})

void t.test('a call without an id gets a unique one', (t) => {
  const bare = { type: 'function_call', name: 'look', arguments: '{}' }
  const recorder = decode(done(0, bare), done(1, call('a', '{}')), done(2, call('a', '{}')), DONE)
  const ids = recorder.reply?.blocks.map((block) => (block.type === 'tool' ? block.id : ''))
  t.equal(new Set(ids).size, 3)
  t.notOk(ids?.includes(''))
  t.end()
})

void t.test('a response with too many items is malformed', (t) => {
  const many = Array.from({ length: 5_000 }, (_, at) => done(at, call(`c${at}`, '{}')))
  t.equal(decode(...many, DONE).error?.kind, 'upstream_malformed')
  t.end()
})
