/**
 * Concepts of Anthropic's messages: one fragment of a request per concept. Data for
 * `docs/reference/dialects.md`.
 */
import type { JsonObject } from '../../../src/base/json.js'
import type { ClientConcepts } from './client-concepts.js'
import { GEMINI } from './gemini-clients.js'
import { RESPONSES } from './responses-clients.js'

const TOOL: JsonObject = {
  name: 'get_tide',
  input_schema: { type: 'object', properties: { bay: { type: 'string' } } },
}
const SCHEMA: JsonObject = {
  type: 'object',
  properties: { colour: { type: 'string' } },
  required: ['colour'],
  additionalProperties: false,
}
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const PDF = 'JVBERi0xLjQKJeLjz9MKdHJhaWxlcjw8Pj4KJSVFT0YK'
const MARK = { type: 'ephemeral' }
const userContent = (...content: JsonObject[]): JsonObject => ({
  messages: [{ role: 'user', content: [{ type: 'text', text: 'Look.' }, ...content] }],
})
const afterReply = (...content: JsonObject[]): JsonObject => ({
  messages: [
    { role: 'user', content: 'Look.' },
    { role: 'assistant', content },
    { role: 'user', content: 'And now?' },
  ],
})
const result = (content: JsonObject): JsonObject => ({
  tools: [TOOL],
  messages: [
    { role: 'user', content: 'Look.' },
    {
      role: 'assistant',
      content: [{ type: 'tool_use', id: 'toolu_1', name: 'get_tide', input: {} }],
    },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', ...content }] },
  ],
})
const media = (type: string, source: JsonObject): JsonObject => userContent({ type, source })
const base64 = (media_type: string, data: string): JsonObject => ({
  type: 'base64',
  media_type,
  data,
})

