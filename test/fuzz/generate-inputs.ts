/**
 * Generates inputs by number: the same number gives the same input in every process. Half of them are
 * corrupted transcripts of the project; the others are generated.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isObject, type JsonObject } from '../../src/base/json.js'
import type { DialectName } from '../../src/formats/dialect.js'
import { corrupt, damage, type Roll } from '../properties/damage-bytes.js'
import { seededRoll } from '../properties/transcript-streams.js'
import { answer } from './generate-replies.js'
import type { Input } from './fuzz-input.js'
import { disturb, legalRequest } from './generate-requests.js'

/** The upstream dialects that are fuzzed. */
export const UPSTREAM_DIALECTS: readonly DialectName[] = [
  'openai-chat',
  'openai-responses',
  'anthropic',
  'gemini',
  'converse',
]

/** A model of each. */
export const MODELS: Readonly<Record<DialectName, string>> = {
  'openai-chat': 'gpt-4o',
  'openai-responses': 'gpt-4.1',
  anthropic: 'claude-haiku-4-5',
  gemini: 'gemini-3.5-flash',
  converse: 'us.amazon.nova-2-lite-v1:0',
}

const TRANSCRIPTS = join(process.cwd(), 'test/transcripts')
const PLAIN = { model: 'client-model', messages: [{ role: 'user', content: 'Hello' }] }

function texts(dialect: string, ending: string): Buffer[] {
  const folder = join(TRANSCRIPTS, dialect)
  if (!existsSync(folder)) return []
  const files = readdirSync(folder).filter((file) => file.endsWith(ending))
  return files.map((file) => readFileSync(join(folder, file)))
}

const STREAMS = new Map(UPSTREAM_DIALECTS.map((name) => [name, texts(name, '.stream.sse')]))
const REPLIES = new Map(UPSTREAM_DIALECTS.map((name) => [name, texts(name, '.reply.json')]))
const REQUESTS = texts('openai-chat', '.request.json')
  .map((text): unknown => JSON.parse(text.toString()))
  .filter(isObject)

/** Typical error bodies of all providers. */
const REFUSALS = [
  '{"error":{"message":"No","type":"invalid_request_error","param":"x","code":"bad"}}',
  '{"type":"error","error":{"type":"rate_limit_error","message":"No","details":{"error_code":"x"}}}',
  '[{"error":{"code":429,"message":"No","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.4s"}]}}]',
  `{"error":{"message":"${'No. '.repeat(2000)}","type":"server_error"}}`,
  '<html><body>502</body></html>',
  '',
].map((text) => Buffer.from(text))

/** The input with a number, for one of `dialects`. */
export function inputOf(seed: number, dialects: readonly DialectName[] = UPSTREAM_DIALECTS): Input {
  const roll = seededRoll(seed)
  const dialect = dialects[roll(dialects.length)] ?? 'openai-chat'
  const kind = roll(20)
  if (kind < 5) return { kind: 'request', text: requestText(roll) }
  const request = JSON.stringify(streamRequest(roll))
  if (kind < 6) {
    const text = corrupt(REFUSALS, roll).toString('latin1')
    return { kind: 'refusal', dialect, request, text }
  }
  if (kind < 9) {
    const { whole, stream } = answer(dialect, roll)
    return { kind: 'pair', dialect, request, whole, text: stream, cuts: cutsOf(stream, roll) }
  }
  if (kind < 12) return { kind: 'reply', dialect, request, text: replyText(dialect, roll) }
  const text = streamText(dialect, roll)
  return { kind: 'stream', dialect, request, text, cuts: cutsOf(text, roll) }
}

function cutsOf(text: string, roll: Roll): number[] {
  return Array.from({ length: roll(12) }, () => roll(text.length + 1))
}

function modelFor(roll: Roll): string {
  const newest = ['gpt-5.4', 'gpt-6-sol', 'o3', 'claude-opus-5-5', 'claude-sonnet-4-6', 'gemini-2.5-pro']
  const all = [...Object.values(MODELS), ...newest, 'an-unknown-model']
  return all[roll(all.length)] ?? 'gpt-4o'
}

function requestText(roll: Roll): string {
  const own = REQUESTS[roll(REQUESTS.length)] ?? PLAIN
  let body: JsonObject = roll(3) === 0 ? own : legalRequest(roll, modelFor(roll))
  for (let hits = roll(4); hits > 0; hits -= 1) body = disturb(body, roll)
  const text = JSON.stringify(body)
  return roll(10) === 0 ? damage(text, [Buffer.from(text)], roll) : text
}

/** A valid request of a client for a stream. */
function streamRequest(roll: Roll): JsonObject {
  const offer = roll(6)
  const tools = [{ type: 'function', function: { name: 'f0', parameters: { type: 'object' } } }]
  const schema = { type: 'object', properties: { a: { type: 'string' } } }
  const format = { type: 'json_schema', json_schema: { name: 'n', schema } }
  return {
    ...PLAIN,
    model: modelFor(roll),
    stream: true,
    stream_options: { include_usage: roll(4) > 0 },
    ...(offer === 0 ? { tools } : offer === 1 ? { functions: [{ name: 'f0' }] } : {}),
    ...(roll(6) === 0 ? { response_format: format } : {}),
  }
}

function replyText(dialect: DialectName, roll: Roll): string {
  const own = REPLIES.get(dialect) ?? []
  const text = (roll(2) === 0 ? own[roll(own.length)]?.toString() : undefined) ?? answer(dialect, roll).whole
  if (roll(10) === 0) return damage(text, own, roll)
  let body: unknown = JSON.parse(text)
  for (let hits = roll(4); hits > 0 && isObject(body); hits -= 1) body = disturb(body, roll)
  return JSON.stringify(body)
}

function streamText(dialect: DialectName, roll: Roll): string {
  const chunks = [Buffer.from(answer(dialect, roll).stream, 'latin1')]
  const own = STREAMS.get(dialect) ?? []
  const streams = roll(2) === 0 || own.length === 0 ? chunks : own
  return roll(12) === 0
    ? (streams[roll(streams.length)]?.toString('latin1') ?? '')
    : corrupt(streams, roll).toString('latin1')
}
