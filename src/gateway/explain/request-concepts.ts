/** Every concept that a chat client may request, in the order of `docs/reference/dialects.md`. */
import type { JsonObject } from '../../base/json.js'
import type { DialectName } from '../../formats/dialect.js'

/** A feature of a chat request. */
export interface RequestConcept {
  /** Markdown. */
  readonly name: string
  /** Further members of the plain request that the concept needs. */
  readonly base?: JsonObject
  readonly members: JsonObject
  /** How a dialect emulates the concept. Markdown. */
  readonly emulated?: Partial<Record<DialectName, string>>
  /** Further notes. Markdown. */
  readonly notes?: Partial<Record<DialectName, string>>
}

/** Concepts under one heading. */
interface RequestGroup {
  readonly title: string
  readonly concepts: readonly RequestConcept[]
}

/** A request without the concept. It has a token limit, since some encoders stream requests without one. */
export const PLAIN_REQUEST: JsonObject = {
  messages: [{ role: 'user', content: 'Hello.' }],
  max_completion_tokens: 200,
}

/** A user message. */
const text = (content: string): JsonObject => ({ role: 'user', content })

/** The shortest user message. */
const HELLO = text('Hello.')

/** A user message with these content parts after a text. */
const parts = (...content: JsonObject[]): JsonObject => ({
  messages: [{ role: 'user', content: [{ type: 'text', text: 'Look.' }, ...content] }],
})

/** A picture of one pixel, base64. */
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

/** Nova takes `type`, `properties` and `required` at the root. */
const OPEN_ROOT = 'Nova: without other keywords at the root of the schema'

/** A JSON Schema. */
const SCHEMA = {
  type: 'object',
  properties: { colour: { type: 'string' } },
  required: ['colour'],
  additionalProperties: false,
}

/** A function tool with parameters. */
const FUNCTION: JsonObject = {
  type: 'function',
  function: { name: 'paint', description: 'Paints.', parameters: SCHEMA },
}

/** A function tool without parameters. */
const OTHER: JsonObject = { type: 'function', function: { name: 'wait' } }

/** Both tools. */
const TOOLS: JsonObject = { tools: [FUNCTION, OTHER] }

/** A conversation of three messages. */
const ANSWERED = [HELLO, { role: 'assistant', content: 'Hi.' }, text('And now?')]

const PDF = 'JVBERi0xLjQKJeLjz9MKdHJhaWxlcjw8Pj4KJSVFT0YK'

/** Messages of a chat request, one fragment per concept, in the order of `docs/reference/dialects.md`. */
const MESSAGES_GROUP: readonly RequestGroup[] = [
  {
    title: 'Messages',
    concepts: [
      {
        name: 'instructions at the start (`system`, `developer`)',
        members: { messages: [{ role: 'system', content: 'Be brief.' }, HELLO] },
      },
      {
        name: 'instructions later on',
        base: { messages: ANSWERED },
        members: {
          messages: [...ANSWERED.slice(0, 2), { role: 'system', content: 'Be brief.' }, text('And now?')],
        },
        emulated: {
          gemini: 'a `<system>` block in its place in a user turn',
          converse: 'as for Gemini; a turn of their own for Claude since 4.8',
        },
        notes: { anthropic: 'models before 4.8: as for Gemini' },
      },
      {
        name: '`name` of a speaker',
        members: { messages: [{ ...HELLO, name: 'ann' }] },
      },
      {
        name: 'images as data',
        base: parts(),
        members: parts({ type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}` } }),
      },
      {
        name: 'images by https address',
        base: parts(),
        members: parts({ type: 'image_url', image_url: { url: 'https://example.com/a.png' } }),
      },
      {
        name: '`detail` of an image',
        base: parts({ type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}` } }),
        members: parts({
          type: 'image_url',
          image_url: { url: `data:image/png;base64,${PNG}`, detail: 'low' },
        }),
        notes: { gemini: 'one setting for all images' },
      },
      {
        name: 'PDF files',
        base: parts(),
        members: parts({
          type: 'file',
          file: { filename: 'a.pdf', file_data: `data:application/pdf;base64,${PDF}` },
        }),
      },
      {
        name: 'files by id',
        base: parts(),
        members: parts({ type: 'file', file: { file_id: 'file-1' } }),
        notes: { anthropic: 'an id means nothing elsewhere', converse: 'as for Anthropic' },
      },
      {
        name: 'audio input',
        base: parts(),
        members: parts({
          type: 'input_audio',
          input_audio: { data: 'UklGRiQAAABXQVZF', format: 'wav' },
        }),
      },
      {
        name: 'an earlier refusal',
        base: { messages: ANSWERED },
        members: {
          messages: [HELLO, { role: 'assistant', content: null, refusal: 'No.' }, text('And now?')],
        },
        emulated: {
          anthropic: 'as text',
          gemini: 'as text',
          'openai-responses': 'as text',
          converse: 'as text',
        },
      },
    ],
  },
]

const FORMAT: JsonObject = {
  response_format: {
    type: 'json_schema',
    json_schema: { name: 'paint', schema: SCHEMA, strict: true },
  },
}
const ALWAYS = 'always counted, reported if requested'

