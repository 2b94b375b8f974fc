/**
 * Goal: losses that no chat client can cause yet are reported too: parts of a conversation
 * from another provider, and values at the limits of a dialect.
 * Method: hand-written canonical requests are passed to the encoders.
 */
import t from 'tap'
import type { Message } from '../../../src/formats/chat/request.js'
import type { ChatRequest } from '../../../src/formats/chat/request.js'
import type { ModelFacts } from '../../../src/formats/chat/model-facts.js'
import type { DialectName } from '../../../src/formats/dialect.js'
import { upstreamCodecOf } from '../../../src/formats/index.js'

const HELLO: Message = { role: 'user', index: 0, parts: [{ type: 'text', text: 'Hello.' }] }
const PLAIN: ChatRequest = {
  model: 'm',
  messages: [HELLO],
  stream: false,
  includeUsage: false,
  tools: [],
  rest: {},
}
const FAMILY = { anthropic: 'anthropic', gemini: 'google' } as const

function lost(dialect: DialectName, more: Partial<ChatRequest>): string[] {
  const family = dialect === 'anthropic' || dialect === 'gemini' ? FAMILY[dialect] : 'openai'
  const facts: ModelFacts = { id: 'm', family, createdAtSeconds: 0 }
  const paths: string[] = []
  const losses = { drop: (path: string) => paths.push(path) }
  upstreamCodecOf(dialect)?.encodeRequest({ ...PLAIN, ...more }, facts, losses)
  return paths
}

const replies = (...parts: Extract<Message, { role: 'assistant' }>['parts']): Partial<ChatRequest> => ({
  messages: [HELLO, { role: 'assistant', index: 1, parts, toolCalls: [] }, { ...HELLO, index: 2 }],
})
const TEXT = { type: 'text', text: 'Hi.' } as const

void t.test('blocks that only their own provider accepts', (t) => {
  const foreign = (provider: string) =>
    replies(TEXT, { type: 'opaque', provider, block: { type: 'server_tool_use' } })
  t.same(lost('anthropic', foreign('gemini')), ['messages.opaque'])
  t.same(lost('gemini', foreign('anthropic')), ['messages.opaque'])
  t.same(lost('openai-chat', foreign('anthropic')), ['messages.opaque'])
  t.same(lost('anthropic', foreign('anthropic')), [], 'its own are kept')
  t.end()
})

void t.test('reasoning of another provider', (t) => {
  const thought = replies({ type: 'thinking', text: 'Hm.', signature: 's', origin: 'gemini' }, TEXT)
  t.ok(lost('openai-chat', thought).includes('messages.thinking'))
  t.ok(lost('anthropic', thought).includes('messages.reasoning'))
  t.end()
})

void t.test('images of a tool result, and its error flag', (t) => {
  const source = { kind: 'base64', mediaType: 'image/png', data: 'AAAA' } as const
  const call = { id: 'c', name: 'look', arguments: '{}' }
  const messages: Message[] = [
    HELLO,
    { role: 'assistant', index: 1, parts: [], toolCalls: [call] },
    { role: 'tool', index: 2, callId: 'c', parts: [{ type: 'image', source }], isError: true },
  ]
  const more = { messages, tools: [{ name: 'look' }] }
  t.same(lost('openai-chat', more), ['messages.is_error', 'messages.tool_content'])
  t.same(lost('anthropic', more), [])
  t.end()
})

void t.test('a text file for a format that accepts only PDF', (t) => {
  const source = { kind: 'base64', mediaType: 'text/plain', data: 'SGk=' } as const
  const messages: Message[] = [{ role: 'user', index: 0, parts: [{ type: 'file', source }] }]
  t.same(lost('openai-chat', { messages }), ['messages.file'])
  t.end()
})

void t.test('a strict tool whose schema cannot be strict', (t) => {
  const node = { type: 'object', properties: { next: { $ref: '#/$defs/node' } } }
  const parameters = { ...node, $defs: { node } }
  const tools = [{ name: 'walk', parameters, strict: true }]
  t.same(lost('anthropic', { tools }), ['tools.strict'])
  t.end()
})

void t.test('two settings for one field', (t) => {
  const rest = { extra_content: { google: { thinking_config: { thinking_budget: 1 } } } }
  t.ok(lost('gemini', { reasoningEffort: 'high', rest }).includes('extra_content'))
  t.end()
})
