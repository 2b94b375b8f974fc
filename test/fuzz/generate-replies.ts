/**
 * Generates replies from a seed, each as its provider writes it whole and streamed. Written from the vendors'
 * pages, not from the codecs.
 */
import type { JsonObject, JsonValue } from '../../src/base/json.js'
import { awsEvent } from '../../src/emulator/aws-event-stream.js'
import type { DialectName } from '../../src/formats/dialect.js'
import { framed, type Unit } from '../edge-cases/drive-codecs.js'
import {
  block,
  candidate,
  chunk,
  counts,
  fragment,
  messageEnd,
  messageStart,
  toolBlock,
} from '../edge-cases/provider-frames.js'
import type { Roll } from '../properties/damage-bytes.js'
import { callItem, messageItem, response, responseFrames } from './responses-format.js'

/** A reply in both forms. */
export interface BothForms {
  readonly whole: string
  /** As latin1. */
  readonly stream: string
}

interface Actual {
  readonly thinking: string
  readonly text: string
  readonly calls: readonly { id: string; name: string; args: JsonObject }[]
  readonly usage: readonly [input: number, output: number, cached: number]
}

const TEXTS = ['Hi', 'é 漢 🐋', 'a b\n\nc', '"\\"', '</s> data: [DONE]', '\u2028', '{"a":1}', 'x'.repeat(200)]

/** A reply of the dialect's provider. */
export function answer(dialect: DialectName, roll: Roll): BothForms {
  const actual = somethingActual(roll)
  if (dialect === 'converse') return converse(actual, roll)
  const { whole, units } = FORMS[dialect](actual, roll)
  const stream = Buffer.from(framed(dialect, units)).toString('latin1')
  return { whole: JSON.stringify(whole), stream }
}

type Form = (shown: Actual, roll: Roll) => { whole: JsonObject; units: Unit[] }

const FORMS: Readonly<Record<Exclude<DialectName, 'converse'>, Form>> = {
  'openai-chat': openai,
  'openai-responses': responses,
  anthropic: claude,
  gemini,
}

function somethingActual(roll: Roll): Actual {
  const text = (): string => TEXTS[roll(TEXTS.length)] ?? 'x'
  const calls = Array.from({ length: roll(3) }, (_, at) => ({
    id: `call_${at}`,
    name: `f${roll(2)}`,
    args: roll(4) === 0 ? {} : { s: text(), n: roll(100), deep: [{ x: null }, true] },
  }))
  return {
    thinking: roll(2) === 0 ? '' : text(),
    text: calls.length > 0 && roll(2) === 0 ? '' : text(),
    calls,
    usage: [10 + roll(90), 1 + roll(90), roll(10)],
  }
}

/** The text in fragments, never split within a surrogate pair. */
function fragments(text: string, roll: Roll): string[] {
  const points = Array.from(text)
  const out: string[] = []
  while (points.length > 0) out.push(points.splice(0, 1 + roll(8)).join(''))
  return out
}

function openai({ thinking, text, calls, usage }: Actual, roll: Roll): { whole: JsonObject; units: Unit[] } {
  const [prompt_tokens, completion_tokens, cached_tokens] = usage
  const finish = calls.length > 0 ? 'tool_calls' : 'stop'
  const counted: JsonObject = {
    prompt_tokens,
    completion_tokens,
    total_tokens: prompt_tokens + completion_tokens,
    prompt_tokens_details: { cached_tokens },
  }
  const message: JsonObject = { role: 'assistant', content: text === '' ? null : text }
  if (thinking !== '') message['reasoning_content'] = thinking
  if (calls.length > 0) {
    message['tool_calls'] = calls.map(({ id, name, args }) => ({
      id,
      type: 'function',
      function: { name, arguments: JSON.stringify(args) },
    }))
  }
  const { choices, ...head } = chunk({})
  const whole = { ...head, choices: [{ index: 0, message, finish_reason: finish }], usage: counted }
  const units: Unit[] = [
    chunk({ role: 'assistant', content: '' }),
    ...fragments(thinking, roll).map((reasoning_content) => chunk({ reasoning_content })),
    ...fragments(text, roll).map((content) => chunk({ content })),
    ...calls.flatMap(({ id, name, args }, index) => [
      fragment(index, '', { id, name }),
      ...fragments(JSON.stringify(args), roll).map((json) => fragment(index, json)),
    ]),
    chunk({}, finish),
    counts(counted),
    '[DONE]',
  ]
  return { whole: choices === undefined ? {} : whole, units }
}

