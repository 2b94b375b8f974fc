/**
 * Goal: a whole reply has the same shape with every provider.
 * Method: compares members, types and reasons of all three provider families.
 */
import t from 'tap'
import { arrayOf, objectOf, stringOf } from '../../src/base/json.js'
import { startGateway } from '../helpers/gateway.js'
import { ask, body, FAMILIES } from './exchange.js'

const TOOL = { type: 'function', function: { name: 'tide', parameters: { type: 'object' } } }

for (const { family, model } of FAMILIES) {
  void t.test(`S2: ${family}: the reply has the members of the format`, async (t) => {
    const gateway = await startGateway(t)
    const before = Math.floor(Date.now() / 1000)
    const { status, headers, json } = await ask(gateway, body({ model }))
    t.equal(status, 200)
    t.match(headers.get('content-type'), /^application\/json/)
    t.match(json, { object: 'chat.completion', id: /^chatcmpl-/, choices: [{ index: 0 }] })
    t.type(json.created, 'number')
    t.ok(Number.isInteger(json.created) && Number(json.created) >= before - 1)
    t.ok(typeof json.model === 'string' && json.model.startsWith(model), 'the model asked for')
    const [choice, ...others] = arrayOf(json.choices).map(objectOf)
    t.equal(others.length, 0)
    t.equal(choice?.finish_reason, 'stop')
    const message = objectOf(choice?.message)
    t.equal(message.role, 'assistant')
    t.ok(typeof message.content === 'string' && message.content !== '')
    const usage = objectOf(json.usage)
    const { prompt_tokens: prompt, completion_tokens: completion, total_tokens: total } = usage
    for (const count of [prompt, completion, total]) t.ok(Number.isInteger(count) && count !== 0)
    t.equal(Number(prompt) + Number(completion), total)
  })

  void t.test(`S2: ${family}: the finish reason is that of the client's format`, async (t) => {
    const gateway = await startGateway(t)
    const reasonOf = async (members: Parameters<typeof body>[0]): Promise<unknown> => {
      const { json } = await ask(gateway, body({ model, ...members }))
      return objectOf(arrayOf(json.choices)[0]).finish_reason
    }
    t.equal(await reasonOf({}), 'stop')
    const long = [{ role: 'user', content: 'Tell me more. [[words: 200]]' }]
    t.equal(await reasonOf({ max_tokens: 5, messages: long }), 'length')
    t.equal(await reasonOf({ tools: [TOOL], tool_choice: 'required' }), 'tool_calls')
  })

  void t.test(`S2: ${family}: a call of a tool has id, name and JSON arguments`, async (t) => {
    const gateway = await startGateway(t)
    const { json } = await ask(gateway, body({ model, tools: [TOOL], tool_choice: 'required' }))
    const message = objectOf(objectOf(arrayOf(json.choices)[0]).message)
    const calls = arrayOf(message.tool_calls).map(objectOf)
    t.ok(calls.length > 0)
    for (const call of calls) {
      const { name, arguments: text } = objectOf(call.function)
      t.match(call, { id: /./, type: 'function' })
      t.equal(name, 'tide')
      t.doesNotThrow(() => void JSON.parse(stringOf(text) ?? ''))
    }
  })
}

void t.test("S2: content_filter, from each provider's own reason", async (t) => {
  const gateway = await startGateway(t)
  const reply = (value: object) => ({
    status: 200,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(value),
  })
  const replies = {
    'gpt-4o-mini': {
      id: 'chatcmpl-1',
      object: 'chat.completion',
      created: 1,
      model: 'gpt-4o-mini',
      choices: [{ index: 0, message: { role: 'assistant', content: '' }, finish_reason: 'content_filter' }],
    },
    'claude-haiku-4-5': {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'claude-haiku-4-5',
      content: [{ type: 'text', text: 'I cannot' }],
      stop_reason: 'refusal',
      usage: { input_tokens: 1, output_tokens: 1 },
    },
    'gemini-2.5-flash': {
      candidates: [{ content: { parts: [{ text: 'I' }], role: 'model' }, finishReason: 'SAFETY' }],
      modelVersion: 'gemini-2.5-flash',
      responseId: 'r',
    },
  }
  for (const [model, value] of Object.entries(replies)) {
    gateway.emulator.replay(reply(value))
    const { status, json } = await ask(gateway, body({ model }))
    t.equal(status, 200, model)
    t.match(json, { object: 'chat.completion', choices: [{ finish_reason: 'content_filter' }] })
  }
})

void t.test('S2: a 200 without a reply is a 502', async (t) => {
  const gateway = await startGateway(t)
  for (const { model } of FAMILIES) {
    for (const text of ['{}', '{"choices":[]}', '{"choices":"x","content":7}', '[]', 'null', '']) {
      const headers = { 'content-type': 'application/json' }
      gateway.emulator.replay({ status: 200, headers, body: text })
      const { status, error } = await ask(gateway, body({ model }))
      t.equal(status, 502, `${model}: ${text}`)
      t.match(error, { type: 'api_error', code: null, kind: /^upstream_/ })
    }
  }
})
