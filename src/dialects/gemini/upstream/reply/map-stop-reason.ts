/** Maps Gemini's finish reasons to canonical ones. */
import type { FinishReason } from '../../../../chat/event.js'

/** The kinds of content that a reply had when it ended. */
export interface ContentKinds {
  call: boolean
  text: boolean
}

/** Enum numbers that both of Google's APIs share, for proxies that send numbers for names. */
const NUMBERS: Readonly<Record<number, string>> = {
  0: 'FINISH_REASON_UNSPECIFIED',
  1: 'STOP',
  2: 'MAX_TOKENS',
  3: 'SAFETY',
  4: 'RECITATION',
}

const FILTERS = new Set([
  'SAFETY',
  'RECITATION',
  'LANGUAGE',
  'BLOCKLIST',
  'PROHIBITED_CONTENT',
  'SPII',
  'IMAGE_SAFETY',
  'IMAGE_PROHIBITED_CONTENT',
  'IMAGE_RECITATION',
  'MODEL_ARMOR',
])

const FAILURES = new Set([
  'MALFORMED_FUNCTION_CALL',
  'UNEXPECTED_TOOL_CALL',
  'TOO_MANY_TOOL_CALLS',
  'MALFORMED_RESPONSE',
])

/** The reason's name; null if the value is not a reason. */
export function reasonName(value: unknown): string | null {
  if (typeof value === 'number') return NUMBERS[value] ?? `FINISH_REASON_${value}`
  return typeof value === 'string' && value !== '' ? value : null
}

/**
 * The canonical reason; null if the reply failed and must end in an error.
 * Gemini has no reason for calls: they end with STOP.
 */
export function finishReason(name: string, content: ContentKinds): FinishReason | null {
  if (name === 'STOP' || name === 'FINISH_REASON_UNSPECIFIED')
    return content.call ? 'tool-use' : 'stop'
  if (name === 'MAX_TOKENS' || name === 'CONTINUATION') return 'length'
  if (FILTERS.has(name)) return 'filter'
  if (FAILURES.has(name)) return null
  if (content.call) return 'tool-use'
  return content.text ? 'stop' : null
}
