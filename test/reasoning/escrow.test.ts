/**
 * Goal: a client that sends a turn back without its reasoning state keeps it, and nobody else gets it.
 * Method: replies kept and histories restored over a shelf in memory, which is also made to fail, to
 * hang and to lie; time is a number that the test moves.
 */
import t, { type Test } from 'tap'
import type { Reply, ReplyBlock } from '../../src/chat/reply/fold.js'
import type { AssistantPart, ChatRequest, Message, ToolCall } from '../../src/chat/request.js'
import type { EscrowConfig } from '../../src/config/config.js'
import { Escrow, type EscrowResult, type Scope } from '../../src/reasoning/escrow.js'
import { FakeShelf } from './shelf.js'

const SETTINGS: EscrowConfig = {
  enabled: true,
  key: null,
  ttlSeconds: 3_600,
  maxEntries: 100,
  maxBytes: 1_048_576,
  memoryBytes: 65_536,
}
const SCOPE: Scope = { accountId: 'acc_1', family: 'anthropic', model: 'claude-x' }
const TTL_MS = 3_600_000

interface Stage {
  readonly escrow: Escrow
  readonly shelf: FakeShelf
  readonly results: EscrowResult[]
  clock: number
}

function stage(
  t: Test,
  shelf = new FakeShelf(),
  settings: Partial<EscrowConfig> = {},
  secret = 'S',
): Stage {
  const made: Omit<Stage, 'escrow'> = { shelf, results: [], clock: 1_000 }
  const escrow = new Escrow({
    shelf,
    settings: () => ({ ...SETTINGS, ...settings }),
    secret,
    now: () => at.clock,
    onResult: (result) => made.results.push(result),
  })
  const at: Stage = { ...made, escrow }
  t.teardown(() => escrow.close())
  return at
}

const user = (text: string): Message => ({
  role: 'user',
  index: 0,
  parts: [{ type: 'text', text }],
})
const result = (callId: string): Message => {
  return { role: 'tool', index: 0, callId, parts: [{ type: 'text', text: 'sunny' }] }
}
const call = (id: string): ToolCall => ({ id, name: 'look', arguments: '{}' })

function said(text: string, toolCalls: ToolCall[] = [], parts: AssistantPart[] = []): Message {
  const words: AssistantPart[] = text === '' ? [] : [{ type: 'text', text }]
  return { role: 'assistant', index: 0, parts: [...parts, ...words], toolCalls }
}

function request(...messages: Message[]): ChatRequest {
  return { model: 'm', messages, stream: false, includeUsage: false, tools: [], rest: {} }
}

function reply(...blocks: ReplyBlock[]): Reply {
  return { id: 'r', model: 'm', blocks, usage: {}, reason: 'stop', raw: null }
}

const thinking = (text: string, signature = 'sig'): ReplyBlock => {
  return { type: 'thinking', text, signature }
}
const text = (text: string): ReplyBlock => ({ type: 'text', text, citations: [] })
const tool = (id: string): ReplyBlock => ({ type: 'tool', id, name: 'look', json: '{}' })

/** The parts that the turn before the last message has, once restored. */
async function parts(
  { escrow }: Stage,
  asked: ChatRequest,
  scope = SCOPE,
): Promise<AssistantPart[]> {
  const { messages } = await escrow.restore(asked, scope)
  const turn = messages.findLast((message) => message.role === 'assistant')
  return turn?.role === 'assistant' ? turn.parts : []
}

const HM = { type: 'thinking', text: 'hm', signature: 'sig', origin: 'anthropic' }

