/**
 * Requests made to cost as much as they can: deep, wide and repetitive, each at the limit of what is accepted, or
 * just beyond it. Knows no encoder.
 */

const MIB = 1024 * 1024
/** The largest body, with room for what stands around its content. */
const BODY = 32 * MIB - 64 * 1024
/** The most text beside inline data. */
const TEXT = 8 * MIB - 64 * 1024

/** A hostile body and its name. */
export interface Hostile {
  readonly name: string
  readonly make: () => string
}

type Json = Record<string, unknown>

function body(members: Json): string {
  return JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'Hi' }], ...members })
}

function said(content: string): string {
  return body({}).replace('"Hi"', `"${content}"`)
}

function fill(unit: string, bytes: number): string {
  return unit.repeat(Math.floor(bytes / Buffer.byteLength(unit)))
}

function image(data: string): Json {
  return { type: 'image_url', image_url: { url: `data:image/png;base64,${data}` } }
}

function many<T>(count: number, make: (at: number) => T): T[] {
  return Array.from({ length: count }, (_, at) => make(at))
}

function record(count: number, make: (at: number) => [string, unknown]): Json {
  return Object.fromEntries(many(count, make))
}

function tool(parameters: unknown, more: Json = {}): Json {
  return { type: 'function', function: { name: 'f', parameters, ...more } }
}

function call(at: number, json = '{}', prefix = 'c'): Json {
  return { id: `${prefix}${at}`, type: 'function', function: { name: 'f', arguments: json } }
}

/** One assistant turn with so many calls, and their results in the opposite order. */
function turn(count: number, json: string, result: string, prefix = 'c'): Json[] {
  const ids = many(count, (at) => at)
  return [
    { role: 'assistant', content: null, tool_calls: ids.map((at) => call(at, json, prefix)) },
    ...ids
      .reverse()
      .map((at) => ({ role: 'tool', tool_call_id: `${prefix}${at}`, content: result })),
  ]
}

const USER = { role: 'user', content: 'Hi' }

const STRINGS: Readonly<Record<string, string>> = {
  'plain words': 'lorem ipsum ',
  Cyrillic: 'я',
  Chinese: '漢',
  emoji: '😀',
  'one letter beyond ASCII in a hundred': `${'a'.repeat(98)}я`,
  'escaped quotes': '\\"',
  'escaped backslashes': '\\\\',
  'line feeds': '\\n',
  'escaped letters': '\\u0444',
  'escaped surrogates': '\\ud83d\\ude00',
}

function strings(): Hostile[] {
  return Object.entries(STRINGS).flatMap(([name, unit]) => [
    { name: `8 MiB of ${name}`, make: () => said(fill(unit, TEXT)) },
    { name: `32 MiB of ${name}`, make: () => said(fill(unit, BODY)) },
  ])
}

const LARGE: readonly Hostile[] = [
  {
    name: '32 MiB of an image',
    make: () => body({ messages: [{ role: 'user', content: [image('A'.repeat(BODY))] }] }),
  },
  {
    name: '20 MiB of images beside 4 MiB of Chinese',
    make: () =>
      body({
        messages: [
          {
            role: 'user',
            content: [
              { type: 'text', text: fill('漢', 4 * MIB) },
              ...many(20, () => image('A'.repeat(MIB))),
            ],
          },
        ],
      }),
  },
  {
    name: '32 MiB of a file with percent escapes',
    make: () => body({ messages: [{ role: 'user', content: [image(fill('%2B', BODY))] }] }),
  },
  {
    name: '32 MiB of an image in the other alphabet',
    make: () => body({ messages: [{ role: 'user', content: [image(fill('-_', BODY))] }] }),
  },
  { name: '32 MiB of text without a blank', make: () => said('a'.repeat(BODY)) },
  {
    name: '32 MiB in an argument',
    make: () => body({ messages: [USER, ...turn(1, 'a'.repeat(BODY), 'r')] }),
  },
  {
    name: '32 MiB in a schema',
    make: () => body({ tools: [tool({ default: 'a'.repeat(BODY) })] }),
  },
  { name: '32 MiB in an unknown field', make: () => body({ unknown: 'a'.repeat(BODY) }) },
  {
    name: '400 strings of 80 KiB',
    make: () =>
      body({ messages: many(400, () => ({ role: 'user', content: 'a'.repeat(80 * 1024) })) }),
  },
  {
    name: '32 MiB of text in a file',
    make: () =>
      body({
        messages: [
          {
            role: 'user',
            content: [
              {
                type: 'file',
                file: {
                  filename: 'a.txt',
                  file_data: `data:text/plain;base64,${Buffer.from(fill('я\n', 22 * MIB)).toString('base64')}`,
                },
              },
            ],
          },
        ],
      }),
  },
  {
    name: '32 MiB of an image that ends beyond ASCII',
    make: () =>
      body({ messages: [{ role: 'user', content: [image(`${'A'.repeat(BODY - 4)}я`)] }] }),
  },
]