/** Settings of a chat request, one fragment per concept, in the order of `docs/reference/dialects.md`. */
const SETTINGS: readonly RequestGroup[] = [
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
          converse: 'Claude: as for Anthropic',
        },
      },
      {
        name: '`top_p`',
        members: { top_p: 0.5 },
        notes: {
          'openai-responses': 'as `temperature`',
          anthropic: 'as `temperature`, and not beside it',
          converse: 'Claude: as for Anthropic',
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
          converse: 'send n requests',
          'openai-responses': 'send n requests',
          gemini: '2.5 models: ● `generationConfig.candidateCount`, up to 8; as a stream all at once',
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
          converse: ALWAYS,
        },
      },
      {
        name: '`response_format`: a JSON schema',
        members: FORMAT,
        notes: {
          anthropic: 'unsupported keywords move into descriptions, which is reported',
          converse: 'unsupported keywords move into descriptions, which is reported',
        },
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
        emulated: { anthropic: 'by an instruction', converse: 'by an instruction' },
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
          converse: 'Claude: as for Anthropic',
        },
      },
      {
        name: '`reasoning_effort`: none',
        members: { reasoning_effort: 'none' },
        emulated: {
          anthropic: "the model's minimum if it cannot be switched off",
          gemini: "the model's minimum",
          converse: 'the least effort',
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
        notes: {
          anthropic: 'only its own, signed thoughts may come back',
          converse: 'as for Anthropic; other models: their own, unsigned thoughts',
        },
      },
    ],
  },
]

/** Concepts about the service, after all others on the page. */
const SERVICE: readonly RequestGroup[] = [
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
              content: [{ type: 'text', text: 'Look.', prompt_cache_breakpoint: { mode: 'explicit' } }],
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

const CALL: JsonObject = {
  role: 'assistant',
  content: null,
  tool_calls: [
    { id: 'call_1', type: 'function', function: { name: 'paint', arguments: '{"colour":"red"}' } },
  ],
}
const RESULT: JsonObject = { role: 'tool', tool_call_id: 'call_1', content: 'done' }

/** Tools of a chat request, one fragment per concept, in the order of `docs/reference/dialects.md`. */
const TOOLS_GROUP: readonly RequestGroup[] = [
  {
    title: 'Tools',
    concepts: [
      { name: 'functions', members: { tools: [FUNCTION] }, emulated: { converse: OPEN_ROOT } },
      { name: 'functions without parameters', members: { tools: [OTHER] } },
      {
        name: '`strict` functions',
        base: { tools: [FUNCTION] },
        members: {
          tools: [
            {
              type: 'function',
              function: { name: 'paint', description: 'Paints.', parameters: SCHEMA, strict: true },
            },
          ],
        },
        emulated: { converse: 'as functions that are not strict' },
      },
      {
        name: 'custom tools (free text)',
        members: { tools: [{ type: 'custom', custom: { name: 'note' } }] },
        emulated: {
          anthropic: 'a function with one text parameter, taken apart again',
          gemini: 'a function with one text parameter, taken apart again',
          converse: 'a function with one text parameter, taken apart again',
        },
      },
      {
        name: 'custom tools with a grammar',
        members: {
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
      { name: '`tool_choice`: auto', base: TOOLS, members: { tool_choice: 'auto' } },
      { name: '`tool_choice`: none', base: TOOLS, members: { tool_choice: 'none' } },
      {
        name: '`tool_choice`: required',
        base: TOOLS,
        members: { tool_choice: 'required' },
        emulated: {
          anthropic:
            'models that cannot be forced are instructed to call; a reply without a call is requested a second time, then refused',
        },
        notes: { converse: 'Claude: as for Anthropic' },
      },
      {
        name: '`tool_choice`: one function',
        base: TOOLS,
        members: { tool_choice: { type: 'function', function: { name: 'paint' } } },
        emulated: {
          anthropic:
            'if the model cannot be forced, only that tool is offered, and the reply is checked as for `required`',
        },
        notes: { converse: 'Claude: as for Anthropic' },
      },
      {
        name: '`tool_choice`: allowed tools',
        base: TOOLS,
        members: {
          tool_choice: {
            type: 'allowed_tools',
            allowed_tools: {
              mode: 'auto',
              tools: [{ type: 'function', function: { name: 'paint' } }],
            },
          },
        },
        emulated: {
          anthropic: 'only those tools are offered',
          converse: 'only those tools are offered',
        },
      },
      {
        name: '`parallel_tool_calls`: false',
        base: TOOLS,
        members: { parallel_tool_calls: false },
      },
      {
        name: 'calls and their results',
        base: TOOLS,
        members: { messages: [HELLO, CALL, RESULT] },
      },
      {
        name: 'images in results',
        base: { ...TOOLS, messages: [HELLO, CALL, RESULT] },
        members: {
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
        members: { functions: [{ name: 'paint', parameters: SCHEMA }], function_call: 'auto' },
        notes: {
          anthropic: 'as tools; answered with `function_call`',
          gemini: 'as tools; answered with `function_call`',
          'openai-responses': 'as tools; answered with `function_call`',
        },
        emulated: { converse: `as tools; answered with \`function_call\`; ${OPEN_ROOT}` },
      },
      { name: '`web_search_options`', members: { web_search_options: {} } },
    ],
  },
]

export const REQUEST_GROUPS: readonly RequestGroup[] = [
  ...SETTINGS,
  ...TOOLS_GROUP,
  ...MESSAGES_GROUP,
  ...SERVICE,
]
