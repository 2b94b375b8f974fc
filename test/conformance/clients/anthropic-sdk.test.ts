/**
 * Goal: a program written for Anthropic's own client works unchanged over every upstream dialect.
 * Method: the official SDK against a whole gateway and emulated providers; each behaviour once per dialect.
 */
import Anthropic, { APIError } from '@anthropic-ai/sdk'
import { ThreadUnsupportedRequestError } from '@anthropic-ai/sdk/resources/messages'
import t from 'tap'
import { arrayOf, objectOf } from '../../../src/base/json.js'
import { startGateway } from '../../helpers/gateway.js'
import { ROWS } from '../upstream-cases.js'
import { failing, LONG, PIXEL, thrownBy, upstreamIsLeft } from '../client-scenarios.js'

const gateway = await startGateway(t)
const client = new Anthropic({ apiKey: gateway.secret, baseURL: gateway.origin, maxRetries: 0 })
const { messages } = client

const MAX = { max_tokens: 1_000 }

const WEATHER: Anthropic.Tool = {
  name: 'get_weather',
  description: 'The weather of a city',
  input_schema: {
    type: 'object',
    properties: {
      city: { type: 'string' },
      unit: { type: 'string', enum: ['celsius', 'fahrenheit'] },
    },
    required: ['city', 'unit'],
  },
}

const TIME: Anthropic.Tool = { name: 'get_time', input_schema: { type: 'object', properties: {} } }

/** One message of a user. */
function userMessages(content: string): Anthropic.MessageParam[] {
  return [{ role: 'user', content }]
}

function textOf(message: Anthropic.Message): string {
  return message.content.map((block) => (block.type === 'text' ? block.text : '')).join('')
}

function callsOf(message: Anthropic.Message): Anthropic.ToolUseBlock[] {
  return message.content.filter((block) => block.type === 'tool_use')
}

/** The last request body that the upstream received. */
function sent(): Record<string, unknown> {
  return gateway.emulator.ledger.at(-1)?.body ?? {}
}

