/**
 * Goal: the emulated Anthropic and Gemini reply to and refuse the same requests as the real ones.
 * Method: requests over fetch, one table of refusals per provider; replies are compared field by field.
 */
import t from 'tap'
import { arrayOf, objectOf, stringOf } from '../../src/base/json.js'
import { startUpstream } from '../helpers/upstream.js'
import type { JsonObject } from '../../src/base/json.js'
import type { Emulator } from '../../src/emulator/server.js'

interface Answered {
  readonly status: number
  readonly body: JsonObject
}

async function post(url: string, headers: Record<string, string>, body: object): Promise<Answered> {
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })
  return { status: response.status, body: objectOf(await response.json()) }
}

const VERSION = { 'anthropic-version': '2023-06-01' }
const KEY = { 'x-api-key': 'k', ...VERSION }

function claude({ baseUrls }: Emulator, body: object, headers?: Record<string, string>): Promise<Answered> {
  const messages = [{ role: 'user', content: 'Hello' }]
  const base = { model: 'claude-sonnet-4-5', max_tokens: 500, messages }
  return post(`${baseUrls.anthropic}/messages`, headers ?? KEY, { ...base, ...body })
}

const MODEL = 'gemini-2.5-flash'

interface GeminiOptions {
  readonly model?: string
  readonly headers?: Record<string, string>
}

function gemini(
  { baseUrls }: Emulator,
  body: object,
  { model = MODEL, headers = { 'x-goog-api-key': 'k' } }: GeminiOptions = {},
): Promise<Answered> {
  const contents = [{ role: 'user', parts: [{ text: 'Hello' }] }]
  const url = `${baseUrls.gemini}/models/${model}:generateContent`
  return post(url, headers, { contents, ...body })
}

const SCHEMA = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
const CLOSED = { ...SCHEMA, additionalProperties: false }
const CALL = { type: 'tool_use', id: 'toolu_1', name: 'get_weather', input: { city: 'Paris' } }

void t.test('requests that Anthropic refuses get its errors', async (t) => {
  const emulator = await startUpstream(t)
  const user = { role: 'user', content: 'hi' }
  const answer = { type: 'tool_result', tool_use_id: 'toolu_1', content: 'rain' }
  const refusals: [object, number, string, RegExp][] = [
    [{ model: undefined }, 400, 'invalid_request_error', /^model: Field required/],
    [{ model: 'claude-unknown' }, 404, 'not_found_error', /^model: claude-unknown$/],
    [{ max_tokens: undefined }, 400, 'invalid_request_error', /^max_tokens: Field required/],
    [{ messages: [] }, 400, 'invalid_request_error', /at least one message/],
    [{ frequency_penalty: 1 }, 400, 'invalid_request_error', /Extra inputs are not permitted/],
    [{ temperature: 1.5 }, 400, 'invalid_request_error', /range: 0..1/],
    [{ messages: [{ role: 'tool', content: 'x' }] }, 400, 'invalid_request_error', /Unexpected role/],
    [{ messages: [{ role: 'user', content: '' }] }, 400, 'invalid_request_error', /non-empty/],
    [{ messages: [{ role: 'user', content: [answer] }] }, 400, 'invalid_request_error', /unexpected/],
    [
      { messages: [user, { role: 'assistant', content: [CALL] }, user] },
      400,
      'invalid_request_error',
      /`tool_use` ids were found without/,
    ],
    [{ thinking: { type: 'enabled', budget_tokens: 100 } }, 400, 'invalid_request_error', /budget_tokens/],
    [
      {
        model: 'claude-opus-5-5',
        tools: [{ name: 'f', input_schema: SCHEMA }],
        tool_choice: { type: 'any' },
      },
      400,
      'invalid_request_error',
      /not supported for this model/,
    ],
  ]
  for (const [schema, message] of [
    [SCHEMA, /'additionalProperties' must be explicitly set to false/],
    [{ anyOf: [CLOSED] }, /root must be/],
    [{ ...CLOSED, properties: { list: { type: 'array', items: SCHEMA } } }, /must be explicitly/],
  ] as const) {
    const format = { type: 'json_schema', schema }
    refusals.push([{ output_config: { format } }, 400, 'invalid_request_error', message])
  }
  for (const [body, status, type, message] of refusals) {
    t.match(
      await claude(emulator, body),
      { status, body: { type: 'error', error: { type, message }, request_id: /^req_/ } },
      JSON.stringify(body),
    )
  }
  const unauthorised = { status: 401, body: { error: { type: 'authentication_error' } } }
  t.match(await claude(emulator, {}, VERSION), unauthorised)
  t.match(await claude(emulator, {}, { 'x-api-key': 'invalid', ...VERSION }), unauthorised)
  t.match(await claude(emulator, {}, { 'x-api-key': 'k' }), {
    status: 400,
    body: { error: { message: /anthropic-version/ } },
  })
  const bearer = { authorization: 'Bearer k', 'anthropic-version': '2026-10-21' }
  t.match(await claude(emulator, {}, bearer), { status: 200 })
  t.match(await claude(emulator, { temperature: 1 }, bearer), {
    status: 400,
    body: { error: { message: 'temperature: Extra inputs are not permitted' } },
  })
  t.match(await claude(emulator, { temperature: 1 }), { status: 200 })
})

