/**
 * Goal: no request of a client of the Responses format holds the event loop for more than 50 ms.
 * Method: bodies at the accepted limits, each with maximum cost for one step between the received bytes and
 * the request to each upstream.
 */
import type { JsonObject } from '../../src/base/json.js'
import { writeReasoningToken } from '../../src/formats/wire/reasoning-token.js'
import { many } from './generate-bodies.js'
import { checkBodies } from './check-bodies.js'
import type { Client } from './measure-steps.js'

const CLIENT: Client = {
  dialect: 'openai-responses',
  format: 'responses',
  endpoint: { operation: 'chat' },
}

const TOOL: JsonObject = { type: 'function', name: 'f', parameters: { type: 'object' } }
const asked: JsonObject = { role: 'user', content: 'Hello' }

function call(index: number, json = '{}'): JsonObject {
  return { type: 'function_call', call_id: `c${index}`, name: 'f', arguments: json }
}

function output(index: number, text = 'r'): JsonObject {
  return { type: 'function_call_output', call_id: `c${index}`, output: text }
}

function reasoning(bytes: number): JsonObject {
  const thoughts = [{ signature: 'a'.repeat(bytes) }]
  const token = writeReasoningToken({ origin: 'anthropic', thoughts })
  return { type: 'reasoning', summary: [], encrypted_content: token }
}

const BODIES: Readonly<Record<string, JsonObject>> = {
  'calls answered in reverse': {
    tools: [TOOL],
    input: [asked, ...many(1_000, (at) => call(at)), ...many(1_000, (at) => output(999 - at))],
  },
  'items of one letter': {
    input: many(9_000, (at) => ({ role: at % 2 === 0 ? 'user' : 'assistant', content: 'x' })),
  },
  'items of 800 letters': {
    input: many(9_999, (at) => ({
      role: at % 2 === 0 ? 'user' : 'assistant',
      content: 'x'.repeat(800),
    })),
  },
  'reasoning between calls': {
    tools: [TOOL],
    input: [asked, ...many(1_500, (at) => [reasoning(100), call(at), output(at)]).flat()],
  },
  'large reasoning': {
    input: [asked, reasoning(6_000_000), { role: 'user', content: 'And now?' }],
  },
  'tools with strict schemas': {
    input: 'Hello',
    tools: many(500, (at) => ({
      type: 'function',
      name: `f${at}`,
      strict: true,
      parameters: {
        type: 'object',
        additionalProperties: false,
        required: many(20, (nth) => `p${nth}`),
        properties: Object.fromEntries(many(20, (nth) => [`p${nth}`, { type: 'string' }])),
      },
    })),
  },
  'a large picture': {
    input: [
      {
        role: 'user',
        content: [
          {
            type: 'input_image',
            image_url: `data:image/png;base64,${'aaaa'.repeat(5_000_000)}`,
          },
        ],
      },
    ],
  },
  'a long text': { input: 'é"'.repeat(1_500_000) },
  'large arguments': {
    tools: [TOOL],
    input: [asked, call(0, JSON.stringify({ a: 'é"'.repeat(1_000_000) })), output(0)],
  },
  'a large result': {
    tools: [TOOL],
    input: [asked, call(0), output(0, '\\"'.repeat(2_000_000))],
  },
}

const WHOLE = Object.fromEntries(
  Object.entries(BODIES).map(([name, made]) => [name, { model: 'm', ...made }]),
)
checkBodies(CLIENT, WHOLE, { isTaken: true })
