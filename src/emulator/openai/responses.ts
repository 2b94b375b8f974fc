/**
 * OpenAI's Responses as a provider speaks them: whole reply and stream.
 * Knows no other provider and no fault. Follows recorded traffic of 2025–2026.
 */
import { answerTo, piecesOf, weighed, type Weighed } from '../answer.js'
import { datedModel } from './chat-completions.js'
import { STREAM, WHOLE, openAiVoice } from './errors.js'
import { readResponses } from './decode-responses-request.js'
import { diceOf, lettersOf } from '../seed.js'
import { signed } from '../signature.js'
import type { Answer, Call, Reply, Voice } from '../ask.js'
import type { JsonObject } from '../../chat/json.js'
import type { Dice } from '../seed.js'
import type { ResponsesRequest } from './decode-responses-request.js'

function framed(event: JsonObject): string {
  const { type } = event
  return `event: ${typeof type === 'string' ? type : 'message'}\ndata: ${JSON.stringify(event)}\n\n`
}

/** The forms of the Responses endpoint for errors, unknown events and the like. */
export const responsesVoice: Voice = {
  ...openAiVoice,
  errorEvent: (type) => {
    const error = {
      code: type ?? 'server_error',
      message: 'An error occurred while processing your request.',
    }
    const told = framed({
      type: 'error',
      error: { type: type ?? 'server_error', ...error, param: null },
      sequence_number: 2,
    })
    const response = { id: 'resp_failed', object: 'response', status: 'failed', error, output: [] }
    return `${told}${framed({ type: 'response.failed', response, sequence_number: 3 })}`
  },
  unknownEvent: () =>
    framed({ type: 'response.future', invented: { depth: 1 }, sequence_number: 0 }),
  frame: (data) => `event: response.output_text.delta\ndata: ${data}\n\n`,
  textEvent: (text) =>
    framed({
      type: 'response.output_text.delta',
      content_index: 0,
      delta: text,
      item_id: 'msg_giant',
      logprobs: [],
      output_index: 0,
      sequence_number: 0,
    }),
}

/** The body of `POST /responses/input_tokens`. */
export function responsesCount(call: Call): Reply {
  const { ask } = readResponses(call)
  const body = {
    object: 'response.input_tokens',
    input_tokens: answerTo(ask, call.seed).usage.input,
  }
  return {
    status: 200,
    headers: WHOLE,
    units: [JSON.stringify(body)],
    stream: false,
    terminators: 0,
  }
}

/** The reply to `POST /responses`. */
export function responsesReply(call: Call): Reply {
  const request = readResponses(call)
  const answer = answerTo(request.ask, call.seed)
  const dice = diceOf(call.seed)
  const head = headOf(call, request, dice)
  const items = itemsOf(answer, request, dice)
  const final: JsonObject = {
    ...head,
    status: answer.end === 'length' ? 'incomplete' : 'completed',
    incomplete_details: answer.end === 'length' ? { reason: 'max_output_tokens' } : null,
    output: items.map(({ whole }) => whole),
    usage: {
      input_tokens: answer.usage.input,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: answer.usage.output,
      output_tokens_details: { reasoning_tokens: answer.usage.thinking },
      total_tokens: answer.usage.input + answer.usage.output,
    },
  }
  const whole = (): Reply => ({
    status: 200,
    headers: WHOLE,
    units: [`${JSON.stringify(final, undefined, 2)}\n`],
    stream: false,
    terminators: 0,
    counted: answer.usage,
  })
  if (!request.stream) {
    return whole()
  }
  const units = streamOf(head, final, items)
  return {
    status: 200,
    headers: STREAM,
    units,
    stream: true,
    terminators: 1,
    whole,
    counted: answer.usage,
  }
}

function idOf(prefix: string, dice: Dice): string {
  let hex = ''
  while (hex.length < 50) {
    hex += dice().toString(16).padStart(8, '0')
  }
  return `${prefix}_${hex.slice(0, 50)}`
}

function headOf(call: Call, { ask, body }: ResponsesRequest, dice: Dice): JsonObject {
  return {
    id: idOf('resp', dice),
    object: 'response',
    created_at: call.now,
    status: 'in_progress',
    background: false,
    error: null,
    incomplete_details: null,
    instructions: body.instructions ?? null,
    max_output_tokens: body.max_output_tokens ?? null,
    max_tool_calls: null,
    model: datedModel(ask.model),
    output: [],
    parallel_tool_calls: ask.parallel,
    previous_response_id: null,
    prompt_cache_key: null,
    reasoning: { effort: null, summary: null },
    safety_identifier: null,
    service_tier: 'default',
    store: body.store ?? true,
    temperature: body.temperature ?? 1,
    text: body.text ?? { format: { type: 'text' }, verbosity: 'medium' },
    tool_choice: body.tool_choice ?? 'auto',
    tools: body.tools ?? [],
    top_logprobs: body.top_logprobs ?? 0,
    top_p: body.top_p ?? 1,
    truncation: 'disabled',
    usage: null,
    user: null,
    metadata: body.metadata ?? {},
  }
}

