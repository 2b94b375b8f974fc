/**
 * Goal: a conversation that starts with an assistant message gets a constant user message for upstreams that
 * require one, and is refused if the setting forbids that. Method: hand-written messages; then a gateway with
 * and without the setting.
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

void t.test('an assistant message without content is not the first', (t) => {
  const empty: Message = { ...assistant, parts: [] }
  t.same(beginWithUser([system, empty, user]), [system, empty, user])
  t.end()
})

void t.test('the message is added only if the setting allows it and the upstream requires it', async (t) => {
  const messages = [
    { role: 'assistant', content: 'Welcome!' },
    { role: 'user', content: 'Hi' },
  ]
  const strict = await startGateway(t, { more: 'allow_synthetic_user: false' })
  const lenient = await startGateway(t)
  const refused = await strict.chat({ model: 'gemini-2.5-flash', messages })
  t.equal(refused.status, 400)
  t.match(await refused.json(), { error: { param: 'messages[0]' } })
  const added = await lenient.chat({ model: 'gemini-2.5-flash', messages })
  t.equal(added.status, 200)
  t.equal(added.headers.get('x-sluice-lost'), 'messages.role')
  t.match(JSON.stringify(lenient.emulator.ledger.at(-1)?.body), /"Begin\.".*"Welcome!".*"Hi"/)
  // Anthropic's API accepts any order of turns, and so does OpenAI's.
  for (const gateway of [strict, lenient]) {
    const other = await gateway.chat({ model: 'claude-haiku-4-5', messages })
    t.equal(other.status, 200)
    t.equal(other.headers.get('x-sluice-lost'), null)
    const sent = JSON.stringify(gateway.emulator.ledger.at(-1)?.body)
    t.match(sent, /"assistant".*"Welcome!".*"user".*"Hi"/)
    t.notMatch(sent, /Begin/)
    t.equal((await gateway.chat({ model: 'gpt-4o', messages })).status, 200)
    t.same(gateway.emulator.ledger.at(-1)?.body?.['messages'], messages)
  }
})
