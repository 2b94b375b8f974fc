/**
 * Goal: repeated prefixes are marked for the provider's prompt cache, and no others.
 * Method: bodies of both formats; then a gateway before emulated providers, whose requests are read.
 */
import t from 'tap'
import { isObject, type JsonObject } from '../../src/base/json.js'
import { Marking, type Marks } from '../../src/policy/prompt-cache-marks.js'
import { startGateway } from '../helpers/gateway.js'
import { rowsOf } from '../helpers/ledger.js'

const LONG = 'A long instruction. '.repeat(300)
const FACTS = {
  id: 'claude-sonnet-5',
  family: 'anthropic',
  createdAtSeconds: 0,
  cacheMinTokens: 1024,
}
const SCOPE = { accountId: 'a', route: 'r', ttl: '5m' as const }

function user(text: string): JsonObject {
  return { role: 'user', content: [{ type: 'text', text }] }
}
function assistant(text: string): JsonObject {
  return { role: 'assistant', content: [{ type: 'text', text }] }
}

function body(messages: JsonObject[], more: JsonObject = {}): JsonObject {
  const tools = [{ name: 'look', description: LONG, input_schema: { type: 'object' } }]
  return { system: LONG, tools, messages, ...more }
}

function newMarking() {
  let nowMs = 1_000_000
  const marking = new Marking(() => nowMs)
  const mark = (each: JsonObject, more: object = {}, scope: object = {}): Marks =>
    marking.marker({ ...SCOPE, ...scope })({
      ...{ dialect: 'anthropic', facts: FACTS, upstream: 'u', model: 'm', body: each },
      ...more,
    })
  return { mark, later: (ms: number) => void (nowMs += ms) }
}

void t.test('a prefix is marked from its second request on', (t) => {
  const { mark, later } = newMarking()
  const one = [user('First?')]
  t.same(mark(body(one)), { members: {}, marks: 0 }, 'never at first')
  const two = [...one, assistant('Yes.'), user('Second?')]
  const second = mark(body(two))
  t.equal(second.marks, 3, 'system, tools, the newest but one user turn')
  t.match(second.members, {
    system: [{ type: 'text', text: LONG, cache_control: { type: 'ephemeral' } }],
    tools: [{ name: 'look', cache_control: { type: 'ephemeral' } }],
    messages: [{ content: [{ text: 'First?', cache_control: { type: 'ephemeral' } }] }],
  })
  t.notMatch(JSON.stringify(second.members['messages']), /Yes.*cache_control/)
  t.equal(mark(body(two)).marks, 4, 'the same prompt again')
  t.equal(mark(body(two), {}, { accountId: 'b' }).marks, 0, 'another account')
  t.equal(mark(body(two), {}, { route: 's' }).marks, 0, 'another route')
  later(301_000)
  t.equal(mark(body(two)).marks, 0, 'after its time')
  t.same(mark(body(two), {}, { ttl: '1h' }).members['system'], [
    { type: 'text', text: LONG, cache_control: { type: 'ephemeral', ttl: '1h' } },
  ])
  t.end()
})

void t.test('short prefixes, own marks and other models', (t) => {
  const { mark } = newMarking()
  const short = { system: 'Brief.', messages: [user('Hi')] }
  mark(short)
  t.equal(mark(short).marks, 0, 'below the minimum')
  const unknown = { facts: { ...FACTS, cacheMinTokens: undefined } }
  const medium = { system: LONG, messages: [user('Hi')] }
  mark(medium, unknown)
  t.equal(mark(medium, unknown).marks, 0, 'unknown minimum: 4096')
  const own = body([user('Hi')], { cache_control: { type: 'ephemeral' } })
  mark(own)
  t.equal(mark(own).marks, 0, 'the top-level mark of the client')
  const marked = body([
    { role: 'user', content: [{ type: 'text', text: 'x', cache_control: { type: 'ephemeral' } }] },
  ])
  mark(marked)
  t.equal(mark(marked).marks, 0, 'a mark of the client')
  const chats = { dialect: 'openai-chat' }
  mark(body([user('Hi')]), chats)
  t.equal(mark(body([user('Hi')]), chats).marks, 0, 'another dialect')
  t.end()
})

void t.test('Converse has cache points after the blocks', (t) => {
  const { mark } = newMarking()
  const converse: JsonObject = {
    system: [{ text: LONG }],
    toolConfig: { tools: [{ toolSpec: { name: 'look', description: LONG } }] },
    messages: [{ role: 'user', content: [{ text: 'Hi' }] }],
  }
  const claude = { dialect: 'converse' }
  mark(converse, claude)
  const point = { cachePoint: { type: 'default' } }
  t.same(mark(converse, claude).members, {
    system: [{ text: LONG }, point],
    toolConfig: { tools: [{ toolSpec: { name: 'look', description: LONG } }, point] },
    messages: converse['messages'],
  })
  const nova = {
    ...claude,
    facts: { id: 'amazon.nova-pro-v1:0', family: 'amazon', createdAtSeconds: 0 },
  }
  mark(converse, nova)
  const { members, marks } = mark(converse, nova)
  t.same([marks, members['system']], [1, [{ text: LONG }, point]])
  t.same(members['toolConfig'], converse['toolConfig'], 'Nova caches no tools')
  const llama = { ...claude, facts: { id: 'meta.llama3', family: 'meta', createdAtSeconds: 0 } }
  mark(converse, llama)
  t.equal(mark(converse, llama).marks, 0)
  t.end()
})

void t.test('a route with cache_control marks requests of every client format', async (t) => {
  const gateway = await startGateway(t, {
    routes: `
  - { model: marked, targets: [{ upstream: anthropic, model: claude-sonnet-5 }], cache_control: auto }
  - { model: unmarked, targets: [{ upstream: openai, model: gpt-4o-mini }], cache_control: auto }
`,
  })
  const system = { role: 'system', content: LONG }
  const send = async (model: string, content: string) => {
    const messages = [system, { role: 'user', content }]
    await (await gateway.chat({ model, messages, max_tokens: 50 })).text()
  }
  for (const content of ['One?', 'Two?']) await send('marked', content)
  await send('unmarked', 'One?')
  const native = { model: 'marked', max_tokens: 50, system: LONG, messages: [user('Three?')] }
  const response = await fetch(`${gateway.origin}/v1/messages`, {
    method: 'POST',
    headers: { 'x-api-key': gateway.secret, 'content-type': 'application/json' },
    body: JSON.stringify(native),
  })
  t.equal(response.status, 200)
  await response.text()
  const marks = gateway.emulator.ledger.map(({ body: sent }) =>
    isObject(sent) ? (JSON.stringify(sent).match(/cache_control/g) ?? []).length : -1,
  )
  t.same(marks, [0, 1, 0, 1])
  const rows = await rowsOf(gateway)
  rows.sort((a, b) => a.atMs - b.atMs)
  t.same(
    rows.map(({ cacheMarks }) => cacheMarks),
    [0, 1, 0, 1],
  )
  t.ok(rows.every(({ cacheMarksSavedNanoUsd }) => cacheMarksSavedNanoUsd !== null))
})
