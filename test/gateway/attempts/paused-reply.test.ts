/**
 * Goal: the rest of a reply that the upstream pauses (Gemini's CONTINUATION, Anthropic's pause_turn) is
 * requested, and the client gets one reply, whole or streamed; the number of pauses is limited.
 * Method: upstreams of raw bytes that pause as often as the test sets; their requests are checked.
 */
import t, { type Test } from 'tap'
import { arrayOf, objectOf, stringOf, type JsonObject } from '../../../src/base/json.js'
import {
  ask,
  checkFailed,
  eventually,
  isComplete,
  lastLine,
  question,
  series,
  watchProcess,
} from '../../faults/scene.js'
import { type SocketUpstream, httpReply, startSocketUpstream } from '../../faults/socket-upstream.js'
import { startGateway, type TestGateway } from '../../helpers/gateway.js'

const SEARCH = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { q: 'x' } }
const FOUND = { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [] }
const SERVER_TOOL = 'quirks: { set: { tools: [{ type: web_search_20250305, name: web_search }] } }'

function bodyOf(request: string): JsonObject {
  return objectOf(JSON.parse(request.slice(request.indexOf('\r\n\r\n') + 4)))
}

function events(frames: readonly (readonly [string, object])[]): string {
  return frames
    .map(([name, data]) => `${name === '' ? '' : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`)
    .join('')
}

/** One part of a Messages reply: a text, and a search if it is not the last part. */
function messagePart(text: string, stop: string): JsonObject {
  const textBlock: JsonObject = { type: 'text', text }
  return {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'claude-sonnet-4-5',
    content: stop === 'pause_turn' ? [textBlock, SEARCH, FOUND] : [textBlock],
    stop_reason: stop,
    container: { id: 'container_1', expires_at: '2027-01-01T00:00:00Z' },
    usage: { input_tokens: 10, output_tokens: 4 },
  }
}

/** The same as a stream. */
function messageStream(message: JsonObject): string {
  const frames: [string, object][] = []
  const add = (type: string, rest: object): void => void frames.push([type, { type, ...rest }])
  add('message_start', { message: { ...message, content: [], stop_reason: null } })
  for (const [index, value] of arrayOf(message.content).entries()) {
    const block = objectOf(value)
    const isText = block.type === 'text'
    const start = isText ? { type: 'text', text: '' } : { ...block }
    if (block.type === 'server_tool_use') Object.assign(start, { input: {} })
    add('content_block_start', { index, content_block: start })
    const json = JSON.stringify(block.input)
    if (isText) {
      add('content_block_delta', { index, delta: { type: 'text_delta', text: block.text } })
    } else if (block.type === 'server_tool_use') {
      add('content_block_delta', { index, delta: { type: 'input_json_delta', partial_json: json } })
    }
    add('content_block_stop', { index })
  }
  const { stop_reason, container, usage } = message
  add('message_delta', { delta: { stop_reason, container }, usage })
  add('message_stop', {})
  return events(frames)
}

function chunk(text: string, reason: string | null, token?: string): JsonObject {
  const usageMetadata = { promptTokenCount: 7, candidatesTokenCount: 3, thoughtsTokenCount: 1 }
  const parts = [{ text }]
  const candidate: JsonObject = { content: { role: 'model', parts }, index: 0 }
  if (reason !== null) candidate.finishReason = reason
  if (token !== undefined) candidate.continuationToken = token
  return { candidates: [candidate], usageMetadata, modelVersion: 'gemini-4-argon', responseId: 'r' }
}

const SSE = ['content-type: text/event-stream']
const JSON_TYPE = ['content-type: application/json']

/** Starts a gateway whose upstream replies to the n-th request, counted from 0, with `reply(n)`. */
async function gatewayFor(
  t: Test,
  side: 'anthropic' | 'gemini',
  reply: (turn: number) => string,
  more = '',
): Promise<{ gateway: TestGateway; upstream: SocketUpstream; bodies: readonly JsonObject[] }> {
  const bodies: JsonObject[] = []
  const upstream = await startSocketUpstream(t, ({ socket }, request) => {
    bodies.push(bodyOf(request))
    socket.write(reply(bodies.length - 1))
  })
  const gateway = await startGateway(t, {
    upstreams: { [side]: upstream.url },
    ...(side === 'anthropic' ? { upstreamOptions: SERVER_TOOL } : {}),
    more,
  })
  return { gateway, upstream, bodies }
}

const USAGE = { stream_options: { include_usage: true } }

