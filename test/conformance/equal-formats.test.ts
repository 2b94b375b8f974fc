/**
 * Goal: between a client and an upstream of the same format the vendor judges, and no field is sent that
 * every vendor refuses for nothing: a free choice among tools without tools, and a call without arguments.
 * Method: bodies of each format through a gateway, and the body that the upstream gets.
 */
import t, { type Test } from 'tap'
import { objectOf, type JsonObject, type JsonValue } from '../../src/base/json.js'
import { usualReply } from '../gateway/platforms/capture.js'
import { startGateway } from '../helpers/gateway.js'
import { startRawUpstream } from '../helpers/raw-upstream.js'

type Format = 'chat' | 'responses' | 'messages' | 'gemini'

const PATHS: Readonly<Record<Format, string>> = {
  chat: '/v1/chat/completions',
  responses: '/v1/responses',
  messages: '/v1/messages',
  gemini: '/v1beta/models/gemini-2.5-flash:generateContent',
}
const MODELS: Readonly<Record<Format, string>> = {
  chat: 'gpt-4o',
  responses: 'gpt-4.1',
  messages: 'claude-sonnet-4-5',
  gemini: 'gemini-2.5-flash',
}
const FORMATS = ['chat', 'responses', 'messages', 'gemini'] as const

/** What an exchange led to: the status for the client, and the body that the upstream got. */
type Ask = (
  from: Format,
  to: Format,
  body: JsonObject,
) => Promise<{ status: number; sent: JsonObject | null }>