void t.test('a turn with calls is found by their id, and comes back as it was said', async (t) => {
  const at = stage(t)
  const first = request(user('weather?'))
  const blocks: ReplyBlock[] = [
    { type: 'thinking', text: '', redacted: 'red' },
    text('I will '),
    thinking('hm'),
    text('look.'),
    tool('toolu_1'),
  ]
  await at.escrow.keep(first, reply(...blocks), SCOPE)
  const next = request(user('weather?'), said('I will look.', [call('toolu_1')]), result('toolu_1'))
  t.strictSame(await parts(at, next), [
    { type: 'thinking', text: '', origin: 'anthropic', redacted: 'red' },
    { type: 'text', text: 'I will ' },
    { type: 'thinking', text: 'hm', origin: 'anthropic', signature: 'sig' },
    { type: 'text', text: 'look.' },
  ])
  t.match(
    next.messages[1],
    { parts: [{ text: 'I will look.' }] },
    'the request itself is as it was',
  )

  const cut = request(said('', [call('toolu_1')]), result('toolu_1'))
  t.match(await parts(at, cut), [{ redacted: 'red' }, HM], 'a changed text: the thinking, no words')
  const edited = request(user('?'), said('I see.', [call('toolu_1')]), result('toolu_1'))
  t.match(await parts(at, edited), [{ redacted: 'red' }, HM, { text: 'I see.' }])
  t.same(at.results, ['stored', 'hit', 'hit', 'hit'])
})

void t.test('it serves no other account, family or model', async (t) => {
  const at = stage(t)
  await at.escrow.keep(request(user('q')), reply(thinking('hm'), tool('c')), SCOPE)
  const next = request(user('q'), said('', [call('c')]), result('c'))
  t.match(await parts(at, next), [HM])
  for (const other of [{ accountId: 'acc_2' }, { family: 'gemini' }, { model: 'claude-y' }]) {
    t.equal(await at.escrow.restore(next, { ...SCOPE, ...other }), next, JSON.stringify(other))
  }
  const elsewhere = stage(t, at.shelf, {}, 'another secret')
  t.equal(await elsewhere.escrow.restore(next, SCOPE), next, 'nor who has not the secret')
  t.match(await parts(stage(t, at.shelf), next), [HM], 'who has it may be another process')
})

void t.test('a turn of words is found by them and by what led to them', async (t) => {
  const at = stage(t)
  const first = request(user('hello'))
  await at.escrow.keep(first, reply(thinking('one'), text('Hi. ')), SCOPE)
  const second = request(user('hello'), said('Hi.'), user('more'))
  t.match(
    await parts(at, second),
    [{ text: 'one' }, { text: 'Hi. ' }],
    'white space at its ends is nothing',
  )
  await at.escrow.keep(second, reply(thinking('two'), text('Hi.')), SCOPE)
  const third = request(...second.messages, said('Hi.'), user('and?'))
  t.match(
    await parts(at, third),
    [{ text: 'two' }, { text: 'Hi.' }],
    'the same words later are another turn',
  )
  const all = await at.escrow.restore(third, SCOPE)
  t.match(all.messages, [
    {},
    { parts: [{ text: 'one' }, {}] },
    {},
    { parts: [{ text: 'two' }, {}] },
    {},
  ])
  const other = request(user('good morning'), said('Hi.'), user('more'))
  t.equal(await at.escrow.restore(other, SCOPE), other, 'the same words to another question')
  const system: Message = { role: 'system', index: 0, parts: [{ type: 'text', text: 'Be brief.' }] }
  const told = request(system, ...second.messages)
  t.equal(await at.escrow.restore(told, SCOPE), told, 'or under other instructions')
})

void t.test('the legacy form, which has no ids, is found like words', async (t) => {
  const at = stage(t)
  const first = { ...request(user('q')), legacyFunctions: true }
  await at.escrow.keep(
    first,
    reply(thinking('hm'), { ...tool('toolu_9'), json: '' } as ReplyBlock),
    SCOPE,
  )
  const next = (args: string): ChatRequest =>
    request(user('q'), said('', [{ ...call('call_fn_1'), arguments: args }]), result('call_fn_1'))
  t.match(await parts(at, next('{}')), [HM])
  t.same(await parts(at, next('{"a":1}')), [])
})

