/** Settings of a chat request, one fragment per concept. Data for `docs/reference/dialects.md`. */
import type { JsonObject } from '../../chat/json.js'
import type { RequestGroup } from './concepts.js'
import { ANSWERED, HELLO, SCHEMA, TOOLS, parts, text } from './request-fragments.js'

const FORMAT: JsonObject = {
  response_format: {
    type: 'json_schema',
    json_schema: { name: 'paint', schema: SCHEMA, strict: true },
  },
}
const ALWAYS = 'always counted, reported if requested'

/** In the order of the page. */
export const SETTINGS: readonly RequestGroup[] = [
  {
    title: 'Length and sampling',
    concepts: [
      { name: '`max_completion_tokens`, `max_tokens`', members: { max_completion_tokens: 100 } },
      {
        name: '`temperature`',
        members: { temperature: 0.5 },
        notes: {
          'openai-responses': 'accepted by models that do not reason',
          anthropic: 'accepted by models before 4.7 without thinking',
        },
      },
      {
        name: '`top_p`',
        members: { top_p: 0.5 },
        notes: {
          'openai-responses': 'as `temperature`',
          anthropic: 'as `temperature`, and not beside it',
        },
      },
      { name: '`frequency_penalty`', members: { frequency_penalty: 0.5 } },
      { name: '`presence_penalty`', members: { presence_penalty: 0.5 } },
      { name: '`seed`', members: { seed: 7 } },
      { name: '`stop`', members: { stop: ['END'] } },
      {
        name: '`n` above 1',
        members: { n: 2 },
        notes: {
          anthropic: 'send n requests',
          'openai-responses': 'send n requests',
          gemini:
            '2.5 models: ● `generationConfig.candidateCount`, up to 8; as a stream all at once',
        },
      },
      {
        name: '`logprobs`, `top_logprobs`',
        members: { logprobs: true, top_logprobs: 2 },
        notes: {
          'openai-responses': 'models that do not reason: ● `include`, `top_logprobs`',
          gemini: '2.5 models: ● `generationConfig.responseLogprobs`; as a stream all at once',
        },
      },
      { name: '`logit_bias`', members: { logit_bias: { '5': 1 } } },
    ],
  },
  {
    title: 'Output format',
    concepts: [
      { name: '`stream`', members: { stream: true } },
      {
        name: '`stream_options.include_usage`',
        base: { stream: true },
        members: { stream_options: { include_usage: true } },
        notes: {
          'openai-chat': ALWAYS,
          anthropic: ALWAYS,
          gemini: ALWAYS,
          'openai-responses': ALWAYS,
        },
      },
      {
        name: '`response_format`: a JSON schema',
        members: FORMAT,
        notes: { anthropic: 'unsupported keywords move into descriptions' },
      },
      {
        name: '`response_format`: a JSON schema beside tools',
        base: TOOLS,
        members: FORMAT,
        notes: { gemini: '2.5 models: by a tool whose arguments are the reply' },
      },
      {
        name: '`response_format`: any JSON object',
        members: { response_format: { type: 'json_object' } },
        emulated: { anthropic: 'by an instruction' },
      },
      { name: '`verbosity`', members: { verbosity: 'low' } },
      {
        name: 'audio output (`modalities`, `audio`)',
        members: { modalities: ['text', 'audio'], audio: { voice: 'alloy', format: 'wav' } },
      },
    ],
  },
  {
    title: 'Reasoning',
    concepts: [
      {
        name: '`reasoning_effort`: a level',
        members: { reasoning_effort: 'high' },
        notes: {
          'openai-chat': 'accepted by models that reason',
          anthropic: '4.5 models: a budget',
          gemini: '2.5 models: a budget',
        },
      },
      {
        name: '`reasoning_effort`: none',
        members: { reasoning_effort: 'none' },
        emulated: {
          anthropic: "the model's minimum if it cannot be switched off",
          gemini: "the model's minimum",
        },
      },
      {
        name: 'thoughts sent back as text',
        base: { messages: ANSWERED },
        members: {
          messages: [
            HELLO,
            { role: 'assistant', content: 'Hi.', reasoning_content: 'They greet.' },
            text('And now?'),
          ],
        },
        notes: { anthropic: 'only its own, signed thoughts may come back' },
      },
    ],
  },
]

/** Concepts about the service, after all others on the page. */
export const SERVICE: readonly RequestGroup[] = [
  {
    title: 'Service',
    concepts: [
      { name: '`user`, `safety_identifier`', members: { safety_identifier: 'u1' } },
      { name: '`service_tier`: priority', members: { service_tier: 'priority' } },
      { name: '`service_tier`: flex', members: { service_tier: 'flex' } },
      { name: '`metadata`', members: { metadata: { a: 'b' } } },
      { name: '`store`', members: { store: true } },
      {
        name: '`prompt_cache_key`, `prompt_cache_retention`',
        members: { prompt_cache_key: 'k', prompt_cache_retention: '24h' },
      },
      { name: '`prompt_cache_options`', members: { prompt_cache_options: { mode: 'implicit' } } },
      {
        name: 'cache marks on parts',
        base: parts(),
        members: {
          messages: [
            {
              role: 'user',
              content: [
                { type: 'text', text: 'Look.', prompt_cache_breakpoint: { mode: 'explicit' } },
              ],
            },
          ],
        },
      },
      {
        name: '`prediction`',
        members: { prediction: { type: 'content', content: 'Yes' } },
      },
      { name: '`moderation`', members: { moderation: { model: 'omni-moderation-latest' } } },
      { name: 'unknown fields', members: { vendor_field: 1 } },
    ],
  },
]
