/**
 * Goal: the higher helpers of OpenAI's own client work over every upstream dialect: tools run in turns,
 * structured replies are parsed, reasoning is carried, and a cancelled stream is cancelled upstream.
 * Method: the official SDK against a whole gateway and emulated providers; each case per row.
 */
import { APIError, APIUserAbortError } from 'openai'
import { zodFunction, zodResponseFormat } from 'openai/helpers/zod'
import type OpenAI from 'openai'
import t from 'tap'
import * as z from 'zod'
import { objectOf } from '../../../src/base/json.js'
import { startGateway } from '../../helpers/gateway.js'
import { ROWS } from '../upstream-cases.js'
import { callsOf, clientOf, userMessages, TIME } from './sdk.js'
import { failing, LONG, thrownBy, upstreamIsLeft } from '../client-scenarios.js'

const gateway = await startGateway(t)
const { completions } = clientOf(gateway).chat
const { emulator } = gateway

const PERSON = z.object({
  name: z.string(),
  age: z.number().int(),
  tags: z.array(z.enum(['red', 'green'])),
})

/** Runnable tools that record their arguments in `calls`. */
function toolsNoting(calls: string[]) {
  const city = z.object({ city: z.string() })
  return [
    zodFunction({
      name: 'get_time',
      parameters: z.object({}),
      function: () => {
        calls.push('get_time')
        return 'noon'
      },
    }),
    zodFunction({
      name: 'get_weather',
      parameters: city,
      function: (args: z.infer<typeof city>) => {
        calls.push(`get_weather ${args.city}`)
        return `snow in ${args.city}`
      },
    }),
  ]
}

for (const row of ROWS) {
  const { dialect, model } = row

  for (const prompt of [
    'Use get_time, then get_weather in Rome',
    'Call get_time and get_weather in Rome in parallel',
  ]) {
    void t.test(`${dialect}: runTools: ${prompt}`, async (t) => {
      const rounds = prompt.includes('parallel') ? 1 : 2
      for (const each of [model, row.reasoner]) {
        for (const stream of [false, true]) {
          const calls: string[] = []
          const ask = { model: each, messages: userMessages(prompt), tools: toolsNoting(calls) }
          const runner = stream ? completions.runTools({ ...ask, stream }) : completions.runTools(ask)
          t.match(await runner.finalContent(), /get_weather returned: “snow in Rome”/)
          t.same(calls, ['get_time', 'get_weather Rome'])
          const roles = runner.messages.map(({ role }) => role)
          t.equal(roles.filter((it) => it === 'assistant').length, rounds + 1)
          t.equal(roles.filter((it) => it === 'tool').length, 2)
        }
      }
    })
  }

  void t.test(`${dialect}: parse returns an object of the schema`, async (t) => {
    const response_format = zodResponseFormat(PERSON, 'person')
    const ask = { model, messages: userMessages('Make up a person'), response_format }
    const whole = await completions.parse(ask)
    t.ok(PERSON.safeParse(whole.choices[0]?.message.parsed).success)
    const streamed = await completions.stream(ask).finalChatCompletion()
    t.ok(PERSON.safeParse(streamed.choices[0]?.message.parsed).success)
  })

  void t.test(`${dialect}: parse returns a strict tool's arguments`, async (t) => {
    const tool = zodFunction({ name: 'keep_person', parameters: PERSON })
    const ask = { model, messages: userMessages('Use keep_person'), tools: [tool] }
    const whole = await completions.parse(ask)
    const [call] = whole.choices[0]?.message.tool_calls ?? []
    if (call?.type !== 'function') throw new Error('no call')
    t.ok(PERSON.safeParse(call.function.parsed_arguments).success)
    const streamed = await completions.stream(ask).finalChatCompletion()
    t.same(
      callsOf(streamed).map(({ name, json }) => [name, PERSON.safeParse(JSON.parse(json)).success]),
      [['keep_person', true]],
    )
  })

  void t.test(`${dialect}: reasoning is requested, shown and counted`, async (t) => {
    const ask = {
      model: row.reasoner,
      messages: userMessages('Think about 17'),
      reasoning_effort: 'low' as const,
    }
    const whole = await completions.create(ask)
    const thought = objectOf(whole.choices[0]?.message)['reasoning_content']
    t.equal(typeof thought === 'string', row.showsThinking)
    t.ok(Number(whole.usage?.completion_tokens_details?.reasoning_tokens) > 0)
    let text = ''
    let thinking = ''
    for await (const chunk of await completions.create({ ...ask, stream: true })) {
      const delta = chunk.choices[0]?.delta
      const fragment = objectOf(delta)['reasoning_content']
      if (typeof fragment === 'string') {
        t.equal(text, '', 'thought comes before the answer')
        thinking += fragment
      }
      text += delta?.content ?? ''
    }
    t.equal(text, whole.choices[0]?.message.content)
    t.equal(thinking, thought ?? '')
  })

  void t.test(`${dialect}: a reasoner that calls a tool takes its result`, async (t) => {
    const messages = userMessages('Use get_time')
    const ask = { model: row.reasoner, tools: [TIME], reasoning_effort: 'low' as const }
    for (const stream of [false, true]) {
      const first = stream
        ? await completions.stream({ ...ask, messages }).finalChatCompletion()
        : await completions.create({ ...ask, messages })
      const message = first.choices[0]?.message
      const [call] = callsOf(first)
      if (message === undefined || call === undefined) throw new Error('no call')
      const result: OpenAI.ChatCompletionToolMessageParam = {
        role: 'tool',
        tool_call_id: call.id,
        content: 'noon',
      }
      const answer = await completions.create({ ...ask, messages: [...messages, message, result] })
      t.match(answer.choices[0]?.message.content, /get_time returned: “noon”/)
    }
  })

  void t.test(`${dialect}: aborting stream() closes the upstream connection`, async (t) => {
    const helper = completions.stream({ model, messages: userMessages(LONG) })
    let deltas = 0
    helper.on('content', () => {
      deltas += 1
      if (deltas === 5) helper.abort()
    })
    t.ok((await thrownBy(() => helper.done())) instanceof APIUserAbortError)
    t.ok(deltas >= 5 && deltas < 300, `${deltas} deltas`)
    await upstreamIsLeft(t, emulator)
  })

  void t.test(`${dialect}: stream() and runTools() fail with the API's error`, async (t) => {
    const tools = toolsNoting([])
    await failing(emulator, { kind: 'status', code: 429 }, async () => {
      const streamed = completions.stream({ model, messages: userMessages('hi') })
      t.match(await thrownBy(() => streamed.finalContent()), { status: 429 })
      const runner = completions.runTools({ model, messages: userMessages('hi'), tools })
      t.match(await thrownBy(() => runner.finalContent()), { status: 429 })
    })
    await failing(emulator, { kind: 'error', event: 8 }, async () => {
      const streamed = completions.stream({ model, messages: userMessages(LONG) })
      let text = ''
      streamed.on('content', (delta) => {
        text += delta
      })
      const error = await thrownBy(() => streamed.finalContent())
      t.ok(error instanceof APIError && text.length > 0)
    })
  })
}