void t.test('state of a call and of a text comes back too', async (t) => {
  const at = stage(t)
  const scope = { ...SCOPE, family: 'gemini' }
  const blocks: ReplyBlock[] = [
    thinking('for people', 'sig'),
    { type: 'opaque', provider: 'gemini', block: { executableCode: { code: '1' } } },
    { type: 'text', text: '', citations: [], signature: 'carrier' },
    { type: 'tool', id: 'a', name: 'look', json: '{}', signature: 'of a' },
    { type: 'tool', id: 'b', name: 'look', json: '{}' },
  ]
  await at.escrow.keep(request(user('q')), reply(...blocks), scope)
  const next = request(user('q'), said('', [call('a'), call('b')]), result('a'), result('b'))
  const { messages } = await at.escrow.restore(next, scope)
  t.strictSame(messages[1], {
    role: 'assistant',
    index: 0,
    parts: [
      { type: 'thinking', text: 'for people', origin: 'gemini', signature: 'sig' },
      { type: 'opaque', provider: 'gemini', block: { executableCode: { code: '1' } } },
      { type: 'text', text: '', signature: 'carrier' },
    ],
    toolCalls: [{ ...call('a'), signature: 'of a' }, call('b')],
  })
})

void t.test('whatever a client kept of its own state, the turn is the same', async (t) => {
  const at = stage(t)
  await at.escrow.keep(
    request(user('q')),
    reply(thinking('hm', 's1'), text('so '), thinking('well', 's2'), text('yes'), tool('c')),
    SCOPE,
  )
  const sent = (...own: AssistantPart[]): ChatRequest =>
    request(user('q'), said('so yes', [call('c')], own), result('c'))
  const bare = await at.escrow.restore(sent(), SCOPE)
  const origin = 'anthropic'
  const plain: AssistantPart = { type: 'thinking', text: 'hmwell', origin: 'openai-chat' }
  const one: AssistantPart = { type: 'thinking', text: 'hm', signature: 's1', origin }
  const two: AssistantPart = { type: 'thinking', text: 'well', signature: 's2', origin }
  for (const own of [[plain], [one, two], [two], [plain, one, two]]) {
    t.strictSame((await at.escrow.restore(sent(...own), SCOPE)).messages, bare.messages)
  }
  const mine = sent({ type: 'thinking', text: 'mine', signature: 's3', origin })
  t.match(
    await parts(at, mine),
    [{ text: 'mine', signature: 's3' }, { text: 'so yes' }],
    'what differs is the client’s own, and wins',
  )
  const cache = { ttl: '5m' } as const
  const marked: Message = {
    ...said('', [call('c')]),
    role: 'assistant',
    toolCalls: [call('c')],
    parts: [{ type: 'text', text: 'so yes', cache }],
  }
  t.match((await parts(at, request(user('q'), marked, result('c')))).at(-1), { text: 'yes', cache })
})

void t.test('a plain reply costs nothing', (t) => {
  const at = stage(t)
  t.equal(at.escrow.keep(request(user('q')), reply(text('yes'), tool('c')), SCOPE), null)
  t.equal(
    at.escrow.keep(request(user('q')), reply({ type: 'thinking', text: 'unsigned' }), SCOPE),
    null,
  )
  t.equal(at.shelf.puts, 0)
  t.same(at.results, [])
  const first = request(user('q'))
  t.equal(at.escrow.restore(first, SCOPE), first, 'nor does a first question')
  t.equal(at.shelf.gets, 0)
  t.end()
})

void t.test('it lasts for its time, and longer while it is used', async (t) => {
  for (const memoryBytes of [0, 65_536]) {
    const at = stage(t, new FakeShelf(), { memoryBytes })
    await at.escrow.keep(request(user('q')), reply(thinking('hm'), tool('c')), SCOPE)
    const next = request(user('q'), said('', [call('c')]), result('c'))
    at.clock += TTL_MS / 2
    t.match(await parts(at, next), [HM])
    t.equal(at.shelf.puts, 1, 'half its time is left')
    at.clock += 1
    t.match(await parts(at, next), [HM])
    t.equal(at.shelf.puts, 2, 'less than half: it is kept anew')
    at.clock += TTL_MS - 1
    t.match(await parts(at, next), [HM], 'an hour after it was last used')
    at.clock += TTL_MS
    t.same(await parts(at, next), [], 'and then no more')
  }
})

