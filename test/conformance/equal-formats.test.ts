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
  chat: 'own-model',
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
) => Promise<{ status: number; text: string; sent: JsonObject | null }>

async function scene(t: Test): Promise<Ask> {
  const upstream = await startRawUpstream(t, usualReply)
  const { origin } = upstream
  const gateway = await startGateway(t, {
    upstreams: { openai: origin, anthropic: origin, gemini: origin },
    cloud: `dialect: openai-chat, base_url: "${origin}", api_key: k`,
    routes: `  - { model: ${MODELS.chat}, upstream: cloud }`,
  })
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
    const text = await response.text()
    const sent = upstream.requests.at(-1)?.body.toString()
    return {
      status: response.status,
      text,
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

/** Instructions beside turns without content, or beside none. */
const INSTRUCTIONS: Readonly<Record<Format, readonly JsonObject[]>> = {
  chat: [{}, { content: '' }, { content: [] }, { content: null }].map((turn) => ({
    messages: [
      { role: 'system', content: 'Tell a joke.' },
      { role: 'user', ...turn },
    ],
  })),
  responses: [{}, { input: '' }, { input: [] }, { input: null }, asking('responses', '')].map((input) => ({
    instructions: 'Tell a joke.',
    ...input,
  })),
  messages: [[], [{ role: 'user', content: '' }], [{ role: 'user', content: [] }]].map((messages) => ({
    system: 'Tell a joke.',
    messages,
  })),
  gemini: [{}, { contents: [] }, asking('gemini', []), asking('gemini', [{ text: '' }])].map((contents) => ({
    systemInstruction: { parts: [{ text: 'Tell a joke.' }] },
    ...contents,
  })),
}

void t.test('instructions alone are the turn of the user where the vendor needs one', async (t) => {
  const ask = await scene(t)
  for (const from of FORMATS) {
    for (const body of INSTRUCTIONS[from]) {
      const what = `${from} ${JSON.stringify(body)}`
      for (const to of ['messages', 'gemini'] as const) {
        if (to === from) continue
        const { status, sent } = await ask(from, to, body)
        t.equal(status, 200, `${what} to ${to}`)
        t.match(
          JSON.stringify(sent),
          /"role":"user",[^[]*\[\{"text":"Tell a joke\."|"user","content":\[\{"type":"text","text":"Tell a joke\."/,
        )
        t.notMatch(sent, /system/)
      }
      for (const to of ['chat', from] as const)
        t.equal((await ask(from, to, body)).status, 200, `${what} to ${to}`)
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

const HI = { role: 'user', content: 'Hi' }
const RUN = { type: 'function', function: { name: 'f' } }

/** Members that break a rule of the format's own vendor, and the path that other upstreams refuse. */
const VENDORS_OWN: Readonly<Record<Format, readonly (readonly [JsonObject, param: string])[]>> = {
  chat: [
    [{ temperature: 3 }, 'temperature'],
    [{ stop: ['a', 'b', 'c', 'd', 'e'] }, 'stop'],
    [{ reasoning_effort: 'default', top_logprobs: 50 }, 'reasoning_effort'],
    [{ response_format: { type: 'grammar', grammar: 'root' } }, 'response_format.type'],
    [{ tools: [RUN, { type: 'web_search', web_search: {} }] }, 'tools[1].type'],
    [{ tools: [RUN], tool_choice: 'validated' }, 'tool_choice'],
    [{ messages: [{ role: 'reminder', content: 'x' }, HI] }, 'messages[0].role'],
    [
      { messages: [{ role: 'user', content: [{ type: 'scene_url', scene_url: { url: 'data:,x' } }] }] },
      'messages[0].content[0].type',
    ],
    [
      { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'QUJD' } }] }] },
      'messages[0].content[0].image_url.url',
    ],
    [
      { messages: [HI, { role: 'assistant', tool_calls: [{ ...RUN, id: 'c', type: 'builtin' }] }] },
      'messages[1].tool_calls[0].type',
    ],
  ],
  responses: [
    [{ reasoning: { effort: 'ultra' } }, 'reasoning.effort'],
    [{ text: { verbosity: 'max', format: { type: 'text' } } }, 'text.verbosity'],
    [{ input: [{ role: 'critic', content: 'x' }] }, 'input[0].role'],
    [{ input: [{ role: 'user', content: [{ type: 'input_scene' }] }] }, 'input[0].content[0].type'],
  ],
  messages: [
    [{ temperature: 1.5 }, 'temperature'],
    [{ output_config: { effort: 'ultra' } }, 'output_config.effort'],
    [{ thinking: { type: 'turbo' } }, 'thinking.type'],
    [
      {
        messages: [{ role: 'user', content: [{ type: 'text', text: 'x', cache_control: { type: 'long' } }] }],
      },
      'messages[0].content[0].cache_control.type',
    ],
  ],
  gemini: [
    [{ generationConfig: { temperature: 3 } }, 'generationConfig.temperature'],
    [{ generation_config: { topK: 1.5 } }, 'generationConfig.topK'],
    [{ contents: [{ role: 'critic', parts: [{ text: 'x' }] }] }, 'contents[0].role'],
  ],
}

void t.test('a range, word or type outside of the format is for its vendor to judge', async (t) => {
  const ask = await scene(t)
  for (const from of FORMATS) {
    for (const [members, param] of VENDORS_OWN[from]) {
      const body = { ...greeting(from), ...members }
      const own = await ask(from, from, body)
      t.equal(own.status, 200, `${from}: ${param}`)
      t.match(own.sent, members, `${from}: ${param}`)
      const to = from === 'messages' ? 'gemini' : 'messages'
      const other = await ask(from, to, body)
      t.equal(other.status, 400, `${from} to ${to}: ${param}`)
      t.match(other.text, from === 'gemini' ? `"field":"${param}"` : `"param":"${param}"`)
    }
  }
})

void t.test('what routes, prices or owns is checked in every format', async (t) => {
  const ask = await scene(t)
  const checked: readonly (readonly [Format, JsonObject])[] = [
    ['chat', { n: 200 }],
    ['chat', { max_tokens: '10' }],
    ['chat', { api_base: 'http://127.0.0.1:1/' }],
    ['chat', { tools: Array.from({ length: 1_025 }, () => RUN) }],
    ['responses', { input: [{ type: 'item_reference', id: 'msg_of_another' }] }],
    ['responses', { conversation: 'conv_1' }],
    ['messages', { service_tier: 'fast' }],
    ['gemini', { generationConfig: { candidateCount: 20 } }],
  ]
  for (const [format, members] of checked) {
    const { status, sent } = await ask(format, format, { ...greeting(format), ...members })
    t.ok(
      status >= 400 && status < 500 && sent === null,
      `${format}: ${Object.keys(members).join()} ${status}`,
    )
  }
})
