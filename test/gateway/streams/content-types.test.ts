/**
 * Goal: a reply is read as what it is, regardless of its content type.
 * Method: upstreams that send streams and whole replies of the chat format under each content type.
 */
import t from 'tap'
import { httpReply, startSocketUpstream } from '../../faults/socket-upstream.js'
import { startGateway } from '../../helpers/gateway.js'
import { startRawUpstream } from '../../helpers/raw-upstream.js'
import { AWS_AUTH } from '../platforms/capture.js'
import { ofToday } from '../../helpers/long-suite.js'

const chunk = (delta: object, finish_reason: string | null = null): string => {
  const choices = [{ index: 0, delta, finish_reason }]
  return JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices })
}
const USAGE = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }
const EVENTS = [
  chunk({ role: 'assistant', content: '' }),
  chunk({ content: 'Grüezi' }),
  chunk({}, 'stop'),
  JSON.stringify({
    id: 'c',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'm',
    choices: [],
    usage: USAGE,
  }),
  '[DONE]',
]
const STREAM = EVENTS.map((data) => `data: ${data}\n\n`).join('')
const LINES = EVENTS.map((data) => `data: ${data}\n`).join('')
const WHOLE = JSON.stringify({
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Grüezi' }, finish_reason: 'stop' }],
  usage: USAGE,
})

/** Content types, bodies, and how they are named. */
const REPLIES: readonly (readonly [name: string, type: string | null, body: string])[] = [
  ['events as JSON', 'application/json', STREAM],
  ['events as text', 'text/plain; charset=utf-8', STREAM],
  ['events as bytes', 'application/octet-stream', STREAM],
  ['events without a type', null, STREAM],
  ['events with a byte order mark', 'text/plain', `\uFEFF${STREAM}`],
  ['events after a comment', 'application/json', `: hello\n\n${STREAM}`],
  ['events with single line feeds', 'text/event-stream', LINES],
  ['events with single line feeds, as JSON', 'application/json', LINES],
  ['events in one array', 'application/json', `[${EVENTS.slice(0, -1).join(',')}]`],
  ['events in lines of JSON', 'application/x-ndjson', `${EVENTS.slice(0, -1).join('\n')}\n`],
  ['a whole reply in an array', 'application/json', `[${WHOLE}]`],
  ['JSON as events', 'text/event-stream', WHOLE],
  ['JSON as events, with a byte order mark', 'text/event-stream', `\uFEFF\n${WHOLE}`],
  ['JSON as text', 'text/plain', WHOLE],
  ['JSON without a type', null, WHOLE],
]

for (const [name, type, body] of REPLIES) {
  void t.test(name, async (t) => {
    const headers = type === null ? [] : [`content-type: ${type}`]
    const upstream = await startSocketUpstream(
      t,
      ({ socket }) => void socket.end(httpReply(200, headers, body)),
    )
    const gateway = await startGateway(t, { upstreams: { openai: upstream.url } })
    for (const path of ['/v1/chat/completions', '/v1/messages']) {
      const isStream = body.includes('data:')
      for (const stream of isStream ? [true] : [true, false]) {
        const messages = [{ role: 'user', content: 'hi' }]
        const response = await fetch(`${gateway.origin}${path}`, {
          method: 'POST',
          headers: { authorization: `Bearer ${gateway.secret}`, 'content-type': 'application/json' },
          body: JSON.stringify({ model: 'gpt-4o', messages, max_tokens: 9, stream }),
        })
        const text = await response.text()
        t.equal(response.status, 200, `${path} ${text}`)
        t.match(text, /Grüezi/)
        t.notMatch(text, /"error"/)
        const isEvents = response.headers.get('content-type')?.startsWith('text/event-stream') === true
        t.equal(isEvents, stream, path)
        if (!stream) continue
        t.match(text, path === '/v1/messages' ? /event: message_stop/ : /data: \[DONE\]\n\n/)
        t.notMatch(text, /\}\ndata:/, 'each event ends with a blank line')
      }
    }
  })
}

/** Bodies with status 200 that are no reply. */
const OTHERS = [
  '[{"error":{"message":"no quota left","code":429}}]',
  '[{"error":"no quota left"}]',
  '[{"detail":"no quota left"}]',
  '[[{"error":{"message":"no quota left"}}]]',
  '{"error":"no quota left"}\n{"done":true}\n',
  '{"error":{"message":"no quota left"',
  '<html><head><title>no quota left</title></head></html>',
  '{"code":7,"msg":"no quota left"}',
  '{"errors":["no quota left"]}',
  'data: {"error":"no quota left"}\n\n',
]

