/**
 * Goal: no request of a client of the Messages format holds the event loop for more than 50 ms.
 * Method: bodies at the accepted limits, each with maximum cost for one step between the received bytes and
 * the request to each upstream.
 */
import type { JsonObject } from '../../src/base/json.js'
import { writeReasoningToken } from '../../src/formats/wire/reasoning-token.js'
import { checkBodies } from './check-bodies.js'
import { many } from './generate-bodies.js'
import type { Client } from './measure-steps.js'

const CLIENT: Client = {
  dialect: 'anthropic',
  format: 'messages',
  endpoint: { operation: 'chat' },
}

const FIRST: JsonObject = { role: 'user', content: 'Hello' }
const LAST: JsonObject = { role: 'user', content: 'And now?' }
const TOOL: JsonObject = { name: 'f', input_schema: { type: 'object' } }

function assistantTurn(content: JsonObject[]): JsonObject {
  return { role: 'assistant', content }
}

function token(bytes: number): string {
  const signature = `rs_1:${'a'.repeat(bytes)}`
  return writeReasoningToken({ origin: 'openai-responses', thoughts: [{ signature }] })
}

const BODIES: Readonly<Record<string, JsonObject>> = {
  'calls answered in reverse': {
    tools: [TOOL],
    messages: [
      FIRST,
      assistantTurn(many(1_000, (at) => ({ type: 'tool_use', id: `t${at}`, name: 'f', input: { a: at } }))),
      {
        role: 'user',
        content: many(1_000, (at) => {
          return { type: 'tool_result', tool_use_id: `t${999 - at}`, content: 'r' }
        }),
      },
    ],
  },
  'messages of one block': {
    messages: many(9_000, (at) => ({
      role: at % 2 === 0 ? 'user' : 'assistant',
      content: [{ type: 'text', text: `${at}` }],
    })),
  },
  'a turn in many parts': {
    messages: [FIRST, ...many(9_000, (at) => assistantTurn([{ type: 'text', text: `${at}` }])), LAST],
  },
  'many tokens': {
    messages: [
      FIRST,
      ...many(4_000, () => assistantTurn([{ type: 'thinking', thinking: 't', signature: token(100) }])),
      assistantTurn([{ type: 'text', text: 'x' }]),
      LAST,
    ],
  },
  'a large token': {
    messages: [
      FIRST,
      assistantTurn([
        { type: 'thinking', thinking: '', signature: token(6_000_000) },
        { type: 'text', text: 'x' },
      ]),
      LAST,
    ],
  },
  'tools with strict schemas': {
    messages: [FIRST],
    tools: many(500, (at) => ({
      name: `f${at}`,
      strict: true,
      input_schema: {
        type: 'object',
        additionalProperties: false,
        required: many(20, (nth) => `p${nth}`),
        properties: Object.fromEntries(many(20, (nth) => [`p${nth}`, { type: 'string' }])),
      },
    })),
  },
  'ids that Anthropic does not take': {
    tools: [TOOL],
    messages: [
      FIRST,
      assistantTurn(many(1_000, (at) => ({ type: 'tool_use', id: `f.g:${at}`, name: 'f', input: {} }))),
      {
        role: 'user',
        content: many(1_000, (at) => ({ type: 'tool_result', tool_use_id: `f.g:${at}` })),
      },
    ],
  },
  'documents of text': {
    messages: [
      {
        role: 'user',
        content: many(4, () => ({
          type: 'document',
          source: { type: 'text', media_type: 'text/plain', data: 'é"'.repeat(300_000) },
        })),
      },
    ],
  },
  'a large picture': {
    messages: [
      {
        role: 'user',
        content: [
          {
            type: 'image',
            source: { type: 'base64', media_type: 'image/png', data: 'aaaa'.repeat(5_000_000) },
          },
        ],
      },
    ],
  },
  'a long text': { messages: [{ role: 'user', content: 'é"'.repeat(1_500_000) }] },
  'large arguments': {
    tools: [TOOL],
    messages: [
      FIRST,
      assistantTurn([{ type: 'tool_use', id: 't', name: 'f', input: { a: 'é"'.repeat(1_000_000) } }]),
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: 'r' }] },
    ],
  },
}

const WHOLE = Object.fromEntries(
  Object.entries(BODIES).map(([name, made]) => [name, { model: 'm', max_tokens: 100, ...made }]),
)
checkBodies(CLIENT, WHOLE, { isTaken: true })