const STRUCTURE: readonly Hostile[] = [
  {
    name: '500,000 names in one object',
    make: () => body({ metadata: record(500_000, (at) => [`k${at}`, 0]) }),
  },
  {
    name: '16,000 names in one object',
    make: () => body({ unknown: record(16_000, (at) => [`k${at}`, 0]) }),
  },
  {
    name: '16,000 numbers as names',
    make: () => body({ unknown: record(16_000, (at) => [`${at * 40_000}`, 0]) }),
  },
  {
    name: '16,000 escaped names',
    make: () =>
      body({}).replace(/\}$/, `,"u":{${many(16_000, (at) => `"\\u00e9${at}":0`).join()}}}`),
  },
  {
    name: '99,000 times one name',
    make: () => body({ unknown: many(99_000 / 3, () => ({ a: 0 })) }),
  },
  {
    name: '10,000 objects of one name each',
    make: () => body({ unknown: many(10_000, (at) => ({ [`k${at}`]: at })) }),
  },
  {
    name: 'a name twice at the end',
    make: () =>
      body({}).replace(/\}$/, `,"u":{${many(16_000, (at) => `"k${at}":0`).join()},"k0":0}}`),
  },
  {
    name: 'names of 500 bytes',
    make: () => body({ unknown: record(16_000, (at) => [`${'x'.repeat(490)}${at}`, 0]) }),
  },
  { name: '190,000 numbers', make: () => body({ unknown: many(190_000, () => 1) }) },
  {
    name: '190,000 numbers with an exponent',
    make: () => body({}).replace(/\}$/, `,"u":[${fill('1e5,', 190_000 * 4)}1]}`),
  },
  {
    name: '50,000 numbers of 150 digits',
    make: () => body({}).replace(/\}$/, `,"u":[${fill(`1.${'1'.repeat(150)},`, TEXT)}1]}`),
  },
  {
    name: 'one number of 32 MiB',
    make: () => body({}).replace(/\}$/, `,"u":${'1'.repeat(BODY)}}`),
  },
  { name: '190,000 strings', make: () => body({ unknown: many(190_000, () => 'a') }) },
  {
    name: '190,000 strings with escapes',
    make: () => body({ unknown: many(190_000, () => '"\\\n') }),
  },
  {
    name: '1,600 nests of 58 lists',
    make: () =>
      body({}).replace(
        /\}$/,
        `,"u":[${fill(`${'['.repeat(58)}${']'.repeat(58)},`, 1_600 * 117)}1]}`,
      ),
  },
  {
    name: '10 million lists in lists',
    make: () => body({}).replace(/\}$/, `,"u":${'['.repeat(10 * MIB)}`),
  },
  { name: '32 MiB of blanks', make: () => body({}).replace(/\}$/, `${' '.repeat(BODY)}}`) },
  {
    name: 'blanks between all tokens',
    make: () => body({}).replace(/\}$/, `,"u":[${fill(`${' '.repeat(80)}1,`, TEXT)}1]}`),
  },
  {
    name: 'a malformed number after 190,000 strings',
    make: () => body({}).replace(/\}$/, `,"u":[${fill('"a",', 190_000 * 4)}01]}`),
  },
  { name: 'a string without an end', make: () => said(fill('\\"', TEXT)).slice(0, -6) },
]

