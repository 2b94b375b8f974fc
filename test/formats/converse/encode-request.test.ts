/**
 * Goal: a canonical request becomes a body that Converse accepts, and what it cannot say is refused or
 * reported.
 * Method: one concept at a time, compared with the expected members; AWS's own SDK sends every body
 * unchanged, so each has only members that the service has.
 */
import t from 'tap'
import type { JsonObject } from '../../../src/base/json.js'
import type { ModelFacts } from '../../../src/formats/chat/model-facts.js'
import type { ChatRequest, Message, Tool, UserPart } from '../../../src/formats/chat/request.js'
import { refusalOf } from '../collect-events.js'
import { userMessage } from '../sample-request.js'
import { bodyOfSdk, CLAUDE, encode, MISTRAL, NEW_CLAUDE, NOVA } from './driver.js'

/** A 1×1 PNG, and the start of a PDF. */
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const PDF = Buffer.from('%PDF-1.4 …').toString('base64')
const CSV = Buffer.from('a,b\n1,2').toString('base64')

const ADD: Tool = {
  name: 'add',
  description: 'Adds.',
  parameters: { type: 'object', properties: { a: { type: 'number' } }, required: ['a'] },
}
const FIND: Tool = { name: 'find' }

interface Case {
  readonly name: string
  readonly over: Partial<ChatRequest>
  readonly model?: ModelFacts
  readonly body: JsonObject
  readonly lost?: readonly string[]
}

const HELLO = [{ role: 'user', content: [{ text: 'Hello' }] }]

function user(index: number, ...parts: UserPart[]): Message {
  return { role: 'user', index, parts }
}

/** A user message, a call of `add`, and the results with these members. */
function toolTurns(result: Partial<Extract<Message, { role: 'tool' }>>): Message[] {
  return [
    userMessage(0, 'Add.'),
    {
      role: 'assistant',
      index: 1,
      parts: [{ type: 'text', text: 'So:' }],
      toolCalls: [
        { id: 'call_1', name: 'add', arguments: '{"a":1}' },
        { id: 'functions.add:2', name: 'add', arguments: '' },
      ],
    },
    { role: 'tool', index: 2, callId: 'functions.add:2', parts: [{ type: 'text', text: 'two' }] },
    { role: 'tool', index: 3, callId: 'call_1', parts: [], ...result },
    userMessage(4, 'And?'),
  ]
}

const CALLS = {
  role: 'assistant',
  content: [
    { text: 'So:' },
    { toolUse: { toolUseId: 'call_1', name: 'add', input: { a: 1 } } },
    { toolUse: { toolUseId: 'functions_add_2_e2d6e2f5', name: 'add', input: {} } },
  ],
}

const HISTORY_TOOL = { toolSpec: { name: 'add', inputSchema: { json: { type: 'object' } } } }

