/**
 * Generates client requests from a seed: valid ones with every field of the format, and ones with a few wrong
 * values. Written from the format's reference, not from the decoder.
 */
import { isObject, type JsonObject, type JsonValue } from '../../src/base/json.js'
import type { Roll } from '../properties/damage-bytes.js'

const TEXTS = ['Hello', ' ', '', 'é 漢 🐋', '"\\\n', '\ud83d', '\u2028', 'data: [DONE]', 'x'.repeat(300)]
const ARGUMENTS = ['{}', '', '{"a":1}', '{"n":12345678901234567890}', '[1]', 'not JSON', '{"__proto__":1}']
const PIXEL =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

/** Values that stand in place of another kind of value. */
const SWAPS: readonly JsonValue[] = [0, -1, 1.5, 1e300, 'x', '', '\ud83d', null, true, {}, [], [{}]]

/** All members except `messages` and `tools`; each is present at random. */
const FIELDS: Readonly<Record<string, readonly JsonValue[]>> = {
  max_tokens: [1, 1000, 10_000_000],
  max_completion_tokens: [1, 1000, 10_000_000],
  temperature: [0, 0.3, 1, 2],
  top_p: [0, 0.5, 1],
  n: [1, 2],
  stop: ['END', ['a', 'b'], [], ''],
  seed: [1, -1, 2 ** 40],
  stream: [true, false],
  user: ['u', 'someone@example.com'],
  logprobs: [true, false],
  top_logprobs: [0, 3],
  presence_penalty: [-2, 0, 1],
  frequency_penalty: [-2, 0, 1],
  logit_bias: [{}, { '5': 1 }],
  reasoning_effort: ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'],
  verbosity: ['low', 'medium', 'high'],
  service_tier: ['auto', 'default', 'flex', 'priority'],
  store: [true, false],
  metadata: [{}, { k: 'v' }],
  parallel_tool_calls: [true, false],
  response_format: [
    { type: 'text' },
    { type: 'json_object' },
    { type: 'json_schema', json_schema: { name: 'n', strict: true, schema: { type: 'object' } } },
  ],
  tool_choice: [
    'auto',
    'none',
    'required',
    { type: 'function', function: { name: 'f0' } },
    {
      type: 'allowed_tools',
      allowed_tools: { mode: 'auto', tools: [{ type: 'function', function: { name: 'f0' } }] },
    },
  ],
  reasoning: [{ effort: 'low' }],
  thinking: [{ type: 'enabled', budget_tokens: 2048 }, { type: 'disabled' }],
  safety_identifier: ['s'],
  prompt_cache_key: ['k'],
}

/** A valid request for `model`. */
export function legalRequest(roll: Roll, model: string): JsonObject {
  const one = <T>(from: readonly T[], other: T): T => from[roll(from.length)] ?? other
  const body: JsonObject = { model }
  for (const [name, values] of Object.entries(FIELDS)) {
    if (roll(6) === 0) body[name] = one(values, null)
  }
  const names = Array.from({ length: roll(4) }, (_, at) => `f${at}`)
  if (names.length > 0) body['tools'] = names.map((name) => tool(name, roll))
  else delete body['tool_choice']
  body['messages'] = conversation(names, roll)
  return body
}

function tool(name: string, roll: Roll): JsonObject {
  const parameters = roll(4) === 0 ? {} : { parameters: schema(roll, 3) }
  const strict = roll(4) === 0 ? { strict: true } : {}
  return { type: 'function', function: { name, description: 'A tool', ...parameters, ...strict } }
}

/** A JSON Schema of at most `depth` levels, sometimes with references to itself. */
function schema(roll: Roll, depth: number): JsonObject {
  const leaf: JsonObject[] = [
    { type: 'string', pattern: '^a', format: 'email' },
    { type: ['string', 'null'], default: null },
    { enum: ['a', 1, null] },
    { const: 'x' },
    { type: 'number', exclusiveMinimum: 0, multipleOf: 2 },
    { $ref: '#/$defs/node', description: 'beside' },
    {},
  ]
  if (depth === 0) return leaf[roll(leaf.length)] ?? {}
  const inner = (): JsonObject => schema(roll, depth - 1)
  switch (roll(6)) {
    case 0:
      return { type: 'array', items: inner(), minItems: 1, uniqueItems: true }
    case 1:
      return { anyOf: [inner(), inner()] }
    case 2:
      return { oneOf: [inner(), { type: 'null' }] }
    case 3:
      return { allOf: [inner(), inner()] }
    default:
      return {
        type: 'object',
        properties: { a: inner(), b: inner(), __proto: inner() },
        required: ['a'],
        additionalProperties: roll(2) === 0,
        $defs: { node: { type: 'object', properties: { next: { $ref: '#/$defs/node' } } } },
      }
  }
}

