/**
 * Goal: a program written for LangChain's ChatOpenAI works over every upstream dialect as over OpenAI.
 * Method: `@langchain/openai` against a whole gateway and emulated providers; each case per row.
 */
import { AIMessageChunk, HumanMessage, ToolMessage, type BaseMessage } from '@langchain/core/messages'
import { tool } from '@langchain/core/tools'
import { ChatOpenAI, type ChatOpenAIFields } from '@langchain/openai'
import { APIError } from 'openai'
import t from 'tap'
import * as z from 'zod'
import { objectOf } from '../../../src/base/json.js'
import { startGateway } from '../../helpers/gateway.js'
import { until } from '../../helpers/upstream.js'
import { ROWS } from '../upstream-cases.js'
import { failing, LONG, PIXEL, thrownBy, upstreamIsLeft } from '../client-scenarios.js'

const gateway = await startGateway(t)
const { emulator } = gateway

function chat(model: string, fields: ChatOpenAIFields = {}): ChatOpenAI {
  return new ChatOpenAI({
    model,
    apiKey: gateway.secret,
    configuration: { baseURL: gateway.baseUrl },
    maxRetries: 0,
    ...fields,
  })
}

const time = tool(() => 'noon', {
  name: 'get_time',
  description: 'The time',
  schema: z.object({}),
})
const weather = tool(({ city }: { city: string }) => `snow in ${city}`, {
  name: 'get_weather',
  description: 'The weather of a city',
  schema: z.object({ city: z.string() }),
})

const PERSON = z.object({
  name: z.string(),
  age: z.number().int(),
  tags: z.array(z.enum(['red', 'green'])),
})

/** A stream as one message, joined by LangChain. */
async function added(stream: AsyncIterable<AIMessageChunk>): Promise<AIMessageChunk> {
  let sum = new AIMessageChunk('')
  for await (const chunk of stream) sum = sum.concat(chunk)
  return sum
}

/** The agent's loop: runs calls until there are none; returns the message of each turn. */
async function turns(
  ask: (messages: BaseMessage[]) => Promise<AIMessageChunk>,
  prompt: string,
): Promise<AIMessageChunk[]> {
  const messages: BaseMessage[] = [new HumanMessage(prompt)]
  const replies: AIMessageChunk[] = []
  while (replies.length < 5) {
    const message = await ask(messages)
    replies.push(message)
    messages.push(message)
    const calls = message.tool_calls ?? []
    if (calls.length === 0) break
    for (const call of calls) {
      const { id = '', name, args } = call
      const content =
        name === 'get_time' ? await time.invoke({}) : await weather.invoke({ city: String(args['city']) })
      messages.push(new ToolMessage({ tool_call_id: id, content }))
    }
  }
  return replies
}

function names(replies: readonly AIMessageChunk[]): string[][] {
  return replies.map(({ tool_calls = [] }) => tool_calls.map(({ name }) => name))
}

