/**
 * Goal: any body is serialized to the bytes of `stringifyExact`, and its bytes are counted.
 * Method: seeded bodies with every kind of content, compared with `stringifyExact`.
 */
import t from 'tap'
import type { JsonObject, JsonValue } from '../../../../src/base/json.js'
import { write } from '../../../../src/formats/anthropic/upstream/encode-request.js'
import { stringifyExact } from '../../../../src/formats/wire/json/exact-numbers.js'
import { dice } from '../../../helpers/seeded-random.js'

const TEXTS = ['', 'plain', 'a "quote" and \\', 'line\nline', 'é 😀', '\ud800', '\u2028', 'x'.repeat(600)]

void t.test('seeded bodies are serialized like by stringifyExact', (t) => {
  const roll = dice(41)
  const pick = <T>(items: readonly T[]): T | undefined => items[Math.floor(roll() * items.length)]
  const text = (): string => pick(TEXTS) ?? ''
  const block = (): JsonValue => {
    const eventTypes: JsonValue[] = [
      { type: 'text', text: text() },
      { type: 'text', text: text(), cache_control: { type: 'ephemeral' } },
      { text: text(), type: 'text' },
      { type: 'thinking', text: text() },
      { type: 'text', text: 5 },
      {
        type: 'tool_use',
        id: 'a',
        name: 'b',
        input: { n: '\uFDD012345678901234567890', s: text() },
      },
      { type: 'tool_result', tool_use_id: 'a', content: [{ type: 'text', text: text() }] },
      {},
      [],
      null,
      text(),
    ]
    return roll() < 0.6 ? (eventTypes[0] ?? null) : (pick(eventTypes) ?? null)
  }
  const blocks = (): JsonValue[] => Array.from({ length: Math.floor(roll() * 4) }, block)
  const message = (): JsonValue => {
    const eventTypes: JsonValue[] = [
      { role: 'user', content: blocks() },
      { role: text(), content: blocks() },
      { role: 'user', content: text() },
      { content: blocks(), role: 'user' },
      { role: 'user', content: blocks(), name: 'x' },
      { role: 'user' },
      null,
    ]
    return roll() < 0.6 ? (eventTypes[0] ?? null) : (pick(eventTypes) ?? null)
  }
  for (let round = 0; round < 1_000; round += 1) {
    const body: JsonObject = {}
    if (roll() < 0.9) body['model'] = pick<JsonValue>(['m-1', 'a"b', null, 5]) ?? null
    if (roll() < 0.9) body['max_tokens'] = pick<JsonValue>([1, 64_000, 0.5, 1e21, -0, 'x']) ?? null
    if (roll() < 0.7) body['system'] = pick<JsonValue>([blocks(), text(), {}]) ?? null
    if (roll() < 0.9) body['messages'] = pick<JsonValue>([Array.from({ length: 3 }, message), {}]) ?? null
    if (roll() < 0.5) body['tools'] = [{ name: text(), input_schema: { type: 'object' } }]
    if (roll() < 0.3) body[text()] = text()
    if (roll() < 0.3) body['stream'] = true
    const written = write(body)
    t.equal(written.text, stringifyExact(body))
    t.equal(written.bytes, Buffer.byteLength(written.text))
  }
  t.end()
})

void t.test('a text that looks like an exact number stays a text', (t) => {
  const text = '\uFDD012345678901234567890'
  const body = { messages: [{ role: 'user', content: [{ type: 'text', text }] }] }
  t.same(JSON.parse(write(body).text), body)
  t.end()
})
