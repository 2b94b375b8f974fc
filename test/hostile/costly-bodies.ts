/**
 * Builds requests with maximum processing cost: deep, wide and repetitive, each at an accepted limit or just
 * above it. Independent of encoders.
 */
import { body, fill, image, many, record, textBody, tool, turn, type Hostile } from './generate-bodies.js'
import { SCHEMAS, TOOLS } from './costly-schemas.js'

const MIB = 1024 * 1024
/** Maximum size of a body, minus room for the text around its content. */
const BODY = 32 * MIB - 64 * 1024
/** Maximum text beside inline data. */
const TEXT = 8 * MIB - 64 * 1024

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
    { name: `8 MiB of ${name}`, make: () => textBody(fill(unit, TEXT)) },
    { name: `32 MiB of ${name}`, make: () => textBody(fill(unit, BODY)) },
  ])
}

function besideImage(unit: string): string {
  const text = { type: 'text', text: fill(unit, TEXT) }
  return body({ messages: [{ role: 'user', content: [text, image('A'.repeat(23 * MIB))] }] })
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
            content: [{ type: 'text', text: fill('漢', 4 * MIB) }, ...many(20, () => image('A'.repeat(MIB)))],
          },
        ],
      }),
  },
  {
    name: '8 MiB of Chinese beside an image of 23 MiB',
    make: () => besideImage('漢'),
  },
  {
    name: '8 MiB of Chinese beside an image of 23 MiB, broken at its end',
    make: () => `${besideImage('漢').slice(0, -1)},}`,
  },
  {
    name: '32 MiB of a file with percent escapes',
    make: () => body({ messages: [{ role: 'user', content: [image(fill('%2B', BODY))] }] }),
  },
  {
    name: '32 MiB of an image in the other alphabet',
    make: () => body({ messages: [{ role: 'user', content: [image(fill('-_', BODY))] }] }),
  },
  { name: '32 MiB of text without a blank', make: () => textBody('a'.repeat(BODY)) },
  {
    name: '32 MiB in an argument',
    make: () => body({ messages: [USER, ...turn(1, { json: 'a'.repeat(BODY), result: 'r' })] }),
  },
  {
    name: '32 MiB in a schema',
    make: () => body({ tools: [tool({ default: 'a'.repeat(BODY) })] }),
  },
  { name: '32 MiB in an unknown field', make: () => body({ unknown: 'a'.repeat(BODY) }) },
  {
    name: '400 strings of 80 KiB',
    make: () => body({ messages: many(400, () => ({ role: 'user', content: 'a'.repeat(80 * 1024) })) }),
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
    make: () => body({ messages: [{ role: 'user', content: [image(`${'A'.repeat(BODY - 4)}я`)] }] }),
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
    make: () => body({}).replace(/\}$/, `,"u":{${many(16_000, (at) => `"\\u00e9${at}":0`).join()}}}`),
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
    make: () => body({}).replace(/\}$/, `,"u":{${many(16_000, (at) => `"k${at}":0`).join()},"k0":0}}`),
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
      body({}).replace(/\}$/, `,"u":[${fill(`${'['.repeat(58)}${']'.repeat(58)},`, 1_600 * 117)}1]}`),
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
  { name: 'a string without an end', make: () => textBody(fill('\\"', TEXT)).slice(0, -6) },
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
    name: '9,999 messages of 800 characters',
    make: () =>
      body({
        messages: many(9_999, (at) => ({
          role: at % 2 === 0 ? 'user' : 'assistant',
          content: 'x'.repeat(800),
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
      body({
        messages: [
          USER,
          ...many(4, (at) => turn(1_024, { json: '{}', result: 'r', prefix: `t${at}-` })).flat(),
        ],
      }),
  },
  {
    name: '4,096 tool results with ids of 512 characters',
    make: () =>
      body({
        messages: [
          USER,
          ...many(4, (at) =>
            turn(1_024, { json: '{}', result: 'r', prefix: `${'é'.repeat(500)}${at}-` }),
          ).flat(),
        ],
      }),
  },
  {
    name: '1,000 calls with long integers',
    make: () =>
      body({
        messages: [
          USER,
          ...turn(1_000, { json: '{"id":9007199254740993}', result: '{"id":9007199254740993}' }),
        ],
      }),
  },
  {
    name: 'a result of 4 MiB of escaped quotes without an end',
    make: () =>
      body({
        messages: [
          USER,
          ...turn(1, { json: '{}', result: `{"a":"1234567890123456789${fill('\\"', 2 * MIB)}` }),
        ],
      }),
  },
  {
    name: 'an argument of 160 KB of escaped quotes without an end',
    make: () =>
      body({
        messages: [
          USER,
          ...turn(1, {
            json: `{"a":1234567890123456789,"b":"${fill('\\"', 160_000)}`,
            result: 'r',
          }),
        ],
      }),
  },
  {
    name: 'a result of 600,000 names',
    make: () =>
      body({
        messages: [
          USER,
          ...turn(1, {
            json: '{}',
            result: JSON.stringify(record(300_000, (at) => [`k${at}`, 0])),
          }),
        ],
      }),
  },
  {
    name: 'an argument of 600,000 names',
    make: () =>
      body({
        messages: [
          USER,
          ...turn(1, { json: JSON.stringify(record(300_000, (at) => [`k${at}`, 0])), result: 'r' }),
        ],
      }),
  },
  {
    name: 'a result of a million lists in lists',
    make: () =>
      body({
        messages: [USER, ...turn(1, { json: '{}', result: `{"a":${'['.repeat(MIB)}${']'.repeat(MIB)}}` })],
      }),
  },
  {
    name: 'an argument of 300,000 long integers',
    make: () =>
      body({
        messages: [
          USER,
          ...turn(1, { json: `{"a":[${fill('9007199254740993,', 300_000 * 17)}1]}`, result: 'r' }),
        ],
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
  { name: 'parts of a vendor alone, after 9,900 messages', make: () => vendorParts(9_900) },
  { name: 'parts of a vendor alone, after 3,000 messages', make: () => vendorParts(3_000) },
  { name: '30,000 biases', make: () => body({ logit_bias: record(16_000, (at) => [`${at}`, 0]) }) },
]

/** Each part breaks a rule of the format that another vendor may not have. */
function vendorParts(before: number): string {
  const asked = many(before, () => ({
    role: 'user',
    content: [
      { type: 'text', text: 'a' },
      { type: 'text', text: 'b' },
    ],
  }))
  return body({
    messages: [...asked, ...many(31, (at) => ({ role: 'user', content: [{ type: `part_${at}` }] }))],
  })
}

/** All hostile bodies. */
export const HOSTILE: readonly Hostile[] = [
  ...strings(),
  ...LARGE,
  ...STRUCTURE,
  ...TURNS,
  ...SCHEMAS,
  ...TOOLS,
]
