/**
 * Anthropic's messages as a provider speaks them: whole reply and stream.
 * Knows no other provider and no fault. Follows recorded traffic of 2025–2026.
 */
import { answerTo } from '../answer.js'
import { readAnthropic } from './decode-request.js'
import { thinkingSignature } from './check-thinking.js'
import { PING, STREAM, WHOLE } from './errors.js'
import { diceOf, lettersOf } from '../seed.js'
import type { Answer, Call, Reply } from '../ask.js'
import type { JsonObject } from '../../chat/json.js'
import type { Dice } from '../seed.js'

/** The reply to `POST /messages`. */
export function anthropicReply(call: Call): Reply {
  const { ask, stream, showThinking } = readAnthropic(call)
  const answer = answerTo(ask, call.seed)
  const dice = diceOf(call.seed)
  const head = {
    model: datedClaude(ask.model),
    id: `msg_01${lettersOf(dice, 22)}`,
    usage: {
      input_tokens: answer.usage.input,
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: 0,
      cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
    },
  }
  const blocks = blocksOf(answer, showThinking, call.body ?? {}, dice)
  const whole = (): Reply => ({
    status: 200,
    headers: WHOLE,
    units: [wholeBody(head, answer, blocks)],
    stream: false,
    terminators: 0,
    counted: answer.usage,
  })
  if (!stream) {
    return whole()
  }
  const units = streamOf(head, answer, blocks, dice)
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

/** The body of `POST /messages/count_tokens`. */
export function anthropicCount(call: Call): Reply {
  const { ask } = readAnthropic(call)
  return {
    status: 200,
    headers: WHOLE,
    units: [JSON.stringify({ input_tokens: answerTo(ask, call.seed).usage.input })],
    stream: false,
    terminators: 0,
  }
}

interface Head {
  readonly model: string
  readonly id: string
  readonly usage: JsonObject
}

/** A content block: whole, as it starts in a stream, and the deltas in between. */
interface Block {
  readonly whole: JsonObject
  readonly start: JsonObject
  readonly deltas: readonly string[]
}

function blocksOf(answer: Answer, showThinking: boolean, body: JsonObject, dice: Dice): Block[] {
  const blocks: Block[] = []
  if (answer.thinking !== '') {
    const thinking = showThinking ? answer.thinking : ''
    const signature = thinkingSignature(body, thinking, dice)
    const pieces = thinking.match(/[\s\S]{1,24}/gu) ?? []
    blocks.push({
      whole: { type: 'thinking', thinking, signature },
      start: { type: 'thinking', thinking: '', signature: '' },
      deltas: [
        ...pieces.map((piece) => `{"type":"thinking_delta","thinking":${JSON.stringify(piece)}}`),
        `{"type":"signature_delta","signature":${JSON.stringify(signature)}}`,
      ],
    })
  }
  if (answer.text !== '') {
    blocks.push({
      whole: { type: 'text', text: answer.text },
      start: { type: 'text', text: '' },
      deltas: answer.pieces.map((piece) => `{"type":"text_delta","text":${JSON.stringify(piece)}}`),
    })
  }
  for (const { name, args } of answer.calls) {
    const head = { type: 'tool_use', id: `toolu_01${lettersOf(dice, 22)}`, name }
    const caller = { type: 'direct' }
    const text = Object.keys(args).length === 0 ? '' : JSON.stringify(args)
    const pieces = ['', ...(text.match(/[\s\S]{1,9}/gu) ?? [])]
    blocks.push({
      whole: { ...head, input: args, caller },
      start: { ...head, input: {}, caller },
      deltas: pieces.map(
        (piece) => `{"type":"input_json_delta","partial_json":${JSON.stringify(piece)}}`,
      ),
    })
  }
  return blocks
}

function endOf(answer: Answer): JsonObject {
  const reason =
    answer.end === 'tool' ? 'tool_use' : answer.end === 'length' ? 'max_tokens' : 'end_turn'
  return {
    stop_reason: answer.stopped === undefined ? reason : 'stop_sequence',
    stop_sequence: answer.stopped ?? null,
    stop_details: null,
  }
}

function thinkingDetails(answer: Answer): JsonObject {
  return answer.thinking === ''
    ? {}
    : { output_tokens_details: { thinking_tokens: answer.usage.thinking } }
}

function wholeBody(head: Head, answer: Answer, blocks: readonly Block[]): string {
  return JSON.stringify({
    model: head.model,
    id: head.id,
    type: 'message',
    role: 'assistant',
    content: blocks.map(({ whole }) => whole),
    ...endOf(answer),
    usage: {
      ...head.usage,
      output_tokens: answer.usage.output,
      ...thinkingDetails(answer),
      service_tier: 'standard',
      inference_geo: 'global',
    },
  })
}

const SPACES = ' '.repeat(16)

function streamOf(head: Head, answer: Answer, blocks: readonly Block[], dice: Dice): string[] {
  let turn = dice()
  // Anthropic pads the JSON of most events with spaces before the last brace.
  const padded = (name: string, inside: string): string => {
    turn = (Math.imul(turn, 1664525) + 1013904223) >>> 0
    return `event: ${name}\ndata: ${inside}${SPACES.slice(0, (turn >>> 16) % 16)}}\n\n`
  }
  const message = JSON.stringify({
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
      output_tokens: Math.min(answer.usage.output, 1 + (turn % 4)),
      service_tier: 'standard',
      inference_geo: 'global',
    },
  })
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
        padded(
          'content_block_delta',
          `{"type":"content_block_delta","index":${index},"delta":${delta}`,
        ),
      )
    }
    units.push(padded('content_block_stop', `{"type":"content_block_stop","index":${index}`))
  }
  const usage = JSON.stringify({
    input_tokens: answer.usage.input,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 0,
    output_tokens: answer.usage.output,
    ...thinkingDetails(answer),
  })
  units.push(
    padded(
      'message_delta',
      `{"type":"message_delta","delta":${JSON.stringify(endOf(answer))},"usage":${usage}`,
    ),
    padded('message_stop', '{"type":"message_stop"'),
  )
  return units
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
