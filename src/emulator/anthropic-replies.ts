/**
 * Replies of Anthropic's messages, whole and streamed. They follow recorded traffic of 2025–2026.
 */
import { generateOutput } from './model-output.js'
import { readAnthropic, thinkingSignature, PING, STREAM, WHOLE } from './anthropic-requests.js'
import { seededRandom, lettersOf } from './seeded-random.js'
import { replyInForm, wholeReply } from './emulated-exchange.js'
import type { ModelOutput, ParsedRequest, Reply } from './emulated-exchange.js'
import type { JsonObject } from '../base/json.js'
import type { RandomSource } from './seeded-random.js'

/** The reply to `POST /messages`. */
export function anthropicReply(request: ParsedRequest): Reply {
  const { modelInput, stream, showThinking } = readAnthropic(request)
  const modelOutput = generateOutput(modelInput, request.seed)
  const random = seededRandom(request.seed)
  const head = {
    model: datedClaude(modelInput.model),
    id: `msg_01${lettersOf(random, 22)}`,
    usage: {
      input_tokens: modelOutput.usage.input,
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: 0,
      cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
    },
  }
  const blocks = blocksOf(modelOutput, { showThinking, body: request.body ?? {}, random })
  const message = { head, modelOutput, blocks }
  return replyInForm(stream, {
    wholeHeaders: WHOLE,
    body: () => wholeBody(message),
    streamHeaders: STREAM,
    units: () => streamOf(message, random),
    counted: modelOutput.usage,
  })
}

/** The body of `POST /messages/count_tokens`. */
export function anthropicCount(request: ParsedRequest): Reply {
  const { modelInput } = readAnthropic(request)
  const { usage } = generateOutput(modelInput, request.seed)
  return wholeReply(WHOLE, JSON.stringify({ input_tokens: usage.input }))
}

interface Head {
  readonly model: string
  readonly id: string
  readonly usage: JsonObject
}

/** A content block: whole, at its start in a stream, and its deltas. */
interface Block {
  readonly whole: JsonObject
  readonly start: JsonObject
  readonly deltas: readonly string[]
}

/** A reply before it is encoded. */
interface Message {
  readonly head: Head
  readonly modelOutput: ModelOutput
  readonly blocks: readonly Block[]
}

interface BlockOptions {
  readonly showThinking: boolean
  /** The request's body, which the signature of the thinking depends on. */
  readonly body: JsonObject
  readonly random: RandomSource
}

function blocksOf(modelOutput: ModelOutput, { showThinking, body, random }: BlockOptions): Block[] {
  const blocks: Block[] = []
  if (modelOutput.thinking !== '') {
    const thinking = showThinking ? modelOutput.thinking : ''
    const signature = thinkingSignature(body, thinking, random)
    const chunks = thinking.match(/[\s\S]{1,24}/gu) ?? []
    blocks.push({
      whole: { type: 'thinking', thinking, signature },
      start: { type: 'thinking', thinking: '', signature: '' },
      deltas: [
        ...chunks.map((chunk) => `{"type":"thinking_delta","thinking":${JSON.stringify(chunk)}}`),
        `{"type":"signature_delta","signature":${JSON.stringify(signature)}}`,
      ],
    })
  }
  if (modelOutput.text !== '') {
    blocks.push({
      whole: { type: 'text', text: modelOutput.text },
      start: { type: 'text', text: '' },
      deltas: modelOutput.chunks.map((chunk) => `{"type":"text_delta","text":${JSON.stringify(chunk)}}`),
    })
  }
  for (const { name, args } of modelOutput.calls) {
    const head = { type: 'tool_use', id: `toolu_01${lettersOf(random, 22)}`, name }
    const caller = { type: 'direct' }
    const text = Object.keys(args).length === 0 ? '' : JSON.stringify(args)
    const chunks = ['', ...(text.match(/[\s\S]{1,9}/gu) ?? [])]
    blocks.push({
      whole: { ...head, input: args, caller },
      start: { ...head, input: {}, caller },
      deltas: chunks.map((chunk) => `{"type":"input_json_delta","partial_json":${JSON.stringify(chunk)}}`),
    })
  }
  return blocks
}

