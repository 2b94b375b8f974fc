/**
 * Goal: a body of Responses that a client posts to the path of chat completions is read as what it is, and
 * the reply is a chat.
 * Method: such requests to a gateway, whole and streamed, with an emulated upstream of each format.
 */
import t from 'tap'
import { startGateway } from '../../helpers/gateway.js'

void t.test('a body of Responses on the path of chats', async (t) => {
  const gateway = await startGateway(t)
  const tools = [{ type: 'function', name: 'look', parameters: { type: 'object', properties: {} } }]
  const input = [
    { role: 'user', content: [{ type: 'input_text', text: 'Hello' }] },
    { type: 'function_call', call_id: 'c1', name: 'look', arguments: '{}' },
    { type: 'function_call_output', call_id: 'c1', output: 'a tree' },
  ]
  for (const model of ['gpt-4o', 'gpt-4.1', 'claude-haiku-4-5', 'gemini-2.5-flash']) {
    const whole = await gateway.chat({ model, input, tools, instructions: 'Be brief.' })
    t.equal(whole.status, 200, model)
    t.match(await whole.json(), { object: 'chat.completion', choices: [{ message: { role: 'assistant' } }] })
    const streamed = await gateway.chat({ model, input, tools, stream: true })
    const text = await streamed.text()
    t.match(text, /"object":"chat\.completion\.chunk"/, model)
    t.match(text, /data: \[DONE\]\n\n$/)
    t.notMatch(text, /response\.created/)
  }
  const empty = await gateway.chat({ model: 'gpt-4o', input, tools, messages: [] })
  t.equal(empty.status, 200, 'an empty list of messages is none')
  const reference = { type: 'item_reference', id: 'msg_1' }
  for (const [more, param] of [
    [{ previous_response_id: 'resp_1' }, 'previous_response_id'],
    [{ input: [...input, reference] }, 'input'],
  ] as const) {
    const continued = await gateway.chat({ model: 'gpt-4o', input, tools, ...more })
    t.equal(continued.status, 400, 'nothing that it refers to is left out')
    t.match(await continued.json(), { error: { param, message: /send the whole conversation/ } })
  }
  const neither = await gateway.chat({ model: 'gpt-4o' })
  t.match(await neither.json(), { error: { param: 'messages' } })
})
