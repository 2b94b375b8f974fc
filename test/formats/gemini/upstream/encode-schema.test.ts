/**
 * Goal: a schema for Gemini has only supported keywords and allows at least the values of the original.
 * Method: one schema per keyword that is changed, cycles, depth, and the schemas of the recordings.
 */
import t from 'tap'
import type { JsonObject, JsonValue } from '../../../../src/base/json.js'
import { isObject } from '../../../../src/base/json.js'
import { relaxSchema } from '../../../../src/formats/gemini/upstream/encode-schema.js'

const KNOWN = new Set(
  (
    '$defs $ref type title description format enum items prefixItems minItems maxItems minimum ' +
    'maximum anyOf properties required additionalProperties'
  ).split(' '),
)

/** Every keyword of a schema, without the names of properties and definitions. */
function keywords(schema: JsonValue | undefined, found = new Set<string>()): Set<string> {
  if (!isObject(schema)) return found
  for (const [key, value] of Object.entries(schema)) {
    found.add(key)
    const inner =
      (key === 'properties' || key === '$defs') && isObject(value)
        ? Object.values(value)
        : Array.isArray(value)
          ? value
          : [value]
    for (const item of inner) keywords(item, found)
  }
  return found
}

const TABLE: [string, JsonObject, JsonObject][] = [
  ['nothing', {}, {}],
  ['type arrays stay', { type: ['string', 'null'] }, { type: ['string', 'null'] }],
  ['unknown types go', { type: 'date' }, {}],
  [
    'a closed tuple',
    { type: 'array', prefixItems: [{ type: 'string' }], items: false },
    { type: 'array', prefixItems: [{ type: 'string' }], maxItems: 1 },
  ],
  ['no items', { type: 'array', items: false, maxItems: 3 }, { type: 'array', maxItems: 0 }],
  ['nullable', { type: 'string', nullable: true }, { type: ['string', 'null'] }],
  ['const', { const: 'a' }, { enum: ['a'] }],
  ['const true', { const: true }, { type: 'boolean' }],
  ['const null', { const: null }, { type: 'null' }],
  ['const object', { const: {} }, {}],
  ['enum', { type: 'string', enum: ['a', 'b'] }, { type: 'string', enum: ['a', 'b'] }],
  [
    'enum with null',
    { type: ['string', 'null'], enum: ['a', null], description: 'd' },
    { anyOf: [{ type: 'string', enum: ['a'] }, { type: 'null' }], description: 'd' },
  ],
  ['enum with objects', { enum: ['a', {}] }, {}],
  ['oneOf', { oneOf: [{ type: 'string' }, true] }, { anyOf: [{ type: 'string' }, {}] }],
  [
    'pattern',
    { type: 'string', pattern: '^a', description: 'd' },
    { type: 'string', description: 'd\nMust match the pattern ^a' },
  ],
  [
    'exclusive integers',
    { type: 'integer', exclusiveMinimum: 0, exclusiveMaximum: 9.5 },
    { type: 'integer', minimum: 1, maximum: 9 },
  ],
  ['exclusive numbers', { type: 'number', exclusiveMinimum: 0, minimum: -1 }, { type: 'number', minimum: 0 }],
  [
    'draft 4 exclusive',
    { type: 'number', minimum: 1, exclusiveMinimum: true },
    { type: 'number', minimum: 1 },
  ],
  [
    'dropped',
    {
      $schema: 's',
      $id: 'i',
      default: 1,
      examples: [],
      minLength: 1,
      uniqueItems: true,
      not: {},
      if: {},
      multipleOf: 2,
    },
    {},
  ],
  ['tuples', { items: [{ const: 1 }] }, { prefixItems: [{ enum: [1] }] }],
  [
    'arrays',
    { type: 'array', items: { const: 1 }, minItems: 1 },
    { type: 'array', minItems: 1, items: { enum: [1] } },
  ],
  [
    'required names exist',
    { properties: { a: {} }, required: ['a', 'b', 3] },
    { properties: { a: {} }, required: ['a'] },
  ],
  [
    'closed',
    { properties: {}, additionalProperties: false },
    { properties: {}, additionalProperties: false },
  ],
  ['closed with patterns', { patternProperties: { '^x': {} }, additionalProperties: false }, {}],
  ['open map', { additionalProperties: { const: 1 } }, { additionalProperties: { enum: [1] } }],
  ['foreign reference', { $ref: 'https://x/y' }, {}],
  ['dangling reference', { $ref: '#/$defs/no' }, {}],
  [
    'siblings of a reference',
    {
      properties: { a: { $ref: '#/definitions/A', description: 'd' } },
      definitions: { A: { type: 'string' } },
    },
    { properties: { a: { $ref: '#/$defs/A' } }, $defs: { A: { type: 'string' } } },
  ],
  [
    'allOf of one reference',
    { properties: { a: { allOf: [{ $ref: '#/$defs/A' }], description: 'd' } }, $defs: { A: {} } },
    { properties: { a: { $ref: '#/$defs/A' } }, $defs: { A: {} } },
  ],
  [
    'allOf merges',
    {
      type: 'object',
      properties: { a: {} },
      required: ['a'],
      allOf: [
        { $ref: '#/$defs/B' },
        { allOf: [{ properties: { c: { const: 1 } } }], additionalProperties: false },
      ],
      $defs: { B: { properties: { b: {} }, required: ['b'] } },
    },
    {
      type: 'object',
      properties: { c: { enum: [1] }, b: {}, a: {} },
      required: ['a', 'b'],
      $defs: { B: { properties: { b: {} }, required: ['b'] } },
    },
  ],
]

