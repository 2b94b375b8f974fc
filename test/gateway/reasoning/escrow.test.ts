/**
 * Goal: the gateway restores the reasoning state that a client omits, and no other account receives it.
 * Method: stored replies and restored histories over a cache in memory that can also fail, hang and return
 * wrong values; a manual clock.
 */
import t, { type Test } from 'tap'
import type { Reply, ReplyBlock } from '../../../src/formats/chat/fold.js'
import type { AssistantPart, ChatRequest, Message, ToolCall } from '../../../src/formats/chat/request.js'
import type { EscrowConfig } from '../../../src/config/config.js'
import { Escrow, type EscrowResult, type Scope } from '../../../src/gateway/reasoning/escrow.js'
import { stopwatch } from '../../helpers/stopwatch.js'
import { FakeSharedCache } from './fake-shared-cache.js'

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
  readonly cache: FakeSharedCache
  readonly results: EscrowResult[]
  clock: number
}

interface StageOptions {
  readonly cache?: FakeSharedCache
  readonly settings?: Partial<EscrowConfig>
  readonly secret?: string
}

function stage(
  t: Test,
  { cache = new FakeSharedCache(), settings = {}, secret = 'S' }: StageOptions = {},
): Stage {
  const made: Omit<Stage, 'escrow'> = { cache, results: [], clock: 1_000 }
  const escrow = new Escrow({
    cache,
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

function assistant(text: string, toolCalls: ToolCall[] = [], parts: AssistantPart[] = []): Message {
  const texts: AssistantPart[] = text === '' ? [] : [{ type: 'text', text }]
  return { role: 'assistant', index: 0, parts: [...parts, ...texts], toolCalls }
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

/** The parts of the last assistant turn after restoring. */
async function parts({ escrow }: Stage, history: ChatRequest, scope = SCOPE): Promise<AssistantPart[]> {
  const { messages } = await escrow.restore(history, scope)
  const turn = messages.findLast((message) => message.role === 'assistant')
  return turn?.role === 'assistant' ? turn.parts : []
}

const HM = { type: 'thinking', text: 'hm', signature: 'sig', origin: 'anthropic' }

void t.test('a turn with calls is found by their ids and restored unchanged', async (t) => {
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
  const next = request(user('weather?'), assistant('I will look.', [call('toolu_1')]), result('toolu_1'))
  t.strictSame(await parts(at, next), [
    { type: 'thinking', text: '', origin: 'anthropic', redacted: 'red' },
    { type: 'text', text: 'I will ' },
    { type: 'thinking', text: 'hm', origin: 'anthropic', signature: 'sig' },
    { type: 'text', text: 'look.' },
  ])
  t.match(next.messages[1], { parts: [{ text: 'I will look.' }] }, 'the request itself is unchanged')

  const cut = request(assistant('', [call('toolu_1')]), result('toolu_1'))
  t.match(await parts(at, cut), [{ redacted: 'red' }, HM], 'for a changed text only the thinking is restored')
  const edited = request(user('?'), assistant('I see.', [call('toolu_1')]), result('toolu_1'))
  t.match(await parts(at, edited), [{ redacted: 'red' }, HM, { text: 'I see.' }])
  t.same(at.results, ['stored', 'hit', 'hit', 'hit'])
})

void t.test('state is not restored for another account, family or model', async (t) => {
  const at = stage(t)
  await at.escrow.keep(request(user('q')), reply(thinking('hm'), tool('c')), SCOPE)
  const next = request(user('q'), assistant('', [call('c')]), result('c'))
  t.match(await parts(at, next), [HM])
  for (const other of [{ accountId: 'acc_2' }, { family: 'gemini' }, { model: 'claude-y' }]) {
    t.equal(await at.escrow.restore(next, { ...SCOPE, ...other }), next, JSON.stringify(other))
  }
  const elsewhere = stage(t, { cache: at.cache, secret: 'another secret' })
  t.equal(await elsewhere.escrow.restore(next, SCOPE), next, 'not with another secret')
  t.match(
    await parts(stage(t, { cache: at.cache }), next),
    [HM],
    'another process with the same secret restores it',
  )
})

void t.test('a turn of text is found by its text and the messages before it', async (t) => {
  const at = stage(t)
  const first = request(user('hello'))
  await at.escrow.keep(first, reply(thinking('one'), text('Hi. ')), SCOPE)
  const second = request(user('hello'), assistant('Hi.'), user('more'))
  t.match(await parts(at, second), [{ text: 'one' }, { text: 'Hi. ' }], 'white space at the ends is ignored')
  await at.escrow.keep(second, reply(thinking('two'), text('Hi.')), SCOPE)
  const third = request(...second.messages, assistant('Hi.'), user('and?'))
  t.match(await parts(at, third), [{ text: 'two' }, { text: 'Hi.' }], 'the same text later is another turn')
  const all = await at.escrow.restore(third, SCOPE)
  t.match(all.messages, [{}, { parts: [{ text: 'one' }, {}] }, {}, { parts: [{ text: 'two' }, {}] }, {}])
  const other = request(user('good morning'), assistant('Hi.'), user('more'))
  t.equal(await at.escrow.restore(other, SCOPE), other, 'the same text after another question')
  const system: Message = { role: 'system', index: 0, parts: [{ type: 'text', text: 'Be brief.' }] }
  const instructed = request(system, ...second.messages)
  t.equal(await at.escrow.restore(instructed, SCOPE), instructed, 'the same text with other instructions')
})

void t.test('calls of the legacy form, which has no ids, are found like text', async (t) => {
  const at = stage(t)
  const first = { ...request(user('q')), legacyFunctions: true }
  await at.escrow.keep(first, reply(thinking('hm'), { ...tool('toolu_9'), json: '' } as ReplyBlock), SCOPE)
  const next = (args: string): ChatRequest =>
    request(user('q'), assistant('', [{ ...call('call_fn_1'), arguments: args }]), result('call_fn_1'))
  t.match(await parts(at, next('{}')), [HM])
  t.same(await parts(at, next('{"a":1}')), [])
})

void t.test('state of a call and of a text is restored', async (t) => {
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
  const next = request(user('q'), assistant('', [call('a'), call('b')]), result('a'), result('b'))
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

void t.test('a turn is restored equally, regardless of the state that the client kept', async (t) => {
  const at = stage(t)
  await at.escrow.keep(
    request(user('q')),
    reply(thinking('hm', 's1'), text('so '), thinking('well', 's2'), text('yes'), tool('c')),
    SCOPE,
  )
  const sent = (...own: AssistantPart[]): ChatRequest =>
    request(user('q'), assistant('so yes', [call('c')], own), result('c'))
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
    "the client's own state takes precedence",
  )
  const mark = { ttl: '5m' } as const
  const marked: Message = {
    ...assistant('', [call('c')]),
    role: 'assistant',
    toolCalls: [call('c')],
    parts: [{ type: 'text', text: 'so yes', cache: mark }],
  }
  t.match((await parts(at, request(user('q'), marked, result('c')))).at(-1), {
    text: 'yes',
    cache: mark,
  })
})

void t.test('a reply without state is not stored', (t) => {
  const at = stage(t)
  t.equal(at.escrow.keep(request(user('q')), reply(text('yes'), tool('c')), SCOPE), null)
  t.equal(at.escrow.keep(request(user('q')), reply({ type: 'thinking', text: 'unsigned' }), SCOPE), null)
  t.equal(at.cache.puts, 0)
  t.same(at.results, [])
  const first = request(user('q'))
  t.equal(at.escrow.restore(first, SCOPE), first, 'a first question needs no restore')
  t.equal(at.cache.gets, 0)
  t.end()
})

void t.test('state expires after its lifetime, which is renewed by use', async (t) => {
  for (const memoryBytes of [0, 65_536]) {
    const at = stage(t, { settings: { memoryBytes } })
    await at.escrow.keep(request(user('q')), reply(thinking('hm'), tool('c')), SCOPE)
    const next = request(user('q'), assistant('', [call('c')]), result('c'))
    at.clock += TTL_MS / 2
    t.match(await parts(at, next), [HM])
    t.equal(at.cache.puts, 1, 'half of the lifetime remains')
    at.clock += 1
    t.match(await parts(at, next), [HM])
    t.equal(at.cache.puts, 2, 'renewed when less than half remains')
    at.clock += TTL_MS - 1
    t.match(await parts(at, next), [HM], 'an hour after the last use')
    at.clock += TTL_MS
    t.same(await parts(at, next), [], 'expired')
  }
})

void t.test(
  'memory keeps the most recently used state up to its limit; the store has all state',
  async (t) => {
    const at = stage(t, { settings: { memoryBytes: 1_000 } })
    const ids = Array.from({ length: 20 }, (_, n) => `c${String(n)}`)
    for (const id of ids) {
      await at.escrow.keep(request(user('q')), reply(thinking('x'.repeat(200)), tool(id)), SCOPE)
    }
    const next = (id: string): ChatRequest => request(user('q'), assistant('', [call(id)]), result(id))
    t.match(await parts(at, next('c19')), [{ signature: 'sig' }])
    t.equal(at.cache.gets, 0, 'the newest entry is in memory')
    t.match(await parts(at, next('c0')), [{ signature: 'sig' }])
    t.equal(at.cache.gets, 1, 'the oldest entry is not')
    t.match(await parts(at, next('c0')), [{ signature: 'sig' }])
    t.equal(at.cache.gets, 1, 'it is in memory after its use')
    t.match(await parts(at, next('c17')), [{ signature: 'sig' }])
    t.equal(at.cache.gets, 2, 'another entry was evicted')

    const most = SETTINGS.maxBytes / 64
    t.equal(at.escrow.keep(request(), reply(thinking('x'.repeat(most))), SCOPE), null)
    t.equal(at.results.at(-1), 'too_large')
  },
)

void t.test('a failing store loses only the state', async (t) => {
  const next = request(user('q'), assistant('', [call('c')]), result('c'))
  for (const mode of ['throws', 'rejects'] as const) {
    const at = stage(t)
    at.cache.mode = mode
    await at.escrow.keep(request(user('q')), reply(thinking('hm'), tool('c')), SCOPE)
    t.match(await parts(at, next), [HM], 'memory has the state')
    const other = stage(t, { cache: at.cache })
    t.equal(await other.escrow.restore(next, SCOPE), next)
    t.same([...at.results, ...other.results], ['failed', 'hit', 'failed', 'miss'])
  }
  const at = stage(t)
  at.cache.mode = 'hangs'
  const watch = stopwatch()
  await at.escrow.keep(request(user('q')), reply(thinking('hm'), tool('c')), SCOPE)
  t.ok(watch() < 2_000, 'the gateway does not wait for a hanging store')
  at.cache.mode = 'later'
  t.match(await parts(at, next), [HM])
})

void t.test('stored state is encrypted and authenticated', async (t) => {
  const at = stage(t)
  const secretive = [thinking('CANARY-thought', 'CANARY-sig'), text('CANARY-text'), tool('CANARY-id')]
  await at.escrow.keep(request(user('CANARY-q')), reply(...secretive), SCOPE)
  const [name = ''] = at.cache.items.keys()
  const bytes = Buffer.from(at.cache.items.get(name)?.value ?? [])
  t.notMatch(`${name} ${bytes.toString('latin1')}`, /CANARY|acc_1|claude/)
  const next = request(user('CANARY-q'), assistant('CANARY-text', [call('CANARY-id')]), result('CANARY-id'))
  for (let index = 0; index < bytes.length; index += 7) {
    const forged = Buffer.from(bytes)
    forged.writeUInt8((forged[index] ?? 0) ^ 1, index)
    const cache = new FakeSharedCache()
    cache.items.set(name, { value: forged, expiresAtMs: Infinity })
    if ((await parts(stage(t, { cache }), next)).length > 1) t.fail(`byte ${String(index)} changed unnoticed`)
  }
  const swapped = new FakeSharedCache()
  await stage(t, { cache: swapped }).escrow.keep(request(), reply(thinking('x'), tool('other')), SCOPE)
  const [other = ''] = swapped.items.keys()
  swapped.items.set(other, { value: bytes, expiresAtMs: Infinity })
  const otherTurn = request(user('q'), assistant('', [call('other')]), result('other'))
  t.same(await parts(stage(t, { cache: swapped }), otherTurn), [], 'an entry under another name is rejected')
  for (const value of [Buffer.alloc(0), Buffer.from([1]), bytes.subarray(0, 20)]) {
    swapped.items.set(other, { value, expiresAtMs: Infinity })
    t.same(await parts(stage(t, { cache: swapped }), otherTurn), [])
  }
})