for (const { dialect, model, reasoner, stops, leastTokens, oneCallAtATime, showsThinking } of ROWS) {
  void t.test(`${dialect}: plain text, whole and streamed, is the same message`, async (t) => {
    const ask = { model, ...MAX, messages: userMessages('Grüße an Ωmega 🐋') }
    const whole = await messages.create(ask)
    t.match(textOf(whole), /Your message: “Grüße an Ωmega 🐋”$/)
    t.match(whole, {
      type: 'message',
      role: 'assistant',
      stop_reason: 'end_turn',
      stop_sequence: null,
    })
    t.match(whole.id, /^msg_/)
    t.ok(whole.usage.input_tokens > 0 && whole.usage.output_tokens > 0)

    const streamed = await messages.stream(ask).finalMessage()
    t.equal(textOf(streamed), textOf(whole))
    t.equal(streamed.stop_reason, 'end_turn')
    t.equal(streamed.usage.output_tokens, whole.usage.output_tokens)
    t.equal(streamed.usage.input_tokens, whole.usage.input_tokens)
  })

  void t.test(`${dialect}: one call, whole and streamed, then its result`, async (t) => {
    const asked = userMessages('What is the weather in Paris? Use get_weather')
    const ask = { model, ...MAX, messages: asked, tools: [WEATHER, TIME] }
    const whole = await messages.create(ask)
    const [call, none] = callsOf(whole)
    if (call === undefined) throw new Error('no call')
    t.equal(none, undefined)
    t.equal(whole.stop_reason, 'tool_use')
    t.equal(call.name, 'get_weather')
    t.equal(objectOf(call.input)['city'], 'Paris')

    const streamed = await messages.stream(ask).finalMessage()
    t.equal(streamed.stop_reason, 'tool_use')
    t.same(
      callsOf(streamed).map(({ name, input }) => [name, objectOf(input)['city']]),
      [['get_weather', 'Paris']],
    )

    const turns: Anthropic.MessageParam[] = [
      ...asked,
      { role: 'assistant', content: whole.content },
      {
        role: 'user',
        content: [{ type: 'tool_result', tool_use_id: call.id, content: 'rain, 12 °C' }],
      },
    ]
    const after = { ...ask, messages: turns }
    const answer = await messages.create(after)
    t.match(textOf(answer), /returned: “rain, 12 °C”/)
    t.equal(textOf(await messages.stream(after).finalMessage()), textOf(answer))
  })

  void t.test(`${dialect}: parallel calls keep order and ids; one on request`, async (t) => {
    const asked = userMessages('Call get_weather and get_time in parallel')
    const ask = { model, ...MAX, messages: asked, tools: [WEATHER, TIME] }
    const whole = await messages.create(ask)
    const calls = callsOf(whole)
    t.same(
      calls.map(({ name }) => name),
      ['get_weather', 'get_time'],
    )
    t.same(calls[1]?.input, {})
    t.equal(new Set(calls.map(({ id }) => id)).size, 2)
    const streamed = await messages.stream(ask).finalMessage()
    t.same(
      callsOf(streamed).map(({ name }) => name),
      ['get_weather', 'get_time'],
    )
    t.same(callsOf(streamed)[1]?.input, {})

    const results = calls.toReversed().map(({ id, name }) => ({
      type: 'tool_result' as const,
      tool_use_id: id,
      content: `${name}!`,
    }))
    const turns: Anthropic.MessageParam[] = [
      ...asked,
      { role: 'assistant', content: whole.content },
      { role: 'user', content: [...results, { type: 'text', text: 'What did they say?' }] },
    ]
    await messages.create({ ...ask, messages: turns })
    const body = JSON.stringify(sent())
    t.ok(body.includes('get_weather!') && body.includes('get_time!'))

    if (!oneCallAtATime) return
    const choice = { type: 'auto' as const, disable_parallel_tool_use: true }
    const single = await messages.create({ ...ask, tool_choice: choice })
    t.equal(callsOf(single).length, 1)
  })

  void t.test(`${dialect}: choices of tools reach the upstream`, async (t) => {
    const ask = { model, ...MAX, messages: userMessages('Hello'), tools: [WEATHER, TIME] }
    const any = await messages.create({ ...ask, tool_choice: { type: 'any' } })
    t.equal(callsOf(any).length, 1)
    const named = await messages.create({ ...ask, tool_choice: { type: 'tool', name: 'get_time' } })
    t.same(
      callsOf(named).map(({ name }) => name),
      ['get_time'],
    )
    const none = await messages.create({ ...ask, tool_choice: { type: 'none' } })
    t.equal(callsOf(none).length, 0)
  })

  void t.test(`${dialect}: a name of 128 characters is the client's again in the reply`, async (t) => {
    const name = `get_${'weather_of_a_city_'.repeat(7)}`.slice(0, 128).padEnd(128, 'x')
    const ask = {
      model,
      ...MAX,
      messages: userMessages('Hello'),
      tools: [{ ...TIME, name }],
      tool_choice: { type: 'tool' as const, name },
    }
    const whole = await messages.create(ask)
    t.equal(callsOf(whole)[0]?.name, name)
    t.equal(callsOf(await messages.stream(ask).finalMessage())[0]?.name, name)
  })

  void t.test(`${dialect}: system blocks, images and files arrive`, async (t) => {
    const source = { type: 'base64' as const, media_type: 'image/png' as const, data: PIXEL }
    const pdf = Buffer.from('%PDF-1.4 tiny').toString('base64')
    await messages.create({
      model,
      ...MAX,
      system: [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }],
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'What is this?' },
            { type: 'image', source },
            {
              type: 'document',
              source: { type: 'base64', media_type: 'application/pdf', data: pdf },
              title: 'tiny.pdf',
            },
          ],
        },
      ],
    })
    const body = JSON.stringify(sent())
    for (const word of ['Be brief.', 'What is this?', PIXEL, pdf]) t.ok(body.includes(word), word)
  })

  void t.test(`${dialect}: an image in a tool result arrives`, async (t) => {
    const source = { type: 'base64' as const, media_type: 'image/png' as const, data: PIXEL }
    await messages.create({
      model,
      ...MAX,
      tools: [TIME],
      messages: [
        ...userMessages('Look'),
        {
          role: 'assistant',
          content: [{ type: 'tool_use', id: 'call_1', name: 'get_time', input: {} }],
        },
        {
          role: 'user',
          content: [
            {
              type: 'tool_result',
              tool_use_id: 'call_1',
              is_error: true,
              content: [
                { type: 'text', text: 'seen' },
                { type: 'image', source },
              ],
            },
          ],
        },
      ],
    })
    const body = JSON.stringify(sent())
    t.ok(body.includes(PIXEL) && body.includes('seen'))
  })

  void t.test(`${dialect}: structured output follows its schema`, async (t) => {
    const schema = {
      type: 'object',
      properties: { city: { type: 'string' } },
      required: ['city'],
      additionalProperties: false,
    }
    const reply = await messages.create({
      model,
      ...MAX,
      messages: userMessages('A city, please'),
      output_config: { format: { type: 'json_schema', schema } },
    })
    t.type(objectOf(JSON.parse(textOf(reply)))['city'], 'string')
  })

  void t.test(`${dialect}: stops at a sequence and at the limit`, async (t) => {
    const cut = await messages.create({
      model,
      max_tokens: leastTokens,
      messages: userMessages(LONG),
    })
    t.equal(cut.stop_reason, 'max_tokens')
    const ask = {
      model,
      ...MAX,
      messages: userMessages('one two STOP three'),
      stop_sequences: ['STOP'],
    }
    if (!stops) {
      const error = await thrownBy(() => messages.create(ask))
      t.ok(error instanceof APIError && error.status === 400)
      return
    }
    t.notMatch(textOf(await messages.create(ask)), /three/)
  })

  void t.test(`${dialect}: thinking survives a tool loop`, async (t) => {
    const asked = userMessages('What is the weather in Rome? Use get_weather')
    const budget = { type: 'enabled' as const, budget_tokens: 2_000 }
    const thinking = dialect === 'anthropic' ? { type: 'adaptive' as const } : budget
    const ask = { model: reasoner, max_tokens: 4_000, messages: asked, tools: [WEATHER], thinking }
    for (const streamed of [false, true]) {
      const first = streamed ? await messages.stream(ask).finalMessage() : await messages.create(ask)
      const [thought] = first.content.filter((block) => block.type === 'thinking')
      if (showsThinking) t.ok(thought !== undefined && thought.thinking !== '', 'it is shown')
      if (thought !== undefined) t.ok(thought.signature !== '', 'and has a signature')
      const [call] = callsOf(first)
      if (call === undefined) throw new Error('no call')
      const turns: Anthropic.MessageParam[] = [
        ...asked,
        { role: 'assistant', content: first.content },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: call.id, content: 'sun' }] },
      ]
      const second = await messages.create({ ...ask, messages: turns })
      t.match(textOf(second), /sun/)
      t.notMatch(JSON.stringify(sent()), /c2x1aWNl/, 'no token of the gateway goes upstream')
      // The same conversation at Anthropic: thinking of another model is dropped.
      const moved = await messages.create({
        model: 'claude-haiku-4-5',
        max_tokens: 4_000,
        messages: turns,
        tools: [WEATHER],
      })
      t.match(textOf(moved), /sun/)
      if (dialect !== 'anthropic') t.notMatch(JSON.stringify(sent()), /"thinking"/)
    }
  })

  void t.test(`${dialect}: errors are those of the SDK`, async (t) => {
    const ask = { model, ...MAX, messages: userMessages('Hello') }
    const limited = await failing(gateway.emulator, { kind: 'status', code: 429 }, () =>
      thrownBy(() => messages.create(ask)),
    )
    t.ok(limited instanceof Anthropic.RateLimitError)
    const failed = await failing(gateway.emulator, { kind: 'status', code: 500 }, () =>
      thrownBy(() => messages.create(ask)),
    )
    t.ok(failed instanceof Anthropic.InternalServerError)
    t.match(failed, { error: { type: 'error', error: { type: 'api_error' } } })
    const cut = await failing(gateway.emulator, { kind: 'cut', event: 12 }, () =>
      thrownBy(() => messages.stream({ ...ask, messages: userMessages(LONG) }).finalMessage()),
    )
    t.ok(cut instanceof Error, 'a cut stream does not look complete')
  })

  void t.test(`${dialect}: abort closes the upstream connection`, async (t) => {
    const stream = messages.stream({ model, ...MAX, messages: userMessages(LONG) })
    stream.on('text', () => stream.abort())
    const error = await thrownBy(() => stream.finalMessage())
    t.ok(error instanceof Anthropic.APIUserAbortError)
    await upstreamIsLeft(t, gateway.emulator)
  })
}

