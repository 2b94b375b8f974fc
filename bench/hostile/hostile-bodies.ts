/**
 * Hostile bodies at the size limits: each is valid HTTP, most are valid JSON, all are designed to cost much
 * more than their size. They are built once, since building them costs more than sending them.
 */
import type { JsonValue } from '../../src/base/json.js'

/** Models of three upstreams, so that every encoder gets every body. */
const MODELS = ['gpt-5.4-mini', 'claude-sonnet-4-5', 'gemini-2.5-flash']
const MEBIBYTE = 2 ** 20
/** Just below the cap of 32 MiB. */
const LARGEST_BYTES = 31 * MEBIBYTE

type Json = Record<string, JsonValue>

/** The bodies of one class, sent in turn. */
export type Bodies = readonly Buffer[]

/** All classes of bodies by name, built at first use. */
export const BODIES: Readonly<Record<string, () => Bodies>> = {
  'escaped-quotes': () => perModel((model) => toolResult(model, unterminated())),
  'chained-refs': () => perModel((model) => withSchema(model, chainedRefs(16_000))),
  'all-of-copies': () => perModel((model) => withSchema(model, allOfCopies(2_000, 300))),
  'growing-any-of': () => perModel((model) => withSchema(model, growingAnyOf(12, 500))),
  'many-tool-results': () => perModel((model) => manyToolResults(model, 4, 1_024)),
  'many-keys': () => [manyKeys(500_000), ...perModel((model) => withSchema(model, properties(25_000)))],
  'deep-nesting': () => [nested(100_000), ...perModel((model) => withSchema(model, deepSchema(50)))],
  'multibyte-31-mb': () => ['gpt-5.4-mini', 'claude-sonnet-4-5'].map((model) => multibyte(model)),
  'junk-values': () => junkValues(),
}

function perModel(make: (model: string) => Json): Bodies {
  return MODELS.map((model) => Buffer.from(JSON.stringify(make(model))))
}

function chat(model: string, more: Json): Json {
  return { model, messages: [{ role: 'user', content: 'Hi.' }], max_tokens: 16, ...more }
}

function toolResult(model: string, content: string): Json {
  const call = { id: 'call_1', type: 'function', function: { name: 'look', arguments: '{}' } }
  return chat(model, {
    messages: [
      { role: 'user', content: 'Look.' },
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'call_1', content },
    ],
  })
}

/** JSON that ends in a string of escaped quotes, after an integer beyond double precision. */
function unterminated(): string {
  return `{"id":12345678901234567890,"text":"${'\\"'.repeat(80_000)}`
}

function manyToolResults(model: string, turns: number, calls: number): Json {
  const messages: JsonValue[] = [{ role: 'user', content: 'Look.' }]
  for (let turn = 0; turn < turns; turn++) {
    const ids = Array.from({ length: calls }, (_, at) => `call_${turn}_${at}`)
    const made = (id: string): Json => ({
      id,
      type: 'function',
      function: { name: 'look', arguments: '{"at":[1,2,{"b":3}]}' },
    })
    messages.push({ role: 'assistant', content: null, tool_calls: ids.map(made) })
    // In reverse, so that a search for the call of each result starts at the wrong end.
    for (const id of ids.reverse()) {
      messages.push({ role: 'tool', tool_call_id: id, content: '{"found":[1,2,3]}' })
    }
  }
  return chat(model, { messages })
}

function withSchema(model: string, parameters: Json): Json {
  const tool = { type: 'function', function: { name: 'look', parameters } }
  return chat(model, { tools: [tool] })
}

function chainedRefs(count: number): Json {
  const $defs: Json = {}
  for (let at = 0; at < count; at++) $defs[`d${at}`] = { $ref: `#/$defs/d${at + 1}` }
  $defs[`d${count}`] = { type: 'string' }
  return { type: 'object', properties: { first: { $ref: '#/$defs/d0' } }, $defs }
}

function allOfCopies(copies: number, size: number): Json {
  const part = { $ref: '#/$defs/large' }
  return {
    type: 'object',
    allOf: Array.from({ length: copies }, () => part),
    $defs: { large: properties(size) },
  }
}

function growingAnyOf(depth: number, width: number): Json {
  let schema: Json = { type: 'string' }
  for (let level = 0; level < depth; level++) {
    const others = Array.from({ length: width }, (_, at) => ({ const: `${level}-${at}` }))
    schema = { anyOf: [schema, ...others] }
  }
  return { type: 'object', properties: { value: schema } }
}

function properties(count: number): Json {
  const all: Json = {}
  for (let at = 0; at < count; at++) all[`p${at}`] = { type: 'string' }
  return { type: 'object', properties: all }
}

function deepSchema(depth: number): Json {
  let schema: Json = { type: 'string' }
  for (let level = 0; level < depth; level++) schema = { type: 'array', items: schema }
  return { type: 'object', properties: { value: schema } }
}

function manyKeys(count: number): Buffer {
  const keys = Array.from({ length: count }, (_, at) => `"k${at}":0`).join(',')
  return Buffer.from(`{"model":"gpt-5.4-mini","messages":[],"metadata":{${keys}}}`)
}

function nested(depth: number): Buffer {
  return Buffer.from(`{"model":"gpt-5.4-mini","messages":${'['.repeat(depth)}${']'.repeat(depth)}}`)
}

/** Text whose parsed form takes two bytes a character. */
function multibyte(model: string): Buffer {
  const paragraph = '船在墙外等到钟声响起。Прилив снова опоздал. 🚢'
  const content = paragraph.repeat(Math.floor(LARGEST_BYTES / Buffer.byteLength(paragraph)))
  return Buffer.from(JSON.stringify(chat(model, { messages: [{ role: 'user', content }] })))
}

/** Bodies that do not match their headers: each must be refused with 400 at once. */
function junkValues(): Bodies {
  return [
    '',
    '{',
    '[]',
    'null',
    `{"model":"${'m'.repeat(100_000)}","messages":[]}`,
    '{"model":"gpt-5.4-mini","messages":[{"role":"user","content":"\\ud800"}],"n":1e999}',
    '{"model":"gpt-5.4-mini","model":"claude-sonnet-4-5","messages":[]}',
    '{"__proto__":{"model":"gpt-5.4-mini"},"messages":[]}',
    `{"model":"gpt-5.4-mini","messages":[{"role":"user","content":${'9'.repeat(1_000_000)}}]}`,
    `{"model":"gpt-5.4-mini","messages":[],"stop":${'\\'.repeat(200_000)}}`,
  ].map((text) => Buffer.from(text))
}