const CASES: readonly Case[] = [
  { name: 'plain', over: {}, body: { messages: HELLO } },
  {
    name: 'sampling and length',
    over: { maxOutputTokens: 50, temperature: 0.5, topP: 0.9, topK: 10, stop: ['END', ''] },
    body: {
      messages: HELLO,
      inferenceConfig: { maxTokens: 50, temperature: 0.5, topP: 0.9, stopSequences: ['END'] },
      additionalModelRequestFields: { inferenceConfig: { topK: 10 } },
    },
  },
  {
    name: 'sampling of Claude: one of the two, and the matched stop sequence',
    over: { maxOutputTokens: 70_000, temperature: 1.5, topP: 0.9, topK: 10, stop: ['END'] },
    model: CLAUDE,
    body: {
      messages: HELLO,
      inferenceConfig: { maxTokens: 64_000, temperature: 1, stopSequences: ['END'] },
      additionalModelRequestFields: { top_k: 10 },
      additionalModelResponseFieldPaths: ['/stop_sequence'],
    },
    lost: ['temperature: approximated', 'top_p: no-equivalent', 'max_completion_tokens: approximated'],
  },
  {
    name: 'sampling of a Claude model that has none',
    over: { temperature: 0.5, topK: 3 },
    model: NEW_CLAUDE,
    body: { messages: HELLO },
    lost: ['temperature: no-equivalent', 'top_k: no-equivalent'],
  },
  {
    name: 'what no model takes',
    over: { topK: 3, seed: 1, frequencyPenalty: 1, presencePenalty: 1, verbosity: 'low' },
    model: MISTRAL,
    body: { messages: HELLO },
    lost: [
      'frequency_penalty: no-equivalent',
      'presence_penalty: no-equivalent',
      'seed: no-equivalent',
      'verbosity: no-equivalent',
      'top_k: no-equivalent',
    ],
  },
  {
    name: 'system',
    over: {
      messages: [
        { role: 'system', index: 0, parts: [{ type: 'text', text: 'Be brief.' }] },
        userMessage(1, 'Hello'),
        { role: 'system', index: 2, parts: [{ type: 'text', text: 'Rhyme.' }] },
      ],
    },
    body: {
      messages: [{ role: 'user', content: [{ text: 'Hello' }, { text: '<system>\nRhyme.\n</system>' }] }],
      system: [{ text: 'Be brief.' }],
    },
  },
  {
    name: 'instructions alone',
    over: {
      messages: [
        { role: 'system', index: 0, parts: [{ type: 'text', text: 'Rhyme.' }] },
        userMessage(1, ' '),
      ],
    },
    body: { messages: [{ role: 'user', content: [{ text: 'Rhyme.' }] }] },
  },
  {
    name: 'a system turn of its own',
    over: {
      messages: [
        userMessage(0, 'Hello'),
        { role: 'system', index: 1, parts: [{ type: 'text', text: 'Rhyme.' }] },
      ],
    },
    model: NEW_CLAUDE,
    body: { messages: [...HELLO, { role: 'system', content: [{ text: 'Rhyme.' }] }] },
  },
  {
    name: 'media',
    over: {
      messages: [
        user(
          0,
          { type: 'image', source: { kind: 'base64', mediaType: 'image/jpeg', data: PNG } },
          {
            type: 'file',
            filename: 'Q3 report (final).pdf',
            source: { kind: 'base64', mediaType: 'application/pdf', data: PDF },
          },
          {
            type: 'file',
            filename: 'Q3_report (final).pdf',
            source: { kind: 'base64', mediaType: 'application/pdf', data: PDF },
          },
          { type: 'file', source: { kind: 'base64', mediaType: 'text/csv', data: CSV } },
          { type: 'file', source: { kind: 'base64', mediaType: 'video/mp4', data: CSV } },
          { type: 'audio', format: 'wav', data: CSV },
          { type: 'image', source: { kind: 'url', url: 's3://bucket/a/b.PNG' } },
        ),
      ],
    },
    body: {
      messages: [
        {
          role: 'user',
          content: [
            { text: 'Attached: Q3 report (final), Q3 report (final) (2), document' },
            { image: { format: 'png', source: { bytes: PNG } } },
            { document: { format: 'pdf', name: 'Q3 report (final)', source: { bytes: PDF } } },
            { document: { format: 'pdf', name: 'Q3 report (final) (2)', source: { bytes: PDF } } },
            { document: { format: 'csv', name: 'document', source: { bytes: CSV } } },
            { video: { format: 'mp4', source: { bytes: CSV } } },
            { audio: { format: 'wav', source: { bytes: CSV } } },
            { image: { format: 'png', source: { s3Location: { uri: 's3://bucket/a/b.PNG' } } } },
          ],
        },
      ],
    },
  },
  {
    name: 'calls and results, in the order of the calls',
    over: {
      tools: [ADD, FIND],
      toolChoice: { mode: 'auto' },
      messages: toolTurns({ isError: true }),
    },
    body: {
      messages: [
        { role: 'user', content: [{ text: 'Add.' }] },
        CALLS,
        {
          role: 'user',
          content: [
            {
              toolResult: { toolUseId: 'call_1', content: [{ text: '(empty)' }], status: 'error' },
            },
            { toolResult: { toolUseId: 'functions_add_2_e2d6e2f5', content: [{ text: 'two' }] } },
            { text: 'And?' },
          ],
        },
      ],
      toolConfig: {
        tools: [
          {
            toolSpec: {
              name: 'add',
              description: 'Adds.',
              inputSchema: { json: ADD.parameters ?? {} },
            },
          },
          {
            toolSpec: { name: 'find', inputSchema: { json: { type: 'object', properties: {} } } },
          },
        ],
        toolChoice: { auto: {} },
      },
    },
  },
  {
    name: 'images in results',
    over: {
      messages: toolTurns({
        parts: [{ type: 'image', source: { kind: 'base64', mediaType: 'image/png', data: PNG } }],
      }),
    },
    body: {
      messages: [
        { role: 'user', content: [{ text: 'Add.' }] },
        CALLS,
        {
          role: 'user',
          content: [
            {
              toolResult: {
                toolUseId: 'call_1',
                content: [{ image: { format: 'png', source: { bytes: PNG } } }],
              },
            },
            { toolResult: { toolUseId: 'functions_add_2_e2d6e2f5', content: [{ text: 'two' }] } },
            { text: 'And?' },
          ],
        },
      ],
      // The API requires definitions for the calls in the history.
      toolConfig: { tools: [HISTORY_TOOL] },
    },
  },
  {
    name: 'no tools are to be called',
    over: { tools: [ADD], toolChoice: { mode: 'none' } },
    body: { messages: HELLO },
  },
  {
    name: 'a demanded call',
    over: { tools: [FIND], toolChoice: { mode: 'required' }, parallelToolCalls: false },
    body: {
      messages: HELLO,
      toolConfig: {
        tools: [{ toolSpec: { name: 'find', inputSchema: { json: { type: 'object', properties: {} } } } }],
        toolChoice: { any: {} },
      },
    },
    lost: ['parallel_tool_calls: no-equivalent'],
  },
  {
    name: 'one of the allowed tools, and a name that is too long',
    over: {
      tools: [ADD, { name: 'mcp.server/find' }],
      toolChoice: { mode: 'allowed', required: true, names: ['mcp.server/find'] },
    },
    body: {
      messages: HELLO,
      toolConfig: {
        tools: [
          {
            toolSpec: {
              name: 'mcp_server_find_2da164f3',
              inputSchema: { json: { type: 'object', properties: {} } },
            },
          },
        ],
        toolChoice: { any: {} },
      },
    },
  },
  {
    name: 'a named tool that the model cannot be forced to call',
    over: { tools: [ADD, FIND], toolChoice: { mode: 'named', name: 'find' } },
    model: NEW_CLAUDE,
    body: {
      messages: HELLO,
      system: [{ text: 'Reply by calling one of the tools.' }],
      toolConfig: {
        tools: [{ toolSpec: { name: 'find', inputSchema: { json: { type: 'object', properties: {} } } } }],
      },
    },
    lost: ['tool_choice: approximated'],
  },
  {
    name: 'strict and free text tools',
    model: { id: 'openai.gpt-oss-120b-1:0', family: 'openai', createdAtSeconds: 0 },
    over: {
      tools: [
        { ...ADD, strict: true },
        { name: 'say', custom: {} },
      ],
    },
    body: {
      messages: HELLO,
      toolConfig: {
        tools: [
          {
            toolSpec: {
              name: 'add',
              description: 'Adds.',
              inputSchema: { json: { ...ADD.parameters, additionalProperties: false } },
              strict: true,
            },
          },
          {
            toolSpec: {
              name: 'say',
              inputSchema: {
                json: {
                  type: 'object',
                  properties: { input: { type: 'string' } },
                  required: ['input'],
                  additionalProperties: false,
                },
              },
            },
          },
        ],
      },
    },
  },
  {
    name: 'JSON by a schema',
    over: {
      responseFormat: {
        type: 'json-schema',
        name: 'City',
        description: 'A city.',
        schema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
      },
    },
    body: {
      messages: HELLO,
      outputConfig: {
        textFormat: {
          type: 'json_schema',
          structure: {
            jsonSchema: {
              schema:
                '{"type":"object","properties":{"name":{"type":"string"}},"required":["name"],"additionalProperties":false}',
              name: 'City',
              description: 'A city.',
            },
          },
        },
      },
    },
  },
  {
    name: 'any JSON',
    over: { responseFormat: { type: 'json-object' } },
    body: { messages: HELLO, system: [{ text: 'Respond with one JSON object only.' }] },
    lost: ['response_format: approximated'],
  },
  {
    name: 'reasoning with a budget',
    over: { reasoningEffort: 'high', temperature: 0.5 },
    model: CLAUDE,
    body: {
      messages: HELLO,
      additionalModelRequestFields: { thinking: { type: 'enabled', budget_tokens: 24576 } },
    },
    lost: ['temperature: no-equivalent'],
  },
  {
    name: 'no budget beside a forced call',
    over: { reasoningEffort: 'high', tools: [FIND], toolChoice: { mode: 'required' } },
    model: CLAUDE,
    body: {
      messages: HELLO,
      toolConfig: {
        tools: [{ toolSpec: { name: 'find', inputSchema: { json: { type: 'object', properties: {} } } } }],
        toolChoice: { any: {} },
      },
      additionalModelRequestFields: { thinking: { type: 'disabled' } },
    },
    lost: ['reasoning_effort: approximated'],
  },
  {
    name: 'adaptive reasoning',
    over: { reasoningEffort: 'minimal' },
    model: NEW_CLAUDE,
    body: {
      messages: HELLO,
      additionalModelRequestFields: { thinking: { type: 'adaptive', display: 'summarized' } },
      outputConfig: { effort: 'low' },
    },
  },
  {
    name: 'effort of another model, and of one that does not reason',
    over: { reasoningEffort: 'high' },
    body: { messages: HELLO, outputConfig: { effort: 'high' } },
  },
  {
    name: 'effort of a model that does not reason',
    over: { reasoningEffort: 'high' },
    model: { ...MISTRAL, reasoning: false },
    body: { messages: HELLO },
    lost: ['reasoning_effort: no-equivalent'],
  },
  {
    name: 'members of Converse itself',
    over: {
      rest: {
        additionalModelRequestFields: {
          anthropic_beta: ['context-1m-2025-08-07'],
          max_tokens: 1_000_000,
          tools: [{ type: 'web_search_20250305', name: 'web_search' }],
        },
        additionalModelResponseFieldPaths: ['/a'],
        guardrailConfig: { guardrailIdentifier: 'g', guardrailVersion: 'DRAFT', trace: 'enabled' },
        performanceConfig: { latency: 'optimized' },
        promptVariables: { a: { text: 'b' } },
        requestMetadata: { team: 'a' },
        thinking: { type: 'adaptive' },
        unknown_field: 1,
      },
      serviceTier: 'flex',
      stop: ['X'],
    },
    model: NEW_CLAUDE,
    body: {
      messages: HELLO,
      inferenceConfig: { stopSequences: ['X'] },
      additionalModelRequestFields: {
        thinking: { type: 'adaptive' },
        anthropic_beta: ['context-1m-2025-08-07'],
      },
      additionalModelResponseFieldPaths: ['/a', '/stop_sequence'],
      guardrailConfig: { guardrailIdentifier: 'g', guardrailVersion: 'DRAFT', trace: 'enabled' },
      performanceConfig: { latency: 'optimized' },
      promptVariables: { a: { text: 'b' } },
      requestMetadata: { team: 'a' },
      serviceTier: { type: 'flex' },
    },
    lost: [
      'unknown_field: no-equivalent',
      'additionalModelRequestFields.max_tokens: no-equivalent',
      'additionalModelRequestFields.tools: no-equivalent',
    ],
  },
]

