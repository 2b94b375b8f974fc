/**
 * Goal: a conversation is encoded by the rules of the API, without lost, moved or empty content.
 * Method: one rule of the specification per test, against the whole `messages` member.
 */
import t from 'tap'
import type { JsonObject, JsonValue } from '../../../../src/base/json.js'
import type { ModelFacts } from '../../../../src/formats/chat/model-facts.js'
import type { AssistantPart, Message, UserPart } from '../../../../src/formats/chat/request.js'
import { GatewayError } from '../../../../src/errors.js'
import { assistant, encode, OLDER, result, stringOrEmpty, user } from '../driver.js'

const text = (text: string): JsonObject => ({ type: 'text', text })

function system(index: number, ...texts: string[]): Message {
  return { role: 'system', index, parts: texts.map((text) => ({ type: 'text', text })) }
}

function rendered(messages: Message[], model: Partial<ModelFacts> = {}): JsonValue | undefined {
  return encode({ messages, tools: [{ name: 'look' }] }, model).body.messages
}

function param(messages: Message[], model: Partial<ModelFacts> = {}): string | undefined {
  try {
    rendered(messages, model)
  } catch (error) {
    if (error instanceof GatewayError && error.kind === 'untranslatable') return error.wire.param
    throw error
  }
  return undefined
}

/** The encoded blocks of one user message with these parts. */
function parts(...parts: UserPart[]): JsonValue | undefined {
  const [message] = rendered([{ role: 'user', index: 0, parts }]) as JsonObject[]
  return message?.content
}

void t.test('leading instructions are the system member; later ones keep their position', (t) => {
  const messages: Message[] = [
    system(0, 'one', ' ', 'two'),
    { ...system(1, 'three'), role: 'developer' } as Message,
    user(2, 'q'),
    system(3, 'later'),
    user(4, 'r'),
  ]
  const { body } = encode({ messages })
  t.same(body.system, [text('one'), text('two'), text('three')])
  const [q, later, r] = [text('q'), text('later'), text('r')]
  t.same(body.messages, [
    { role: 'user', content: [q] },
    { role: 'system', content: [later] },
    { role: 'user', content: [r] },
  ])
  t.same(rendered(messages, { midConversationSystem: false }), [
    { role: 'user', content: [q, text('<system>\nlater\n</system>'), r] },
  ])
  t.end()
})

void t.test('turns of one role are one message', (t) => {
  t.same(rendered([user(0, 'a'), user(1, 'b'), assistant(2, 'c'), assistant(3, 'd'), user(4, 'e')]), [
    { role: 'user', content: [text('a'), text('b')] },
    { role: 'assistant', content: [text('c'), text('d')] },
    { role: 'user', content: [text('e')] },
  ])
  t.end()
})

void t.test('the results of a turn are first, in the order of the calls', (t) => {
  const messages = [
    user(0, 'q'),
    assistant(1, 'so', 'c1:look:{"n":1}', 'c2:look:'),
    result(2, 'c2', 'second'),
    { ...result(3, 'c1', ' '), isError: true } as Message,
    user(4, 'and?'),
  ]
  t.same(rendered(messages), [
    { role: 'user', content: [text('q')] },
    {
      role: 'assistant',
      content: [
        text('so'),
        { type: 'tool_use', id: 'c1', name: 'look', input: { n: 1 } },
        { type: 'tool_use', id: 'c2', name: 'look', input: {} },
      ],
    },
    {
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 'c1', is_error: true },
        { type: 'tool_result', tool_use_id: 'c2', content: [text('second')] },
        text('and?'),
      ],
    },
  ])
  t.end()
})

void t.test('arguments that are not an object are kept unchanged', (t) => {
  const input = (args: string): unknown => {
    const turn = [user(0, 'q'), assistant(1, '', `c:look:${args}`), result(2, 'c', 'r')]
    const message = (rendered(turn) as JsonObject[])[1]
    return (message?.content as JsonObject[] | undefined)?.[0]?.input
  }
  t.same(input('{"a":[1]}'), { a: [1] })
  t.same(input('  '), {})
  for (const raw of ['{"a":', '[1]', '7', 'null', '"x"']) t.same(input(raw), { _raw: raw })
  t.equal(JSON.stringify(input('{"__proto__":{"x":1}}')), '{"__proto__":{"x":1}}')
  t.end()
})

