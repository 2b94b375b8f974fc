/**
 * Goal: a program written for the official OpenAI client's `responses` works over every upstream dialect.
 * Method: the unmodified SDK against a whole gateway and emulated providers; each case per row.
 */
import { APIError, type OpenAI } from 'openai'
import { zodTextFormat } from 'openai/helpers/zod'
import t, { type Test } from 'tap'
import * as z from 'zod'
import { startGateway } from '../../helpers/gateway.js'
import { overChat } from '../check-responses.js'
import { until } from '../../helpers/upstream.js'
import { ROWS } from '../upstream-cases.js'
import { clientOf, failureOf } from './sdk.js'
import { failing, LONG, PIXEL, upstreamIsLeft } from '../client-scenarios.js'

type Event = OpenAI.Responses.ResponseStreamEvent

t.setTimeout(120_000)
const plain = await startGateway(t)
const chatOnly = await startGateway(t)
overChat(chatOnly)

const WEATHER: OpenAI.Responses.FunctionTool = {
  type: 'function',
  name: 'get_weather',
  description: 'The weather of a city',
  strict: false,
  parameters: {
    type: 'object',
    properties: { city: { type: 'string' } },
    required: ['city'],
    additionalProperties: false,
  },
}
const TIME: OpenAI.Responses.FunctionTool = {
  type: 'function',
  name: 'get_time',
  strict: false,
  parameters: { type: 'object', properties: {} },
}

/** Every event of a stream, checked: consecutive numbers, items with their first values. */
async function eventsOf(t: Test, stream: AsyncIterable<Event>): Promise<Event[]> {
  const events: Event[] = []
  for await (const event of stream) {
    t.equal(event.sequence_number, events.length, `${event.type} has the next number`)
    events.push(event)
  }
  const added = events.filter((event) => event.type === 'response.output_item.added')
  const done = events.filter((event) => event.type === 'response.output_item.done')
  t.same(
    added.map(({ item }) => [item.id, item.type]),
    done.map(({ item }) => [item.id, item.type]),
    'each item ends as it began',
  )
  const last = events.at(-1)
  if (last?.type === 'response.completed' || last?.type === 'response.incomplete') {
    t.same(
      last.response.output,
      done.map(({ item }) => item),
      'the last event repeats the items',
    )
  }
  return events
}

function callsIn(response: OpenAI.Responses.Response): OpenAI.Responses.ResponseFunctionToolCall[] {
  return response.output.flatMap((item) => (item.type === 'function_call' ? [item] : []))
}