for (const stream of [false, true]) {
  const form = stream ? 'streamed' : 'whole'
  const more = stream ? USAGE : {}

  void t.test(`gemini CONTINUATION, ${form}: the same request with the token`, async (t) => {
    watchProcess(t)
    const { gateway, bodies } = await gatewayFor(t, 'gemini', (turn) => {
      const last = chunk(` part ${turn}`, turn < 2 ? 'CONTINUATION' : 'STOP', `token-${turn}`)
      if (!stream) return httpReply(200, JSON_TYPE, JSON.stringify(last))
      return httpReply(
        200,
        SSE,
        events([
          ['', chunk('A', null)],
          ['', last],
        ]),
      )
    })
    const seen = await ask(gateway, question('gemini-4-argon', stream, { ...more }))
    t.ok(isComplete(seen), seen.body.slice(-300))
    t.equal(seen.text, stream ? 'A part 0A part 1A part 2' : ' part 0 part 1 part 2')
    t.equal(seen.finish, 'stop')
    const [first, second, third] = bodies
    t.same(second, { ...first, continuationToken: 'token-0' })
    t.same(third, { ...first, continuationToken: 'token-1' })
    const usage = objectOf(seen.data.map((each) => each.usage).findLast(Boolean))
    t.equal(usage.prompt_tokens, 21)
    t.equal(usage.completion_tokens, 12)
    t.equal(lastLine(gateway)['output_tokens'], 12, 'in the log too')
    t.equal(await series(gateway, 'sluice_inflight{upstream="google"}'), 0)
  })

  void t.test(`anthropic pause_turn, ${form}: the content is sent back unchanged`, async (t) => {
    watchProcess(t)
    const { gateway, bodies } = await gatewayFor(t, 'anthropic', (turn) => {
      const part = messagePart(`part ${turn}.`, turn < 2 ? 'pause_turn' : 'end_turn')
      if (stream) return httpReply(200, SSE, messageStream(part))
      return httpReply(200, JSON_TYPE, JSON.stringify(part))
    })
    const seen = await ask(gateway, question('claude-sonnet-4-5', stream, { ...more }))
    t.ok(isComplete(seen), seen.body.slice(-300))
    t.equal(seen.text, 'part 0.part 1.part 2.')
    t.equal(seen.finish, 'stop')
    const [first = {}, second, third] = bodies
    const one = [{ type: 'text', text: 'part 0.' }, SEARCH, FOUND]
    const two = [{ type: 'text', text: 'part 1.' }, SEARCH, FOUND]
    const with_ = (content: object[]): object => ({
      ...first,
      messages: [...arrayOf(first.messages), { role: 'assistant', content }],
      container: 'container_1',
    })
    t.same(second, with_(one))
    t.same(third, with_([...one, ...two]))
    const usage = objectOf(seen.data.map((each) => each.usage).findLast(Boolean))
    t.equal(usage.prompt_tokens, 30)
    t.equal(usage.completion_tokens, 12)
  })

  void t.test(`an endless pause, ${form}: the reply is continued five times`, async (t) => {
    watchProcess(t)
    const { gateway, bodies } = await gatewayFor(t, 'anthropic', () => {
      const part = messagePart('.', 'pause_turn')
      if (stream) return httpReply(200, SSE, messageStream(part))
      return httpReply(200, JSON_TYPE, JSON.stringify(part))
    })
    const seen = await ask(gateway, question('claude-sonnet-4-5', stream))
    t.ok(isComplete(seen))
    t.equal(seen.finish, 'stop')
    t.equal(seen.text, '......')
    t.equal(bodies.length, 6)
  })

  void t.test(`a failure in a later part, ${form}`, async (t) => {
    watchProcess(t)
    const { gateway } = await gatewayFor(t, 'gemini', (turn) => {
      const error = { error: { code: 503, message: 'Overloaded', status: 'UNAVAILABLE' } }
      if (turn > 0) return httpReply(503, JSON_TYPE, JSON.stringify(error))
      const part = chunk('begun', 'CONTINUATION', 'token')
      if (stream) return httpReply(200, SSE, events([['', part]]))
      return httpReply(200, JSON_TYPE, JSON.stringify(part))
    })
    const seen = await ask(gateway, question('gemini-4-argon', stream))
    checkFailed(t, seen, { name: form, kinds: ['upstream_busy'] })
    t.equal(seen.status, stream ? 200 : 429)
    if (stream) t.equal(seen.text, 'begun')
    t.equal(await series(gateway, 'sluice_inflight{upstream="google"}'), 0)
  })
}

void t.test('a refusal in a reply that pauses ends it, and nothing waits for its rest', async (t) => {
  for (const text of ['a good beginning, then bad', 'bad from the beginning']) {
    const { gateway, bodies } = await gatewayFor(
      t,
      'anthropic',
      () => {
        const [head = '', ...rest] = messageStream(messagePart(text, 'pause_turn')).split(
          /(?=event: content_block_stop)/,
        )
        return httpReply(200, SSE, head + rest.join(''))
      },
      `guardrails: { words: { patterns: [bad], on: [response], window_chars: 16, apply_to: { all: true } } }
on_disconnect: drain`,
    )
    const begun = text.startsWith('a')
    const seen = await ask(gateway, question('claude-sonnet-4-5', true))
    t.equal(seen.status, begun ? 200 : 400)
    if (begun) t.equal(seen.finish, 'content_filter')
    t.equal(bodies.length, 1)
    await eventually(() => gateway.lines.some((line) => 'outcome' in line), 'the exchange is over')
    t.match(lastLine(gateway), {
      outcome: 'guardrail_blocked',
      input_tokens: 10,
      output_tokens: 4,
    })
  }
})

