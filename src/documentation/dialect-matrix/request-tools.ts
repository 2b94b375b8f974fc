/** Tools of a chat request, one fragment per concept. Data for `docs/reference/dialects.md`. */
import type { JsonObject } from '../../chat/json.js'
import type { RequestGroup } from './concepts.js'
import { FUNCTION, HELLO, OTHER, PNG, SCHEMA, TOOLS } from './request-fragments.js'

const CALL: JsonObject = {
  role: 'assistant',
  content: null,
  tool_calls: [
    { id: 'call_1', type: 'function', function: { name: 'paint', arguments: '{"colour":"red"}' } },
  ],
}
const RESULT: JsonObject = { role: 'tool', tool_call_id: 'call_1', content: 'done' }

/** In the order of the page. */
export const TOOLS_GROUP: readonly RequestGroup[] = [
  {
    title: 'Tools',
    concepts: [
      { name: 'functions', members: { tools: [FUNCTION] } },
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
      },
      {
        name: 'custom tools (free text)',
        members: { tools: [{ type: 'custom', custom: { name: 'note' } }] },
        emulated: {
          anthropic: 'a function with one text parameter, taken apart again',
          gemini: 'a function with one text parameter, taken apart again',
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
      },
      {
        name: '`tool_choice`: one function',
        base: TOOLS,
        members: { tool_choice: { type: 'function', function: { name: 'paint' } } },
        emulated: {
          anthropic:
            'if the model cannot be forced, only that tool is offered, and the reply is checked as for `required`',
        },
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
        emulated: { anthropic: 'only those tools are offered' },
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
      },
      { name: '`web_search_options`', members: { web_search_options: {} } },
    ],
  },
]
