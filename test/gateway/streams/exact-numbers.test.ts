/**
 * Goal: §13 68: an id of 19 digits in a call's arguments reaches the tool, and is sent back upstream, without
 * a change, whole and streamed; so do numbers like `1e400` and keys like `__proto__` (§13 69).
 * Method: one reply through a gateway, and a history with the same call.
 */
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { arrayOf, objectOf, stringOf, type JsonObject } from '../../../src/base/json.js'
import { startGateway, type TestGateway } from '../../helpers/gateway.js'
import { listen } from '../../helpers/listen.js'

const ARGUMENTS = '{"user":1234567890123456789,"list":[-98765432109876543210,1e400],"__proto__":{"a":1}}'
const parameters = { type: 'object', properties: { user: { type: 'integer' } } }
const tools = [{ type: 'function', function: { name: 'look', parameters } }]
const QUESTION = { role: 'user', content: 'Who is it?' }

const CLAUDE =
  `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"tool_use",` +
  `"id":"toolu_1","name":"look","input":${ARGUMENTS}}],"stop_reason":"tool_use","stop_sequence":null,` +
  `"usage":{"input_tokens":1,"output_tokens":1}}`
const GEMINI =
  `{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"look",` +
  `"args":${ARGUMENTS}}}]},"finishReason":"STOP","index":0}],"modelVersion":"m"}`

/** A gateway over one server that replies to all requests with this body and records them. */
async function gatewayOver(
  t: Test,
  body: string,
  type = 'application/json',
): Promise<{ gateway: TestGateway; sent: string[] }> {
  const sent: string[] = []
  const server = createServer((req, res) => {
    void text(req).then((asked) => {
      sent.push(asked)
      res.writeHead(200, { 'content-type': type })
      res.end(body)
    })
  })
  const url = `http://127.0.0.1:${await listen(t, server)}`
  return { gateway: await startGateway(t, { upstreams: { anthropic: url, gemini: url } }), sent }
}

function argumentsIn(message: JsonObject): string | undefined {
  const call = objectOf(arrayOf(message['tool_calls'])[0])
  return stringOf(objectOf(call['function'])['arguments'])
}

for (const [model, body] of [
  ['claude-haiku-4-5', CLAUDE],
  ['gemini-2.5-flash', GEMINI],
] as const) {
  void t.test(`a whole reply of ${model}`, async (t) => {
    const { gateway } = await gatewayOver(t, body)
    const response = await gateway.chat({ model, messages: [QUESTION], tools, max_tokens: 99 })
    const choice = objectOf(arrayOf(objectOf(await response.json())['choices'])[0])
    t.equal(argumentsIn(objectOf(choice['message'])), ARGUMENTS)
  })

  void t.test(`a conversation that returns to ${model}`, async (t) => {
    const { gateway, sent } = await gatewayOver(t, body)
    const call = { id: 'a', type: 'function', function: { name: 'look', arguments: ARGUMENTS } }
    const messages = [
      QUESTION,
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'a', content: ARGUMENTS },
    ]
    const response = await gateway.chat({ model, messages, tools })
    t.equal(response.status, 200)
    const times = model.startsWith('gemini') ? 2 : 1
    const found = sent.join('').split(`:${ARGUMENTS}`).length - 1
    t.equal(found, times, 'arguments, and for Gemini a result that is an object')
  })
}

void t.test('a stream of Gemini', async (t) => {
  const { gateway } = await gatewayOver(t, `data: ${GEMINI}\r\n\r\n`, 'text/event-stream')
  const model = 'gemini-2.5-flash'
  const response = await gateway.chat({ model, messages: [QUESTION], tools, stream: true })
  t.ok((await response.text()).includes(JSON.stringify(ARGUMENTS)))
})