void t.test('a whole reply that arrives as several streams is joined', async (t) => {
  watchProcess(t)
  const { gateway, bodies } = await gatewayFor(t, 'gemini', (turn) => {
    const last = chunk(` part ${turn}`, turn < 1 ? 'CONTINUATION' : 'STOP', `token-${turn}`)
    return httpReply(
      200,
      SSE,
      events([
        ['', chunk('A', null)],
        ['', last],
      ]),
    )
  })
  const seen = await ask(gateway, question('gemini-4-argon', false))
  t.ok(isComplete(seen), seen.body.slice(-300))
  t.equal(seen.text, 'A part 0A part 1')
  t.equal(bodies.length, 2)
  t.equal(objectOf(seen.data[0]?.usage).completion_tokens, 8)
})

void t.test("continuing does not exceed the client's limit", async (t) => {
  const { gateway, bodies } = await gatewayFor(t, 'gemini', () => {
    return httpReply(200, SSE, events([['', chunk('x', 'CONTINUATION', 'token')]]))
  })
  const body = question('gemini-4-argon', true, { max_completion_tokens: 8 })
  const seen = await ask(gateway, body)
  t.equal(seen.finish, 'length')
  t.equal(bodies.length, 2, 'two parts of four tokens')
})

void t.test('a client that leaves between the parts ends the exchange', async (t) => {
  watchProcess(t)
  const { gateway, upstream } = await gatewayFor(t, 'gemini', (turn) => {
    if (turn > 0) return ''
    return httpReply(200, SSE, events([['', chunk('begun', 'CONTINUATION', 'token')]]))
  })
  await ask(gateway, question('gemini-4-argon', true), 400)
  await eventually(() => lastLine(gateway)['outcome'] === 'client_gone', 'the client has left')
  await eventually(
    async () => (await series(gateway, 'sluice_inflight{upstream="google"}')) === 0,
    'nothing in flight',
  )
  await eventually(
    () => upstream.connections.some(({ closedMs }) => closedMs !== null),
    'the upstream connection is closed',
  )
})

void t.test('a stream that has begun cannot continue as JSON', async (t) => {
  const { gateway } = await gatewayFor(t, 'gemini', (turn) => {
    if (turn > 0) return httpReply(200, JSON_TYPE, JSON.stringify(chunk('more', 'STOP')))
    return httpReply(200, SSE, events([['', chunk('begun', 'CONTINUATION', 'token')]]))
  })
  const seen = await ask(gateway, question('gemini-4-argon', true))
  checkFailed(t, seen, { name: 'JSON', kinds: ['upstream_malformed'] })
})

void t.test('MAX_TOKENS with a continuation token ends the reply when the maximum is used up', async (t) => {
  const { gateway, bodies } = await gatewayFor(t, 'gemini', () => {
    return httpReply(200, JSON_TYPE, JSON.stringify(chunk('x', 'MAX_TOKENS', 'token')))
  })
  const seen = await ask(gateway, question('gemini-4-argon', false))
  t.equal(seen.finish, 'length')
  t.equal(bodies.length, 1)
})

void t.test('without a tool that Anthropic runs, no part is kept and no rest is requested', async (t) => {
  let requests = 0
  const upstream = await startSocketUpstream(t, ({ socket }) => {
    requests += 1
    socket.write(httpReply(200, SSE, messageStream(messagePart('.', 'pause_turn'))))
  })
  const gateway = await startGateway(t, { upstreams: { anthropic: upstream.url } })
  const seen = await ask(gateway, question('claude-sonnet-4-5', true))
  t.equal(seen.finish, 'stop')
  t.equal(requests, 1)
  t.equal(stringOf(lastLine(gateway)['finish_reason']), 'pause')
})

void t.test('a stream that gets a JSON reply is continued too, for any kind of parts', async (t) => {
  watchProcess(t)
  const forms = [
    (part: JsonObject) => httpReply(200, JSON_TYPE, JSON.stringify(part)),
    (part: JsonObject) => httpReply(200, JSON_TYPE, JSON.stringify([part])),
    (part: JsonObject) => httpReply(200, SSE, events([['', part]])),
  ]
  const { gateway, bodies } = await gatewayFor(t, 'gemini', (turn) => {
    const part = chunk(` part ${turn}`, turn < 2 ? 'CONTINUATION' : 'STOP', `token-${turn}`)
    return forms[turn]?.(part) ?? ''
  })
  const seen = await ask(gateway, question('gemini-4-argon', true, { ...USAGE }))
  t.ok(isComplete(seen), seen.body.slice(-300))
  t.equal(seen.text, ' part 0 part 1 part 2')
  t.equal(objectOf(bodies[2]).continuationToken, 'token-1')
  const usage = objectOf(seen.data.map((each) => each.usage).findLast(Boolean))
  t.equal(usage.completion_tokens, 12)
})