for (const { name, over, model, body, lost = [] } of CASES) {
  void t.test(name, async (t) => {
    const encoded = encode(over, model)
    t.strictSame(encoded.body, body)
    t.same(encoded.lost, lost)
    t.same(await bodyOfSdk(encoded.body), body, "as AWS's SDK sends it")
    t.end()
  })
}

const SIGNED: Message = {
  role: 'assistant',
  index: 1,
  parts: [
    { type: 'thinking', text: 'Hm.', signature: 'SIG', origin: 'anthropic' },
    { type: 'thinking', text: '', redacted: 'RW5jcnlwdGVk', origin: 'anthropic' },
    { type: 'thinking', text: 'Foreign.', signature: 'x', origin: 'gemini' },
    { type: 'text', text: 'Yes.' },
  ],
  toolCalls: [],
}
const TURNS = [userMessage(0, 'Well?'), SIGNED, userMessage(2, 'So?')]

void t.test('the reasoning of Claude returns unchanged, first in its turn', async (t) => {
  const { body, lost } = encode({ messages: TURNS }, CLAUDE)
  const content = [
    { reasoningContent: { reasoningText: { text: 'Hm.', signature: 'SIG' } } },
    { reasoningContent: { redactedContent: Buffer.from('RW5jcnlwdGVk').toString('base64') } },
    { text: 'Yes.' },
  ]
  t.same((body.messages as JsonObject[])[1]?.content, content)
  t.same(lost, ['messages.reasoning: no-equivalent'])
  t.same(await bodyOfSdk(body), body)
  t.end()
})

