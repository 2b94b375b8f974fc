/**
 * Finish reasons, token counts and service of replies: per concept one small reply in each format that has
 * it.
 */
import { claude, gemini, response, type ReplyConcept } from './reply-fragments.js'

/** In the order of the page. */
export const REPLY_ENDS: readonly ReplyConcept[] = [
  {
    name: 'the end: cut at the limit',
    replies: {
      anthropic: claude({ stop_reason: 'max_tokens' }),
      gemini: gemini({ finishReason: 'MAX_TOKENS' }),
      'openai-responses': response({
        status: 'incomplete',
        incomplete_details: { reason: 'max_output_tokens' },
      }),
    },
  },
  {
    name: 'the end: a filter',
    replies: {
      gemini: gemini({ finishReason: 'SAFETY' }),
      'openai-responses': response({
        status: 'incomplete',
        incomplete_details: { reason: 'content_filter' },
      }),
    },
  },
  {
    name: 'the end: which `stop` sequence',
    replies: { anthropic: claude({ stop_reason: 'stop_sequence', stop_sequence: 'END' }) },
  },
  {
    name: 'the end: a call that went wrong',
    replies: { gemini: gemini({ finishReason: 'MALFORMED_FUNCTION_CALL', content: {} }) },
    notes: { gemini: 'an error, never an empty reply' },
  },
  {
    name: 'counts: prompt and reply',
    replies: {
      anthropic: claude({ usage: { input_tokens: 4, output_tokens: 3 } }),
      gemini: gemini({}, { usageMetadata: { promptTokenCount: 4, candidatesTokenCount: 3 } }),
      'openai-responses': response({
        usage: { input_tokens: 4, output_tokens: 3, total_tokens: 7 },
      }),
    },
  },
  {
    name: 'counts: read from the cache',
    replies: {
      anthropic: claude({
        usage: { input_tokens: 1, cache_read_input_tokens: 2, output_tokens: 2 },
      }),
      gemini: gemini(
        {},
        {
          usageMetadata: {
            promptTokenCount: 3,
            cachedContentTokenCount: 2,
            candidatesTokenCount: 2,
          },
        },
      ),
      'openai-responses': response({
        usage: {
          input_tokens: 3,
          input_tokens_details: { cached_tokens: 2 },
          output_tokens: 2,
          total_tokens: 5,
        },
      }),
    },
  },
  {
    name: 'counts: written to the cache',
    replies: {
      anthropic: claude({
        usage: { input_tokens: 1, cache_creation_input_tokens: 2, output_tokens: 2 },
      }),
      'openai-responses': response({
        usage: {
          input_tokens: 3,
          input_tokens_details: { cache_write_tokens: 2 },
          output_tokens: 2,
          total_tokens: 5,
        },
      }),
    },
  },
  {
    name: 'counts: reasoning',
    replies: {
      anthropic: claude({
        usage: {
          input_tokens: 3,
          output_tokens: 2,
          output_tokens_details: { thinking_tokens: 1 },
        },
      }),
      gemini: gemini(
        {},
        {
          usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 1, thoughtsTokenCount: 1 },
        },
      ),
      'openai-responses': response({
        usage: {
          input_tokens: 3,
          output_tokens: 2,
          output_tokens_details: { reasoning_tokens: 1 },
          total_tokens: 5,
        },
      }),
    },
  },
  {
    name: 'counts: pictures and sound',
    replies: {
      gemini: gemini(
        {},
        {
          usageMetadata: {
            promptTokenCount: 3,
            candidatesTokenCount: 2,
            promptTokensDetails: [
              { modality: 'TEXT', tokenCount: 1 },
              { modality: 'AUDIO', tokenCount: 2 },
            ],
          },
        },
      ),
    },
  },
  {
    name: 'the tier that served it',
    replies: {
      anthropic: claude({
        usage: { input_tokens: 3, output_tokens: 2, service_tier: 'priority' },
      }),
      gemini: gemini(
        {},
        {
          usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 2, serviceTier: 'priority' },
        },
      ),
      'openai-responses': response({ service_tier: 'priority' }),
    },
  },
]
