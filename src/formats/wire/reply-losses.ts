/** The parts of replies that the client formats cannot express: one row per format. */
import type { ChatEvent } from '../chat/event.js'
import { stringOf, type JsonObject } from '../../base/json.js'
import { imageData } from './inline-media.js'
import { losesStopReason } from './stop-reasons.js'

/** What a format has no place for. The paths are those that the gateway reports as lost. */
interface ReplyLosses {
  readonly hasReasoning: boolean
  /** The provider whose blocks are repeated unchanged; null: all blocks are lost. */
  readonly ownBlocks: string | null
  /** `with-url`: the format has only citations of web pages. */
  readonly citations: 'all' | 'with-url' | 'none'
  /** `inline`: the format has only images with their data. */
  readonly images: 'all' | 'inline' | 'none'
  readonly imagePath: string
  /** The path of the reason for the end. */
  readonly reasonPath: string
  readonly hasStopSequence: boolean
}

const ROWS = {
  'openai-chat': {
    hasReasoning: true,
    ownBlocks: null,
    citations: 'with-url',
    images: 'all',
    imagePath: 'reply.images',
    reasonPath: 'reply.finish_reason',
    hasStopSequence: false,
  },
  /** Blocks have one path, and the end is not reported: requests of the format have no tools. */
  'openai-completions': {
    hasReasoning: false,
    ownBlocks: null,
    citations: 'none',
    images: 'none',
    imagePath: 'reply.images',
    reasonPath: 'reply.finish_reason',
    hasStopSequence: false,
  },
  'openai-responses': {
    hasReasoning: true,
    ownBlocks: 'openai-responses',
    citations: 'with-url',
    images: 'inline',
    imagePath: 'reply.images',
    reasonPath: 'reply.finish_reason',
    hasStopSequence: false,
  },
  anthropic: {
    hasReasoning: true,
    ownBlocks: 'anthropic',
    citations: 'with-url',
    images: 'none',
    imagePath: 'reply.image',
    reasonPath: 'reply.stop_reason',
    hasStopSequence: true,
  },
  gemini: {
    hasReasoning: true,
    ownBlocks: 'gemini',
    citations: 'all',
    images: 'all',
    imagePath: 'reply.images',
    reasonPath: 'reply.finishReason',
    hasStopSequence: false,
  },
} as const satisfies Readonly<Record<string, ReplyLosses>>

/**
 * The path of the part of an event that a format cannot express, such as `reply.citations`; null if nothing
 * is lost.
 */
export function replyLossOf(format: keyof typeof ROWS, event: ChatEvent): string | null {
  const row: ReplyLosses = ROWS[format]
  switch (event.type) {
    case 'tool-start':
      return event.byProgram === true ? 'reply.caller' : null
    case 'thinking-start':
      return row.hasReasoning ? null : 'reply.reasoning'
    case 'opaque':
      if (event.provider === row.ownBlocks) return null
      return `reply.${format === 'openai-completions' ? 'opaque' : kindOf(event.block)}`
    case 'citation':
      if (row.citations === 'all') return null
      return row.citations === 'none' || event.citation.url === undefined ? 'reply.citations' : null
    case 'image':
      if (row.images === 'all') return null
      return row.images === 'none' || imageData(event.url) === null ? row.imagePath : null
    case 'finish':
      if (format === 'openai-completions') return null
      if (losesStopReason(format, event.reason)) return row.reasonPath
      return row.hasStopSequence || event.stopSequence === undefined ? null : 'reply.stop_sequence'
    default:
      return null
  }
}

/** The provider's name for a block: its type, or its only key (Gemini). */
function kindOf(block: JsonObject): string {
  return stringOf(block['type']) ?? Object.keys(block)[0] ?? 'opaque'
}