void t.test('Anthropic replies with text, calls, thinking, JSON and its own stop reasons', async (t) => {
  const emulator = await startUpstream(t)
  const ask = async (body: object): Promise<JsonObject> => (await claude(emulator, body)).body
  const user = (content: unknown): object => ({ role: 'user', content })
  const tools = ['get_weather', 'get_time'].map((name) => ({ name, input_schema: SCHEMA }))
  t.match(await ask({ messages: [user('both get_weather and get_time in Rome')], tools }), {
    stop_reason: 'tool_use',
    content: [
      { type: 'tool_use', id: /^toolu_01\w{22}$/, name: 'get_weather', input: { city: 'Rome' } },
      { type: 'tool_use', name: 'get_time' },
    ],
  })
  const result = {
    type: 'tool_result',
    tool_use_id: 'toolu_1',
    content: [{ type: 'text', text: 'rain' }],
  }
  const turns = [user('weather?'), { role: 'assistant', content: [CALL] }, user([result])]
  t.match(await ask({ messages: turns, tools }), {
    stop_reason: 'end_turn',
    content: [{ text: /get_weather returned: “rain”/ }],
  })
  t.match(await ask({ max_tokens: 2 }), {
    stop_reason: 'max_tokens',
    usage: { output_tokens: 2 },
  })
  t.match(await ask({ stop_sequences: ['You'] }), {
    stop_reason: 'stop_sequence',
    stop_sequence: 'You',
  })
  t.match(await ask({ max_tokens: 3000, thinking: { type: 'enabled', budget_tokens: 1024 } }), {
    content: [{ type: 'thinking', thinking: /\w/, signature: /^[\w+/]+=*$/ }, { type: 'text' }],
    usage: { output_tokens_details: { thinking_tokens: Number } },
  })
  const json = await ask({ output_config: { format: { type: 'json_schema', schema: CLOSED } } })
  const text = stringOf(objectOf(arrayOf(json.content)[0]).text) ?? ''
  t.match(JSON.parse(text), { city: String })
  const image = {
    type: 'image',
    source: { type: 'base64', media_type: 'image/webp', data: 'AA' },
  }
  t.match(await ask({ messages: [user([image, { type: 'text', text: 'see' }])] }), {
    content: [{ text: /1 image \(image\/webp\)/ }],
  })
})

