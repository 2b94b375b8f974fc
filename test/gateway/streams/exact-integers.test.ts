/**
 * Goal: integers beyond 2^53 in inputs and schemas of tools keep every digit between all formats, in requests
 * and in replies, whole and streamed.
 * Method: requests with calls in the history to upstreams that record the bytes, and replies with calls.
 */
import t, { type Test } from 'tap'
import { startGateway, type TestGateway } from '../../helpers/gateway.js'
import { startRawUpstream, type Canned, type RawUpstream } from '../../helpers/raw-upstream.js'

const LONG = '12345678901234567890'
const INPUT = `{"id":${LONG},"exact":9007199254740993}`
const SCHEMA = `{"type":"object","properties":{"id":{"type":"integer","enum":[${LONG}]}}}`
const MODELS = {
  openai: 'gpt-4o',
  responses: 'gpt-4.1',
  anthropic: 'claude-sonnet-4-5',
  gemini: 'gemini-2.5-flash',
}

/** Requests with a call in the history, as bytes: by path. */
function requests(model: string): Record<string, string> {
  const quoted = JSON.stringify(INPUT)
  return {
    '/v1/messages': `{"model":"${model}","max_tokens":99,"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"find","input":${INPUT}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"ok"}]}],"tools":[{"name":"find","input_schema":${SCHEMA}}]}`,
    [`/v1beta/models/${model}:generateContent`]: `{"contents":[{"role":"user","parts":[{"text":"hi"}]},{"role":"model","parts":[{"functionCall":{"name":"find","args":${INPUT}}}]},{"role":"user","parts":[{"functionResponse":{"name":"find","response":{"a":${LONG},"b":1}}}]}],"tools":[{"functionDeclarations":[{"name":"find","parametersJsonSchema":${SCHEMA}}]}]}`,
    '/v1/chat/completions': `{"model":"${model}","messages":[{"role":"user","content":"hi"},{"role":"assistant","tool_calls":[{"id":"call_1","type":"function","function":{"name":"find","arguments":${quoted}}}]},{"role":"tool","tool_call_id":"call_1","content":"ok"}],"tools":[{"type":"function","function":{"name":"find","parameters":${SCHEMA}}}]}`,
    '/v1/responses': `{"model":"${model}","input":[{"role":"user","content":"hi"},{"type":"function_call","call_id":"call_1","name":"find","arguments":${quoted}},{"type":"function_call_output","call_id":"call_1","output":"ok"}],"tools":[{"type":"function","name":"find","parameters":${SCHEMA}}]}`,
  }
}

async function start(
  t: Test,
  answer: RawUpstream['answer'],
): Promise<{ gateway: TestGateway; upstream: RawUpstream }> {
  const upstream = await startRawUpstream(t, answer)
  const { origin } = upstream
  const upstreams = {
    openai: `${origin}/v1`,
    anthropic: `${origin}/v1`,
    gemini: `${origin}/v1beta`,
  }
  return { gateway: await startGateway(t, { upstreams }), upstream }
}

async function post(
  { origin, secret }: TestGateway,
  path: string,
  body: string,
): Promise<{ status: number; text: string }> {
  const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
  const response = await fetch(`${origin}${path}`, { method: 'POST', headers, body })
  return { status: response.status, text: await response.text() }
}

void t.test('requests', async (t) => {
  const { gateway, upstream } = await start(t, () => ({ type: 'application/json', chunks: ['{}'] }))
  for (const [name, model] of Object.entries(MODELS)) {
    for (const [path, body] of Object.entries(requests(model))) {
      const before = upstream.requests.length
      const { text } = await post(gateway, path, body)
      t.ok(upstream.requests.length > before, `${path} to ${name}: ${text}`)
      const sent = (upstream.requests[before]?.body.toString() ?? '').replaceAll('\\"', '"')
      t.ok(sent.includes(`"id":${LONG}`), `${path} to ${name}: ${sent}`)
      t.ok(sent.includes('"exact":9007199254740993'), `${path} to ${name}`)
      t.ok(sent.includes(`[${LONG}]`), `${path} to ${name}: the schema ${sent}`)
      t.notMatch(sent, /\uFDD0|\\ufdd0/i)
      if (path.includes('generateContent')) t.ok(sent.includes(`"a":${LONG}`), 'the result')
    }
  }
})