void t.test('signed reasoning is left out for other models, unsigned reasoning for Claude', (t) => {
  const unsigned: Message = {
    ...SIGNED,
    parts: [
      { type: 'thinking', text: 'Hm.', origin: 'anthropic' },
      { type: 'text', text: 'Yes.' },
    ],
  }
  const turns = [userMessage(0, 'Well?'), unsigned, userMessage(2, 'So?')]
  const reasoning = { reasoningContent: { reasoningText: { text: 'Hm.' } } }
  const contentOf = (messages: Message[], model: ModelFacts): unknown =>
    (encode({ messages }, model).body.messages as JsonObject[])[1]?.content
  t.same(contentOf(TURNS, MISTRAL), [{ text: 'Yes.' }])
  t.same(contentOf(turns, MISTRAL), [reasoning, { text: 'Yes.' }])
  t.same(contentOf(turns, CLAUDE), [{ text: 'Yes.' }])
  t.end()
})

/** A system prompt, a tool and two user turns, all marked. */
const MARKED: Partial<ChatRequest> = {
  tools: [{ ...ADD, cache: { ttl: '1h' } }],
  messages: [
    {
      role: 'system',
      index: 0,
      parts: [{ type: 'text', text: 'Be brief.', cache: { ttl: '5m' } }],
    },
    user(
      1,
      { type: 'text', text: 'One.', cache: { ttl: '5m' } },
      { type: 'text', text: 'Two.', cache: { ttl: '1h' } },
      { type: 'text', text: 'Three.', cache: { ttl: '5m' } },
    ),
  ],
}
const POINT = { cachePoint: { type: 'default' } }
const HOUR = { cachePoint: { type: 'default', ttl: '1h' } }