void t.test('requests that Gemini refuses get its errors', async (t) => {
  const emulator = await startUpstream(t)
  const turn = (role: string, part: object): object => ({ role, parts: [part] })
  const call = { functionCall: { name: 'f', args: {} } }
  const answer = { functionResponse: { name: 'f', response: { output: 'x' } } }
  const refusals: [object, RegExp][] = [
    [{ contents: [] }, /contents is not specified/],
    [{ contents: [turn('assistant', { text: 'hi' })] }, /^Please use a valid role: user, model\.$/],
    [{ contents: [turn('user', answer)] }, /function response turn comes immediately after/],
    [
      { contents: [turn('model', call), turn('user', { text: 'hi' })] },
      /function call turn comes immediately/,
    ],
    [{ messages: [] }, /Unknown name "messages"/],
    [{ generationConfig: { max_tokens: 3 } }, /Unknown name "max_tokens"/],
    [{ generationConfig: { temperature: 3 } }, /temperature value of 3/],
    [
      { generationConfig: { thinkingConfig: { thinkingBudget: 1, thinkingLevel: 'low' } } },
      /only one of thinking budget and thinking level/,
    ],
  ]
  for (const [body, message] of refusals) {
    t.match(
      await gemini(emulator, body),
      { status: 400, body: { error: { code: 400, status: 'INVALID_ARGUMENT', message } } },
      JSON.stringify(body),
    )
  }
  for (const headers of [{}, { 'x-goog-api-key': 'invalid' }]) {
    t.match(await gemini(emulator, {}, { headers }), {
      status: 400,
      body: { error: { details: [{ reason: 'API_KEY_INVALID' }] } },
    })
  }
  t.match(await gemini(emulator, {}, { model: 'gemini-none' }), {
    status: 404,
    body: { error: { status: 'NOT_FOUND', message: /^models\/gemini-none is not found/ } },
  })
})

void t.test('Gemini replies with text, calls, thoughts, JSON and its own finish reasons', async (t) => {
  const emulator = await startUpstream(t)
  const ask = async (body: object, model = MODEL): Promise<JsonObject> => {
    const { candidates } = (await gemini(emulator, body, { model })).body
    return objectOf(arrayOf(candidates)[0])
  }
  const declarations = [{ name: 'get_weather', parameters: { ...SCHEMA, type: 'OBJECT' } }]
  const tools = [{ function_declarations: declarations }]
  const contents = [{ role: 'user', parts: [{ text: 'get weather in Oslo' }] }]
  t.match(await ask({ contents, tools }), {
    finishReason: 'STOP',
    content: { parts: [{ functionCall: { name: 'get_weather', args: { city: 'Oslo' } } }] },
  })
  t.match(await ask({ contents, tools }, 'gemini-3-flash-preview'), {
    content: { parts: [{ thoughtSignature: /^[\w+/]+=*$/ }] },
  })
  const none = { functionCallingConfig: { mode: 'NONE' } }
  t.match(await ask({ contents, tools, toolConfig: none }), {
    content: { parts: [{ text: /\w/ }] },
  })
  const turns = [
    ...contents,
    { role: 'model', parts: [{ functionCall: { name: 'get_weather', args: {} } }] },
    {
      role: 'user',
      parts: [{ functionResponse: { name: 'get_weather', response: { output: 'rain' } } }],
    },
  ]
  t.match(await ask({ contents: turns, tools }), {
    content: { parts: [{ text: /get_weather returned: “rain”/ }] },
  })
  t.match(await ask({ generation_config: { maxOutputTokens: 1 } }), {
    finishReason: 'MAX_TOKENS',
  })
  const config = { responseMimeType: 'application/json', responseJsonSchema: SCHEMA }
  const json = await ask({ generationConfig: config })
  const [part] = arrayOf(objectOf(json.content).parts)
  t.match(JSON.parse(stringOf(objectOf(part).text) ?? ''), { city: String })
  const thinkingConfig = { includeThoughts: true }
  t.match(await ask({ generationConfig: { thinkingConfig } }), {
    content: { parts: [{ thought: true }, { text: /emulated/, thoughtSignature: String }] },
  })
})