/** An output item: whole, as it starts in a stream, and the events in between. */
interface Item {
  readonly whole: JsonObject
  readonly start: JsonObject
  readonly events: readonly JsonObject[]
}

function itemsOf(answer: Answer, request: ResponsesRequest, dice: Dice): Item[] {
  const items: Item[] = []
  if (answer.thinking !== '') {
    items.push(reasoningItem(answer, request, dice))
  }
  if (answer.calls.length === 0) {
    items.push(messageItem(answer, request, dice))
  }
  for (const { name, args } of answer.calls) {
    const id = idOf('fc', dice)
    const head = { id, type: 'function_call', call_id: `call_${lettersOf(dice, 24)}`, name }
    const text = JSON.stringify(args)
    const place = { item_id: id }
    items.push({
      whole: { ...head, status: 'completed', arguments: text },
      start: { ...head, status: 'in_progress', arguments: '' },
      events: [
        ...(text.match(/[\s\S]{1,6}/gu) ?? []).map((delta) => ({
          type: 'response.function_call_arguments.delta',
          delta,
          ...place,
          obfuscation: lettersOf(dice, 1 + (dice() % 12)),
        })),
        { type: 'response.function_call_arguments.done', arguments: text, ...place },
      ],
    })
  }
  return items
}

function reasoningItem(answer: Answer, request: ResponsesRequest, dice: Dice): Item {
  const id = idOf('rs', dice)
  const sealed = request.sealed ? { encrypted_content: signed([''], dice, 196) } : {}
  const part = { type: 'summary_text', text: answer.thinking }
  const summary = request.summarised ? [part] : []
  const head = { id, type: 'reasoning', ...sealed }
  const place = { item_id: id, summary_index: 0 }
  const pieces = piecesOf(answer.thinking)
  const told: JsonObject[] = [
    {
      type: 'response.reasoning_summary_part.added',
      part: { type: 'summary_text', text: '' },
      ...place,
    },
    ...pieces.map((delta) => ({
      type: 'response.reasoning_summary_text.delta',
      delta,
      ...place,
      obfuscation: lettersOf(dice, 1 + (dice() % 12)),
    })),
    { type: 'response.reasoning_summary_text.done', text: answer.thinking, ...place },
    { type: 'response.reasoning_summary_part.done', part, ...place },
  ]
  return {
    whole: { ...head, summary },
    start: { ...head, summary: [] },
    events: request.summarised ? told : [],
  }
}

function messageItem(answer: Answer, { weighs }: ResponsesRequest, dice: Dice): Item {
  const id = idOf('msg', dice)
  const tokens = weighs === undefined ? [] : weighed(answer, weighs)
  const whole = tokens.map((token) => weightOf(token, bytesOf))
  const bare = tokens.map((token) => weightOf(token, () => ({})))
  const part = { type: 'output_text', annotations: [], logprobs: whole, text: answer.text }
  const head = { id, type: 'message' }
  const place = { content_index: 0, item_id: id }
  return {
    whole: {
      ...head,
      status: answer.end === 'length' ? 'incomplete' : 'completed',
      content: [part],
      role: 'assistant',
    },
    start: { ...head, status: 'in_progress', content: [], role: 'assistant' },
    events: [
      { type: 'response.content_part.added', ...place, part: { ...part, logprobs: [], text: '' } },
      ...answer.pieces.map((delta, at) => ({
        type: 'response.output_text.delta',
        ...place,
        delta,
        logprobs: bare.slice(at, at + 1),
        obfuscation: lettersOf(dice, 1 + (dice() % 12)),
      })),
      { type: 'response.output_text.done', ...place, logprobs: bare, text: answer.text },
      { type: 'response.content_part.done', ...place, part },
    ],
  }
}

/** Bytes stand in whole answers only. */
function bytesOf(token: string): JsonObject {
  return { bytes: [...Buffer.from(token)] }
}

function weightOf(
  { token, logprob, rivals }: Weighed,
  more: (token: string) => JsonObject,
): JsonObject {
  const top_logprobs = rivals.map((rival) => ({ ...rival, ...more(rival.token) }))
  return { token, logprob, ...more(token), top_logprobs }
}

function streamOf(head: JsonObject, final: JsonObject, items: readonly Item[]): string[] {
  const units: string[] = []
  const add = (event: JsonObject): void => {
    units.push(framed({ ...event, sequence_number: units.length }))
  }
  add({ type: 'response.created', response: head })
  add({ type: 'response.in_progress', response: head })
  for (const [output_index, { whole, start, events }] of items.entries()) {
    add({ type: 'response.output_item.added', item: start, output_index })
    for (const event of events) {
      add({ ...event, output_index })
    }
    add({ type: 'response.output_item.done', item: whole, output_index })
  }
  add({
    type: final.status === 'incomplete' ? 'response.incomplete' : 'response.completed',
    response: final,
  })
  return units
}
