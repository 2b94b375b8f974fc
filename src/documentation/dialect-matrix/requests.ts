/**
 * What a chat client may ask for: one fragment of a request per concept. Data for `docs/reference/dialects.md` and its
 * test; what becomes of each is found by sending it.
 */
import type { JsonObject } from '../../chat/json.js'
import type { DialectName } from '../../dialects/dialect.js'

/** One thing that can be asked for. */
export interface RequestConcept {
  /** Markdown. */
  readonly name: string
  /** What the plain request has besides, where the concept needs it. */
  readonly base?: JsonObject
  readonly ask: JsonObject
  /** How it is said by other means: a dialect here has it emulated, not kept. Markdown. */
  readonly emulated?: Partial<Record<DialectName, string>>
  /** What else is worth knowing. Markdown. */
  readonly notes?: Partial<Record<DialectName, string>>
}

/** Concepts under one heading. */
export interface RequestGroup {
  readonly title: string
  readonly concepts: readonly RequestConcept[]
}

const text = (content: string): JsonObject => ({ role: 'user', content })
const HELLO = text('Hello.')
const parts = (...content: JsonObject[]): JsonObject => ({
  messages: [{ role: 'user', content: [{ type: 'text', text: 'Look.' }, ...content] }],
})
const PNG =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const PDF = 'JVBERi0xLjQKJeLjz9MKdHJhaWxlcjw8Pj4KJSVFT0YK'

const SCHEMA = {
  type: 'object',
  properties: { colour: { type: 'string' } },
  required: ['colour'],
  additionalProperties: false,
}
const FUNCTION: JsonObject = {
  type: 'function',
  function: { name: 'paint', description: 'Paints.', parameters: SCHEMA },
}
const OTHER: JsonObject = { type: 'function', function: { name: 'wait' } }
const TOOLS: JsonObject = { tools: [FUNCTION, OTHER] }
const CALL: JsonObject = {
  role: 'assistant',
  content: null,
  tool_calls: [
    { id: 'call_1', type: 'function', function: { name: 'paint', arguments: '{"colour":"red"}' } },
  ],
}
const RESULT: JsonObject = { role: 'tool', tool_call_id: 'call_1', content: 'done' }
const ANSWERED = [HELLO, { role: 'assistant', content: 'Hi.' }, text('And now?')]

const FORMAT: JsonObject = {
  response_format: {
    type: 'json_schema',
    json_schema: { name: 'paint', schema: SCHEMA, strict: true },
  },
}

const ALWAYS = 'counted always, told where asked for'