function claude({ thinking, text, calls, usage }: Actual, roll: Roll): { whole: JsonObject; units: Unit[] } {
  const [input_tokens, output_tokens, cache_read_input_tokens] = usage
  const content: JsonValue[] = []
  const units: Unit[] = [messageStart({ input_tokens, cache_read_input_tokens, output_tokens: 1 })]
  if (thinking !== '') {
    const deltas = fragments(thinking, roll).map((it) => ({ type: 'thinking_delta', thinking: it }))
    const signed = { type: 'signature_delta', signature: 'c2ln' }
    units.push(...block(content.length, { type: 'thinking', thinking: '', signature: '' }, ...deltas, signed))
    content.push({ type: 'thinking', thinking, signature: 'c2ln' })
  }
  if (text !== '') {
    const deltas = fragments(text, roll).map((it) => ({ type: 'text_delta', text: it }))
    units.push(...block(content.length, { type: 'text', text: '' }, ...deltas))
    content.push({ type: 'text', text })
  }
  for (const { id, name, args } of calls) {
    const json = Object.keys(args).length === 0 ? [''] : fragments(JSON.stringify(args), roll)
    units.push(...toolBlock(content.length, [id, name], { fragments: json }))
    content.push({ type: 'tool_use', id, name, input: args })
    if (roll(3) === 0) units.push({ type: 'ping' })
  }
  const stop_reason = calls.length > 0 ? 'tool_use' : 'end_turn'
  units.push(...messageEnd(stop_reason, { output_tokens }))
  const whole = {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'claude-up',
    content,
    stop_reason,
    stop_sequence: null,
    usage: { input_tokens, cache_read_input_tokens, output_tokens },
  }
  return { whole, units }
}

function gemini({ thinking, text, calls, usage }: Actual, roll: Roll): { whole: JsonObject; units: Unit[] } {
  const [promptTokenCount, candidatesTokenCount, cachedContentTokenCount] = usage
  const counted = {
    promptTokenCount,
    candidatesTokenCount,
    cachedContentTokenCount,
    totalTokenCount: promptTokenCount + candidatesTokenCount,
  }
  const callParts = calls.map(({ id, name, args }, at) => {
    const call: JsonObject = { functionCall: { id, name, args } }
    return at === 0 && roll(2) === 0 ? { ...call, thoughtSignature: 'c2ln' } : call
  })
  const parts: JsonValue[] = []
  if (thinking !== '') parts.push({ text: thinking, thought: true })
  if (text !== '') parts.push({ text })
  parts.push(...callParts)
  const units = [
    ...fragments(thinking, roll).map((it) => candidate([{ text: it, thought: true }], undefined, counted)),
    ...fragments(text, roll).map((it) => candidate([{ text: it }], undefined, counted)),
    ...callParts.map((part) => candidate([part], undefined, counted)),
    candidate([{ text: '' }], 'STOP', counted),
  ]
  return { whole: candidate(parts, 'STOP', counted), units }
}

/** Some models send the counts before the end. */
function converse({ thinking, text, calls, usage }: Actual, roll: Roll): BothForms {
  const [inputTokens, outputTokens, cacheReadInputTokens] = usage
  const content: JsonValue[] = []
  const events = [awsEvent('messageStart', { role: 'assistant', p: 'ab' })]
  const add = (whole: JsonObject, start: JsonObject | null, ...deltas: JsonObject[]): void => {
    const contentBlockIndex = content.length
    content.push(whole)
    if (start !== null) events.push(awsEvent('contentBlockStart', { contentBlockIndex, start }))
    for (const delta of deltas) {
      const p = 'abcdefghij'.slice(0, 1 + roll(10))
      events.push(awsEvent('contentBlockDelta', { contentBlockIndex, delta, p }))
    }
    if (roll(8) > 0) events.push(awsEvent('contentBlockStop', { contentBlockIndex }))
  }
  if (thinking !== '') {
    const reasoningText = { text: thinking, signature: 'c2ln' }
    const deltas = fragments(thinking, roll).map((it) => ({ reasoningContent: { text: it } }))
    const signed = { reasoningContent: { signature: 'c2ln' } }
    add({ reasoningContent: { reasoningText } }, null, ...deltas, signed)
  }
  if (text !== '') add({ text }, null, ...fragments(text, roll).map((it) => ({ text: it })))
  for (const { id, name, args } of calls) {
    const json = Object.keys(args).length === 0 ? [] : fragments(JSON.stringify(args), roll)
    const deltas = json.map((input) => ({ toolUse: { input } }))
    const head = { toolUseId: id, name }
    add({ toolUse: { ...head, input: args } }, { toolUse: head }, ...deltas)
  }
  const stopReason = calls.length > 0 ? 'tool_use' : 'end_turn'
  const counted = { inputTokens, outputTokens, cacheReadInputTokens }
  const ends = [awsEvent('messageStop', { stopReason }), awsEvent('metadata', { usage: counted })]
  events.push(...(roll(4) === 0 ? ends.reverse() : ends))
  const output = { message: { role: 'assistant', content } }
  return {
    whole: JSON.stringify({ output, stopReason, usage: counted }),
    stream: Buffer.concat(events).toString('latin1'),
  }
}

function responses({ text, calls, usage }: Actual, roll: Roll): { whole: JsonObject; units: Unit[] } {
  const [input_tokens, output_tokens, cached_tokens] = usage
  const counted = {
    input_tokens,
    output_tokens,
    total_tokens: input_tokens + output_tokens,
    input_tokens_details: { cached_tokens },
  }
  const items: [item: JsonObject, fragments: string[]][] =
    text === '' ? [] : [[messageItem(text), fragments(text, roll)]]
  for (const { id, name, args } of calls) {
    const json = JSON.stringify(args)
    items.push([callItem(id, name, json), fragments(json, roll)])
  }
  const whole = response(
    items.map(([item]) => item),
    { usage: counted },
  )
  return { whole, units: responseFrames(items, { type: 'response.completed' }, { usage: counted }) }
}
