/**
 * Goal: an estimate is above zero for any text, grows with everything that becomes tokens, and the upper
 * bound holds for any text.
 * Method: requests of every kind of part; adversarial texts against their bytes.
 */
import t from 'tap'
import type { ChatRequest } from '../../src/formats/chat/request.js'
import {
  promptSizeOf,
  inputTokens,
  jsonBytes,
  maxInputTokens,
  outputTokens,
} from '../../src/ledger/estimate-tokens.js'

const FAMILIES = ['openai', 'anthropic', 'google'] as const

function asking(over: Partial<ChatRequest>): ChatRequest {
  return {
    model: 'm',
    messages: [],
    stream: false,
    includeUsage: false,
    tools: [],
    rest: {},
    ...over,
  }
}

function saying(text: string): ChatRequest {
  return asking({ messages: [{ role: 'user', index: 0, parts: [{ type: 'text', text }] }] })
}

void t.test('four bytes of text are about a token, in any script', (t) => {
  const words = 'The quick brown fox jumps over the lazy dog. '.repeat(100)
  for (const family of FAMILIES) {
    const tokens = inputTokens(promptSizeOf(saying(words)), family)
    t.ok(tokens > 900 && tokens < 1300, `${family} ${tokens}`)
  }
  t.equal(outputTokens({ bytes: 400, calls: 0 }, 'openai'), 100)
  t.equal(outputTokens({ bytes: 1, calls: 0 }, 'google'), 1)
  t.equal(outputTokens({ bytes: 0, calls: 0 }, 'openai'), 0)
  t.ok(outputTokens({ bytes: 0, calls: 1 }, 'anthropic') > 0)
  t.end()
})

void t.test('everything that makes tokens is counted', (t) => {
  const plain = promptSizeOf(saying('hi'))
  const more: [string, ChatRequest][] = [
    ['image', withPart({ type: 'image', source: { kind: 'url', url: 'https://a.example/b.png' } })],
    ['file', withPart({ type: 'file', source: { kind: 'file-id', id: 'f' } })],
    ['audio', withPart({ type: 'audio', format: 'wav', data: 'AAAA'.repeat(100) })],
    ['tools', { ...saying('hi'), tools: [{ name: 'f', parameters: { type: 'object' } }] }],
    [
      'schema',
      {
        ...saying('hi'),
        responseFormat: {
          type: 'json-schema',
          name: 's',
          schema: { type: 'object', description: 'x'.repeat(400) },
        },
      },
    ],
    [
      'calls',
      asking({
        messages: [
          ...saying('hi').messages,
          {
            role: 'assistant',
            index: 1,
            parts: [{ type: 'thinking', text: 'hmm', signature: 'sealed' }],
            toolCalls: [{ id: 'c', name: 'f', arguments: '{"city":"Paris"}' }],
          },
        ],
      }),
    ],
  ]
  for (const [name, request] of more) {
    for (const family of FAMILIES) {
      const bulk = promptSizeOf(request)
      t.ok(inputTokens(bulk, family) > inputTokens(plain, family), `${family} ${name}`)
      t.ok(maxInputTokens(bulk, family) > inputTokens(bulk, family), `${family} ${name}, most`)
    }
  }
  t.end()
})

function withPart(part: Extract<ChatRequest['messages'][number], { role: 'user' }>['parts'][0]) {
  return asking({
    messages: [{ role: 'user', index: 0, parts: [{ type: 'text', text: 'hi' }, part] }],
  })
}

void t.test('the maximum is never below the bytes, since no vocabulary has more tokens than bytes', (t) => {
  for (const text of ['a b c d', '\u{1f600}'.repeat(50), '汉字'.repeat(50), '\u0000\uffff', '']) {
    for (const family of FAMILIES) {
      t.ok(maxInputTokens(promptSizeOf(saying(text)), family) >= Buffer.byteLength(text))
    }
  }
  const schema = {
    type: 'object',
    properties: { a: { type: 'string', enum: ['x', 'y', null, 3] } },
  }
  t.ok(jsonBytes(schema) >= JSON.stringify(schema).length)
  t.end()
})
