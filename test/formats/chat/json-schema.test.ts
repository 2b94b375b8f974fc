/**
 * Goal: values that violate their schema are detected, valid ones are accepted, and the cost is bounded.
 * Method: a table of schemas with valid and invalid values for each rule.
 */
import t from 'tap'
import type { JsonObject, JsonValue } from '../../../src/base/json.js'
import { satisfies } from '../../../src/formats/chat/json-schema.js'

const node: JsonObject = {
  type: 'object',
  properties: { name: { type: 'string' }, below: { type: 'array', items: { $ref: '#' } } },
  required: ['name'],
  additionalProperties: false,
}
const TABLE: [schema: JsonObject, good: JsonValue[], bad: JsonValue[]][] = [
  [{}, [null, 1, 'x', [], {}], []],
  [{ type: 'string' }, ['', 'x'], [1, null, [], {}]],
  [{ type: 'integer' }, [1, -0, 2.0], [1.5, '1', true]],
  [{ type: 'number' }, [1.5], ['1']],
  [{ type: ['string', 'null'] }, ['x', null], [1]],
  [{ type: 'array' }, [[]], [{}]],
  [{ type: 'object' }, [{}], [[], null]],
  [{ enum: ['a', 1, null, { x: 1 }] }, ['a', 1, null, { x: 1 }], ['b', 2, { x: 2 }]],
  [{ const: 'ship' }, ['ship'], ['boat']],
  [{ minimum: 1, maximum: 3 }, [1, 3, 'x'], [0.9, 3.1]],
  [{ exclusiveMinimum: 1, exclusiveMaximum: 3 }, [2], [1, 3]],
  [{ multipleOf: 0.1 }, [0.3, 7], [0.35]],
  [{ minLength: 2, maxLength: 3 }, ['ab', '🦊🦊🦊', 5], ['a', 'abcd']],
  [{ minItems: 1, maxItems: 2 }, [[1]], [[], [1, 2, 3]]],
  [{ minProperties: 1, maxProperties: 1 }, [{ a: 1 }], [{}, { a: 1, b: 2 }]],
  [{ items: { type: 'string' } }, [['a'], []], [['a', 1]]],
  [{ prefixItems: [{ type: 'string' }], items: false }, [['a']], [[1], ['a', 'b']]],
  [{ anyOf: [{ type: 'string' }, { minimum: 5 }] }, ['x', 5], [4]],
  [{ oneOf: [{ const: 1 }, { const: 2 }] }, [1, 2], [3]],
  [{ allOf: [{ minimum: 1 }, { maximum: 2 }] }, [1, 2], [0, 3]],
  [{ not: { type: 'string' } }, [1], ['x']],
  [{ required: ['a'] }, [{ a: null }, 'x'], [{}, { b: 1 }]],
  [{ properties: { a: { type: 'string' } } }, [{ a: 'x', b: 1 }, {}], [{ a: 1 }]],
  [{ additionalProperties: false, properties: { a: {} } }, [{ a: 1 }], [{ b: 1 }]],
  [{ additionalProperties: { type: 'integer' } }, [{ b: 1 }], [{ b: 'x' }]],
  [{ additionalProperties: false, patternProperties: { '^x': {} } }, [{ x1: 1 }], []],
  [{ $ref: '#/$defs/a', $defs: { a: { type: 'string' } } }, ['x'], [1]],
  [{ $ref: '#/$defs/none' }, [1], []],
  [{ $ref: 'https://schemas.example/x' }, [1], []],
  [node, [{ name: 'a', below: [{ name: 'b', below: [] }] }], [{ name: 'a', below: [{}] }]],
  [{ pattern: '(a+)+$', format: 'email' }, [`${'a'.repeat(50)}!`], []],
]

for (const [schema, good, bad] of TABLE) {
  void t.test(JSON.stringify(schema).slice(0, 80), (t) => {
    for (const value of good) t.equal(satisfies(value, schema), true, JSON.stringify(value))
    for (const value of bad) t.equal(satisfies(value, schema), false, JSON.stringify(value))
    t.end()
  })
}

void t.test('the validation of a recursive schema ends', (t) => {
  t.equal(satisfies(1, { anyOf: [{ $ref: '#' }, { $ref: '#' }] }), true)
  t.equal(satisfies(1, { $ref: '#' }), true)
  t.end()
})