function endOf(modelOutput: ModelOutput): JsonObject {
  const reason =
    modelOutput.end === 'tool' ? 'tool_use' : modelOutput.end === 'length' ? 'max_tokens' : 'end_turn'
  return {
    stop_reason: modelOutput.stopped === undefined ? reason : 'stop_sequence',
    stop_sequence: modelOutput.stopped ?? null,
    stop_details: null,
  }
}

function thinkingDetails(modelOutput: ModelOutput): JsonObject {
  return modelOutput.thinking === ''
    ? {}
    : { output_tokens_details: { thinking_tokens: modelOutput.usage.thinking } }
}

function wholeBody({ head, modelOutput, blocks }: Message): string {
  return JSON.stringify({
    model: head.model,
    id: head.id,
    type: 'message',
    role: 'assistant',
    content: blocks.map(({ whole }) => whole),
    ...endOf(modelOutput),
    usage: {
      ...head.usage,
      output_tokens: modelOutput.usage.output,
      ...thinkingDetails(modelOutput),
      service_tier: 'standard',
      inference_geo: 'global',
    },
  })
}

const SPACES = ' '.repeat(16)

function streamOf({ head, modelOutput, blocks }: Message, random: RandomSource): string[] {
  let turn = random()
  // Anthropic pads the JSON of most events with spaces before the last brace.
  const padded = (name: string, inside: string): string => {
    turn = (Math.imul(turn, 1664525) + 1013904223) >>> 0
    return `event: ${name}\ndata: ${inside}${SPACES.slice(0, (turn >>> 16) % 16)}}\n\n`
  }
  const message = startMessage(head, Math.min(modelOutput.usage.output, 1 + (turn % 4)))
  const units = [padded('message_start', `{"type":"message_start","message":${message}`)]
  for (const [index, block] of blocks.entries()) {
    units.push(
      padded(
        'content_block_start',
        `{"type":"content_block_start","index":${index},"content_block":${JSON.stringify(block.start)}`,
      ),
    )
    if (index === 0) {
      units.push(PING)
    }
    for (const delta of block.deltas) {
      units.push(
        padded('content_block_delta', `{"type":"content_block_delta","index":${index},"delta":${delta}`),
      )
    }
    units.push(padded('content_block_stop', `{"type":"content_block_stop","index":${index}`))
  }
  const usage = JSON.stringify({
    input_tokens: modelOutput.usage.input,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 0,
    output_tokens: modelOutput.usage.output,
    ...thinkingDetails(modelOutput),
  })
  units.push(
    padded(
      'message_delta',
      `{"type":"message_delta","delta":${JSON.stringify(endOf(modelOutput))},"usage":${usage}`,
    ),
    padded('message_stop', '{"type":"message_stop"'),
  )
  return units
}

function startMessage(head: Head, outputTokens: number): string {
  return JSON.stringify({
    model: head.model,
    id: head.id,
    type: 'message',
    role: 'assistant',
    content: [],
    stop_reason: null,
    stop_sequence: null,
    stop_details: null,
    usage: {
      ...head.usage,
      output_tokens: outputTokens,
      service_tier: 'standard',
      inference_geo: 'global',
    },
  })
}

const DATES: Record<string, string> = {
  'claude-sonnet-4-5': 'claude-sonnet-4-5-20250929',
  'claude-haiku-4-5': 'claude-haiku-4-5-20251001',
  'claude-opus-4-5': 'claude-opus-4-5-20251101',
  'claude-sonnet-4-0': 'claude-sonnet-4-20250514',
}

function datedClaude(model: string): string {
  return DATES[model] ?? model
}
