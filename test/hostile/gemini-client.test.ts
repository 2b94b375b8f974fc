/**
 * Goal: no request of a Gemini client holds the event loop for more than 50 ms.
 * Method: bodies at the accepted limits, each with maximum cost for one step between the received bytes and
 * the request to each upstream.
 */
import type { JsonObject } from '../../src/base/json.js'
import { writeReasoningToken } from '../../src/formats/wire/reasoning-token.js'
import { checkBodies } from './check-bodies.js'
import { many } from './generate-bodies.js'
import type { Client } from './measure-steps.js'

const CLIENT: Client = {
  dialect: 'gemini',
  format: 'gemini',
  endpoint: { operation: 'chat', model: 'm', stream: true },
}

const FIRST: JsonObject = { role: 'user', parts: [{ text: 'Hello' }] }

function assistantTurn(parts: JsonObject[]): JsonObject {
  return { role: 'model', parts }
}

function token(thoughts: number, bytes = 1): string {
  const signature = 'a'.repeat(bytes)
  return writeReasoningToken({
    origin: 'anthropic',
    thoughts: many(thoughts, () => ({ signature })),
  })
}

const BODIES: Readonly<Record<string, JsonObject>> = {
  'calls of one name, without ids': {
    contents: [
      FIRST,
      assistantTurn(many(4_000, () => ({ functionCall: { name: 'a' } }))),
      { parts: many(4_000, () => ({ functionResponse: { name: 'a', response: {} } })) },
    ],
  },
  'calls with ids, answered in reverse': {
    contents: [
      FIRST,
      assistantTurn(many(4_000, (at) => ({ functionCall: { name: 'a', id: `c${at}` } }))),
      {
        parts: many(4_000, (at) => {
          return { functionResponse: { name: 'a', id: `c${3_999 - at}`, response: {} } }
        }),
      },
    ],
  },
  'contents of one part': {
    contents: many(9_000, (at) => ({
      role: at % 2 === 0 ? 'user' : 'model',
      parts: [{ text: `${at}` }],
    })),
  },
  'a turn in many parts': {
    contents: [
      FIRST,
      ...many(9_000, (at) => assistantTurn([{ text: `${at}` }, { text: 't', thought: true }])),
    ],
  },
  'names with underscores': {
    contents: many(9_000, () => ({
      parts: [{ inline_data: { mime_type: 'image/png', data: 'aaaa' } }],
    })),
  },
  "functions in Google's schema language": {
    contents: [FIRST],
    tools: many(1_000, (at) => ({
      function_declarations: [
        {
          name: `f${at}`,
          parameters: {
            type: 'OBJECT',
            properties: Object.fromEntries(
              many(20, (nth) => [`p${nth}`, { type: 'STRING', nullable: true }]),
            ),
          },
        },
      ],
    })),
  },
  'many tokens': {
    contents: [
      FIRST,
      ...many(3_000, () => assistantTurn([{ text: 't', thought: true, thoughtSignature: token(10) }])),
    ],
  },
  'a large state': {
    contents: [FIRST, assistantTurn([{ text: 't', thought: true, thoughtSignature: token(1, 6_000_000) }])],
  },
  'a token with many thoughts': {
    contents: [FIRST, assistantTurn([{ text: 't', thought: true, thoughtSignature: token(400_000) }])],
  },
  'a picture in the alphabet for addresses': {
    contents: [{ parts: [{ inlineData: { mimeType: 'image/png', data: '-_aa'.repeat(2_500_000) } }] }],
  },
  'a long text': { contents: [{ parts: [{ text: 'é"'.repeat(1_500_000) }] }] },
}

checkBodies(CLIENT, BODIES, { isTaken: false })
