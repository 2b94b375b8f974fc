/**
 * Goal: OpenAI's own client works with the emulated Responses endpoint, whose replies match recordings.
 * Method: the official SDK, whole and streamed; fields and order of events against recorded traffic.
 */
import OpenAI from 'openai'
import t from 'tap'
import { isObject, objectOf } from '../../src/base/json.js'
import { eventsOf } from '../helpers/collect.js'
import { fixtures, skipWithoutFixtures } from '../helpers/fixtures.js'
import { startUpstream } from '../helpers/upstream.js'

const TOOL: OpenAI.Responses.FunctionTool = {
  type: 'function',
  name: 'get_weather',
  strict: false,
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
}
const ASK = { model: 'gpt-5.6-sol', input: 'Use get_weather for Paris', tools: [TOOL] }

void t.test('a tool is called whole, its result quoted in the next turn', async (t) => {
  const { baseUrls } = await startUpstream(t)
  const client = new OpenAI({ apiKey: 'k', baseURL: baseUrls.openai, maxRetries: 0 })
  const first = await client.responses.create(ASK)
  t.equal(first.status, 'completed')
  t.match(first.id, /^resp_[0-9a-f]{50}$/)
  const call = first.output.find((item) => item.type === 'function_call')
  if (call === undefined) {
    throw new Error('no function call')
  }
  t.same(JSON.parse(call.arguments), { city: 'Paris' })
  t.ok(Number(first.usage?.output_tokens_details.reasoning_tokens) > 0)
  const second = await client.responses.create({
    ...ASK,
    input: [
      { role: 'user', content: ASK.input },
      call,
      { type: 'function_call_output', call_id: call.call_id, output: 'rain' },
    ],
  })
  t.match(second.output_text, /get_weather returned: “rain”/)
})

void t.test('the last event of a stream has the sum of its events', async (t) => {
  const { baseUrls } = await startUpstream(t)
  const client = new OpenAI({ apiKey: 'k', baseURL: baseUrls.openai, maxRetries: 0 })
  const stream = await client.responses.create({
    model: 'gpt-5',
    input: 'Hello',
    stream: true,
    reasoning: { summary: 'auto' },
    include: ['reasoning.encrypted_content'],
  })
  let text = ''
  let summary = ''
  let numbers = 0
  let last: OpenAI.Responses.Response | undefined
  for await (const event of stream) {
    t.equal(event.sequence_number, numbers)
    numbers += 1
    text += event.type === 'response.output_text.delta' ? event.delta : ''
    summary += event.type === 'response.reasoning_summary_text.delta' ? event.delta : ''
    last = event.type === 'response.completed' ? event.response : last
  }
  const [reasoning, message] = last?.output ?? []
  t.match(message, { type: 'message', content: [{ text }] })
  t.match(reasoning, { type: 'reasoning', summary: [{ text: summary }], encrypted_content: String })
  t.match(text, /Your message: “Hello”/)
})

void t.test("limits, refusals and failures have the endpoint's own form", async (t) => {
  const emulator = await startUpstream(t)
  const client = new OpenAI({ apiKey: 'k', baseURL: emulator.baseUrls.openai, maxRetries: 0 })
  const input = 'Tell me a lot [[words: 200]]'
  const short = await client.responses.create({ model: 'gpt-4o', input, max_output_tokens: 16 })
  t.equal(short.status, 'incomplete')
  t.same(short.incomplete_details, { reason: 'max_output_tokens' })
  const refused = async (body: object, code: string | null): Promise<void> => {
    const send = client.post('/responses', { body: { model: 'gpt-4o', input: 'hi', ...body } })
    await t.rejects(send, { status: 400, code }, JSON.stringify(body))
  }
  await refused({ model: 'gpt-none' }, 'model_not_found')
  await refused({ stop: ['x'] }, 'unknown_parameter')
  await refused({ max_output_tokens: 3 }, 'integer_below_min_value')
  await refused({ input: [{ type: 'function_call_output', call_id: 'c', output: '' }] }, null)
  emulator.script({ times: 1, fault: { kind: 'error', event: 2 } })
  const failing = await client.responses.create({ model: 'gpt-4o', input: 'hi', stream: true })
  const drain = async (): Promise<void> => {
    for await (const event of failing) {
      t.match(event.type, /^response\./)
    }
  }
  await t.rejects(drain())
  const tools = [{ type: 'function' as const, function: { name: 'f' } }]
  const messages = [{ role: 'user' as const, content: 'hi' }]
  const chat = client.chat.completions.create({ model: 'gpt-5.6-sol', tools, messages })
  const error: unknown = await chat.catch((reason: unknown) => reason)
  t.match(error, { status: 400, param: 'reasoning_effort' })
})

/** Every path of keys, except within members that depend on the request. */
function paths(value: unknown, at = ''): string[] {
  if (Array.isArray(value)) {
    return value.flatMap((item) => paths(item, `${at}[]`))
  }
  if (!isObject(value)) {
    return []
  }
  return Object.entries(value).flatMap(([key, inner]) =>
    key === 'parameters' || key === 'metadata'
      ? [`${at}.${key}`]
      : [`${at}.${key}`, ...paths(inner, `${at}.${key}`)],
  )
}

function shapesOf(text: string): { names: string; paths: string[] } {
  const events = eventsOf(text)
  const names = events.map(({ name }) => name)
  return {
    names: names.filter((name, index) => name !== names[index - 1]).join(' '),
    paths: events.flatMap(({ name, data }) => paths(JSON.parse(data)).map((path) => `${name}${path}`)),
  }
}

void t.test('streams have recorded fields and order', skipWithoutFixtures(), async (t) => {
  const { baseUrls } = await startUpstream(t)
  const recorded = fixtures({
    provider: 'openai',
    api: 'responses',
    stream: true,
    status: 200,
  }).map(({ response_body }) => shapesOf(response_body))
  const known = new Set(recorded.flatMap((shape) => shape.paths))
  const orders = new Set(recorded.map(({ names }) => names))
  for (const body of [{ model: 'gpt-4o' }, { model: 'gpt-4o', tools: [TOOL] }]) {
    const response = await fetch(`${baseUrls.openai}/responses`, {
      method: 'POST',
      headers: { authorization: 'Bearer k', 'content-type': 'application/json' },
      body: JSON.stringify({ input: ASK.input, stream: true, ...body }),
    })
    const text = await response.text()
    const shape = shapesOf(text)
    t.same(
      [...new Set(shape.paths)].filter((path) => !known.has(path)),
      [],
    )
    t.ok(orders.has(shape.names), `recorded too: ${shape.names}`)
    t.notMatch(text, /\[DONE\]/)
    t.match(objectOf(JSON.parse(eventsOf(text).at(-1)?.data ?? '')), { type: 'response.completed' })
  }
})
