/**
 * Goal: a program written for OpenAI's own client works unchanged over every upstream dialect.
 * Method: the official SDK against a whole gateway and emulated providers; each behaviour once per dialect.
 */
import type OpenAI from 'openai'
import t from 'tap'
import { arrayOf, objectOf } from '../../../src/base/json.js'
import { startGateway } from '../../helpers/gateway.js'
import { ROWS } from '../upstream-cases.js'
import { callsOf, clientOf, failureOf, MODELS, read, userMessages, TIME, WEATHER } from './sdk.js'

const gateway = await startGateway(t)
const client = clientOf(gateway)
const { completions } = client.chat
/** A PNG of one pixel. */
const PIXEL =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

/** The last request body that the upstream received. */
function sent(): Record<string, unknown> {
  return gateway.emulator.ledger.at(-1)?.body ?? {}
}

for (const { model, stops, leastTokens } of ROWS) {
  void t.test(`${model}: plain text, whole and streamed, is the same reply`, async (t) => {
    const ask = { model, messages: userMessages('Grüße an Ωmega 🐋') }
    const whole = await completions.create(ask)
    t.match(whole.choices[0]?.message.content, /Your message: “Grüße an Ωmega 🐋”$/)
    t.equal(whole.object, 'chat.completion')
    t.equal(whole.choices[0]?.finish_reason, 'stop')
    t.equal(whole.choices[0]?.message.role, 'assistant')
    const { prompt_tokens = 0, completion_tokens = 0, total_tokens } = whole.usage ?? {}
    t.ok(prompt_tokens > 0 && completion_tokens > 0)
    t.equal(total_tokens, prompt_tokens + completion_tokens)

    const streamed = await read(await completions.create({ ...ask, stream: true }))
    t.equal(streamed.text, whole.choices[0]?.message.content)
    t.same(streamed.roles, ['assistant'])
    t.equal(streamed.finishes.at(-1), 'stop')
    t.ok(streamed.finishes.slice(0, -1).every((finish) => finish === null))
    t.equal(streamed.ids.size, 1, 'one id')
    t.equal(streamed.models.size, 1, 'one model')
    t.ok(
      streamed.usages.every((usage) => usage === undefined),
      'no counts where they were not asked for',
    )
    t.notOk(streamed.finishes.includes(undefined), 'and no chunk without a choice')
  })

  void t.test(`${model}: usage is in one last chunk on request`, async (t) => {
    const ask = { model, messages: userMessages('Count me') }
    const { usage } = await completions.create(ask)
    const options = { stream: true as const, stream_options: { include_usage: true } }
    const streamed = await read(await completions.create({ ...ask, ...options }))
    t.same(streamed.usages.at(-1), usage, 'the usage of the whole reply')
    t.equal(streamed.finishes.at(-1), undefined, 'and no choice beside it')
    t.equal(streamed.finishes.at(-2), 'stop')
    t.ok(streamed.usages.slice(0, -1).every((usage) => usage === null))
  })

  void t.test(`${model}: one call, whole and streamed, then its result`, async (t) => {
    const messages = userMessages('What is the weather in Paris? Use get_weather')
    const ask = { model, messages, tools: [WEATHER, TIME] }
    const whole = await completions.create(ask)
    const [call, none] = callsOf(whole)
    if (call === undefined) throw new Error('no call')
    t.equal(none, undefined)
    t.equal(whole.choices[0]?.finish_reason, 'tool_calls')
    t.equal(call.name, 'get_weather')
    t.equal(objectOf(JSON.parse(call.json))['city'], 'Paris')
    t.match(call.id, /^[A-Za-z0-9_-]{1,40}$/, 'an id that OpenAI takes back')

    const streamed = await read(await completions.create({ ...ask, stream: true }))
    t.same(
      streamed.calls.map(({ name, json }) => [name, objectOf(JSON.parse(json))['city']]),
      [['get_weather', 'Paris']],
    )
    t.equal(streamed.finishes.at(-1), 'tool_calls')
    t.match(streamed.calls[0]?.id, /^[A-Za-z0-9_-]{1,40}$/)

    const message = whole.choices[0]?.message
    if (message === undefined) throw new Error('no message')
    const result = { role: 'tool' as const, tool_call_id: call.id, content: 'rain, 12 °C' }
    const after = { ...ask, messages: [...messages, message, result] }
    const answer = await completions.create(after)
    t.match(answer.choices[0]?.message.content, /returned: “rain, 12 °C”/)
    t.equal(answer.choices[0]?.finish_reason, 'stop')
    const again = await read(await completions.create({ ...after, stream: true }))
    t.equal(again.text, answer.choices[0]?.message.content)
  })

  void t.test(`${model}: parallel calls keep order and ids; one on request`, async (t) => {
    const messages = userMessages('Call get_weather and get_time in parallel')
    const ask = { model, messages, tools: [WEATHER, TIME] }
    const whole = await completions.create(ask)
    const calls = callsOf(whole)
    t.same(
      calls.map(({ name }) => name),
      ['get_weather', 'get_time'],
    )
    t.equal(calls[1]?.json, '{}', 'no arguments are an empty object')
    t.equal(new Set(calls.map(({ id }) => id)).size, 2)
    const streamed = await read(await completions.create({ ...ask, stream: true }))
    t.same(
      streamed.calls.map(({ name, json }) => [name, Object.keys(objectOf(JSON.parse(json)))]),
      calls.map(({ name, json }) => [name, Object.keys(objectOf(JSON.parse(json)))]),
    )
    const [first, second] = calls
    if (whole.choices[0] === undefined || first === undefined || second === undefined) {
      throw new Error('no calls')
    }
    const results = [second, first].map(({ id, name }) => {
      return { role: 'tool' as const, tool_call_id: id, content: `${name} is done` }
    })
    const after = [...messages, whole.choices[0].message, ...results]
    const answer = await completions.create({ ...ask, messages: after })
    t.match(answer.choices[0]?.message.content, /get_weather returned: “get_weather is done”/)
    t.match(answer.choices[0]?.message.content, /get_time returned: “get_time is done”/)
    t.same(callsOf(answer), [])
    const one = await completions.create({ ...ask, parallel_tool_calls: false })
    if (!model.startsWith('gemini-')) t.equal(callsOf(one).length, 1)
  })

  void t.test(`${model}: tool_choice is obeyed`, async (t) => {
    const ask = { model, messages: userMessages('Hello'), tools: [WEATHER, TIME] }
    const called = async (tool_choice: OpenAI.ChatCompletionToolChoiceOption): Promise<string[]> =>
      callsOf(await completions.create({ ...ask, tool_choice })).map(({ name }) => name)
    t.same(await called('auto'), [])
    t.same(await called('none'), [])
    t.same(await called('required'), ['get_weather'])
    t.same(await called({ type: 'function', function: { name: 'get_time' } }), ['get_time'])
  })

  void t.test(`${model}: an image in the message reaches the model`, async (t) => {
    const content: OpenAI.ChatCompletionContentPart[] = [
      { type: 'text', text: 'What is this?' },
      { type: 'image_url', image_url: { url: PIXEL } },
    ]
    const ask = { model, messages: [{ role: 'user' as const, content }] }
    const reply = await completions.create(ask)
    t.match(reply.choices[0]?.message.content, /You sent 1 image \(image\/png\)/)
  })

  void t.test(`${model}: json_schema returns matching JSON`, async (t) => {
    const schema = {
      type: 'object',
      properties: { ok: { type: 'boolean' }, names: { type: 'array', items: { type: 'string' } } },
      required: ['ok', 'names'],
      additionalProperties: false,
    }
    const ask: OpenAI.ChatCompletionCreateParamsNonStreaming = {
      model,
      messages: userMessages('Anything'),
      response_format: { type: 'json_schema', json_schema: { name: 'x', schema, strict: true } },
    }
    const whole = await completions.create(ask)
    const value = objectOf(JSON.parse(whole.choices[0]?.message.content ?? ''))
    t.type(value['ok'], 'boolean')
    t.ok(arrayOf(value['names']).every((name) => typeof name === 'string'))
    t.same(Object.keys(value).sort(), ['names', 'ok'])
    t.same(callsOf(whole), [])
    const streamed = await read(await completions.create({ ...ask, stream: true }))
    t.same(Object.keys(objectOf(JSON.parse(streamed.text))).sort(), ['names', 'ok'])
    t.equal(streamed.finishes.at(-1), 'stop')
  })

  void t.test(`${model}: stop and max_tokens end the reply, temperature arrives`, async (t) => {
    const ask = { model, messages: userMessages(`one two three ${'and more '.repeat(9)}`) }
    const stop = [' two']
    if (!stops) t.equal((await failureOf(completions.create({ ...ask, stop }))).param, 'stop')
    const asked = stops ? { ...ask, stop } : ask
    const stopped = await completions.create({ ...asked, temperature: 0.5 })
    if (stops) t.match(stopped.choices[0]?.message.content, /one$/)
    t.equal(stopped.choices[0]?.finish_reason, 'stop')
    t.match(JSON.stringify(sent()), /"temperature":0.5/)
    await completions.create({ ...ask, top_p: 0.25 })
    t.match(JSON.stringify(sent()), /"top_?[pP]":0.25/)
    // The older name, which many programs still send.
    const limit = { max_tokens: leastTokens }
    const short = await completions.create({ ...ask, ...limit })
    t.equal(short.choices[0]?.finish_reason, 'length')
    t.equal(short.usage?.completion_tokens, leastTokens)
    const modern = await completions.create({ ...ask, max_completion_tokens: leastTokens + 1 })
    t.equal(modern.usage?.completion_tokens, leastTokens + 1)
    const streamed = await read(await completions.create({ ...ask, ...limit, stream: true }))
    t.equal(streamed.finishes.at(-1), 'length')
    t.equal(streamed.text, short.choices[0]?.message.content)
  })

  void t.test(`${model}: the SDK's stream helper collects the same reply`, async (t) => {
    const tools = [WEATHER]
    const messages = userMessages('What is the weather in Oslo? Use get_weather')
    const deltas: string[] = []
    const text = completions
      .stream({ model, messages: userMessages('Say something') })
      .on('content', (delta) => deltas.push(delta))
    t.equal(await text.finalContent(), deltas.join(''))
    t.match(deltas.join(''), /Say something/)
    const helper = completions.stream({ model, messages, tools })
    const done: string[] = []
    helper.on('tool_calls.function.arguments.done', ({ name }) => done.push(name))
    const final = await helper.finalChatCompletion()
    t.same(done, ['get_weather'])
    t.equal(final.choices[0]?.finish_reason, 'tool_calls')
    t.equal(objectOf(JSON.parse(callsOf(final)[0]?.json ?? ''))['city'], 'Oslo')
  })

  for (const stream of [false, true]) {
    const how = stream ? 'streamed' : 'whole'
    void t.test(`${model}: runTools runs the tool and gets the reply, ${how}`, async (t) => {
      const cities: string[] = []
      const weather = (args: { city: string }): string => {
        cities.push(args.city)
        return `snow in ${args.city}`
      }
      const tool = {
        type: 'function' as const,
        function: {
          name: 'get_weather',
          description: 'The weather of a city',
          parameters: objectOf(WEATHER.function.parameters),
          parse: (text: string) => JSON.parse(text) as { city: string },
          function: weather,
        },
      }
      const messages = userMessages('What is the weather in Rome? Use get_weather')
      const content = stream
        ? await completions.runTools({ model, messages, tools: [tool], stream }).finalContent()
        : await completions.runTools({ model, messages, tools: [tool] }).finalContent()
      t.same(cities, ['Rome'])
      t.match(content, /returned: “snow in Rome”/)
    })
  }
}

