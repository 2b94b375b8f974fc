/**
 * The reasons for which replies end, as each format names them. Whether a reply has calls or a refusal
 * changes some of them: the codecs of the format apply these rules.
 *
 * Sources: OpenAI API reference, "The chat completion object" and "The response object"; Claude API
 * reference, "Handling stop reasons"; ai.google.dev/api/generate-content, "FinishReason"; Bedrock API
 * reference, "Converse"; read 2026-11-22.
 */
import type { FinishReason } from '../chat/event.js'

type ReasonFormat = 'openai-chat' | 'openai-responses' | 'anthropic' | 'gemini' | 'converse'

/**
 * The first word of a reason is written, all are read. A reason without words is written as `stop`: calls
 * show themselves, the other reasons are lost. `openai-responses`: the reason of an incomplete response.
 */
const WORDS: Readonly<Record<FinishReason, Readonly<Record<ReasonFormat, readonly string[]>>>> = {
  stop: {
    'openai-chat': ['stop', 'eos'],
    'openai-responses': ['completed', 'steered'],
    anthropic: ['end_turn', 'stop_sequence'],
    gemini: ['STOP'],
    converse: ['end_turn', 'stop_sequence'],
  },
  'tool-use': {
    'openai-chat': ['tool_calls', 'function_call'],
    'openai-responses': [],
    anthropic: ['tool_use'],
    gemini: [],
    converse: ['tool_use'],
  },
  length: {
    'openai-chat': ['length', 'max_tokens', 'model_length'],
    'openai-responses': ['max_output_tokens'],
    anthropic: ['max_tokens', 'model_context_window_exceeded'],
    gemini: ['MAX_TOKENS'],
    converse: ['max_tokens', 'model_context_window_exceeded'],
  },
  filter: {
    'openai-chat': ['content_filter'],
    'openai-responses': ['content_filter'],
    anthropic: ['refusal'],
    gemini: [
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
    ],
    converse: ['guardrail_intervened', 'content_filtered', 'refusal'],
  },
  pause: {
    'openai-chat': [],
    'openai-responses': [],
    anthropic: ['pause_turn'],
    gemini: [],
    converse: [],
  },
  other: {
    'openai-chat': [],
    'openai-responses': [],
    anthropic: [],
    gemini: ['OTHER', 'IMAGE_OTHER', 'NO_IMAGE'],
    converse: [],
  },
}

const REASONS: readonly FinishReason[] = ['stop', 'tool-use', 'length', 'filter', 'pause', 'other']

/** The reasons of a format by word. */
function reasonsOf(format: ReasonFormat): ReadonlyMap<string, FinishReason> {
  return new Map(REASONS.flatMap((reason) => WORDS[reason][format].map((word) => [word, reason])))
}

const BY_WORD: Readonly<Record<ReasonFormat, ReadonlyMap<string, FinishReason>>> = {
  'openai-chat': reasonsOf('openai-chat'),
  'openai-responses': reasonsOf('openai-responses'),
  anthropic: reasonsOf('anthropic'),
  gemini: reasonsOf('gemini'),
  converse: reasonsOf('converse'),
}

/** The reason that the word of a format means. */
export function stopReasonOf(
  format: ReasonFormat,
  word: string,
  unknown: FinishReason = 'other',
): FinishReason {
  return BY_WORD[format].get(word) ?? unknown
}

/** Whether the format has the word, so that clients of the format can get it unchanged. */
export function isStopWord(format: ReasonFormat, word: string | null): word is string {
  return word !== null && BY_WORD[format].has(word)
}

export function stopWordOf(format: ReasonFormat, reason: FinishReason): string {
  return WORDS[reason][format][0] ?? WORDS.stop[format][0] ?? 'stop'
}

/** Whether the format has no word for a reason and clients cannot recognise it otherwise. */
export function losesStopReason(format: ReasonFormat, reason: FinishReason): boolean {
  return reason !== 'tool-use' && WORDS[reason][format].length === 0
}
