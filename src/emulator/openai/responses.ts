/**
 * Replies of OpenAI's Responses, whole and streamed. They follow recorded traffic of 2025–2026.
 */
import {
  generateOutput,
  splitText,
  tokenProbabilities,
  type TokenProbability,
} from '../model-output.js'
import { STREAM, WHOLE, openAiFrames } from './errors.js'
import { readResponses } from './decode-responses-request.js'
import { seededRandom, lettersOf } from '../seeded-random.js'
import { signState } from '../signature.js'
import { replyInForm, wholeReply } from '../emulated-exchange.js'
import type { ModelOutput, ParsedRequest, Reply, FrameWriter } from '../emulated-exchange.js'
import type { JsonObject } from '../../chat/json.js'
import type { RandomSource } from '../seeded-random.js'
import type { ResponsesRequest } from './decode-responses-request.js'
import { headOf, idOf } from './response-head.js'

function framed(event: JsonObject): string {
  const { type } = event
  return `event: ${typeof type === 'string' ? type : 'message'}\ndata: ${JSON.stringify(event)}\n\n`
}

/** The frames of errors, unknown events and keep-alives of the Responses endpoint. */
export const responsesFrames: FrameWriter = {
  ...openAiFrames,
  errorEvent: (type) => {
    const error = {
      code: type ?? 'server_error',
      message: 'An error occurred while processing your request.',
    }
    const created = framed({
      type: 'error',
      error: { type: type ?? 'server_error', ...error, param: null },
      sequence_number: 2,
    })
    const response = { id: 'resp_failed', object: 'response', status: 'failed', error, output: [] }
    return `${created}${framed({ type: 'response.failed', response, sequence_number: 3 })}`
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
export function responsesCount(request: ParsedRequest): Reply {
  const { modelInput } = readResponses(request)
  const body = {
    object: 'response.input_tokens',
    input_tokens: generateOutput(modelInput, request.seed).usage.input,
  }
  return wholeReply(WHOLE, JSON.stringify(body))
}

/** The reply to `POST /responses`. */
export function responsesReply(request: ParsedRequest): Reply {
  const decoded = readResponses(request)
  const modelOutput = generateOutput(decoded.modelInput, request.seed)
  const random = seededRandom(request.seed)
  const head = headOf(request, decoded, random)
  const items = itemsOf(modelOutput, decoded, random)
  const final: JsonObject = {
    ...head,
    status: modelOutput.end === 'length' ? 'incomplete' : 'completed',
    incomplete_details: modelOutput.end === 'length' ? { reason: 'max_output_tokens' } : null,
    output: items.map(({ whole }) => whole),
    usage: {
      input_tokens: modelOutput.usage.input,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: modelOutput.usage.output,
      output_tokens_details: { reasoning_tokens: modelOutput.usage.thinking },
      total_tokens: modelOutput.usage.input + modelOutput.usage.output,
    },
  }
  return replyInForm(decoded.stream, {
    wholeHeaders: WHOLE,
    body: () => `${JSON.stringify(final, undefined, 2)}\n`,
    streamHeaders: STREAM,
    units: () => streamOf(head, final, items),
    counted: modelOutput.usage,
  })
}

/** An output item: whole, at its start in a stream, and the events in between. */
interface Item {
  readonly whole: JsonObject
  readonly start: JsonObject
  readonly events: readonly JsonObject[]
}

function itemsOf(
  modelOutput: ModelOutput,
  request: ResponsesRequest,
  random: RandomSource,
): Item[] {
  const items: Item[] = []
  if (modelOutput.thinking !== '') {
    items.push(reasoningItem(modelOutput, request, random))
  }
  if (modelOutput.calls.length === 0) {
    items.push(messageItem(modelOutput, request, random))
  }
  for (const { name, args } of modelOutput.calls) {
    const id = idOf('fc', random)
    const head = { id, type: 'function_call', call_id: `call_${lettersOf(random, 24)}`, name }
    const text = JSON.stringify(args)
    const position = { item_id: id }
    items.push({
      whole: { ...head, status: 'completed', arguments: text },
      start: { ...head, status: 'in_progress', arguments: '' },
      events: [
        ...(text.match(/[\s\S]{1,6}/gu) ?? []).map((delta) => ({
          type: 'response.function_call_arguments.delta',
          delta,
          ...position,
          obfuscation: lettersOf(random, 1 + (random() % 12)),
        })),
        { type: 'response.function_call_arguments.done', arguments: text, ...position },
      ],
    })
  }
  return items
}

function reasoningItem(
  modelOutput: ModelOutput,
  request: ResponsesRequest,
  random: RandomSource,
): Item {
  const id = idOf('rs', random)
  const sealed = request.sealed ? { encrypted_content: signState([''], random, 196) } : {}
  const part = { type: 'summary_text', text: modelOutput.thinking }
  const summary = request.summarised ? [part] : []
  const head = { id, type: 'reasoning', ...sealed }
  const position = { item_id: id, summary_index: 0 }
  const chunks = splitText(modelOutput.thinking)
  const summaryEvents: JsonObject[] = [
    {
      type: 'response.reasoning_summary_part.added',
      part: { type: 'summary_text', text: '' },
      ...position,
    },
    ...chunks.map((delta) => ({
      type: 'response.reasoning_summary_text.delta',
      delta,
      ...position,
      obfuscation: lettersOf(random, 1 + (random() % 12)),
    })),
    { type: 'response.reasoning_summary_text.done', text: modelOutput.thinking, ...position },
    { type: 'response.reasoning_summary_part.done', part, ...position },
  ]
  return {
    whole: { ...head, summary },
    start: { ...head, summary: [] },
    events: request.summarised ? summaryEvents : [],
  }
}

function messageItem(
  modelOutput: ModelOutput,
  { topLogprobs }: ResponsesRequest,
  random: RandomSource,
): Item {
  const id = idOf('msg', random)
  const tokens = topLogprobs === undefined ? [] : tokenProbabilities(modelOutput, topLogprobs)
  const whole = tokens.map((token) => logprobsOf(token, bytesOf))
  const bare = tokens.map((token) => logprobsOf(token, () => ({})))
  const part = { type: 'output_text', annotations: [], logprobs: whole, text: modelOutput.text }
  const head = { id, type: 'message' }
  const position = { content_index: 0, item_id: id }
  return {
    whole: {
      ...head,
      status: modelOutput.end === 'length' ? 'incomplete' : 'completed',
      content: [part],
      role: 'assistant',
    },
    start: { ...head, status: 'in_progress', content: [], role: 'assistant' },
    events: [
      {
        type: 'response.content_part.added',
        ...position,
        part: { ...part, logprobs: [], text: '' },
      },
      ...modelOutput.chunks.map((delta, at) => ({
        type: 'response.output_text.delta',
        ...position,
        delta,
        logprobs: bare.slice(at, at + 1),
        obfuscation: lettersOf(random, 1 + (random() % 12)),
      })),
      { type: 'response.output_text.done', ...position, logprobs: bare, text: modelOutput.text },
      { type: 'response.content_part.done', ...position, part },
    ],
  }
}

/** Only whole replies contain `bytes`. */
function bytesOf(token: string): JsonObject {
  return { bytes: [...Buffer.from(token)] }
}

function logprobsOf(
  { token, logprob, alternatives }: TokenProbability,
  more: (token: string) => JsonObject,
): JsonObject {
  const top_logprobs = alternatives.map((rival) => ({ ...rival, ...more(rival.token) }))
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
