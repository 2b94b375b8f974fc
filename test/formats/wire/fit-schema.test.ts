/**
 * Goal: the schema of a tool is one that the vendor takes, and the same object if it was one before.
 * Method: schemas of real tools, for each set of rules.
 */
import t from 'tap'
import type { JsonObject } from '../../../src/base/json.js'
import { SCHEMA_RULES } from '../../../src/formats/vendors.js'
import { fitReplySchema, fitSchema } from '../../../src/formats/wire/fit-schema.js'

function fitted(schema: JsonObject, vendor: keyof typeof SCHEMA_RULES): [JsonObject, string[]] {
  const lost: string[] = []
  const losses = { drop: (path: string): void => void lost.push(path) }
  return [fitSchema(schema, SCHEMA_RULES[vendor], { losses }), lost]
}

void t.test('OpenAI gets arrays with items and an object as root', (t) => {
  const array = { type: 'object', properties: { k: { type: ['array', 'null'] }, items: { type: 'string' } } }
  t.same(fitted(array, 'openai'), [
    {
      type: 'object',
      properties: { k: { type: ['array', 'null'], items: {} }, items: { type: 'string' } },
    },
    [],
  ])
  t.equal(fitted(array, 'anthropic')[0], array)
  const variants = {
    anyOf: [
      { type: 'object', properties: { a: { type: 'string' } } },
      { type: 'object', properties: { b: { type: 'array' } } },
    ],
  }
  const [root, lost] = fitted(variants, 'openai')
  t.same(root, {
    type: 'object',
    properties: { a: { type: 'string' }, b: { type: 'array', items: {} } },
    required: [],
  })
  t.same(lost, ['tools.parameters'])
  t.same(fitted({ properties: {} }, 'openai'), [{ properties: {}, type: 'object' }, []])
  const plain = { type: 'object', properties: { a: { type: 'array', items: { type: 'string' } } } }
  t.equal(fitted(plain, 'openai')[0], plain)
  t.end()
})

void t.test('tuples and bounds of earlier drafts become those of draft 2020-12', (t) => {
  for (const vendor of ['openai', 'anthropic', 'bedrock'] as const) {
    const pair = { type: 'array', items: [{ type: 'string' }, { type: 'number' }] }
    const parameters = {
      type: 'object',
      properties: {
        open: { ...pair, additionalItems: { type: 'null' } },
        closed: { ...pair, additionalItems: false },
        bound: { type: 'number', minimum: 1, exclusiveMinimum: true },
      },
    }
    const [schema] = fitted(parameters, vendor)
    const prefixItems = pair.items
    t.match(schema, {
      properties: {
        open: { prefixItems, items: { type: 'null' } },
        closed: { prefixItems, maxItems: 2 },
        bound: { exclusiveMinimum: 1 },
      },
    })
    t.notMatch(JSON.stringify(schema), 'additionalItems')
  }
  t.end()
})

void t.test('keywords of every draft are searched, and those of the value null are absent', (t) => {
  const list = { type: 'array' }
  const whole = { type: 'array', items: {} }
  const of = (array: JsonObject): JsonObject => ({
    type: 'object',
    properties: {
      a: { type: 'object', unevaluatedProperties: array },
      b: { not: { unevaluatedItems: array } },
    },
    dependencies: { a: { properties: { c: array } }, b: ['a'] },
  })
  t.same(fitted(of(list), 'openai'), [of(whole), []])
  t.same(fitted(of(list), 'anthropic'), [of(list), []])
  const empty = { description: null, required: null }
  const properties = { a: { type: 'array', items: null, enum: null }, n: { const: null, default: null } }
  const given = { type: 'object', ...empty, properties }
  t.same(fitted(given, 'anthropic'), [
    { type: 'object', properties: { a: list, n: { const: null, default: null } } },
    [],
  ])
  t.same(fitted(given, 'openai')[0].properties, { a: whole, n: { const: null, default: null } })
  t.end()
})

void t.test('the schema of a reply for OpenAI is fitted too, unless its root is no object', (t) => {
  const lost: string[] = []
  const losses = { drop: (path: string): void => void lost.push(path) }
  const reply = (schema: JsonObject): JsonObject => fitReplySchema(schema, SCHEMA_RULES.openai, losses)
  t.same(reply({ type: 'object', properties: { a: { type: 'array' } } }), {
    type: 'object',
    properties: { a: { type: 'array', items: {} } },
  })
  t.same(lost, [])
  const list = { type: 'array', items: { type: 'array' } }
  t.equal(reply(list), list)
  t.same(reply({ anyOf: [{ type: 'object', properties: { a: { type: 'string' } } }] }), {
    type: 'object',
    properties: { a: { type: 'string' } },
    required: [],
  })
  t.same(lost, ['response_format'])
  t.end()
})