void t.test('a conversation moves from one provider to the next', async (t) => {
  const messages = userMessages('What is the weather in Lima? Use get_weather')
  for (const model of MODELS) {
    const reply = await completions.create({ model, messages, tools: [WEATHER] })
    const [call] = callsOf(reply)
    const message = reply.choices[0]?.message
    if (call === undefined || message === undefined) throw new Error(`${model} made no call`)
    const result = { role: 'tool' as const, tool_call_id: call.id, content: `from ${model}` }
    messages.push(message, result)
    const answer = await completions.create({ model, messages, tools: [WEATHER] })
    t.match(answer.choices[0]?.message.content, `from ${model}`)
    const words = answer.choices[0]?.message.content ?? ''
    messages.push({ role: 'assistant', content: words }, ...userMessages('Again: get_weather in Lima'))
  }
  for (const model of MODELS) {
    const streamed = await read(await completions.create({ model, messages, stream: true }))
    t.match(streamed.text, /Again/, `${model} takes the others' calls and results`)
    t.equal(streamed.finishes.at(-1), 'stop')
  }
})

void t.test('the model list has every usable model', async (t) => {
  const ids: string[] = []
  for await (const model of client.models.list()) {
    ids.push(model.id)
    t.ok(Number.isInteger(model.created) && model.owned_by !== '')
    t.equal(model.object, 'model')
  }
  for (const model of MODELS) {
    t.ok(ids.includes(model), `${model} is listed`)
    t.equal((await client.models.retrieve(model)).id, model)
  }
  t.equal((await failureOf(client.models.retrieve('llama-9'))).status, 404)
})