void t.test('a tool with members that OpenAI refuses keeps the digits of its schema', async (t) => {
  const { gateway, upstream } = await start(t, () => ({ type: 'application/json', chunks: ['{}'] }))
  const tool = (members: string): string =>
    `{"type":"function","function":{"name":"find","parameters":${SCHEMA}${members}}}`
  const body = (tools: string): string =>
    `{"model":"gpt-4o","messages":[{"role":"user","content":"hi"}],"tools":[${tools}]}`
  await post(gateway, '/v1/chat/completions', body(tool(',"cache_control":{"type":"ephemeral"}')))
  t.equal(upstream.requests[0]?.body.toString(), body(tool('')))
})

const USAGE = '"usage":{"input_tokens":5,"output_tokens":5}'
const CALL = `{"type":"tool_use","id":"toolu_1","name":"find","input":${INPUT}}`
const START = `{"type":"message","role":"assistant","id":"msg_1","model":"m","stop_reason":null,${USAGE}`
const GEMINI = `{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"find","args":${INPUT}}}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":5}}`

/** Replies with one call whose input is an object, whole and as a stream; and Gemini's stream as an array. */
const REPLIES: [string, Canned, boolean][] = [
  [
    MODELS.anthropic,
    {
      type: 'application/json',
      chunks: [`${START.replace('null', '"tool_use"')},"content":[${CALL}]}`],
    },
    false,
  ],
  [
    MODELS.anthropic,
    {
      type: 'text/event-stream',
      chunks: [
        `event: message_start\ndata: {"type":"message_start","message":${START},"content":[]}}\n\n`,
        `event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":${CALL}}\n\n`,
        'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n',
        `event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"tool_use"},${USAGE}}\n\n`,
        'event: message_stop\ndata: {"type":"message_stop"}\n\n',
      ],
    },
    true,
  ],
  [MODELS.gemini, { type: 'application/json', chunks: [GEMINI] }, false],
  [MODELS.gemini, { type: 'text/event-stream', chunks: [`data: ${GEMINI}\n\n`] }, true],
  [MODELS.gemini, { type: 'application/json', chunks: [`[${GEMINI}]`] }, true],
]

void t.test('replies', async (t) => {
  let canned: Canned | undefined
  const { gateway } = await start(t, () => canned ?? { type: 'text/plain', chunks: [] })
  const tools = {
    '/v1/chat/completions': `"tools":[{"type":"function","function":{"name":"find"}}]`,
    '/v1/responses': `"tools":[{"type":"function","name":"find","parameters":null}]`,
    '/v1/messages': `"max_tokens":99,"tools":[{"name":"find","input_schema":{"type":"object"}}]`,
  }
  for (const [model, reply, stream] of REPLIES) {
    canned = reply
    for (const [path, members] of Object.entries(tools)) {
      const turn = '[{"role":"user","content":"hi"}]'
      const input = path === '/v1/responses' ? `"input":${turn}` : `"messages":${turn}`
      const body = `{"model":"${model}","stream":${stream},${input},${members}}`
      const { status, text } = await post(gateway, path, body)
      t.equal(status, 200, text)
      const plain = text.replaceAll('\\"', '"')
      t.ok(plain.includes(`"id":${LONG},"exact":9007199254740993`), `${model} ${path} ${text}`)
    }
    const method = stream ? 'streamGenerateContent?alt=sse' : 'generateContent'
    const body = `{"contents":[{"role":"user","parts":[{"text":"hi"}]}],"tools":[{"functionDeclarations":[{"name":"find"}]}]}`
    const { text } = await post(gateway, `/v1beta/models/${model}:${method}`, body)
    t.ok(text.includes(`"id":${LONG}`), `${model} gemini ${text}`)
  }
})