void t.test(
  'memory holds what was used last, up to its bound; the store has the rest',
  async (t) => {
    const at = stage(t, new FakeShelf(), { memoryBytes: 1_000 })
    const ids = Array.from({ length: 20 }, (_, n) => `c${String(n)}`)
    for (const id of ids) {
      await at.escrow.keep(request(user('q')), reply(thinking('x'.repeat(200)), tool(id)), SCOPE)
    }
    const next = (id: string): ChatRequest => request(user('q'), said('', [call(id)]), result(id))
    t.match(await parts(at, next('c19')), [{ signature: 'sig' }])
    t.equal(at.shelf.gets, 0, 'the newest is in memory')
    t.match(await parts(at, next('c0')), [{ signature: 'sig' }])
    t.equal(at.shelf.gets, 1, 'the oldest is not')
    t.match(await parts(at, next('c0')), [{ signature: 'sig' }])
    t.equal(at.shelf.gets, 1, 'now it is')
    t.match(await parts(at, next('c17')), [{ signature: 'sig' }])
    t.equal(at.shelf.gets, 2, 'another left for it')

    const most = SETTINGS.maxBytes / 64
    t.equal(at.escrow.keep(request(), reply(thinking('x'.repeat(most))), SCOPE), null)
    t.equal(at.results.at(-1), 'too_large')
  },
)

void t.test('a store that fails costs the state and nothing else', async (t) => {
  const next = request(user('q'), said('', [call('c')]), result('c'))
  for (const mode of ['throws', 'rejects'] as const) {
    const at = stage(t)
    at.shelf.mode = mode
    await at.escrow.keep(request(user('q')), reply(thinking('hm'), tool('c')), SCOPE)
    t.match(await parts(at, next), [HM], 'memory still has it')
    const other = stage(t, at.shelf)
    t.equal(await other.escrow.restore(next, SCOPE), next)
    t.same([...at.results, ...other.results], ['failed', 'hit', 'failed', 'miss'])
  }
  const at = stage(t)
  at.shelf.mode = 'hangs'
  const began = performance.now()
  await at.escrow.keep(request(user('q')), reply(thinking('hm'), tool('c')), SCOPE)
  t.ok(performance.now() - began < 2_000, 'one that hangs is not waited for')
  at.shelf.mode = 'later'
  t.match(await parts(at, next), [HM])
})

void t.test('what the store holds tells nothing and cannot be forged', async (t) => {
  const at = stage(t)
  const secretive = [
    thinking('CANARY-thought', 'CANARY-sig'),
    text('CANARY-text'),
    tool('CANARY-id'),
  ]
  await at.escrow.keep(request(user('CANARY-q')), reply(...secretive), SCOPE)
  const [name = ''] = at.shelf.items.keys()
  const bytes = Buffer.from(at.shelf.items.get(name)?.value ?? [])
  t.notMatch(`${name} ${bytes.toString('latin1')}`, /CANARY|acc_1|claude/)
  const next = request(
    user('CANARY-q'),
    said('CANARY-text', [call('CANARY-id')]),
    result('CANARY-id'),
  )
  for (let at = 0; at < bytes.length; at += 7) {
    const forged = Buffer.from(bytes)
    forged.writeUInt8((forged[at] ?? 0) ^ 1, at)
    const shelf = new FakeShelf()
    shelf.items.set(name, { value: forged, expiresAtMs: Infinity })
    if ((await parts(stage(t, shelf), next)).length > 1)
      t.fail(`byte ${String(at)} changed unnoticed`)
  }
  const swapped = new FakeShelf()
  await stage(t, swapped).escrow.keep(request(), reply(thinking('x'), tool('other')), SCOPE)
  const [other = ''] = swapped.items.keys()
  swapped.items.set(other, { value: bytes, expiresAtMs: Infinity })
  const asked = request(user('q'), said('', [call('other')]), result('other'))
  t.same(await parts(stage(t, swapped), asked), [], 'nor passed off under another name')
  for (const value of [Buffer.alloc(0), Buffer.from([1]), bytes.subarray(0, 20)]) {
    swapped.items.set(other, { value, expiresAtMs: Infinity })
    t.same(await parts(stage(t, swapped), asked), [])
  }
})
