/**
 * Goal: a program works with the newest models, and gets the names of fields that they do not accept.
 * Method: the official SDK with models that have their own rules for sampling, thinking and tools; the
 * emulator refuses the same requests as the providers.
 */
import t from 'tap'
import { startGateway } from '../../helpers/gateway.js'
import { callsOf, clientOf, read, userMessages, TIME, WEATHER } from './sdk.js'

const NEWEST = ['gpt-5.4', 'claude-opus-5-5', 'gemini-3.5-flash']
const gateway = await startGateway(t)
const { completions } = clientOf(gateway).chat

for (const model of NEWEST) {
  void t.test(`${model}: text, tools and their results, whole and streamed`, async (t) => {
    const messages = userMessages('What is the weather in Bern? Use get_weather')
    const ask = { model, messages, tools: [WEATHER, TIME] }
    for (let turn = 0; turn < 2; turn += 1) {
      const whole = await completions.create(ask)
      const [call] = callsOf(whole)
      const message = whole.choices[0]?.message
      if (call === undefined || message === undefined) throw new Error('no call')
      t.equal(call.name, 'get_weather')
      const streamed = await read(await completions.create({ ...ask, stream: true }))
      t.equal(streamed.calls[0]?.name, 'get_weather')
      t.equal(streamed.finishes.at(-1), 'tool_calls')
      const result = { role: 'tool' as const, tool_call_id: call.id, content: `${turn} °C` }
      messages.push(message, result)
      const answer = await completions.create(ask)
      const content = answer.choices[0]?.message.content ?? ''
      t.match(content, `${turn} °C`)
      const again = await read(await completions.create({ ...ask, stream: true }))
      t.equal(again.text, content)
      messages.push({ role: 'assistant', content }, ...userMessages('Again with get_weather in Bern'))
    }
  })

  void t.test(`${model}: thinking is counted and bounded by the limit`, async (t) => {
    const ask = { model, messages: userMessages('Think hard'), reasoning_effort: 'high' as const }
    const { usage } = await completions.create(ask)
    const thought = usage?.completion_tokens_details?.reasoning_tokens
    t.ok(thought === undefined || thought <= (usage?.completion_tokens ?? 0))
    const short = await completions.create({ ...ask, max_completion_tokens: 30 })
    t.equal(short.choices[0]?.finish_reason, 'length')
    t.ok((short.usage?.completion_tokens ?? Infinity) <= 30)
  })
}

void t.test('a header names the fields that translation omits', async (t) => {
  const ask = { model: 'claude-opus-5-5', messages: userMessages('hi'), tools: [WEATHER] }
  const lost = async (fields: object): Promise<string | null> => {
    const { response } = await completions.create({ ...ask, ...fields }).withResponse()
    return response.headers.get('x-sluice-lost')
  }
  t.equal(await lost({}), null)
  t.equal(await lost({ temperature: 0.5 }), 'temperature')
  t.equal(await lost({ temperature: 1 }), null, 'the default is no loss')
  t.equal(await lost({ tool_choice: 'required' }), 'tool_choice')
  t.equal(await lost({ seed: 7 }), 'seed')
})

void t.test('a quirk of the configuration removes a field that an upstream refuses', async (t) => {
  const quirks = '{ rename: { max_tokens: max_completion_tokens }, drop: [temperature] }'
  const withQuirk = await startGateway(t, { upstreamOptions: `quirks: ${quirks}` })
  const fields = { max_tokens: 30, temperature: 0.5 }
  const ask = { model: 'gpt-5.4', messages: userMessages('hi'), ...fields }
  const reply = await clientOf(withQuirk).chat.completions.create(ask)
  t.equal(reply.choices[0]?.finish_reason, 'length')
  t.equal(reply.usage?.completion_tokens, 30)
})

void t.test('on a route of the same dialect too', async (t) => {
  const ask = { model: 'gpt-5.4', messages: userMessages('hi') }
  const { data, response } = await completions.create({ ...ask, temperature: 0.5 }).withResponse()
  t.equal(data.choices.length, 1, 'what the model refuses is left out')
  t.equal(response.headers.get('x-sluice-lost'), 'temperature', 'and is reported')
  const limit = { max_tokens: 500 }
  const limited = await completions.create({ ...ask, ...limit })
  t.equal(limited.choices.length, 1, 'max_tokens goes under its new name')
})