const TURNS: readonly Hostile[] = [
  { name: '10,000 messages', make: () => body({ messages: many(10_000, () => USER) }) },
  {
    name: '10,000 messages of two roles',
    make: () =>
      body({
        messages: many(10_000, (at) => ({
          role: at % 2 === 0 ? 'user' : 'assistant',
          content: 'Hi',
        })),
      }),
  },
  {
    name: '4,096 parts in a message',
    make: () =>
      body({
        messages: [{ role: 'user', content: many(4_096, () => ({ type: 'text', text: 'a' })) }],
      }),
  },
  {
    name: '24,000 parts in 6 messages',
    make: () =>
      body({
        messages: many(6, () => ({
          role: 'user',
          content: many(4_000, () => ({ type: 'text', text: 'a' })),
        })),
      }),
  },
  {
    name: '4,096 tool results',
    make: () =>
      body({ messages: [USER, ...many(4, (at) => turn(1_024, '{}', 'r', `t${at}-`)).flat()] }),
  },
  {
    name: '4,096 tool results with ids of 512 characters',
    make: () =>
      body({
        messages: [
          USER,
          ...many(4, (at) => turn(1_024, '{}', 'r', `${'é'.repeat(500)}${at}-`)).flat(),
        ],
      }),
  },
  {
    name: '1,000 calls with long integers',
    make: () =>
      body({
        messages: [USER, ...turn(1_000, '{"id":9007199254740993}', '{"id":9007199254740993}')],
      }),
  },
  {
    name: 'a result of 4 MiB of escaped quotes without an end',
    make: () =>
      body({
        messages: [USER, ...turn(1, '{}', `{"a":"1234567890123456789${fill('\\"', 2 * MIB)}`)],
      }),
  },
  {
    name: 'an argument of 160 KB of escaped quotes without an end',
    make: () =>
      body({
        messages: [USER, ...turn(1, `{"a":1234567890123456789,"b":"${fill('\\"', 160_000)}`, 'r')],
      }),
  },
  {
    name: 'a result of 600,000 names',
    make: () =>
      body({
        messages: [USER, ...turn(1, '{}', JSON.stringify(record(300_000, (at) => [`k${at}`, 0])))],
      }),
  },
  {
    name: 'an argument of 600,000 names',
    make: () =>
      body({
        messages: [USER, ...turn(1, JSON.stringify(record(300_000, (at) => [`k${at}`, 0])), 'r')],
      }),
  },
  {
    name: 'a result of a million lists in lists',
    make: () =>
      body({ messages: [USER, ...turn(1, '{}', `{"a":${'['.repeat(MIB)}${']'.repeat(MIB)}}`)] }),
  },
  {
    name: 'an argument of 300,000 long integers',
    make: () =>
      body({
        messages: [USER, ...turn(1, `{"a":[${fill('9007199254740993,', 300_000 * 17)}1]}`, 'r')],
      }),
  },
  { name: 'stop strings', make: () => body({ stop: many(190_000, () => 'a') }) },
  {
    name: '4,096 reasoning details',
    make: () =>
      body({
        messages: [
          USER,
          {
            role: 'assistant',
            content: 'a',
            reasoning_details: many(4_096, (at) => ({
              type: 'reasoning.encrypted',
              format: 'google-gemini-v1',
              data: `d${at}`,
            })),
          },
          USER,
        ],
      }),
  },
  { name: '30,000 biases', make: () => body({ logit_bias: record(16_000, (at) => [`${at}`, 0]) }) },
]

const SCHEMAS: readonly Hostile[] = [
  [
    'chained references',
    () => ({
      $ref: '#/$defs/d0',
      $defs: record(16_000, (at) => [
        `d${at}`,
        { properties: { a: { $ref: `#/$defs/d${at + 1}` } } },
      ]),
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
      $defs: record(12_000, (at) => [
        `d${at}`,
        { properties: { a: { $ref: `#/$defs/d${(at + 1) % 12_000}` } } },
      ]),
    }),
  ],
  [
    'references of all to all',
    () => ({
      $ref: '#/$defs/d0',
      $defs: record(200, (at) => [
        `d${at}`,
        { anyOf: many(150, (to) => ({ $ref: `#/$defs/d${to}` })) },
      ]),
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
      for (let at = 0; at < 25; at += 1)
        schema = { properties: { a: { const: at } }, anyOf: [schema] }
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
    'a keyword that no upstream knows, 4 MiB',
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

const TOOLS: readonly Hostile[] = [
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

/** All of them. */
export const HOSTILE: readonly Hostile[] = [
  ...strings(),
  ...LARGE,
  ...STRUCTURE,
  ...TURNS,
  ...SCHEMAS,
  ...TOOLS,
]
