/**
 * Goal: a schema is relaxed to the subset that the API enforces, or the problem is named.
 * Method: one keyword at a time, then cycles, deep nesting and definitions shared many times over.
 */
import t from 'tap'
import type { JsonObject } from '../../../src/base/json.js'
import { strictSchema, rootObject } from '../../../src/formats/wire/strict-schema.js'

function strict(property: JsonObject, more: JsonObject = {}): JsonObject {
  const strict = strictSchema({ type: 'object', properties: { p: property }, ...more })
  if (!('schema' in strict)) return { problem: strict.problem }
  const { properties } = strict.schema
  return (properties as Record<string, JsonObject>).p ?? {}
}

void t.test('objects are closed, oneOf is anyOf, and other keywords are in the description', (t) => {
  t.same(strict({ type: 'string', format: 'email' }), { type: 'string', format: 'email' })
  t.same(strict({ type: 'string', format: 'ssn' }), {
    type: 'string',
    description: 'Must satisfy format: "ssn".',
  })
  t.same(strict({ type: 'integer', minimum: 1, multipleOf: 2, description: 'N.' }), {
    type: 'integer',
    description: 'N.\nMust satisfy minimum: 1, multipleOf: 2.',
  })
  t.same(strict({ oneOf: [{ type: 'string', pattern: '^a' }, { type: 'null' }] }), {
    anyOf: [{ type: 'string', description: 'Must satisfy pattern: "^a".' }, { type: 'null' }],
  })
  t.same(strict({ type: 'object', properties: { type: { const: 1 } }, additionalProperties: true }), {
    type: 'object',
    properties: { type: { const: 1 } },
    additionalProperties: false,
  })
  t.same(strict({ type: 'array', items: { enum: ['a'] }, minItems: 1 }), {
    type: 'array',
    items: { enum: ['a'] },
    description: 'Must satisfy minItems: 1.',
  })
  t.end()
})

void t.test('a keyword that cannot be expressed is named', (t) => {
  const map = { type: 'object', additionalProperties: { type: 'string' } }
  t.same(strict(map), { problem: 'properties.p.additionalProperties must be false' })
  t.same(strict({ type: 'object' }), { problem: 'properties.p.additionalProperties must be false' })
  t.same(strictSchema({ type: 'array' }), { problem: 'the root must be an object' })
  const node = { type: 'object', properties: { next: { $ref: '#/$defs/node' } } }
  t.same(strict({ $ref: '#/$defs/node' }, { $defs: { node } }), {
    problem: '$ref #/$defs/node is recursive',
  })
  t.same(strict({ $ref: '#' }), { problem: '$ref # is recursive' })
  const shared = { $defs: { s: { type: 'string' } } }
  t.same(strict({ anyOf: [{ $ref: '#/$defs/s' }, { $ref: '#/$defs/s' }] }, shared), {
    anyOf: [{ $ref: '#/$defs/s' }, { $ref: '#/$defs/s' }],
  })
  t.end()
})

void t.test('the argument is not changed', (t) => {
  const schema = { type: 'object', properties: { a: { type: 'integer', minimum: 1 } } }
  const before = JSON.stringify(schema)
  strictSchema(schema)
  rootObject(schema)
  t.equal(JSON.stringify(schema), before)
  t.equal(rootObject(schema), schema)
  t.end()
})

void t.test('variants at the root are merged into one object', (t) => {
  const a = { type: 'object', properties: { k: { const: 'a' }, x: {} }, required: ['k', 'x'] }
  const b = { type: 'object', properties: { k: { const: 'b' } }, required: ['k'] }
  const k = { anyOf: [{ const: 'a' }, { const: 'b' }] }
  t.same(rootObject({ anyOf: [a, b] }), {
    type: 'object',
    properties: { k, x: {} },
    required: ['k'],
  })
  t.same(rootObject({ allOf: [a, { required: ['y'] }] }).required, ['k', 'x', 'y'])
  t.match(rootObject({ $ref: '#/$defs/a', $defs: { a } }), {
    type: 'object',
    properties: a.properties,
  })
  t.same(rootObject({ $ref: 'https://elsewhere.test/x' }).type, 'object')
  t.same(rootObject({ $ref: '#/$defs/constructor', $defs: {} }).properties, {})
  t.end()
})

void t.test("the root of a reply's schema is a closed object", (t) => {
  const a = { type: 'object', properties: { x: { type: 'string' } }, required: ['x'] }
  const b = { type: 'object', properties: { y: { type: 'string' } }, required: ['y'] }
  const closed = { type: 'object', additionalProperties: false }
  t.match(strictSchema({ $ref: '#/definitions/a', definitions: { a } }), {
    schema: { ...closed, properties: a.properties, required: ['x'] },
  })
  t.match(strictSchema({ anyOf: [a, b] }), {
    schema: { ...closed, properties: { x: {}, y: {} }, required: [] },
  })
  t.match(strictSchema({ oneOf: [a, { type: 'null' }] }), { schema: closed })
  for (const other of [{ type: 'array' }, { $ref: '#/$defs/list' }, { type: 'string' }]) {
    const schema = { anyOf: [a, other], $defs: { list: { type: 'array', items: a } } }
    t.same(strictSchema(schema), { problem: 'the root must be an object' })
  }
  t.end()
})

void t.test('an object without properties gets the type object', (t) => {
  for (const schema of [{}, { description: 'what you like' }, { $ref: 'https://elsewhere.test/x' }]) {
    t.same(strictSchema(schema), { problem: 'additionalProperties must be false' })
  }
  t.end()
})

void t.test('cycles, depth and shared definitions cost linear time and do not throw', (t) => {
  let deep: JsonObject = { type: 'string' }
  for (let i = 0; i < 3000; i++) deep = { type: 'object', properties: { a: deep } }
  t.match(strictSchema(deep), { problem: /too deeply/ })
  const $defs: Record<string, JsonObject> = {}
  for (let i = 0; i < 60; i++) {
    const reference = { $ref: `#/$defs/d${(i + 1) % 60}` }
    $defs[`d${i}`] = { allOf: [reference, reference], anyOf: [reference, reference] }
  }
  t.equal(rootObject({ $ref: '#/$defs/d0', $defs }).type, 'object')
  t.match(strictSchema({ $ref: '#/$defs/d0', $defs }), { problem: /recursive/ })
  $defs.d59 = { type: 'object', properties: { z: {} } }
  t.match(rootObject({ $ref: '#/$defs/d0', $defs }).properties, { z: {} })
  t.ok('schema' in strictSchema({ $ref: '#/$defs/d0', $defs }))
  t.end()
})
