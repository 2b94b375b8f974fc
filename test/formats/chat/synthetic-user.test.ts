/**
 * Goal: with `allow_synthetic_user`, a conversation that starts with an assistant message gets a constant
 * user message for upstreams that require one; without the setting it is refused. Method: hand-written
 * messages; then a gateway with and without the setting.
 */
import t from 'tap'
import type { Message } from '../../../src/formats/chat/request.js'
import { beginWithUser } from '../../../src/gateway/attempts/render-for-upstream.js'
import { startGateway } from '../../helpers/gateway.js'

const system: Message = { role: 'system', index: 0, parts: [{ type: 'text', text: 'S' }] }
const assistant: Message = {
  role: 'assistant',
  index: 1,
  parts: [{ type: 'text', text: 'A' }],
  toolCalls: [],
}
const user: Message = { role: 'user', index: 2, parts: [{ type: 'text', text: 'U' }] }

void t.test('the user message is after the instructions and before the assistant message', (t) => {
  const inserted: Message = { role: 'user', index: 1, parts: [{ type: 'text', text: 'Begin.' }] }
  t.same(beginWithUser([system, assistant, user]), [system, inserted, assistant, user])
  t.same(beginWithUser([assistant]), [inserted, assistant])
  for (const messages of [[user, assistant], [system, user], [system], []]) {
    t.equal(beginWithUser(messages), messages, 'unchanged')
  }
  t.end()
})

void t.test('the message is added only if the setting allows it and the upstream requires it', async (t) => {
  const messages = [
    { role: 'assistant', content: 'Welcome!' },
    { role: 'user', content: 'Hi' },
  ]
  const strict = await startGateway(t)
  const lenient = await startGateway(t, { more: 'allow_synthetic_user: true' })
  for (const model of ['claude-haiku-4-5', 'gemini-2.5-flash']) {
    const refused = await strict.chat({ model, messages })
    t.equal(refused.status, 400, model)
    t.match(await refused.json(), { error: { param: 'messages[0]' } })
    t.equal((await lenient.chat({ model, messages })).status, 200, model)
    t.match(JSON.stringify(lenient.emulator.ledger.at(-1)?.body), /"Begin\.".*"Welcome!".*"Hi"/)
  }
  t.equal((await lenient.chat({ model: 'gpt-4o', messages })).status, 200)
  t.same(lenient.emulator.ledger.at(-1)?.body?.['messages'], messages)
})