void t.test('a call of a custom tool is wrapped', (t) => {
  const call = { id: 'c', name: 'shell', arguments: 'ls "a"', custom: true }
  const turn: Message = { role: 'assistant', index: 1, parts: [], toolCalls: [call] }
  t.match(rendered([user(0, 'q'), turn, result(2, 'c', 'r')]), [
    {},
    { content: [{ type: 'tool_use', input: { input: 'ls "a"' } }] },
    {},
  ])
  t.end()
})

void t.test('invalid ids are replaced, equally in call and result; different ids stay different', (t) => {
  const messages = [
    user(0, 'q'),
    assistant(1, '', 'functions.look/0:look:{}'.replace('/', '-'), 'a b:look:{}', 'a.b:look:{}'),
    result(2, 'functions.look-0', 'r'),
    result(3, 'a b', 'r'),
    result(4, 'a.b', 'r'),
  ]
  const [, calls, results] = rendered(messages) as { content: JsonObject[] }[]
  const ids = calls?.content.map((block) => stringOrEmpty(block.id)) ?? []
  t.equal(new Set(ids).size, 3)
  for (const id of ids) t.match(id, /^[a-zA-Z0-9_-]+$/)
  t.same(
    results?.content.map((block) => block.tool_use_id),
    ids,
  )
  t.end()
})

void t.test('thinking of Anthropic keeps its position; that of others is dropped and reported', (t) => {
  const history: AssistantPart[] = [
    { type: 'thinking', text: '', signature: 's==', origin: 'anthropic' },
    { type: 'text', text: 'so' },
    { type: 'thinking', text: '', redacted: 'r==', origin: 'anthropic' },
  ]
  const foreign: AssistantPart[] = [
    { type: 'thinking', text: 'hm' },
    { type: 'thinking', text: 'hm', signature: 's', origin: 'gemini' },
    { type: 'thinking', text: 'hm', origin: 'anthropic' },
    { type: 'opaque', provider: 'openai', block: { type: 'reasoning' } },
    { type: 'opaque', provider: 'anthropic', block: { type: 'server_tool_use', id: 's' } },
  ]
  const turn = (parts: AssistantPart[]): Message[] => [
    user(0, 'q'),
    { role: 'assistant', index: 1, parts, toolCalls: [] },
    user(2, 'r'),
  ]
  const encoded = encode({ messages: turn(history) })
  t.match(encoded.body.messages, [
    {},
    {
      content: [
        { type: 'thinking', thinking: '', signature: 's==' },
        text('so'),
        { type: 'redacted_thinking', data: 'r==' },
      ],
    },
    {},
  ])
  t.same(encoded.lost, [])
  const lost = encode({ messages: turn(foreign) })
  t.match(lost.body.messages, [{}, { content: [{ type: 'server_tool_use', id: 's' }] }, {}])
  t.equal(lost.lost.filter((one) => one === 'messages.reasoning: no-equivalent').length, 3)
  t.equal(lost.lost.length, 4)
  t.end()
})

void t.test('thinking with a budget is disabled in a tool loop without its thinking', (t) => {
  const loop = [user(0, 'q'), assistant(1, '', 'c:look:{}'), result(2, 'c', 'r')]
  const { body, lost } = encode({ messages: loop, tools: [{ name: 'look' }], reasoningEffort: 'low' }, OLDER)
  t.same(body.thinking, { type: 'disabled' })
  t.same(lost, ['reasoning_effort: approximated'])
  const thinking = { type: 'enabled', budget_tokens: 2_000 }
  const own = encode({ messages: loop, tools: [{ name: 'look' }], rest: { thinking } }, OLDER)
  t.same(own.body.thinking, { type: 'disabled' })
  t.same(own.lost, ['thinking: approximated'])
  const first = encode({ messages: loop.slice(0, 1), rest: { thinking } }, OLDER)
  t.same([first.body.thinking, first.lost], [thinking, []])
  t.end()
})