for (const row of ROWS) {
  const { dialect } = row
  const model = chat(row.model)

  void t.test(`${dialect}: invoke and stream return the same`, async (t) => {
    const whole = await model.invoke('Grüße an Ωmega 🐋')
    t.match(whole.text, /Your message: “Grüße an Ωmega 🐋”$/)
    t.equal(whole.response_metadata['finish_reason'], 'stop')
    const streamed = await added(await model.stream('Grüße an Ωmega 🐋'))
    t.equal(streamed.text, whole.text)
    t.equal(streamed.response_metadata['finish_reason'], 'stop')
    const counts = objectOf(whole.usage_metadata)
    t.ok(Number(counts['input_tokens']) > 0 && Number(counts['output_tokens']) > 0)
    const sums = objectOf(streamed.usage_metadata)
    for (const name of ['input_tokens', 'output_tokens', 'total_tokens']) {
      t.equal(sums[name], counts[name], name)
    }
  })

  void t.test(`${dialect}: bindTools over several turns, whole and streamed`, async (t) => {
    const prompt = 'Use get_time, then get_weather in Rome'
    for (const name of [row.model, row.reasoner]) {
      const bound = chat(name).bindTools([time, weather])
      const whole = await turns((messages) => bound.invoke(messages), prompt)
      t.same(names(whole), [['get_time'], ['get_weather'], []])
      t.match(whole.at(-1)?.text, /get_weather returned: “snow in Rome”/)
      const streamed = await turns(async (messages) => added(await bound.stream(messages)), prompt)
      t.same(names(streamed), names(whole))
      t.equal(streamed.at(-1)?.text, whole.at(-1)?.text)
    }
  })

  void t.test(`${dialect}: parallel calls have ids and are answered together`, async (t) => {
    const bound = model.bindTools([time, weather])
    const prompt = 'Call get_time and get_weather in Oslo in parallel'
    const whole = await turns((messages) => bound.invoke(messages), prompt)
    t.same(names(whole), [['get_time', 'get_weather'], []])
    t.equal(new Set(whole[0]?.tool_calls?.map(({ id }) => id)).size, 2)
    t.match(whole.at(-1)?.text, /get_time returned: .*get_weather returned: “snow in Oslo”/)
    const streamed = await turns(async (messages) => added(await bound.stream(messages)), prompt)
    t.same(names(streamed), names(whole))
    t.same(streamed[0]?.invalid_tool_calls, [])
    const forced = model.bindTools([time, weather], { tool_choice: 'get_time' })
    t.same(names([await forced.invoke('Hello')]), [['get_time']])
  })

  void t.test(`${dialect}: an image reaches the model`, async (t) => {
    const { text } = await model.invoke([
      new HumanMessage({
        content: [
          { type: 'text', text: 'What is this?' },
          { type: 'image_url', image_url: { url: `data:image/png;base64,${PIXEL}` } },
        ],
      }),
    ])
    t.match(text, /You sent 1 image \(image\/png\)/)
  })

  void t.test(`${dialect}: withStructuredOutput fits the schema by every method`, async (t) => {
    for (const method of ['jsonSchema', 'functionCalling'] as const) {
      const structured = model.withStructuredOutput(PERSON, { name: 'person', method })
      t.ok(PERSON.safeParse(await structured.invoke('Make up a person')).success, method)
      let last: unknown
      for await (const part of await structured.stream('Make up a person')) last = part
      t.ok(PERSON.safeParse(last).success, `${method}, streamed`)
    }
  })

  void t.test(`${dialect}: reasoning is requested, shown and counted`, async (t) => {
    const reasoner = chat(row.reasoner, { modelKwargs: { reasoning_effort: 'low' } })
    const whole = await reasoner.invoke('Think about 17')
    const thought = whole.additional_kwargs['reasoning_content']
    t.equal(typeof thought === 'string', row.showsThinking)
    const details = objectOf(objectOf(whole.usage_metadata)['output_token_details'])
    t.ok(Number(details['reasoning']) > 0)
    const streamed = await added(await reasoner.stream('Think about 17'))
    t.equal(streamed.additional_kwargs['reasoning_content'], thought)
    t.equal(streamed.text, whole.text)
    t.match(whole.text, /Think about 17/)
  })

  void t.test(`${dialect}: cancelling closes the upstream connection, whole and streamed`, async (t) => {
    const controller = new AbortController()
    let chunks = 0
    const error = await thrownBy(async () => {
      for await (const chunk of await model.stream(LONG, { signal: controller.signal })) {
        chunks += Number(chunk.text !== '')
        if (chunks === 5) controller.abort()
      }
    })
    t.ok(error instanceof Error && chunks >= 5 && chunks < 300)
    await upstreamIsLeft(t, emulator)
    const another = new AbortController()
    const whole = model.invoke('wait [[fault: hang]]', { signal: another.signal })
    const failed = thrownBy(() => whole)
    await until(() => emulator.open() > 0)
    another.abort()
    t.ok((await failed) instanceof Error)
    await upstreamIsLeft(t, emulator)
  })

  void t.test(`${dialect}: an error before the stream has its status`, async (t) => {
    for (const [code, status] of [
      [429, 429],
      [500, 502],
      [401, 502],
      [400, 400],
    ] as const) {
      await failing(emulator, { kind: 'status', code }, async () => {
        t.match(await thrownBy(() => model.invoke('hi')), { status })
        t.match(await thrownBy(async () => added(await model.stream('hi'))), { status })
      })
    }
  })

  void t.test(`${dialect}: an error inside the stream is thrown`, async (t) => {
    const faults = [
      { kind: 'error', event: 8 },
      { kind: 'cut', event: 8, mode: 'reset' },
      { kind: 'cut', event: 8, mode: 'eof' },
    ] as const
    for (const fault of faults) {
      await failing(emulator, fault, async () => {
        let text = ''
        const error = await thrownBy(async () => {
          for await (const chunk of await model.stream(LONG)) text += chunk.text
        })
        t.ok(text.length > 0, 'what had come was given')
        t.ok(error instanceof APIError, "the error is the API's")
        t.match(error, { error: { kind: /^upstream_/ } })
      })
    }
  })
}