void t.test('cache points follow what they cache, the last four of them', async (t) => {
  const { body, lost } = encode(MARKED, CLAUDE)
  t.same(body.system, [{ text: 'Be brief.' }, POINT])
  t.same((body.toolConfig as { tools: JsonObject[] }).tools.length, 1, 'the first is left out')
  t.same((body.messages as JsonObject[])[0]?.content, [
    { text: 'One.' },
    POINT,
    { text: 'Two.' },
    HOUR,
    { text: 'Three.' },
    POINT,
  ])
  t.same(lost, ['cache_control: approximated'])
  t.same(await bodyOfSdk(body), body)
  t.end()
})

void t.test('models without a prompt cache get no cache points', (t) => {
  const nova = encode(MARKED, NOVA)
  t.notMatch(JSON.stringify(nova.body), /ttl/, 'Nova has no lifetimes')
  t.match(JSON.stringify(nova.body), /cachePoint/)
  t.notMatch(JSON.stringify(nova.body.toolConfig), /cachePoint/, 'and caches no tools')
  const mistral = encode(MARKED, MISTRAL)
  t.notMatch(JSON.stringify(mistral.body), /cachePoint/)
  t.ok(mistral.lost.every((each) => each === 'cache_control: no-equivalent'))
  t.end()
})

void t.test('what must not be dropped is refused', (t) => {
  const image = (source: UserPart & { type: 'image' }): Message[] => [user(0, source)]
  const url = { kind: 'url' as const, url: 'https://a.example/a.png' }
  const tiff = { kind: 'base64' as const, mediaType: 'image/tiff', data: CSV }
  const cases: [Partial<ChatRequest>, string][] = [
    [{ candidates: 2 }, 'n'],
    [{ logprobs: true }, 'logprobs'],
    [{ rest: { moderation: {} } }, 'moderation'],
    [{ rest: { modalities: ['audio'] } }, 'modalities'],
    [{ messages: image({ type: 'image', source: url }) }, 'messages[0].content[0]'],
    [{ messages: image({ type: 'image', source: tiff }) }, 'messages[0].content[0]'],
    [{ messages: [userMessage(0, ' ')] }, 'messages'],
    [{ messages: [] }, 'messages'],
    [{ messages: [userMessage(0, 'a'), { ...SIGNED, index: 1 }] }, 'messages'],
    [{ tools: [{ name: 'say', custom: { format: { type: 'grammar' } } }] }, 'tools[0].custom.format'],
    [
      { responseFormat: { type: 'json-schema', name: 'a', schema: { type: 'array' } } },
      'response_format.json_schema.schema',
    ],
  ]
  for (const [over, param] of cases) {
    const refusal = refusalOf(() => encode(over))
    t.equal(refusal.kind, 'untranslatable', param)
    t.equal(refusal.param, param)
  }
  t.end()
})