void t.test('empty content is not sent', (t) => {
  t.equal(param([]), 'messages')
  t.equal(param([user(0, ' \n')]), 'messages')
  t.same(rendered([user(0, 'a'), user(1, ' \n')]), [{ role: 'user', content: [text('a')] }])
  t.same(rendered([system(0, 'only')]), [{ role: 'user', content: [text('only')] }])
  t.same(rendered([user(0, 'a'), assistant(1, ''), user(2, 'b')]), [
    { role: 'user', content: [text('a'), text('b')] },
  ])
  t.same(rendered([system(0, ' '), user(1, 'a'), system(2, '')]), [{ role: 'user', content: [text('a')] }])
  t.end()
})

void t.test('an assistant message must not be first, and may be last only if the model continues it', (t) => {
  t.equal(param([assistant(3, 'hi'), user(4, 'q')]), 'messages[3]')
  const prefill = [user(0, 'q'), assistant(1, 'The answer is  ')]
  t.equal(param(prefill), 'messages')
  t.same(rendered(prefill, OLDER), [
    { role: 'user', content: [text('q')] },
    { role: 'assistant', content: [text('The answer is')] },
  ])
  const paused: AssistantPart = {
    type: 'opaque',
    provider: 'anthropic',
    block: { type: 'server_tool_use' },
  }
  t.equal(param([user(0, 'q'), { role: 'assistant', index: 1, parts: [paused], toolCalls: [] }]), undefined)
  t.end()
})

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB'
const PDF = Buffer.from('%PDF-1.7 x').toString('base64')

function inline(type: 'image' | 'file', mediaType: string, data: string): UserPart {
  return { type, source: { kind: 'base64', mediaType, data } }
}

void t.test('images have the type of their bytes; files are documents', (t) => {
  const png = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG } }
  t.same(parts(inline('image', 'image/jpeg', PNG)), [png])
  t.same(parts(inline('file', 'application/octet-stream', PNG)), [png])
  t.same(parts(inline('image', 'IMAGE/JPEG', 'AAAA')), [
    { type: 'image', source: { type: 'base64', media_type: 'image/jpeg', data: 'AAAA' } },
  ])
  const url = 'https://pictures.test/a.png'
  t.same(parts({ type: 'image', source: { kind: 'url', url }, detail: 'high', cache: { ttl: '5m' } }), [
    { type: 'image', source: { type: 'url', url }, cache_control: { type: 'ephemeral' } },
  ])
  t.same(parts({ ...inline('file', 'application/pdf', PDF), filename: 'a.pdf' } as UserPart), [
    {
      type: 'document',
      source: { type: 'base64', media_type: 'application/pdf', data: PDF },
      title: 'a.pdf',
    },
  ])
  const base64 = Buffer.from('Grüße').toString('base64')
  t.same(parts(inline('file', 'text/markdown', base64)), [
    { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'Grüße' } },
  ])
  t.end()
})

void t.test('unsupported media is refused with its path', (t) => {
  const heic = Buffer.from('\0\0\0\x18ftypheic').toString('base64')
  const bad: UserPart[] = [
    inline('image', 'image/png', heic),
    inline('image', 'image/png', Buffer.from('BM\x1a\0\0\0\0\0\0\0').toString('base64')),
    inline('image', 'image/svg+xml', 'PHN2Zz4='),
    inline('file', 'application/zip', 'UEsDBA=='),
    inline('file', 'text/plain', 'ICA='),
    { type: 'image', source: { kind: 'url', url: 'http://pictures.test/a.png' } },
    { type: 'image', source: { kind: 'file-id', id: 'file-1' } },
    { type: 'file', source: { kind: 'file-id', id: 'file-1' } },
    { type: 'audio', format: 'wav', data: 'UklGRg==' },
  ]
  for (const part of bad) {
    const message: Message = {
      role: 'user',
      index: 4,
      parts: [{ type: 'text', text: 'see' }, part],
    }
    t.equal(param([message]), 'messages[4].content[1]', JSON.stringify(part))
  }
  t.end()
})

void t.test('an image in a tool result stays in the result', (t) => {
  const shown: Message = {
    role: 'tool',
    index: 2,
    callId: 'c',
    parts: [inline('image', 'image/png', PNG)],
  }
  t.match(rendered([user(0, 'q'), assistant(1, '', 'c:look:{}'), shown]), [
    {},
    {},
    { content: [{ type: 'tool_result', content: [{ type: 'image' }] }] },
  ])
  t.end()
})