for (const row of ROWS) {
  const { model, reasoner } = row
  const gateway = row.dialect === 'openai-chat' ? chatOnly : plain
  const { emulator } = gateway
  const client = clientOf(gateway)
  const isSameFormat = row.dialect === 'openai-responses'

  void t.test(`${row.dialect}: create and stream return the same`, async (t) => {
    const input = 'Grüße an Ωmega 🐋'
    const whole = await client.responses.create({ model, input, store: false })
    t.match(whole.output_text, /Your message: “Grüße an Ωmega 🐋”$/)
    t.equal(whole.status, 'completed')
    t.equal(whole.object, 'response')
    t.match(whole.id, /^resp_/)
    const stream = await client.responses.create({ model, input, stream: true, store: false })
    const events = await eventsOf(t, stream)
    const text = events.map((event) => {
      return event.type === 'response.output_text.delta' ? event.delta : ''
    })
    t.equal(text.join(''), whole.output_text)
    const last = events.at(-1)
    if (last?.type !== 'response.completed') throw new Error(String(last?.type))
    t.same(last.response.usage, whole.usage, 'and count the same')
    t.ok(Number(whole.usage?.input_tokens) > 0 && Number(whole.usage?.output_tokens) > 0)
    t.same(
      events.slice(0, 2).map(({ type }) => type),
      ['response.created', 'response.in_progress'],
    )
  })

  void t.test(`${row.dialect}: the stream helper accumulates the same response`, async (t) => {
    const stream = client.responses.stream({ model, input: 'Say hello', store: false })
    const deltas: string[] = []
    stream.on('response.output_text.delta', ({ delta }) => void deltas.push(delta))
    const final = await stream.finalResponse()
    t.equal(deltas.join(''), final.output_text)
    t.match(final.output_text, /Say hello/)
  })

  void t.test(`${row.dialect}: a loop of tools, whole and streamed`, async (t) => {
    for (const each of [model, reasoner]) {
      const input: OpenAI.Responses.ResponseInput = [
        { role: 'user', content: 'Use get_time, then get_weather in Rome' },
      ]
      const names: string[] = []
      const ask = { model: each, tools: [TIME, WEATHER], store: false }
      for (let step = 0; step < 3; step += 1) {
        const response = await client.responses.create({
          ...ask,
          input,
          include: each === reasoner ? ['reasoning.encrypted_content'] : [],
        })
        const calls = callsIn(response)
        input.push(...(response.output as OpenAI.Responses.ResponseInput))
        for (const { call_id, name, id } of calls) {
          t.match(id, /^fc_/)
          names.push(name)
          input.push({ type: 'function_call_output', call_id, output: `${name}: fine` })
        }
        if (calls.length === 0) t.match(response.output_text, /get_weather returned: “.*fine/)
      }
      t.same(names, ['get_time', 'get_weather'], each)
      const stream = await client.responses.create({
        ...ask,
        input: 'Use get_weather in Oslo',
        stream: true,
      })
      const events = await eventsOf(t, stream)
      const done = events.find((event) => event.type === 'response.function_call_arguments.done')
      const deltas = events.flatMap((event) =>
        event.type === 'response.function_call_arguments.delta' ? [event.delta] : [],
      )
      t.same(JSON.parse(done?.arguments ?? ''), { city: 'Oslo' })
      t.equal(deltas.join(''), done?.arguments)
    }
  })

  void t.test(`${row.dialect}: parallel calls are answered together`, async (t) => {
    const input = 'Call get_time and get_weather in Oslo in parallel'
    const ask = { model, tools: [TIME, WEATHER] }
    const first = await client.responses.create({ ...ask, input })
    const calls = callsIn(first)
    t.same(
      calls.map(({ name }) => name),
      ['get_time', 'get_weather'],
    )
    t.equal(new Set(calls.map(({ call_id }) => call_id)).size, 2)
    const outputs = calls.map(({ call_id, name }) => {
      return { type: 'function_call_output' as const, call_id, output: `${name} is fine` }
    })
    const second = await client.responses.create({
      ...ask,
      previous_response_id: first.id,
      input: outputs.reverse(),
    })
    t.match(second.output_text, /get_time returned: /)
    t.match(second.output_text, /get_weather returned: /)
    // A passed-through reply contains the members of the upstream's request.
    t.equal(second.previous_response_id, isSameFormat ? null : first.id)
  })

  void t.test(`${row.dialect}: an image reaches the model`, async (t) => {
    const response = await client.responses.create({
      model,
      store: false,
      input: [
        {
          role: 'user',
          content: [
            { type: 'input_text', text: 'What is this?' },
            { type: 'input_image', detail: 'auto', image_url: `data:image/png;base64,${PIXEL}` },
          ],
        },
      ],
    })
    t.match(response.output_text, /You sent 1 image \(image\/png\)/)
  })

  void t.test(`${row.dialect}: parse gives an object of the schema`, async (t) => {
    const PERSON = z.object({ name: z.string(), age: z.number().int() })
    const response = await client.responses.parse({
      model,
      input: 'Make up a person',
      text: { format: zodTextFormat(PERSON, 'person') },
    })
    t.ok(PERSON.safeParse(response.output_parsed).success)
  })

  void t.test(`${row.dialect}: reasoning is shown and counted`, async (t) => {
    const ask = {
      model: reasoner,
      input: 'Think about 17',
      reasoning: { effort: 'low', summary: 'auto' },
    } as const
    const whole = await client.responses.create(ask)
    t.ok(Number(whole.usage?.output_tokens_details.reasoning_tokens) > 0)
    const [item] = whole.output
    const isShown = row.showsThinking || isSameFormat
    if (isShown) {
      if (item?.type !== 'reasoning') throw new Error(String(item?.type))
      t.match(item.summary[0]?.text, /emulated model/)
    }
    const events = await eventsOf(t, await client.responses.create({ ...ask, stream: true }))
    const deltas = events.flatMap((event) =>
      event.type === 'response.reasoning_summary_text.delta' ? [event.delta] : [],
    )
    t.equal(deltas.length > 0, isShown)
  })

  void t.test(`${row.dialect}: cancelling a stream closes the upstream connection`, async (t) => {
    const stream = await client.responses.create({ model, input: LONG, stream: true })
    let deltas = 0
    for await (const event of stream) {
      if (event.type === 'response.output_text.delta' && ++deltas === 5) stream.controller.abort()
    }
    t.ok(deltas >= 5 && deltas < 300)
    await upstreamIsLeft(t, emulator)
    const another = new AbortController()
    const { signal } = another
    const whole = client.responses.create({ model, input: 'wait [[fault: hang]]' }, { signal })
    const failed = failureOf(whole)
    await until(() => emulator.open() > 0)
    another.abort()
    t.match((await failed).constructor.name, 'APIUserAbortError')
    await upstreamIsLeft(t, emulator)
  })

  void t.test(`${row.dialect}: an error before the stream has its status`, async (t) => {
    const cases = [
      { fault: { kind: 'status', code: 429, 'retry-after': '7' }, status: 429 },
      { fault: { kind: 'status', code: 500 }, status: 502 },
      { fault: { kind: 'status', code: 400 }, status: 400 },
    ] as const
    for (const { fault, status } of cases) {
      await failing(emulator, fault, async () => {
        for (const stream of [false, true]) {
          const error = await failureOf(client.responses.create({ model, input: 'hi', stream }))
          t.equal(error.status, status)
          t.match(error.error, { kind: /^upstream_/ })
        }
      })
    }
  })

  void t.test(`${row.dialect}: an error inside the stream is response.failed`, async (t) => {
    const faults = [
      { kind: 'error', event: 8 },
      { kind: 'cut', event: 8, mode: 'reset' },
      { kind: 'cut', event: 8, mode: 'eof' },
    ] as const
    for (const fault of faults) {
      await failing(emulator, fault, async () => {
        const stream = await client.responses.create({ model, input: LONG, stream: true })
        const types: string[] = []
        let last: Event | undefined
        const error: unknown = await (async () => {
          for await (const event of stream) {
            t.equal(event.sequence_number, types.length)
            types.push(event.type)
            last = event
          }
        })().catch((thrown: unknown) => thrown)
        t.ok(error instanceof Error, 'the connection closes, and the client reports it')
        t.ok(types.includes('response.output_text.delta'), 'the content before the error was delivered')
        if (last?.type !== 'response.failed') throw new Error(String(last?.type))
        t.equal(last.response.status, 'failed')
        t.match(last.response.error, { message: /./, kind: /^upstream_/ })
      })
    }
  })
}

void t.test('an unsupported field is refused by name', async (t) => {
  const model = 'claude-sonnet-4-5'
  const client = clientOf(plain)
  const cases: readonly (readonly [object, string])[] = [
    [{ background: true }, 'background'],
    [{ conversation: 'conv_1' }, 'conversation'],
    [{ previous_response_id: 'resp_unknown' }, 'previous_response_id'],
    [{ prompt: { id: 'pmpt_1' } }, 'prompt'],
    [{ tools: [{ type: 'web_search' }], tool_choice: { type: 'web_search' } }, 'tool_choice'],
    [{ input: [{ type: 'item_reference', id: 'msg_1' }] }, 'input[0]'],
    [{ max_output_tokens: 0 }, 'max_output_tokens'],
    [{ input: [{ role: 'user', content: [{ type: 'video' }] }] }, 'input[0].content[0].type'],
  ]
  for (const [more, param] of cases) {
    const error = await failureOf(
      client.responses.create({
        model,
        input: 'hi',
        ...more,
      } as OpenAI.Responses.ResponseCreateParamsNonStreaming),
    )
    t.ok(error instanceof APIError)
    t.equal(error.status, 400, param)
    t.equal(error.param, param)
    t.ok(error.message.includes(param), error.message)
  }
})
