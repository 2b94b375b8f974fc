/**
 * Goal: OpenAI's own client works with the emulated OpenAI.
 * Method: the official SDK sends requests to the emulator: whole, streamed and refused ones.
 */
import OpenAI from 'openai'
import t from 'tap'
import { startUpstream } from '../helpers/upstream.js'
import { objectOf } from '../../src/base/json.js'
import type { Test } from 'tap'

async function clientFor(t: Test, apiKey = 'sk-emulated'): Promise<OpenAI> {
  const { baseUrls } = await startUpstream(t)
  return new OpenAI({ apiKey, baseURL: baseUrls.openai, maxRetries: 0 })
}

const WEATHER: OpenAI.ChatCompletionTool = {
  type: 'function',
  function: {
    name: 'get_weather',
    parameters: {
      type: 'object',
      properties: {
        city: { type: 'string' },
        unit: { type: 'string', enum: ['celsius', 'fahrenheit'] },
        days: { type: 'integer', minimum: 1, maximum: 5 },
      },
      required: ['city', 'unit'],
    },
  },
}
const TIME: OpenAI.ChatCompletionTool = {
  type: 'function',
  function: { name: 'get_time', parameters: { type: 'object', properties: {} } },
}

void t.test('a whole reply echoes the prompt, names the emulator, and has token counts', async (t) => {
  const client = await clientFor(t)
  const ask = { model: 'gpt-4o-mini', messages: [{ role: 'user' as const, content: 'Grüße 🐋' }] }
  const first = await client.chat.completions.create(ask)
  t.match(first.choices[0]?.message.content, /emulated.*Your message: “Grüße 🐋”/)
  t.equal(first.choices[0]?.finish_reason, 'stop')
  t.equal(first.model, 'gpt-4o-mini-2024-07-18', 'the alias is answered with its dated name')
  t.match(first.id, /^chatcmpl-\w{29}$/)
  const { prompt_tokens = 0, completion_tokens = 0, total_tokens } = first.usage ?? {}
  t.ok(prompt_tokens > 0 && completion_tokens > 0)
  t.equal(total_tokens, prompt_tokens + completion_tokens)
  const second = await client.chat.completions.create(ask)
  t.equal(second.id, first.id, 'the same request gets the same reply')
})

void t.test('a stream has the content of the whole reply, with usage only if requested', async (t) => {
  const client = await clientFor(t)
  const base = {
    model: 'gpt-4o',
    messages: [{ role: 'user' as const, content: 'Hi [[words: 30]]' }],
  }
  const stream = await client.chat.completions.create({
    ...base,
    stream: true,
    stream_options: { include_usage: true },
  })
  let text = ''
  const usages: unknown[] = []
  const roles: unknown[] = []
  const finishes: unknown[] = []
  for await (const chunk of stream) {
    text += chunk.choices[0]?.delta.content ?? ''
    roles.push(chunk.choices[0]?.delta.role)
    finishes.push(chunk.choices[0]?.finish_reason)
    usages.push(chunk.usage)
  }
  t.equal(text.split(' ').length, 30)
  t.same(
    roles.filter((role) => role !== undefined),
    ['assistant'],
  )
  t.equal(finishes.at(-2), 'stop')
  t.equal(finishes.at(-1), undefined, 'the usage chunk has no choice')
  t.ok(usages.slice(0, -1).every((usage) => usage === null))
  t.ok(Number(objectOf(usages.at(-1)).completion_tokens) > 20)
  const quiet = await client.chat.completions.create({ ...base, stream: true })
  for await (const chunk of quiet) {
    t.notOk('usage' in chunk, 'no usage field where it was not asked for')
    t.ok(chunk.choices.length > 0)
  }
})

void t.test('a tool named in the prompt is called, and its result is quoted', async (t) => {
  const client = await clientFor(t)
  const ask = {
    model: 'gpt-4o',
    tools: [WEATHER, TIME],
    messages: [
      { role: 'user', content: 'What is the weather in Paris? Use get_weather' },
    ] as OpenAI.ChatCompletionMessageParam[],
  }
  const reply = await client.chat.completions.create(ask)
  const [call] = reply.choices[0]?.message.tool_calls ?? []
  t.equal(reply.choices[0]?.finish_reason, 'tool_calls')
  if (call?.type !== 'function') {
    throw new Error('no function call')
  }
  t.match(call.id, /^call_\w{24}$/)
  const args = objectOf(JSON.parse(call.function.arguments))
  t.equal(args.city, 'Paris')
  t.ok(args.unit === 'celsius' || args.unit === 'fahrenheit')
  t.ok(Number.isInteger(args.days) && Number(args.days) >= 1 && Number(args.days) <= 5)
  const then = await client.chat.completions.create({
    ...ask,
    messages: [
      ...ask.messages,
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: call.id, content: 'rain, 12 °C' },
    ],
  })
  t.match(then.choices[0]?.message.content, /get_weather returned: “rain, 12 °C”/)
})

void t.test('“use a, then b” is one step after the other', async (t) => {
  const client = await clientFor(t)
  const messages: OpenAI.ChatCompletionMessageParam[] = [
    { role: 'user', content: 'Use get_time, then get_weather in Rome' },
  ]
  const called: string[] = []
  for (let turn = 0; turn < 3; turn += 1) {
    const ask = { model: 'gpt-4o', tools: [WEATHER, TIME], messages }
    const message = (await client.chat.completions.create(ask)).choices[0]?.message
    const [call, more] = message?.tool_calls ?? []
    t.equal(more, undefined, 'one at a time')
    if (message === undefined || call?.type !== 'function') break
    called.push(call.function.name)
    messages.push(message, { role: 'tool', tool_call_id: call.id, content: 'done' })
  }
  t.same(called, ['get_time', 'get_weather'])
  t.equal(messages.length, 5, 'and then it answers')
})

