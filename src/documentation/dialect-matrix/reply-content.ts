/** Content of replies: per concept one small reply in each format that has it. */
import {
  called,
  claude,
  gemini,
  geminiParts,
  message,
  response,
  text,
  use,
  type ReplyConcept,
} from './reply-fragments.js'

/** In the order of the page. */
export const REPLY_CONTENT: readonly ReplyConcept[] = [
  {
    name: 'text',
    replies: {
      anthropic: claude({ content: [{ type: 'text', text: 'Ho.' }] }),
      gemini: geminiParts({ text: 'Ho.' }),
      'openai-responses': response({
        output: [message({ type: 'output_text', text: 'Ho.', annotations: [] })],
      }),
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
            citations: [
              { type: 'web_search_result_location', url: 'https://a.example', title: 'A' },
            ],
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
    },
  },
  {
    name: 'images',
    replies: { gemini: geminiParts({ inlineData: { mimeType: 'image/png', data: 'AAAA' } }) },
  },
]
