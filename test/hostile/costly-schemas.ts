/** Builds tools and JSON Schemas that grow when they are rewritten, for each place where a schema may be. */
import { body, many, record, tool, type Hostile } from './generate-bodies.js'

/** Schemas. */
export const SCHEMAS: readonly Hostile[] = [
  [
    'chained references',
    () => ({
      $ref: '#/$defs/d0',
      $defs: record(16_000, (at) => [`d${at}`, { properties: { a: { $ref: `#/$defs/d${at + 1}` } } }]),
    }),
  ],
  [
    'chained references at the top',
    () => ({
      $ref: '#/$defs/d0',
      $defs: record(16_000, (at) => [`d${at}`, { $ref: `#/$defs/d${at + 1}` }]),
    }),
  ],
  [
    'references in a ring',
    () => ({
      $ref: '#/$defs/d0',
      $defs: record(8_300, (at) => [
        `d${at}`,
        { properties: { a: { $ref: `#/$defs/d${(at + 1) % 8_300}` } } },
      ]),
    }),
  ],
  [
    'references of all to all',
    () => ({
      $ref: '#/$defs/d0',
      $defs: record(200, (at) => [`d${at}`, { anyOf: many(150, (to) => ({ $ref: `#/$defs/d${to}` })) }]),
    }),
  ],
  [
    'copies of a large definition',
    () => ({
      allOf: [{ $ref: '#/$defs/d' }, {}],
      properties: record(2_000, (at) => [`p${at}`, { allOf: [{ $ref: '#/$defs/d' }, {}] }]),
      $defs: {
        d: { type: 'object', properties: record(4_000, (at) => [`q${at}`, { type: 'string' }]) },
      },
    }),
  ],
  [
    'a growing union',
    () => ({
      anyOf: many(4_000, (at) => ({
        type: 'object',
        properties: { a: { const: `${'x'.repeat(100)}${at}` } },
      })),
    }),
  ],
  [
    'unions in unions',
    () => {
      let schema: unknown = { properties: { a: { const: 'x'.repeat(50_000) } } }
      for (let index = 0; index < 25; index += 1)
        schema = { properties: { a: { const: index } }, anyOf: [schema] }
      return schema
    },
  ],
  [
    'allOf of many',
    () => ({
      allOf: many(5_000, (at) => ({
        properties: { [`p${at}`]: { type: 'string' } },
        required: [`p${at}`],
      })),
    }),
  ],
  [
    'allOf of many that require the same',
    () => ({
      properties: {},
      anyOf: many(1_000, () => ({ required: many(100, (at) => `p${at}`) })),
    }),
  ],
  [
    '10,000 properties',
    () => ({
      type: 'object',
      properties: record(10_000, (at) => [`p${at}`, { type: 'string' }]),
      required: many(10_000, (at) => `p${at}`),
    }),
  ],
  [
    'doubling definitions',
    () => ({
      allOf: [{ $ref: '#/$defs/d39' }, {}],
      $defs: record(40, (at) => [
        `d${at}`,
        at === 0
          ? { properties: { a: {} } }
          : { allOf: [{ $ref: `#/$defs/d${at - 1}` }, { $ref: `#/$defs/d${at - 1}` }] },
      ]),
    }),
  ],
  ['an enumeration of 100,000 words', () => ({ enum: many(100_000, (at) => at) })],
  [
    'a keyword unknown to every upstream, 4 MiB',
    () => ({ type: 'object', 'x-note': 'lorem ipsum '.repeat(350_000) }),
  ],
].flatMap(([name, schema]) => {
  const made = schema as () => unknown
  return [
    { name: `tool: ${String(name)}`, make: () => body({ tools: [tool(made())] }) },
    {
      name: `strict tool: ${String(name)}`,
      make: () => body({ tools: [tool(made(), { strict: true })] }),
    },
    {
      name: `answer: ${String(name)}`,
      make: () =>
        body({
          response_format: {
            type: 'json_schema',
            json_schema: { name: 'n', schema: made(), strict: true },
          },
        }),
    },
  ]
})

/** Many tools. */
export const TOOLS: readonly Hostile[] = [
  {
    name: '1,024 tools',
    make: () =>
      body({
        tools: many(1_024, (at) => ({
          type: 'function',
          function: {
            name: `f${at}`,
            parameters: {
              type: 'object',
              properties: record(20, (p) => [`p${p}`, { type: 'string' }]),
            },
          },
        })),
      }),
  },
  {
    name: '1,024 tools, all allowed',
    make: () =>
      body({
        tools: many(1_024, (at) => ({ type: 'function', function: { name: `f${at}` } })),
        tool_choice: {
          type: 'allowed_tools',
          allowed_tools: {
            mode: 'auto',
            tools: many(1_024, (at) => ({ type: 'function', function: { name: `f${at}` } })),
          },
        },
      }),
  },
  {
    name: '1,024 tools that copy definitions',
    make: () =>
      body({
        tools: many(1_024, (at) => ({
          type: 'function',
          function: {
            name: `f${at}`,
            parameters: {
              allOf: [{ $ref: '#/$defs/d' }, {}],
              $defs: { d: { properties: record(20, (p) => [`p${p}`, {}]) } },
            },
          },
        })),
      }),
  },
]
