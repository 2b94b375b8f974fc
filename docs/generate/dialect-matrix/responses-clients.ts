/**
 * Concepts of `POST /v1/responses`: one fragment of a request per concept. Data for
 * `docs/reference/dialects.md`.
 */
import type { JsonObject } from '../../../src/base/json.js'
import type { ClientConcepts } from './client-concepts.js'

const SCHEMA: JsonObject = {
  type: 'object',
  properties: { colour: { type: 'string' } },
  required: ['colour'],
  additionalProperties: false,
}
const TOOL: JsonObject = { type: 'function', name: 'paint', parameters: SCHEMA, strict: false }
const TOOLS: JsonObject = { tools: [TOOL] }
const SEARCH: JsonObject = { type: 'web_search' }
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const PDF = 'JVBERi0xLjQKJeLjz9MKdHJhaWxlcjw8Pj4KJSVFT0YK'

const LOOK: JsonObject = { role: 'user', content: 'Look.' }
const userContent = (...content: JsonObject[]): JsonObject => ({
  input: [{ role: 'user', content: [{ type: 'input_text', text: 'Look.' }, ...content] }],
})
const afterReply = (...items: JsonObject[]): JsonObject => ({
  input: [LOOK, ...items, { role: 'user', content: 'And now?' }],
})
const YES: JsonObject = { role: 'assistant', content: [{ type: 'output_text', text: 'Yes.' }] }
const CALL: JsonObject = { type: 'function_call', call_id: 'c1', name: 'paint', arguments: '{}' }
const result = (output: string | JsonObject[]): JsonObject => ({
  ...TOOLS,
  input: [LOOK, CALL, { type: 'function_call_output', call_id: 'c1', output }],
})
const custom = (format: JsonObject): JsonObject => ({
  tools: [{ type: 'custom', name: 'run', format }],
})

const SHELL: JsonObject = { tools: [{ type: 'local_shell' }] }
const SHELL_TURN: JsonObject[] = [
  { type: 'local_shell_call', call_id: 'c1', action: { type: 'exec', command: ['ls'], env: {} } },
  { type: 'function_call_output', call_id: 'c1', output: 'a.txt' },
]

/** The Responses format. */
export const RESPONSES: ClientConcepts = {
  title: 'Responses (`POST /v1/responses`)',
  path: '/v1/responses',
  plain: { input: 'Look.', max_output_tokens: 1_000 },
  concepts: [
    { name: '`input` as items', members: { input: [LOOK] } },
    { name: '`instructions`', members: { instructions: 'Be brief.' } },
    { name: '`max_output_tokens`', members: { max_output_tokens: 500 } },
    { name: '`temperature`', members: { temperature: 0.5 } },
    { name: '`top_p`', members: { top_p: 0.5 } },
    { name: '`stream`', members: { stream: true } },
    { name: '`reasoning.effort`', members: { reasoning: { effort: 'low' } } },
    { name: '`reasoning.summary`', members: { reasoning: { summary: 'auto' } } },
    {
      name: '`include`: `reasoning.encrypted_content`',
      members: { include: ['reasoning.encrypted_content'] },
    },
    {
      name: '`include`: `message.output_text.logprobs`',
      members: { include: ['message.output_text.logprobs'] },
    },
    {
      name: '`text.format`: `json_object`',
      members: { text: { format: { type: 'json_object' } } },
    },
    {
      name: '`text.format`: a JSON schema',
      members: {
        text: { format: { type: 'json_schema', name: 'a', schema: SCHEMA, strict: true } },
      },
    },
    { name: '`text.verbosity`', members: { text: { verbosity: 'low' } } },
    { name: '`store`: false', members: { store: false } },
    { name: '`truncation`: `auto`', members: { truncation: 'auto' } },
    { name: '`service_tier`: `priority`', members: { service_tier: 'priority' } },
    { name: '`metadata`', members: { metadata: { a: 'b' } } },
    { name: '`safety_identifier`', members: { safety_identifier: 'user-1' } },
    { name: '`prompt_cache_key`', members: { prompt_cache_key: 'a' } },
    { name: '`max_tool_calls`', members: { ...TOOLS, max_tool_calls: 2 }, base: TOOLS },
    { name: '`context_management`', members: { context_management: [{ type: 'compaction' }] } },
    { name: "`prompt`: a template of OpenAI's", members: { prompt: { id: 'pmpt_1' } } },
    {
      name: 'an image, as base64',
      members: userContent({ type: 'input_image', image_url: `data:image/png;base64,${PNG}` }),
    },
    {
      name: 'an image, by URL',
      members: userContent({ type: 'input_image', image_url: 'https://a.example/a.png' }),
    },
    {
      name: 'a PDF, as base64',
      members: userContent({
        type: 'input_file',
        filename: 'a.pdf',
        file_data: `data:application/pdf;base64,${PDF}`,
      }),
    },
    {
      name: 'a PDF, by URL',
      members: userContent({ type: 'input_file', file_url: 'https://a.example/a.pdf' }),
    },
    {
      name: "a file of OpenAI's Files API",
      members: userContent({ type: 'input_file', file_id: 'file-1' }),
    },
    { name: 'function `tools`', members: TOOLS },
    { name: 'custom `tools` of free text', members: custom({ type: 'text' }) },
    {
      name: 'custom `tools` with a grammar',
      members: custom({ type: 'grammar', syntax: 'regex', definition: 'a+' }),
    },
    {
      name: '`tools` in a namespace',
      members: { tools: [{ type: 'namespace', name: 'kit', tools: [TOOL] }] },
    },
    {
      name: 'tools that the client runs: `local_shell`, `shell`, `apply_patch`, `tool_search` with `execution: client`',
      members: {
        tools: [
          ...['local_shell', 'shell', 'apply_patch'].map((type) => ({ type })),
          { type: 'tool_search', execution: 'client' },
        ],
      },
    },
    {
      name: 'calls and results of such tools, sent back',
      members: { ...SHELL, input: [LOOK, ...SHELL_TURN] },
      base: { ...SHELL, input: [LOOK] },
    },
    { name: 'tools that OpenAI runs', members: { tools: [TOOL, SEARCH] }, base: TOOLS },
    {
      name: '`tool_choice`: required',
      members: { ...TOOLS, tool_choice: 'required' },
      base: TOOLS,
    },
    {
      name: '`tool_choice`: one function',
      members: { ...TOOLS, tool_choice: { type: 'function', name: 'paint' } },
      base: TOOLS,
    },
    {
      name: '`tool_choice`: a tool that OpenAI runs',
      members: { tools: [SEARCH], tool_choice: SEARCH },
      base: { tools: [SEARCH] },
    },
    {
      name: '`parallel_tool_calls`: false',
      members: { ...TOOLS, parallel_tool_calls: false },
      base: TOOLS,
    },
    { name: 'the result of a call', members: result('Done.'), base: result('') },
    {
      name: 'an image in a result',
      members: result([{ type: 'input_image', image_url: `data:image/png;base64,${PNG}` }]),
      base: result(''),
    },
    {
      name: 'reasoning that OpenAI has sealed, sent back',
      members: afterReply({ type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'c2ln' }, YES),
      base: afterReply(YES),
    },
    {
      name: "items of OpenAI's own tools, sent back",
      members: afterReply({ type: 'web_search_call', id: 'ws_1', status: 'completed' }, YES),
      base: afterReply(YES),
    },
  ],
}