async function scene(t: Test): Promise<Ask> {
  const upstream = await startRawUpstream(t, usualReply)
  const { origin } = upstream
  const gateway = await startGateway(t, { upstreams: { openai: origin, anthropic: origin, gemini: origin } })
  return async (from, to, body) => {
    upstream.requests.length = 0
    const path = from === 'gemini' ? PATHS.gemini.replace(MODELS.gemini, MODELS[to]) : PATHS[from]
    const model =
      from === 'gemini' ? {} : { model: MODELS[to], ...(from === 'messages' && { max_tokens: 50 }) }
    const response = await fetch(gateway.origin + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.secret}`, 'content-type': 'application/json' },
      body: JSON.stringify({ ...model, ...body }),
    })
    await response.text()
    const sent = upstream.requests.at(-1)?.body.toString()
    return {
      status: response.status,
      sent: sent === undefined ? null : objectOf(JSON.parse(sent) as JsonValue),
    }
  }
}

/** A conversation with one turn of the user whose content is this. */
function asking(format: Format, content: JsonValue | undefined): JsonObject {
  const turn: JsonObject = { role: 'user', ...(content !== undefined && { content }) }
  if (format === 'responses') return { input: [{ type: 'message', ...turn }], store: false }
  if (format !== 'gemini') return { messages: [turn] }
  return { contents: [{ role: 'user', ...(Array.isArray(content) && { parts: content }) }] }
}

void t.test('a turn of the user without content is for the vendor to judge', async (t) => {
  const ask = await scene(t)
  for (const format of FORMATS) {
    for (const content of ['', null, undefined, []]) {
      const what = `${format} ${content === undefined ? 'missing' : JSON.stringify(content)}`
      const body = asking(format, content)
      const own = await ask(format, format, body)
      t.equal(own.status, 200, what)
      t.match(own.sent, body, what)
      // An upstream of OpenAI has both of its formats.
      for (const to of FORMATS.filter(
        (each) => each !== format && !(format === 'responses' && each === 'chat'),
      )) {
        t.equal((await ask(format, to, body)).status, 400, `${what} to ${to}`)
      }
    }
  }
})

void t.test('a turn without content among others does not reach other formats', async (t) => {
  const ask = await scene(t)
  for (const to of ['responses', 'messages', 'gemini'] as const) {
    for (const content of ['', null, []]) {
      const messages = [
        { role: 'system', content: null },
        { role: 'user', content: 'Hi' },
        { role: 'user', content },
      ]
      const { status, sent } = await ask('chat', to, { messages })
      t.equal(status, 200, to)
      t.equal([...JSON.stringify(sent).matchAll(/"role":"user"/g)].length, 1, to)
    }
    const call = { id: 'c', type: 'function', function: { name: 'f', arguments: null } }
    for (const result of [{ content: null }, {}, { content: '' }]) {
      const messages = [
        { role: 'user', content: 'Hi' },
        { role: 'assistant', tool_calls: [call] },
        { role: 'tool', tool_call_id: 'c', ...result },
      ]
      t.equal((await ask('chat', to, { messages })).status, 200, to)
      t.equal((await ask('chat', 'chat', { messages })).status, 200)
    }
  }
})

/** A choice among tools in each format, and whether it is one that tools are needed for. */
const CHOICES: Readonly<Record<Format, readonly JsonObject[]>> = {
  chat: [{ tool_choice: 'auto', parallel_tool_calls: true }, { tool_choice: 'none' }],
  responses: [
    { tool_choice: 'auto', parallel_tool_calls: false },
    { tool_choice: 'none', tools: [] },
  ],
  messages: [
    { tool_choice: { type: 'auto', disable_parallel_tool_use: true } },
    { tool_choice: { type: 'none' } },
  ],
  gemini: [
    { toolConfig: { functionCallingConfig: { mode: 'AUTO' } } },
    { tool_config: { function_calling_config: { mode: 'NONE' } }, tools: [] },
  ],
}

function greeting(format: Format): JsonObject {
  return asking(format, format === 'gemini' ? [{ text: 'Hi' }] : 'Hi')
}

void t.test('a free choice among tools is not sent without tools', async (t) => {
  const ask = await scene(t)
  const members = ['tool_choice', 'parallel_tool_calls', 'toolConfig', 'tool_config']
  for (const from of FORMATS) {
    for (const to of FORMATS) {
      for (const choice of CHOICES[from]) {
        const { status, sent } = await ask(from, to, { ...greeting(from), ...choice })
        t.equal(status, 200, `${from} to ${to}`)
        t.same(
          members.filter((name) => sent !== null && name in sent),
          [],
          `${from} to ${to}`,
        )
      }
    }
  }
  // These have tools elsewhere, or a meaning of their own.
  const kept: readonly (readonly [Format, JsonObject])[] = [
    [
      'messages',
      { tool_choice: { type: 'auto' }, mcp_servers: [{ type: 'url', name: 'm', url: 'https://a.example' }] },
    ],
    [
      'gemini',
      { toolConfig: { retrievalConfig: { languageCode: 'de' }, functionCallingConfig: { mode: 'AUTO' } } },
    ],
  ]
  for (const [format, more] of kept) {
    const { sent } = await ask(format, format, { ...greeting(format), ...more })
    const left = format === 'gemini' ? { toolConfig: { retrievalConfig: { languageCode: 'de' } } } : more
    t.match(sent, left, format)
    if (format === 'gemini') t.notMatch(JSON.stringify(sent), 'functionCallingConfig')
  }
})

void t.test('a call without arguments has an empty object', async (t) => {
  const ask = await scene(t)
  for (const given of [null, '', ' ', undefined]) {
    const args = given === undefined ? {} : { arguments: given }
    const call = { type: 'function_call', call_id: 'c', name: 'f', ...args }
    const output = { type: 'function_call_output', call_id: 'c', output: 'x' }
    const responses = { input: [{ role: 'user', content: 'Hi' }, call, output], store: false }
    const own = (await ask('responses', 'responses', responses)).sent
    t.match(own, { input: [{}, { arguments: '{}' }, {}] }, JSON.stringify(given))
    const chat = {
      messages: [
        { role: 'user', content: 'Hi' },
        { role: 'assistant', tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', ...args } }] },
        { role: 'tool', tool_call_id: 'c', content: 'x' },
      ],
    }
    const sent = (await ask('chat', 'chat', chat)).sent
    t.match(sent, { messages: [{}, { tool_calls: [{ function: { arguments: '{}' } }] }, {}] })
    if (given === ' ') continue
    const input = given === undefined ? {} : { input: given }
    const messages = {
      messages: [
        { role: 'user', content: 'Hi' },
        { role: 'assistant', content: [{ type: 'tool_use', id: 'c', name: 'f', ...input }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c', content: 'x' }] },
      ],
    }
    const { sent: passed } = await ask('messages', 'messages', messages)
    t.match(passed, { messages: [{}, { content: [{ input: {} }] }, {}] }, JSON.stringify(given))
    const { sent: translated } = await ask('messages', 'chat', messages)
    t.match(translated, { messages: [{}, { tool_calls: [{ function: { arguments: '{}' } }] }, {}] })
  }
})