/** All of them, in the order of the page. */
export const REQUEST_GROUPS: readonly RequestGroup[] = [
  {
    title: 'Length and sampling',
    concepts: [
      { name: '`max_completion_tokens`, `max_tokens`', ask: { max_completion_tokens: 100 } },
      {
        name: '`temperature`',
        ask: { temperature: 0.5 },
        notes: {
          'openai-responses': 'models that do not reason take it',
          anthropic: 'models before 4.7 take it, while they do not think',
        },
      },
      {
        name: '`top_p`',
        ask: { top_p: 0.5 },
        notes: {
          'openai-responses': 'as `temperature`',
          anthropic: 'as `temperature`, and not beside it',
        },
      },
      { name: '`frequency_penalty`', ask: { frequency_penalty: 0.5 } },
      { name: '`presence_penalty`', ask: { presence_penalty: 0.5 } },
      { name: '`seed`', ask: { seed: 7 } },
      { name: '`stop`', ask: { stop: ['END'] } },
      {
        name: '`n` above 1',
        ask: { n: 2 },
        notes: {
          anthropic: 'send n requests',
          'openai-responses': 'send n requests',
          gemini:
            '2.5 models: ● `generationConfig.candidateCount`, up to 8; as a stream all at once',
        },
      },
      {
        name: '`logprobs`, `top_logprobs`',
        ask: { logprobs: true, top_logprobs: 2 },
        notes: {
          'openai-responses': 'models that do not reason: ● `include`, `top_logprobs`',
          gemini: '2.5 models: ● `generationConfig.responseLogprobs`; as a stream all at once',
        },
      },
      { name: '`logit_bias`', ask: { logit_bias: { '5': 1 } } },
    ],
  },
  {
    title: 'The form of the answer',
    concepts: [
      { name: '`stream`', ask: { stream: true } },
      {
        name: '`stream_options.include_usage`',
        base: { stream: true },
        ask: { stream_options: { include_usage: true } },
        notes: {
          'openai-chat': ALWAYS,
          anthropic: ALWAYS,
          gemini: ALWAYS,
          'openai-responses': ALWAYS,
        },
      },
      {
        name: '`response_format`: a JSON schema',
        ask: FORMAT,
        notes: { anthropic: 'what its schemas lack moves into descriptions' },
      },
      {
        name: '`response_format`: a JSON schema beside tools',
        base: TOOLS,
        ask: FORMAT,
        notes: { gemini: '2.5 models: by a tool whose arguments are the answer' },
      },
      {
        name: '`response_format`: any JSON object',
        ask: { response_format: { type: 'json_object' } },
        emulated: { anthropic: 'by an instruction' },
      },
      { name: '`verbosity`', ask: { verbosity: 'low' } },
      {
        name: 'spoken answers (`modalities`, `audio`)',
        ask: { modalities: ['text', 'audio'], audio: { voice: 'alloy', format: 'wav' } },
      },
    ],
  },
  {
    title: 'Reasoning',
    concepts: [
      {
        name: '`reasoning_effort`: a level',
        ask: { reasoning_effort: 'high' },
        notes: {
          'openai-chat': 'models that reason take it',
          anthropic: '4.5 models: a budget',
          gemini: '2.5 models: a budget',
        },
      },
      {
        name: '`reasoning_effort`: none',
        ask: { reasoning_effort: 'none' },
        emulated: {
          anthropic: 'the least the model has, where it cannot be switched off',
          gemini: 'the least the model has',
        },
      },
      {
        name: 'thoughts sent back as text',
        base: { messages: ANSWERED },
        ask: {
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
  {
    title: 'Tools',
    concepts: [
      { name: 'functions', ask: { tools: [FUNCTION] } },
      { name: 'functions without parameters', ask: { tools: [OTHER] } },
      {
        name: '`strict` functions',
        base: { tools: [FUNCTION] },
        ask: {
          tools: [
            {
              type: 'function',
              function: { name: 'paint', description: 'Paints.', parameters: SCHEMA, strict: true },
            },
          ],
        },
      },
      {
        name: 'custom tools (free text)',
        ask: { tools: [{ type: 'custom', custom: { name: 'note' } }] },
        emulated: {
          anthropic: 'a function with one text parameter, taken apart again',
          gemini: 'a function with one text parameter, taken apart again',
        },
      },
      {
        name: 'custom tools with a grammar',
        ask: {
          tools: [
            {
              type: 'custom',
              custom: {
                name: 'note',
                format: {
                  type: 'grammar',
                  grammar: { syntax: 'regex', definition: 'a+' },
                },
              },
            },
          ],
        },
      },
      { name: '`tool_choice`: auto', base: TOOLS, ask: { tool_choice: 'auto' } },
      { name: '`tool_choice`: none', base: TOOLS, ask: { tool_choice: 'none' } },
      {
        name: '`tool_choice`: required',
        base: TOOLS,
        ask: { tool_choice: 'required' },
        emulated: { anthropic: 'a wish on models that cannot be forced' },
      },
      {
        name: '`tool_choice`: one function',
        base: TOOLS,
        ask: { tool_choice: { type: 'function', function: { name: 'paint' } } },
        emulated: { anthropic: 'only that tool is offered, where it cannot be forced' },
      },
      {
        name: '`tool_choice`: allowed tools',
        base: TOOLS,
        ask: {
          tool_choice: {
            type: 'allowed_tools',
            allowed_tools: {
              mode: 'auto',
              tools: [{ type: 'function', function: { name: 'paint' } }],
            },
          },
        },
        emulated: { anthropic: 'only those tools are offered' },
      },
      { name: '`parallel_tool_calls`: false', base: TOOLS, ask: { parallel_tool_calls: false } },
      { name: 'calls and their results', base: TOOLS, ask: { messages: [HELLO, CALL, RESULT] } },
      {
        name: 'images in results',
        base: { ...TOOLS, messages: [HELLO, CALL, RESULT] },
        ask: {
          messages: [
            HELLO,
            CALL,
            {
              ...RESULT,
              content: [{ type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}` } }],
            },
          ],
        },
      },
      {
        name: 'legacy `functions`, `function_call`',
        ask: { functions: [{ name: 'paint', parameters: SCHEMA }], function_call: 'auto' },
        notes: {
          anthropic: 'as tools; answered with `function_call`',
          gemini: 'as tools; answered with `function_call`',
          'openai-responses': 'as tools; answered with `function_call`',
        },
      },
      { name: '`web_search_options`', ask: { web_search_options: {} } },
    ],
  },
  {
    title: 'Messages',
    concepts: [
      {
        name: 'instructions at the start (`system`, `developer`)',
        ask: { messages: [{ role: 'system', content: 'Be brief.' }, HELLO] },
      },
      {
        name: 'instructions later on',
        base: { messages: ANSWERED },
        ask: {
          messages: [
            ...ANSWERED.slice(0, 2),
            { role: 'system', content: 'Be brief.' },
            text('And now?'),
          ],
        },
        emulated: { gemini: 'a `<system>` block in its place in a user turn' },
        notes: { anthropic: 'models before 4.8: as for Gemini' },
      },
      {
        name: '`name` of a speaker',
        ask: { messages: [{ ...HELLO, name: 'ann' }] },
      },
      {
        name: 'images as data',
        base: parts(),
        ask: parts({ type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}` } }),
      },
      {
        name: 'images by https address',
        base: parts(),
        ask: parts({ type: 'image_url', image_url: { url: 'https://example.com/a.png' } }),
      },
      {
        name: '`detail` of an image',
        base: parts({ type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}` } }),
        ask: parts({
          type: 'image_url',
          image_url: { url: `data:image/png;base64,${PNG}`, detail: 'low' },
        }),
        notes: { gemini: 'one setting for all images' },
      },
      {
        name: 'PDF files',
        base: parts(),
        ask: parts({
          type: 'file',
          file: { filename: 'a.pdf', file_data: `data:application/pdf;base64,${PDF}` },
        }),
      },
      {
        name: 'files by id',
        base: parts(),
        ask: parts({ type: 'file', file: { file_id: 'file-1' } }),
        notes: { anthropic: 'an id means nothing elsewhere' },
      },
      {
        name: 'spoken questions',
        base: parts(),
        ask: parts({
          type: 'input_audio',
          input_audio: { data: 'UklGRiQAAABXQVZF', format: 'wav' },
        }),
      },
      {
        name: 'an earlier refusal',
        base: { messages: ANSWERED },
        ask: {
          messages: [HELLO, { role: 'assistant', content: null, refusal: 'No.' }, text('And now?')],
        },
        emulated: { anthropic: 'as text', gemini: 'as text', 'openai-responses': 'as text' },
      },
    ],
  },
  {
    title: 'Service',
    concepts: [
      { name: '`user`, `safety_identifier`', ask: { safety_identifier: 'u1' } },
      { name: '`service_tier`: priority', ask: { service_tier: 'priority' } },
      { name: '`service_tier`: flex', ask: { service_tier: 'flex' } },
      { name: '`metadata`', ask: { metadata: { a: 'b' } } },
      { name: '`store`', ask: { store: true } },
      {
        name: '`prompt_cache_key`, `prompt_cache_retention`',
        ask: { prompt_cache_key: 'k', prompt_cache_retention: '24h' },
      },
      { name: '`prompt_cache_options`', ask: { prompt_cache_options: { mode: 'implicit' } } },
      {
        name: 'cache marks on parts',
        base: parts(),
        ask: {
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
        ask: { prediction: { type: 'content', content: 'Yes' } },
      },
      { name: '`moderation`', ask: { moderation: { model: 'omni-moderation-latest' } } },
      { name: 'fields that nobody knows', ask: { vendor_field: 1 } },
    ],
  },
]