function conversation(names: readonly string[], roll: Roll): JsonObject[] {
  const text = (): string => TEXTS[roll(TEXTS.length)] ?? 'x'
  const messages: JsonObject[] = []
  if (roll(2) === 0) messages.push({ role: roll(2) === 0 ? 'system' : 'developer', content: text() })
  const turns = 1 + roll(4)
  for (let turn = 0; turn < turns; turn += 1) {
    messages.push({ role: 'user', content: roll(2) === 0 ? `${text()}x` : parts(text, roll) })
    if (turn === turns - 1 || roll(5) === 0) continue
    const calls = names.filter(() => roll(2) === 0)
    const actual: JsonObject = {
      role: 'assistant',
      content: calls.length > 0 && roll(2) === 0 ? null : text(),
    }
    if (roll(3) === 0) actual['reasoning_content'] = text()
    if (roll(4) === 0) actual['refusal'] = text()
    if (calls.length > 0) {
      actual['tool_calls'] = calls.map((name) => ({
        id: `${roll(4) === 0 ? 'x'.repeat(60) : 'call'}_${turn}${name}`,
        type: 'function',
        function: { name, arguments: ARGUMENTS[roll(ARGUMENTS.length)] ?? '' },
      }))
    }
    messages.push(actual)
    for (const call of Array.isArray(actual['tool_calls']) ? actual['tool_calls'] : []) {
      if (!isObject(call)) continue
      messages.push({ role: 'tool', tool_call_id: call['id'], content: text() })
    }
  }
  return messages
}

function parts(text: () => string, roll: Roll): JsonObject[] {
  const all: JsonObject[] = [
    { type: 'text', text: text() },
    { type: 'image_url', image_url: { url: PIXEL, detail: 'low' } },
    { type: 'image_url', image_url: { url: 'https://a.example/x.png' } },
    { type: 'input_audio', input_audio: { format: 'wav', data: 'UklGRg==' } },
    {
      type: 'file',
      file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERi0=' },
    },
  ]
  return [{ type: 'text', text: 'See' }, ...all.filter(() => roll(4) === 0)]
}

/** The value with one node removed, duplicated, wrapped or replaced. */
export function disturb(value: JsonObject, roll: Roll): JsonObject {
  const places: { holder: JsonObject | JsonValue[]; key: string | number }[] = []
  const visit = (node: JsonValue | undefined): void => {
    if (Array.isArray(node)) {
      node.forEach((each, key) => {
        places.push({ holder: node, key })
        visit(each)
      })
    } else if (isObject(node)) {
      for (const key of Object.keys(node)) {
        places.push({ holder: node, key })
        visit(node[key])
      }
    }
  }
  const copy: unknown = structuredClone(value)
  if (!isObject(copy)) return value
  visit(copy)
  const place = places[roll(places.length)]
  if (place !== undefined) spoil(place, roll)
  return copy
}

function spoil(
  { holder, key }: { holder: JsonObject | JsonValue[]; key: string | number },
  roll: Roll,
): void {
  const replaced = (was: JsonValue | undefined): JsonValue => {
    if (roll(6) === 0) return [was ?? null]
    if (roll(6) === 0) return { [String(key)]: was ?? null }
    if (typeof was === 'string' && roll(3) === 0) return was.repeat(1 + roll(50))
    return structuredClone(SWAPS[roll(SWAPS.length)] ?? null)
  }
  const mutation = roll(4)
  if (Array.isArray(holder)) {
    const at = Number(key)
    if (mutation === 0) holder.splice(at, 1)
    else if (mutation === 1) holder.splice(at, 0, holder[at] ?? null)
    else holder[at] = replaced(holder[at])
  } else {
    // JSON omits undefined members.
    holder[String(key)] = mutation === 0 ? undefined : replaced(holder[String(key)])
  }
}