void t.test('tools named together are called in parallel, streamed by index', async (t) => {
  const client = await clientFor(t)
  const ask = {
    model: 'gpt-4o',
    stream: true as const,
    tools: [WEATHER, TIME],
    messages: [{ role: 'user' as const, content: 'Call get_weather and get_time in parallel' }],
  }
  const seen = new Map<number, { name: string; args: string }>()
  for await (const chunk of await client.chat.completions.create(ask)) {
    for (const call of chunk.choices[0]?.delta.tool_calls ?? []) {
      const known = seen.get(call.index) ?? { name: '', args: '' }
      known.name += call.function?.name ?? ''
      known.args += call.function?.arguments ?? ''
      seen.set(call.index, known)
    }
  }
  t.same(
    [...seen.values()].map(({ name }) => name),
    ['get_weather', 'get_time'],
  )
  t.ok(typeof objectOf(JSON.parse(seen.get(0)?.args ?? '')).city === 'string')
  t.equal(seen.get(1)?.args, '{}')
  let most = 0
  const single = await client.chat.completions.create({ ...ask, parallel_tool_calls: false })
  for await (const chunk of single) {
    most = Math.max(most, ...(chunk.choices[0]?.delta.tool_calls ?? []).map(({ index }) => index))
  }
  t.equal(most, 0, 'parallel_tool_calls: false gets one call')
})

void t.test('tool_choice is obeyed', async (t) => {
  const client = await clientFor(t)
  const ask = {
    model: 'gpt-4o',
    tools: [WEATHER, TIME],
    messages: [{ role: 'user' as const, content: 'Hello' }],
  }
  const called = async (tool_choice: OpenAI.ChatCompletionToolChoiceOption): Promise<string[]> => {
    const reply = await client.chat.completions.create({ ...ask, tool_choice })
    return (reply.choices[0]?.message.tool_calls ?? []).map((call) =>
      call.type === 'function' ? call.function.name : '',
    )
  }
  t.same(await called('auto'), [])
  t.same(await called('none'), [])
  t.same(await called('required'), ['get_weather'])
  t.same(await called({ type: 'function', function: { name: 'get_time' } }), ['get_time'])
})

void t.test('limits, stop sequences, JSON, images and reasoning show in the reply', async (t) => {
  const client = await clientFor(t)
  const messages = [{ role: 'user' as const, content: 'one two three' }]
  const short = await client.chat.completions.create({
    model: 'gpt-4o',
    messages,
    max_completion_tokens: 3,
  })
  t.equal(short.choices[0]?.finish_reason, 'length')
  t.equal(short.usage?.completion_tokens, 3)
  const stopped = await client.chat.completions.create({ model: 'gpt-4o', messages, stop: ' two' })
  t.match(stopped.choices[0]?.message.content, /one$/)
  t.equal(stopped.choices[0]?.finish_reason, 'stop')
  const json = await client.chat.completions.create({
    model: 'gpt-4o',
    messages,
    response_format: {
      type: 'json_schema',
      json_schema: {
        name: 'answer',
        schema: { type: 'object', properties: { ok: { type: 'boolean' } }, required: ['ok'] },
      },
    },
  })
  const value = objectOf(JSON.parse(json.choices[0]?.message.content ?? ''))
  t.type(value.ok, 'boolean')
  const image = await client.chat.completions.create({
    model: 'gpt-4o',
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'look' },
          { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
        ],
      },
    ],
  })
  t.match(image.choices[0]?.message.content, /1 image \(image\/png\)/)
  const reasoned = await client.chat.completions.create({ model: 'gpt-5', messages })
  t.ok(Number(reasoned.usage?.completion_tokens_details?.reasoning_tokens) > 0)
})

void t.test('requests that OpenAI refuses get its errors', async (t) => {
  const client = await clientFor(t)
  const user = { role: 'user' as const, content: 'hi' }
  const create = (body: object): Promise<unknown> =>
    client.post('/chat/completions', { body: { model: 'gpt-4o', messages: [user], ...body } })
  const refused = async (body: object, status: number, code: string | null): Promise<void> => {
    await t.rejects(create(body), { status, code }, JSON.stringify(body))
  }
  await refused({ model: 'gpt-none' }, 404, 'model_not_found')
  await refused({ messages: [] }, 400, 'empty_array')
  await refused({ model: 'gpt-5', max_tokens: 5 }, 400, 'unsupported_parameter')
  await refused({ model: 'gpt-5', temperature: 0.3 }, 400, 'unsupported_value')
  await refused({ temperature: -0.5 }, 400, 'decimal_below_min_value')
  await refused({ messages: [{ role: 'robot', content: 'hi' }] }, 400, 'invalid_value')
  await refused({ stream_options: { include_usage: true } }, 400, null)
  const orphan = { role: 'tool', tool_call_id: 'call_1', content: 'x' }
  await refused({ messages: [user, orphan] }, 400, null)
  const call = { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } }
  const calling = { role: 'assistant', content: null, tool_calls: [call] }
  await refused({ messages: [user, calling, user] }, 400, null)
  const unauthenticated = new OpenAI({
    apiKey: 'sk-invalid',
    baseURL: client.baseURL,
    maxRetries: 0,
  })
  await t.rejects(unauthenticated.chat.completions.create({ model: 'gpt-4o', messages: [user] }), {
    status: 401,
    code: 'invalid_api_key',
  })
})