void t.test('the words of a body that is no reply reach the client and the log', async (t) => {
  const upstream = await startRawUpstream(t, () => ({ type: 'text/plain', chunks: [] }))
  const { origin } = upstream
  const auth = `auth: ${AWS_AUTH}, platform: bedrock, region: eu-west-1`
  const gateway = await startGateway(t, {
    upstreams: { openai: `${origin}/v1`, anthropic: origin, gemini: origin },
    cloud: `base_url: '${origin}', dialect: converse, ${auth}`,
    routes: '  - { model: nova, upstream: cloud }',
  })
  for (const type of ['application/json', 'text/plain', 'text/event-stream']) {
    for (const body of ofToday(OTHERS, 3)) {
      upstream.answer = () => ({ type, chunks: [body] })
      for (const model of ['gpt-4o', 'gpt-4.1', 'claude-sonnet-4-5', 'gemini-2.5-flash', 'nova']) {
        for (const stream of [false, true]) {
          const response = await gateway.chat({ model, stream, messages: [{ role: 'user', content: 'hi' }] })
          const name = `${type} ${model} ${String(stream)} ${body}`
          t.ok(response.status >= 400, name)
          t.match(await response.text(), /no quota left/, name)
          t.match(gateway.lines.at(-1)?.['upstream_message'], /no quota left/, name)
        }
      }
    }
  }
})

void t.test(
  'a text with status 200 may be the reply of a model, and is in no error and no log',
  async (t) => {
    const upstream = await startRawUpstream(t, () => ({ type: 'text/plain', chunks: [] }))
    const { origin } = upstream
    const gateway = await startGateway(t, {
      upstreams: { openai: `${origin}/v1`, anthropic: origin, gemini: origin },
    })
    for (const body of [
      '["her secret"]',
      '"her secret"',
      'her secret',
      '[ERROR] her secret',
      'data: her secret\n\n',
    ]) {
      upstream.answer = () => ({ type: 'text/event-stream', chunks: [body] })
      for (const model of ['gpt-4o', 'gpt-4.1', 'claude-sonnet-4-5', 'gemini-2.5-flash']) {
        for (const stream of [false, true]) {
          const response = await gateway.chat({ model, stream, messages: [{ role: 'user', content: 'hi' }] })
          const name = `${model} ${String(stream)} ${body}`
          t.notMatch(await response.text(), /her secret/, name)
          t.notMatch(JSON.stringify(gateway.lines.at(-1)), /her secret/, name)
        }
      }
    }
  },
)

void t.test('the words of a frame that is no chunk reach the client and the log', async (t) => {
  const upstream = await startRawUpstream(t, () => ({ type: 'text/event-stream', chunks: [] }))
  const { origin } = upstream
  const gateway = await startGateway(t, {
    upstreams: { openai: `${origin}/v1`, anthropic: origin, gemini: origin },
  })
  const words = ['<title>no quota left</title>', '{"error":{"code":"x","metadata":{"raw":"no quota left"}}}']
  const paths = ['/v1/chat/completions', '/v1/messages', '/v1/responses']
  for (const model of ofToday(['gpt-4o', 'gpt-4.1', 'claude-sonnet-4-5', 'gemini-2.5-flash'], 2)) {
    const google = `/v1beta/models/${model}:streamGenerateContent?alt=sse`
    for (const path of [...paths, google]) {
      const ask = async (data: string): Promise<string> => {
        const chunks = [`: hello\n\ndata: ${data}\n\ndata: [DONE]\n\n`]
        upstream.answer = () => ({ type: 'text/event-stream', chunks })
        const messages = [{ role: 'user', content: 'hi' }]
        const input = path === '/v1/responses' ? { input: 'hi' } : { messages, max_tokens: 9 }
        const contents = [{ role: 'user', parts: [{ text: 'hi' }] }]
        const body = path === google ? { contents } : { model, stream: true, ...input }
        const response = await fetch(gateway.origin + path, {
          method: 'POST',
          headers: { authorization: `Bearer ${gateway.secret}`, 'content-type': 'application/json' },
          body: JSON.stringify(body),
        })
        return response.text()
      }
      for (const data of words) {
        t.match(await ask(data), /no quota left/, `${model} ${path} ${data}`)
        t.match(gateway.lines.at(-1)?.['upstream_message'], /no quota left/, `${model} ${path} ${data}`)
      }
      await ask('ontent":"a secret of the model"},"finish_reason":null}]}')
      t.notMatch(JSON.stringify(gateway.lines.at(-1)), /a secret/, 'a part of a chunk')
    }
  }
})

void t.test('the log has only the beginning of a text that may be the output of a model', async (t) => {
  const text = `Once ${'upon '.repeat(200)}a time`
  const upstream = await startRawUpstream(t, () => ({ type: 'text/plain', chunks: [text] }))
  const gateway = await startGateway(t, { upstreams: { openai: `${upstream.origin}/v1` } })
  const response = await gateway.chat({ model: 'gpt-4o', messages: [{ role: 'user', content: 'hi' }] })
  t.equal(response.status, 502)
  t.notMatch(await response.text(), /a time/)
  t.notMatch(JSON.stringify(gateway.lines), /a time/)
})

void t.test('a page is no reply', async (t) => {
  const page = httpReply(200, ['content-type: text/html'], '<html>Sign in</html>')
  const upstream = await startSocketUpstream(t, ({ socket }) => void socket.end(page))
  const gateway = await startGateway(t, { upstreams: { openai: upstream.url } })
  const messages = [{ role: 'user', content: 'hi' }]
  const response = await gateway.chat({ model: 'gpt-4o', messages, stream: true })
  t.equal(response.status, 502)
  t.match(await response.text(), /unexpected content type/)
})
