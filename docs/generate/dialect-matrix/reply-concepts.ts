/** Every concept that a reply of an upstream may have, in the order of `docs/reference/dialects.md`. */
import type { JsonObject } from '../../../src/base/json.js'
import type { DialectName } from '../../../src/formats/dialect.js'

/** In the order of the page. */
const REPLY_ENDS: readonly ReplyConcept[] = [
  {
    name: 'the end: cut at the limit',
    replies: {
      anthropic: claude({ stop_reason: 'max_tokens' }),
      gemini: gemini({ finishReason: 'MAX_TOKENS' }),
      'openai-responses': response({
        status: 'incomplete',
        incomplete_details: { reason: 'max_output_tokens' },
      }),
      converse: converse({ stopReason: 'max_tokens' }),
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
      converse: converse({ stopReason: 'guardrail_intervened' }),
    },
  },
  {
    name: 'the end: which `stop` sequence',
    replies: {
      anthropic: claude({ stop_reason: 'stop_sequence', stop_sequence: 'END' }),
      converse: converse({
        stopReason: 'stop_sequence',
        additionalModelResponseFields: { stop_sequence: 'END' },
      }),
    },
  },
  {
    name: 'the end: a call that went wrong',
    replies: {
      gemini: gemini({ finishReason: 'MALFORMED_FUNCTION_CALL', content: {} }),
      converse: converse({ stopReason: 'malformed_tool_use' }),
    },
    notes: {
      gemini: 'an error, never an empty reply',
      converse: 'an error, never an empty reply',
    },
  },
  {
    name: 'counts: prompt and reply',
    replies: {
      anthropic: claude({ usage: { input_tokens: 4, output_tokens: 3 } }),
      gemini: gemini({}, { usageMetadata: { promptTokenCount: 4, candidatesTokenCount: 3 } }),
      'openai-responses': response({
        usage: { input_tokens: 4, output_tokens: 3, total_tokens: 7 },
      }),
      converse: converse({ usage: { inputTokens: 4, outputTokens: 3, totalTokens: 7 } }),
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
      converse: converse({
        usage: { inputTokens: 1, cacheReadInputTokens: 2, outputTokens: 2, totalTokens: 5 },
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
      converse: converse({
        usage: { inputTokens: 1, cacheWriteInputTokens: 2, outputTokens: 2, totalTokens: 5 },
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
      converse: converse({ serviceTier: { type: 'priority' } }),
    },
  },
]

/** A feature of a reply. */
export interface ReplyConcept {
  /** Markdown. */
  readonly name: string
  /** A reply with the concept, per dialect that has it. */
  readonly replies: Partial<Record<DialectName, JsonObject>>
  /** Members of the request that the reply depends on. */
  readonly members?: JsonObject
  /** Notes per dialect, such as for replies that become an error. Markdown. */
  readonly notes?: Partial<Record<DialectName, string>>
}

/** A whole reply of Anthropic's with these members. */
function claude(members: JsonObject): JsonObject {
  return {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: [{ type: 'text', text: 'Hi.' }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: 3, output_tokens: 2 },
    ...members,
  }
}

/** A whole reply of Gemini's with these members of its candidate. */
function gemini(candidate: JsonObject, more: JsonObject = {}): JsonObject {
  const content = { role: 'model', parts: [{ text: 'Hi.' }] }
  return {
    responseId: 'r1',
    modelVersion: 'm',
    candidates: [{ index: 0, content, finishReason: 'STOP', ...candidate }],
    usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 2 },
    ...more,
  }
}

/** A whole reply of Gemini with these parts. */
function geminiParts(...parts: JsonObject[]): JsonObject {
  return gemini({ content: { role: 'model', parts } })
}

/** A whole reply of Converse with these members. */
function converse(members: JsonObject): JsonObject {
  return {
    output: { message: { role: 'assistant', content: [{ text: 'Hi.' }] } },
    stopReason: 'end_turn',
    usage: { inputTokens: 3, outputTokens: 2, totalTokens: 5 },
    metrics: { latencyMs: 1 },
    ...members,
  }
}

/** A whole reply of Converse with this content. */
function converseContent(...content: JsonObject[]): JsonObject {
  return converse({ output: { message: { role: 'assistant', content } } })
}

/** A whole response of OpenAI's Responses with these members. */
function response(members: JsonObject): JsonObject {
  return {
    id: 'resp_1',
    object: 'response',
    created_at: 0,
    model: 'm',
    status: 'completed',
    output: [message({ type: 'output_text', text: 'Hi.', annotations: [] })],
    usage: { input_tokens: 3, output_tokens: 2, total_tokens: 5 },
    ...members,
  }
}

/** A message of a response with this content. */
function message(...content: JsonObject[]): JsonObject {
  return { type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', content }
}

/** A reply that calls these tools. */
function called(...names: string[]): JsonObject {
  return response({
    output: names.map((name, at) => ({
      type: 'function_call',
      id: `fc_${at}`,
      call_id: `call_${at}`,
      name,
      arguments: '{"a":1}',
      status: 'completed',
    })),
  })
}

/** What every other reply is compared with. */
export const PLAIN_REPLY: Readonly<Record<Exclude<DialectName, 'openai-chat'>, JsonObject>> = {
  'openai-responses': response({}),
  anthropic: claude({}),
  gemini: gemini({}),
  converse: converse({}),
}

/** A content block of text. */
const text = { type: 'text', text: 'Hi.' }
/** A block that calls a tool. */
const use = (id: string, name: string): JsonObject => ({
  type: 'tool_use',
  id,
  name,
  input: { a: 1 },
})

/** In the order of the page. */
const REPLY_CONTENT: readonly ReplyConcept[] = [
  {
    name: 'text',
    replies: {
      anthropic: claude({ content: [{ type: 'text', text: 'Ho.' }] }),
      gemini: geminiParts({ text: 'Ho.' }),
      'openai-responses': response({
        output: [message({ type: 'output_text', text: 'Ho.', annotations: [] })],
      }),
      converse: converseContent({ text: 'Ho.' }),
    },
  },
  {
    name: 'calls of tools, one or several',
    replies: {
      anthropic: claude({ content: [use('toolu_1', 'a'), use('toolu_2', 'b')] }),
      gemini: geminiParts(
        { functionCall: { name: 'a', args: { a: 1 } } },
        { functionCall: { name: 'b', args: {} } },
      ),
      'openai-responses': called('a', 'b'),
      converse: converseContent(
        { toolUse: { toolUseId: 't1', name: 'a', input: { a: 1 } } },
        { toolUse: { toolUseId: 't2', name: 'b', input: {} } },
      ),
    },
  },
  {
    name: 'thoughts',
    replies: {
      anthropic: claude({
        content: [{ type: 'thinking', thinking: 'Hm.', signature: 's' }, text],
      }),
      gemini: geminiParts({ text: 'Hm.', thought: true }, { text: 'Hi.' }),
      'openai-responses': response({
        output: [
          { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'Hm.' }] },
          message({ type: 'output_text', text: 'Hi.', annotations: [] }),
        ],
      }),
      converse: converseContent(
        { reasoningContent: { reasoningText: { text: 'Hm.', signature: 's' } } },
        { text: 'Hi.' },
      ),
    },
  },
  {
    name: 'a refusal',
    replies: {
      anthropic: claude({
        content: [],
        stop_reason: 'refusal',
        stop_details: { type: 'refusal', category: null, explanation: 'No.' },
      }),
      gemini: {
        responseId: 'r1',
        modelVersion: 'm',
        promptFeedback: { blockReason: 'SAFETY', blockReasonMessage: 'No.' },
        usageMetadata: { promptTokenCount: 3 },
      },
      'openai-responses': response({ output: [message({ type: 'refusal', refusal: 'No.' })] }),
    },
  },
  {
    name: 'sources with an address',
    replies: {
      anthropic: claude({
        content: [
          {
            ...text,
            citations: [{ type: 'web_search_result_location', url: 'https://a.example', title: 'A' }],
          },
        ],
      }),
      gemini: gemini({
        groundingMetadata: {
          groundingChunks: [{ web: { uri: 'https://a.example', title: 'A' } }],
          groundingSupports: [
            { segment: { startIndex: 0, endIndex: 3, text: 'Hi.' }, groundingChunkIndices: [0] },
          ],
        },
      }),
      'openai-responses': response({
        output: [
          message({
            type: 'output_text',
            text: 'Hi.',
            annotations: [
              {
                type: 'url_citation',
                url: 'https://a.example',
                title: 'A',
                start_index: 0,
                end_index: 3,
              },
            ],
          }),
        ],
      }),
      converse: converseContent({
        citationsContent: {
          content: [{ text: 'Hi.' }],
          citations: [{ title: 'A', location: { web: { url: 'https://a.example' } } }],
        },
      }),
    },
  },
  {
    name: 'sources within a document',
    replies: {
      anthropic: claude({
        content: [
          {
            ...text,
            citations: [{ type: 'char_location', document_title: 'A', cited_text: 'Hi' }],
          },
        ],
      }),
      converse: converseContent({
        citationsContent: {
          content: [{ text: 'Hi.' }],
          citations: [
            {
              title: 'A',
              sourceContent: [{ text: 'Hi' }],
              location: { documentChar: { documentIndex: 0, start: 0, end: 2 } },
            },
          ],
        },
      }),
    },
  },
  {
    name: 'how likely each token was',
    members: { logprobs: true },
    replies: {
      gemini: gemini({
        logprobsResult: { chosenCandidates: [{ token: 'Hi.', logProbability: -0.5 }] },
      }),
      'openai-responses': response({
        output: [
          message({
            type: 'output_text',
            text: 'Hi.',
            annotations: [],
            logprobs: [{ token: 'Hi.', logprob: -0.5, bytes: [72, 105, 46], top_logprobs: [] }],
          }),
        ],
      }),
    },
  },
  {
    name: 'what its own tools did (search, code)',
    replies: {
      anthropic: claude({
        content: [
          { type: 'server_tool_use', id: 's1', name: 'web_search', input: {} },
          { type: 'web_search_tool_result', tool_use_id: 's1', content: [] },
          text,
        ],
      }),
      gemini: geminiParts(
        { executableCode: { language: 'PYTHON', code: '1' } },
        { codeExecutionResult: { outcome: 'OUTCOME_OK', output: '1' } },
        { text: 'Hi.' },
      ),
      'openai-responses': response({
        output: [
          { type: 'web_search_call', id: 'ws_1', status: 'completed', action: { type: 'search' } },
          message({ type: 'output_text', text: 'Hi.', annotations: [] }),
        ],
      }),
      converse: converseContent(
        {
          toolUse: {
            toolUseId: 't1',
            name: 'nova_code_interpreter',
            input: {},
            type: 'server_tool_use',
          },
        },
        {
          toolResult: {
            toolUseId: 't1',
            content: [{ json: {} }],
            type: 'nova_code_interpreter_result',
          },
        },
        { text: 'Hi.' },
      ),
    },
  },
  {
    name: 'images',
    replies: {
      gemini: geminiParts({ inlineData: { mimeType: 'image/png', data: 'AAAA' } }),
      converse: converseContent({ image: { format: 'png', source: { bytes: 'AAAA' } } }),
    },
  },
]

/** All of them. */
export const REPLY_CONCEPTS: readonly ReplyConcept[] = [...REPLY_CONTENT, ...REPLY_ENDS]