void t.test('a key is read from either header, and a wrong one refused', async (t) => {
  const ask = { model: 'claude-haiku-4-5', ...MAX, messages: userMessages('Hello') }
  const { origin: baseURL, secret } = gateway
  const bearer = new Anthropic({ authToken: secret, apiKey: null, baseURL, maxRetries: 0 })
  t.match(textOf(await bearer.messages.create(ask)), /Hello/)
  const header = { 'x-api-key': secret, authorization: null }
  t.match(textOf(await client.messages.create(ask, { headers: header })), /Hello/)
  const unauthorized = new Anthropic({ apiKey: 'sk_wrong', baseURL, maxRetries: 0 })
  const error = await thrownBy(() => unauthorized.messages.create(ask))
  t.ok(error instanceof Anthropic.AuthenticationError)
  t.match(error, { error: { type: 'error', error: { type: 'authentication_error' } } })
})

void t.test('the request id is in header and error', async (t) => {
  const ask = { model: 'claude-haiku-4-5', ...MAX, messages: userMessages('Hello') }
  const { response, request_id } = await messages.create(ask).withResponse()
  t.equal(request_id, response.headers.get('x-request-id'))
  const error = await thrownBy(() => messages.create({ ...ask, model: 'unknown-model' }))
  if (!(error instanceof Anthropic.NotFoundError)) throw new Error('not the right error')
  t.equal(error.requestID, objectOf(error.error)['request_id'])
  t.match(objectOf(error.error)['error'], { type: 'not_found_error', kind: 'unknown_model' })
})