void t.test('each keyword is copied, relaxed or dropped', (t) => {
  for (const [name, schema, expected] of TABLE) {
    const before = JSON.stringify(schema)
    t.strictSame(relaxSchema(schema), expected, name)
    t.equal(JSON.stringify(schema), before, `${name}: the original is left alone`)
    t.strictSame(
      [...keywords(relaxSchema(schema))].filter((key) => !KNOWN.has(key)),
      [],
      `${name}: only known keywords`,
    )
  }
  t.end()
})

void t.test('the properties of a cycle are optional', (t) => {
  const node = { type: 'object', properties: { next: { $ref: '#/$defs/Node' }, id: {} } }
  t.strictSame(
    relaxSchema({ $ref: '#/$defs/Node', $defs: { Node: { ...node, required: ['next', 'id'] } } }),
    { $ref: '#/$defs/Node', $defs: { Node: { ...node, required: ['id'] } } },
    'a required property that leads back becomes optional',
  )
  t.strictSame(
    relaxSchema({
      $ref: '#/$defs/L',
      $defs: { L: { type: 'array', items: { $ref: '#/$defs/L' } } },
    }),
    { $ref: '#/$defs/L', $defs: { L: { type: 'array', items: {} } } },
    'with no property in between it becomes anything',
  )
  t.strictSame(
    relaxSchema({
      properties: { a: { $ref: '#/$defs/A' } },
      required: ['a'],
      $defs: {
        A: { properties: { b: { $ref: '#/$defs/B' } }, required: ['b'] },
        B: {
          properties: { list: { type: 'array', items: { $ref: '#/$defs/A' } } },
          required: ['list'],
        },
      },
    }),
    {
      properties: { a: { $ref: '#/$defs/A' } },
      required: ['a'],
      $defs: {
        A: { properties: { b: { $ref: '#/$defs/B' } } },
        B: { properties: { list: { type: 'array', items: { $ref: '#/$defs/A' } } } },
      },
    },
    'a cycle of two definitions; the property that leads to it stays required',
  )
  t.strictSame(relaxSchema({ properties: { me: { $ref: '#' } }, required: ['me'] }), {
    properties: { me: { $ref: '#' } },
  })
  t.strictSame(relaxSchema({ allOf: [{ $ref: '#' }, { type: 'object' }] }), { type: 'object' })
  const loop = {
    $defs: { A: { allOf: [{ $ref: '#/$defs/B' }, {}] }, B: { allOf: [{ $ref: '#/$defs/A' }, {}] } },
  }
  t.strictSame(relaxSchema(loop), { $defs: { A: {}, B: {} } }, 'allOf that never ends')
  t.end()
})

void t.test('deep schemas and unusual names are accepted', (t) => {
  let deep: JsonObject = { type: 'string' }
  for (let level = 0; level < 3000; level += 1) deep = { type: 'array', items: deep }
  t.ok(JSON.stringify(relaxSchema(deep)).length < 3000, 'truncated at the maximum depth')
  let joined: JsonObject = { type: 'string' }
  for (let level = 0; level < 3000; level += 1) joined = { allOf: [joined, {}] }
  t.doesNotThrow(() => relaxSchema(joined))
  const doubling: JsonObject = { N0: { properties: { a: {} } } }
  for (let level = 1; level < 40; level += 1) {
    const below = { $ref: `#/$defs/N${level - 1}` }
    doubling[`N${level}`] = { allOf: [below, below] }
  }
  const grown = relaxSchema({ allOf: [{ $ref: '#/$defs/N39' }, {}], $defs: doubling })
  t.ok(JSON.stringify(grown).length < 10_000, 'copies of copies are bounded')
  const odd = JSON.parse('{"properties":{"__proto__":{"type":"string"},"constructor":{}}}') as JsonObject
  t.equal(JSON.stringify(relaxSchema(odd)), '{"properties":{"__proto__":{"type":"string"},"constructor":{}}}')
  t.end()
})
