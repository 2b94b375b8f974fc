/**
 * Goal: each rule of tools, tool choice and response format accepts values at its limits, and names the field
 * of others.
 * Method: one table row per rule with values that pass and values that fail.
 */
import t from 'tap'
import type { JsonValue } from '../../../../src/base/json.js'
import { check, type Rule } from '../check-rules.js'

const FN = { type: 'function', function: { name: 'f', parameters: { type: 'object' } } }
const CUSTOM = { type: 'custom', custom: { name: 'c' } }
const long = (length: number): string => 'x'.repeat(length)

const RULES: Rule[] = [
  {
    field: 'tools',
    good: [[], [FN], [CUSTOM], [FN, CUSTOM], null],
    bad: [
      ['x', ''],
      [{}, ''],
    ],
    message: 'tools must be an array',
  },
  {
    field: 'tools',
    good: [Array.from({ length: 1024 }, () => FN)],
    bad: [[Array.from({ length: 1025 }, () => FN), '']],
    message: 'tools must have at most 1024 items',
  },
  {
    field: 'tools',
    good: [],
    bad: [[[FN, { type: 'web' }], 'tools[1].type']],
    message: 'tools[1].type must be one of function, custom',
  },
  {
    field: 'tools',
    good: [long(512), 'a b', 'é'].map((name) => [{ type: 'function', function: { name } }]),
    bad: ['', 7, undefined].map((name) => [
      [{ type: 'function', function: name === undefined ? {} : { name } }],
      'tools[0].function.name',
    ]),
    message: 'tools[0].function.name must be a non-empty string',
  },
  ...(
    [
      ['parameters', [], 'must be an object'],
      ['parameters', { maximum: Infinity }, 'must not contain a number beyond'],
      ['strict', 'yes', 'must be true or false'],
      ['description', 7, 'must be a string'],
    ] as [string, JsonValue, string][]
  ).map(([key, value, message]): Rule => {
    const path = `tools[0].function.${key}`
    const tool = { type: 'function', function: { name: 'f', [key]: value } }
    return { field: 'tools', good: [], bad: [[[tool], path]], message: `${path} ${message}` }
  }),
  {
    field: 'tools',
    good: [[{ type: 'custom', custom: { name: 'c', format: { type: 'grammar', grammar: {} } } }]],
    bad: [
      [[{ type: 'custom', custom: { name: 'c', format: { type: 'x' } } }], 'tools[0].custom.format.type'],
    ],
    message: 'tools[0].custom.format.type must be one of text, grammar',
  },
  {
    field: 'tool_choice',
    good: [
      'auto',
      'none',
      'required',
      { type: 'function', function: { name: 'f' } },
      { type: 'custom', custom: { name: 'c' } },
      {
        type: 'allowed_tools',
        allowed_tools: { mode: 'auto', tools: [{ type: 'function', function: { name: 'f' } }] },
      },
      null,
    ],
    bad: [
      ['always', ''],
      ['', ''],
    ],
    message: 'tool_choice must be one of auto, none, required',
    members: { tools: [FN, CUSTOM] },
  },
  {
    field: 'tool_choice',
    good: ['auto', 'none'],
    bad: [
      ['required', ''],
      [{ type: 'function', function: { name: 'f' } }, ''],
    ],
    message: 'tool_choice needs at least one tool in tools',
  },
  {
    field: 'tool_choice',
    good: [],
    bad: [[{ type: 'function', function: { name: 'g' } }, '']],
    message: 'tool_choice names "g", which is not in tools',
    members: { tools: [FN] },
  },
  {
    field: 'tool_choice',
    good: [],
    bad: [
      [{ type: 'all' }, 'tool_choice.type'],
      [{}, 'tool_choice.type'],
    ],
    message: 'tool_choice.type must be one of function, custom, allowed_tools',
    members: { tools: [FN] },
  },
  {
    field: 'tool_choice',
    good: [],
    bad: [
      [
        { type: 'allowed_tools', allowed_tools: { mode: 'auto', tools: [] } },
        'tool_choice.allowed_tools.tools',
      ],
    ],
    message: 'tool_choice.allowed_tools.tools must name at least one tool',
    members: { tools: [FN] },
  },
  {
    field: 'functions',
    good: [[{ name: 'f' }], null],
    bad: [[[{ name: long(513) }], 'functions[0].name']],
    message: 'functions[0].name must be at most 512 characters',
  },
  {
    field: 'functions',
    good: [],
    bad: [[[{ name: 'f' }], '']],
    message: 'functions cannot be combined with tools',
    members: { tools: [FN] },
  },
  {
    field: 'function_call',
    good: ['auto', 'none', { name: 'f' }, null],
    bad: [['required', '']],
    message: 'function_call must be one of auto, none',
    members: { functions: [{ name: 'f' }] },
  },
  {
    field: 'function_call',
    good: [],
    bad: [[{ name: 'g' }, '']],
    message: 'function_call names "g", which is not in functions',
    members: { functions: [{ name: 'f' }] },
  },
  {
    field: 'function_call',
    good: [],
    bad: [['auto', '']],
    message: 'function_call cannot be combined with tool_choice',
    members: { tool_choice: 'auto' },
  },
  {
    field: 'response_format',
    good: [{ type: 'text' }, { type: 'json_object' }, null],
    bad: [
      [{ type: 'xml' }, 'response_format.type'],
      [{}, 'response_format.type'],
    ],
    message: 'response_format.type must be one of text, json_object, json_schema',
  },
  {
    field: 'response_format',
    good: [{ type: 'json_schema', json_schema: { name: 'n', schema: {}, strict: true } }],
    bad: [
      [
        { type: 'json_schema', json_schema: { name: 'n', schema: 'x' } },
        'response_format.json_schema.schema',
      ],
    ],
    message: 'response_format.json_schema.schema must be an object',
  },
  {
    field: 'response_format',
    good: [],
    bad: [[{ type: 'json_schema', json_schema: {} }, 'response_format.json_schema.name']],
    message: 'response_format.json_schema.name must be a non-empty string',
  },
]

check(t, RULES)