void t.test('beta features go to Anthropic and are named as lost elsewhere', async (t) => {
  const headers = { 'anthropic-beta': 'context-1m-2025-08-07' }
  const body = { ...MAX, messages: userMessages('Hello') }
  await messages.create({ ...body, model: 'claude-haiku-4-5' }, { headers })
  t.equal(gateway.emulator.ledger.at(-1)?.headers['anthropic-beta'], 'context-1m-2025-08-07')
  const { response } = await messages.create({ ...body, model: 'gpt-4o' }, { headers }).withResponse()
  t.equal(response.headers.get('x-sluice-lost'), 'anthropic-beta.context-1m-2025-08-07')
  t.notOk('anthropic-beta' in (gateway.emulator.ledger.at(-1)?.headers ?? {}))
})

void t.test("Anthropic's own tools are reported as lost elsewhere", async (t) => {
  const ask = {
    ...MAX,
    messages: userMessages('Hello'),
    tools: [TIME, { type: 'web_search_20250305' as const, name: 'web_search' as const }],
  }
  const { response } = await messages.create({ ...ask, model: 'gpt-4o' }).withResponse()
  t.equal(response.headers.get('x-sluice-lost'), 'tools.web_search_20250305')
  t.equal(arrayOf(sent()['tools']).length, 1)
  await messages.create({ ...ask, model: 'claude-haiku-4-5' })
  t.equal(arrayOf(sent()['tools']).length, 2)
  const choice = { type: 'tool' as const, name: 'web_search' }
  const forced = await thrownBy(() => messages.create({ ...ask, model: 'gpt-4o', tool_choice: choice }))
  t.ok(forced instanceof Anthropic.BadRequestError)
})

void t.test('streams are in the order of the format', async (t) => {
  for (const { model } of ROWS) {
    const stream = await messages.create({
      model,
      ...MAX,
      messages: userMessages('Hello'),
      stream: true,
    })
    const types: string[] = []
    for await (const event of stream) types.push(event.type)
    t.match(
      types.join(' '),
      /^message_start content_block_start (?:content_block_delta )+content_block_stop message_delta message_stop$/,
      model,
    )
    const raw = await fetch(`${gateway.origin}/v1/messages`, {
      method: 'POST',
      headers: { 'x-api-key': gateway.secret, 'content-type': 'application/json' },
      body: JSON.stringify({ model, ...MAX, messages: userMessages('Hello'), stream: true }),
    })
    t.match(await raw.text(), /^event: message_start\n[^]*\nevent: ping\n[^]*event: message_stop\n/, model)
  }
})

void t.test('a thread is refused as by the API, and the SDK sends the whole conversation', async (t) => {
  for (const { dialect, model } of ROWS) {
    const before = gateway.emulator.ledger.length
    const params = { ...MAX, model }
    const error = await thrownBy(async () => client.beta.messages.thread(params).send(userMessages('hi')))
    t.ok(error instanceof ThreadUnsupportedRequestError, dialect)
    t.match(error, {
      status: 400,
      type: 'invalid_request_error',
      details: { error_code: 'thread_unsupported_request', unsupported: ['thread'] },
    })
    t.equal(gateway.emulator.ledger.length, before, 'nothing was sent to the upstream')
    const unthreaded = { ...params, unsupportedRequestBehavior: 'continue_unthreaded' } as const
    const thread = client.beta.messages.thread(unthreaded)
    await thread.send(userMessages('one'))
    await thread.send(userMessages('two'))
    t.equal(thread.messages.length, 4)
    t.match(JSON.stringify(sent()), /one.*two/, 'the upstream has both turns')
  }
})
