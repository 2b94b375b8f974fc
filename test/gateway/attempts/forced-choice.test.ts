/**
 * Goal: a choice that demands a call gives a reply with a call, or an error, on every model of Anthropic.
 * Method: emulated models that reject a forced choice, and an upstream that never calls.
 */
import t from 'tap'
import { arrayOf, objectOf, type JsonObject } from '../../../src/base/json.js'
import { startGateway, type TestGateway } from '../../helpers/gateway.js'
import { rowsOf } from '../../helpers/ledger.js'
import { startRawUpstream } from '../../helpers/raw-upstream.js'

const gateway = await startGateway(t)
const MODEL = 'claude-sonnet-5-5'
const PROMPT = 'Good morning.'
const SCHEMA = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
const TOOLS = [{ type: 'function', function: { name: 'final_result', parameters: SCHEMA } }]

/** A chat that demands a call. */
function chat(more: JsonObject = {}): JsonObject {
  const messages = [{ role: 'user', content: PROMPT }]
  return { model: MODEL, messages, tools: TOOLS, tool_choice: 'required', ...more }
}

async function post(
  { origin, secret }: TestGateway,
  path: string,
  body: JsonObject,
): Promise<{ status: number; text: string; headers: Headers }> {
  const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
  const init = { method: 'POST', headers, body: JSON.stringify(body) }
  const response = await fetch(`${origin}${path}`, init)
  return { status: response.status, text: await response.text(), headers: response.headers }
}

void t.test('a reply without a call is requested again and the client gets a call', async (t) => {
  const named = { type: 'function', function: { name: 'final_result' } }
  const declared = [{ functionDeclarations: [{ name: 'final_result', parameters: SCHEMA }] }]
  const contents = [{ role: 'user', parts: [{ text: PROMPT }] }]
  const mode = { functionCallingConfig: { mode: 'ANY' } }
  const flat = [{ type: 'function', name: 'final_result', parameters: SCHEMA }]
  const responses = { model: MODEL, input: PROMPT, tools: flat, tool_choice: 'required' }
  const gemini = { contents, tools: declared, toolConfig: mode }
  const rows: [string, JsonObject, RegExp][] = [
    ['/v1/chat/completions', chat(), /"finish_reason":"tool_calls"/],
    ['/v1/chat/completions', chat({ stream: true }), /"finish_reason":"tool_calls"/],
    ['/v1/chat/completions', chat({ tool_choice: named }), /"finish_reason":"tool_calls"/],
    ['/v1/responses', responses, /"type":"function_call"/],
    ['/v1/responses', { ...responses, stream: true }, /"type":"function_call"/],
    [`/v1beta/models/${MODEL}:generateContent`, gemini, /"functionCall"/],
    [`/v1beta/models/${MODEL}:streamGenerateContent`, gemini, /"functionCall"/],
  ]
  for (const [path, body, call] of rows) {
    const before = gateway.emulator.ledger.length
    const { status, text, headers } = await post(gateway, path, body)
    t.equal(status, 200, `${path} ${text}`)
    t.match(text, call)
    t.match(text, 'final_result')
    t.match(headers.get('x-sluice-lost'), /tool_choice|toolConfig/)
    t.match(headers.get('x-sluice-attempts') ?? '', /^anthropic:\w+, anthropic:ok/)
    const sent = gateway.emulator.ledger.slice(before).map(({ body }) => objectOf(body))
    t.equal(sent.length, 2, 'two requests')
    t.match(JSON.stringify(sent[0]?.system), 'Reply by calling one of the tools.')
    const last = arrayOf(objectOf(arrayOf(sent[1]?.messages).at(-1)).content)
    t.match(last, [{ text: PROMPT }, { text: /^\s*Call one of the tools now/ }])
  }
})

void t.test('thinking with a budget is disabled for a forced call', async (t) => {
  const { status, text, headers } = await post(
    gateway,
    '/v1/chat/completions',
    chat({ model: 'claude-haiku-4-5', reasoning_effort: 'high' }),
  )
  t.equal(status, 200)
  t.match(text, /"finish_reason":"tool_calls"/)
  t.equal(headers.get('x-sluice-lost'), 'reasoning_effort')
  t.match(gateway.emulator.ledger.at(-1)?.body, {
    thinking: { type: 'disabled' },
    tool_choice: { type: 'any' },
  })
})

/** A reply to a whole request, without a call. */
const TALK = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: MODEL,
  content: [{ type: 'text', text: 'Good morning to you.' }],
  stop_reason: 'end_turn',
  usage: { input_tokens: 100, output_tokens: 20 },
}

function talkStream(): string {
  const { content, ...message } = TALK
  const [block] = content
  const events: [string, object][] = [
    ['message_start', { message: { ...message, content: [], stop_reason: null } }],
    ['content_block_start', { index: 0, content_block: { type: 'text', text: '' } }],
    ['content_block_delta', { index: 0, delta: { type: 'text_delta', text: block?.text } }],
    ['content_block_stop', { index: 0 }],
    ['message_delta', { delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 20 } }],
    ['message_stop', {}],
  ]
  return events
    .map(([name, data]) => `event: ${name}\ndata: ${JSON.stringify({ type: name, ...data })}\n\n`)
    .join('')
}

void t.test('a model that never calls is an error, and both replies are charged', async (t) => {
  for (const stream of [false, true]) {
    const upstream = await startRawUpstream(t, () =>
      stream
        ? { type: 'text/event-stream', chunks: [talkStream()] }
        : { type: 'application/json', chunks: [JSON.stringify(TALK)] },
    )
    const own = await startGateway(t, { upstreams: { anthropic: `${upstream.origin}/v1` } })
    const { status, text } = await post(own, '/v1/chat/completions', chat({ stream, max_tokens: 50 }))
    t.equal(status, 400, text)
    t.match(JSON.parse(text), {
      error: { kind: 'untranslatable', param: 'tool_choice', message: /replied without a call/ },
    })
    t.equal(upstream.requests.length, 2)
    const [entry] = await rowsOf(own)
    t.match(entry, { usage: { input: 200, output: 40 }, source: 'reported' })
    t.ok((entry?.costNanoUsd ?? 0) > 0)
  }
})

void t.test('a reply that ends at its limit passes without a call', async (t) => {
  const upstream = await startRawUpstream(t, () => ({
    type: 'application/json',
    chunks: [JSON.stringify({ ...TALK, stop_reason: 'max_tokens' })],
  }))
  const own = await startGateway(t, { upstreams: { anthropic: `${upstream.origin}/v1` } })
  const { status, text } = await post(own, '/v1/chat/completions', chat({ max_tokens: 20 }))
  t.equal(status, 200)
  t.match(text, 'Good morning to you.')
  t.match(text, /"finish_reason":"length"/)
})