const MESSAGES: ClientConcepts = {
  title: 'Messages (`POST /v1/messages`)',
  path: '/v1/messages',
  plain: { max_tokens: 1_000, messages: [{ role: 'user', content: 'Look.' }] },
  concepts: [
    { name: '`max_tokens`', members: { max_tokens: 500 } },
    { name: '`temperature`', members: { temperature: 0.5 } },
    { name: '`top_p`', members: { top_p: 0.5 } },
    { name: '`top_k`', members: { top_k: 5 } },
    { name: '`stop_sequences`', members: { stop_sequences: ['END'] } },
    { name: '`stream`', members: { stream: true } },
    {
      name: '`output_config.format`: a JSON schema',
      members: { output_config: { format: { type: 'json_schema', schema: SCHEMA } } },
    },
    {
      name: '`thinking` with a budget',
      members: { thinking: { type: 'enabled', budget_tokens: 2_000 }, max_tokens: 4_000 },
      base: { max_tokens: 4_000 },
    },
    { name: '`thinking`: adaptive', members: { thinking: { type: 'adaptive' } } },
    { name: '`thinking`: disabled', members: { thinking: { type: 'disabled' } } },
    { name: '`output_config.effort`', members: { output_config: { effort: 'low' } } },
    { name: '`metadata.user_id`', members: { metadata: { user_id: 'user-1' } } },
    { name: '`service_tier`: `standard_only`', members: { service_tier: 'standard_only' } },
    { name: '`speed`: `fast`', members: { speed: 'fast' } },
    { name: '`container`', members: { container: 'container_1' } },
    { name: '`context_management`', members: { context_management: { edits: [] } } },
    {
      name: '`mcp_servers`',
      members: { mcp_servers: [{ type: 'url', url: 'https://a.example', name: 'a' }] },
    },
    {
      name: '`system` as text or blocks',
      members: { system: [{ type: 'text', text: 'Be brief.' }] },
    },
    {
      name: 'a message of the role `system`',
      members: {
        messages: [
          { role: 'user', content: 'Look.' },
          { role: 'system', content: 'Be brief.' },
          { role: 'user', content: 'And now?' },
        ],
      },
      base: {
        messages: [
          { role: 'user', content: 'Look.' },
          { role: 'user', content: 'And now?' },
        ],
      },
    },
    { name: 'an image, as base64', members: media('image', base64('image/png', PNG)) },
    {
      name: 'an image, by URL',
      members: media('image', { type: 'url', url: 'https://a.example/a.png' }),
    },
    {
      name: "a file of Anthropic's Files API",
      members: media('document', { type: 'file', file_id: 'file_1' }),
    },
    { name: 'a PDF, as base64', members: media('document', base64('application/pdf', PDF)) },
    {
      name: 'a PDF, by URL',
      members: media('document', { type: 'url', url: 'https://a.example/a.pdf' }),
    },
    {
      name: 'a document of text',
      members: media('document', { type: 'text', media_type: 'text/plain', data: 'Tides.' }),
    },
    {
      name: "a document's `context`",
      members: userContent({
        type: 'document',
        source: base64('application/pdf', PDF),
        context: 'Of 1911.',
      }),
      base: media('document', base64('application/pdf', PDF)),
    },
    {
      name: 'citations of a document',
      members: userContent({
        type: 'document',
        source: base64('application/pdf', PDF),
        citations: { enabled: true },
      }),
      base: media('document', base64('application/pdf', PDF)),
    },
    {
      name: '`search_result` blocks',
      members: userContent({
        type: 'search_result',
        source: 'a',
        title: 'Tides',
        content: [{ type: 'text', text: 'High at noon.' }],
      }),
    },
    {
      name: '`container_upload` blocks',
      members: userContent({ type: 'container_upload', file_id: 'file_1' }),
    },
    {
      name: '`cache_control`',
      members: { system: [{ type: 'text', text: 'Be brief.', cache_control: MARK }] },
      base: { system: [{ type: 'text', text: 'Be brief.' }] },
    },
    { name: '`tools` with a schema', members: { tools: [TOOL] } },
    {
      name: '`strict` tools',
      members: { tools: [{ ...TOOL, input_schema: SCHEMA, strict: true }] },
      base: { tools: [{ ...TOOL, input_schema: SCHEMA }] },
    },
    {
      name: '`defer_loading` and `allowed_callers` of a tool',
      members: { tools: [{ ...TOOL, defer_loading: true }] },
      base: { tools: [TOOL] },
    },
    {
      name: 'tools that Anthropic runs',
      members: { tools: [TOOL, { type: 'web_search_20260209', name: 'web_search' }] },
      base: { tools: [TOOL] },
    },
    {
      name: '`tool_choice`: any',
      members: { tool_choice: { type: 'any' } },
      base: { tools: [TOOL] },
    },
    {
      name: '`tool_choice`: one tool',
      members: { tool_choice: { type: 'tool', name: 'get_tide' } },
      base: { tools: [TOOL] },
    },
    {
      name: '`tool_choice`: none',
      members: { tool_choice: { type: 'none' } },
      base: { tools: [TOOL] },
    },
    {
      name: '`disable_parallel_tool_use`',
      members: { tool_choice: { type: 'auto', disable_parallel_tool_use: true } },
      base: { tools: [TOOL] },
    },
    { name: 'the result of a call', members: result({ content: 'High.' }), base: result({}) },
    {
      name: '`is_error` of a result',
      members: result({ content: 'No.', is_error: true }),
      base: result({ content: 'No.' }),
    },
    {
      name: 'an image in a result',
      members: result({ content: [{ type: 'image', source: base64('image/png', PNG) }] }),
      base: result({}),
    },
    {
      name: 'thinking that Anthropic has signed, sent back',
      members: afterReply(
        { type: 'thinking', thinking: 'Hm.', signature: 'c2ln' },
        { type: 'text', text: 'Yes.' },
      ),
      base: afterReply({ type: 'text', text: 'Yes.' }),
    },
    {
      name: "blocks of Anthropic's own tools, sent back",
      members: afterReply(
        { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} },
        { type: 'text', text: 'Yes.' },
      ),
      base: afterReply({ type: 'text', text: 'Yes.' }),
    },
  ],
}

/** The client formats except chat completions. */
export const CLIENTS: readonly ClientConcepts[] = [MESSAGES, RESPONSES, GEMINI]
