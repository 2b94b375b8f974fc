/**
 * Goal: the schema of a tool is one that the vendor takes, and the same object if it was one before.
 * Method: schemas of real tools, for each set of rules.
 */
import t from 'tap'
import type { JsonObject } from '../../../src/base/json.js'
import { SCHEMA_RULES } from '../../../src/formats/vendors.js'
import { fitSchema } from '../../../src/formats/wire/fit-schema.js'

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
