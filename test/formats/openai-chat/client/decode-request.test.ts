/**
 * Goal: each rule of a plain field accepts values at its limits, and names the field of values beyond them.
 * Method: one table row per rule with values that pass and values that fail.
 */
import t from 'tap'
import type { JsonValue } from '../../../../src/base/json.js'
import { check, type Rule } from '../check-rules.js'

const long = (length: number): string => 'x'.repeat(length)

const integers: [JsonValue, string][] = [
  ['1', ''],
  [1.5, ''],
  [true, ''],
  [{}, ''],
]
const RULES: Rule[] = [
  {
    field: 'model',
    good: ['m', long(256), 'é'.repeat(128)],
    bad: [
      [undefined, 'model'],
      [null, 'model'],
      ['', 'model'],
      [1, 'model'],
      [['m'], 'model'],
    ],
    message: 'model must be a non-empty string',
  },
  {
    field: 'model',
    good: [],
    bad: [
      [long(257), 'model'],
      ['é'.repeat(129), 'model'],
      [long(1_000_000), 'model'],
    ],
    message: 'model must be at most 256 bytes',
  },
  {
    field: 'model',
    good: ['gpt-4.1', 'org/modèle:7b', '模型', '\u{1F600}'],
    bad: [
      ...['\0', '\t', '\n', '\u001b[2J', '\u001f', '\u007f', '\u0080', '\u009b2J', '\u009f'],
      ...['\u061c', '\u200e', '\u200f', '\u202a', '\u202e', '\u2066', '\u2069'],
      ...['\u2028', '\u2029'],
    ].map((control): [string, string] => [`gpt-${control}4`, 'model']),
    message: 'model must not contain control characters, bidirectional marks or line separators',
  },
  {
    field: 'messages',
    good: [[{ role: 'user', content: 'x' }]],
    bad: [
      [undefined, ''],
      [null, ''],
      [[], ''],
      ['x', ''],
      [{}, ''],
    ],
    message: 'messages must be a non-empty array',
  },
  {
    field: 'messages',
    good: [Array.from({ length: 10_000 }, () => ({ role: 'user', content: 'x' }))],
    bad: [[Array.from({ length: 10_001 }, () => ({ role: 'user', content: 'x' })), '']],
    message: 'messages must have at most 10000 items',
  },
  {
    field: 'stream',
    good: [true, false, null],
    bad: [
      ['true', ''],
      [1, ''],
      [{}, ''],
    ],
    message: 'stream must be true or false',
  },
  {
    field: 'temperature',
    good: [0, -0, 0.7, 2, null],
    bad: [
      [-0.1, ''],
      [2.1, ''],
      ['1', ''],
      [true, ''],
      [Infinity, ''],
    ],
    message: 'temperature must be a number between 0 and 2',
  },
  {
    field: 'top_p',
    good: [0, 1, null],
    bad: [
      [-0.01, ''],
      [1.01, ''],
      ['1', ''],
    ],
    message: 'top_p must be a number between 0 and 1',
  },
  {
    field: 'max_tokens',
    good: [1, 1_000_000, null],
    bad: [[0, ''], [-1, ''], ...integers],
    message: 'max_tokens must be an integer of at least 1',
  },
  {
    field: 'max_completion_tokens',
    good: [1, null],
    bad: [[0, ''], ...integers],
    message: 'max_completion_tokens must be an integer of at least 1',
  },
  {
    field: 'stop',
    good: ['x', [], ['a', 'b', 'c', 'd'], null],
    bad: [
      [1, ''],
      [['a', 'b', 'c', 'd', 'e'], ''],
      [{}, ''],
    ],
    message: 'stop must be a string or an array of at most 4 strings',
  },
  { field: 'stop', good: [], bad: [[['a', 1], 'stop[1]']], message: 'stop[1] must be a string' },
  {
    field: 'n',
    good: [1, 128, null],
    bad: [[0, ''], [129, ''], ...integers],
    message: 'n must be an integer between 1 and 128',
  },
  {
    field: 'seed',
    good: [0, -5, 2 ** 53],
    bad: [
      [0.5, ''],
      [1e20, ''],
      ['1', ''],
    ],
    message: 'seed must be an integer between -9223372036854775808 and 9223372036854775808',
  },
  ...['frequency_penalty', 'presence_penalty'].map((field): Rule => {
    const message = `${field} must be a number between -2 and 2`
    return {
      field,
      good: [-2, 0, 2, null],
      bad: [
        [-2.1, ''],
        [2.1, ''],
        ['0', ''],
      ],
      message,
    }
  }),
  {
    field: 'logprobs',
    good: [true, false, null],
    bad: [
      [1, ''],
      ['true', ''],
    ],
    message: 'logprobs must be true or false',
  },
  {
    field: 'top_logprobs',
    good: [0, 20, null],
    bad: [[-1, ''], [21, ''], ...integers],
    message: 'top_logprobs must be an integer between 0 and 20',
  },
  {
    field: 'parallel_tool_calls',
    good: [true, false, null],
    bad: [['no', '']],
    message: 'parallel_tool_calls must be true or false',
  },
  {
    field: 'reasoning_effort',
    good: ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max', null],
    bad: [
      ['most', ''],
      [1, ''],
    ],
    message: 'reasoning_effort must be one of none, minimal, low, medium, high, xhigh, max',
  },
  {
    field: 'verbosity',
    good: ['low', 'medium', 'high', null],
    bad: [['loud', '']],
    message: 'verbosity must be one of low, medium, high',
  },
  {
    field: 'stream_options',
    good: [{}, { include_usage: true }, { include_usage: null, include_obfuscation: false }, null],
    bad: [[true, '']],
    message: 'stream_options must be an object',
  },
  {
    field: 'stream_options',
    good: [],
    bad: [[{ include_usage: 'yes' }, 'stream_options.include_usage']],
    message: 'stream_options.include_usage must be true or false',
  },
  {
    field: 'stream_options',
    good: [],
    bad: [[{ include_obfuscation: 1 }, 'stream_options.include_obfuscation']],
    message: 'stream_options.include_obfuscation must be true or false',
  },
  { field: 'user', good: ['u', null], bad: [[1, '']], message: 'user must be a string' },
  {
    field: 'safety_identifier',
    good: [long(128), null],
    bad: [[long(129), '']],
    message: 'safety_identifier must be at most 128 characters',
  },
  {
    field: 'service_tier',
    good: ['auto', 'default', 'flex', 'scale', 'priority', 'fast', null],
    bad: [['gold', '']],
    message: 'service_tier must be one of auto, default',
  },
  {
    field: 'logit_bias',
    good: [{}, { '50256': -100, '1': 100 }, null],
    bad: [
      [[], ''],
      ['x', ''],
    ],
    message: 'logit_bias must be an object',
  },
  {
    field: 'logit_bias',
    good: [],
    bad: [
      [{ '7': 101 }, 'logit_bias.7'],
      [{ '7': '1' }, 'logit_bias.7'],
    ],
    message: 'logit_bias.7 must be a number between -100 and 100',
  },
  {
    field: 'logit_bias',
    good: [],
    bad: [[{ word: 1 }, '']],
    message: 'logit_bias must have token numbers as its keys',
  },
  {
    field: 'metadata',
    good: [{}, { [long(64)]: long(512) }, null],
    bad: [[Object.fromEntries(Array.from({ length: 17 }, (_, at) => [`k${at}`, 'v'])), '']],
    message: 'metadata must have at most 16 keys',
  },
  {
    field: 'metadata',
    good: [],
    bad: [[{ [long(65)]: 'v' }, '']],
    message: 'metadata must have keys of at most 64 characters',
  },
  {
    field: 'metadata',
    good: [],
    bad: [
      [{ k: 1 }, 'metadata.k'],
      [{ k: long(513) }, 'metadata.k'],
    ],
    message: 'metadata.k must be a string of at most 512 characters',
  },
  {
    field: 'modalities',
    good: [['text'], ['text', 'audio'], ['text', 'image'], null],
    bad: [[[7], 'modalities[0]']],
    message: 'modalities[0] must be a non-empty string',
  },
  ...['audio', 'prediction', 'web_search_options', 'moderation', 'prompt_cache_options'].map(
    (field): Rule => {
      return {
        field,
        good: [{}, null],
        bad: [
          ['x', ''],
          [[], ''],
        ],
        message: `${field} must be an`,
      }
    },
  ),
  {
    field: 'prediction',
    good: [],
    bad: [[{ content: [1, { x: Infinity }] }, '']],
    message: 'prediction must not contain a number beyond the range of a double',
  },
  { field: 'store', good: [true, false, null], bad: [['yes', '']], message: 'store must be true' },
  ...['prompt_cache_key', 'prompt_cache_retention'].map((field): Rule => {
    return { field, good: ['x', null], bad: [[1, '']], message: `${field} must be a string` }
  }),
  ...['api_base', 'api_key', 'base_url', 'custom_host', 'extra_headers', 'fallbacks'].map((field): Rule => {
    const message = `${field} is not allowed: the gateway chooses the upstream`
    return {
      field,
      good: [null],
      bad: [
        ['http://canary.invalid', ''],
        [{}, ''],
      ],
      message,
    }
  }),
]

check(t, RULES)
