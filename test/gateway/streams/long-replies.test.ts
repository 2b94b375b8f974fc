/**
 * Goal: a reply that may be long is requested as a stream although the client requested it whole, and the
 * client's reply is the same.
 * Method: whole requests through a gateway; the requests of the emulated provider, and the replies.
 */
import t from 'tap'
import { arrayOf, objectOf, type JsonObject } from '../../../src/base/json.js'
import { startGateway, type TestGateway } from '../../helpers/gateway.js'

const HI = { messages: [{ role: 'user', content: 'Say hi' }] }

/** Whether the provider got a request for a stream, and the reply to the client. */
async function whole(
  gateway: TestGateway,
  body: JsonObject,
): Promise<{ streamed: boolean; status: number; reply: JsonObject; type: string | null }> {
  const response = await gateway.chat({ ...HI, ...body })
  const reply = objectOf(await response.json())
  const entry = gateway.emulator.ledger.at(-1)
  const streamed = entry?.body?.['stream'] === true || entry?.path.includes(':stream') === true
  return { streamed, status: response.status, reply, type: response.headers.get('content-type') }
}

function content(reply: JsonObject): unknown {
  return objectOf(objectOf(arrayOf(reply['choices'])[0])['message'])['content']
}

void t.test('max_tokens above 21,333 causes a stream for Claude', async (t) => {
  const gateway = await startGateway(t)
  const model = 'claude-haiku-4-5'
  const long = await whole(gateway, { model, max_tokens: 21_334 })
  const short = await whole(gateway, { model, max_tokens: 21_333 })
  t.same([long.streamed, short.streamed], [true, false])
  t.equal(long.type, 'application/json')
  t.equal(content(long.reply), content(short.reply), 'the same reply')
  t.match(long.reply, { object: 'chat.completion', usage: { completion_tokens: Number } })
  const silent = await whole(gateway, { model })
  t.ok(silent.streamed, "the default is the model's most")
})

void t.test('a call, the finish reason and the counts are those of a whole reply', async (t) => {
  const gateway = await startGateway(t)
  const parameters = { type: 'object', properties: { at: { type: 'string' } }, required: ['at'] }
  const tools = [{ type: 'function', function: { name: 'look', parameters } }]
  const requestBody = { model: 'claude-haiku-4-5', tools, tool_choice: 'required' }
  const long = await whole(gateway, requestBody)
  const short = await whole(gateway, { ...requestBody, max_tokens: 1000 })
  t.same([long.streamed, short.streamed], [true, false])
  const { choices } = long.reply
  const call = { type: 'function', function: { name: 'look' } }
  t.match(choices, [{ finish_reason: 'tool_calls', message: { tool_calls: [call] } }])
  const summaryOf = ({ choices, usage }: JsonObject): string =>
    JSON.stringify({ choices, usage }).replace(/toolu_\w+/, 'ID')
  t.equal(summaryOf(long.reply), summaryOf(short.reply))
})

void t.test('a Gemini model with shorter whole replies gets a request for a stream', async (t) => {
  const gateway = await startGateway(t)
  t.ok((await whole(gateway, { model: 'gemini-4-argon' })).streamed)
  t.ok((await whole(gateway, { model: 'gemini-4-argon', max_tokens: 40_000 })).streamed)
  t.notOk((await whole(gateway, { model: 'gemini-4-argon', max_tokens: 32_768 })).streamed)
  t.notOk((await whole(gateway, { model: 'gemini-2.5-flash' })).streamed)
})

void t.test(
  'a failure inside the stream becomes a status, and a truncated stream is not a reply',
  async (t) => {
    const gateway = await startGateway(t)
    for (const model of ['claude-haiku-4-5', 'gemini-4-argon']) {
      gateway.emulator.script({ times: 1, fault: { kind: 'error', event: 3 } })
      const failed = await whole(gateway, { model })
      t.ok(failed.streamed && failed.status >= 400, `${model}: ${failed.status}`)
      gateway.emulator.script({ times: 1, fault: { kind: 'cut', event: 2, mode: 'eof' } })
      const cut = await whole(gateway, { model })
      t.equal(cut.status, 502, model)
      t.match(objectOf(cut.reply['error'])['kind'], /^upstream_/)
    }
  },
)
